# SPDX-License-Identifier: Apache-2.0
"""The load of the fault campaigns: small jobs of every kind that a lab submits, and who made way for whom.

What is known of each job is kept for the judge: which were accepted, which may begin more than once,
which come after which.
"""
import http.client
import threading
import time

import kit

GPUS = 4
AGAIN = "again"  # the name of jobs that may begin more than once: known also where the answer was lost
RECENT = 20      # accepted jobs, of which one may be what the next job comes after
BACKLOG = 40     # jobs that wait; more, and those of low rank would never run, nor be ended for others
# How often of a hundred; the rest are whole GPUs, or none.
SHARES, RANKS, PREEMPTIBLE, URGENT, ARRAYS, AFTERS = 12, 8, 16, 8, 4, 8
TURNS_TO_A_FREEZE = 200
LIVES = ("waiting", "starting", "running")
MEM_MIB = 20000  # two of them fit on a GPU
# Only the first rank is the witness: its locks are for one process of a job.
FIRST_RANK = 'test "$RANK" = 0 && exec "$@"; exec sleep 0.01'


class Load:
    """A client that submits jobs until it is told to stop, whether takt answers or not.

    What luck brings about rarely: freezes: now and then there are two of which the second has the first one frozen.
    calls_off: whoever is staged makes way for another soon."""

    def __init__(self, m, luck, pause_s=0.02, environment=100, refusals=(503,), freezes=False, calls_off=False):
        self.freezes, self.turns, self.calls_off = freezes, 0, calls_off
        self.m, self.luck, self.pause_s, self.refusals = m, luck, pause_s, refusals
        self.env = ["PATH=/usr/bin:/bin", "FILL=" + "x" * environment]
        self.accepted, self.repeatable, self.after, self.problems = [], set(), {}, []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _whole(self):
        gpus = self.luck.choice((0, 1, 1, 2, GPUS))
        spec = {"gpus": gpus, "requeue": self.luck.random() < 0.3}
        command = []
        if gpus and self.luck.random() < 0.4:
            spec.update(clock_ask=self.luck.choice(("ceiling", "lock")),
                        clock_mhz=self.luck.choice((600, 900, 1200)))
        if gpus and (self.calls_off or self.luck.random() < 0.5):  # one of higher rank has others called off
            spec.update(stage=True, priority=self.luck.choice(range(40) if self.calls_off else (0, 0, 3)))
        if gpus and self.luck.random() < 0.2:
            spec["prefetch"] = ["/bin/sh", "-c", "sleep 0.1"]
        if gpus and self.luck.random() < 0.1:  # the boards see this one
            command = self.m.load_argv("--steps", 2, "--step-time-ms", 10, "--quiet")
        return self.m.witness_argv(self.luck.choice((5, 20, 60, 300)), *command), spec

    def _share(self):
        return self.m.witness_argv(self.luck.choice((20, 60, 200))), {
            "gpus": self.luck.choice((1, 1, 2)), "gpu_milli": self.luck.choice((250, 500)),
            "stage": self.luck.random() < 0.3}

    def _ranks(self):
        return ["/bin/sh", "-c", FIRST_RANK, "sh", *self.m.witness_argv(30)], {"gpus": 2, "ranks": 2}

    def _preemptible(self):
        return self.m.witness_argv(self.luck.choice((300, 800))), {
            "gpus": self.luck.choice((1, 2)), "preemptible": True, "gpu_mem_mib": MEM_MIB,
            "freezable": self.luck.random() < 0.6, "hook": "exec true", "requeue": self.luck.random() < 0.5}

    def _urgent(self):
        return self.m.witness_argv(20), {"gpus": self.luck.choice((1, 2, GPUS)), "priority": 50, "gpu_mem_mib": MEM_MIB}

    def _array(self):
        return self.m.witness_argv(10), {"gpus": 1, "array_first": 0, "array_last": 2, "array_limit": 2}

    def _after(self):
        before = self.luck.choice(self.accepted[-RECENT:])
        return self.m.witness_argv(10), {"gpus": self.luck.choice((0, 1)), "after": [{"job": before, "any": True}]}

    def _kind(self):
        at = self.luck.randrange(100)
        for chance, kind in ((SHARES, self._share), (RANKS, self._ranks), (PREEMPTIBLE, self._preemptible),
                             (URGENT, self._urgent), (ARRAYS, self._array), (AFTERS, self._after)):
            at -= chance
            if at < 0 and (kind != self._after or self.accepted):
                return kind
        return self._whole

    def _has_begun(self, job):
        """It has all its locks: frozen before, it would seem to have only some of its GPUs."""
        return job in {begin.job for begin in self.m.witness().begins}

    def _freeze(self, client):
        spec = {"gpus": GPUS, "gpu_mem_mib": MEM_MIB, "priority": 100}
        victim = self._submit(client, self.m.witness_argv(3000), {**spec, "preemptible": True, "freezable": True})
        while not self._has_begun(victim) and client.job(victim)["state"] in LIVES and not self.stopping.is_set():
            time.sleep(0.02)
        self._submit(client, self.m.witness_argv(20), {**spec, "priority": 200})

    def _submit(self, client, argv, spec):
        again = bool(spec.get("requeue") or spec.get("preemptible"))
        if again:
            spec["name"] = AGAIN
        job = client.submit(argv, **spec, grace_ms=1000, env=self.env)["id"]
        self.accepted += range(job, job + spec.get("array_last", 0) + 1)
        if again:
            self.repeatable.add(job)
        for before in spec.get("after", ()):
            self.after[job] = before["job"]
        return job

    def _run(self):
        client = kit.Client(self.m.socket, 10)
        while not self.stopping.is_set():
            try:
                if self.freezes and self.turns % TURNS_TO_A_FREEZE == 0:
                    self._freeze(client)
                elif client.status()["waiting"] < BACKLOG:
                    self._submit(client, *self._kind()())
                self.turns += 1  # not after a failure: whoever was to be frozen is to be, still
            except (OSError, http.client.HTTPException):
                client.close()  # takt is dead: the answer is lost, the job may not be
            except kit.Refused as refused:
                if refused.status not in self.refusals:
                    self.problems.append(refused)
            except Exception as problem:
                self.problems.append(problem)
                break
            self.stopping.wait(self.luck.uniform(0, 2 * self.pause_s))
        client.close()

    def stop(self):
        self.stopping.set()
        self.thread.join(kit.WAIT_S)
        assert not self.thread.is_alive() and not self.problems, self.problems


def kinds_of(view):
    """Of what kinds a job was and what was done to it, by takt's own view: to know that the load had them."""
    return [name for name, is_so in (
        ("part of a GPU", view.get("gpu_milli")), ("ranks", view.get("ranks")),
        ("preemptible", view.get("preemptible")), ("of an array", view.get("array_id")),
        ("after another", view.get("after")), ("staged", view.get("stage")),
        ("ended for another, run again", view.get("preemptions"))) if is_so]
