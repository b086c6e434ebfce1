# SPDX-License-Identifier: Apache-2.0
"""Runs functions as test cases and reports in TAP. A case fails by raising, skips by Skip."""

import traceback


class Skip(Exception):
    """This case cannot run here; the text says why."""


def run(cases):
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, case in enumerate(cases, 1):
        name = case.__name__.replace("_", " ")
        try:
            case()
            print(f"ok {number} - {name}", flush=True)
        except Skip as skip:
            print(f"ok {number} - {name} # SKIP {skip}", flush=True)
        except Exception:  # a case may fail in any way
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    return 1 if failed else 0
