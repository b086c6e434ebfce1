#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may have how much, from a file that is read again while takt runs.

Usage: fair_share.py BUILD_FOLDER
"""
import os
import signal
import sys

import kit

GATE = ["sh", "-c", "until test -e go; do sleep 0.02; done"]


def write(m, text):
    path = m.path("jobs/tenants.conf")
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)
    return path


def limits_change_while_takt_runs():
    with kit.machine(gpus=4) as m:
        path = write(m, "[user *]\nlimit = 1\n")
        m.start("--tenants-file", path)
        client = m.client()
        first, second = (client.submit(GATE, gpus=1, cwd=m.path("jobs"))["id"] for _ in range(2))
        kit.until(lambda: client.job(second).get("why") == "quota", lambda: client.job(second))
        assert client.job(first)["state"] in ("starting", "running"), client.job(first)
        assert "tenant" in m.takt("explain", str(second)).stdout
        assert "share" in m.takt("show", str(second)).stdout
        # A wrong file changes nothing and is said to be wrong, with its line.
        write(m, "[user *]\nlimit = 4\nweight = none\n")
        os.kill(m.serve.pid, signal.SIGHUP)
        kit.until(lambda: "tenants.conf:3: weight" in m.takt("status").stdout,
                  lambda: m.takt("status").stdout)
        assert client.job(second)["state"] == "waiting", client.job(second)
        write(m, "[user *]\nlimit = 4\nmax_queued = 1\n")
        kit.until(lambda: client.job(second)["state"] == "running", lambda: client.job(second))
        assert "tenants.conf" not in m.takt("status").stdout
        client.submit(GATE, gpus=4, cwd=m.path("jobs"))
        done = m.takt("submit", "--", "true")
        assert done.returncode != 0 and "the limit is 1" in done.stderr, done
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        for job in range(1, 4):
            assert client.wait(job)["state"] == "done"


def tenants_are_asked_for_by_name():
    with kit.machine(gpus=2) as m:
        path = write(m, f"[tenant lab]\n[tenant lab/vision]\nusers = {os.getuid()}\n[tenant other]\nusers = 4711\n")
        m.start("--tenants-file", path, "--order", "fair_share")
        client = m.client()
        done = m.takt("submit", "-q", "--tenant", "lab/vision", "--", *m.witness_argv(1))
        assert done.returncode == 0, done
        assert client.wait(int(done.stdout))["tenant"] == "lab/vision"
        done = m.takt("submit", "--tenant", "other", "--", "true")
        assert done.returncode != 0 and "not yours" in done.stderr, done
        done = m.takt("submit", "--tenant", "nobody", "--", "true")
        assert done.returncode == 65 and "no tenant 'nobody'" in done.stderr, done
        assert m.stop() == 0
        again = m.takt("simulate", "--replay", m.path("state/takt.db"))
        assert again.returncode == 0, again


if __name__ == "__main__":
    sys.exit(kit.main([limits_change_while_takt_runs, tenants_are_asked_for_by_name]))
