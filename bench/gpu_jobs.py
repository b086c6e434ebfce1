#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that do the same again and again on a real GPU, to see how steady their rate and takt's counters are.

    takt run --gpus 1 -- python3 bench/gpu_jobs.py matmul 20 rate.txt

KIND: matmul (bf16, 8192 x 8192, random operands), zeros (the same product of zeros, which draws less power), stream
(copies of 2 GiB), train (a transformer of 12 layers, bf16: bound to its host in part), host (matmul, with 40 ms asleep
after each step). Needs PyTorch. The job tells takt its steps; each second's rate is a line of RATES: time, steps a
second.

Usage: gpu_jobs.py KIND SECONDS RATES
"""
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "examples"))
from takt_progress import Progress  # noqa: E402

SIZE = 8192


def operand(zeros):
    if zeros:
        return torch.zeros(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    return torch.randn(SIZE, SIZE, device="cuda").bfloat16()


def matmul(zeros=False):
    a, b = operand(zeros), operand(zeros)
    c = torch.empty_like(a)

    def step():
        for _ in range(20):
            torch.matmul(a, b, out=c)
    return step


def stream():
    a = torch.randn(1 << 29, device="cuda")
    b = torch.empty_like(a)

    def step():
        for _ in range(10):
            b.copy_(a)
    return step


def train():
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    net = torch.nn.TransformerEncoder(layer, 12).to("cuda")
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    x = torch.randn(16, 512, 1024, device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = net(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return step


def host():
    inner = matmul()

    def step():
        inner()
        torch.cuda.synchronize()
        time.sleep(0.04)
    return step


KINDS = {"matmul": matmul, "zeros": lambda: matmul(zeros=True), "stream": stream, "train": train, "host": host}


def run(step, seconds, rates):
    progress = Progress()
    begin = last = time.monotonic()
    done = at = 0
    while last - begin < seconds:
        step()
        torch.cuda.synchronize()
        done += 1
        progress.add(steps=1)
        now = time.monotonic()
        if now - last >= 1:
            rates.write(f"{time.time():.3f} {(done - at) / (now - last):.4f}\n")
            rates.flush()
            last, at = now, done


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    torch.manual_seed(1)
    step = KINDS[sys.argv[1]]()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with open(sys.argv[3], "w", encoding="utf-8") as rates:
        run(step, float(sys.argv[2]), rates)


if __name__ == "__main__":
    main()
