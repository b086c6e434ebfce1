#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A load between two machines by hand: takt net bw holds the lower cap, wants the same key on both sides, does not
begin and ends while a job has ranks on several GPUs, and serves one at a time.

Usage: net_bw.py BUILD_FOLDER
"""
import contextlib
import hashlib
import hmac
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys

import kit

KEY, OTHER_KEY = "0123456789" * 4, "9876543210" * 4
HELLO_BYTES, NOTE_BYTES = 56, 48
MBIT = 1_000_000


def key_file(m, secret=KEY, name="net.key"):
    path = m.path(name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return path


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as made:
        return "127.0.0.1:%d" % made.getsockname()[1]


def place(address):
    host, port = address.split(":")
    return host, int(port)


def sign(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()


class Listener:
    """takt net bw --listen on this machine, with what it says in files."""

    def __init__(self, m, *words, secret=KEY):
        self.address, self.m = free_address(), m
        self.out, self.err = m.path("bw.out"), m.path("bw.err")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [m.path("bin/takt"), "net", "bw", "--listen", self.address, "--key-file", key_file(m, secret), "--json",
                 *words], env=m.env(), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        kit.until(lambda: "listens at" in self.said(), self.said)

    def said(self):
        with open(self.err, encoding="utf-8") as file:
            return file.read()

    def await_begun(self):
        kit.until(lambda: " begins" in self.said(), self.said)

    def runs(self):
        with open(self.out, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().splitlines()]

    def close(self):
        self.process.kill()
        self.process.wait(kit.WAIT_S)


@contextlib.contextmanager
def pair(*words, secret=KEY, gpus=2):
    """The caller's machine, the listener's, and the listener."""
    with kit.machine(gpus=gpus) as a, kit.machine(gpus=gpus) as b:
        a.start()
        b.start()
        with contextlib.closing(Listener(b, *words, secret=secret)) as listener:
            yield a, b, listener


def words(m, listener, *more):
    return ["net", "bw", listener.address, "--key-file", key_file(m), *more]


def call(m, listener, *more):
    return m.takt(*words(m, listener, *more))


def spawn(m, listener, *more):
    return subprocess.Popen([m.path("bin/takt"), *words(m, listener, "--json", *more)], env=m.env(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def gang(m):
    """A job with ranks on two GPUs that runs until its file is there."""
    job = m.client().submit(["sh", "-c", f"while ! [ -e {m.path('go')} ]; do sleep 0.05; done"], gpus=2, ranks=2)["id"]
    kit.until(lambda: m.client().job(job)["state"] == "running", lambda: m.client().job(job))
    return job


def the_lower_cap_and_time_hold():
    with pair("--cap", "16M", "--seconds", "2") as (a, _, listener):
        for cap, seconds, held_cap, held_seconds in ((("8M", "60", 8 * MBIT, 2), ("100G", "1", 16 * MBIT, 1))):
            done = call(a, listener, "--cap", cap, "--seconds", seconds, "--json")
            assert done.returncode == 0, done
            result = json.loads(done.stdout)
            assert result["cap_bits_per_s"] == held_cap and result["seconds"] == held_seconds, result
            assert result["ended"] == "time" and 0 < result["received_bytes"] <= held_cap * held_seconds / 8, result
        kit.until(lambda: len(listener.runs()) == 2, listener.said)
        assert listener.runs()[1]["received_bytes"] == result["received_bytes"], (listener.runs(), result)
        assert all(run["ended"] == "time" for run in listener.runs()), listener.runs()
        shown = call(a, listener, "--seconds", "1", "--cap", "1M")
        assert shown.returncode == 0 and "of at most 1.0 Mbit/s" in shown.stdout, shown


def at_a_terminal_it_says_how_far_it_is():
    with pair() as (a, _, listener):
        outer, inner = os.openpty()
        run = subprocess.Popen([a.path("bin/takt"), *words(a, listener, "--seconds", "2", "--cap", "1M")], env=a.env(),
                               stdin=subprocess.DEVNULL, stdout=inner, stderr=inner)
        os.close(inner)
        said = b""
        with contextlib.suppress(OSError):  # EIO: it has ended
            while part := os.read(outer, 4096):
                said += part
        os.close(outer)
        assert run.wait(kit.WAIT_S) == 0, said
        assert re.search(rb"\r +[1-9] s  \d+\.\d Mbit/s ", said) and b" arrived in " in said, said


def another_key_is_refused_before_a_byte():
    with pair(secret=OTHER_KEY) as (a, b, listener):
        done = call(a, listener, "--json")
        assert done.returncode == 77 and not done.stdout and "is it the same there?" in done.stderr, done
        kit.until(lambda: "the key there is another" in listener.said(), listener.said)
        assert listener.runs() == [], listener.runs()
        # The other way round: a listener that lets anybody in does not have it either.
        with socket.create_server(("127.0.0.1", 0)) as false:
            address = "127.0.0.1:%d" % false.getsockname()[1]
            caller = subprocess.Popen([a.path("bin/takt"), "net", "bw", address, "--key-file", key_file(a)], env=a.env(),
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            heard, _ = false.accept()
            with heard:
                hello = heard.recv(HELLO_BYTES, socket.MSG_WAITALL)
                heard.sendall(hello)
                proof = heard.recv(32, socket.MSG_WAITALL)
                heard.sendall(proof)
                said = caller.communicate(timeout=kit.WAIT_S)[1]
                assert caller.returncode == 77 and "the key there is another" in said, said
                with contextlib.suppress(ConnectionResetError):
                    assert heard.recv(1) == b""


def nothing_begins_beside_a_gang():
    with pair() as (a, b, listener):
        job = gang(b)
        done = call(a, listener, "--json")
        assert done.returncode == 75 and "has ranks on several GPUs" in done.stderr, done
        assert "received_bytes" not in json.loads(done.stdout), done
        open(b.path("go"), "w", encoding="ascii").close()
        b.client().wait(job)
        job = gang(a)
        done = call(a, listener)
        assert done.returncode == 75 and f"not begun: job {job} here" in done.stderr, done
        open(a.path("go"), "w", encoding="ascii").close()
        a.client().wait(job)
        # Ranks that share one GPU, and several GPUs without ranks, do not use the link.
        others = [b.client().submit(["sleep", "1000"], gpus=2)["id"]]
        kit.until(lambda: b.client().job(others[0])["state"] == "running", "the job runs")
        assert call(a, listener, "--seconds", "1", "--cap", "1M").returncode == 0


def a_gang_ends_it(on_caller):
    with pair("--seconds", "60", "--cap", "8M") as (a, b, listener):
        run = spawn(a, listener, "--seconds", "60", "--cap", "8M")
        listener.await_begun()
        # Whoever waits behind it is not answered.
        with socket.create_connection(place(listener.address)) as second:
            assert not select.select([second], [], [], 1)[0]
            gang(a if on_caller else b)
            out, said = run.communicate(timeout=kit.WAIT_S)
        assert run.returncode == 75 and "has ranks on several GPUs" in said, (run.returncode, said)
        result = json.loads(out)
        assert result["ended"] == "gang" and result["ended_there"] == (not on_caller), result
        assert result["received_bytes"] < 8 * MBIT / 8 * 60, result
        kit.until(listener.runs, listener.said)
        assert listener.runs()[0]["ended"] == ("caller" if on_caller else "gang"), listener.runs()


def a_gang_here_ends_it():
    a_gang_ends_it(True)


def a_gang_there_ends_it():
    a_gang_ends_it(False)


def without_takt_nothing_is_sent():
    with pair() as (a, b, listener):
        b.kill()
        done = call(a, listener)
        assert done.returncode == 69 and "does not say what runs there" in done.stderr, done
        b.start()
        assert call(a, listener, "--seconds", "1", "--cap", "1M").returncode == 0
        a.kill()
        assert call(a, listener).returncode == 69


def silent_callers_are_left_and_the_next_is_served():
    with pair() as (a, _, listener):
        with socket.create_connection(place(listener.address)) as silent:
            done = call(a, listener, "--seconds", "1", "--cap", "1M")  # waits behind it
            assert done.returncode == 0, (done, listener.said())
            assert len(silent.recv(HELLO_BYTES, socket.MSG_WAITALL)) == HELLO_BYTES
            assert silent.recv(1) == b""
        assert "no answer in time" in listener.said(), listener.said()
        with socket.create_connection(place(listener.address)) as noise:
            noise.sendall(b"GET / HTTP/1.1\r\n" + b"x" * HELLO_BYTES)
            kit.until(lambda: "no takt net bw of this version" in listener.said(), listener.said)
        begun = listener.said().count(" begins")
        gone = spawn(a, listener, "--seconds", "60", "--cap", "8M")
        kit.until(lambda: listener.said().count(" begins") > begun, listener.said)
        gone.kill()
        gone.communicate(timeout=kit.WAIT_S)
        assert call(a, listener, "--seconds", "1", "--cap", "1M").returncode == 0, listener.said()


def a_caller_that_heeds_no_cap_is_held():
    with pair("--cap", "1M", "--seconds", "1") as (_, _, listener), \
            socket.create_connection(place(listener.address)) as raw:
        raw.settimeout(kit.WAIT_S)
        mine = b"takt bw\1" + struct.pack(">QII", 1000 * MBIT, 60, 0) + os.urandom(32)
        raw.sendall(mine)
        theirs = raw.recv(HELLO_BYTES, socket.MSG_WAITALL)
        session = sign(KEY.encode(), mine + theirs)
        raw.sendall(sign(session, b"\1"))
        assert raw.recv(32, socket.MSG_WAITALL) == sign(session, b"\2")
        ready = raw.recv(NOTE_BYTES, socket.MSG_WAITALL)
        assert ready[0] == 1 and ready[16:] == sign(session, ready[:16]), ready
        with contextlib.suppress(ConnectionError):  # it is hung up upon
            while True:
                raw.sendall(bytes(4096))
        kit.until(lambda: "more than was agreed" in listener.said(), listener.said)
        assert listener.runs() == [], listener.runs()


def wrong_words_are_named():
    with kit.machine(gpus=1) as m:
        m.start()
        key = ("--key-file", key_file(m))
        for given, said in (
                (("bw",), "takes PEER_ADDRESS:PORT, or --listen"),
                (("bw", "127.0.0.1:9", "--listen", "127.0.0.1:9"), "takes PEER_ADDRESS:PORT, or --listen"),
                (("bw", "host:9", *key), "must be a numeric address"),
                (("bw", "127.0.0.1:9", *key, "--cap", "10"), "'--cap' must be bits a second such as 500M"),
                (("bw", "127.0.0.1:9", *key, "--cap", "2T"), "'--cap' must be bits a second such as 500M"),
                (("bw", "127.0.0.1:9", *key, "--seconds", "61"), "'--seconds' must be"),
                (("load",), "takes nothing or bw, not 'load'"),
                (("--cap", "1G"), "'--cap' is for takt net bw")):
            done = m.takt("net", *given)
            assert done.returncode == 64 and said in done.stderr, (given, done)
        done = m.takt("net", "bw", free_address(), *key)
        assert done.returncode == 69 and "Connection refused" in done.stderr, done
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = m.takt("net", "bw", "--listen", "127.0.0.1:%d" % taken.getsockname()[1], *key)
            assert done.returncode == 75 and "somebody does already" in done.stderr, done


if __name__ == "__main__":
    sys.exit(kit.main([
        the_lower_cap_and_time_hold, at_a_terminal_it_says_how_far_it_is, another_key_is_refused_before_a_byte,
        nothing_begins_beside_a_gang, a_gang_here_ends_it, a_gang_there_ends_it, without_takt_nothing_is_sent,
        silent_callers_are_left_and_the_next_is_served, a_caller_that_heeds_no_cap_is_held, wrong_words_are_named]))
