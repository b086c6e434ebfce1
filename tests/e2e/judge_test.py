#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of the end-to-end tests can fail: each forged record has one violation, which it names.

Usage: judge_test.py BUILD_FOLDER
"""
import sys

import judge
import kit

FINE = """begin 1 1.1 0,1 100
end 1 1.1 0,1 100 200
begin 2 2.1 0 210
begin 3 3.1 1 215
end 2 2.1 0 210 300
end 3 3.1 1 215 310
begin 4 4.1 - 220
end 4 4.1 - 220 230
"""
SUBMITS = [judge.Submit(1, 2, 0, 10, 20), judge.Submit(2, 1, 5, 30, 40),
           judge.Submit(3, 1, 0, 32, 42), judge.Submit(4, 0, 0, 44, 50)]


def witness(*changes):
    text = FINE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return kit.Witness(text.splitlines())


def expect(found, *words):
    assert len(found) == 1 and all(word in found[0] for word in words), (found, words)


def a_good_record_passes():
    w = witness()
    assert not judge.handed_out_twice(w) and not judge.not_run_once(w, [1, 2, 3, 4])
    assert not judge.wrong_gpus(w, SUBMITS) and not judge.out_of_order(w, SUBMITS)
    views = {job: {"state": "done"} for job in (1, 2, 3, 4)}
    assert not judge.ended_otherwise(w, views)


def a_busy_lock_is_seen():
    expect(judge.handed_out_twice(kit.Witness((FINE + "busy 3 3.1 gpu-1 216").splitlines())),
           "job 3", "gpu-1")


def only_what_was_killed_may_be_dying():
    record = kit.Witness(["begin 1 1.1 0,1 100", "dying 2 2.1 gpu-1 150", "begin 2 2.1 1 160", "end 2 2.1 1 160 200"])
    assert not judge.handed_out_twice(record, {1}) and not judge.handed_out_twice(record, None)
    expect(judge.handed_out_twice(record, {2}), "job 2", "gpu-1", "dying")
    expect(judge.handed_out_twice(record), "job 2", "dying")


def an_overlap_is_seen_without_the_lock():
    expect(judge.handed_out_twice(witness(("end 1 1.1 0,1 100 200", "end 1 1.1 0,1 100 212"))),
           "GPU 0", "job 2 began while job 1 ran")


def parts_of_a_gpu_add_up():
    def parts(milli):
        return kit.Witness([f"end {job} {job}.1 0@{milli} 100 200" for job in (1, 2)])
    assert not judge.handed_out_twice(parts(500)) and not judge.handed_out_twice(parts(0))
    expect(judge.handed_out_twice(parts(501)), "GPU 0", "job 2 began while job 1 ran")


def an_attempt_that_began_twice_is_seen():
    views = {job: {"attempt": 2} for job in (1, 2, 3, 4)}
    assert not judge.attempts_run_twice(witness(), views)
    expect(judge.attempts_run_twice(witness(("begin 4 4.1 - 220\n", "begin 4 4.1 - 220\nbegin 4 4.1 - 240\n")), views),
           "attempt 4.1 of job 4 began 2 times")
    expect(judge.attempts_run_twice(witness(), {**views, 4: {"attempt": 0}}), "job 4 began 1 times in 0 attempts")


def a_job_before_its_turn_is_seen():
    assert not judge.before_its_turn(witness(), {2: 1})
    expect(judge.before_its_turn(witness(), {3: 2}), "job 3 began before job 2 had ended")


def beside_a_frozen_job_is_no_overlap_but_only_there():
    late = ("end 1 1.1 0,1 100 200", "end 1 1.1 0,1 100 290")
    record = witness(late, ("begin 2 2.1", "beside 2 2.1 gpu-0 210\nbegin 2 2.1"))
    expect(judge.handed_out_twice(record), "GPU 1", "job 3 began while job 1 ran")


def a_job_that_never_ran_is_seen():
    w = witness(("begin 4 4.1 - 220\nend 4 4.1 - 220 230\n", ""))
    expect(judge.not_run_once(w, [1, 2, 3, 4]), "job 4 began 0 times")
    expect(judge.ended_otherwise(w, {j: {"state": "done"} for j in (1, 2, 3, 4)}), "job 4 is done")


def a_job_that_ran_twice_is_seen():
    w = witness(("begin 4 4.1 - 220\n", "begin 4 4.1 - 220\nbegin 4 4.2 - 240\n"))
    expect(judge.not_run_once(w, [1, 2, 3, 4]), "job 4 began 2 times")
    expect(judge.ended_otherwise(w, {j: {"state": "done"} for j in (1, 2, 3, 4)}),
           "job 4 began 2 times")


def a_job_that_may_be_repeated_may():
    w = witness(("begin 4 4.1 - 220\n", "begin 4 4.1 - 220\nbegin 4 4.2 - 240\n"))
    assert not judge.ended_otherwise(w, {j: {"state": "done"} for j in (1, 2, 3, 4)}, {4})


def a_forgotten_job_is_seen():
    expect(judge.lost([1, 2, 3], {1: {}, 3: {}}), "job 2 was accepted")


def a_job_that_failed_for_no_reason_is_seen():
    views = {1: {"state": "done"}, 2: {"state": "failed"}, 3: {"state": "lost"}}
    expect(judge.not_done(views, {3}), "job 2 is failed")


def a_job_of_nobody_is_seen():
    expect(judge.not_run_once(witness(), [1, 2, 3]), "job 4 ran but was never accepted")
    expect(judge.ended_otherwise(witness(), {j: {"state": "done"} for j in (1, 2, 3)}),
           "job 4 ran but was never accepted")


def a_job_without_an_end_is_seen():
    views = {job: {"state": "done"} for job in (1, 2, 3)}
    expect(judge.ended_otherwise(witness(), {**views, 4: {"state": "running"}}), "never ended")


def too_few_gpus_are_seen():
    expect(judge.wrong_gpus(witness(("begin 3 3.1 1 215", "begin 3 3.1 - 215")), SUBMITS),
           "job 3 asked for 1")
    expect(judge.wrong_gpus(witness(("begin 1 1.1 0,1 100", "begin 1 1.1 0,0 100")), SUBMITS),
           "job 1 asked for 2")


def overtaking_is_seen():
    """Job 2 of priority 5 gets the GPU only after job 3 has come and gone."""
    w = witness(("begin 3 3.1 1 215", "begin 3 3.1 0 205"), ("end 3 3.1 1 215 310", "end 3 3.1 0 205 208"))
    expect(judge.out_of_order(w, SUBMITS), "job 3 (priority 0) began while job 2")


def overtaking_among_equals_is_seen():
    """Job 4 was sent after job 3 had been accepted, and takes its turn."""
    submits = SUBMITS[:3] + [judge.Submit(4, 1, 0, 44, 50)]
    w = witness(("begin 3 3.1 1 215", "begin 3 3.1 1 240"), ("end 3 3.1 1 215 310", "end 3 3.1 1 240 310"),
                ("begin 4 4.1 -", "begin 4 4.1 1"), ("end 4 4.1 -", "end 4 4.1 1"))
    expect(judge.out_of_order(w, submits), "job 4 (priority 0) began while job 3")


def starting_at_about_the_same_time_is_no_overtaking():
    """Both GPUs came free together: which program gets to its first line first is not takt's."""
    w = witness(("begin 2 2.1 0 210", "begin 2 2.1 0 219"), ("end 2 2.1 0 210", "end 2 2.1 0 219"))
    assert not judge.out_of_order(w, SUBMITS)


if __name__ == "__main__":
    sys.exit(kit.main([case for name, case in list(globals().items())
                       if callable(case) and getattr(case, "__module__", "") == "__main__"
                       and name not in ("witness", "expect")]))
