#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is foretold of starts comes true as it says: some of Philly's jobs through the daemon's own queue and scheduler.

Usage: foretold.py BUILD_FOLDER
"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "bench")]

import predictions  # noqa: E402
import tap  # noqa: E402


def eight_of_ten_starts_lie_in_their_range():
    jobs = predictions.jobs_of("2017-10", "103959", 16)
    rows = predictions.replay(sys.argv[1], jobs, 16)
    told = dict((metric, value) for metric, value, _ in predictions.judge(rows))
    assert told["with a start and its range"] > 0, told
    assert told["in the range of 8 in 10"] >= 80, told
    assert told["foretold in the past"] == 0, told


if __name__ == "__main__":
    sys.exit(tap.main([eight_of_ten_starts_lie_in_their_range]))
