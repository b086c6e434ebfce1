# SPDX-License-Identifier: Apache-2.0
"""How tests wait: for a condition, with an end that is generous, and with a word on what was seen instead.

No case depends on how fast the machine is. `WAIT_S` is there for what will never come: it is far beyond what
anything here needs, on a slow machine with everything else running beside.
"""
import time

WAIT_S = 120
PAUSE_S = (0.01, 0.1)  # between two looks: short at first


def until(condition, what, seconds=WAIT_S):
    """The condition's value once it is true; AssertionError with `what` (a text, or a function that returns one)
    after `seconds`. A look that is dear (a command) is followed by a pause as long as itself, at most 1 s."""
    begin = time.monotonic()
    while True:
        looked = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        assert now < begin + seconds, f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(max(min(max((now - begin) / 10, PAUSE_S[0]), PAUSE_S[1]), min(now - looked, 1)))
