# SPDX-License-Identifier: Apache-2.0
"""What must hold of any run of takt, judged from what the jobs themselves and the clients have seen.

Each function returns a list of violations as sentences; an empty list is a pass. Nothing here asks
takt. Times are CLOCK_MONOTONIC nanoseconds.
"""
import bisect
import collections

WHOLE = 1000  # thousandths of a GPU

# A submit as its client saw it: sent before it went out, accepted once the answer was there.
Submit = collections.namedtuple("Submit", "job gpus priority sent_ns accepted_ns")


def parts_on(gpu, witness):
    """[(when, -1 end or 1 begin, end record)] of the jobs that had a GPU, in order; an end goes first."""
    ends = [end for end in witness.ends if gpu in end.gpus and end.milli]
    return sorted([(end.begin_ns, 1, end) for end in ends] + [(end.end_ns, -1, end) for end in ends])


def more_than_whole(gpu, witness):
    """Jobs that began on a GPU whose others left less than they had, and were not frozen when they came."""
    beside = {beside.attempt for beside in witness.beside if beside.what == f"gpu-{gpu}"}
    found, there = [], []
    for _, what, end in parts_on(gpu, witness):
        if what < 0:
            there.remove(end)
            continue
        if end.attempt not in beside and sum(other.milli for other in there) + end.milli > WHOLE:
            found.append(f"GPU {gpu}: job {end.job} began while job {there[0].job} ran")
        there.append(end)
    return found


def had_it(dying, witness):
    """Jobs that began on that GPU before and had not ended."""
    ended = {end.attempt for end in witness.ends}
    return {begin.job for begin in witness.begins if int(dying.what.split("-")[1]) in begin.gpus
            and begin.attempt not in ended | {dying.attempt}}


def handed_out_twice(witness, killed=()):
    """A lock was busy, or jobs held more than all of a GPU at a time by their own account. One that was killed
    may be dying yet when another is there: a frozen job's processes do so beside the one that it made room for.
    killed None: it is not known who was."""
    found = [f"job {b.job} (attempt {b.attempt}) found {b.what} in use" + (f" by {b.who}" if b.who else "")
             for b in witness.busy]
    if killed is not None:
        found += [f"job {d.job} (attempt {d.attempt}) found {d.what} in use by what was dying"
                  for d in witness.dying if not had_it(d, witness) & set(killed)]
    for gpu in sorted({gpu for end in witness.ends for gpu in end.gpus}):
        found += more_than_whole(gpu, witness)
    return found


def not_run_once(witness, jobs):
    """Every job began once and ended once, and nothing else ran."""
    begun = collections.Counter(b.job for b in witness.begins)
    ended = collections.Counter(e.job for e in witness.ends)
    found = [f"job {job} began {begun[job]} times and ended {ended[job]} times"
             for job in sorted(jobs) if (begun[job], ended[job]) != (1, 1)]
    return found + [f"job {job} ran but was never accepted" for job in sorted(set(begun) - set(jobs))]


def wrong_gpus(witness, submits):
    """Each job saw as many GPUs as it asked for, all different."""
    asked = {s.job: s.gpus for s in submits}
    return [f"job {b.job} asked for {asked[b.job]} GPUs and saw {b.gpus}" for b in witness.begins
            if b.job in asked and (len(b.gpus), len(set(b.gpus))) != (asked[b.job], asked[b.job])]


def freed_before(witness):
    """{job: the last moment before its begin at which one of its GPUs was still another job's}"""
    ends = collections.defaultdict(list)
    for end in witness.ends:
        for gpu in end.gpus:
            ends[gpu].append(end.end_ns)
    for times in ends.values():
        times.sort()

    def last(gpu, before):
        at = bisect.bisect_left(ends[gpu], before)
        return ends[gpu][at - 1] if at else 0
    return {b.job: max((last(gpu, b.begin_ns) for gpu in b.gpus), default=0)
            for b in witness.begins}


def out_of_order(witness, submits):
    """A job was started although one of higher rank, accepted before, waited.

    When takt decided for a job cannot be seen, but bounds can: not before the job was sent nor before
    its GPUs were free of the job before it, and not after it began. Job X overtook Y if Y was accepted
    before X can have been decided for, and X began before Y can have been. (A job that waits holds back
    all of lower rank that want GPUs, however few: docs/sched.md, rule 3.) Rank is priority; among equals the
    one that was accepted before the other was sent comes first.
    """
    freed = freed_before(witness)
    begun = {b.job: b.begin_ns for b in witness.begins}
    ran = [s for s in submits if s.job in begun]
    earliest = {s.job: max(s.sent_ns, freed[s.job]) for s in ran}
    found = []
    for y in ran:
        for x in (s for s in ran if s.gpus):
            above = y.priority > x.priority or \
                (y.priority == x.priority and y.accepted_ns < x.sent_ns)
            if above and y.accepted_ns < earliest[x.job] and begun[x.job] < earliest[y.job]:
                found.append(f"job {x.job} (priority {x.priority}) began while job {y.job} "
                             f"(priority {y.priority}, accepted before) waited")
    return found


def gaps_ns(witness):
    """{GPU: pauses between its jobs}, in the order in which they happened."""
    by_gpu = collections.defaultdict(list)
    for end in witness.ends:
        for gpu in end.gpus:
            by_gpu[gpu].append(end)
    gaps = {}
    for gpu, ends in sorted(by_gpu.items()):
        ends.sort(key=lambda e: e.begin_ns)
        gaps[gpu] = [b.begin_ns - a.end_ns for a, b in zip(ends, ends[1:])]
    return gaps


def ended_otherwise(witness, views, repeatable=()):
    """What takt says of the end of each job ({id: view}) against what the job saw of itself. Those that
    asked to be run again when they are lost may have begun more than once."""
    begun = collections.Counter(b.job for b in witness.begins)
    ended = collections.Counter(e.job for e in witness.ends)
    found = []
    for job, view in sorted(views.items()):
        state, begins, ends = view["state"], begun[job], ended[job]
        if state not in ("done", "failed", "cancelled", "lost", "interrupted"):
            found.append(f"job {job} never ended: it is {state}")
        if state == "done" and (ends < 1 or (ends > 1 and job not in repeatable)):
            found.append(f"job {job} is done, but it ended {ends} times")
        if begins > 1 and job not in repeatable:
            found.append(f"job {job} began {begins} times, and is {state}")
    found += [f"job {job} ran but was never accepted" for job in sorted(set(begun) - set(views))]
    return found


def attempts_run_twice(witness, views):
    """An attempt began more than once, or a job more often than takt says that it tried."""
    tries = collections.Counter((b.job, b.attempt) for b in witness.begins)
    begun = collections.Counter(b.job for b in witness.begins)
    found = [f"attempt {attempt} of job {job} began {number} times"
             for (job, attempt), number in sorted(tries.items()) if number > 1]
    return found + [f"job {job} began {begun[job]} times in {view.get('attempt', 0)} attempts"
                    for job, view in sorted(views.items()) if begun[job] > view.get("attempt", 0)]


def before_its_turn(witness, after):
    """A job began before the one that it comes after ({job: that one}) had ended."""
    first = {b.job: b.begin_ns for b in reversed(witness.begins)}
    last = {}
    for end in witness.ends:
        last[end.job] = max(end.end_ns, last.get(end.job, 0))
    return [f"job {job} began before job {before} had ended" for job, before in sorted(after.items())
            if job in first and first[job] < last.get(before, 0)]


def lost(accepted, views):
    """Accepted jobs that takt does not know any more."""
    return [f"job {job} was accepted, and is not known" for job in sorted(set(accepted) - set(views))]


def not_done(views, excused):
    """Jobs that did not get done although nothing of theirs was killed."""
    return [f"job {job} is {view['state']} ({view.get('message', '')}), and nobody touched it"
            for job, view in sorted(views.items()) if view["state"] != "done" and job not in excused]
