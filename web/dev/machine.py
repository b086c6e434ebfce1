#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated machine with a busy day on it, to look at the page with: until it is interrupted.

Usage: machine.py BUILD_FOLDER [BOARD]; prints the socket to speak to.
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
import kit


TRACEBACK = """for i in 1 2 3; do echo "epoch $i"; done
echo 'Traceback (most recent call last):
  File "train.py", line 31, in <module>
RuntimeError: shape mismatch: (64, 128) and (128, 64)' >&2
exit 1"""


def busy_day(m, client):
    """A GPU that is lost, one that is shared, a reservation; jobs that run, wait and have ended."""
    load = lambda profile, seconds: m.load_argv("--profile", profile, "--seconds", seconds)
    last = client.status()["gpus"][-1]["index"]
    m.twin("fault", str(last), "lost")
    kit.until(lambda: client.status()["gpus"][-1].get("health") != "healthy", "it is seen to be lost")
    client.submit(load("gemm", 4), gpus=2, name="warm-up", tags="smoke", estimate_ms=4000)
    client.submit(["sh", "-c", TRACEBACK], gpus=1, name="typo")
    client.submit(load("gemm", 3000), gpus=4, name="pretrain-7b", estimate_ms=3000000, tags="night")
    client.submit(load("gemm", 1500), gpus=2, name="finetune-chat", estimate_ms=1500000, tags="chat",
                  max_slowdown_permille=50, preemptible=True)
    for name, milli in (("notebook", 250), ("serve", 500)):
        client.submit(load("gemm", 900), gpus=1, gpu_milli=milli, name=name, estimate_ms=900000, tags="chat")
    client.submit(load("gemm", 1200), gpus=4, name="ablation-lr", estimate_ms=1200000, tags="night")
    client.submit(load("gemm", 600), gpus=1, name="embed-docs", estimate_ms=600000, array_first=0, array_last=19, array_limit=2)
    client.submit(load("gemm", 2400), gpus=7, name="pretrain-13b", estimate_ms=2400000, priority=-5)
    client.submit(load("gemm", 600), gpus=1, name="later", held=True)
    now_ms = int(time.time() * 1000)
    client.ask("POST", "/v1/gpus/reserve", {"gpus": [4, 5], "user": str(os.getuid()), "from_ms": now_ms + 3_000_000,
                                            "until_ms": now_ms + 4_800_000, "reason": "demo"})


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that nothing of the machine is left behind
    with kit.machine(sys.argv[2] if len(sys.argv) > 2 else "hgx-h100") as m:
        m.start()
        busy_day(m, m.client())
        print(m.socket, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
