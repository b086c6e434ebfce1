#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What GPUs did is kept: takt history shows it in every form, kill -9 and restarts leave it, whoever asks sees GPUs and
no jobs, and a machine that keeps none says so.

Usage: gpu_history.py BUILD_FOLDER
"""
import csv
import io
import json
import os
import shutil
import sys
import time
import xml.etree.ElementTree

import kit

STEP_MS = 10000


def started(m, *flags):
    m.start(*flags)
    m.client()
    return m


def ask(m, gpu=0, metric="power", **more):
    query = "&".join(f"{name}={value}" for name, value in {"gpu": gpu, "metric": metric, **more}.items())
    return m.clients[-1].ask("GET", f"/v1/history?{query}")


def until_points(m, count, **more):
    """Waits until that many steps of ten seconds are there."""
    def there():
        view = ask(m, step="10s", **more)
        return view if len(view["points"]) >= count else None
    return kit.until(there, lambda: ask(m, step="10s", **more), seconds=4 * kit.WAIT_S)


def raw_samples_come_at_once():
    with kit.machine(gpus=2) as m:
        started(m)
        view = kit.until(lambda: (v := ask(m, step="raw"))["points"] and v, "samples")
        assert view["simulated"] is True and view["metric"] == "power" and view["unit"] == "W", view
        assert view["step_ms"] == 0 and view["uuid"].startswith("GPU-"), view
        at, low, mean, high = view["points"][-1]
        assert low == mean == high and 5 < mean < 2000, view["points"][-1]
        assert abs(at / 1000 - time.time()) < kit.WAIT_S
        for metric, unit in (("sm_clock", "MHz"), ("temperature", "C"), ("memory", "MiB"), ("utilization", "%")):
            view = ask(m, 1, metric, step="raw")
            assert view["points"] and view["unit"] == unit, (metric, view)


def wrong_asks_are_told_what_would_be_right():
    with kit.machine(gpus=1) as m:
        started(m)
        for query, said in (("gpu=7", "there is no GPU 7; there are 1"), ("gpu=99", "'gpu' in the query"),
                            ("metric=colour", "metric must be one of power, "), ("step=5s", "raw, 10s, 1m or 1h"),
                            ("step=raw&metric=fan", "raw samples are kept of power"),
                            ("since_ms=2000&until_ms=1000", "'since_ms' must be before"), ("hue=3", "'hue' is not known")):
            try:
                m.clients[-1].ask("GET", f"/v1/history?{query}")
            except kit.Refused as refused:
                assert said in refused.answer["error"]["message"], (query, refused.answer)
            else:
                raise AssertionError(f"{query} was answered")
        for words, said in ((("--metric", "colour"), "metric must be one of power"), (("--gpu", "5"), "'--gpu'"),
                            (("--metric", "a b"), "there is no metric 'a b'"), (("--step", "5s"), "step must be raw"),
                            (("--since", "yesteryear"), "'--since'"), (("--since", "1h", "--until", "2h"), "before '--until'")):
            done = m.takt("history", *words)
            assert done.returncode != 0 and said in done.stderr and not done.stdout, (words, done)


def steps_are_shown_in_every_form_and_outlive_kill_9():
    with kit.machine(gpus=2) as m:
        started(m)
        job = m.clients[-1].submit(m.load_argv("--profile", "gemm", "--seconds", "600"), gpus=1)
        before = until_points(m, 2)
        first = before["points"][0]
        assert before["step_ms"] == STEP_MS and first[0] % STEP_MS == 0, before
        assert first[1] <= first[2] <= first[3], first
        m.kill()
        kept = [point[0] for point in before["points"]]
        size = {name: os.path.getsize(m.path(f"state/gpu-history/{name}"))
                for name in os.listdir(m.path("state/gpu-history"))}
        assert len(size) == 2 and max(size.values()) < 11 << 20, size
        started(m)
        after = until_points(m, len(kept) + 1)
        assert [point[0] for point in after["points"]][:len(kept)] == kept, (before, after)
        assert ask(m, step="1m")["points"] and ask(m, step="1h")["step_ms"] == 3600000
        assert size == {name: os.path.getsize(m.path(f"state/gpu-history/{name}")) for name in size}

        done = m.takt("history", "--gpu", "0", "--metric", "power,temperature", "--json")
        series = json.loads(done.stdout)["series"]
        assert [one["metric"] for one in series] == ["power", "temperature"] and series[0]["points"], done
        done = m.takt("history", "--gpu", "0", "--metric", "util,mem,temp", "--json")
        assert [one["metric"] for one in json.loads(done.stdout)["series"]] == ["utilization", "memory", "temperature"], done
        rows = list(csv.DictReader(io.StringIO(m.takt("history", "--csv").stdout)))
        assert {row["gpu"] for row in rows} == {"0", "1"} and rows[0]["step_s"] == "10", rows[:2]
        assert float(rows[0]["min"]) <= float(rows[0]["mean"]) <= float(rows[0]["max"]), rows[0]
        assert rows[0]["time"].endswith("Z") and rows[0]["uuid"].startswith("GPU-"), rows[0]
        table = m.takt("history", "--gpu", "0", "--metric", "power", "--table").stdout
        assert "MEAN" in table and table.count("power") >= 3, table
        m.more_env = {"LC_ALL": "C.UTF-8"}
        lines = m.takt("history", "--since", "5m").stdout
        assert "a point every 10s" in lines and any(bar in lines for bar in "▁▂▃▄▅▆▇█"), lines
        assert "simulated" in lines.lower(), lines
        m.more_env = {"LC_ALL": "C"}
        assert m.takt("history", "--since", "5m").stdout.isascii()
        done = m.takt("history", "--since", "9d", "--until", "8d")
        assert done.returncode == 0 and "nothing was measured" in done.stdout, done
        metrics = m.clients[-1].metrics()
        assert metrics["takt_history_records_total"] >= 1 and metrics["takt_history_lost_total"] == 0, metrics
        m.clients[-1].cancel(job["id"])


def charts_are_files():
    with kit.machine(gpus=2) as m:
        started(m)

        def both_have_samples():
            rows = csv.DictReader(io.StringIO(m.takt("history", "--step", "raw", "--since", "1m", "--csv").stdout))
            return {row["gpu"] for row in rows} == {"0", "1"}
        kit.until(both_have_samples, "samples")
        os.mkdir(m.path("tools"))
        path, m.more_env = dict(m.more_env), {**m.more_env, "PATH": m.path("tools")}
        words = ("history", "--step", "raw", "--since", "1m", "--metric", "power,temperature", "--png", m.path("t.png"))
        done = m.takt(*words)
        assert done.returncode == 69 and "needs rsvg-convert" in done.stderr and not done.stdout, done
        assert not os.path.exists(m.path("t.png")), os.listdir(m.folder)
        assert m.takt(*words[:-2], "--svg", m.path("t.svg")).returncode == 0
        with open(m.path("tools/rsvg-convert"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec /bin/cat\n")
        os.chmod(m.path("tools/rsvg-convert"), 0o755)
        done = m.takt(*words)
        assert done.returncode == 0 and "COURSE" in done.stdout, done
        for name in ("t.png", "t.svg"):
            svg = xml.etree.ElementTree.parse(m.path(name)).getroot()
            words_in_it = [text for text in svg.itertext()]
            assert "SIMULATED: power" in words_in_it and "temperature, C" in words_in_it, words_in_it
            assert "GPU 0" in words_in_it and "GPU 1" in words_in_it, words_in_it
        m.more_env = path
        done = m.takt("history", "--since", "9d", "--until", "8d", "--svg", m.path("none.svg"))
        assert done.returncode != 0 and "nothing to draw" in done.stderr and not done.stdout, done
        assert not os.path.exists(m.path("none.svg"))
        if shutil.which("rsvg-convert"):
            assert m.takt("history", "--step", "raw", "--since", "1m", "--png", m.path("real.png")).returncode == 0
            with open(m.path("real.png"), "rb") as file:
                assert file.read(4) == b"\x89PNG"


def a_machine_that_keeps_none_says_so():
    with kit.machine(gpus=1) as m:
        started(m, "--history", "no")
        done = m.takt("history")
        assert done.returncode == 69 and "history = no" in done.stderr, done
        assert not os.path.exists(m.path("state/gpu-history"))
        kit.until(lambda: ask(m, step="raw")["points"], "samples of the last minutes are there all the same")
        m.stop()
        with open(m.path("state/gpu-history"), "w", encoding="ascii"):
            pass
        started(m)
        assert "no history of GPUs is kept" in m.said(), m.said()
        job = m.clients[-1].submit(["true"])["id"]
        assert m.clients[-1].wait(job)["state"] == "done"
        assert m.takt("history").returncode == 69


def a_small_disk_is_left_to_the_queue():
    with kit.machine(gpus=2) as m, kit.small_disk(m, "64m"):
        started(m)
        kit.until(lambda: m.clients[-1].metrics()["takt_history_lost_total"] >= 2, "what is lost is counted", seconds=4 * kit.WAIT_S)
        kit.until(lambda: "of the history of GPUs are lost" in m.said(), m.said)
        assert not any(name.endswith(".hist") for name in os.listdir(m.path("state/gpu-history")))
        done = m.takt("history")
        assert done.returncode != 0 and "takes" in done.stderr and "KiB" in done.stderr, done
        job = m.clients[-1].submit(["true"])["id"]
        assert m.clients[-1].wait(job)["state"] == "done"


if __name__ == "__main__":
    sys.exit(kit.main([
        raw_samples_come_at_once,
        wrong_asks_are_told_what_would_be_right,
        steps_are_shown_in_every_form_and_outlive_kill_9,
        charts_are_files,
        a_machine_that_keeps_none_says_so,
        a_small_disk_is_left_to_the_queue,
    ]))
