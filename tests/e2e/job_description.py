# SPDX-License-Identifier: Apache-2.0
"""The description of a job, end to end: what may be asked for, in which words, and what comes of it."""
import json
import os
import sys

import kit

def the_first_retry_comes_after_its_backoff():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        job = int(m.takt("submit", "-q", "-n", "0", "--retries", "1", "--retry-backoff", "30m", "--tag", "night,big",
                         "--", "false").stdout)
        view = kit.until(lambda: (lambda v: v if "retry_at_ms" in v else None)(client.job(job)),
                         lambda: client.job(job))
        assert view["retry_backoff_ms"] == 1800000 and view["tags"] == "night,big", view
        assert 1700000 < view["retry_at_ms"] - view["submitted_ms"] < 1900000, view
        assert "first pause 30m00s" in m.takt("show", str(job)).stdout


def write(m, name, text):
    path = m.path("jobs/" + name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def lines_of(m, name):
    with open(m.path("jobs/" + name), encoding="ascii") as file:
        return file.read().splitlines()


def submit(m, name, text, *words):
    return m.takt("submit", "-f", write(m, name, text), *words, cwd=m.path("jobs"))


def a_file_speaks_the_words_of_the_command_line():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        os.mkdir(m.path("jobs/below"))
        done = submit(m, "one.toml", """
            name = "one"
            command = "echo $A $B $HOME; pwd"
            cwd = "below"            # from where takt submit is
            env = { A = "a b", B = 2 }
            no-env = true
            gpus = 2
            cpus = 0.5
            mem = "1G"
            time-limit = "1h30m"
            retries = 2
            retry_backoff = "10s"
            tag = ["night", "big"]
            requeue = true
            hold = false
            priority = -5
            grace = "1s"
            """, "-q")
        assert (done.returncode, done.stdout) == (0, "1\n"), done
        view = client.job(1)
        assert (view["name"], view["gpus"], view["cpu_milli"], view["mem_mib"]) == ("one", 2, 500, 1024), view
        assert (view["time_limit_ms"], view["retries"], view["retry_backoff_ms"]) == (5400000, 2, 10000), view
        assert (view["tags"], view["priority"], view["command"]) == \
            ("night,big", -5, "/bin/sh -c 'echo $A $B $HOME; pwd'"), view


def environments_are_told():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        os.mkdir(m.path("jobs/below"))
        submit(m, "env.json", '{"command": "echo $A; pwd; env | wc -l", "env": {"A": 7}, "no-env": true, "cwd": "below"}')
        assert client.wait(1)["state"] == "done"
        told = client.raw("GET", "/v1/jobs/1/log")[1].decode().split()
        assert told[:2] == ["7", m.path("jobs/below")] and int(told[2]) < 20, told
        done = m.takt("submit", "-q", "-n", "0", "--no-env", "-e", "ONLY=1", "--", "/usr/bin/env")
        assert client.wait(int(done.stdout))["state"] == "done"
        names = {line.split("=")[0] for line in client.raw("GET", f"/v1/jobs/{done.stdout.strip()}/log")[1].decode().split("\n")}
        assert "ONLY" in names and "HOME" not in names and "PATH" not in names, names


GRAPH = """
    [defaults]
    gpus = 0
    env = { OUT = "seen" }

    [[job]]                      # stands before what it comes after
    name = "report"
    after = ["train", "check:any"]
    command = "echo report >> $OUT"

    [[job]]
    name = "prep"
    command = "sleep 0.3; echo prep >> $OUT"

    [[job]]
    name = "train"
    gpus = 1
    after = "prep"
    command = "echo train {seed} $TAKT_PARAM_seed >> $OUT"
    array = { seed = "1-3" }

    [[job]]
    name = "check"
    after = ["prep"]
    command = "echo check >> $OUT; exit 3"
    """


def a_graph_runs_in_its_order():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        told = submit(m, "graph.toml", GRAPH, "--dry-run").stdout
        assert [line.split()[0] for line in told.splitlines()[1:]] == ["NAME", "report", "prep", "train", "check"], told
        assert "(3 jobs)" in told and told.count("would start now") == 1 and told.count("comes after job") == 3, told
        assert not client.live() and not client.history()
        done = submit(m, "graph.toml", GRAPH)
        assert done.stdout.splitlines()[1:] == ["job 6 report", "job 1 prep", "jobs 2 to 4 train", "job 5 check"], done
        m.kill()
        m.start()
        client = m.client()
        assert [client.wait(job)["state"] for job in range(1, 7)] == ["done"] * 4 + ["failed", "done"]
        seen = lines_of(m, "seen")
        assert seen[0] == "prep" and seen[-1] == "report", seen
        assert sorted(seen[1:-1]) == ["check", "train 1 1", "train 2 2", "train 3 3"], seen
        assert "parameters    seed=2" in m.takt("show", "3").stdout


def a_failure_ends_what_comes_after_it():
    with kit.machine(gpus=1) as m:
        m.start()
        client = m.client()
        done = submit(m, "bad.json", json.dumps({"jobs": [
            {"name": "c", "after": ["b"], "command": "true"}, {"name": "b", "after": ["a"], "command": "true"},
            {"name": "a", "command": "false", "gpus": 0}]}), "--json")
        assert json.loads(done.stdout) == {"jobs": [{"name": "c", "id": 3, "jobs": 1}, {"name": "b", "id": 2, "jobs": 1},
                                                    {"name": "a", "id": 1, "jobs": 1}]}, done
        assert [client.wait(job)["state"] for job in (1, 2, 3)] == ["failed", "cancelled", "cancelled"]


def bad_files_are_refused_as_a_whole():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        first = "[[job]]\nname = 'a'\ncommand = 'true'\n"
        for name, text, says in (
                ("x.toml", "gpus = \n", "x.toml': line 1: a value must be"),
                ("x.toml", first + "[[job]]\nname = 'b'\ncommand = 'true'\ngpsu = 1\n",
                 "jobs[1] 'b' (line 4): field 'gpsu' is not known"),
                ("x.toml", first + "after = ['b']\n", "'a' comes after 'b', but no job of the file is called so"),
                ("x.toml", first + "after = 'a'\n", "jobs in a circle: 'a' comes after 'a'"),
                ("x.toml", first + "after = 'c'\n" + first.replace("'a'", "'b'") + "after = 'a'\n" +
                 first.replace("'a'", "'c'") + "after = 'b:any'\n",
                 "jobs in a circle: 'a' comes after 'c' comes after 'b' comes after 'a'"),
                ("x.toml", first + first + first.replace("'a'", "'b'") + "after = 'a'", "'a', but several jobs are called so"),
                ("x.toml", first + "after = 99\n", "there is no job 99"),
                ("x.toml", first + first.replace("'a'", "'b'") + "gpus = 3\n", "jobs[1]: asks for 3 GPUs"),
                ("x.toml", first + "time-limit = '5x'\n", "'--time-limit' must be a time"),
                ("x.toml", first + "time-limit = '5m'\ntime_limit_ms = 5\n", "'time_limit_ms' is also said by"),
                ("x.toml", first + "hold = 1\n", "'hold' must be true or false"),
                ("x.toml", first + "env = { A = [1] }\n", "'env' must be a table"),
                ("x.toml", first + "array = { lr = [] }\n", "must be such as lr=0.1,0.01"),
                ("x.toml", first + "argv = ['x']\n", "without 'argv' beside it"),
                ("x.toml", "gpus = 1\n" + first, "'gpus' is not known beside the list of jobs"),
                ("x.toml", "gpus = 1\n", "field 'argv' is missing"),
                ("x.json", '{"jobs": [\n{"argv": ["true"],\n "gpus": 01}]}', "not valid JSON at line 3, byte"),
                ("x.txt", "[{}", "not valid JSON"), ("x.txt", "[[job]]\n", "field 'argv' is missing"),
                ("x.toml", "job = []\n", "a list of 1 to 1000 jobs")):
            done = submit(m, name, text)
            assert done.returncode in (64, 65, 66) and says in done.stderr, (text, done)
            dry = submit(m, name, text, "--dry-run")
            assert dry.returncode == done.returncode and says in dry.stderr, (text, dry)
        assert not client.live() and not client.history()
        done = m.takt("submit", "-f", "-", "-q", input="command = 'true'\n")
        assert done.stdout == "1\n", done
        done = m.takt("submit", "-f", m.path("jobs/none.toml"))
        assert done.returncode == 66 and "none.toml" in done.stderr, done


def a_grid_is_a_job_a_combination():
    with kit.machine(gpus=4) as m:
        m.start()
        client = m.client()
        done = m.takt("submit", "--grid", "lr=0.1,1e-3", "--grid", "seed=8-10", "--array", "%2", "-n", "1", "--name",
                      "lr{lr}-{seed}", "--", *m.witness_argv(150, "sh", "-c",
                      f"echo {{lr}} {{seed}} {{other}} $TAKT_PARAM_lr $TAKT_PARAM_seed >> {m.path('jobs/seen')}"))
        assert "array of 6 jobs, 1 to 6" in done.stdout, done
        m.kill()
        m.start()
        client = m.client()
        views = [client.wait(job) for job in range(1, 7)]
        want = [(lr, seed) for lr in ("0.1", "1e-3") for seed in (8, 9, 10)]
        assert sorted(lines_of(m, "seen")) == sorted(f"{lr} {seed} {{other}} {lr} {seed}" for lr, seed in want)
        assert [view["name"] for view in views] == [f"lr{lr}-{seed}" for lr, seed in want]
        assert [view["params"] for view in views] == [f"lr={lr} seed={seed}" for lr, seed in want], views
        ends = m.witness().ends
        assert all(sum(other.begin_ns <= end.begin_ns < other.end_ns for other in ends) <= 2 for end in ends), ends
        for words, says in ((("--grid", "lr"), "must be such as lr=0.1"), (("--grid", "a=1-99999"), "over 10000"),
                            (("--grid", "a=1", "--grid", "a=2"), "there already"), (("--array", "%2"), "with '--grid' %2"),
                            (("--grid", "a=1-2", "--array", "0-5"), "counts its 2 jobs itself")):
            done = m.takt("submit", *words, "--", "true")
            assert done.returncode == 64 and says in done.stderr, done


if __name__ == "__main__":
    sys.exit(kit.main([
        the_first_retry_comes_after_its_backoff,
        a_file_speaks_the_words_of_the_command_line,
        environments_are_told,
        a_graph_runs_in_its_order,
        a_failure_ends_what_comes_after_it,
        bad_files_are_refused_as_a_whole,
        a_grid_is_a_job_a_combination,
    ]))
