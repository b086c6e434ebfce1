#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What administrators say of clocks and power limits for good: caps, a machine's policy, and taking it back.

The boards are the witness: what `takt-twin state` says of locks and limits, whatever takt says.

Usage: clock_admin.py BUILD_FOLDER
"""
import concurrent.futures
import json
import os
import signal
import sys

import kit

POLICY = """# how this machine stands
[[gpu]]
power_w = 500

[[gpu]]
uuid = "%s"
sm_mhz = [345, 1200]
cap_w = 600
"""


def limits(m):
    """{GPU: W} of the power limits that are not the boards' own."""
    return {gpu["index"]: gpu["limit_mw"] // 1000 for gpu in m.boards()
            if gpu["limit_mw"] != gpu["default_limit_mw"]}


def ready(gpus=2):
    """A machine whose actuator answers."""
    def enter(m):
        m.start()
        kit.until(lambda: all(g["clock_state"] == "clean" for g in m.client().status()["gpus"]), "the actuator is there")
        return m
    return kit.machine(gpus=gpus), enter


def policy(m, text=None):
    path = m.path("clocks.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(POLICY % m.boards()[1]["uuid"] if text is None else text)
    return path


def do(m, *words, status=0):
    done = m.takt("clock", *words)
    assert done.returncode == status, done
    return done.stdout + done.stderr


def kill_takt(m):
    """All of it at once, so that nobody restores anything."""
    for kind in ("takt", "takt-actuate", "takt-guard"):
        for pid in m.pids(kind):
            os.kill(pid, signal.SIGSTOP)
    for kind in ("takt-guard", "takt-actuate", "takt"):
        for pid in m.pids(kind):
            os.kill(pid, signal.SIGKILL)
    m.died()


def a_cap_holds_is_seen_everywhere_and_stays():
    machine, enter = ready()
    with machine as m:
        enter(m)
        said = do(m, "cap", "--watts", "350", "--gpus", "1", "--reason", "rack 7")
        assert limits(m) == {1: 350} and "GPU 1: power capped at 350 W by" in said and "rack 7" in said, said
        assert "capped at 350 W" in m.takt("status").stdout
        assert m.client().status()["gpus"][1]["power_cap_mw"] == 350_000
        kit.until(lambda: any(n.startswith("takt_gpu_power_cap_watts{") and v == 350
                              for n, v in m.client().metrics().items()), "the metrics page says so")
        kill_takt(m)
        assert limits(m) == {1: 350}
        m.start()
        kit.until(lambda: m.client().status()["gpus"][1].get("power_cap_mw") == 350_000, "the cap is known again")
        assert "rack 7" in do(m, "show")
        assert m.stop() == 0 and limits(m) == {1: 350}
        enter(m)
        assert "capped" not in do(m, "cap", "--clear") and limits(m) == {}, limits(m)


def a_cap_that_cannot_be_is_set_nowhere():
    machine, enter = ready()
    with machine as m:
        enter(m)
        for words in (("--watts", "5"), ("--watts", "9000"), (), ("--watts", "300", "--clear"), ("--watts", "x"),
                      ("--watts", "300", "--gpus", "7"), ("--watts", "300", "--lock")):
            do(m, "cap", *words, status=64)
        do(m, "cap", "--watts", "400", "--gpus", "0")
        m.twin("fault", "1", "permission")
        said = do(m, "cap", "--watts", "300", status=77)
        assert "nvidia-smi -i" in said and "-pl 300" in said, said
        kit.until(lambda: limits(m) == {0: 400}, lambda: f"the other has its own again: {limits(m)}")
        m.twin("fault", "1", "none")
        do(m, "cap", "--clear")
        assert limits(m) == {}


def a_policy_stands_whoever_dies_and_is_taken_back():
    machine, enter = ready()
    with machine as m:
        enter(m)
        path = policy(m)
        dry = do(m, "apply", "--file", path, "--dry-run")
        assert "-lgc 345,1200" in dry and "-pl 500" in dry and "2 of 2 GPUs would change" in dry, dry
        dry = json.loads(do(m, "apply", "--file", path, "--dry-run", "--json"))
        assert dry["dry_run"] and [g["index"] for g in dry["gpus"]] == [0, 1], dry
        assert not m.locked() and not limits(m)
        stands = {1: (345, 1200)}, {0: 500, 1: 600}
        said = do(m, "apply", "--file", path)
        assert (m.locked(), limits(m)) == stands and "2 of 2 GPUs changed" in said, (said, m.locked(), limits(m))
        again = json.loads(do(m, "apply", "--file", path, "--json"))
        assert again["gpus"][1]["base_max_mhz"] == 1200 and again["gpus"][0]["base_power_mw"] == 500_000, again
        assert "0 of 2 GPUs would change" in do(m, "apply", "--file", path, "--dry-run")
        # A job's own wish outranks it, and goes back to it.
        client = m.client()
        job = client.submit(m.witness_argv(60_000), gpus=2, clock_ask="ceiling", clock_mhz=900)["id"]
        kit.until(lambda: m.locked() == {0: (345, 900), 1: (345, 900)}, m.locked)
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: (m.locked(), limits(m)) == stands, lambda: (m.locked(), limits(m)))
        kill_takt(m)
        assert (m.locked(), limits(m)) == stands
        enter(m)
        assert "declared to stand at 345-1200 MHz" in do(m, "show")
        assert m.stop() == 0 and (m.locked(), limits(m)) == stands
        enter(m)
        said = do(m, "restore")
        assert not m.locked() and limits(m) == {1: 600} and "the cap of 600 W stays" in said, (said, m.locked(), limits(m))
        do(m, "cap", "--clear")
        assert limits(m) == {}


def an_order_waits_for_an_actuator_that_is_late():
    """Whoever starts takt and orders at once need not try again."""
    with kit.machine(gpus=2) as m:
        let_go = m.hold_back("takt-actuate")
        m.start()
        path = policy(m)
        said = do(m, "apply", "--file", path, status=69)
        assert "the actuator does not answer" in said and not m.locked() and not limits(m), said
        with concurrent.futures.ThreadPoolExecutor() as pool:
            orders = [pool.submit(do, m, "apply", "--file", path), pool.submit(do, m, "cap", "--watts", "450", "--gpus", "0")]
            kit.until(lambda: m.said().count("clocks of 2 GPUs are declared") == 2
                      and "power cap of 450 W" in m.said(), m.said)
            assert not any(order.done() for order in orders), [order.result() for order in orders]
            let_go()
            assert "2 of 2 GPUs changed" in orders[0].result() and "capped at 450 W" in orders[1].result()
        assert m.locked() == {1: (345, 1200)} and limits(m) == {0: 450, 1: 600}, (m.locked(), limits(m))


def a_wrong_policy_changes_nothing():
    machine, enter = ready()
    with machine as m:
        enter(m)
        do(m, "apply", "--file", policy(m))
        before = m.locked(), limits(m)
        for text, says in (("[[gpu]]\npower_w = 5\n", "line 1, GPU 0: 'power_w' 5 W: this GPU takes"),
                           ("[[gpu]]\npower_w = 400\n\nwatts = 3\n", "line 4: there is no key 'watts'"),
                           ("[[gpu]]\nsm_mhz = [5, 99999]\n", "line 2: 'sm_mhz' must be"),
                           ("[[gpu]]\nsm_mhz = [5, 1200]\n", "line 1, GPU 0: 'sm_mhz' [5, 1200]"),
                           ("gpus = 1\n", "line 1: 'gpus' is not known"), ("", "there is no entry"), ("[[gpu", "line 1")):
            said = do(m, "apply", "--file", policy(m, text), status=65 if text == "[[gpu" else 64)
            assert says in said and "clocks.toml" in said, (text, said)
            assert (m.locked(), limits(m)) == before, text
        do(m, "apply", "--file", m.path("none"), status=66)
        do(m, "apply", status=64)
        client = m.client()
        for body in ({"gpus": [{"index": 9}]}, {"gpus": [{"index": 0}, {"index": 0}]}, {"gpus": [{"index": 0, "x": 1}]},
                     {"gpus": [{"index": 0, "sm_min_mhz": 1, "sm_max_mhz": 2}]}, {}):
            try:
                client.ask("POST", "/v1/clocks/apply", body)
                raise AssertionError(body)
            except kit.Refused as refused:
                assert refused.status == 400, (body, refused)
        assert (m.locked(), limits(m)) == before
        said = do(m, "apply", "--file", policy(m, '[[gpu]]\nuuid = "GPU-gone"\n'))
        assert "line 1: no GPU here is 'GPU-gone'" in said and not m.locked(), said


def a_policy_that_a_board_refuses_is_taken_back_on_the_others():
    machine, enter = ready()
    with machine as m:
        enter(m)
        m.twin("fault", "1", "permission")
        said = do(m, "apply", "--file", policy(m, "[[gpu]]\nsm_mhz = [345, 1200]\n"), status=77)
        assert f"nvidia-smi -i {m.boards()[1]['uuid']} -lgc 345,1200" in said, said
        kit.until(lambda: not m.locked(), m.locked)
        m.twin("fault", "1", "none")
        assert "declared" not in do(m, "show")


def what_cannot_be_put_back_is_said_and_tried_again():
    machine, enter = ready()
    with machine as m:
        enter(m)
        do(m, "apply", "--file", policy(m, "[[gpu]]\nsm_mhz = [345, 1200]\n"))
        m.twin("fault", "1", "driver-restore-refused")
        said = do(m, "restore", status=75)
        assert "GPU 1 is not at its baseline, takt goes on trying" in said, said
        assert m.locked() == {1: (345, 1200)}
        assert "CHANGED" in m.takt("status").stdout
        m.twin("fault", "1", "none")
        kit.until(lambda: not m.locked(), m.locked)


def restoring_leaves_jobs_their_clocks():
    machine, enter = ready()
    with machine as m:
        enter(m)
        do(m, "apply", "--file", policy(m, "[[gpu]]\nsm_mhz = [345, 1200]\n"))
        do(m, "set", "--gpus", "0-1", "1000")
        client = m.client()
        job = client.submit(m.witness_argv(60_000), gpus=1, clock_ask="ceiling", clock_mhz=900)["id"]
        kit.until(lambda: (345, 900) in m.locked().values(), m.locked)
        (gpu,) = client.job(job)["gpu_list"]
        said = do(m, "restore")
        assert f"GPU {gpu}: job {job} has its clocks until it ends" in said, said
        kit.until(lambda: m.locked() == {gpu: (345, 900)}, m.locked)
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: not m.locked(), m.locked)


def what_is_asked_for_as_a_job_starts_ends_with_it():
    """Its program may be quicker than the word that it runs: while the launcher is held back no job gets further."""
    machine, enter = ready(gpus=1)
    with machine as m:
        let_go = m.hold_back("takt-launch")
        enter(m)
        client = m.client()

        def asked(argv):
            job = client.submit(argv, gpus=1)["id"]
            kit.until(lambda: client.job(job)["state"] == "starting", lambda: client.job(job))
            client.ask("POST", "/v1/clocks/set", {"gpus": [0], "max_mhz": 1200, "benchmark": True})
            assert m.locked() == {0: (345, 1200)}, (m.locked(), client.job(job))
            return job

        client.cancel(asked(["true"]))
        kit.until(lambda: not m.locked(), m.locked)
        nowhere = asked([m.path("nowhere")])
        let_go()
        assert client.wait(nowhere)["exit_code"] == 127, client.job(nowhere)
        kit.until(lambda: not m.locked(), m.locked)
        # Without anybody held back: the first thing that the job does.
        own = client.submit(["env", "TAKT_SOCKET=" + m.socket, m.path("bin/takt"), "clock", "set", "--gpus", "0", "1200"],
                            gpus=1)["id"]
        assert client.wait(own)["state"] == "done", (client.job(own), m.takt("logs", str(own)).stdout)
        kit.until(lambda: not m.locked(), m.locked)


def who_may_not_is_told_what_an_administrator_would_run():
    with kit.machine(gpus=2) as m:
        m.twin("fault", "all", "permission")
        m.start()
        kit.until(lambda: all(g["clock_state"] == "clean" for g in m.client().status()["gpus"]), "the actuator is there")
        said = do(m, "set", "--gpus", "0", "1410", status=77)
        assert "nvidia-smi -i" in said and "-lgc 345,1410" in said, said
        said = do(m, "reset", "--gpus", "1", status=77)
        assert "nvidia-smi -i" in said and "-rgc" in said, said


if __name__ == "__main__":
    sys.exit(kit.main([
        a_cap_holds_is_seen_everywhere_and_stays, a_cap_that_cannot_be_is_set_nowhere,
        a_policy_stands_whoever_dies_and_is_taken_back,
        an_order_waits_for_an_actuator_that_is_late, a_wrong_policy_changes_nothing,
        a_policy_that_a_board_refuses_is_taken_back_on_the_others, what_cannot_be_put_back_is_said_and_tried_again,
        restoring_leaves_jobs_their_clocks, what_is_asked_for_as_a_job_starts_ends_with_it,
        who_may_not_is_told_what_an_administrator_would_run,
    ]))
