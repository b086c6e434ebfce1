#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is asked of a job beyond its GPUs, and what is done to it while it waits, over the API and the command line.

Usage: job_control.py BUILD_FOLDER
"""
import json
import os
import re
import sys
import time

import kit


def state(client, job):
    return client.job(job)["state"]


def ends_with(client, job, want):
    view = client.wait(job)
    assert view["state"] == want, view
    return view


def held_jobs_start_when_released():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        done = m.takt("submit", "-q", "--hold", "--", "true")
        assert done.returncode == 0, done
        held = int(done.stdout)
        other = client.submit(m.witness_argv(1), gpus=1)["id"]
        ends_with(client, other, "done")
        view = client.job(held)
        assert (view["state"], view["held"]) == ("waiting", "owner"), view
        kit.until(lambda: client.job(held).get("why") == "held", lambda: client.job(held))
        m.kill()
        m.start()
        client = m.client()
        assert client.job(held)["held"] == "owner", "a hold outlives a crash"
        assert "by its owner" in m.takt("show", str(held)).stdout
        done = m.takt("release", str(held))
        assert done.returncode == 0, done
        assert "held" not in ends_with(client, held, "done")


def priorities_change_the_order():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        gate = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done"], gpus=1,
                             cwd=m.path("jobs"))["id"]
        first, second = (client.submit(m.witness_argv(1), gpus=1)["id"] for _ in range(2))
        done = m.takt("update", str(second), "--priority", "5", "--json")
        assert json.loads(done.stdout)["priority"] == 5, done
        done = m.takt("update", str(gate), "-p", "1")
        assert done.returncode == 75 and "only waiting jobs" in done.stderr, done
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        for job in (first, second):
            ends_with(client, job, "done")
        assert [begin.job for begin in m.witness().begins] == [second, first]


def a_time_limit_ends_a_job_and_says_so():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        stubborn = "trap '' TERM; while true; do sleep 0.05; done"
        done = m.takt("submit", "-q", "-n", "0", "--time-limit", "300ms", "--grace", "200ms", "--", "sh", "-c",
                      stubborn)
        assert done.returncode == 0, done
        view = ends_with(client, int(done.stdout), "failed")
        assert view["exit_signal"] == 9 and "time limit of 300ms" in view["message"], view
        assert 500 <= view["report"]["wall_ms"], view
        assert "time limit" in m.takt("show", done.stdout.strip()).stdout


def a_grace_that_outlives_everything_is_refused():
    with kit.machine(gpus=1) as m:
        m.start("--max-grace", "20s")
        for words in (("--grace", "21s"), ("--checkpoint-signal", "USR1", "--checkpoint-grace", "24h")):
            done = m.takt("submit", *words, "--", "true")
            assert done.returncode == 64 and "must be at most 20s here" in done.stderr and "max_grace" in done.stderr, done
        assert m.takt("submit", "-q", "--grace", "20s", "--", "true").returncode == 0


def another_time_limit_counts_of_waiting_and_running_jobs():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        runs = int(m.takt("submit", "-q", "--time-limit", "1h", "--", *m.witness_argv(m.path("over"))).stdout)
        waits = int(m.takt("submit", "-q", "--", "sleep", "600").stdout)
        kit.until(lambda: client.job(runs)["state"] == "running", lambda: client.job(runs))
        done = m.takt("update", str(waits), str(runs), "--time-limit", "1:30:00")
        assert done.returncode == 0, done
        assert [client.job(job)["time_limit_ms"] for job in (runs, waits)] == [5400000] * 2
        assert "1h30m" in m.takt("show", str(runs)).stdout
        done = m.takt("update", str(runs), "--time-limit", "1ms")
        assert done.returncode == 75 and "has run for" in done.stderr and "longer limit" in done.stderr, done
        assert m.takt("update", str(waits), "--time", "none").returncode == 0
        assert not client.job(waits).get("time_limit_ms"), client.job(waits)
        m.kill()
        m.start()
        assert client.job(runs)["time_limit_ms"] == 5400000 and not client.job(waits).get("time_limit_ms")
        assert m.takt("update", str(waits), "--time-limit", "1s").returncode == 0
        with open(m.path("over"), "w", encoding="ascii"):
            pass
        ends_with(client, runs, "done")
        view = ends_with(client, waits, "failed")
        assert "time limit of 1.000s" in view["message"], view


def what_it_prints_goes_where_it_is_told():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        there = m.path("there")
        os.mkdir(there)

        def run(*words):
            done = m.takt("submit", "-q", "-n", "0", "--cwd", there, *words, "--", "sh", "-c", "echo out; echo err >&2")
            assert done.returncode == 0, done
            return int(done.stdout.split()[0])

        def text(name):
            with open(os.path.join(there, name), encoding="ascii") as file:
                return file.read()
        first = run("-o", "%x-%j.txt", "--name", "it")
        ends_with(client, first, "done")
        assert text(f"it-{first}.txt") == "out\nerr\n"
        log = m.takt("logs", str(first)).stdout
        assert f"it-{first}.txt" in log and "err" not in log, log
        assert "%x-%j.txt" in m.takt("show", str(first)).stdout
        for _ in range(2):
            ends_with(client, run("--output", os.path.join(there, "same")), "done")
        assert text("same") == "out\nerr\n" * 2
        array = run("--array", "1-2", "-o", "%A_%a")
        for job in (array, array + 1):
            ends_with(client, job, "done")
        assert [text(f"{array}_{index}") for index in (1, 2)] == ["out\nerr\n"] * 2
        view = ends_with(client, run("-o", "no/such/folder"), "failed")
        assert "output 'no/such/folder': No such file" in view["message"], view
        ranks = run("--ranks=3", "-o", "ranks")
        ends_with(client, ranks, "done")
        assert sorted(text("ranks").split()) == ["err"] * 3 + ["out"] * 3


def retries_know_that_they_are():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = client.submit(["sh", "-c", "echo $TAKT_RESTART >> seen; test $TAKT_RESTART = 1"], retries=3,
                            cwd=m.path("jobs"))["id"]
        view = ends_with(client, job, "done")
        assert (view["failures"], view["restarts"], view["attempt"]) == (1, 1, 2), view
        with open(m.path("jobs/seen"), encoding="ascii") as file:
            assert file.read().split() == ["0", "1"]
        hopeless = client.submit(["sh", "-c", "exit 7"], retries=1)["id"]
        view = ends_with(client, hopeless, "failed")
        assert (view["exit_code"], view["attempt"]) == (7, 2), view


def jobs_come_after_jobs():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        gate = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done; exit 1"],
                             cwd=m.path("jobs"))["id"]
        words = ("submit", "-q", "-n", "0", "--after")
        after = [int(m.takt(*words, how, "--", "true").stdout) for how in (f"{gate}:ok", f"{gate}:any")]
        behind = int(m.takt(*words, str(after[0]), "--", "true").stdout)
        kit.until(lambda: client.job(behind).get("why") == "dependency", lambda: client.job(behind))
        assert f"job {gate}" in m.takt("explain", str(after[0])).stdout
        m.kill()
        m.start()
        client = m.client()
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        assert "started_ms" in ends_with(client, after[1], "done")
        for job, other in ((after[0], gate), (behind, after[0])):
            view = ends_with(client, job, "cancelled")
            assert "started_ms" not in view and f"after job {other}, which ended" in view["message"], view
            assert f"job {other}" in m.takt("explain", str(job)).stdout
        done = m.takt(*words, str(gate), "--", "true")
        assert done.returncode == 65 and "failed" in done.stderr and ":any" in done.stderr, done
        done = m.takt(*words, "99", "--", "true")
        assert done.returncode == 66 and "no job 99" in done.stderr, done


def a_job_begins_later():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        before_ms = time.time() * 1000
        done = m.takt("submit", "--begin", "1s500ms", "--", *m.witness_argv(1))
        assert "earliest start" in done.stdout, done
        m.kill()
        m.start()
        view = ends_with(m.client(), 1, "done")
        assert view["started_ms"] >= view["begin_ms"], view
        assert before_ms + 1499 <= view["begin_ms"] <= view["submitted_ms"] + 1500, view


def cpus_and_memory_are_counted():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        most = len(os.sched_getaffinity(0))
        first = client.submit(["sh", "-c", "echo $OMP_NUM_THREADS; until test -e go; do sleep 0.02; done"],
                              cpu_milli=1000 * most, cwd=m.path("jobs"))["id"]
        second = int(m.takt("submit", "-q", "-c", "0.5", "-m", "64M", "--gpu-mem", "1G", "--", "true").stdout)
        kit.until(lambda: client.job(second).get("why") == "cpu", lambda: client.job(second))
        with open(m.path("jobs/go"), "w", encoding="ascii"):
            pass
        ends_with(client, second, "done")
        ends_with(client, first, "done")
        assert client.raw("GET", f"/v1/jobs/{first}/log")[1] == f"{most}\n".encode()
        shown = m.takt("show", str(second)).stdout
        assert re.search(r"^CPUs +0\.5$", shown, re.MULTILINE) and "1.0G at least" in shown.replace("1024M", "1.0G"), shown
        for words, says in ((("-c", "4000"), "CPUs, the machine has"), (("-m", "60T"), "of memory, the machine has"),
                            (("--gpu-mem", "1T"), "the largest here has")):
            done = m.takt("submit", *words, "--", "true")
            assert done.returncode == 65 and says in done.stderr, done


def who_waits_is_told_where_it_will_run():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        gate = client.submit(["sleep", "600"], gpus=2, estimate_ms=600000)["id"]
        job = client.submit(["sleep", "600"], gpus=2, estimate_ms=60000)["id"]
        kit.until(lambda: client.job(job)["starts_gpus"] == [0, 1], lambda: client.job(job))
        assert client.job(job)["starts_ms"] and client.job(gate)["starts_gpus"] == [], client.job(gate)


def a_gpu_that_is_kept_free_is_named_with_its_job():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        gate = client.submit(["sleep", "600"], gpus=1, estimate_ms=600000)["id"]
        kit.until(lambda: client.job(gate)["state"] == "running", lambda: client.job(gate))
        wide = client.submit(["sleep", "60"], gpus=2, estimate_ms=60000)["id"]
        long = client.submit(["sleep", "6000"], gpus=1, estimate_ms=6000000)["id"]
        kit.until(lambda: f"kept for job {wide}" in m.takt("status").stdout, lambda: m.takt("status").stdout)
        assert client.job(long)["starts_ms"] >= client.job(wide)["starts_ms"], client.job(long)
        short = client.submit(["true"], gpus=1, estimate_ms=60000)["id"]
        assert client.wait(short)["state"] == "done", "who is over by then overtakes"
        assert client.job(wide)["state"] == "waiting", client.job(wide)


def a_job_gets_the_gpus_that_it_names():
    with kit.machine(gpus=4) as m:
        m.start()
        client = m.client()
        first = client.submit(["sleep", "600"], gpus=1, gpu_indices=[3])["id"]
        assert kit.until(lambda: client.job(first)["gpu_list"], "it has its GPU") == [3]
        pair = client.submit(["sleep", "600"], gpus=2, gpu_indices=[1, 3])["id"]
        rest = [client.submit(["sleep", "600"], gpus=1)["id"] for _ in range(3)]
        kit.until(lambda: all(state(client, job) == "running" for job in rest[:2]),
                  "who comes later has the GPUs that it does not name")
        assert sorted(client.job(job)["gpu_list"][0] for job in rest[:2]) == [0, 2]
        waits = client.job(pair)
        assert waits["state"] == "waiting" and waits["gpu_indices"] == [1, 3], waits
        assert waits["why_text"].endswith("; GPU 3 is in use"), waits
        assert state(client, rest[2]) == "waiting", "GPU 1 stays free for it"
        assert "2 asked for, of 1,3\n" in m.takt("show", str(pair)).stdout, m.takt("show", str(pair)).stdout
        m.kill()
        m.start()
        client = m.client()
        assert client.job(pair)["gpu_indices"] == [1, 3], client.job(pair)
        client.cancel(first)
        kit.until(lambda: client.job(pair)["gpu_list"] == [1, 3], "it has both")
        again = m.takt("simulate", "--replay", m.path("state/takt.db"))
        assert again.returncode == 0, again
        refused = m.takt("submit", "--gpu-index", "0,4", "--", "true")
        assert refused.returncode != 0 and "asks for GPU 4; this machine has 4" in refused.stderr, refused
        for job in (pair, *rest):
            client.cancel(job)
        end = client.wait(json.loads(m.takt("submit", "--json", "--gpu-index", "2", "--", "true").stdout)["id"])
        assert end["gpu_list"] == [2], end


def a_dry_run_says_where_and_when():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        done = m.takt("submit", "--dry-run", "-n", "2", "--", "true")
        assert done.returncode == 0 and "would start now on GPUs 0-1" in done.stdout, done
        gate = client.submit(["sh", "-c", "until test -e go; do sleep 0.02; done"], gpus=2, time_limit_ms=600000,
                             cwd=m.path("jobs"))["id"]
        kit.until(lambda: state(client, gate) == "running", lambda: client.job(gate))
        told = json.loads(m.takt("submit", "--dry-run", "--json", "--", "true").stdout)
        assert not told["starts"] and told["why"] == "gpus", told
        assert abs(told["starts_ms"] - client.job(gate)["started_ms"] - 600000) < 5000, told
        assert [job["id"] for job in client.live()] == [gate], client.live()
        done = m.takt("submit", "--dry-run", "-n", "3", "--", "true")
        assert done.returncode == 65 and "has 2" in done.stderr, done
        client.cancel(gate)
        assert client.submit(["true"])["id"] == gate + 1


def a_dry_run_says_it_of_an_array():
    """Which of its jobs begin at once, where, and what the others wait for: %N is kept to."""
    with kit.machine(gpus=4) as m:
        m.start()
        client = m.client()
        words = ["-n", "1", "--estimate", "10m", "--", "true"]
        said = m.takt("submit", "--dry-run", "--array", "10-19%3", *words).stdout.splitlines()
        assert said[1].startswith("10-12: would start now on GPUs 0-2"), said
        assert said[2].startswith("13-") and "the first predicted to start" in said[2] and "each expected to run 10m" in said[-1], said
        told = json.loads(m.takt("submit", "--dry-run", "--json", "--array", "0-499%3", *words).stdout)
        first, second = told["array"][:2]
        assert (first["first"], first["last"], first["starts"], first["gpu_list"]) == (0, 2, True, [0, 1, 2]), told
        assert (second["first"], second["starts"], second["why"]) == (3, False, "array"), told
        runs = told["array"]
        assert len(runs) <= 8 and all(a["last"] + 1 == b["first"] for a, b in zip(runs, runs[1:])), runs
        assert runs[-1]["last"] + 1 + told.get("more", 0) == 500, told
        free = json.loads(m.takt("submit", "--dry-run", "--json", "--array", "0-9", *words).stdout)["array"]
        assert free[0]["last"] == 3 and free[0]["gpu_list"] == [0, 1, 2, 3] and free[1]["why"] == "gpus", free
        assert free[1]["starts_ms"] > time.time() * 1000 + 500_000, free
        whole = json.loads(m.takt("submit", "--dry-run", "--json", "--array", "0-3", *words).stdout)["array"]
        assert [(run["first"], run["last"]) for run in whole] == [(0, 3)], whole
        with open(m.path("jobs/two.toml"), "w", encoding="ascii") as file:
            file.write('[[job]]\nname = "sweep"\ncommand = "true"\ngpus = 1\narray = "1-6%2"\n'
                       '[[job]]\nname = "after"\ncommand = "true"\nafter = "sweep"\n')
        said = m.takt("submit", "-f", m.path("jobs/two.toml"), "--dry-run").stdout.splitlines()
        assert said[2].split()[:3] == ["sweep", "(6", "jobs)"] and said[3].split()[0] == "1-2", said
        assert "would start now on GPUs 0-1" in said[3] and said[-1].startswith("after"), said
        assert "comes after job" in said[-1], said
        room = m.takt("submit", "--dry-run", "--array", "0-9999", *words)
        assert room.returncode == 0 or "room for" in room.stderr, room
        assert not client.live() and client.submit(["true"])["id"] == 1


def an_array_runs_so_many_at_a_time():
    with kit.machine(gpus=4) as m:
        m.start()
        client = m.client()
        done = m.takt("submit", "-q", "--array", "3-8%2", "--", *m.witness_argv(150, "sh", "-c",
                      f"echo $TAKT_ARRAY_ID $TAKT_ARRAY_INDEX >> {m.path('jobs/seen')}; sleep 0.2"))
        assert done.returncode == 0, done
        jobs = list(map(int, done.stdout.split()))
        assert jobs == list(range(1, 7)), jobs
        m.kill()
        m.start()
        client = m.client()
        for job in jobs:
            ends_with(client, job, "done")
        with open(m.path("jobs/seen"), encoding="ascii") as file:
            assert sorted(file.read().split("\n")) == [""] + [f"1 {i}" for i in range(3, 9)]
        ends = m.witness().ends
        for end in ends:
            at_once = [other for other in ends if other.begin_ns <= end.begin_ns < other.end_ns]
            assert len(at_once) <= 2, at_once
        assert "[8]" in m.takt("queue", "-a").stdout
        try:
            client.submit(["true"], array_id=1)
            raise AssertionError("an array's id was taken from outside")
        except kit.Refused as refused:
            assert refused.status == 400, refused


def an_ended_job_is_handed_in_again():
    """As it was, but for what was its first life's alone; its environment is what is given anew."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        gate = m.path("jobs/gate")
        job = client.submit(["sh", "-c", f"until test -e {gate}; do sleep 0.02; done; echo $LR"], gpus=1, name="train", held=True,
                            retries=1, time_limit_ms=3600000, tags="night", env=["PATH=/usr/bin:/bin", "LR=1"])["id"]
        def again(of, **body):
            return client.ask("POST", f"/v1/jobs/{of}/again", body)
        try:
            again(job, env=[])
            raise AssertionError("it has not ended")
        except kit.Refused as refused:
            assert refused.status == 409 and "is waiting" in refused.answer["error"]["message"], refused.answer
        m.takt("release", str(job))
        with open(gate, "w", encoding="ascii"):
            pass
        ends_with(client, job, "done")
        anew = again(job, env=["PATH=/usr/bin:/bin", "LR=2"])
        assert anew["id"] != job and "held" not in anew, anew
        first, second = client.job(job), ends_with(client, anew["id"], "done")
        for field in ("name", "command", "cwd", "gpus", "retries", "time_limit_ms", "tags"):
            assert first[field] == second[field], (field, first, second)
        assert client.raw("GET", f"/v1/jobs/{anew['id']}/log")[1] == b"2\n"
        typed = m.takt("again", "-q", "-e", "LR=3", str(job))
        assert typed.returncode == 0, typed
        ends_with(client, int(typed.stdout), "done")
        assert client.raw("GET", f"/v1/jobs/{int(typed.stdout)}/log")[1] == b"3\n"
        said = m.takt("resubmit", str(job)).stdout
        assert re.search(rf"^job \d+, {job} again: ", said, re.M), said
        array = client.submit(["sh", "-c", "echo $TAKT_ARRAY_ID $TAKT_ARRAY_INDEX; exit 3"], array_first=4, array_last=5)["id"]
        for each in (array, array + 1):
            ends_with(client, each, "failed")
        element = ends_with(client, again(array + 1, env=["PATH=/usr/bin:/bin"])["id"], "failed")
        assert client.raw("GET", f"/v1/jobs/{element['id']}/log")[1].decode() == f"{array} 5\n"
        status, tail = client.raw("GET", f"/v1/jobs/{element['id']}/log?tail=2")[:2]
        assert (status, tail) == (200, b"5\n"), "its end alone, where that is asked for"
        try:
            again(job, env=["PATH=/usr/bin:/bin"], gpus=2)
            raise AssertionError("nothing but the environment is taken")
        except kit.Refused as refused:
            assert refused.status == 400, refused


def several_jobs_are_taken_or_none():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        one = {"argv": ["true"], "cwd": "/", "env": ["PATH=/usr/bin:/bin"], "gpus": 1}
        for bad, says in (({**one, "gpus": 3}, "jobs[1]: asks for 3 GPUs"), ({**one, "gpu": 1}, "jobs[1]: field 'gpu'"),
                          ({**one, "after": [{"job": 77}]}, "jobs[1]: there is no job 77")):
            try:
                client.ask("POST", "/v1/jobs/batch", {"jobs": [one, bad]})
                raise AssertionError(f"taken: {bad}")
            except kit.Refused as refused:
                assert says in refused.answer["error"]["message"], refused
        assert not client.live() and not client.history()
        assert client.ask("POST", "/v1/jobs/batch", {"jobs": [one] * 5})["id"] == 1
        for job in range(1, 6):
            ends_with(client, job, "done")


def a_file_of_jobs_is_handed_in_whole():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        path = m.path("jobs/list.json")

        def submit(text, *words):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            return m.takt("submit", "-f", path, *words, cwd=m.path("jobs"))
        done = submit('[{"argv": ["sh", "-c", "pwd; echo $A $TAKT_TWIN"], "env": ["A=1"]}, {"argv": ["true"], "gpus": 2}]',
                      "-q")
        assert done.stdout.split() == ["1", "2"], done
        for job in (1, 2):
            ends_with(client, job, "done")
        assert client.raw("GET", "/v1/jobs/1/log")[1].decode().split() == [m.path("jobs"), "1", m.path("machine")]
        for text, says in (('[{"argv": ["true"]}, {"argv": ["true"], "gpus": 3}]', "jobs[1]: asks for 3 GPUs"),
                           ('{"jobs": [{"argv": ["true"], "when": 1}]}', "jobs[0]: field 'when' is not known"),
                           ('[{"argv": ["true"]},', "list.json"), ("[]", "a list of 1 to 1000"), ("[3]", "object")):
            done = submit(text)
            assert done.returncode in (64, 65) and says in done.stderr, done
        done = submit("[]", "--priority", "3")
        assert done.returncode == 64 and "'--priority' cannot be given" in done.stderr, done
        assert "job 3" in submit('{"argv": ["true"]}').stdout
        assert m.takt("submit").returncode == 64


if __name__ == "__main__":
    sys.exit(kit.main([
        held_jobs_start_when_released,
        priorities_change_the_order,
        a_grace_that_outlives_everything_is_refused, a_time_limit_ends_a_job_and_says_so,
        another_time_limit_counts_of_waiting_and_running_jobs,
        what_it_prints_goes_where_it_is_told,
        retries_know_that_they_are,
        jobs_come_after_jobs,
        a_job_begins_later,
        cpus_and_memory_are_counted,
        who_waits_is_told_where_it_will_run,
        a_gpu_that_is_kept_free_is_named_with_its_job,
        a_job_gets_the_gpus_that_it_names,
        a_dry_run_says_where_and_when,
        a_dry_run_says_it_of_an_array,
        an_array_runs_so_many_at_a_time,
        an_ended_job_is_handed_in_again,
        several_jobs_are_taken_or_none,
        a_file_of_jobs_is_handed_in_whole,
    ]))
