# SPDX-License-Identifier: Apache-2.0
"""Runs functions as test cases and reports in TAP (Test Anything Protocol). A case fails by raising, skips by Skip.

Where ./test tests a sanitized build beside a plain one ("beside-sanitized" in TAKT_TEST_ENV), a case runs once: the
plain build runs those that are marked @plain, or the whole program if none is.

Cases that mostly wait, each for something of its own, may run several at once.
"""
import concurrent.futures
import os
import subprocess
import threading
import traceback

HELD = threading.local()  # `text`: what the case of this thread has noted, told in one piece when it has ended


class Skip(Exception):
    """This case cannot run here; the text says why."""


def plain(case):
    """Marks a case that only a build without sanitizers can run, because other people's programs load a library of
    ours: a sanitized one loads into none of them."""
    case.plain = True
    return case


def is_sanitized(library):
    undefined = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True,
                               check=True).stdout
    return any(mark in undefined for mark in ("__asan_", "__tsan_", "__ubsan_"))


def note(text):
    text = "".join(f"# {line}\n" for line in text.splitlines())
    if hasattr(HELD, "text"):
        HELD.text += text
    else:
        print(text, end="", flush=True)


def chosen(cases, sanitized):
    """[(name, function, whether it is marked @plain)] of those that run in this build."""
    cases = [case if isinstance(case, tuple) else (case.__name__, case) for case in cases]
    cases = [(name, case, getattr(case, "plain", False)) for name, case in cases]
    beside = "beside-sanitized" in os.environ.get("TAKT_TEST_ENV", "").split()
    marked = [case for case in cases if case[2]]
    return marked if beside and marked and not sanitized else cases


def run(name, case, only_plain, sanitized):
    """(result, the rest of its line)"""
    try:
        if only_plain and sanitized:
            raise Skip("a sanitized library does not load into programs that are not")
        case()
        return "ok", name
    except Skip as why:
        return "ok", f"{name} # SKIP {why}"
    except Exception:  # one broken case must not hide the others
        note(traceback.format_exc())
        return "not ok", name


def run_aside(*case):
    HELD.text = ""
    return *run(*case), HELD.text


def ended(cases, sanitized, at_once):
    """Runs them: (result, the rest of its line, what was not told yet) of each when it has ended."""
    if at_once == 1:
        for case in cases:
            yield *run(*case, sanitized), ""
        return
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_aside, *case, sanitized) for case in cases]):
            yield done.result()


def main(cases, sanitized=False, at_once=1):
    """Runs the cases (functions, or pairs of name and function), so many at once; the process's exit status."""
    cases = chosen(cases, sanitized)
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, (result, line, text) in enumerate(ended(cases, sanitized, at_once), 1):
        failed += result != "ok"
        print(f"{text}{result} {number} - {line}", flush=True)
    return 1 if failed else 0
