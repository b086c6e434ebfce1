# SPDX-License-Identifier: Apache-2.0
"""The description of a job, end to end: what may be asked for, in which words, and what comes of it."""
import sys

import kit

# What is understood but not carried out yet; a line goes when the daemon's table loses it.
NOT_YET = (
    ("--freezable",), ("--tenant", "lab"), ("--hook", "true"),
    ("--wait-outside",),
)


def what_is_not_carried_out_is_refused():
    with kit.machine(gpus=1) as m:
        m.start()
        for words in NOT_YET:
            done = m.takt("submit", *words, "--", "true")
            assert done.returncode == 69 and "is not carried out yet" in done.stderr, (words, done)
            assert words[0] in done.stderr, (words, done)
        assert not m.client().live() and not m.client().history()


def the_first_retry_comes_after_its_backoff():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = int(m.takt("submit", "-q", "-n", "0", "--retries", "1", "--retry-backoff", "30m", "--tag", "night,big",
                         "--", "false").stdout)
        view = kit.until(lambda: (lambda v: v if "retry_at_ms" in v else None)(client.job(job)), kit.WAIT_S,
                         lambda: client.job(job))
        assert view["retry_backoff_ms"] == 1800000 and view["tags"] == "night,big", view
        assert 1700000 < view["retry_at_ms"] - view["submitted_ms"] < 1900000, view
        assert "first pause 30m00s" in m.takt("show", str(job)).stdout


if __name__ == "__main__":
    sys.exit(kit.main([
        what_is_not_carried_out_is_refused,
        the_first_retry_comes_after_its_backoff,
    ]))
