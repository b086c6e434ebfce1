#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test runner itself: tools/test_run.py on build folders that are made up, with programs of the shell.

Usage: runner_tests.py TOOLS_FOLDER
"""
import contextlib
import csv
import json
import os
import select
import signal
import subprocess
import sys
import tempfile

TOOLS = sys.argv[1]
sys.path[:0] = [TOOLS, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

import tap  # noqa: E402
import test_costs  # noqa: E402
import test_report  # noqa: E402
import waiting  # noqa: E402

GOOD, BAD = "1..1\nok 1 - a\n", "1..1\nnot ok 1 - a\n"
ANY_SKIP = ".\t.*\twhy\n"


# Build folders, and runs of them.

def shell(script, *words, name="base / vec", **more):
    """A test program: a line of meson's list. In the script, "$1" and on are the words."""
    suite, label = name.split(" / ")
    return {"name": label, "suite": [f"takt:{suite}"], "cmd": ["sh", "-c", script, "sh", *words], "env": {}, "workdir": None,
            "timeout": 60, "protocol": "tap", "depends": [], **more}


def says(out, status=0, err="", **more):
    return shell(f'printf %s "$1"; printf %s "$2" >&2; exit {status}', out, err, **more)


# Two cases, of which the second begins when the runner has read of the first, and takes more than a second.
DEAR = """
import array, fcntl, termios, time
print("1..2\\nok 1 - a", flush=True)
unread = array.array("i", [1])
while unread[0]:
    fcntl.ioctl(1, termios.FIONREAD, unread)
    time.sleep(0.01)
time.sleep(1.1)
print("ok 2 - b")
"""


def dear(name="base / vec"):
    return {**shell("", name=name), "cmd": [sys.executable, "-c", DEAR]}


def write(*path, text):
    path = os.path.join(*path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def make_build(root, kind, programs, targets=(), ninja=""):
    folder = os.path.join(root, kind)
    write(folder, "meson-info", "intro-tests.json", text=json.dumps(programs))
    write(folder, "meson-info", "intro-targets.json", text=json.dumps(
        [{"id": name, "filename": [os.path.join(folder, name)], "build_by_default": True} for name in targets]))
    options = [{"name": "b_sanitize", "value": "none" if kind == "plain" else "address"}]
    write(folder, "meson-info", "intro-buildoptions.json", text=json.dumps(options))
    write(folder, "build.ninja", text=ninja)
    return [f"--{kind}", folder]


def start(root, *options, skips="", costs="", fds=()):
    """The runner at work. `costs` are rows "BUILD,PROGRAM,WALL_S,CPU_S" of the table."""
    table = [",".join(test_costs.FIELDS)]
    for row in costs.split():
        build, program, wall_s, cpu_s = row.replace("_/_", " / ").split(",")
        table.append(f"d,c,c,m,yes,{build},{program},,{wall_s},{cpu_s},")
    return subprocess.Popen(
        [sys.executable, "-B", os.path.join(TOOLS, "test_run.py"), "--skips", write(root, "skips", text=skips),
         "--costs", write(root, "costs.csv", text="\n".join(table) + "\n"), *options],
        env=dict(os.environ, TAKT_TEST_ENV="moon"), pass_fds=fds, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(runner):
    """(exit status, lines, standard error)"""
    out, err = runner.communicate()
    return runner.returncode, out.splitlines(), err


def run(programs, *options, sanitized=None, **how):
    with tempfile.TemporaryDirectory() as root:
        folders = make_build(root, "plain", programs)
        if sanitized is not None:
            folders += make_build(root, "sanitized", sanitized)
        return finish(start(root, "--built", *folders, *options, **how))


def is_verdict(ran, status, last):
    """Asserts how the run ended; all that it printed."""
    got, lines, err = ran
    assert lines and lines[-1] == last and got == status, (got, lines, err)
    return "\n".join(lines)


def expect(status, last, *args, **kwargs):
    return is_verdict(run(*args, **kwargs), status, last)


@contextlib.contextmanager
def watched():
    """(descriptor to hand down, function): the function returns what was written to the descriptor when nobody has it open
    any more, or only the first words of it."""
    ours, theirs = os.pipe()

    def told(first=False):
        nonlocal theirs
        text = b""
        if theirs is not None:
            os.close(theirs)
            theirs = None
        while True:
            ready, _, _ = select.select([ours], [], [], waiting.WAIT_S)
            assert ready, f"still open after {waiting.WAIT_S} s; told: {text}"
            data = os.read(ours, 4096)
            text += data
            if first or not data:
                return text.decode()

    try:
        yield theirs, told
    finally:
        os.close(ours)
        if theirs is not None:
            os.close(theirs)


def lives_on(fd):
    """Words of the shell that start a process, away from its parent and in a session of its own, that ends on no account."""
    return f"(setsid sh -c 'trap \"\" TERM INT HUP; echo begun >/proc/self/fd/{fd}; while :; do sleep 1000; done' &)"


# What counts.

def cases_are_counted():
    expect(0, "3 passed, 0 failed", [says("1..2\nok 1 - a\nok 2 - b\n"),
                                     says("no tap at all\n", name="e2e / run", protocol="exitcode")])


def trials_become_a_table():
    text = expect(0, "3 passed, 0 failed", [
        says("1..1\n# trials: 12 calls fail\n# trials: 3 deaths\nok 1 - a\n"),
        says("1..2\n# trials: 5 deaths\nok 1 - b\n# trials: 6 deaths\nok 2 - c\n", name="e2e / x")])
    for line in ("fault trials: 26", "     12 base / vec: calls fail", "      3 base / vec: deaths",
                 "     11 e2e / x: deaths"):
        assert line in text.splitlines(), text


def failures_show_their_log():
    text = expect(1, "1 passed, 1 failed", [says("1..2\nok 1 - a\nnot ok 2 - b\n# x.c:7: 3 != 4\n", 1)])
    assert "FAILED base / vec: b" in text and "x.c:7: 3 != 4" in text, text


def what_a_failed_case_said_is_not_lost_in_what_came_later():
    text = expect(1, "1 passed, 1 failed", [says("1..2\nnot ok 1 - a\n# x.c:7: 3 != 4\nok 2 - b\n# of b\n", 1, "chatter\n" * 100)])
    assert "x.c:7: 3 != 4" in text and "of b" not in text and text.count("chatter") < 100, text


def crash_after_good_cases_fails():
    expect(1, "1 passed, 1 failed", [shell("printf '1..2\nok 1 - a\n'; kill -SEGV $$")])
    text = expect(1, "2 passed, 1 failed", [says("1..2\nok 1 - a\nok 2 - b\n", 1, "LeakSanitizer")])
    assert "FAILED base / vec: the program after its last case" in text and "LeakSanitizer" in text, text
    expect(1, "1 passed, 1 failed", [says("1..2\nok 1 - a\n")])


def silence_is_no_success():
    text = expect(1, "0 passed, 1 failed", [says("hello\n")])
    assert "FAILED base / vec: no case reported" in text, text
    expect(1, "1 passed, 1 failed", [says(GOOD, 77)])
    expect(1, "0 passed, 1 failed", [dict(says(""), cmd=["/nowhere/at/all"])])


def nothing_ran_is_failure():
    expect(1, "0 passed, 1 failed", [])
    expect(1, "0 passed, 1 failed", [says(GOOD)], "--only", "nonesuch")
    expect(1, "0 passed, 0 failed", [says("1..0 # SKIP x\n")], skips=ANY_SKIP)


def only_what_is_named_runs():
    text = expect(0, "1 passed, 0 failed", [says(GOOD), says(BAD, name="e2e / e2e x"), says(GOOD, name="e2e / e2e y")],
                  "--only", "e2e y$")
    assert "e2e / e2e y: ok" in text and "vec" not in text, text


def dear_cases_are_named():
    text = expect(0, "2 passed, 0 failed", [dear()])
    assert "the dearest cases:" in text and "plain: base / vec: b" in text and "1 programs: " in text, text


# Skips.

SKIPPED = [says("1..2\nok 1 - a\nok 2 - b # SKIP no GPU\n")]


def unlisted_skip_fails_and_is_told_at_once():
    text = expect(1, "1 passed, 1 failed", SKIPPED)
    assert "FAILED skipped base / vec: b: no GPU" in text, text
    assert "base / vec: b: skipped, not in tests/skips" in text.split("\ntime: ")[0], text
    expect(1, "1 passed, 1 failed", SKIPPED, skips="mars\tbase / vec: b\twhy\n")
    expect(1, "1 passed, 1 failed", SKIPPED, skips="moon\tbase / vec\twhy\n")


def listed_skip_is_told():
    text = expect(0, "1 passed, 0 failed", SKIPPED, skips="# x\n\nmoon\tbase / .*: b\twhy\n")
    assert "\nskipped base / vec: b: no GPU" in text and "environment: " in text, text


def reasons_are_found():
    for program in (says("1..2\nok 1 - a\n# the reason\nok 2 # SKIP b\n"),  # cmocka
                    says("trying\nthe reason\n", 77, protocol="exitcode"),
                    says("1..0 # SKIP the reason\n")):
        got, lines, _ = run([program, says(GOOD, name="base / map")], skips=ANY_SKIP)
        assert got == 0 and any("the reason" in line for line in lines), lines
    text = expect(1, "1 passed, 1 failed", [says("1..2\nok 1 - a\nok 2 # SKIP b\n")], skips=ANY_SKIP)
    assert "gives no reason" in text, text


def bad_skip_line_is_refused():
    got, lines, err = run(SKIPPED, skips="moon base why\n")
    assert got != 0 and "skips:1" in err, (lines, err)


def the_real_list_is_well_formed():
    test_report.read_skips(os.path.join(TOOLS, "..", "tests", "skips"))


# Two builds.

def which_build(name, *suites):
    """One case, named by the build and by whether it knows of the sanitized one beside it."""
    program = shell('case $TAKT_TEST_ENV in *beside-sanitized) with=" beside";; esac\n'
                    'printf "1..1\nok 1 - ${PWD##*/}$with\nnot here # %s\n"', name=name)
    return dict(program, suite=program["suite"] + list(suites))


PLAIN = [which_build("base / vec"), which_build("house / style"), which_build("twin / cli", "takt:plain")]
SANITIZED = [which_build("base / vec"), which_build("twin / cli", "takt:plain")]


def ran(lines):
    """{"BUILD | SUITE / TEST"} of the lines about programs."""
    return {line.split(" s  ")[1].split(": ")[0] for line in lines if ": ok (" in line or ": FAILED (" in line}


def each_case_runs_once():
    got, lines, err = run(PLAIN, sanitized=SANITIZED)
    assert got == 0 and lines[-1] == "4 passed, 0 failed", (lines, err)
    assert ran(lines) == {"plain | house / style", "plain | twin / cli", "sanitized | base / vec", "sanitized | twin / cli"}, lines


def the_whole_runs_in_each_build():
    got, lines, err = run(PLAIN, "--whole", sanitized=SANITIZED)
    assert got == 0 and lines[-1] == "5 passed, 0 failed", (lines, err)
    assert ran(lines) >= {"plain | base / vec", "sanitized | base / vec"}, lines


def programs_know_of_the_other_build():
    told = [shell('printf "1..1\n%s 1 - a\n" "$([ "$TAKT_TEST_ENV" = "$1" ] && echo ok || echo not ok)"', word, name="house / env")
            for word in ("moon beside-sanitized", "moon")]
    expect(0, "2 passed, 0 failed", told[:1], sanitized=[says(GOOD)])
    expect(0, "2 passed, 0 failed", told[1:], "--whole", sanitized=[says(GOOD)])
    expect(0, "1 passed, 0 failed", told[1:])


def a_program_that_knows_runs_only_what_is_marked():
    @tap.plain
    def marked():
        pass

    def other():
        pass

    def names(cases, sanitized):
        return [name for name, _, _ in tap.chosen(cases, sanitized)]

    before = os.environ.get("TAKT_TEST_ENV")
    try:
        os.environ["TAKT_TEST_ENV"] = "moon beside-sanitized"
        assert names([other, marked], False) == ["marked"] and names([other, marked], True) == ["other", "marked"]
        assert names([other], False) == ["other"]
        os.environ["TAKT_TEST_ENV"] = "moon"
        assert names([other, marked], False) == ["other", "marked"]
    finally:
        os.environ.pop("TAKT_TEST_ENV")
        os.environ.update({"TAKT_TEST_ENV": before} if before is not None else {})


def failures_say_in_which_build():
    text = expect(1, "1 passed, 1 failed", [says(GOOD, name="house / style")], sanitized=[says(BAD, 1)])
    assert "FAILED sanitized | base / vec: a" in text, text


def quick_leaves_out_what_is_dear():
    programs = [says(GOOD, name=f"base / {label}") for label in ("new", "cheap", "long", "busy", "elsewhere")]
    got, lines, _ = run(programs, "--quick", costs="plain,base_/_cheap,1,1 plain,base_/_long,20,1 plain,base_/_busy,10,4 "
                        "sanitized,base_/_elsewhere,90,1")
    assert got == 0 and lines[-1] == "2 passed, 0 failed" and ran(lines) == {"base / new", "base / cheap"}, lines
    assert any("3 programs of 5 take longer" in line for line in lines), lines


def what_it_cost_is_recorded():
    with tempfile.TemporaryDirectory() as root:
        table = os.path.join(root, "costs.csv")
        folders = make_build(root, "plain", [dear()])
        is_verdict(finish(start(root, "--built", "--record", *folders)), 0, "2 passed, 0 failed")
        wall_s, cpu_s, _ = test_costs.read(table)["plain", "base / vec"]
        assert wall_s >= 1 > cpu_s, (wall_s, cpu_s)
        with open(table, newline="", encoding="utf-8") as file:
            (row,) = [row for row in csv.DictReader(file) if row["case"] == "b"]
        assert row["program"] == "base / vec" and float(row["wall_s"]) >= 1, row
        for more in (["--quick"], ["--only", "vec"]):  # a part would take the place of the whole
            assert finish(start(root, "--built", "--record", *more, *folders))[0] == 2


# Building.

NINJA = """rule make
  command = touch $out
rule fail
  command = echo 'x.c:7: error: no such thing'; exit 1
build src/takt: make
build tests/needed: make
build tests/unneeded: fail
"""
TARGETS = ["src/takt", "tests/needed", "tests/unneeded"]


def what_is_tested_is_built():
    with tempfile.TemporaryDirectory() as root:
        program = shell('[ -e src/takt ] && [ -e tests/needed ] && printf %s "$1"', GOOD, depends=["tests/needed"])
        folders = make_build(root, "plain", [program], TARGETS, NINJA)
        is_verdict(finish(start(root, *folders)), 0, "1 passed, 0 failed")


def a_build_that_fails_has_a_verdict():
    with tempfile.TemporaryDirectory() as root:
        programs = [says(GOOD, depends=["tests/unneeded"]), says(GOOD, name="base / map")]
        folders = make_build(root, "plain", programs, TARGETS, NINJA)
        text = is_verdict(finish(start(root, *folders)), 1, "0 passed, 1 failed")
        for words in ("FAILED build", "x.c:7: error: no such thing", "2 programs did not run", "cut short: the plain build failed"):
            assert words in text, text


# Second tries.

def shaken(name, then):
    """Fails, and prints `then` the second time."""
    return shell('if mkdir "$1"; then printf "1..2\nok 1 - a\nnot ok 2 - b\n# shaken\n"; exit 1; fi 2>/dev/null; printf %s "$2"',
                 "once-" + name.rsplit(" ", 1)[-1], then, name=name)


def what_runs_takt_whole_is_tried_again_alone():
    other, both = says(GOOD), "1..2\nok 1 - a\nok 2 - b\n"
    text = expect(0, "3 passed, 0 failed", [shaken("e2e / e2e x", both), other])
    assert "UNSTEADY e2e / e2e x: b" in text and "# shaken" in text and "1 unsteady" in text, text
    for then in (both.replace("ok 2", "not ok 2"), "1..2\nok 1 - a\n"):
        text = expect(1, "2 passed, 1 failed", [shaken("e2e / e2e x", then), other])
        assert "UNSTEADY" not in text and "FAILED e2e / e2e x: b" in text, text
    expect(1, "2 passed, 1 failed", [shaken("e2e / e2e x", ""), other])  # nothing came of the second try


def what_must_not_be_tried_again_is_not():
    for name in ("e2e / e2e kill_campaign", "base / vec", "queue / power_loss"):
        expect(1, "1 passed, 1 failed", [shaken(name, "1..2\nok 1 - a\nok 2 - b\n")])
    many = [shaken(f"e2e / e2e {i}", "1..2\nok 1 - a\nok 2 - b\n") for i in range(11)]  # so many are no accident
    expect(1, "11 passed, 11 failed", many)


# Ends before the end.

def a_hang_is_killed_at_its_limit_with_all_that_it_started():
    for limit_s in (0.2, 2, 20):  # the first that is long enough here for a process to start
        with watched() as (fd, told):
            text = expect(1, "1 passed, 2 failed", [
                says(GOOD), shell(f"printf '1..2\nok 1 - a\n' >/dev/null; {lives_on(fd)}; sleep 1000", name="top / hangs",
                                  timeout=limit_s), shell(f"{lives_on(fd)}; sleep 1000", name="base / silent", timeout=limit_s)],
                          fds=[fd])
            if told().count("begun") >= 2:
                break
    else:
        raise AssertionError(text)
    for name in ("top / hangs", "base / silent"):
        assert f"FAILED {name}\n    [KILLED]\n" in text, text
    assert "killed: it exceeded its limit" in text and "again, alone: top / hangs" in text, text


def what_is_left_behind_is_killed():
    with watched() as (fd, told):
        script = f"{lives_on(fd)}; until [ -e begun ]; do sleep 0.01; done; printf '1..1\nok 1 - a\n'"
        script = script.replace("; while", "; >begun; while")
        expect(0, "1 passed, 0 failed", [shell(script)], fds=[fd])
        assert told() == "begun\n"


BY_TURNS = "plain,base_/_first,3000,1e9 plain,base_/_second,2000,1e9 plain,base_/_third,1000,1e9"  # each fills the machine


def by_turns(fd):
    return [says(GOOD, name="base / third"), shell(f"{lives_on(fd)}; sleep 1000", name="base / second"),
            says(GOOD, name="base / first")]


def expect_cut(text, why):
    for words in ("base / first: ok", "FAILED base / second\n    [KILLED]", "FAILED base / third\n    [NOT RUN]",
                  f"the run was cut short: {why}"):
        assert words in text, (words, text)


def the_run_ends_in_time_with_what_it_has():
    for minutes in (0.03, 0.3, 3):  # the first that is long enough here for the second program to have its turn
        with watched() as (fd, told):
            ended = run(by_turns(fd), "--within", str(minutes), costs=BY_TURNS, fds=[fd])
            if "begun" in told():
                break
    expect_cut(is_verdict(ended, 1, "1 passed, 2 failed"), f"its {minutes} minutes are over")


def an_interrupted_run_has_a_verdict():
    for number in (signal.SIGINT, signal.SIGTERM):
        with watched() as (fd, told), tempfile.TemporaryDirectory() as root:
            folders = make_build(root, "plain", by_turns(fd))
            runner = start(root, "--built", *folders, costs=BY_TURNS, fds=[fd])
            told(first=True)
            runner.send_signal(number)
            expect_cut(is_verdict(finish(runner), 1, "1 passed, 2 failed"), "it was interrupted")
            told()


def nothing_outlives_a_runner_that_is_killed():
    with watched() as (fd, told), tempfile.TemporaryDirectory() as root:
        runner = start(root, "--built", *make_build(root, "plain", by_turns(fd)), costs=BY_TURNS, fds=[fd])
        told(first=True)
        runner.kill()
        told()
        finish(runner)


# Many times, under load.

def steady(programs, *options):
    with tempfile.TemporaryDirectory() as root:
        folder = make_build(root, "plain", programs)[1]
        return finish(subprocess.Popen([sys.executable, "-B", os.path.join(TOOLS, "test_steady.py"), "--build", folder, *options],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


def a_case_that_fails_once_in_twenty_runs_is_named():
    shaky = shell('printf "1..1\n"; mkdir once 2>/dev/null && printf "not "; printf "ok 1 - b\n"', name="e2e / shaky")
    text = is_verdict(steady([says(GOOD), shaky], "--within", "30"), 1, "39 passed, 1 failed")
    assert "1 of 8  e2e / shaky (busy): runs that failed" in text, text


def each_load_has_its_share_of_the_runs():
    cores = shell('taskset -cp $$ >&2; printf "1..1\nnot ok 1 - b\n"')
    text = is_verdict(steady([cores], "--times", "20"), 1, "0 passed, 20 failed")
    for load, runs in (("busy", 8), ("one core", 6), ("slow disk", 6)):
        assert f"{runs} of {runs}  base / vec ({load}): runs that failed" in text, text
    alone = text.split("one core ...")[1].split("slow disk ...")[0]
    told = [line.rsplit(" ", 1)[1] for line in alone.splitlines() if "affinity list" in line]
    assert len(told) == 6 and all(core.isdigit() for core in told), text


# Fuzzers, which are programs of the shell here.

def fuzzed(scripts, *options):
    """(what it said, what it kept) of fuzzers that are these."""
    with tempfile.TemporaryDirectory() as root:
        for name, script in scripts.items():
            path = write(root, "fuzz", "fuzz_" + name, text="#!/bin/sh\n" + script)
            os.chmod(path, 0o755)
        ran = finish(subprocess.Popen([sys.executable, "-B", os.path.join(TOOLS, "test_fuzz.py"), "--build", root, "--built", *options],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return ran, sorted(os.listdir(os.path.join(root, "found")))


TRIES = "echo 'stat::number_of_executed_units: 7'\n"
KEEPS = 'for word; do case $word in -artifact_prefix=*) echo x > "${word#*=}crash-1" ;; esac; done\n'


def a_fuzzer_that_finds_something_fails_and_its_input_is_kept():
    ran, kept = fuzzed({"a": TRIES, "b": TRIES + KEEPS + "echo heap-use-after-free; exit 77"})
    text = is_verdict(ran, 1, "1 passed, 1 failed")
    assert kept == ["b-crash-1"] and "b-crash-1" in text and "heap-use-after-free" in text, (kept, text)


def a_fuzzer_that_tries_nothing_or_does_not_end_fails():
    ran, _ = fuzzed({"a": "true", "b": "sleep 1000"}, "--minutes", "0", "--patience", "-299")
    text = is_verdict(ran, 1, "0 passed, 2 failed")
    assert "a: it tried nothing" in text and "b: it did not end" in text, text


def fuzzers_get_their_time_and_only_those_named_run():
    ran, _ = fuzzed({"a": TRIES + 'echo "$*" | grep -q -- "-max_total_time=120 "', "b": "false"}, "--only", "a", "--minutes", "2")
    is_verdict(ran, 0, "1 passed, 0 failed")
    is_verdict(fuzzed({"a": TRIES}, "--only", "none")[0], 1, "0 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(tap.main([
        cases_are_counted, trials_become_a_table, failures_show_their_log,
        what_a_failed_case_said_is_not_lost_in_what_came_later, crash_after_good_cases_fails, silence_is_no_success,
        nothing_ran_is_failure, only_what_is_named_runs, dear_cases_are_named,
        unlisted_skip_fails_and_is_told_at_once, listed_skip_is_told, reasons_are_found, bad_skip_line_is_refused,
        the_real_list_is_well_formed,
        each_case_runs_once, the_whole_runs_in_each_build, programs_know_of_the_other_build,
        a_program_that_knows_runs_only_what_is_marked, failures_say_in_which_build, quick_leaves_out_what_is_dear,
        what_it_cost_is_recorded,
        what_is_tested_is_built, a_build_that_fails_has_a_verdict,
        what_runs_takt_whole_is_tried_again_alone, what_must_not_be_tried_again_is_not,
        a_hang_is_killed_at_its_limit_with_all_that_it_started, what_is_left_behind_is_killed,
        the_run_ends_in_time_with_what_it_has, an_interrupted_run_has_a_verdict, nothing_outlives_a_runner_that_is_killed,
        a_case_that_fails_once_in_twenty_runs_is_named, each_load_has_its_share_of_the_runs,
        a_fuzzer_that_finds_something_fails_and_its_input_is_kept, a_fuzzer_that_tries_nothing_or_does_not_end_fails,
        fuzzers_get_their_time_and_only_those_named_run,
    ]))
