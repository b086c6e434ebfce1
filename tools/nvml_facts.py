# SPDX-License-Identifier: Apache-2.0
"""Reads include/abi/nvml.facts for the generators and the layout test. The format is described there."""

import fnmatch
import re


class Facts:
    def __init__(self):
        self.branches = []  # (name, driver version, CUDA version, NVML version)
        self.codes = []  # (name, number, text)
        self.enums = []  # (prefix, [(name, value text)])
        self.structs = []  # Struct
        self.functions = []  # Function
        self.refusals = []  # (code, reason, [pattern of a name])

    def refusal(self, name):
        """(code, reason) of a function that is refused on purpose, or None."""
        for code, reason, patterns in self.refusals:
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                return code, reason
        return None


class Struct:
    def __init__(self, name, size, version, py):
        self.name, self.size, self.version, self.py = name, size, version, py
        self.fields = []  # (type, name, array suffix, offset)


class Function:
    def __init__(self, name, arguments, returns):
        self.name, self.arguments, self.returns = name, arguments, returns


def _struct(words):
    options = dict(word.split("=") for word in words[2:])
    return Struct(words[0], int(words[1]), int(options.get("v", 0)), options.get("py"))


def _field(line):
    match = re.fullmatch(r"(.*?[ *])(\w+)(\[\d+\])? (\d+)", line)
    return match[1].strip(), match[2], match[3] or "", int(match[4])


def _function(text):
    match = re.fullmatch(r"(\w+)\((.*)\)(?: -> (.*))?", text)
    return Function(match[1], match[2], match[3] or "int")


def read(path):
    facts, body = Facts(), None
    for number, line in enumerate(open(path, encoding="ascii"), 1):
        line = line.rstrip()
        if not line or line.startswith("#"):
            continue
        try:
            body = _line(facts, body, line)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise SystemExit(f"{path}:{number}: cannot read '{line}': {error}") from error
    return facts


def _line(facts, body, line):
    if line[0] == "\t":
        body(line[1:])
        return body
    kind, rest = line.split(" ", 1)
    if kind == "branch":
        name, driver, cuda, nvml = rest.split(" ")
        facts.branches.append((name, driver, int(cuda), nvml))
    elif kind == "code":
        name, value, text = rest.split(" ", 2)
        facts.codes.append((name, int(value), text))
    elif kind == "enum":
        values = []
        facts.enums.append((rest, values))
        return lambda text: values.append(tuple(text.split(" ")))
    elif kind == "struct":
        struct = _struct(rest.split(" "))
        facts.structs.append(struct)
        return lambda text: struct.fields.append(_field(text))
    elif kind == "func":
        facts.functions.append(_function(rest))
    elif kind == "none":
        code, reason = rest.split(" ", 1)
        patterns = []
        facts.refusals.append((code, reason, patterns))
        return patterns.append
    else:
        raise ValueError("unknown kind of line")
    return None
