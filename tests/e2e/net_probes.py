#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Round trips between machines: two takts probe each other, takt net and the metrics page show it; who has another
key, sends what was heard before or is not listed gets no answer and is counted.

Usage: net_probes.py BUILD_FOLDER
"""
import contextlib
import os
import re
import select
import shutil
import socket
import subprocess
import sys

import kit

BYTES = 72
KIND = 5  # where it stands in a datagram
ASK = 1


def udp():
    """A socket on a port of its own, and its address as text."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made, "127.0.0.1:%d" % made.getsockname()[1]


def free_address():
    made, address = udp()
    made.close()
    return address


def key_file(m, secret):
    path = m.path("net.key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
    return path


def start(m, listen, peers, secret="0123456789" * 4):
    m.start("--net-listen", listen, "--net-peers", peers, "--net-key-file", key_file(m, secret))
    return m.client()


def peer_of(client):
    return client.ask("GET", "/v1/net")["peers"][0]


def refused(client):
    return {row["reason"]: row["count"] for row in client.ask("GET", "/v1/net")["refused"]}


@contextlib.contextmanager
def pair():
    with kit.machine(gpus=1) as a, kit.machine(gpus=1) as b:
        yield a, b


def two_machines_measure_their_round_trips():
    with pair() as (a, b):
        at_a, at_b = free_address(), free_address()
        of_a, of_b = start(a, at_a, "b=" + at_b), start(b, at_b, "a=" + at_a)
        for client in (of_a, of_b):
            peer = kit.until(lambda: (p := peer_of(client))["answered"] >= 3 and p, lambda: peer_of(client))
            assert peer["state"] == "answers", peer
            assert 0 < peer["least_ns"] <= peer["mean_ns"] <= peer["most_ns"], peer
            assert peer["least_ns"] <= peer["last_ns"] <= peer["most_ns"], peer
        shown = a.takt("net")
        assert shown.returncode == 0 and re.search(r"^b +127\.0\.0\.1:\d+ +answers +\d+ +\d+ ", shown.stdout, re.M), shown
        status, raw = a.client().raw("GET", "/metrics")
        text = raw.decode()
        count = re.search(r'^takt_net_rtt_seconds_count\{peer="b"\} (\d+)$', text, re.M)
        last = re.search(r'^takt_net_rtt_seconds_bucket\{peer="b",le="\+Inf"\} (\d+)$', text, re.M)
        assert status == 200 and count and last and count[1] == last[1] and int(count[1]) >= 3, text
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=raw, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, check=False)
            assert b"takt_net_rtt" not in checked.stdout, checked.stdout


def one_that_ends_is_silent_until_it_is_back():
    with pair() as (a, b):
        at_a, at_b = free_address(), free_address()
        of_a = start(a, at_a, "b=" + at_b)
        start(b, at_b, "a=" + at_a)
        kit.until(lambda: peer_of(of_a)["state"] == "answers", lambda: peer_of(of_a))
        b.kill()
        gone = kit.until(lambda: (p := peer_of(of_a))["state"] == "silent" and p, lambda: peer_of(of_a))
        assert gone["lost"] >= 3, gone
        told = kit.until(lambda: (t := a.takt("alerts", "--once")).returncode == 1 and t, a.said)
        assert "warning NetPeerSilent: b, probed by " in told.stdout, told
        start(b, at_b, "a=" + at_a)
        kit.until(lambda: (p := peer_of(of_a))["state"] == "answers" and p["answered"] > gone["answered"], lambda: peer_of(of_a))
        told = kit.until(lambda: (t := a.takt("alerts", "--once", "--latency", "1ns")).returncode == 1 and t,
                         a.said)
        assert "NetPeerSlow: b, probed by " in told.stdout, told


def another_key_is_refused_on_both_sides():
    with pair() as (a, b):
        at_a, at_b = free_address(), free_address()
        of_a = start(a, at_a, "b=" + at_b)
        of_b = start(b, at_b, "a=" + at_a, secret="9876543210" * 4)
        for client in (of_a, of_b):
            kit.until(lambda: refused(client)["forged"] >= 3, lambda: refused(client))
            assert peer_of(client)["answered"] == 0, peer_of(client)
        assert "forged" in a.takt("net").stdout


class Between:
    """Stands between two machines, each of which takes it for the other; keeps what it has passed on."""

    def __init__(self):
        (self.to_a, self.at_a), (self.to_b, self.at_b) = udp(), udp()
        self.kept = []

    def pass_on(self, a, b):
        """Until nothing has come for half a second."""
        ways = {self.to_a: (self.to_b, b), self.to_b: (self.to_a, a)}
        while ready := select.select(list(ways), [], [], 0.5)[0]:
            for side in ready:
                datagram = side.recv(2048)
                assert len(datagram) == BYTES, datagram
                out, to = ways[side]
                out.sendto(datagram, to)
                if side is self.to_a:
                    self.kept.append(datagram)

    def close(self):
        self.to_a.close()
        self.to_b.close()


def place(address):
    host, port = address.split(":")
    return host, int(port)


def what_was_heard_before_is_not_answered():
    with pair() as (a, b), contextlib.closing(Between()) as between:
        at_a, at_b = free_address(), free_address()
        of_a, of_b = start(a, at_a, "b=" + between.at_a), start(b, at_b, "a=" + between.at_b)

        def passed(answered):
            between.pass_on(place(at_a), place(at_b))
            return peer_of(of_a)["answered"] >= answered
        kit.until(lambda: passed(3), lambda: (peer_of(of_a), refused(of_b)))
        asks = [datagram for datagram in between.kept if datagram[KIND] == ASK]
        before = refused(of_b)
        assert before["replayed"] == before["forged"] == before["stranger"] == 0, before
        for datagram in asks:
            between.to_b.sendto(datagram, place(at_b))
        kit.until(lambda: refused(of_b)["replayed"] == len(asks), lambda: (refused(of_b), len(asks)))

        stranger, _ = udp()
        with contextlib.closing(stranger):
            stranger.sendto(asks[-1], place(at_b))
            kit.until(lambda: refused(of_b)["stranger"] == 1, lambda: refused(of_b))
            assert not select.select([stranger], [], [], 0)[0]
        between.to_b.sendto(asks[-1][:-1] + bytes([asks[-1][-1] ^ 1]), place(at_b))
        kit.until(lambda: refused(of_b)["forged"] == 1, lambda: refused(of_b))
        between.to_b.sendto(b"anything", place(at_b))
        kit.until(lambda: refused(of_b)["malformed"] == 1, lambda: refused(of_b))
        text = b.client().raw("GET", "/metrics")[1].decode()
        for reason in ("replayed", "stranger", "forged", "malformed"):
            assert re.search(rf'^takt_net_probes_refused_total{{reason="{reason}"}} [1-9]', text, re.M), text


def it_is_off_unless_asked_for():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        view = client.ask("GET", "/v1/net")
        assert not view.get("listen") and view["peers"] == [], view
        shown = m.takt("net")
        assert shown.returncode == 0 and "net_listen is off" in shown.stdout, shown
        assert "takt_net_rtt" not in client.raw("GET", "/metrics")[1].decode()


def wrong_settings_are_named():
    with kit.machine(gpus=1) as m:
        key = key_file(m, "0123456789" * 4)
        open_key = m.path("open.key")
        shutil.copy(key, open_key)
        os.chmod(open_key, 0o644)
        at = free_address()
        for flags, said in (
                (("--net-listen", "somewhere:9"), "net_listen: 'somewhere:9' must be a numeric address"),
                (("--net-listen", at), "net_listen needs net_key_file"),
                (("--net-listen", at, "--net-key-file", open_key), "chmod 600"),
                (("--net-listen", at, "--net-key-file", m.path("none")), "net_key_file"),
                (("--net-listen", at, "--net-key-file", key, "--net-peers", "b"), "net_peers: 'b' must be NAME=")):
            m.spawn(*flags)
            assert m.died() != 0, flags
            assert said in m.said(), (said, m.said())


if __name__ == "__main__":
    sys.exit(kit.main([
        two_machines_measure_their_round_trips, one_that_ends_is_silent_until_it_is_back,
        another_key_is_refused_on_both_sides, what_was_heard_before_is_not_answered, it_is_off_unless_asked_for,
        wrong_settings_are_named]))
