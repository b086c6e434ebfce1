#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a user types or a client sends: a clear refusal, the right status, and takt goes on. And
whatever is shown of a simulated machine says that it is simulated.

Usage: bad_input.py BUILD_FOLDER
"""
import contextlib
import json
import os
import socket
import sys

import kit

# Words for takt, exit status, and what the message must contain.
REFUSED = (
    ("nosuch", 64, "no verb 'nosuch'"),
    ("staus", 64, "did you mean 'status'"),
    ("submit --gpuz 1 -- true", 64, "did you mean '--gpus'"),
    ("submit", 64, "usage: takt submit"),
    ("submit -n -1 -- true", 64, "'-1'"),
    ("submit -n x -- true", 64, "'x'"),
    ("submit -n 9 -- true", 65, "9 GPUs"),
    ("submit -n 1e-400 -- true", 64, "'1e-400'"),
    ("submit -n 0.0001 -- true", 64, "'0.0001'"),
    ("submit -n 0.0 -- true", 64, "'0.0'"),
    ("submit -n 2x1e-400 -- true", 64, "'2x1e-400'"),
    ("run -n 9 -- true", 65, "8"),
    ("run -n 0 -- /no/such", 127, "/no/such"),
    ("run -n 0 -- nosuchcommand", 127, "nosuchcommand"),
    ("submit -n 0 -- nosuchcommand", 127, "nosuchcommand"),
    ("run -n 0 -- /etc/passwd", 126, "/etc/passwd"),
    ("run -n 0 -- /tmp", 126, "/tmp"),
    ("submit --cwd /no/such -- true", 66, "/no/such"),
    ("submit --clock 5000 -- true", 64, "345 to 1980"),
    ("submit --clock 100 -- true", 64, "345 to 1980"),
    ("submit --clock 0 -- true", 64, "'0'"),
    ("submit --clock abc -- true", 64, "'abc'"),
    ("submit --clock -5 -- true", 64, "'-5'"),
    ("submit --clock 1410 --clock-lock 1410 -- true", 64, "clock"),
    ("submit -n 0 --clock 1410 -- true", 64, "at least one GPU"),
    ("submit --priority 1001 -- true", 64, "1000"),
    ("submit --grace 5 -- true", 64, "30s"),
    ("submit --env =x -- true", 64, "NAME=VALUE"),
    ("submit --visible neither -- true", 64, "index"),
    ("clock set --gpus 0 99999", 64, "'99999'"),
    ("clock set --gpus 0 5000", 64, "345 to 1980"),
    ("clock set --gpus 9 1410", 64, "8"),
    ("clock set --gpus 0- 1410", 64, "'0-'"),
    ("clock set 1410", 64, "--gpus"),
    ("clock zap", 64, "'zap'"),
    ("show 99", 66, "no job 99"),
    ("show x", 64, "'x'"),
    ("show 0", 64, "'0'"),
    ("show 18446744073709551616", 64, "not the number of a job"),
    ("cancel 77", 66, "no job 77"),
    ("logs 77", 66, "no job 77"),
    ("wait 77", 66, "no job 77"),
    ("explain 77", 66, "no job 77"),
    ("status extra", 64, "'extra'"),
    ("record", 64, "FILE"),
    ("serve --nosuch 1", 64, "nosuch"),
    ("serve --sample-hzz 1", 64, "sample"),
    ("serve --sample-hz 0", 64, "1 to 100"),
    ("serve --users some", 64, "own"),
    ("serve --config /no/such", 66, "/no/such"),
    ("help nosuch", 64, "nosuch"),
)


def what_is_typed_wrong_is_refused_and_explained():
    with kit.machine() as m:
        m.start()
        wrong = []
        for words, status, text in REFUSED:
            done = m.takt(*words.split(), cwd="/")
            if done.returncode != status or text not in done.stderr or done.stdout or \
                    len(done.stderr.splitlines()) > 2 or not done.stderr.startswith("takt"):
                wrong.append((words, done.returncode, done.stdout, done.stderr))
        assert not wrong, "\n".join(map(str, wrong))
        assert not m.client().live() and not m.client().history(), "something was accepted"


def a_command_that_goes_away_is_said_by_the_job():
    """It was there when it was submitted and is not when it starts."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        for mode, status in ((None, 127), (0o644, 126)):
            job = client.wait(client.submit([m.path("script")])["id"]) if mode is None else None
            if mode:
                with open(m.path("script"), "w", encoding="ascii") as file:
                    file.write("#!/bin/sh\n")
                os.chmod(m.path("script"), mode)
                job = client.wait(client.submit([m.path("script")])["id"])
            assert (job["state"], job["exit_code"]) == ("failed", status), job
            assert m.path("script") in job["message"], job
        with open(m.path("loop"), "w", encoding="ascii") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(m.path("loop"), 0o755)
        done = m.takt("run", "-q", "-n", "0", "--", m.path("loop"))
        assert done.returncode in (126, 127) and "loop" in done.stdout + done.stderr, done


BODIES = (
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b'{"argv":[]}', b'{"argv":["true"],"cwd":"x"}',
    b'{"argv":["true"],"cwd":"/","gpus":-1}', b'{"argv":["true"],"cwd":"/","gpus":1e99}',
    b'{"argv":["true"],"cwd":"/","gpus":"1"}', b'{"argv":["true"],"cwd":"/","gpus":1.5}',
    b'{"argv":["true"],"cwd":"/","nosuch":1}', b'{"argv":["tr\\u0000ue"],"cwd":"/"}',
    b'{"argv":["true"],"cwd":"/","argv":["false"]}', b'{"argv":[[]],"cwd":"/"}',
    b'{"argv":["true"],"cwd":"/"} trailing', b"[" * 100000, b'{"a":' * 50000,
    b'{"argv":["true"],"cwd":"/","env":["NOEQUALS"]}', b'{"argv":["true"],"cwd":"/","name":"\\n"}',
    b'{"argv":["true"],"cwd":"/","clock_ask":"lock"}', b'{"argv":["' + b"\xc3" + b'"],"cwd":"/"}',
)


def send(m, words):
    """What takt answers to these bytes, with which the client stops."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as raw, contextlib.suppress(OSError):
        raw.settimeout(5)
        raw.connect(m.socket)
        raw.sendall(words)
        raw.shutdown(socket.SHUT_WR)
        while got := raw.recv(65536):
            answer += got
    return answer


def what_a_client_sends_wrong_is_refused():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        kind = {"Content-Type": "application/json"}
        for path in ("/v1/jobs", "/v1/clocks/set", "/v1/clocks/reset"):
            for body in BODIES:
                if (path, body) == ("/v1/clocks/reset", b"{}"):
                    continue
                status, answer = client.raw("POST", path, body, kind)
                assert 400 <= status < 500, (path, body[:80], status, answer)
                assert json.loads(answer)["error"]["message"], answer
        done = m.takt("submit", "-n", "0", "--", "true", *["\1" * 120000] * 4)  # \u0001 in JSON
        assert done.returncode == 65 and "bytes" in done.stderr, (done.returncode, done.stderr)
        assert send(m, b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 9000000\r\n\r\n").startswith(b"HTTP/1.1 413")
        for path in ("/", "/v2/jobs", "/v1/jobs/0", "/v1/jobs/x", "/v1/jobs/1/2", "/v1/jobs/" + "9" * 30,
                     "/v1/jobs/%2e%2e", "/" + "a" * 9000):
            status, _ = client.raw("GET", path)
            assert status in (400, 404, 414, 431), (path[:60], status)
        for words in (b"GET", b"\0" * 4000, b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/jobs HTTP/1.1\r\n"
                      b"Host: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                      b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                      b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n", b"A" * 100000):
            send(m, words)
        assert not client.live() and not client.history(), "something was accepted"
        assert client.wait(client.submit(["true"], gpus=1)["id"])["state"] == "done"


# Of a job file, and what is said of it.
JOB_FILES = (
    ("gpus = 1e-400", "a number that only rounding would make whole"),
    ("gpus = 0.99999999999999999999", "a number that only rounding would make whole"),
    ("gpus = 1\ngpu_milli = 0", "'gpu_milli' must be a whole number from 1 to 1000"),
    ('env = ["LONG=' + "x" * 131072 + '"]', "has 131077 bytes; the kernel executes nothing"),
)


def job_file(m, name, words):
    with open(m.path(name), "w", encoding="ascii") as file:
        file.write(words)
    return m.path(name)


def what_would_be_another_value_is_refused():
    """On the command line it is above."""
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        for words, said in JOB_FILES:
            path = job_file(m, "wrong.toml", f'[[job]]\nargv = ["true"]\ncwd = "/"\n{words}\n')
            done = m.takt("submit", "-f", path)
            assert done.returncode in (64, 65) and said in done.stderr, (words[:60], done)
        for more, said in ((b'"gpus":1e-400', "rounding"), (b'"gpus":1,"gpu_milli":0', "from 1 to 1000"),
                           (b'"env":["A=' + b"x" * 131072 + b'"]', "env[0]")):
            status, answer = client.raw("POST", "/v1/jobs", b'{"argv":["true"],"cwd":"/",' + more + b"}",
                                        {"Content-Type": "application/json"})
            assert status in (400, 413) and said in json.loads(answer)["error"]["message"], (status, answer)
        assert not client.live() and not client.history(), "something was accepted"
        # What the kernel just takes is executed.
        long = ["A=" + "x" * (131071 - 2)] + [f"B{i}={'y' * 100000}" for i in range(17)]
        job = client.wait(client.submit(["/bin/true"], env=long)["id"])
        assert (job["state"], job["exit_code"]) == ("done", 0), job
        status, answer = client.raw("GET", f"/v1/jobs/{job['id']}/log?attempt=7")
        assert status == 404 and "no attempt 7" in json.loads(answer)["error"]["message"], (status, answer)


def everything_that_is_simulated_says_so():
    with kit.machine(gpus=2) as m:
        m.start()
        assert "SIMULATED" in m.said(), m.said()
        job = m.takt("submit", "-n", "1", "--", "sh", "-c", "exec sleep 1.2")
        assert "SIMULATED" in job.stdout, job
        waits = m.takt("submit", "-n", "2", "--json", "--", "true")
        assert json.loads(waits.stdout)["simulated"] is True, waits
        for words in ("status", "topo", "queue", "show 1", "show 2", "explain 2", "explain 1", "clock",
                      "version", "clock set --gpus 1 1410", "clock reset", "wait 1", "show 1",
                      "queue --history", "jobs", "report", "health 0", "gpu", "submit --dry-run -n 1 -- true", "run -n 1 -- true"):
            plain = m.takt(*words.split())
            assert "SIMULATED" in plain.stdout + plain.stderr, (words, plain)
            if "--" in words.split():
                words = words.replace(" -n", " --json -n")
            else:
                words += " --json"
            done = m.takt(*words.split())
            assert done.returncode == 0, (words, done)
            for line in (done.stdout + done.stderr).splitlines():
                if line.startswith("{"):
                    assert marks(json.loads(line)) == {True}, (words, line)
                    break
            else:
                raise AssertionError((words, done))
        page = m.client().metrics()
        assert page["takt_simulated"] == 1, page


def marks(value):
    """All values of "simulated" anywhere in it."""
    if isinstance(value, dict):
        own = {value["simulated"]} if "simulated" in value else set()
        return own.union(*map(marks, value.values()))
    if isinstance(value, list):
        return set().union(*map(marks, value))
    return set()


if __name__ == "__main__":
    sys.exit(kit.main([
        what_is_typed_wrong_is_refused_and_explained, a_command_that_goes_away_is_said_by_the_job,
        what_a_client_sends_wrong_is_refused, what_would_be_another_value_is_refused, everything_that_is_simulated_says_so]))
