#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt simulate as a person or a program uses it: results, the command that repeats them, mistakes.

Usage: simulate_cli.py TAKT TRACES
"""
import csv
import gzip
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402
from report_document import document_of  # noqa: E402

TAKT, TRACES = sys.argv[1:3]
NODES = "name,cpu_milli,memory_mib,gpus,model,count\nn,64000,262144,8,V100M32,4\n"
PODS = ("num_gpu,name,cpu_milli,memory_mib,gpu_milli,weather\n" +
        "".join(f"{1 + i % 3},p{i:03},4000,1000,1000,rain\n" for i in range(40)))
JOBS = "name,submit_s,duration_s,gpus\n" + "".join(
    f"j{i:02},{60 * i},{600 + 300 * (i % 5)},{(1, 2, 4, 16)[i % 4]}\n" for i in range(60))


def takt(*args, env=None):
    return subprocess.run([TAKT, "simulate", *args], capture_output=True, text=True, check=False,
                          env=env)


class Folder:
    """Inputs in a folder of their own."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="takt-sim-")
        self.files = {}
        for name, text in (("nodes", NODES), ("pods", PODS), ("jobs", JOBS)):
            self.files[name] = self.write(f"{name}.csv", text)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def ok(*args):
    done = takt(*args)
    assert done.returncode == 0, (args, done.stderr)
    assert done.stderr == "", done.stderr
    return done.stdout


def a_result_says_where_it_comes_from():
    with Folder() as f:
        args = ["--cluster", f.files["nodes"], "--trace", f.files["pods"], "--bound", "off",
                "--placement", "takt,fgd", "--seeds", "3..5", "--load", "50,100"]
        result = json.loads(ok(*args, "--json"))
        assert result["simulated"] is True and result["protocol"] == "fgd"
        assert result["trace"]["sha256"] == hashlib.sha256(PODS.encode()).hexdigest()
        assert result["trace"]["jobs"] == 40 and result["cluster"]["gpus"] == 32
        assert result["seeds"] == {"first": 3, "last": 5, "count": 3}
        assert result["options"]["tuning_pct"] == "130"
        for record in result["results"]:
            assert {"arrived_pct", "allocation_pct", "sd", "bound_pct", "ci95"} <= set(record)
            assert record["bound_pct"] is None and len(record["by_seed"]) == 3
            assert sum(c["placed"] for c in record["classes"]) > 0
        assert "not computed" in result["bound"]

        # The command that it names gives the same, to the letter.
        words = shlex.split(result["command"])
        assert words[:2] == ["takt", "simulate"]
        assert json.loads(ok(*words[2:])) == result


def gzip_and_json_lines_are_the_same_trace():
    with Folder() as f:
        base = ["--cluster", f.files["nodes"], "--bound", "off", "--seeds", "1", "--json"]
        plain = json.loads(ok(*base, "--trace", f.files["pods"]))
        with gzip.open(f.path("pods.gz"), "wt", encoding="utf-8") as stream:
            stream.write(PODS)
        lines = "".join(json.dumps({"name": row["name"], "cpu_milli": int(row["cpu_milli"]),
                                    "memory_mib": int(row["memory_mib"]),
                                    "gpus": int(row["num_gpu"])}) + "\n"
                        for row in csv.DictReader(PODS.splitlines()))
        f.write("pods.jsonl", lines)
        packed = json.loads(ok(*base, "--trace", f.path("pods.gz")))
        objects = json.loads(ok(*base, "--trace", f.path("pods.jsonl")))
        assert plain["trace"]["sha256"] == packed["trace"]["sha256"]
        assert plain["results"] == packed["results"] == objects["results"]


def instances_of_a_job_are_a_gang():
    """As Alibaba's PAI simulator has it: the first job asks for all 40 GPUs, the second waits for its hour."""
    with Folder() as f:
        trace = f.write("pai.csv", "job_id,user,submit_time,duration,num_gpu,num_inst,gpu_type\n"
                                   "j1,u1,0,3600,1,40,MISC\nj2,u2,10,3600,1,1,MISC\n")
        (result,) = json.loads(ok("--cluster", "uniform:5x8", "--trace", trace, "--queue", "fifo", "--json"))["results"]
        assert result["wait_mean_s"] == 1795, result


def a_result_above_the_bound_fails_loudly():
    with Folder() as f:
        program = f.write("low", "#!/bin/sh\ncat >/dev/null\necho '{\"bounds\":[{\"seed\":\"1\","
                          "\"load_pct\":100,\"bound_pct\":10.5}]}'\n")
        os.chmod(program, 0o755)
        env = dict(os.environ, XDG_CACHE_HOME=f.path("cache"))
        args = ["--cluster", f.files["nodes"], "--trace", f.files["pods"], "--bound", program,
                "--placement", "fgd", "--seeds", "1", "--load", "50,100"]
        for _ in range(2):  # the second time its answer is a kept one
            done = takt(*args, env=env)
            assert done.returncode == 3, done
            assert "above what is possible" in done.stderr, done.stderr
            assert "no scheduler can exceed 10.5000 %" in done.stderr, done.stderr
        assert len(os.listdir(f.path("cache/takt/bound"))) == 1

        missing = f.write("missing", "#!/bin/sh\necho 'install the solver' >&2\nexit 3\n")
        os.chmod(missing, 0o755)
        args[args.index(program)] = missing
        done = takt(*args, env=env)
        assert done.returncode == 0 and "not computed: install the solver" in done.stdout, done


def tables_and_reports_are_written():
    with Folder() as f:
        out = [f.path(name) for name in ("r.json", "r.csv", "r.html")]
        text = ok("--cluster", "uniform:autox8", "--trace", f.files["jobs"], "--queue", "fifo,las",
                  "--load", "60,90", "--output", out[0], "--csv", out[1], "--html", out[2],
                  "--gpu-watts", "30,300")
        assert text.count("offered load") == 2 and "fifo" in text
        with open(out[0], encoding="utf-8") as stream:
            result = json.load(stream)
        for record in result["results"]:
            assert record["jct_mean_s"] >= record["jct_median_s"] / 10 > 0
            assert record["energy_kwh"] > 0 and record["jobs"] == 60
            assert len(record["jct_percentiles_s"]) == 101
        with open(out[1], encoding="utf-8") as stream:
            rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
        assert len(rows) == 4 and float(rows[0]["jct_mean_s"]) > 0
        assert document_of(out[2]) == result


def timed_pods_wait_and_leave():
    with Folder() as f:
        rows = "".join(f"p{i},1000,1000,8,1000,{i},{i + 10}\n" for i in range(8))
        trace = f.write("timed.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,"
                        "deletion_time\n" + rows)
        nodes = f.write("one.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,64000,262144,8,A\n")
        (record,) = json.loads(ok("--protocol", "timed", "--cluster", nodes, "--trace", trace,
                                  "--placement", "fgd", "--seeds", "1", "--json"))["results"]
        # One after the other, 10 s each, submitted a second apart: waits of 0, 9, 18, ... 63 s.
        assert record["wait_mean_s"] == 31.5 and record["wait_max_s"] == 63
        assert record["waited_pct"] == 87.5 and record["impossible"] == 0
        # The trace spans 17 s; all of it allocated.
        assert record["allocation_pct"] == 100


def mistakes_are_named():
    with Folder() as f:
        bad = f.write("bad.csv", "name,cpu_milli,memory_mib,gpus\na,1,1,2\nb,1,1,many\n")
        part = f.write("part.csv", "name,cpu_milli,memory_mib,gpus,gpu_milli\na,1,1,2,500\n")
        nodes, pods, jobs = f.files["nodes"], f.files["pods"], f.files["jobs"]
        cases = (
            ((), 64, "'--cluster' and '--trace' say what is simulated"),
            (("--cluster", nodes, "--trace", "/nowhere"), 66, "open '/nowhere'"),
            (("--cluster", nodes, "--trace", bad), 65,
             f"{bad}:3: column 'gpus': 'many' is not a whole number from 0 to 100000"),
            (("--cluster", nodes, "--trace", part), 69,
             f"{part}:2: column 'gpu_milli': a part of a GPU is asked of one GPU, not of 2"),
            (("--cluster", nodes, "--trace", jobs), 65, "there is no column 'cpu_milli'"),
            (("--cluster", nodes, "--trace", pods, "--queue", "fifo"), 65, "has no submission"),
            (("--cluster", "uniform:8", "--trace", pods), 64, "reads NODESxGPUS"),
            (("--cluster", "uniform:autox8", "--trace", jobs, "--queue", "fifo"), 64,
             "give --load"),
            (("--cluster", nodes, "--trace", pods, "--seeds", "5..1"), 64, "'--seeds' must be"),
            (("--cluster", nodes, "--trace", pods, "--load", "90,80"), 64, "ascending order"),
            (("--cluster", nodes, "--trace", pods, "--placement", "fdg"), 64,
             "there is no placement policy 'fdg'; there are"),
            (("--cluster", nodes, "--trace", jobs, "--queue", "fivo"), 64,
             "there is no queue policy 'fivo'; there are"),
            (("--cluster", nodes, "--trace", jobs, "--queue", "fifo+later"), 64,
             "'+later' of queue policy 'fifo+later' is none of"),
            (("--cluster", nodes, "--trace", pods, "--param", "x"), 64, "must read NAME=NUMBER"),
            (("--cluster", nodes, "--trace", pods, "--protocol", "x"), 64, "must be fgd, timed"),
            (("--cluster", nodes, "--trace", jobs, "--queue", "fifo", "--failures", "mtbf=1h"), 64,
             "mtbf=500h,repair=1h"),
            (("--replay", "/nowhere"), 69, "open '/nowhere'"),
            (("--replay", f.folder.name), 66, "events.jsonl"),
        )
        for args, status, words in cases:
            done = takt(*args)
            assert done.returncode == status and words in done.stderr, (args, done)
            assert done.stdout in ("", "{}"), done.stdout


if __name__ == "__main__":
    sys.exit(tap.main([a_result_says_where_it_comes_from, gzip_and_json_lines_are_the_same_trace,
                       instances_of_a_job_are_a_gang,
                       a_result_above_the_bound_fails_loudly, tables_and_reports_are_written,
                       timed_pods_wait_and_leave, mistakes_are_named]))
