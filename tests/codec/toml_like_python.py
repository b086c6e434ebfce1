# SPDX-License-Identifier: Apache-2.0
"""takt's reader of TOML against Python's: the same documents are taken, with the same values.

The documents are the seeds of the fuzzer and what becomes of them by a few random cuts, copies and other
characters. Where takt is stricter on purpose (what JSON has no word for, and its limits) it may refuse.
"""
import datetime
import functools
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tomllib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

READER, SEEDS = sys.argv[1:3]
COUNT = 6000
STRICTER = re.compile("too large|nested too deep|too long|such a character|over a megabyte")
PIECES = ["\"", "'", '"""', "'''", "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\n", "#", "\\", "0", "_", "e", "-",
          "a", "b = 1\n", "[a]\n", "[a.b]\n", "[[a]]\n", "a.b = 2\n", "1.5", "0x1", "true", " ", "\t", "\r\n", "\\u00e9"]


def plain(value):
    """As JSON has it. Dates: takt keeps their text; they are compared as instants of Python's."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def same(ours, theirs):
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and \
            all(same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, (datetime.date, datetime.time)):
        return isinstance(ours, str) and tomllib.loads(f"a = {ours}")["a"] == theirs
    if isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        return isinstance(ours, (int, float)) and math.isclose(ours, theirs, rel_tol=1e-15, abs_tol=0)
    return type(ours) is type(theirs) and ours == theirs


def has_date(value):
    if isinstance(value, dict):
        return any(map(has_date, value.values()))
    if isinstance(value, list):
        return any(map(has_date, value))
    return isinstance(value, str) and re.match(r"\d\d(\d\d-|:)", value)


def changed(text, dice):
    for _ in range(dice.randint(1, 2)):
        at, upto = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        upto = min(upto, at + dice.choice((0, 1, 2, 20)))
        text = text[:at] + dice.choice(PIECES + [text[at:upto] * 2, ""]) + text[upto:]
    return text


def documents():
    dice = random.Random(7)
    seeds = [path.read_bytes().decode() for path in sorted(pathlib.Path(SEEDS).iterdir())]
    made = [changed(dice.choice(seeds), dice) for _ in range(COUNT)]
    return [text for text in seeds + made if text and "\0" not in text]


def judge(text, line):
    """None, or what is wrong."""
    try:
        theirs = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        theirs = error
    if line.startswith("!"):
        if isinstance(theirs, Exception) or STRICTER.search(line) or "inf" in text or "nan" in text:
            return None if re.match(r"!line \d+: ", line) else f"no line in: {line}"
        return f"refused: {line}"
    ours = json.loads(line)
    if isinstance(theirs, Exception):
        return None if has_date(ours) else f"taken, Python says {theirs}"  # days and hours are not counted
    return None if same(ours, plain(theirs)) else f"{ours} is not {theirs}"


@functools.cache
def read():
    """[(document, what takt's reader says of it)]"""
    texts = documents()
    done = subprocess.run([READER], input=b"".join(text.encode() + b"\0" for text in texts), capture_output=True,
                          check=True)
    return list(zip(texts, done.stdout.decode().split("\n")[:-1], strict=True))


def documents_are_read_as_python_reads_them():
    wrong = [f"{text!r}: {why}" for text, line in read() if (why := judge(text, line))]
    assert not wrong, "\n".join(wrong[:5])


def many_documents_are_taken():
    taken = sum(not line.startswith("!") for _, line in read())
    assert taken > COUNT / 20, f"{taken} of {len(read())}"


if __name__ == "__main__":
    sys.exit(tap.main([documents_are_read_as_python_reads_them, many_documents_are_taken]))
