#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a job, as a training program meets them: they find each other, and end together.

The rendezvous is done with the standard library as torch's TCPStore does it: rank 0 listens on MASTER_PORT,
everybody connects. Where torch is there, it is asked itself.

Usage: ranks.py BUILD_FOLDER
"""
import importlib.util
import os
import signal
import socket
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit

RENDEZVOUS = """
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    # As torch does: both families, and a port whose last connections are timing out is taken again.
    door = socket.create_server(("", place[1]), family=socket.AF_INET6 if socket.has_dualstack_ipv6() else
                                socket.AF_INET, dualstack_ipv6=socket.has_dualstack_ipv6())
    seen, peers = {0: os.environ["CUDA_VISIBLE_DEVICES"]}, []
    while len(seen) < world:
        peer = door.accept()[0]
        number, gpus = peer.makefile().readline().strip().split(" ", 1)
        assert int(number) not in seen, number
        seen[int(number)] = gpus
        peers.append(peer)
    assert sorted(seen) == list(range(world)), seen
    assert len(set(seen.values())) == 1, seen
    for peer in peers:
        peer.sendall(b"go\\n")
    print("all", world, "met; each sees", seen[0], flush=True)
else:
    for _ in range(6000):
        try:
            store = socket.create_connection(place)
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    store.sendall(f"{rank} {os.environ['CUDA_VISIBLE_DEVICES']}\\n".encode())
    assert store.makefile().readline() == "go\\n"
"""

TORCH = """
import os
import torch, torch.distributed as dist
dist.init_process_group("gloo")
mine = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(mine)
if dist.get_rank() == 0:
    print("sum", int(mine.item()), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""

HOLD = 'echo "$RANK $MASTER_PORT" >>"$OUT"; while ! [ -e "$GO" ]; do sleep 0.05; done'


def python(m, name, text):
    path = m.path(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return [sys.executable, path]


def ranks_find_each_other():
    with kit.machine(gpus=4) as m:
        m.start()
        done = m.takt("run", "-n", "3", "--ranks", "--", *python(m, "meet.py", RENDEZVOUS))
        assert done.returncode == 0, done
        gpus = done.stdout.rsplit(" ", 1)[1].strip()
        assert "all 3 met" in done.stdout and len(gpus.split(",")) == 3, done.stdout


def jobs_that_run_at_once_have_ports_of_their_own():
    with kit.machine(gpus=4) as m:
        m.start()
        out, go = m.path("ports"), m.path("go")
        jobs = [int(m.takt("submit", "-q", "-n", "1", "--ranks=2", "-e", f"OUT={out}", "-e", f"GO={go}", "--",
                           "sh", "-c", HOLD).stdout) for _ in range(3)]

        def lines():
            return open(out, encoding="ascii").read().split("\n")[:-1] if os.path.exists(out) else []
        kit.until(lambda: len(lines()) == 6, lines)
        ports = sorted(line.split()[1] for line in lines())
        assert len(set(ports)) == 3 and ports[0::2] == ports[1::2], ports

        # The next takt knows them still, and gives out others.
        m.kill()
        m.start()
        later = int(m.takt("submit", "-q", "-n", "1", "--ranks=2", "-e", f"OUT={out}", "-e", f"GO={go}", "--",
                           "sh", "-c", HOLD).stdout)
        kit.until(lambda: len(lines()) == 8, lines)
        assert len({line.split()[1] for line in lines()}) == 4, lines()
        open(go, "w", encoding="ascii").close()
        for job in [*jobs, later]:
            assert m.client().wait(job)["state"] == "done"


def a_port_that_somebody_listens_on_is_not_given_out():
    with kit.machine(gpus=1) as m, socket.create_server(("127.0.0.1", 0)) as taken:
        first = taken.getsockname()[1]
        last = min(first + 40, 65535)
        m.start("--rank-port-first", str(first), "--rank-port-last", str(last))
        done = m.takt("run", "-n", "0", "--ranks=1", "--", "sh", "-c", "echo $MASTER_PORT")
        assert done.returncode == 0 and first < int(done.stdout) <= last, done


def when_no_port_is_free_the_job_waits_and_says_so():
    with kit.machine(gpus=1) as m, socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        m.start("--rank-port-first", port, "--rank-port-last", port)
        job = int(m.takt("submit", "-q", "-n", "0", "--ranks=2", "--", "true").stdout)
        kit.until(lambda: "is free for its ranks" in m.client().job(job).get("message", ""),
                  lambda: m.client().job(job))
        taken.close()
        assert m.client().wait(job)["state"] == "done"


def the_first_rank_that_fails_is_named_and_ends_the_job():
    with kit.machine(gpus=2) as m:
        m.start()
        script = f'echo $$ >>{m.path("pids")}; while ! [ "$(wc -l <{m.path("pids")})" = 2 ]; do sleep 0.02; done; ' \
                 'if [ $RANK = 1 ]; then exit 9; fi; exec sleep 1000'
        done = m.takt("run", "-n", "2", "--ranks", "--", "sh", "-c", script)
        assert done.returncode == 9, done
        assert "rank 1 failed with exit status 9" in done.stderr, done
        for pid in open(m.path("pids"), encoding="ascii").read().split():
            assert not os.path.exists(f"/proc/{pid}"), pid


def a_rank_that_is_killed_is_named_too():
    with kit.machine(gpus=1) as m:
        m.start()
        done = m.takt("run", "-n", "0", "--ranks=2", "--", "sh", "-c",
                      "[ $RANK = 0 ] && exec sleep 1000; sleep 0.2; kill -KILL $$")
        assert done.returncode == 128 + signal.SIGKILL, done
        assert "rank 1 was killed by signal 9 (Killed)" in done.stderr, done


def lines_have_prefixes_only_when_asked_for():
    with kit.machine(gpus=1) as m:
        m.start()
        plain = m.takt("run", "-q", "-n", "0", "--ranks=2", "--", "sh", "-c", "[ $RANK = 1 ] && echo here; true")
        assert plain.stdout == "here\n", plain
        named = m.takt("run", "-q", "-n", "0", "--ranks=2", "--rank-prefix", "--", "sh", "-c", "echo here $RANK")
        assert sorted(named.stdout.splitlines()) == ["[0] here 0", "[1] here 1"], named


def threads_are_shared_by_ranks():
    with kit.machine(gpus=1) as m:
        m.start()
        done = m.takt("run", "-q", "-n", "0", "--cpus", "2", "--ranks=2", "--", "sh", "-c", "echo $OMP_NUM_THREADS")
        assert done.stdout == "1\n1\n", done


def ranks_that_make_no_sense_are_refused():
    with kit.machine(gpus=1) as m:
        m.start()
        for words, what in ((("-n", "0", "--ranks"), "needs a number"), (("--ranks=0",), "--ranks"),
                            (("--rank-prefix",), "needs 'ranks'")):
            done = m.takt("submit", *words, "--", "true")
            assert done.returncode == 64 and what in done.stderr, (words, done)
        m.stop()
        done = m.takt("serve", "--rank-port-first", "30000", "--rank-port-last", "29999", *m.flags())
        assert done.returncode != 0 and "must not be below" in done.stderr, done


def torch_itself_meets():
    """The real thing, where it is installed (a gigabyte and more: not fetched by tests)."""
    if not importlib.util.find_spec("torch"):
        raise kit.Skip("torch is not installed")
    with kit.machine(gpus=2) as m:
        m.start()
        done = m.takt("run", "-q", "-n", "2", "--ranks", "--", *python(m, "gloo.py", TORCH))
        assert done.returncode == 0 and "sum 3 of 2" in done.stdout, done


if __name__ == "__main__":
    sys.exit(kit.main([
        ranks_find_each_other,
        jobs_that_run_at_once_have_ports_of_their_own,
        a_port_that_somebody_listens_on_is_not_given_out,
        when_no_port_is_free_the_job_waits_and_says_so,
        the_first_rank_that_fails_is_named_and_ends_the_job,
        a_rank_that_is_killed_is_named_too,
        lines_have_prefixes_only_when_asked_for,
        threads_are_shared_by_ranks,
        ranks_that_make_no_sense_are_refused,
        torch_itself_meets,
    ]))
