#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long queue and many who look at it: how long `submit` and `queue` take, and what a job costs.

A job holds all 8 simulated GPUs, the others wait behind it. With few and with many of them waiting:
time of one submission and of one list (what `takt queue` asks for) over a connection that stays open;
then the same while so many clients each ask for the list once a second. Times are the clients', Python
and its waits included; the load on the machine is in the results. With --ends instead: what the end of
one job, and the start of the next, cost the main thread while so many wait, by order of the queue.
With --restart: a stop and a start with so many in the queue, of four users as far as root runs this, half
of them from arrays; by the clock and by the processor, since the machine may be busy otherwise.
With --requests: what each of the largest requests costs the main thread, which serves nobody else meanwhile
but for what it does in several turns.

Usage: queue_scale.py BUILD_FOLDER [--jobs N] [--clients N] [--ends | --restart | --requests] [--record [FILE]]
"""
import argparse
import collections
import csv
import json
import os
import random
import selectors
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(SOURCE, "tests/e2e"))
import kit  # noqa: E402
from idle_cost import COLUMNS, commit, cpu_ns, machine_name  # noqa: E402

FEW = 100
A_BATCH = 500
TRIES = 200
POLL_S = 1.0
POLLED_S = 15
ENDS = 8  # at once
USERS = (4001, 4002, 4003, 4004)
AN_ARRAY = 5000
SINGLY = 100  # a user, one by one
VARIABLES = 60  # 3 KiB of environment
RESTARTS = 5
ASK = b"GET /v1/jobs?limit=1000 HTTP/1.1\r\nHost: takt\r\n\r\n"


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def summary(found, what, seconds):
    found[f"{what}, median"] = (statistics.median(seconds) * 1e3, "ms")
    found[f"{what}, p99"] = (percentile(seconds, 0.99) * 1e3, "ms")


def timed(times, function):
    took = []
    for _ in range(times):
        begin = time.monotonic()
        function()
        took.append(time.monotonic() - begin)
    return took


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def processor_s(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def fill(client, argv, jobs):
    spec = {"argv": argv, "cwd": "/", "gpus": 1, "env": ["PATH=/usr/bin:/bin"]}
    while jobs > 0:
        now = min(jobs, A_BATCH)
        client.ask("POST", "/v1/jobs/batch", {"jobs": [spec] * now})
        jobs -= now


class Poller:
    """A client that asks for the list once a second. All of them live in one process."""

    def __init__(self, path, first):
        self.raw = socket.socket(socket.AF_UNIX)
        self.raw.connect(path)
        self.due, self.sent, self.left, self.took, self.answer = first, None, None, [], b""

    def send(self, now):
        self.raw.sendall(ASK)
        self.sent, self.left, self.answer = now, None, b""

    def read(self):
        """True when the answer is whole."""
        more = self.raw.recv(1 << 20)
        assert more, "takt closed the connection"
        if self.left is None:
            self.answer += more
            head, end, body = self.answer.partition(b"\r\n\r\n")
            if not end:
                return False
            assert b" 200 " in head.split(b"\r\n")[0], head
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            self.left = int(length.split(b":")[1]) - len(body)
        else:
            self.left -= len(more)
        return self.left <= 0


def poll_for(path, clients, seconds):
    """Seconds that each answer took, and how many bytes the last one had."""
    luck, begin = random.Random(7), time.monotonic()
    pollers = [Poller(path, begin + luck.uniform(0, POLL_S)) for _ in range(clients)]
    wait = selectors.DefaultSelector()
    for poller in pollers:
        wait.register(poller.raw, selectors.EVENT_READ, poller)
    while (now := time.monotonic()) < begin + seconds:
        for poller in pollers:
            if poller.sent is None and poller.due <= now:
                poller.send(time.monotonic())
        for key, _ in wait.select(0.005):
            poller = key.data
            if poller.read():
                poller.took.append(time.monotonic() - poller.sent)
                poller.due, poller.sent = max(poller.due + POLL_S, time.monotonic()), None
    unanswered = [now - poller.sent for poller in pollers if poller.sent]
    return [one for poller in pollers for one in poller.took] + unanswered


def poll_apart(path, clients):
    """poll_for in a process of its own, as a started subprocess."""
    return subprocess.Popen([sys.executable, __file__, kit.BUILD, "--poll", path, "--clients", str(clients)],
                            stdout=subprocess.PIPE, text=True)


def measure_quiet(found, m, client, argv, waiting):
    (pid,) = m.pids("takt")
    for what, ask in (("submit", lambda: client.submit(argv, gpus=1)),
                      ("queue (1000 of them at most)", lambda: client.raw("GET", "/v1/jobs?limit=1000"))):
        before = processor_s(pid)
        summary(found, f"{what}, {waiting} jobs wait", timed(TRIES, ask))
        found[f"takt's main thread for one {what}, {waiting} jobs wait"] = \
            ((processor_s(pid) - before) / TRIES * 1e3, "ms of a CPU")


def measure_polled(found, m, client, argv, clients, waiting):
    (pid,) = m.pids("takt")
    before, begin = processor_s(pid), time.monotonic()
    polling = poll_apart(m.socket, clients)
    time.sleep(1.5)
    submits = []
    while polling.poll() is None and time.monotonic() < begin + POLLED_S:
        submits += timed(1, lambda: client.submit(argv, gpus=1))
        time.sleep(0.05)
    told = polling.communicate()[0]
    took = json.loads(told)
    busy = (processor_s(pid) - before) / (time.monotonic() - begin)
    what = f"{clients} clients poll once a second, {waiting} jobs wait"
    summary(found, f"submit while {what}", submits)
    summary(found, f"queue while {what}", took)
    found[f"answers while {what}"] = (len(took) / POLLED_S, "1/s")
    found[f"takt's main thread while {what}"] = (busy * 100, "% of a CPU")


def measure(jobs, clients):
    found = {"load average before": (os.getloadavg()[0], "")}
    with kit.machine() as m:
        m.start("--max-connections", str(2 * clients + 50))
        client = m.client()
        argv = m.witness_argv(1)
        client.submit(["sleep", "100000"], gpus=8)
        kit.until(lambda: len(m.pids("takt")) == 1, kit.WAIT_S, "one takt")
        (pid,) = m.pids("takt")
        fill(client, argv, FEW)
        measure_quiet(found, m, client, argv, FEW)
        measure_polled(found, m, client, argv, clients, FEW)
        before, count = memory_kib(pid), client.status()["waiting"]
        begin = time.monotonic()
        fill(client, argv, jobs - count)
        found[f"handed in by {A_BATCH}, up to {jobs}"] = ((jobs - count) / (time.monotonic() - begin), "1/s")
        found["memory a waiting job"] = ((memory_kib(pid) - before) * 1024 / (jobs - count), "bytes")
        measure_quiet(found, m, client, argv, jobs)
        measure_polled(found, m, client, argv, clients, jobs)
        found["memory of takt serve then"] = (memory_kib(pid), "KiB")
    return found


def measure_end(found, order, waiting):
    with kit.machine() as m:
        m.start("--order", order)
        client = m.client()
        holder = client.submit(["sleep", "100000"], gpus=8)["id"]
        fill(client, ["/bin/true"], waiting)
        (pid,) = m.pids("takt")
        client.cancel(holder)
        client.wait(holder + ENDS)
        before = processor_s(pid)
        client.wait(holder + 9 * ENDS)
        found[f"takt's main thread for one end, {waiting} jobs wait, order {order}"] = \
            ((processor_s(pid) - before) / (8 * ENDS) * 1e3, "ms of a CPU")


def measure_ends(jobs):
    found = {"load average before": (os.getloadavg()[0], "")}
    for order in ("priority", "qssf", "takt"):
        for waiting in (FEW, jobs):
            measure_end(found, order, waiting)
    return found


def hand_in(client, jobs):
    """Half of them by arrays, the rest by files of single jobs, and some one by one."""
    spec = {"argv": ["/bin/true", "--lr", "0.001"], "cwd": "/", "gpus": 1,
            "env": [f"VARIABLE_{i}=/what/people/have/in/their/environment/{i}" for i in range(VARIABLES)]}
    left = jobs // 2
    while left > 0:
        client.ask("POST", "/v1/jobs", dict(spec, array_first=1, array_last=min(left, AN_ARRAY)))
        left -= AN_ARRAY
    singly = min(SINGLY, jobs - jobs // 2)
    for _ in range(singly):
        client.ask("POST", "/v1/jobs", spec)
    left = jobs - jobs // 2 - singly
    while left > 0:
        client.ask("POST", "/v1/jobs/batch", {"jobs": [spec] * min(left, A_BATCH)})
        left -= A_BATCH


def as_user(uid, function):
    """In a process of that user's."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            function()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, f"user {uid} could not hand in"


def fill_by_users(m, jobs):
    if m.users != "all":
        hand_in(m.client(), jobs)
        return
    for i, uid in enumerate(USERS):
        part = jobs * (i + 1) // len(USERS) - jobs * i // len(USERS)
        as_user(uid, lambda: hand_in(kit.Client(m.socket), part))


def first_answer(path, what):
    """When it came."""
    while True:
        try:
            client = kit.Client(path)
            client.ask("GET", what)
            return time.monotonic()
        except OSError:
            time.sleep(0.001)


def measure_start(found, m, flags):
    begin = time.monotonic()
    m.spawn(*flags)
    found["start: exec to the first answer of /v1/status"].append(first_answer(m.socket, "/v1/status") - begin)
    found["start: exec to the first answer of /v1/jobs"].append(first_answer(m.socket, "/v1/jobs?limit=1000") - begin)
    found["start: processor"].append(cpu_ns(m.serve.pid) / 1e9)


def measure_stop(found, m):
    before, begin = cpu_ns(m.serve.pid) / 1e9, time.monotonic()
    m.serve.terminate()
    _, status, used = os.wait4(m.serve.pid, 0)
    found["stop: SIGTERM to exit"].append(time.monotonic() - begin)
    found["stop: processor"].append(max(used.ru_utime + used.ru_stime - before, 0))
    m.serve.returncode = os.waitstatus_to_exitcode(status)
    assert m.serve.returncode == 0, m.said()


def measure_restarts(jobs):
    found = collections.defaultdict(list)
    load = os.getloadavg()[0]
    flags = ("--max-jobs", str(min(jobs * 5 // 4 + 1, 200000)), "--user-max-jobs", str(jobs))
    with kit.machine() as m:
        m.users = "all" if os.getuid() == 0 else "own"
        os.chmod(m.folder, 0o755)
        m.start(*flags)
        m.client().submit(["sleep", "100000"], gpus=8)
        begin, before = time.monotonic(), memory_kib(m.serve.pid)
        fill_by_users(m, jobs)
        handed_in_s, grew = time.monotonic() - begin, memory_kib(m.serve.pid) - before
        for _ in range(RESTARTS):
            m.close_clients()
            measure_stop(found, m)
            measure_start(found, m, flags)
        waiting, memory = m.client().status()["waiting"], memory_kib(m.serve.pid)
        assert waiting == jobs, waiting
        size = os.path.getsize(m.path("state/takt.db"))
    summed = {"load average before": (load, ""),
              f"{jobs} jobs handed in by {len(USERS)} users": (jobs / handed_in_s, "1/s"),
              "memory a waiting job, handed in": (grew * 1024 / jobs, "bytes"),
              "memory of takt serve after a start": (memory, "KiB"),
              "database a waiting job": (size / jobs, "bytes")}
    for what, seconds in found.items():
        summed[f"{what}, {jobs} jobs wait, median"] = (statistics.median(seconds), "s")
        summed[f"{what}, {jobs} jobs wait, least"] = (min(seconds), "s")
    return summed


def largest_requests(client):
    """(name, method, path, body)"""
    spec = {"argv": ["/bin/true"], "cwd": "/", "gpus": 1}
    array = dict(spec, array_first=1, array_last=10000)
    prep = [dict(spec, name=f"a{i}") for i in range(800)]
    after = [dict(spec, name=f"b{i}", after_names=[f"a{i % 800}" for i in range(900)]) for i in range(200)]
    large = dict(spec, env=[f"V{i:04}=".ljust(450, "x") for i in range(4000)])
    last = client.live()[-1]["id"]
    return [
        ("a job with 1.8 MB of environment", "POST", "/v1/jobs", large),
        ("a dry run of that", "POST", "/v1/jobs/try", large),
        ("180,000 dependencies by name", "POST", "/v1/jobs/batch", {"jobs": prep + after}),
        ("a dry run of these", "POST", "/v1/jobs/batch/try", {"jobs": prep + after}),
        ("an array of 10,000, in many turns", "POST", "/v1/jobs", array),
        ("a dry run of such an array", "POST", "/v1/jobs/try", array),
        ("a dry run of 1,000 jobs", "POST", "/v1/jobs/batch/try", {"jobs": [spec] * 1000}),
        ("a list of 1,000", "GET", "/v1/jobs?limit=1000", None),
        ("a list of 10,000", "GET", "/v1/jobs?limit=10000", None),
        ("history", "GET", "/v1/jobs?history=1&limit=10000", None),
        ("why the last one waits", "GET", f"/v1/jobs/{last}/explain", None),
        ("a cancel", "POST", f"/v1/jobs/{last}/cancel", {}),
        ("the metrics page", "GET", "/metrics", None),
        ("status", "GET", "/v1/status", None),
        ("a reload of the configuration", "POST", "/v1/config/reload", {}),
    ]


def measure_requests(jobs):
    found = {"load average before": (os.getloadavg()[0], "")}
    with kit.machine() as m:
        m.start("--max-jobs", str(min(jobs * 5 // 4 + 20000, 200000)))
        client = m.client()
        client.submit(["sleep", "100000"], gpus=8)
        hand_in(client, jobs)
        for name, method, path, body in largest_requests(client):
            before = processor_s(m.serve.pid)
            status, answer = client.raw(method, path, None if body is None else json.dumps(body),
                                        {"Content-Type": "application/json"})
            assert 200 <= status < 300, (name, status, answer[:300])
            found[f"takt's main thread for {name}, {jobs} jobs wait"] = \
                ((processor_s(m.serve.pid) - before) * 1e3, "ms of a CPU")
    return found


def record(path, found, command):
    new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for name, (value, unit) in found.items():
            writer.writerow([time.strftime("%Y-%m-%d"), commit(), command, machine_name(), "yes", name,
                             f"{value:.5g}", unit])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--clients", type=int, default=200)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--ends", action="store_true")
    instead.add_argument("--restart", action="store_true")
    instead.add_argument("--requests", action="store_true")
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/queue_scale.csv"))
    parser.add_argument("--poll", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.poll:
        print(json.dumps(poll_for(args.poll, args.clients, POLLED_S)))
        return 0
    if args.restart:
        found = measure_restarts(args.jobs)
    elif args.requests:
        found = measure_requests(args.jobs)
    else:
        found = measure_ends(args.jobs) if args.ends else measure(args.jobs, args.clients)
    for name, (value, unit) in found.items():
        print(f"{name:70} {value:10.2f} {unit}")
    if args.record:
        what = next((f"--{name}" for name in ("ends", "restart", "requests") if getattr(args, name)),
                    f"--clients {args.clients}")
        record(args.record, found, f"queue_scale.py --jobs {args.jobs} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
