#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand jobs of 10 ms: each runs once, on GPUs of its own, in order of rank.

Usage: jobs_1000.py BUILD_FOLDER [--record]
With --record what was measured is appended to bench/results/jobs.csv.
"""
import csv
import os
import platform
import random
import statistics
import subprocess
import sys
import threading
import time

import judge
import kit

JOBS = 1000
JOB_MS = 10
CONNECTIONS = 8
RUN_LIMIT_S = 900
SYNCS = 200
MEASURED = []  # (metric, value, unit)


def measured(metric, value, unit):
    MEASURED.append((metric, value, unit))
    kit.note(f"{metric}: {value:.6g} {unit}")


def random_jobs(seed, count):
    luck = random.Random(seed)
    return [(luck.choice((0, 1, 1, 1, 2, 2, 4)), luck.choice((0, 0, 0, 5, 10))) for _ in range(count)]


def submit(client, argv, gpus, priority):
    sent = time.monotonic_ns()
    job = client.submit(argv, gpus=gpus, priority=priority)
    return judge.Submit(job["id"], gpus, priority, sent, time.monotonic_ns())


def submit_at_once(m, jobs, connections, argv):
    """Submits over so many connections; (submits, seconds)."""
    parts = [jobs[i::connections] for i in range(connections)]
    done = [[] for _ in parts]
    problems = []

    def work(i):
        try:
            client = kit.Client(m.socket)
            done[i] = [submit(client, argv, *job) for job in parts[i]]
            client.close()
        except Exception as problem:  # seen by the thread that waits
            problems.append(problem)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(connections)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems
    return sum(done, []), time.monotonic() - begin


def clean(found):
    assert not found, f"{len(found)} violations: " + "; ".join(found[:5])


def all_run_once_in_order():
    with kit.machine() as m:
        m.start("--backfill", "none")  # nobody overtakes: the judge asks for the order of acceptance
        argv = m.witness_argv(JOB_MS)
        begin = time.monotonic()
        submits = []
        for part in range(10):  # some alone, some at a time, some while others run
            jobs = random_jobs(part, JOBS // 10)
            submits += submit_at_once(m, jobs, CONNECTIONS if part % 2 else 1, argv)[0]
        ids = {s.job for s in submits}
        assert len(ids) == JOBS, len(ids)
        client = m.client()
        kit.until(lambda: not client.live(), lambda: f"{len(client.live())} jobs wait", seconds=RUN_LIMIT_S)
        measured("1000 jobs of 10 ms, 0 to 4 of 8 GPUs", time.monotonic() - begin, "s")
        w = m.witness()
        clean(judge.not_run_once(w, ids))
        clean(judge.handed_out_twice(w))
        clean(judge.wrong_gpus(w, submits))
        clean(judge.out_of_order(w, submits))
        views = {view["id"]: view for view in client.history()}
        assert set(views) == ids
        clean(judge.ended_otherwise(w, views))
        clean([f"job {v['id']} is {v['state']}" for v in views.values() if v["state"] != "done"])
        clean([f"job {b.job} ran on {b.gpus}, takt says {views[b.job]['gpu_list']}"
               for b in w.begins if list(b.gpus) != views[b.job]["gpu_list"]])


def sync_latency(m):
    took = []
    with open(m.path("sync"), "wb", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            begin = time.monotonic()
            os.fdatasync(file.fileno())
            took.append(time.monotonic() - begin)
    return took


def submissions_a_second():
    """Of jobs that wait for a job which has all GPUs, so that nothing else is measured."""
    with kit.machine() as m:
        m.start()
        argv = m.witness_argv(JOB_MS)
        holder = m.client().submit(["sleep", "1000"], gpus=8)["id"]
        before = sync_latency(m)
        for connections, count in ((1, 400), (CONNECTIONS, 800)):
            submits, seconds = submit_at_once(m, [(1, 0)] * count, connections, argv)
            measured(f"submissions, {connections} connections", count / seconds, "1/s")
            measured(f"submission, {connections} connections, median",
                     statistics.median(s.accepted_ns - s.sent_ns for s in submits) / 1e6, "ms")
        took = before + sync_latency(m)
        measured("fdatasync of 4 KiB on the same disk, median", statistics.median(took) * 1e3, "ms")
        client = m.client()
        waiting = [view for view in client.live() if view["id"] != holder]
        assert len(waiting) == 1200
        assert all(view["state"] == "waiting" for view in waiting)
        assert not m.witness().begins


def gap_between_jobs(gpus, count, name):
    with kit.machine(gpus=gpus) as m:
        m.start()
        submit_at_once(m, [(1, 0)] * count, CONNECTIONS, m.witness_argv(JOB_MS))
        client = m.client()
        kit.until(lambda: not client.live(), "all jobs end", seconds=RUN_LIMIT_S)
        w = m.witness()
        clean(judge.not_run_once(w, {b.job for b in w.begins}))
        assert len(w.begins) == count
        gaps = sorted(sum(judge.gaps_ns(w).values(), []))
        kit.until(lambda: client.metrics()["takt_handover_drains_total"] == count, "metrics")
        page = client.metrics()
        measured(f"gap between jobs on a GPU, {name}, median", statistics.median(gaps) / 1e6, "ms")
        measured(f"gap between jobs on a GPU, {name}, 95%", gaps[len(gaps) * 95 // 100] / 1e6, "ms")
        for part, unit in (("driver", "drains"), ("scheduler", "starts")):
            total = page[f"takt_handover_{part}_seconds_total"]
            number = page[f"takt_handover_{unit}_total"]
            assert number > 0 and total >= 0, page
            measured(f"of that {part}, {name}, mean", total / number * 1e3, "ms")


def gap_on_one_gpu():
    gap_between_jobs(1, 100, "one GPU")


def gap_on_eight_gpus():
    gap_between_jobs(8, 400, "8 GPUs busy")


def record():
    path = os.path.join(kit.SOURCE, "bench/results/jobs.csv")
    commit = subprocess.run(["git", "-C", kit.SOURCE, "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=True).stdout.strip()
    where = f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = not os.path.exists(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        if new:
            rows.writerow("date commit command machine simulated metric value unit".split())
        for metric, value, unit in MEASURED:
            rows.writerow([time.strftime("%Y-%m-%d"), commit, "jobs_1000.py --record", where,
                           "true", metric, f"{value:.6g}", unit])


if __name__ == "__main__":
    measured("load average before (what else the machine did)", os.getloadavg()[0], "")
    status = kit.main([all_run_once_in_order, submissions_a_second, gap_on_one_gpu, gap_on_eight_gpus])
    if status == 0 and "--record" in sys.argv[2:]:
        record()
    sys.exit(status)
