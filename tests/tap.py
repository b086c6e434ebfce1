# SPDX-License-Identifier: Apache-2.0
"""Runs functions as test cases and reports in TAP (Test Anything Protocol). A case fails by raising, skips by Skip.

Where ./test tests a sanitized build beside a plain one ("beside-sanitized" in TAKT_TEST_ENV), a case runs once: the
plain build runs those that are marked @plain, or the whole program if none is.
"""
import os
import subprocess
import traceback


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
    print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)


def chosen(cases, sanitized):
    """[(name, function, whether it is marked @plain)] of those that run in this build."""
    cases = [case if isinstance(case, tuple) else (case.__name__, case) for case in cases]
    cases = [(name, case, getattr(case, "plain", False)) for name, case in cases]
    beside = "beside-sanitized" in os.environ.get("TAKT_TEST_ENV", "").split()
    marked = [case for case in cases if case[2]]
    return marked if beside and marked and not sanitized else cases


def main(cases, sanitized=False):
    """Runs the cases (functions, or pairs of name and function); the process's exit status."""
    cases = chosen(cases, sanitized)
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, (name, case, only_plain) in enumerate(cases, 1):
        try:
            if only_plain and sanitized:
                raise Skip("a sanitized library does not load into programs that are not")
            case()
            print(f"ok {number} - {name}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
        except Exception:  # one broken case must not hide the others
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            note(traceback.format_exc())
    return 1 if failed else 0
