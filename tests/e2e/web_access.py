#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt over TCP: HTTPS, and who may come in.

Usage: web_access.py BUILD_FOLDER
"""
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import urllib.request

import users  # first: it may replace the build folder
import kit
import prom_kit
from users import ALICE, BOB

PASSWD = f"""root:x:0:0::/root:/bin/sh
alice:x:{ALICE}:{ALICE}::/:/bin/sh
bob:x:{BOB}:{BOB}::/:/bin/sh
"""
GROUP = f"""root:x:0:
alice:x:{ALICE}:
bob:x:{BOB}:
takt-admin:x:4999:bob
"""


def certificate(m, name="tls"):
    """(certificate, key): files for localhost and 127.0.0.1 that vouch for themselves."""
    if not shutil.which("openssl"):
        raise kit.Skip("openssl is not installed")
    files = m.path(name + ".crt"), m.path(name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-out", files[0], "-keyout", files[1]], check=True, capture_output=True, timeout=kit.WAIT_S)
    os.chmod(files[1], 0o600)
    return files


def port(m, what):
    return int(kit.until(lambda: re.search(what + r" on port (\d+)", m.said()), m.said)[1])


def a_prometheus_scrapes_over_https():
    prom_kit.need()
    with kit.machine(gpus=2) as m:
        crt, key = certificate(m)
        m.start("--metrics-listen", "127.0.0.1:0", "--metrics-tls", "yes", "--tls-certificate", crt, "--tls-key", key)
        target = f"127.0.0.1:{port(m, 'metrics')}"
        with prom_kit.prometheus(m.folder, target, ca_file=crt) as prom:
            rows = kit.until(lambda: prom.query("takt_gpu_power_watts"), prom.targets)
            assert len(rows) == 2, rows
            (seen,) = prom.targets()
            assert seen["health"] == "up" and seen["scrapeUrl"].startswith("https://"), seen
        trust = ssl.create_default_context(cafile=crt)
        with urllib.request.urlopen(f"https://{target}/metrics", context=trust, timeout=kit.WAIT_S) as answer:
            assert b"takt_gpus 2" in answer.read()
        try:
            with urllib.request.urlopen(f"http://{target}/metrics", timeout=kit.WAIT_S) as answer:
                raise AssertionError(answer.read())
        except OSError:
            pass  # plain HTTP is no answer


def refused(m, *flags):
    """What takt says as it declines to start."""
    before = len(m.said())
    m.spawn(*flags)
    assert m.died() != 0, "it started with " + " ".join(flags)
    return m.said()[before:]


def certificates_that_will_not_do_are_named():
    with kit.machine(gpus=1) as m:
        crt, key = certificate(m)
        other = certificate(m, "other")[1]
        on = ("--metrics-tls", "yes")
        assert "tls_certificate and tls_key" in refused(m, *on)
        assert "tls_key is not" in refused(m, "--tls-certificate", crt)
        assert "none.key" in refused(m, *on, "--tls-certificate", crt, "--tls-key", m.path("none.key"))
        said = refused(m, *on, "--tls-certificate", crt, "--tls-key", other)
        assert crt in said and other in said, said
        assert f"certificate '{key}'" in refused(m, *on, "--tls-certificate", key, "--tls-key", key)
        os.chmod(key, 0o644)
        assert "open to everybody" in refused(m, *on, "--tls-certificate", crt, "--tls-key", key)


def visit(where):
    """An HTTPS connection that trusts whom it meets."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", where, timeout=kit.WAIT_S, context=trust)
    connection.connect()
    return connection


def shown(where):
    """The certificate that whoever comes now is shown."""
    with contextlib.closing(visit(where)) as connection:
        return connection.sock.getpeercert(binary_form=True)


def within(crt):
    with open(crt, encoding="ascii") as text:
        return ssl.PEM_cert_to_DER_cert(text.read())


def fetch(connection):
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200 and b"<html" in answer.read(), answer.status


def a_renewed_certificate_counts_without_a_restart():
    with kit.machine(gpus=1) as m:
        crt, key = certificate(m)
        m.start("--web-listen", "127.0.0.1:0", "--tls-certificate", crt, "--tls-key", key)
        where, first = port(m, "web page"), within(crt)
        with contextlib.closing(visit(where)) as there:
            fetch(there)
            # As whoever renews it does: one file, then the other.
            next_crt, next_key = certificate(m, "next")
            second = within(next_crt)
            os.replace(next_crt, crt)
            kit.until(lambda: any(crt in note and "refused" in note for note in m.client().status().get("notes", [])),
                      m.said)
            assert shown(where) == first
            fetch(there)
            os.replace(next_key, key)
            kit.until(lambda: shown(where) == second, m.said)
            assert not any(crt in note for note in m.client().status().get("notes", [])), m.said()
            fetch(there)
            # At once when it is asked for, and nothing of one that is half there.
            third = certificate(m, "third")
            for source, target in zip(third, (crt, key)):
                os.replace(source, target)
            assert m.takt("config", "reload").returncode == 0
            assert shown(where) == within(crt) != second
            fetch(there)
            whole = within(crt)
            os.truncate(crt, 100)
            assert m.takt("config", "reload").returncode == 0
            assert [note for note in m.client().status()["notes"] if crt in note], m.said()
            assert shown(where) == whole
            fetch(there)


class Web:
    """Requests to the web page's port."""

    def __init__(self, m, token=None, trust=None):
        self.port, self.token, self.trust = port(m, "web page"), token, trust

    def connect(self):
        if self.trust:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=kit.WAIT_S,
                                               context=ssl.create_default_context(cafile=self.trust))
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=kit.WAIT_S)

    def raw(self, method, path, body=None, **headers):
        """(status, headers, bytes); a header's name has _ for -."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token and "Authorization" not in given:
            given["Authorization"] = "Bearer " + self.token
        if body is not None:
            given["Content-Type"] = "application/json"
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), given)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def status(self, method, path, body=None, **headers):
        return self.raw(method, path, body, **headers)[0]

    def ask(self, method, path, body=None):
        status, _, answer = self.raw(method, path, body)
        if not 200 <= status < 300:
            raise kit.Refused(status, json.loads(answer))
        return json.loads(answer)

    def stream(self, of):
        """Events as (name, JSON) for as long as they come."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", "/v1/stream?of=" + of, headers={"Authorization": "Bearer " + self.token})
            answer = connection.getresponse()
            assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream", answer.status
            name = None
            for line in answer:
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    name = rest
                elif word == "data":
                    yield name, json.loads(rest)


@contextlib.contextmanager
def two_accounts(*flags, gpus=2):
    """takt for everybody, with its web page, where alice and bob have accounts and bob is an administrator."""
    with tempfile.TemporaryDirectory() as folder, users.accounts(folder, PASSWD, GROUP), \
            users.shared_machine(start=False, gpus=gpus) as m:
        yield m.start("--web-listen", "127.0.0.1:0", *flags)


def token(m, uid, *words):
    done = users.takt_as(m, uid, "token", "add", *words, groups=[4999] if uid == BOB else [])
    assert done.returncode == 0, done
    return done.stdout.strip()


def without_a_token_there_is_the_page_and_the_metrics():
    with two_accounts() as m:
        web = Web(m)
        assert "takt_gpus 2" in web.raw("GET", "/metrics")[2].decode()
        status, headers, page = web.raw("GET", "/")
        assert status == 200 and b"<html" in page and headers["Content-Type"].startswith("text/html"), headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, policy
        for name, value in (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")):
            assert headers[name] == value, headers
        assert "Set-Cookie" not in headers
        packed = web.raw("GET", "/", Accept_Encoding="gzip")
        assert packed[1]["Content-Encoding"] == "gzip" and gzip.decompress(packed[2]) == page
        assert web.raw("GET", "/", If_None_Match=headers["ETag"])[::2] == (304, b"")
        for path in ("/v1/version", "/v1/status", "/v1/jobs", "/v1/nothing", "/v1/stream", "/v1/tokens"):
            status, headers, _ = web.raw("GET", path)
            assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer"), (path, status)
        assert web.status("POST", "/v1/jobs", users.job_of(["true"])) == 401
        assert web.status("POST", "/") == 405 and web.status("GET", "/etc/passwd") == 404
        assert not m.client().history() and not m.client().live()


def a_token_is_its_account_and_no_more():
    with two_accounts() as m:
        alice, bob = Web(m, token(m, ALICE, "-w")), Web(m, token(m, BOB, "-w"))
        assert alice.ask("GET", "/v1/account") == {"uid": ALICE, "user": "alice", "admin": False, "write": True}
        assert bob.ask("GET", "/v1/account")["admin"] is True
        job = alice.ask("POST", "/v1/jobs", users.job_of(["sh", "-c", "id -u; exec sleep 600"], 1))
        assert job["uid"] == ALICE, job
        log = kit.until(lambda: alice.raw("GET", f"/v1/jobs/{job['id']}/log")[2], "it has a log")
        assert log.split()[0] == str(ALICE).encode(), log
        plain = Web(m, token(m, BOB))
        assert plain.status("POST", f"/v1/jobs/{job['id']}/cancel", {}) == 403  # it may only read
        other = users.ask(m, BOB, "POST", "/v1/jobs", users.job_of(["sleep", "600"], 1))["id"]
        for path in ("cancel", "signal"):
            assert alice.status("POST", f"/v1/jobs/{other}/{path}", {"signal": 15} if path == "signal" else {}) == 403
        assert alice.status("GET", f"/v1/jobs/{other}/log") == 403
        assert alice.status("POST", "/v1/gpus/drain", {"gpus": [0], "reason": "fan"}) == 403
        assert alice.status("POST", "/v1/config/reload", {}) == 403
        # As on the socket, over which alice is told the same, once nothing happens between the two looks.
        def fields(told):
            return set(re.findall(r'"(\w+)":', json.dumps(told)))
        for path in ("/v1/jobs", f"/v1/jobs/{other}"):
            kit.until(lambda: fields(alice.ask("GET", path)) == fields(users.ask(m, ALICE, "GET", path)), path)
        bob.ask("POST", f"/v1/jobs/{job['id']}/cancel", {})
        alice.ask("GET", f"/v1/jobs/{job['id']}/wait?timeout_ms=60000")
        assert m.client().wait(job["id"])["state"] == "cancelled"


def a_token_reads_only_unless_it_was_made_to_write():
    with two_accounts() as m:
        alice = Web(m, token(m, ALICE))
        assert alice.ask("GET", "/v1/account")["write"] is False and alice.ask("GET", "/v1/status")["gpus"]
        for path, body in (("/v1/jobs", users.job_of(["true"])), ("/v1/jobs/1/cancel", {}), ("/v1/clocks/reset", {"gpus": [0]})):
            status, _, said = alice.raw("POST", path, body)
            assert status == 403 and b"--write" in said, (path, status, said)
        assert not m.client().history() and not m.client().live()


def tokens_are_made_listed_and_revoked_on_the_socket_only():
    with two_accounts() as m:
        first = token(m, ALICE, "-w", "--note", "one")
        web, ident = Web(m, first), first.split("_")[1]
        for method, path, body in (("GET", "/v1/tokens", None), ("POST", "/v1/tokens", {}),
                                   ("POST", "/v1/tokens/revoke", {"id": ident})):
            assert web.status(method, path, body) == 403, path
        file = m.path("state/tokens")
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        with open(file, encoding="ascii") as text:
            kept = text.read()
        assert ident in kept and first.split("_")[2] not in kept
        assert first.split("_")[2] not in m.said()
        # One's own; another's is as if there were none; an administrator sees all and makes them for others.
        assert users.takt_as(m, ALICE, "token", "list").stdout.count(ident) == 1
        assert [t["id"] for t in users.ask(m, BOB, "GET", "/v1/tokens")["tokens"]] == []
        assert users.refusal(m, BOB, "POST", "/v1/tokens/revoke", {"id": ident})[:2] == (404, "NOT_FOUND")
        assert users.refusal(m, BOB, "POST", "/v1/tokens", {"user": "alice"})[0] == 403
        done = m.takt("token", "add", "--user", "bob", "--days", "1")
        assert done.returncode == 0 and Web(m, done.stdout.strip()).ask("GET", "/v1/account")["uid"] == BOB, done
        assert "alice" in m.takt("token", "list").stdout and "sha256" not in m.takt("token", "list", "--json").stdout
        # It outlives takt, and no revocation.
        m.stop()
        open(m.path("takt.log"), "w", encoding="ascii").close()
        m.start("--web-listen", "127.0.0.1:0")
        web = Web(m, first)
        assert web.ask("GET", "/v1/account")["uid"] == ALICE
        events = web.stream("status")
        assert next(events)[0] == "status"
        assert users.takt_as(m, ALICE, "token", "revoke", ident).returncode == 0
        assert web.status("GET", "/v1/status") == 401
        for _ in events:
            pass  # its stream ends
        assert users.takt_as(m, ALICE, "token", "list").stdout == "no tokens\n"


def there_are_none_for_root():
    with two_accounts() as m:
        done = m.takt("token", "add")
        assert done.returncode != 0 and "root" in done.stderr, done
        assert m.takt("token", "add", "--user", "root").returncode != 0
        assert m.takt("token", "add", "--user", "0").returncode != 0
        gone = m.takt("token", "add", "--user", "4444")
        assert gone.returncode != 0 and "4444" in gone.stderr, gone
        # Nor by a file that somebody wrote.
        mine = token(m, ALICE)
        m.stop()
        file = m.path("state/tokens")
        with open(file, encoding="ascii") as text:
            kept = json.load(text)
        kept["tokens"][0]["uid"] = 0
        with open(file, "w", encoding="ascii") as text:
            json.dump(kept, text)
        open(m.path("takt.log"), "w", encoding="ascii").close()
        m.start("--web-listen", "127.0.0.1:0")
        status, _, said = Web(m, mine).raw("GET", "/v1/status")
        assert status == 403 and b"root" in said, (status, said)
        m.stop()
        os.chmod(file, 0o644)
        assert "chmod 600" in refused(m)


def strangers_pages_are_turned_away():
    """What a browser sends for the page of another site, and where such a site's name points at this machine."""
    with two_accounts() as m:
        web = Web(m, token(m, ALICE, "-w"))
        own = f"127.0.0.1:{web.port}"
        for path in ("/", "/metrics", "/v1/status"):
            for host in ("evil.example", f"evil.example:{web.port}", "127.0.0.1.evil.example", ""):
                assert web.status("GET", path, Host=host) == 403, (path, host)
            for origin in ("http://evil.example", "null", f"https://{own}", f"http://{own}.evil.example", f"http://localhost:{web.port}"):
                assert web.status("GET", path, Origin=origin) == 403, (path, origin)
            assert web.status("GET", path, Origin=f"http://{own}") == 200, path
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            assert web.status("GET", "/v1/status", Sec_Fetch_Site=site) == status, site
        assert web.status("POST", "/v1/jobs", users.job_of(["true"]), Origin="http://evil.example") == 403
        # A form of such a page can send no JSON, and a browser asks first whether it may: it may not.
        assert web.status("POST", "/v1/jobs", None, Content_Type="text/plain", Content_Length="0") in (400, 415)
        status, headers, _ = web.raw("OPTIONS", "/v1/jobs", Origin=f"http://{own}",
                                     Access_Control_Request_Method="POST")
        assert status in (401, 405) and not [name for name in headers if name.startswith("Access-Control")], status
        assert not m.client().history() and not m.client().live()


def wrong_tokens_are_refused_and_soon_not_looked_at():
    with two_accounts() as m:
        good, other = token(m, ALICE), token(m, BOB)
        ident, secret = good.split("_")[1:]
        wrong = "takt_" + ident + "_" + ("0" if secret[0] != "0" else "1") + secret[1:]
        for text in ("", "x", good[:-1], good + "0", good.upper(), "takt_" + "0" * 12 + "_" + secret, "takt_" * 40):
            assert Web(m, text or " ").status("GET", "/v1/status") == 401, text
        assert Web(m).status("GET", "/v1/status", Authorization="Basic " + good) == 401
        said = [Web(m, wrong).status("GET", "/v1/status") for _ in range(12)]
        assert said == [401] * 10 + [429] * 2, said
        status, headers, _ = Web(m, good).raw("GET", "/v1/status")
        assert status == 429 and headers["Retry-After"], "else the eleventh guess could be right"
        assert Web(m, other).status("GET", "/v1/status") == 200, "nobody else is kept out"


def a_body_is_not_read_before_the_token():
    with two_accounts() as m:
        with socket.create_connection(("127.0.0.1", port(m, "web page")), kit.WAIT_S) as raw:
            raw.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 1000000\r\n\r\n")
            assert b" 401 " in raw.recv(4096), "it waits for the body"


def changes_are_told_as_they_come():
    with two_accounts() as m:
        web = Web(m, token(m, ALICE, "-w"))
        assert web.status("GET", "/v1/stream?of=status,nothing") == 400
        events = web.stream("jobs,status")
        seen = {next(events)[0] for _ in range(2)}
        assert seen == {"jobs", "status"}, seen
        job = users.ask(m, ALICE, "POST", "/v1/jobs", users.job_of(["sleep", "600"], 1))["id"]
        found = next(data for name, data in events
                     if name == "jobs" and any(one["id"] == job for one in data["jobs"]))
        assert found["jobs"][0].keys() <= web.ask("GET", "/v1/jobs")["jobs"][0].keys() | {"message", "reason"}, found
        for _ in range(3):  # the status goes on, with its readings
            next(data for name, data in events if name == "status")
        # One who goes without a word leaves nothing behind; one who never reads holds up nobody.
        silent = socket.create_connection(("127.0.0.1", web.port), kit.WAIT_S)
        silent.sendall(f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {web.token}\r\n\r\n".encode())
        for _ in range(3):
            next(data for name, data in events if name == "status")
        silent.close()
        events.close()
        fds = f"/proc/{m.serve.pid}/fd"
        assert web.ask("GET", "/v1/account") and os.path.isdir(fds)
        m.stop()


# Heads that a proxy before takt could understand differently; each would be answered 200 without what is wrong.
TWO_MEANINGS = (
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    b"GET /metrics HTTP/1.1\nHost: localhost\n\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
)


def answer_to(where, words):
    with socket.create_connection(("127.0.0.1", where), timeout=kit.WAIT_S) as raw:
        raw.sendall(words)
        return raw.makefile("rb").readline()


def nobody_holds_the_ports_or_sends_a_head_of_two_meanings():
    with kit.machine(gpus=1) as m, contextlib.ExitStack() as held:
        m.start("--metrics-listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0")
        for where in (port(m, "metrics"), port(m, "web page")):
            for words in TWO_MEANINGS:
                assert answer_to(where, words).startswith(b"HTTP/1.1 400"), (where, words)
            for number in range(300):  # of them some are at a head that does not end
                one = held.enter_context(socket.create_connection(("127.0.0.1", where)))
                if number % 2:
                    one.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            for _ in range(3):
                first = answer_to(where, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert first.startswith(b"HTTP/1.1 200"), first


def other_machines_need_tls():
    with two_accounts() as m:
        m.stop()
        assert "tls_certificate" in refused(m, "--web-listen", "0.0.0.0:0")
        crt, key = certificate(m)
        open(m.path("takt.log"), "w", encoding="ascii").close()
        m.start("--web-listen", "0.0.0.0:0", "--tls-certificate", crt, "--tls-key", key)
        web = Web(m, token(m, ALICE, "-w"), trust=crt)
        assert web.ask("GET", "/v1/account")["uid"] == ALICE and web.status("GET", "/") == 200
        assert web.status("GET", "/v1/status", Origin=f"https://127.0.0.1:{web.port}") == 200
        assert web.status("GET", "/v1/status", Origin=f"http://127.0.0.1:{web.port}") == 403
        job = web.ask("POST", "/v1/jobs", users.job_of(["true"]))["id"]
        kit.until(lambda: web.ask("GET", f"/v1/jobs/{job}/wait?timeout_ms=60000")["state"] == "done", m.said)
        events = web.stream("status")
        for _ in range(3):
            assert next(events)[0] == "status"
        if shutil.which("prometheus"):
            with prom_kit.prometheus(m.folder, f"127.0.0.1:{web.port}", ca_file=crt) as prom:
                kit.until(lambda: len(prom.query("takt_gpu_power_watts")) == 2, prom.targets)


if __name__ == "__main__":
    sys.exit(kit.main([
        a_prometheus_scrapes_over_https,
        certificates_that_will_not_do_are_named,
        a_renewed_certificate_counts_without_a_restart,
        without_a_token_there_is_the_page_and_the_metrics,
        a_token_is_its_account_and_no_more,
        a_token_reads_only_unless_it_was_made_to_write,
        tokens_are_made_listed_and_revoked_on_the_socket_only,
        there_are_none_for_root,
        strangers_pages_are_turned_away,
        wrong_tokens_are_refused_and_soon_not_looked_at,
        a_body_is_not_read_before_the_token,
        changes_are_told_as_they_come,
        nobody_holds_the_ports_or_sends_a_head_of_two_meanings,
        other_machines_need_tls,
    ]))
