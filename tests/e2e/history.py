#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ran is found again and adds up: takt jobs, takt report; and what was not measured is not made up.

Usage: history.py BUILD_FOLDER
"""
import csv
import io
import json
import os
import subprocess
import sys

import kit


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def jobs_are_chosen_and_sorted():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        first = client.submit(["true"], gpus=1, name="train-a", tags="night,big")["id"]
        client.wait(first)
        second = client.submit(["false"], gpus=2, name="train-b")["id"]
        client.wait(second)
        gate = client.submit(["sleep", "600"], gpus=1, name="eval")["id"]
        kit.until(lambda: client.job(gate)["state"] == "running", kit.WAIT_S, lambda: client.job(gate))

        def ids(*words):
            done = m.takt("jobs", "--json", *words)
            assert done.returncode == 0, done
            return [job["id"] for job in json.loads(done.stdout)["jobs"]]
        assert ids() == [gate, second, first]
        assert ids("--name", "train-*") == [second, first]
        assert ids("--state", "failed,lost") == [second]
        assert ids("--tag", "big") == [first] and ids("--tag", "bi") == []
        assert ids("--gpu", str(client.job(gate)["gpu_list"][0]), "--state", "running") == [gate]
        assert ids("--since", "1h") == [gate, second, first] and ids("--until", "1h") == []
        assert ids("--user", "nobody-here") == []
        assert ids("--limit", "1") == [gate]
        assert ids("--sort", "gpus")[0] == second
        table = rows(m.takt("jobs", "--csv").stdout)
        assert [row["job"] for row in table] == [str(gate), str(second), str(first)], table
        assert table[2]["tags"] == "night,big" and table[2]["exit_code"] == "0", table[2]
        assert table[1]["energy_mj"] == "", "far too short to be measured"
        assert "train-b" in m.takt("jobs").stdout
        done = m.takt("jobs", "--sort", "colour")
        assert done.returncode == 64 and "not 'colour'" in done.stderr, done
        done = m.takt("jobs", "--since", "yesteryear")
        assert done.returncode == 64 and "--since" in done.stderr, done


def a_report_adds_up_and_says_what_is_not_known():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        busy = client.submit(m.load_argv("--seconds", 6, "--quiet"), gpus=1, name="busy",
                             env=["PATH=/usr/bin:/bin", f"TAKT_TWIN={m.path('machine')}"])["id"]
        idle = client.submit(["sleep", "5"], gpus=2, name="idle")["id"]
        short = client.submit(["true"], gpus=1, name="short")["id"]
        views = {job: client.wait(job) for job in (busy, idle, short)}
        report = json.loads(m.takt("report", "--json", "--by", "name", "--price", "0.5").stdout)
        groups = {group["key"]: group for group in report["groups"]}
        assert report["by"] == "name" and set(groups) == {"busy", "idle", "short"}, report
        hours = 2 * views[idle]["report"]["wall_ms"] / 3600000
        assert abs(groups["idle"]["gpu_hours"] - hours) < 1e-5, (groups, hours)
        assert groups["idle"]["used_pct"] < 20 and groups["idle"]["idle_gpu_hours"] > hours / 2, groups
        assert groups["busy"]["used_pct"] > 20, groups["busy"]
        energy = views[busy]["report"]["energy_mj"] / 3.6e9
        assert abs(groups["busy"]["energy_kwh"] - energy) < 1e-5, groups["busy"]
        assert abs(groups["busy"]["cost"] - energy / 2) < 1e-5, groups["busy"]
        assert "energy_kwh" not in groups["short"] and "cost" not in groups["short"], groups["short"]
        assert report["total"]["jobs"] == 3 and report["total"]["energy_jobs"] == 2, report["total"]
        table = {row["name"]: row for row in rows(m.takt("report", "--csv", "--by", "name").stdout)}
        assert table["short"]["energy_kwh"] == "" and table["busy"]["cost"] == "", table
        shown = m.takt("report", "--by", "name").stdout
        assert "unknown" in shown and "(2/3)" in shown and "total" in shown, shown
        assert "of its GPUs, idle for" in m.takt("show", str(idle)).stdout
        assert m.takt("report", "--price", "dear").returncode == 64
        day = json.loads(m.takt("report", "--json", "--by", "day").stdout)["groups"]
        assert sum(group["jobs"] for group in day) == 3, day
        # Of jobs that ran while takt was away nothing is made up.
        away = client.submit(["sleep", "3"], gpus=1, name="away")["id"]
        kit.until(lambda: client.job(away)["state"] == "running", kit.WAIT_S, lambda: client.job(away))
        m.kill()
        m.start()
        m.client().wait(away)
        groups = {group["key"]: group
                  for group in json.loads(m.takt("report", "--json", "--by", "name").stdout)["groups"]}
        assert groups["away"]["gpu_hours"] > 0 and "used_pct" not in groups["away"], groups["away"]


def configurations_are_checked():
    with kit.machine(gpus=1) as m:
        path = m.path("takt.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write("sample_hz = 0\nnonsense\nmange = never\n# fine\nusers = own\nusers = all\n")
        done = m.takt("config", "check", path)
        lines = done.stdout.splitlines()
        assert done.returncode == 65 and len(lines) == 4, done
        for number, says in ((1, "from 1 to 100"), (2, "nonsense"), (3, "did you mean 'manage'"), (6, "twice")):
            assert any(line.startswith(f"{path}:{number}: ") and says in line for line in lines), (number, lines)
        with open(path, "w", encoding="ascii") as file:
            file.write("sample_hz = 20\n")
        done = m.takt("config", "check", path)
        assert done.returncode == 0 and "no errors" in done.stdout, done
        assert "sample_hz = 20\n" in m.takt("config", "show", path).stdout
        assert m.takt("config", "check", m.path("none")).returncode == 66
        assert m.takt("config", "mend").returncode == 64


def the_journal_gets_levels():
    """With standard error as the journal's stream each line begins with its level."""
    with kit.machine(gpus=1) as m:
        with open(m.path("journal"), "wb") as journal:
            stat = os.fstat(journal.fileno())
            done = subprocess.run(
                [kit.TWIN, "exec", "--machine", m.path("machine"), "--", m.path("bin/takt"), "serve",
                 "--socket", "relative"], env=m.env(JOURNAL_STREAM=f"{stat.st_dev}:{stat.st_ino}"),
                stderr=journal, stdout=subprocess.DEVNULL, timeout=kit.WAIT_S, check=False)
        with open(m.path("journal"), encoding="utf-8") as file:
            said = file.read()
        assert done.returncode == 64 and said.startswith("<3>") and "absolute path" in said, (done, said)
        assert m.run(m.path("bin/takt"), "serve", "--socket", "relative").stderr.startswith("takt serve: ")


if __name__ == "__main__":
    sys.exit(kit.main([
        jobs_are_chosen_and_sorted,
        a_report_adds_up_and_says_what_is_not_known,
        configurations_are_checked,
        the_journal_gets_levels,
    ]))
