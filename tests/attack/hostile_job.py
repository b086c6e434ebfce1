#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job's user against root's shim, the attempt's records, and whoever has the GPU next.

What one process can try by itself is tried by hostile.c in a job, a line each; a case here for each. The rest is
played by several. Whether an attack worked is judged from outside of takt: by the kernel's tables of processes and
files, and by the locks that jobs take on their GPUs (tests/e2e/witness.c).

Usage: hostile_job.py BUILD_FOLDER
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..")]

import reachable  # noqa: E402,F401, first: it may replace the build folder
import kit  # noqa: E402
from users import ALICE, BOB, ask, as_user, job_of, shared_machine  # noqa: E402

HOSTILE = os.path.join(kit.BUILD, "tests/attack/takt-hostile")
REFUSED = ("Permission denied", "Operation not permitted", "take into its group the shim: No such process")
SOURCE = os.path.join(HERE, "hostile.c")


def attempt(m, job, number=1):
    return m.path(f"state/jobs/{job}.{number}")


def uid_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return [int(word) for word in re.search(r"^Uid:\s(.*)$", file.read(), re.M).group(1).split()]


def submit(m, script, gpus=1, uid=ALICE, **more):
    return ask(m, uid, "POST", "/v1/jobs", job_of(["/bin/sh", "-c", script], gpus, **more))["id"]


def log_of(m, job):
    with contextlib.suppress(OSError):  # not there yet, or a link
        log = os.open(attempt(m, job) + "/log", os.O_RDONLY | os.O_NOFOLLOW)
        with open(log, encoding="utf-8", errors="replace") as file:
            return file.read()
    return ""


def runs(m, job):
    """(shim, first process) of a job that runs."""
    pid = kit.until(lambda: m.client().job(job).get("pid"), lambda: f"it runs: {m.client().job(job)}")
    return m.shims()[job, 1], pid


def is_over(m, job, *states):
    view = m.client().wait(job)
    assert view["state"] in states, view
    return view


# One process alone.

SAID = []


def hear():
    """What hostile.c said, and what became of its shim; once for all cases."""
    if SAID:
        return SAID
    with shared_machine(gpus=1) as m:
        go = m.path("jobs/go")
        job = submit(m, f"until [ -e {go} ]; do sleep 0.1; done; "
                        f"exec {HOSTILE} {m.path('state/jobs')}/${{TAKT_ATTEMPT%.*}} /bin/sleep 600")
        shim, pid = runs(m, job)
        users = uid_of(shim), uid_of(pid)
        with open(attempt(m, job) + "/log", encoding="utf-8", errors="replace") as log:  # whatever becomes of its name
            def said():
                log.seek(0)
                return log.read()
            with open(go, "w", encoding="ascii"):
                pass
            kit.until(lambda: "that was all" in said() or not kit.process_state(pid) or kit.process_state(shim) == "T",
                      lambda: f"it has tried all: {said()}")
            SAID.extend((said().splitlines(), kit.process_state(shim), users))
        kit.note("\n".join(SAID[0]))
        with contextlib.suppress(ProcessLookupError):
            os.kill(shim, signal.SIGCONT)  # where it was stopped
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        SAID.append(m.client().wait(job)["state"])
    return SAID


def its_shim_is_roots_and_goes_on():
    said, shim, users, end = hear()
    assert said[-1] == "that was all", said
    assert users == ([0] * 4, [ALICE] * 4) and shim in ("S", "D", "R") and end == "cancelled", (shim, users, end)


def attacks():
    """Their names, from the program's source: one that does not say its line fails its case."""
    with open(SOURCE, encoding="utf-8") as file:
        source = file.read()
    lists = {name: re.findall(r'"([^"]+)"', words) for name, words in
             re.findall(r"static const char \*const (\w+)\[\] = \{(.*?)\};", source, re.S)}
    signals = re.findall(r"SIG[A-Z0-9]+", re.search(r"signals\[\] = \{(.*?)\};", source, re.S).group(1))
    names = []
    for function, body in re.findall(r"^static void attack_(\w+)\([^)]*\)\n\{(.*?)^\}", source, re.S | re.M):
        for what, name in re.findall(r'tell\(.*?,\s*"([^"]+)",\s*("[^"]+"|name)\);', body, re.S):
            each = {"record": lists["records"], "absent": lists["absent"]}.get(function, signals)
            names += [f"{what} {one}" for one in (each if name == "name" else [name.strip('"')])]
    return names


def alone(name):
    def case():
        lines = [line for line in hear()[0] if line.startswith(f"held {name}: ") or line == f"DONE {name}"]
        assert len(lines) == 1, f"{name}: {lines}"
        assert lines[0].startswith("held "), lines[0]
        assert lines[0].endswith(REFUSED), f"held for another reason than that it may not: {lines[0]}"
    return "a job cannot " + name, case


# Several.

def a_stopped_shim_would_keep_no_job():
    """With every signal sent that it may send, its end by an administrator and by its time limit comes all the same."""
    with shared_machine(gpus=2) as m:
        stop = "trap '' TERM INT HUP; kill -STOP $PPID 2>/dev/null; while :; do sleep 1; done"
        cancelled = submit(m, stop, grace_ms=200)
        timed = submit(m, stop, grace_ms=200, time_limit_ms=1500)
        pids = [runs(m, job)[1] for job in (cancelled, timed)]
        ask(m, 0, "POST", f"/v1/jobs/{cancelled}/cancel", {})
        is_over(m, cancelled, "cancelled")
        is_over(m, timed, "failed", "timeout", "timed_out")
        assert [kit.process_state(pid) for pid in pids] == ["", ""]
        after = submit(m, "true", 2, BOB)
        is_over(m, after, "done")


def a_forged_end_gives_no_gpu_away():
    """It writes an end for itself, by every name, and ends whom it can; its GPU stays its own while it lives."""
    with shared_machine(gpus=1) as m:
        forged = ("takt-exit 1 kind=exited code=0 wall_ns=1795820345600003790 run_ns=320995385 message= crc=efbd2dc9")
        script = (f"cd {m.path('state/jobs')}/${{TAKT_ATTEMPT%.*}}; setsid sh -c 'sleep 600' & "
                  f"for name in exit exit.tmp exit.new; do echo '{forged}' > $name; done 2>/dev/null; "
                  "kill -KILL $PPID 2>/dev/null; echo tried; sleep 600")
        job = submit(m, script)
        shim, pid = runs(m, job)
        kit.until(lambda: "tried" in log_of(m, job), lambda: log_of(m, job))
        other = submit(m, "true", 1, BOB)
        time.sleep(1)
        assert m.client().job(job)["state"] == "running" and m.client().job(other)["state"] == "waiting"
        assert kit.process_state(shim) and kit.process_state(pid)
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")
        is_over(m, other, "done")


def with_end_of(other):
    """As if a job had found a way to write records: it has one put in for its end, ends its shim, and a process of it lives
    on. The end is taken for none; it is over when nothing of it is left, and its GPU is nobody else's before."""
    with shared_machine(gpus=2) as m:
        done = submit(m, "exit 0")
        is_over(m, done, "done")
        job = submit(m, "setsid sh -c 'trap \"\" TERM HUP; echo pid $$; while :; do sleep 1; done' & sleep 600")
        shim, _ = runs(m, job)
        kit.until(lambda: re.search(r"pid \d+\n", log_of(m, job)), "it ignores what it is sent")
        pid = int(re.search(r"pid (\d+)", log_of(m, job)).group(1))
        with open(attempt(m, done) + "/exit", encoding="ascii") as file:
            record = file.read()
        with open(attempt(m, job) + "/exit", "w", encoding="ascii") as file:
            file.write(other(record, job))
        os.kill(shim, signal.SIGKILL)
        view = is_over(m, job, "lost")
        assert "another attempt's" in view.get("message", ""), view
        assert kit.process_state(pid) in ("", "Z", "X"), kit.process_state(pid)


def sealed(text):
    """With a checksum that is right (CRC-32C)."""
    crc = 0xffffffff
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return f"{text} crc={crc ^ 0xffffffff:08x}\n"


def an_end_of_another_job_is_none():
    with_end_of(lambda record, job: record)


def an_end_with_a_secret_that_is_guessed_is_none():
    with_end_of(lambda record, job: sealed(re.sub(r" of=.*\n", "", record) + f" of={job}.1.{'0' * 32}"))


def an_end_that_names_nobody_is_none():
    with_end_of(lambda record, job: sealed(re.sub(r" of=.*\n", "", record)))


def no_process_of_a_job_knows_its_secret():
    """Nor can its user read it anywhere; who could, could as well write records."""
    with shared_machine(gpus=1) as m:
        job = submit(m, f"cat /proc/$PPID/cmdline /proc/self/environ {m.path('state/jobs')}/*/* 2>&1; exec sleep 600")
        shim, pid = runs(m, job)
        with open(attempt(m, job) + "/spec", encoding="ascii") as file:
            secret = re.search(r" secret=([0-9a-f]{32}) ", file.read()).group(1)
        with open(attempt(m, job) + "/started", encoding="ascii") as file:
            assert f" of={job}.1.{secret} " in file.read()
        kit.until(lambda: "TAKT_ATTEMPT" in log_of(m, job), lambda: log_of(m, job))
        words = [kit.environ_of(one, name) for one in (shim, pid) for name in ("cmdline", "environ")]
        assert secret.encode() not in b"".join(words) and secret not in log_of(m, job)
        for name in os.listdir(attempt(m, job)):
            assert name in ("log", "progress") or not as_user(ALICE, os.access, f"{attempt(m, job)}/{name}", os.R_OK), name
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")


def all_end(script, said=1, **more):
    """A job whose processes hide in some way: when it is over none of them is left. It says their numbers."""
    with shared_machine(gpus=1) as m:
        job = submit(m, script, grace_ms=200, **more)
        numbers = kit.until(lambda: [int(n) for n in re.findall(r"^pid (\d+)$", log_of(m, job), re.M)][:said],
                            lambda: f"it says who hides: {log_of(m, job)}")
        kit.until(lambda: len(re.findall(r"^pid \d+$", log_of(m, job), re.M)) >= said, lambda: log_of(m, job))
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled", "done", "failed")
        left = [pid for pid in numbers if kit.process_state(pid) not in ("", "Z", "X") and uid_of(pid)[0] == ALICE]
        assert not left, left
        is_over(m, submit(m, "true", 1, BOB), "done")


def a_daemon_of_its_own_ends_with_it():
    all_end("(setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 1; done' &) ; sleep 600")


def without_its_environment_it_ends_too():
    all_end("env -i setsid sh -c 'trap \"\" TERM HUP; echo pid $$; while :; do sleep 1; done' & sleep 600")


def one_that_stops_itself_ends():
    all_end("echo pid $$; kill -STOP $$; sleep 600")


def one_in_a_namespace_of_its_own_ends():
    all_end("echo pid $$; unshare -Urpf sh -c 'trap \"\" TERM; while :; do sleep 1; done'; sleep 600")


def what_outlives_the_first_process_ends():
    all_end("setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 1; done' & sleep 0.5; exit 0")


def many_that_fork_all_the_time_end():
    all_end("trap '' TERM; echo pid $$; f() { while :; do (sleep 0.05) & wait; done; }; "
            "for i in 1 2 3 4 5 6; do f & done; wait")


def who_kills_its_own_parents_ends():
    all_end("sh -c 'sh -c \"trap \\\"\\\" TERM; echo pid \\$\\$; kill -9 $PPID; while :; do sleep 1; done\" & wait' & "
            "sleep 600")


# As whom what is the user's runs.

WHO = "sed -n 's/^\\(Uid\\|Gid\\|Groups\\|CapInh\\|CapPrm\\|CapEff\\|CapAmb\\):/\\1/p' /proc/self/status; ls /proc/self/fd"
THE_USERS = re.compile(rf"Uid(\s{ALICE}){{4}}\nGid(\s{ALICE}){{4}}\nGroups\t{ALICE} ?\n" + r"(Cap\w+\s0{16}\n){4}0\n1\n2\n3\n")


def is_the_users(text):
    assert THE_USERS.search(text), text


def a_job_is_its_users():
    with shared_machine(gpus=1) as m:
        job = submit(m, WHO)
        is_over(m, job, "done")
        is_the_users(log_of(m, job))


def ranks_are_their_users():
    """Their output passes the shim; it can be opened again by its name."""
    with shared_machine(gpus=2) as m:
        job = submit(m, f"{WHO}; echo again > /dev/stderr", 2, ranks=2, rank_prefix=True)
        is_over(m, job, "done")
        for rank in "01":
            text = "".join(re.findall(rf"^\[{rank}\] (.*\n)", log_of(m, job), re.M))
            is_the_users(text)
            assert text.endswith("again\n"), text


def a_hook_is_its_users():
    with shared_machine(gpus=1) as m:
        job = submit(m, "true", hook=WHO)
        is_over(m, job, "done")
        kit.until(lambda: THE_USERS.search(log_of(m, job)), lambda: f"its hook has spoken: {log_of(m, job)}")


def a_staged_job_and_its_prefetch_are_their_users():
    with shared_machine(gpus=1) as m:
        first = submit(m, "sleep 600")
        runs(m, first)
        job = submit(m, f"echo job; {WHO}", stage=True, prefetch=["/bin/sh", "-c", f"echo prefetch; {WHO}"])
        kit.until(lambda: THE_USERS.search(log_of(m, job)), lambda: f"it prefetches: {log_of(m, job)}")
        ask(m, ALICE, "POST", f"/v1/jobs/{first}/cancel", {})
        is_over(m, job, "done")
        text = log_of(m, job)
        assert len(THE_USERS.findall(text)) == 2 and text.index("prefetch\n") < text.index("job\n"), text


def a_terminal_is_its_users():
    """Only he and root sit at it; it can be opened by its name."""
    with shared_machine(gpus=1) as m:
        job = submit(m, "ls -ln $(tty); echo opened > $(tty); tty; sleep 600", pty=True)
        kit.until(lambda: "opened" in log_of(m, job), lambda: log_of(m, job))
        assert re.search(rf"^crw-(-w|--)---- 1 {ALICE} ", log_of(m, job), re.M), log_of(m, job)
        door = attempt(m, job) + "/tty"
        assert os.stat(door).st_uid == ALICE and os.stat(door).st_mode & 0o777 == 0o600
        assert as_user(ALICE, os.access, door, os.W_OK) and not as_user(BOB, os.access, door, os.F_OK)
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")


def a_log_can_be_opened_by_its_name():
    with shared_machine(gpus=1) as m:
        job = submit(m, "echo one >> /dev/stdout; echo two >> /dev/stderr")
        is_over(m, job, "done")
        assert log_of(m, job) == "one\ntwo\n", log_of(m, job)


def a_job_says_how_far_it_is():
    """In a file of its own in a directory that is not its own."""
    with shared_machine(gpus=1) as m:
        job = submit(m, f"{m.path('bin/takt')} progress --steps 7; sleep 600")
        kit.until(lambda: ask(m, ALICE, "GET", f"/v1/jobs/{job}").get("progress", {}).get("steps") == 7,
                  lambda: (ask(m, ALICE, "GET", f"/v1/jobs/{job}"), log_of(m, job)))
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")


def another_user_learns_nothing_of_an_attempt():
    names = ["", "/log", "/spec", "/exit", "/shim", "/started", "/lock", "/isolation"]
    with shared_machine(gpus=1) as m:
        job = submit(m, "sleep 600")
        runs(m, job)
        seen = [name for name in names[1:] if as_user(BOB, os.access, attempt(m, job) + name, os.F_OK)]
        assert not seen, seen
        assert os.stat(attempt(m, job)).st_uid == 0
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")


def what_its_user_cannot_enter_root_does_not_for_him():
    with shared_machine(gpus=1) as m:
        os.mkdir(m.path("closed"), 0o700)
        job = ask(m, ALICE, "POST", "/v1/jobs", {**job_of(["pwd"], 1), "cwd": m.path("closed")})["id"]
        view = is_over(m, job, "failed")
        assert "Permission denied" in view.get("message", ""), view
        os.mkdir(m.path("open"), 0o755)
        with open(m.path("open/program"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho never\n")
        os.chmod(m.path("open/program"), 0o700)
        job = ask(m, ALICE, "POST", "/v1/jobs", job_of([m.path("open/program")], 1))["id"]
        view = is_over(m, job, "failed")
        assert "Permission denied" in view.get("message", "") and "never" not in log_of(m, job), view


def nobody_else_plays_a_shim():
    """Its words on a command line have root signal nobody."""
    with shared_machine(gpus=1) as m:
        job = submit(m, "sleep 600")
        shim, _ = runs(m, job)
        words = kit.environ_of(shim, "cmdline").decode().rstrip("\0").split("\0")
        player = subprocess.Popen(words[:3], executable="/bin/cat", stdin=subprocess.PIPE, user=BOB, group=BOB,
                                  extra_groups=[], cwd="/", stderr=subprocess.DEVNULL)
        ask(m, ALICE, "POST", f"/v1/jobs/{job}/cancel", {})
        is_over(m, job, "cancelled")
        assert player.poll() in (None, 1) and player.poll() != -signal.SIGTERM
        player.kill()
        player.wait(kit.WAIT_S)


if __name__ == "__main__":
    sys.exit(kit.main([
        *map(alone, attacks()),
        its_shim_is_roots_and_goes_on,
        a_stopped_shim_would_keep_no_job,
        a_forged_end_gives_no_gpu_away,
        an_end_of_another_job_is_none,
        an_end_with_a_secret_that_is_guessed_is_none,
        an_end_that_names_nobody_is_none,
        no_process_of_a_job_knows_its_secret,
        a_daemon_of_its_own_ends_with_it,
        without_its_environment_it_ends_too,
        one_that_stops_itself_ends,
        one_in_a_namespace_of_its_own_ends,
        what_outlives_the_first_process_ends,
        many_that_fork_all_the_time_end,
        who_kills_its_own_parents_ends,
        a_job_is_its_users,
        ranks_are_their_users,
        a_hook_is_its_users,
        a_staged_job_and_its_prefetch_are_their_users,
        a_terminal_is_its_users,
        a_log_can_be_opened_by_its_name,
        a_job_says_how_far_it_is,
        another_user_learns_nothing_of_an_attempt,
        what_its_user_cannot_enter_root_does_not_for_him,
        nobody_else_plays_a_shim,
    ]))
