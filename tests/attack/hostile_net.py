#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Another machine, or whoever takes its address, against takt's probes of the network and its load by hand.

The witness of probes is a socket that takt has on its list: what comes to it and is no probe of takt's own is an answer. That
none comes is known when a right probe, sent after the wrong one, is answered. Of loads it is what the listener writes down.

Usage: hostile_net.py BUILD_FOLDER
"""
import contextlib
import hashlib
import hmac
import os
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import kit  # noqa: E402
import net_bw  # noqa: E402
from net_probes import free_address, place, start, udp  # noqa: E402

KEY = b"0123456789" * 4
BYTES, ASK, ANSWER, CHALLENGE = 72, 1, 2, 3
A_SECOND = 4  # answers to one peer
FLOOD = 5000


def datagram(kind=ASK, session=1, seq=1, cookie=0, token=7, key=KEY, magic=b"takt", version=1, rest=b"\0\0"):
    text = magic + bytes([version, kind]) + rest + struct.pack(">4Q", session, seq, cookie, token)
    return text + hmac.new(key, text, hashlib.sha256).digest()


class Peer:
    """takt, and the machine that it probes."""

    def __init__(self, m):
        self.socket, at = udp()
        self.at = free_address()
        self.client = start(m, self.at, "b=" + at)
        self.socket.settimeout(0.3)
        self.session = 1 << 40

    def send(self, raw, out=None):
        with contextlib.suppress(OSError):  # too long for any datagram
            (out or self.socket).sendto(raw, place(self.at))

    def heard(self):
        """(kind, session) of the next that is no probe, None after a while without one."""
        with contextlib.suppress(TimeoutError):
            while True:
                raw = self.socket.recv(65536)
                assert len(raw) == BYTES, len(raw)
                if raw[5] != ASK:
                    return raw[5], struct.unpack(">Q", raw[8:16])[0]

    def answers_until_a_right_one(self):
        """What was answered before a right probe was."""
        self.session += 1
        others = []

        def right():
            self.send(datagram(session=self.session))
            while (one := self.heard()) is not None:
                if one[1] == self.session:
                    return True
                others.append(one)
        kit.until(right, "a right probe is answered")
        return [one for one in others if one[1] < 1 << 40]  # not an earlier right one's


def flipped(at):
    raw = bytearray(datagram())
    raw[at] ^= 1
    return bytes(raw)


WRONG = {
    "nothing": b"", "a byte": b"t", "a byte too few": datagram()[:-1], "a byte too many": datagram() + b"\0", "two at once": 2 * datagram(),
    "all that fits": datagram() * 900, "another's beginning": datagram(magic=b"tact"), "version 0": datagram(version=0),
    "version 2": datagram(version=2), "kind 0": datagram(kind=0), "kind 4": datagram(kind=4), "kind 255": datagram(kind=255),
    "bytes that have to be 0": datagram(rest=b"\0\1"), "no signature": datagram()[:40] + bytes(32), "another key": datagram(key=b"9876543210" * 4),
    "a key that is empty": datagram(key=b""), "another kind under a signature": flipped(5), "another session under a signature": flipped(15),
    "another number under a signature": flipped(23), "another cookie under a signature": flipped(31),
    "another token under a signature": flipped(39), "a signature's last bit": flipped(71), "an answer to nothing": datagram(kind=ANSWER),
    "a challenge to nothing": datagram(kind=CHALLENGE, cookie=5),
}
HEARD = {}


def hear():
    if not HEARD:
        with kit.machine(gpus=1) as m:
            peer = Peer(m)
            for what, raw in WRONG.items():
                peer.send(raw)
                HEARD[what] = peer.answers_until_a_right_one()
            HEARD["measured"] = peer.client.ask("GET", "/v1/net")["peers"][0]["answered"]
    return HEARD


def unanswered(what):
    def case():
        assert hear()[what] == [] and HEARD["measured"] == 0, (HEARD[what], HEARD["measured"])
    return f"a machine that sends {what} gets no answer", case


def who_is_not_listed_gets_no_answer_with_the_key():
    with kit.machine(gpus=1) as m:
        peer = Peer(m)
        port = peer.socket.getsockname()[1]
        for address in (("127.0.0.1", 0), ("127.0.0.2", port)):
            with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
                stranger.bind(address)
                stranger.settimeout(0)
                peer.send(datagram(), stranger)
                assert peer.answers_until_a_right_one() == []
                try:
                    raise AssertionError(stranger.recv(2048))
                except BlockingIOError:
                    pass


def a_flood_is_answered_a_few_times_a_second():
    with kit.machine(gpus=1) as m:
        peer = Peer(m)
        begin = time.monotonic()
        for n in range(FLOOD):
            peer.send(datagram(session=2, seq=n + 1))
        answered = len(peer.answers_until_a_right_one())
        most = A_SECOND * (time.monotonic() - begin + 2)  # of what was begun, too
        assert answered <= most, (answered, most)
        assert m.client().status()["gpus"]


def a_flood_of_strangers_keeps_no_peer_out():
    with kit.machine(gpus=1) as m:
        peer = Peer(m)
        with contextlib.closing(udp()[0]) as stranger:
            for n in range(FLOOD):
                peer.send(datagram(session=3, seq=n), stranger)
                peer.send(os.urandom(n % 1400), stranger)
        assert peer.answers_until_a_right_one() == [] and m.client().status()["gpus"]


# Loads by hand: what comes over TCP before one begins.

def no_load_begins(what, raws):
    def case():
        with kit.machine(gpus=1) as m:
            m.start()
            listener = net_bw.Listener(m)
            try:
                for raw in raws:
                    with socket.create_connection(place(listener.address), kit.WAIT_S) as wire, contextlib.suppress(OSError):
                        wire.sendall(raw)
                        wire.shutdown(socket.SHUT_WR)
                        while wire.recv(4096):
                            pass
                assert listener.process.poll() is None and not any(run.get("bytes") for run in listener.runs()), listener.runs()
                assert " begins" not in listener.said(), listener.said()
                done = net_bw.call(m, listener, "--seconds", "1")
                assert done.returncode == 0, (done, listener.said())
            finally:
                listener.close()
    return f"no load begins by {what}, and the next caller is served", case


LOADS = [
    no_load_begins("nothing", [b""]),
    no_load_begins("a byte", [b"t"]),
    no_load_begins("a greeting of zeros", [bytes(net_bw.HELLO_BYTES)]),
    no_load_begins("bytes at random", [os.urandom(n) for n in (10, net_bw.HELLO_BYTES, 500)]),
    no_load_begins("a megabyte at once", [b"t" * (1 << 20)]),
    no_load_begins("a request of HTTP", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]),
    no_load_begins("fifty who hang up", [b"x"] * 50),
]


if __name__ == "__main__":
    sys.exit(kit.main([*map(unanswered, WRONG), who_is_not_listed_gets_no_answer_with_the_key,
                       a_flood_is_answered_a_few_times_a_second, a_flood_of_strangers_keeps_no_peer_out, *LOADS]))
