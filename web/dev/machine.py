#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated machine with a busy day on it, to look at the page with: until it is interrupted.

Usage: machine.py BUILD_FOLDER [BOARD]; prints the socket to speak to.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
import kit


def busy_day(m, client):
    """Jobs that run, wait and have ended."""
    load = lambda profile, seconds: m.load_argv("--profile", profile, "--seconds", seconds)
    client.submit(load("gemm", 4), gpus=2, name="warm-up", tags="smoke", estimate_ms=4000)
    client.submit(["false"], gpus=1, name="typo")
    client.submit(load("gemm", 3000), gpus=4, name="pretrain-7b", estimate_ms=3000000, tags="night")
    client.submit(load("gemm", 1500), gpus=2, name="finetune-chat", estimate_ms=1500000,
                  max_slowdown_permille=50, preemptible=True)
    client.submit(load("gemm", 900), gpus=1, name="eval-suite", estimate_ms=900000)
    client.submit(load("gemm", 1200), gpus=4, name="ablation-lr", estimate_ms=1200000)
    client.submit(load("gemm", 2400), gpus=8, name="pretrain-13b", estimate_ms=2400000, priority=-5)
    client.submit(load("gemm", 600), gpus=1, name="embed-docs", estimate_ms=600000, array_first=0, array_last=5)
    client.submit(load("gemm", 600), gpus=1, name="later", held=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that nothing of the machine is left behind
    with kit.machine(sys.argv[2] if len(sys.argv) > 2 else "hgx-h100") as m:
        m.start()
        busy_day(m, m.client())
        print(m.socket, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
