# SPDX-License-Identifier: Apache-2.0
"""Tens of thousands of jobs wait: a start and a stop cost in proportion, and keep no more in memory than they need.

Processor time is compared within one run, never measured against a clock: bench/queue_scale.py --restart has seconds.
"""
import os

import kit

FEW = 5000
MANY = 4 * FEW
# Four times the jobs cost four times as much, twice that is for noise; what grows with their square costs sixteen times.
AT_MOST = 8
NOISE_S = 0.03
LARGE = 2000  # jobs with large environments,
VARIABLES, VARIABLE = 200, 100  # of so many variables, of so many bytes each


def processor_s(pid):
    """Of all its threads."""
    total, folder = 0, f"/proc/{pid}/task"
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def memory_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def fill(m, jobs, at_once, env=("PATH=/usr/bin:/bin",)):
    spec = {"argv": ["/bin/true"], "cwd": "/", "gpus": 1, "env": list(env)}
    client = m.client()
    for _ in range(jobs // at_once):
        client.ask("POST", "/v1/jobs/batch", {"jobs": [spec] * at_once})


def stop_and_start(m):
    """What the stop and the start cost the processor, up to a list of the queue."""
    before = processor_s(m.serve.pid)
    m.close_clients()
    m.serve.terminate()
    _, status, used = os.wait4(m.serve.pid, 0)
    m.serve.returncode = os.waitstatus_to_exitcode(status)
    assert m.serve.returncode == 0, m.said()
    m.start()
    m.client().live()
    return used.ru_utime + used.ru_stime - before, processor_s(m.serve.pid)


def costs_in_proportion():
    with kit.machine() as m:
        m.start()
        m.client().submit(["sleep", "100000"], gpus=8)
        nothing = stop_and_start(m)
        fill(m, FEW, 500)
        few = stop_and_start(m)
        fill(m, MANY - FEW, 500)
        many = stop_and_start(m)
        assert m.client().status()["waiting"] == MANY
        for what, least, one, four in zip(("stop", "start"), nothing, few, many):
            kit.note(f"{what}: {least:.3f} s of the processor without jobs, {one:.3f} with {FEW}, {four:.3f} with {MANY}")
            assert four - least <= AT_MOST * max(one - least, NOISE_S), (what, least, one, four)


def environments_stay_on_disk_until_their_jobs_start():
    with kit.machine() as m:
        m.start()
        holder = m.client().submit(["sleep", "100000"], gpus=8)["id"]
        env = ["PATH=/usr/bin:/bin", f"TO={m.path('told')}", "TOKEN=swordfish"]
        first = m.client().submit(["sh", "-c", 'echo "$TOKEN" >"$TO"'], gpus=1, env=env)["id"]
        fill(m, LARGE, 50, [f"V{i:03}=".ljust(VARIABLE, "x") for i in range(VARIABLES)])
        before = memory_bytes(m.serve.pid)
        stop_and_start(m)
        after = memory_bytes(m.serve.pid)
        kit.note(f"{before >> 20} MiB before, {after >> 20} after a start")
        assert before - after > LARGE * VARIABLES * VARIABLE // 2, (before, after)
        m.client().cancel(holder)
        assert m.client().wait(first)["state"] == "done"
        with open(m.path("told"), encoding="ascii") as file:
            assert file.read() == "swordfish\n"


def a_dry_run_costs_no_more_where_jobs_come_after_others():
    with kit.machine() as m:
        m.start()
        client = m.client()
        client.submit(["sleep", "100000"], gpus=8)
        spec = {"argv": ["/bin/true"], "cwd": "/", "gpus": 1}
        dry = {"jobs": [spec] * 1000}

        def cost():
            before = processor_s(m.serve.pid)
            client.ask("POST", "/v1/jobs/batch/try", dry)
            return processor_s(m.serve.pid) - before
        prep = [dict(spec, name=f"a{i}") for i in range(800)]
        after = [dict(spec, name=f"b{i}", after_names=[f"a{j}" for j in range(800)]) for i in range(200)]
        client.ask("POST", "/v1/jobs/batch", {"jobs": prep + [dict(spec, name=f"c{i}") for i in range(200)]})
        alone = min(cost() for _ in range(3))
        for _ in range(4):
            client.ask("POST", "/v1/jobs/batch", {"jobs": prep + after})
        beside = min(cost() for _ in range(3))
        kit.note(f"{alone:.3f} s of the processor with 1,000 jobs, {beside:.3f} with 640,000 dependencies more")
        assert beside <= AT_MOST * max(alone, NOISE_S), (alone, beside)


def how_long_the_loop_was_busy_is_told():
    def told(client):
        page = client.metrics()
        return page["takt_loop_busy_seconds_total"], page["takt_loop_longest_turn_seconds"]
    with kit.machine() as m:
        m.start()
        client = m.client()
        kit.until(lambda: told(client)[0] > 0, "a turn is over")
        busy, longest = told(client)
        assert 0 < longest <= busy, (busy, longest)
        fill(m, 1000, 500)
        kit.until(lambda: told(client)[0] > busy, lambda: told(client))
        assert told(client)[1] >= longest


if __name__ == "__main__":
    raise SystemExit(kit.main([costs_in_proportion, environments_stay_on_disk_until_their_jobs_start,
                               a_dry_run_costs_no_more_where_jobs_come_after_others,
                               how_long_the_loop_was_busy_is_told]))
