#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a scrape of takt costs, beside other exporters of the same simulated GPUs in the same run.

All run at once. First nobody asks (processor time at rest); then each is scraped in turn, one a turn, over a
connection that is kept where the exporter keeps it: the time of each scrape to its last byte, processor time of
all its processes a scrape beyond what it uses at rest, and memory at the end (Rss and Pss, of all its processes,
less the driver's library and the simulated machine's file). Then takt alone: many scrapes in a row and whether
memory grows, and the processor time of sampling at 1, 10 and 100 Hz beside a bare loop of the same driver calls.

Another exporter is a command; `{port}` in it becomes its port. In a virtual environment with nvitop-exporter:

    scrape_cost.py BUILD_FOLDER --peer 'nvitop-exporter=VENV/bin/nvitop-exporter --port {port}'

Usage: scrape_cost.py BUILD_FOLDER [--machine NAME] [--gpus N] [--scrapes N] [--every S] [--rest S] [--many N] [--sampling S]
                      [--peer NAME=COMMAND]... [--record [FILE]]
Needs `ninja -C BUILD_FOLDER` and `ninja -C BUILD_FOLDER bench/bare_loop`.
"""
import argparse
import contextlib
import http.client
import json
import math
import os
import re
import shlex
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests/e2e"))
sys.path.insert(0, HERE)
import idle_cost  # noqa: E402
import kit  # noqa: E402
import scrape  # noqa: E402

RESULTS = os.path.join(HERE, "results/scrape.csv")
RATES_HZ = (1, 10, 100)
SETTLE_S = 10
PAGE_BYTES = 5 << 20  # a page of takt has 4 MiB at the most
HEAD = re.compile(rb"(?si)HTTP/1.1 200 .*?\r\nContent-Length: (\d+).*?\r\n\r\n")


class Exporter:
    """Somebody who is scraped: a name, an address, and all processes that it is made of."""

    def __init__(self, name, port, pids):
        self.name, self.port, self.pids = name, port, pids
        self.line = http.client.HTTPConnection("127.0.0.1", port, timeout=kit.WAIT_S)
        self.took_s = []

    def scrape(self):
        begin = time.perf_counter()
        self.line.request("GET", "/metrics", headers={"Accept": "text/plain"})
        answer = self.line.getresponse()
        page = answer.read()
        self.took_s.append(time.perf_counter() - begin)
        assert answer.status == 200 and page, (self.name, answer.status)
        return page

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.scrape()
        self.line.close()
        return None

    def cpu_s(self):
        return sum(idle_cost.cpu_ns(pid) for pid in self.pids()) / 1e9

    def memory_kib(self, machine):
        each = [idle_cost.memory_kib(pid, machine) for pid in self.pids()]
        return {what: sum(one[what] for one in each) for what in ("Rss", "Pss")}


def takt_at(m, port):
    """takt with its helpers; others that look at the machine are called jobs there."""
    return Exporter("takt", port, lambda: [pid for pid, kind in m.processes().items() if kind != "job"])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    """The process and all that it has started."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [pid, *(one for child in file.read().split() for one in family(int(child)))]
    return []


@contextlib.contextmanager
def peer(m, words):
    name, command = words.split("=", 1)
    port = free_port()
    with open(m.path("peer.log"), "ab") as log:
        process = subprocess.Popen([kit.TWIN, "exec", "--", *shlex.split(command.format(port=port))], env=m.env(),
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield Exporter(name, port, lambda: family(process.pid))
    finally:
        for pid in reversed(family(process.pid)):
            os.kill(pid, 9)
        process.wait(kit.WAIT_S)


def used_s(exporters, act):
    """Processor seconds of each while `act` runs, and how long that took."""
    before, begin = [one.cpu_s() for one in exporters], time.monotonic()
    act()
    return [one.cpu_s() - used for one, used in zip(exporters, before)], time.monotonic() - begin


def take_turns(exporters, count, every_s):
    """Each is scraped once in `every_s`, somebody else first each time."""
    for turn in range(count):
        due = time.monotonic() + every_s
        for place in range(len(exporters)):
            exporters[(turn + place) % len(exporters)].scrape()
        time.sleep(max(0, due - time.monotonic()))


def percentile(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def beside(m, takt, peers, args):
    exporters = [takt, *peers]
    for one in peers:
        kit.until(one.answers, kit.WAIT_S, f"{one.name} answers")
    time.sleep(SETTLE_S)
    # takt has not been asked for its page yet: once it has, it keeps one ready for 90 s.
    rest, rest_s = used_s(exporters, lambda: time.sleep(args.rest))
    for one in exporters:
        assert b"GPU-" in one.scrape(), f"{one.name} shows no GPU"
        one.took_s.clear()
    busy, busy_s = used_s(exporters, lambda: take_turns(exporters, args.scrapes, args.every))
    found = {}
    for i, one in enumerate(exporters):
        found[f"{one.name}, scrape p50"] = (1e3 * statistics.median(one.took_s), "ms")
        found[f"{one.name}, scrape p99"] = (1e3 * percentile(one.took_s, 0.99), "ms")
        found[f"{one.name}, cpu at rest"] = (1e3 * rest[i] / rest_s, "ms/s")
        found[f"{one.name}, cpu a scrape"] = (1e3 * (busy[i] - rest[i] / rest_s * busy_s) / args.scrapes, "ms")
        for what, kib in one.memory_kib(m.path("machine")).items():
            found[f"{one.name}, {what}"] = (kib, "KiB")
    return found


class Hasty:
    """Asks again and again and reads to the page's end, with as little work of its own as can be."""

    def __init__(self, port):
        self.raw = socket.create_connection(("127.0.0.1", port), kit.WAIT_S)
        self.room = memoryview(bytearray(PAGE_BYTES))

    def more(self, got):
        came = self.raw.recv_into(self.room[got:])
        assert came, "takt closed the connection"
        return got + came

    def scrape(self):
        self.raw.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = self.more(0)
        while not (head := HEAD.match(self.room[:got])):
            got = self.more(got)
        while got < head.end() + int(head[1]):
            got = self.more(got)


def many(m, takt, count):
    """Memory after a tenth of the scrapes, when all buffers have been needed, and after all. Of that Rss: what of it
    is shared changes with other programs that come and go."""
    early, hasty = None, Hasty(takt.port)
    for at in range(count):
        if at == count // 10:
            early = takt.memory_kib(m.path("machine"))
        hasty.scrape()
    late = takt.memory_kib(m.path("machine"))
    return {f"takt, Rss grown over {count} scrapes": (late["Rss"] - early["Rss"], "KiB")}


def sampling(machine, gpus, hz, seconds):
    with kit.machine(machine, gpus) as m:
        m.start("--sample-hz", str(hz))
        time.sleep(idle_cost.SETTLE_S)
        takt = takt_at(m, 0)
        bare = []
        (used,), took_s = used_s([takt], lambda: bare.append(
            m.run(kit.TWIN, "exec", "--", idle_cost.BARE, str(seconds), str(hz))))
        assert bare[0].returncode == 0, bare[0].stderr
        answer = json.loads(bare[0].stdout)
        assert (answer["gpus"], answer["hz"], answer["simulated"]) == (gpus, hz, True), answer
    ours, loop = used / took_s, answer["cpu_seconds"] / seconds
    return {f"sampling at {hz} Hz, takt": (1e3 * ours, "ms/s"), f"sampling at {hz} Hz, bare loop": (1e3 * loop, "ms/s"),
            f"sampling at {hz} Hz, takt / bare loop": (ours / loop, "ratio")}


def measure(args):
    with contextlib.ExitStack() as stack:
        m = stack.enter_context(kit.machine(args.machine, args.gpus))
        takt = takt_at(m, int(scrape.listening(m).rsplit(":", 1)[1]))
        peers = [stack.enter_context(peer(m, words)) for words in args.peer]
        found = {"GPUs": (args.gpus, "")} | beside(m, takt, peers, args)
    if args.many:
        with kit.machine(args.machine, args.gpus) as m:
            takt = takt_at(m, int(scrape.listening(m).rsplit(":", 1)[1]))
            found |= many(m, takt, args.many)
    for hz in RATES_HZ if args.sampling else ():
        found |= sampling(args.machine, args.gpus, hz, args.sampling)
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--machine", default="hgx-h100", help="h100-64 for more than 8 GPUs")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--scrapes", type=int, default=600, help="of each exporter, one after the other")
    parser.add_argument("--every", type=float, default=1, help="seconds from one scrape of an exporter to the next")
    parser.add_argument("--rest", type=int, default=60, help="seconds in which nobody asks")
    parser.add_argument("--many", type=int, default=0, help="scrapes in a row, of takt alone")
    parser.add_argument("--sampling", type=int, default=0, help="seconds at each sampling rate")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--record", nargs="?", const=RESULTS)
    args = parser.parse_args()
    if args.sampling and not os.path.exists(idle_cost.BARE):
        parser.error(f"--sampling needs {idle_cost.BARE}: ninja -C {args.build} bench/bare_loop")
    found = measure(args)
    for name, (value, unit) in found.items():
        print(f"{name:48} {value:10.3f} {unit}")
    if args.record:
        names = "".join(f" --peer {words.split('=', 1)[0]}" for words in args.peer)
        idle_cost.record(args.record, found, f"scrape_cost.py --machine {args.machine} --gpus {args.gpus} --scrapes {args.scrapes} --every "
                         f"{args.every:g} --rest {args.rest} --many {args.many} --sampling {args.sampling}{names}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
