# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a test of the command line and prints them as TAP."""


def run(cases):
    """The exit status: 1 when one of them failed. One that fails does not keep the others from running."""
    failed = 0
    for i, case in enumerate(cases, 1):
        try:
            case()
            print(f"ok {i} - {case.__name__}")
        except AssertionError as error:
            failed += 1
            print(f"not ok {i} - {case.__name__}\n# {error!r}")
    print(f"1..{len(cases)}")
    return 1 if failed else 0
