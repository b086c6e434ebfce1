# SPDX-License-Identifier: Apache-2.0
"""Trials of a campaign beside each other: most of a trial is waiting, and each has a machine of its own."""
import concurrent.futures

from tap import Skip


def side_by_side(trials, at_once):
    """Runs (name, function) pairs, so many at a time; fails with all that failed. The functions' values by name."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        futures = [(name, pool.submit(trial)) for name, trial in trials]
    problems = [f"{name}: {future.exception()!r}" for name, future in futures if future.exception()]
    for _, future in futures:
        if isinstance(future.exception(), Skip):
            raise future.exception()
    assert not problems, "\n".join(problems)
    return {name: future.result() for name, future in futures}
