#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt alerts: a hook and a webhook hear of a GPU that is lost and of takt that is gone, and nobody else hears anything.

Usage: alert_teller.py BUILD_FOLDER
"""
import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading

import kit


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.answers.pop(0) if self.server.answers else 204
        self.server.got.append((self.path, self.headers["Content-Type"], json.loads(body), answer))
        self.send_response(answer)
        self.end_headers()

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def receiver(*answers):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.got, server.answers = [], list(answers)
    server.url = f"http://127.0.0.1:{server.server_address[1]}/hook/s3cret"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def watching(m, *words):
    """takt alerts beside the machine; its output is in the file alerts.log."""
    with open(m.path("alerts.log"), "ab") as log:
        process = subprocess.Popen([m.path("bin/takt"), "alerts", "--every", "1s", *words], env=m.env(),
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
        assert process.poll() is None, said(m)
    finally:
        process.kill()
        process.wait()


def said(m):
    with open(m.path("alerts.log"), encoding="utf-8") as file:
        return file.read()


def a_lost_gpu_reaches_hook_and_webhook():
    with kit.machine(gpus=2) as m, receiver(500) as server:
        m.start()
        with open(m.path("url"), "w", encoding="utf-8") as file:
            file.write(server.url + "\n")
        hook = f'echo "$TAKT_ALERT $TAKT_ALERT_STATE $TAKT_GPU $TAKT_SEVERITY: $TAKT_SUMMARY" >>{m.path("heard")}; echo noise'
        with watching(m, "--hook", hook, "--webhook", "@" + m.path("url")) as process:
            m.twin("fault", "1", "lost")
            kit.until(lambda: len(server.got) >= 2, lambda: said(m))
            (path, kind, first, answer), (_, _, second, _) = server.got[:2]
            assert answer == 500 and first == second, "what was refused is sent again"
            assert path == "/hook/s3cret" and kind == "application/json", (path, kind)
            assert first["alert"] == "GpuLost" and first["state"] == "firing" and first["gpu"] == 1, first
            assert first["simulated"] is True and first["severity"] == "critical", first
            assert first["uuid"] == m.boards()[1]["uuid"] and "fell off the bus" in first["summary"], first
            kit.until(lambda: "critical GpuLost: GPU 1 of" in said(m), lambda: said(m))
            with open(m.path("heard"), encoding="utf-8") as file:
                assert file.readline().startswith("GpuLost firing 1 critical: GPU 1 of "), "the hook was told"
            assert "answered 500" in said(m) and "s3cret" not in said(m), said(m)
            with open(f"/proc/{process.pid}/cmdline", "rb") as file:
                assert b"s3cret" not in file.read()
            count = len(server.got)
            m.twin("fault", "1", "none")
            kit.until(lambda: any(body["state"] == "resolved" for _, _, body, _ in server.got[count:]),
                      lambda: (server.got, said(m)))
        told = [(body["alert"], body["state"]) for _, _, body, answer in server.got if answer < 300]
        assert len(set(told)) == len(told), f"told twice: {told}"


def one_look_is_for_scripts():
    with kit.machine(gpus=2) as m, receiver() as server:
        m.start()
        done = m.takt("alerts", "--once", "--webhook", server.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        assert not server.got, "a healthy machine sends nothing"
        done = m.takt("alerts", "--once", "--temperature", "1", "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 1 and [line["gpu"] for line in lines] == [0, 1], done
        assert {line["alert"] for line in lines} == {"GpuHot"}, lines
        done = m.takt("alerts", "--once", "--temperature", "1", "--hook", "exit 3")
        assert done.returncode == 1 and "the hook ended with 3" in done.stderr and not done.stdout, done
        m.stop()
        done = m.takt("alerts", "--once", "--hook", f'echo "$TAKT_ALERT$TAKT_GPU" >{m.path("heard")}')
        assert done.returncode == 1 and "TaktDown" in done.stdout, done
        with open(m.path("heard"), encoding="utf-8") as file:
            assert file.read() == "TaktDown\n"


def wrong_words_are_refused():
    with kit.machine(gpus=1) as m:
        for words, want in ((("--webhook", "ftp://x"), "http"), (("--webhook", "@/nonexistent"), "/nonexistent"),
                            (("--every", "1ms"), "at least 1s"), (("--temperature", "900"), "temperature"),
                            (("--latency", "2s"), "at most 1s"), (("--latency", "fast"), "200us")):
            done = m.takt("alerts", "--once", *words)
            assert done.returncode not in (0, 1) and want in done.stderr, (words, done)
        assert not os.path.exists(m.path("alerts.log"))


if __name__ == "__main__":
    sys.exit(kit.main([a_lost_gpu_reaches_hook_and_webhook, one_look_is_for_scripts, wrong_words_are_refused]))
