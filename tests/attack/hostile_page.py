#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Another site's page in the user's browser, and whoever reaches the port, against takt's page.

Each request is one that would hand in a job if it were sent by takt's own page, with a token that may do so where a page
could have one, but for what the attack changes. The witness is the queue, asked as root over the socket, and a file that
a job would write.

Usage: hostile_page.py BUILD_FOLDER
"""
import contextlib
import json
import os
import re
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import users  # noqa: E402, first: it may replace the build folder
import kit  # noqa: E402
from users import ALICE, BOB  # noqa: E402
from web_access import Web, port, token, two_accounts  # noqa: E402

CROWD = 300  # connections, or requests, of one who wants them all
JSON = "application/json"


class Page:
    """takt's page, its user's token, and a request to hand in a job that leaves a file."""

    def __init__(self, m):
        self.m, self.token, self.root = m, token(m, ALICE, "-w"), m.client()
        self.port = Web(m).port
        self.own = f"127.0.0.1:{self.port}"
        self.proof = m.path("jobs/proof")
        self.body = json.dumps(users.job_of(["touch", self.proof])).encode()

    def request(self, line="POST /v1/jobs HTTP/1.1", end="\r\n", body=None, **changed):
        """Bytes; a header's name has _ for -, None leaves it out, a list repeats it."""
        body = self.body if body is None else body
        headers = {"Host": self.own, "Authorization": "Bearer " + self.token, "Content_Type": JSON,
                   "Content_Length": len(body), "Connection": "close"} | changed
        lines = [line]
        for name, values in headers.items():
            for value in values if isinstance(values, list) else [values]:
                if value is not None:
                    lines.append(f"{name.replace('_', '-')}: {value}")
        return (end.join(lines) + 2 * end).encode("latin-1") + body

    def connect(self, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", self.port), kit.WAIT_S, (source, 0))

    def answer(self, raw, more=False):
        """All that comes back before it is hung up on; b"" if nothing does. `more`: more might be sent."""
        with self.connect() as wire:
            heard = b""
            with contextlib.suppress(OSError):  # it may have hung up
                wire.sendall(raw)
                if not more:
                    wire.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while part := wire.recv(65536):
                    heard += part
        return heard

    def jobs(self):
        return len(self.root.live()) + len(self.root.history())


def status_of(answer):
    """Of the first answer; None where there was none."""
    found = re.match(rb"HTTP/1\.[01] (\d+) ", answer)
    return int(found[1]) if found else None


def attacks(p):
    """{what: bytes}, each of which must hand in nothing."""
    made = {}
    form = b"argv=touch&argv=" + p.proof.encode()
    for what, host in {
            "the name of its own site": "evil.example", "its own site's name and takt's port": f"evil.example:{p.port}",
            "a name that begins as takt's": f"127.0.0.1.evil.example:{p.port}", "takt's address as its user": f"{p.own}@evil.example",
            "no name": "", "the address of every address": f"0.0.0.0:{p.port}", "takt's address as one number": f"2130706433:{p.port}",
            "takt's address in octal": f"0177.0.0.1:{p.port}", "takt's address behind a comma": f"evil.example, {p.own}",
            "takt's address behind a blank": f"evil.example {p.own}"}.items():
        made[f"reaches takt by {what}"] = p.request(Host=host)
    made["reaches takt by no Host at all"] = p.request(Host=None)
    made["reaches takt by two Hosts, its own first"] = p.request(Host=["evil.example", p.own])
    made["reaches takt by two Hosts, takt's first"] = p.request(Host=[p.own, "evil.example"])
    made["reaches takt by a whole address of its own"] = p.request(f"POST http://evil.example:{p.port}/v1/jobs HTTP/1.1", Host="evil.example")
    for what, origin in {
            "its own site": "http://evil.example", "no site": "null", "a file": "file://", "takt's address over TLS": f"https://{p.own}",
            "another port": "http://127.0.0.1:1", "takt's page with a path": f"http://{p.own}/", "takt's address as its user": f"http://{p.own}@evil.example",
            "a name that begins as takt's": f"http://{p.own}.evil.example", "another name of the machine": f"http://localhost:{p.port}",
            "two sites": f"http://{p.own} http://evil.example"}.items():
        made[f"comes from {what}"] = p.request(Origin=origin)
    made["comes from two origins, takt's first"] = p.request(Origin=[f"http://{p.own}", "http://evil.example"])
    for site in ("cross-site", "same-site"):
        made[f"is fetched {site}"] = p.request(Sec_Fetch_Site=site)
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", None):
        made[f"is a form of {kind}"] = p.request(body=form, Content_Type=kind, Authorization=None)
        made[f"is a form of {kind} with JSON in it"] = p.request(Content_Type=kind, Authorization=None)
        made[f"is a form of {kind} and has a token"] = p.request(body=form, Content_Type=kind)
    made["has its token in a cookie"] = p.request(Authorization=None, Cookie=f"token={p.token}; Authorization=Bearer {p.token}")
    made["has its token in the address"] = p.request(f"POST /v1/jobs?token={p.token}&access_token={p.token} HTTP/1.1", Authorization=None)
    made["has its token as a password"] = p.request(Authorization="Basic " + p.token)
    made["has a token and a half"] = p.request(Authorization=f"Bearer {p.token}0")
    made["has a token cut short"] = p.request(Authorization=f"Bearer {p.token[:-1]}")
    made["has two tokens, the wrong one first"] = p.request(Authorization=["Bearer x", "Bearer " + p.token])
    made["says who it is by a header"] = p.request(Authorization=None, X_Remote_User="root", X_Forwarded_For="127.0.0.1", Remote_User="0")
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT"):
        made[f"asks by {method}"] = p.request(f"{method} /v1/jobs HTTP/1.1", X_HTTP_Method_Override="POST")
    made["asks before it asks"] = p.request("OPTIONS /v1/jobs HTTP/1.1", body=b"", Origin="http://evil.example",
                                           Access_Control_Request_Method="POST", Access_Control_Request_Headers="authorization")
    made["wants a web socket"] = p.request("GET /v1/stream HTTP/1.1", body=b"", Connection="Upgrade", Upgrade="websocket",
                                           Sec_WebSocket_Version="13", Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==", Origin="http://evil.example")
    made["wants another protocol"] = p.request("GET / HTTP/1.1", body=b"", Connection="Upgrade, HTTP2-Settings", Upgrade="h2c", HTTP2_Settings="AAMAAABk")
    # What one in front of takt could understand otherwise.
    inner = p.request(Authorization="Bearer " + p.token)
    made["is behind another in chunks and in length"] = p.request("GET / HTTP/1.1", body=b"0\r\n\r\n" + inner, Transfer_Encoding="chunked", Content_Length=4, Connection=None)
    made["has two lengths"] = p.request(Content_Length=[len(p.body), 0])
    made["has a length below none"] = p.request(Content_Length=-1)
    made["has a length with a sign"] = p.request(Content_Length=f"+{len(p.body)}")
    made["has a length in hexadecimal"] = p.request(Content_Length=hex(len(p.body)))
    made["has a length beyond all numbers"] = p.request(Content_Length="99999999999999999999999")
    made["has chunks of another kind"] = p.request(Transfer_Encoding="xchunked")
    made["ends its lines as nobody should"] = p.request(end="\n")
    made["has a blank before a colon"] = p.request().replace(b"Content-Type:", b"Content-Type :")
    made["folds a line"] = p.request().replace(b"Content-Type: ", b"Content-Type:\r\n ")
    made["has a zero byte in a header"] = p.request(X_More="a\0b")
    made["speaks version 0.9"] = b"POST /v1/jobs\r\n" + p.body
    made["speaks version 9.9"] = p.request("POST /v1/jobs HTTP/9.9")
    made["speaks the next protocol"] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + p.request()
    made["has a header of 128 KiB"] = p.request(X_More="a" * (128 << 10))
    made["has 4000 headers"] = p.request(X_More=["a"] * 4000)
    made["has an address of 128 KiB"] = p.request(f"POST /v1/jobs?{'a' * (128 << 10)} HTTP/1.1")
    made["has a body of 64 MiB"] = p.request(body=p.body[:-1] + b" " * (64 << 20) + b"}")
    made["has a body that is cut"] = p.request()[:-1]
    made["has a body of brackets"] = p.request(body=b"[" * 200000)
    return made


def reads(p):
    """Paths that lead nowhere: {what: bytes}."""
    def get(path, **more):
        return p.request(f"GET {path} HTTP/1.1", body=b"", **more)
    return {f"reads {path}": get(path) for path in (
        "/../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/v1/../../../etc/passwd", "/etc/passwd%00.html",
        "/v1/jobs/../../../etc/passwd", "/v1/jobs/1/../../tokens", "/..%5c..%5cetc%5cpasswd", "file:///etc/passwd")} | {
        f"sees {path} without a token": get(path, Authorization=None) for path in (
            "/v1/status", "/v1/jobs", "/v1/history", "/v1/stream?of=jobs", "/v1/tokens", "/v1/gpus/history", "/v1/jobs/1/log", "//v1/jobs", "/v1//jobs", "/V1/jobs")}


HARMLESS = ("asks by GET", "asks by HEAD", "wants another protocol")  # is answered as if it had not

HEARD = {}
NAMES = []


def hear():
    """{what: (status, answer, jobs that came of it, whether it tells a token)} from one takt; and the same request as it should be."""
    if HEARD:
        return HEARD
    with two_accounts() as m:
        p = Page(m)
        HEARD["proof"] = True
        for what, raw in {**attacks(p), **reads(p)}.items():
            before, answer = p.jobs(), p.answer(raw)
            HEARD[what] = status_of(answer), answer, p.jobs() - before, p.token.encode() in answer
        HEARD["proof"] = os.path.exists(p.proof)
        HEARD["others"] = Web(m, token(m, BOB)).status("GET", "/v1/status")
        HEARD["right"] = status_of(p.answer(p.request(), more=True)), p.jobs()
        kit.until(lambda: os.path.exists(p.proof), "its job has run")
    return HEARD


def held(what):
    def case():
        status, answer, jobs, token_told = hear()[what]
        assert jobs == 0, f"it did its work: {status}, {answer[:300]}"
        assert status is None or status >= 400 or what in HARMLESS, (status, answer[:300])
        assert b"root:x:0:0" not in answer and not token_told, answer[:300]
        assert b"access-control-allow" not in answer.lower(), answer[:300]
    return f"another's request hands in and reads nothing that {what}", case


def the_same_request_as_it_should_be_hands_in_a_job_and_others_are_served():
    assert not hear()["proof"], "one of the others ran"
    assert HEARD["right"] == (201, 1) and HEARD["others"] == 200, (HEARD["right"], HEARD["others"])


def names():
    """Of all attacks, without a takt."""
    p = Page.__new__(Page)
    p.token, p.port, p.own, p.proof, p.body = "takt_0_0", 1, "127.0.0.1:1", "/", b"{}"
    return [*attacks(p), *reads(p)]


# More of everything.

@contextlib.contextmanager
def crowd(p, first):
    """So many connections of this machine's addresses as it gets, each of which has sent this."""
    with contextlib.ExitStack() as all_of_them:
        for n in range(CROWD):
            with contextlib.suppress(OSError):
                wire = all_of_them.enter_context(p.connect(f"127.0.0.{66 + n % 4}"))
                wire.sendall(first)
        yield


def others_are_served(p, bobs):
    def answer():
        with contextlib.suppress(OSError):
            return bobs.status("GET", "/v1/status") == 200
    kit.until(answer, "another user is served")
    assert p.root.status()["gpus"], "and the socket"


def hoard(what, first):
    def case():
        with two_accounts() as m:
            p, bobs = Page(m), Web(m, token(m, BOB))
            with crowd(p, first(p)):
                others_are_served(p, bobs)
            others_are_served(p, bobs)
            assert p.jobs() == 0
    return f"four addresses with {CROWD} {what} keep nobody else out", case


def one_token_has_so_many_streams_and_leaves_the_others_theirs():
    with two_accounts() as m:
        p, bobs = Page(m), Web(m, token(m, BOB))
        first = p.request("GET /v1/stream?of=status HTTP/1.1", body=b"", Connection=None)
        with contextlib.ExitStack() as all_of_them:
            said = []
            for n in range(60):
                wire = all_of_them.enter_context(p.connect(f"127.0.0.{66 + n % 4}"))
                wire.sendall(first)
                said.append(status_of(wire.recv(4096)))
            assert said == [200] * 32 + [503] * 28, said
            p.token = bobs.token
            wire = all_of_them.enter_context(p.connect())
            wire.sendall(p.request("GET /v1/stream?of=status HTTP/1.1", body=b"", Connection=None))
            assert status_of(wire.recv(4096)) == 200, "another's stream"
            others_are_served(p, bobs)


def who_does_not_read_the_metrics_keeps_nobody_from_them():
    with two_accounts("--metrics-listen", "127.0.0.1:0") as m:
        p = Page(m)
        p.port = port(m, "metrics")
        scrape = p.request("GET /metrics HTTP/1.1", body=b"", Host=f"127.0.0.1:{p.port}", Authorization=None, Connection=None)
        with contextlib.ExitStack() as all_of_them:
            for n in range(CROWD):
                wire = all_of_them.enter_context(socket.socket())
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                wire.bind((f"127.0.0.{66 + n % 4}", 0))
                with contextlib.suppress(OSError):
                    wire.connect(("127.0.0.1", p.port))
                    wire.sendall(100 * scrape)

            def answer():
                with contextlib.suppress(OSError), p.connect() as wire:
                    wire.sendall(scrape)
                    return status_of(wire.recv(4096)) == 200
            kit.until(answer, "who reads the metrics is served")


def guesses_are_refused_however_many_and_shut_out_nobody_else():
    with two_accounts() as m:
        p, bobs = Page(m), Web(m, token(m, BOB))
        said = {status_of(p.answer(p.request("GET /v1/status HTTP/1.1", body=b"", Authorization=f"Bearer takt_{n:012d}_{'0' * 32}")))
                for n in range(CROWD)}
        assert said <= {401, 429}, said
        known = p.token[:-4]  # all but its end
        said = [status_of(p.answer(p.request("GET /v1/status HTTP/1.1", body=b"", Authorization=f"Bearer {known}{n:04x}")))
                for n in range(CROWD)]
        assert said.count(401) <= 10 and set(said) <= {401, 429}, said
        others_are_served(p, bobs)


if __name__ == "__main__":
    sys.exit(kit.main([
        *map(held, names()), the_same_request_as_it_should_be_hands_in_a_job_and_others_are_served,
        hoard("connections that say nothing", lambda p: b""),
        hoard("heads that do not end", lambda p: b"GET /v1/status HTTP/1.1\r\nHost: " + p.own.encode() + b"\r\nX-More: "),
        hoard("bodies that do not come", lambda p: p.request()[:-len(p.body)]),
        hoard("streams of events", lambda p: p.request("GET /v1/stream?of=status HTTP/1.1", body=b"")),
        hoard("requests whose answers nobody reads", lambda p: 20 * p.request("GET /metrics HTTP/1.1", body=b"", Connection=None)),
        one_token_has_so_many_streams_and_leaves_the_others_theirs, who_does_not_read_the_metrics_keeps_nobody_from_them,
        guesses_are_refused_however_many_and_shut_out_nobody_else]))
