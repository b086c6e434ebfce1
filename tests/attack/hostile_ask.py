#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A user's requests that cost much, many at once, against a takt that serves others meanwhile.

The witness is another user, who is answered, and the longest turn of takt's loop as it tells it: many such requests at
once must not make it many times as long as one does.

Usage: hostile_ask.py BUILD_FOLDER
"""
import contextlib
import json
import os
import select
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import users  # noqa: E402, first: it may replace the build folder
import kit  # noqa: E402
from users import ALICE, BOB  # noqa: E402

LONG = 1900 * 1024  # bytes of a description
JOBS = int(os.environ.get("TAKT_LONG_JOBS", "60"))
MANY = 48  # connections; a user may have 64
TIMES = 8  # so much longer than one request's may a turn be; without a bound it is MANY
LEAST_S = 0.1  # of a turn, below which others on the machine count more


def long_job(**more):
    word = 120 * 1024 * "x"
    return users.job_of(["true", *[word] * (LONG // len(word))], held=True, **more)


def hand_in_and_cancel(m, uid, count):
    client = kit.Client(m.socket)

    def all_of_them():
        for _ in range(count):
            client.cancel(client.ask("POST", "/v1/jobs", long_job())["id"])
    users.as_user(uid, all_of_them)


def longest(m):
    return m.client().metrics()["takt_loop_longest_turn_seconds"]


def request(method, path, body=b""):
    return (f"{method} {path} HTTP/1.1\r\nHost: takt\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


def dial(m):
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(kit.WAIT_S)
    wire.connect(m.socket)
    return wire


def read_all(wire):
    heard = b""
    while part := wire.recv(1 << 16):
        heard += part
    return heard


def flood(m, raw):
    """Alice sends it so often at once, and bob is answered before she is done; how each of hers was."""
    def call():
        with contextlib.ExitStack() as all_of_them:
            wires = [all_of_them.enter_context(contextlib.closing(dial(m))) for _ in range(MANY)]
            for wire in wires:
                wire.sendall(raw)
            assert kit.Client(m.socket).ask("GET", "/v1/status")["gpus"], "a request that costs little"
            return [read_all(wire).split(b" ", 2)[1] for wire in wires]
    return users.as_user(ALICE, call)


def many_cost_no_more_a_turn_than_one(m, method, path, body=b""):
    raw = request(method, path, body)

    def once():
        with contextlib.closing(dial(m)) as wire:
            wire.sendall(raw)
            return read_all(wire).split(b" ", 2)[1]
    for _ in range(3):
        assert users.as_user(ALICE, once) == b"200"
    one = longest(m)
    said = flood(m, raw)
    many = longest(m)
    kit.note(f"the longest turn: {one:.3f} s of one, {many:.3f} s of {MANY} at once")
    assert said == [b"200"] * MANY, said
    assert many <= TIMES * max(one, LEAST_S), (one, many)
    assert users.ask(m, BOB, "GET", "/v1/jobs?history=1&limit=1")["simulated"]


def long_descriptions_in_history_are_read_a_few_at_a_time():
    with users.shared_machine(gpus=1) as m:
        hand_in_and_cancel(m, ALICE, JOBS)
        part = users.ask(m, BOB, "GET", "/v1/jobs?history=1&limit=10000")
        assert 1 <= len(part["jobs"]) <= 6 and part["next"] == part["jobs"][-1]["id"], (len(part["jobs"]), part.get("next"))
        many_cost_no_more_a_turn_than_one(m, "GET", "/v1/jobs?history=1&limit=10000")
        # Whoever asks on sees all.
        assert [job["id"] for job in m.client().history()] == list(range(JOBS, 0, -1))
        listed = m.takt("jobs", "--json", "--limit", "10000")
        assert listed.returncode == 0 and len(json.loads(listed.stdout)["jobs"]) == JOBS, listed.stderr
        listed = m.takt("queue", "--history", "--ids")
        assert listed.returncode == 0 and len(listed.stdout.split()) == JOBS, listed
        assert m.takt("report", "--since", "1d").returncode == 0
        # And the next start reads none of them.
        m.stop()
        m.start()
        assert len(m.client().history()) == JOBS


def dry_runs_are_made_one_at_a_time():
    with users.shared_machine(gpus=1) as m:
        jobs = [users.job_of(["true"], gpus=1)] * 1000
        many_cost_no_more_a_turn_than_one(m, "POST", "/v1/jobs/batch/try", json.dumps({"jobs": jobs}).encode())


def a_pipe_that_a_user_names_is_neither_opened_nor_believed():
    def make(folder):
        os.mkdir(folder)
        os.mkfifo(os.path.join(folder, "control"))
    with users.shared_machine(gpus=1, start=False) as m:
        with contextlib.ExitStack() as readers:
            ends = {}
            for name in ("named", "planted"):
                folder = m.path("jobs/" + name)
                users.as_user(ALICE, make, folder)
                ends[name] = os.open(os.path.join(folder, "control"), os.O_RDONLY | os.O_NONBLOCK)
                readers.callback(os.close, ends[name])
            m.start("--mps-dir", m.path("jobs/planted"))
            share = {"gpus": 1, "gpu_milli": 500, "gpu_mem_mib": 4096}
            for name in ("named", "planted"):
                env = ["PATH=/usr/bin:/bin", f"CUDA_MPS_PIPE_DIRECTORY={m.path('jobs/' + name)}"]
                job = users.ask(m, ALICE, "POST", "/v1/jobs", users.job_of(["true"], **share) | {"env": env})["id"]
                ended = m.client().wait(job)
                assert ended["state"] == "done" and ended["memory"] == "watched", ended
            poll = select.poll()
            poll.register(ends["named"], select.POLLIN)
            assert poll.poll(0) == [], "somebody has opened it"
            poll.register(ends["planted"], select.POLLIN)
            assert poll.poll(0) == [], "somebody has opened what is not root's"


if __name__ == "__main__":
    sys.exit(kit.main([long_descriptions_in_history_are_read_a_few_at_a_time, dry_runs_are_made_one_at_a_time,
                       a_pipe_that_a_user_names_is_neither_opened_nor_believed]))
