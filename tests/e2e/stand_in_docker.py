#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for docker, for tests: a client that looks like docker's and a daemon whose containers are plain processes.

What it shows is what matters to takt: containers are children of the daemon and not of the job, they outlive the
client, they get the variables that the client names, and they are listed and removed by label. It shows nothing of
images, namespaces or GPUs.

Usage: as `docker` in a job's PATH (client), with $STAND_IN_DOCKER naming the daemon's socket.
"""
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading

VALUED = ("--gpus", "--device")


def ask(request):
    """What the daemon answers, with its end awaited."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.environ["STAND_IN_DOCKER"])
        link.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(link.makefile().readline())


def parse(words):
    """(options, command with image) of `run`."""
    options = []
    while words and words[0].startswith("-"):
        take = 2 if words[0] in VALUED else 1
        options.append(words[:take])
        words = words[take:]
    return options, words


def run(words):
    options, command = parse(words)
    flat = [option[0] for option in options]
    names = [word.removeprefix("--env=") for word in flat if word.startswith("--env=")]
    answer = ask({
        "do": "run", "argv": command[1:], "image": command[0], "words": words,
        "env": {name: os.environ[name] for name in names if "=" not in name and name in os.environ},
        "label": next(word.split("=", 2)[2] for word in flat if word.startswith("--label=takt.attempt=")),
        "cwd": next(word.split("=", 1)[1] for word in flat if word.startswith("--workdir="))})
    sys.stdout.write(answer["output"])
    return answer["code"]


def client(words):
    if words[0] == "run":
        return run(words[1:])
    if words[0] == "ps":
        print("\n".join(ask({"do": "ps", "label": words[-1].removeprefix("label=takt.attempt=")})))
        return 0
    if words[:2] == ["rm", "--force"]:
        return ask({"do": "rm", "ids": words[2:]})
    return 125


class Daemon:
    """The other end. `env` is what each container has besides."""

    def __init__(self, path, env):
        self.env, self.containers, self.runs, self.lock = env, {}, [], threading.Lock()
        daemon = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                request = json.loads(self.rfile.readline())
                answer = getattr(daemon, request.pop("do"))(**request)
                try:
                    self.wfile.write(json.dumps(answer).encode() + b"\n")
                except OSError:
                    pass  # the client was killed

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        self.server = Server(path, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def run(self, argv, image, words, env, label, cwd):
        sources = [word.split("source=")[1].split(",")[0] for word in words if word.startswith("--mount=type=bind,")]
        if not all(map(os.path.exists, sources)):
            return {"output": "bind source path does not exist", "code": 125}
        process = subprocess.Popen(argv, env={**self.env, **env}, cwd=cwd, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True, start_new_session=True)
        with self.lock:
            self.runs.append({"image": image, "words": words, "env": env})
            self.containers[f"{process.pid:x}"] = (label, process)
        output = process.communicate()[0]
        with self.lock:
            self.containers.pop(f"{process.pid:x}", None)
        code = process.returncode
        return {"output": output, "code": code if code >= 0 else 128 - code}

    def ps(self, label):
        with self.lock:
            return [name for name, (of, _) in self.containers.items() if of == label]

    def rm(self, ids):
        for name in ids:
            with self.lock:
                process = self.containers[name][1]
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return 0

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.rm(list(self.containers))


if __name__ == "__main__":
    sys.exit(client(sys.argv[1:]))
