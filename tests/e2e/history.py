#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ran is found again and adds up: takt jobs, takt report; and what was not measured is not made up.

Usage: history.py BUILD_FOLDER
"""
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys

import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "tests/sim"))
from report_document import document_of


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def jobs_are_chosen_and_sorted():
    with kit.machine(gpus=2) as m:
        m.start("--sample-hz", "1")  # of energy this knows nothing before twenty seconds
        client = m.client()
        first = client.submit(["true"], gpus=1, name="train-a", tags="night,big")["id"]
        client.wait(first)
        second = client.submit(["false"], gpus=2, name="train-b")["id"]
        client.wait(second)
        gate = client.submit(["sleep", "600"], gpus=1, name="eval")["id"]
        kit.until(lambda: client.job(gate)["state"] == "running", lambda: client.job(gate))

        def ids(*words):
            done = m.takt("jobs", "--json", *words)
            assert done.returncode == 0, done
            return [job["id"] for job in json.loads(done.stdout)["jobs"]]
        assert ids() == [gate, second, first]
        assert ids("--name", "train-*") == [second, first]
        assert ids("--state", "failed,lost") == [second]
        listed = m.takt("queue", "--history").stdout
        assert "TAGS" in listed and "night,big" in listed and "TAGS" not in m.takt("queue").stdout, listed
        assert ids("--tag", "big") == [first] and ids("--tag", "bi") == []
        assert ids("--gpu", str(client.job(gate)["gpu_list"][0]), "--state", "running") == [gate]
        assert ids("--since", "1h") == [gate, second, first] and ids("--until", "1h") == []
        assert ids("--since", "yesterday") == [gate, second, first] and ids("--until", "yesterday") == []
        assert ids("--since", "1w") == [gate, second, first] and ids("--until", "1w") == []
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


def history_is_read_to_its_end():
    """More ended jobs than are ever asked for at once, made in the database of a takt that does not run."""
    count = 12000
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        first = client.submit(["true"], gpus=1, name="first")["id"]
        client.wait(first)
        m.stop()
        with sqlite3.connect(m.path("state/takt.db")) as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(job)")]
            same = ", ".join(name for name in columns if name not in ("id", "submit_seq", "ended_ns", "state", "wall_ns"))
            db.execute("CREATE TEMP TABLE n AS WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c "
                       f"WHERE i < {count}) SELECT i FROM c")
            db.execute(f"INSERT INTO job(id, submit_seq, ended_ns, state, wall_ns, {same}) SELECT {first} + i, "
                       f"submit_seq + i, ended_ns - i * 1000000000, iif(i % 4 = 0, 'failed', 'done'), "
                       f"i * 1000000, {same} FROM job, n WHERE id = {first}")
            db.execute(f"INSERT INTO spec SELECT {first} + i, json_set(json, '$.name', 'bulk-' || (i % 3)) FROM spec, n "
                       f"WHERE job_id = {first}")
        m.start()

        def ids(*words):
            done = m.takt("jobs", "--json", *words)
            assert done.returncode == 0, done
            return [job["id"] for job in json.loads(done.stdout)["jobs"]]
        last = first + count
        assert ids("--limit", "3") == [last, last - 1, last - 2]
        assert ids("--limit", "2", "--before", str(first + 2)) == [first + 1, first]
        assert ids("--name", "first") == [first], "the oldest of all"
        assert ids("--sort", "ran", "--state", "failed", "--limit", "2") == [last, last - 4]
        assert ids("--sort", "ended", "--limit", "2") == [first, first + 1]
        assert len(ids("--limit", "10000")) == 10000
        assert "the first 50; --limit shows more" in m.takt("jobs").stdout
        assert m.takt("jobs", "--limit", "10001").returncode == 64
        report = json.loads(m.takt("report", "--json", "--by", "name").stdout)
        groups = {group["key"]: group["jobs"] for group in report["groups"]}
        assert groups == {"first": 1, "bulk-0": 4000, "bulk-1": 4000, "bulk-2": 4000}, groups
        assert report["total"]["jobs"] == count + 1 and report["total"]["not_done"] == count // 4, report["total"]
        until = json.loads(m.takt("report", "--json", "--until", "2h").stdout)["total"]["jobs"]
        assert count - 7200 <= until < count - 7000, until


def a_report_adds_up_and_says_what_is_not_known():
    with kit.machine(gpus=2) as m:
        m.start("--sample-hz", "4")  # of energy this knows nothing before five seconds
        client = m.client()
        busy = client.submit(m.load_argv("--seconds", 9, "--quiet"), gpus=1, name="busy",
                             env=["PATH=/usr/bin:/bin", f"TAKT_TWIN={m.path('machine')}"])["id"]
        idle = client.submit(["sleep", "8"], gpus=2, name="idle")["id"]
        short = client.submit(["true"], gpus=1, name="short")["id"]
        views = {job: client.wait(job) for job in (busy, idle, short)}
        report = json.loads(m.takt("report", "--json", "--by", "name", "--price", "0.5", "--html", m.path("r.html")).stdout)
        assert document_of(m.path("r.html")) == report and report["simulated"] and report["price"] == 0.5, report
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
        assert shown.splitlines()[-1].startswith("(2/3): known of 2 of 3 jobs with GPUs"), shown
        # No digits that nothing measured, and one system of units.
        assert re.search(r" \d+% ", shown) and not re.search(r"\.\d{4}|%\d*\.", shown) and re.search(r"\d (J|k?Wh)\b", shown), shown
        assert "of its GPUs, idle for" in m.takt("show", str(idle)).stdout
        assert m.takt("report", "--price", "dear").returncode == 64
        day = json.loads(m.takt("report", "--json", "--by", "day").stdout)["groups"]
        assert sum(group["jobs"] for group in day) == 3, day
        # Of jobs that ran while takt was away nothing is made up.
        away = client.submit(["sleep", "3"], gpus=1, name="away")["id"]
        kit.until(lambda: client.job(away)["state"] == "running", lambda: client.job(away))
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


def ended_jobs_keep_the_gpus_that_they_had():
    """Other boards have the numbers after a restart of the machine. Of a job without a record nothing is made up."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        wide = client.submit(["true"], gpus=2)["id"]
        before = [gpu["uuid"] for gpu in client.status()["gpus"]]
        assert client.wait(wide)["gpu_uuid"] == before, client.job(wide)
        assert not m.kill_all()
        os.unlink(m.path("machine"))
        m.twin(*m.create_words[:-1], "8")
        m.start()
        client = m.client()
        after = [gpu["uuid"] for gpu in client.status()["gpus"]]
        assert not set(before) & set(after), (before, after)
        later = client.submit(["true"], gpus=2)["id"]
        assert client.wait(later)["gpu_uuid"] == after, client.job(later)
        view = client.job(wide)
        assert (view["gpu_list"], view["gpu_uuid"]) == ([0, 1], before), view
        assert before[1] in m.takt("show", str(wide)).stdout, m.takt("show", str(wide))
        m.stop()
        with sqlite3.connect(m.path("state/takt.db")) as db:
            db.execute("UPDATE job SET gpu_uuids = '' WHERE id = ?", (wide,))
        m.start()
        view = m.client().job(wide)
        assert (view["gpu_list"], view["gpu_uuid"]) == ([0, 1], ["", ""]), view
        assert "GPU-" not in m.takt("show", str(wide)).stdout, m.takt("show", str(wide))


if __name__ == "__main__":
    sys.exit(kit.main([
        jobs_are_chosen_and_sorted,
        history_is_read_to_its_end,
        ended_jobs_keep_the_gpus_that_they_had,
        a_report_adds_up_and_says_what_is_not_known,
        configurations_are_checked,
        the_journal_gets_levels,
    ], at_once=3))
