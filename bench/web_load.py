#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A full machine that many look at in the browser: how late they see a change, and what that costs takt.

All GPUs of the largest simulated machine (64) compute, jobs of one account wait behind that, and so many streams of live
updates are open as browsers would be, of so many accounts: each asks for what the page asks for. An administrator
raises the priority of the job that waits first, which all see in their lists; the latency is from just before the
request until a stream has all of the event that says so (takt tells of changes once a second at most). Processor
time is that of all threads of `takt serve`, the changes' included, without streams, with one and with all; the streams are read by a process
of its own, whose work is not in it but is on the same machine.

Usage: web_load.py BUILD_FOLDER [--gpus N] [--jobs N] [--streams N] [--accounts N] [--changes N] [--record [FILE]]

Needs root: there are no tokens for root, so others have to look. --record adds rows to bench/results/web_load.csv: on a
quiet machine only.
"""
import argparse
import contextlib
import http.client
import json
import os
import random
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(SOURCE, "tests/e2e"))
import users  # noqa: E402, first: it may replace the build folder
import kit  # noqa: E402
from idle_cost import cpu_ns  # noqa: E402
from queue_scale import A_BATCH, memory_kib, percentile, record, summary  # noqa: E402

MACHINE, MOST_GPUS = "h100-64", 64
TOPICS = "status,jobs,clocks,health"  # as web/src/live.ts
SETTLE_S = 3
CHANGE_S = (1.2, 1.9)  # between two changes, so that they meet the rounds of a second at every place


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--gpus", type=int, default=MOST_GPUS)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--accounts", type=int, default=5)
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--record", nargs="?", const=os.path.join(HERE, "results/web_load.csv"))
    parser.add_argument("--read", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not 1 <= args.gpus <= MOST_GPUS:
        parser.error(f"--gpus: a simulated machine has 1 to {MOST_GPUS}")
    return args


# The process that reads: told {port, tokens, job} on its input, it says "open" when all streams have been told of the
# job, and when its input ends what it has seen.

class Stream:
    """One reader. It speaks HTTP/1.0, so that events come as they are, without the lengths of chunks between."""

    def __init__(self, port, token, job):
        self.raw = socket.create_connection(("127.0.0.1", port), kit.WAIT_S)
        self.raw.sendall(f"GET /v1/stream?of={TOPICS} HTTP/1.0\r\nHost: localhost\r\n"
                         f"Authorization: Bearer {token}\r\n\r\n".encode())
        self.raw.setblocking(False)
        self.priority = re.compile(rb'"id":%d,.*?"priority":(-?\d+)' % job)
        self.left, self.seen, self.status_s, self.bytes = b"", {}, [], 0

    def read(self):
        more = self.raw.recv(1 << 20)
        now = time.monotonic()
        assert more, b"takt closed a stream: " + self.left[:300]
        self.bytes += len(more)
        *events, self.left = (self.left + more).split(b"\n\n")
        for event in events:
            self.take(event, now)

    def take(self, event, now):
        if event.startswith(b"event: status"):
            self.status_s.append(now)
        elif event.startswith(b"event: jobs"):
            found = self.priority.search(event)
            if found:
                self.seen.setdefault(int(found[1]), now)


def read_streams():
    told = json.loads(sys.stdin.readline())
    streams = [Stream(told["port"], token, told["job"]) for token in told["tokens"]]
    wait = selectors.DefaultSelector()
    wait.register(sys.stdin, selectors.EVENT_READ)
    for stream in streams:
        wait.register(stream.raw, selectors.EVENT_READ, stream)
    said = False
    while True:
        for key, _ in wait.select():
            if key.data is None:
                return print(json.dumps([vars_of(stream) for stream in streams]))
            key.data.read()
        if not said and all(stream.seen for stream in streams):
            said = True
            print("open", flush=True)


def vars_of(stream):
    return {"seen": stream.seen, "status_s": stream.status_s, "bytes": stream.bytes}


# The process that measures.

@contextlib.contextmanager
def full_machine(args):
    """takt for everybody, with so many accounts, on a machine whose GPUs all compute and behind which jobs wait."""
    uids = range(users.ALICE, users.ALICE + args.accounts)
    passwd = "root:x:0:0::/root:/bin/sh\n" + "".join(f"user{uid}:x:{uid}:{uid}::/:/bin/sh\n" for uid in uids)
    group = "root:x:0:\n" + "".join(f"user{uid}:x:{uid}:\n" for uid in uids)
    with tempfile.TemporaryDirectory() as folder:
        with users.accounts(folder, passwd, group), \
                users.shared_machine(start=False, board=MACHINE, gpus=args.gpus) as m:
            m.start("--web-listen", "127.0.0.1:0", "--max-connections", str(4 * args.streams + 50))
            fill(m, args)
            yield m, list(uids)


def fill(m, args):
    twin = [f"{name}={value}" for name, value in m.env().items() if name.startswith("TAKT_TWIN")]
    load = users.job_of(m.load_argv("--profile", "gemm", "--seconds", 86400, "--quiet"), args.gpus)
    holder = users.ask(m, users.ALICE, "POST", "/v1/jobs", {**load, "env": load["env"] + twin})["id"]
    kit.until(lambda: m.client().job(holder)["state"] == "running", kit.WAIT_S, "all GPUs are taken")
    for first in range(0, args.jobs, A_BATCH):
        batch = [users.job_of(["true"], 1, name="waits")] * min(A_BATCH, args.jobs - first)
        users.ask(m, users.ALICE, "POST", "/v1/jobs/batch", {"jobs": batch})


def token_of(m, uid):
    done = users.takt_as(m, uid, "token", "add")
    assert done.returncode == 0, done
    return done.stdout.strip()


def page_kib(port):
    """What a browser loads, compressed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=kit.WAIT_S)
    with contextlib.closing(connection):
        connection.request("GET", "/", headers={"Accept-Encoding": "gzip"})
        return len(connection.getresponse().read()) / 1024


@contextlib.contextmanager
def readers(port, tokens, job):
    """The started process, when all its streams are open."""
    words = [sys.executable, "-B", os.path.abspath(__file__), kit.BUILD, "--read", "streams"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.stdin.write(json.dumps({"port": port, "tokens": tokens, "job": job}) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "open\n", "the process that reads is gone"
        yield process
    finally:
        process.kill()
        process.communicate()


class Meter:
    """Processor time of takt in per cent of one processor, since it was made."""

    def __init__(self, m):
        (self.pid,) = m.pids("takt")
        self.cpu_ns, self.begin = cpu_ns(self.pid), time.monotonic()

    def read(self):
        return 100 * (cpu_ns(self.pid) - self.cpu_ns) / 1e9 / (time.monotonic() - self.begin)


def change(m, job, numbers, luck):
    """{priority: when it was asked for}"""
    asked, client = {}, m.client()
    for number in numbers:
        asked[number] = time.monotonic()
        client.ask("POST", f"/v1/jobs/{job}/change", {"priority": number})
        time.sleep(luck.uniform(*CHANGE_S))
    return asked


def measure_streams(found, m, port, tokens, job, numbers, luck):
    what = "1 stream" if len(tokens) == 1 else f"{len(tokens)} streams"
    with readers(port, tokens, job) if tokens else contextlib.nullcontext() as process:
        time.sleep(SETTLE_S)
        meter = Meter(m)
        asked = change(m, job, numbers, luck)
        found[f"takt serve, {what}"] = (meter.read(), "% of a CPU")
        found[f"memory of takt serve, {what}"] = (memory_kib(meter.pid), "KiB")
        if process:
            time.sleep(SETTLE_S)  # what was told last arrives, too
            tell_streams(found, what, json.loads(process.communicate("")[0]), asked)


def tell_streams(found, what, streams, asked):
    late = [each["seen"][str(number)] - at for each in streams for number, at in asked.items() if str(number) in each["seen"]]
    gaps = [b - a for each in streams for a, b in zip(each["status_s"], each["status_s"][1:])]
    summary(found, f"a change is seen, {what}", late)
    found[f"a change is seen, {what}, latest"] = (max(late) * 1e3, "ms")
    found[f"changes that were not seen, {what}"] = (len(streams) * len(asked) - len(late), "")
    found[f"between two events of status, {what}, p99"] = (percentile(gaps, 0.99) * 1e3, "ms")
    found[f"to each of {what}"] = (sum(each["bytes"] for each in streams) / sum(gaps) / 1024, "KiB/s")


def measure(args):
    found, luck = {"load average before": (os.getloadavg()[0], "")}, random.Random(7)
    with full_machine(args) as (m, uids):
        port = int(kit.until(lambda: re.search(r"web page on port (\d+)", m.said()), kit.WAIT_S, m.said)[1])
        found["the page, compressed"] = (page_kib(port), "KiB")
        tokens = [token_of(m, uids[i % len(uids)]) for i in range(args.streams)]
        job = next(each["id"] for each in m.client().live() if each["state"] == "waiting")
        for turn, some in enumerate(sorted({0, 1, args.streams})):
            numbers = range(1 + turn * args.changes, 1 + (turn + 1) * args.changes)
            measure_streams(found, m, port, tokens[:some], job, numbers, luck)
    return found


def main():
    args = parse()
    if args.read:
        read_streams()
        return 0
    found = measure(args)
    for name, (value, unit) in found.items():
        print(f"{name:60} {value:10.2f} {unit}")
    if args.record:
        record(args.record, found, f"web_load.py --gpus {args.gpus} --jobs {args.jobs} --streams {args.streams} "
                                   f"--accounts {args.accounts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
