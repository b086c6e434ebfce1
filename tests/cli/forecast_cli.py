#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt forecast as a person or a program uses it: sources, the choice, networks in files, mistakes.

Usage: forecast_cli.py TAKT
"""
import csv
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, ".."), os.path.join(HERE, "../sim")]
import tap  # noqa: E402
from report_document import document_of  # noqa: E402

TAKT = sys.argv[1]
QUICK = ["--units", "4", "--rounds", "60", "--folds", "1"]
FOLDER = tempfile.TemporaryDirectory(prefix="takt-forecast-")


def takt(*args):
    return subprocess.run([TAKT, "forecast", *args], capture_output=True, text=True, check=False)


def ok(*args):
    done = takt(*args)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout


def path(name):
    return os.path.join(FOLDER.name, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as stream:
        stream.write(text)
    return path(name)


def season(hours=48, gaps=False):
    """A load that repeats itself each hour, a sample a minute."""
    rng = random.Random(1)
    rows = []
    for i in range(60 * hours):
        value = 50 + 40 * math.sin(2 * math.pi * i / 60) + rng.gauss(0, 1)
        rows.append(f"{60 * i},{'' if gaps and i % 50 == 7 else round(value, 3)}\n")
    return "time,value\n" + "".join(rows)


def forecasts_drive_a_governor():
    file = write("governed.csv", season())
    args = ("--history", file, "--season", "1h", "--ahead", "2m", *QUICK)
    result = json.loads(ok(*args, "--govern", "--json"))
    governed = {row["by"]: row for row in result["governed"]}
    assert list(governed) == ["highest clock", "load of now", "persistence", "seasonal", "ewma", "ar",
                              "holt-winters", "lstm", "the future itself"], list(governed)
    assert governed["highest clock"]["mean_mhz"] == 1410
    assert governed["load of now"]["energy_wh"] < governed["highest clock"]["energy_wh"]
    assert governed["holt-winters"]["missed_load_pct"] <= governed["load of now"]["missed_load_pct"]
    assert "MODELLED" in ok(*args, "--govern") and "MODELLED" not in ok(*args)
    without = json.loads(ok(*args, "--govern", "--without", "lstm", "--json"))["governed"]
    assert [row["by"] for row in without].count("lstm") == 0 and len(without) == 8
    zeros = write("zeros.csv", "time,value\n" + "".join(f"{60 * i},0\n" for i in range(600)))
    done = takt("--history", zeros, "--govern", *QUICK)
    assert done.returncode == 64 and "no load" in done.stderr, done


def what_repeats_itself_is_told():
    file = write("season.csv", season())
    result = json.loads(ok("--history", file, "--season", "1h", *QUICK, "--json"))
    scores = {score["name"]: score for score in result["forecasters"]}
    assert list(scores) == ["persistence", "seasonal", "ewma", "ar", "holt-winters", "lstm"]
    assert result["chosen"] == "holt-winters", result["chosen"]
    assert result["simulated"] is False and result["horizon_s"] == 300
    assert scores["holt-winters"]["mae"] < 1.2 < scores["persistence"]["mae"]
    assert scores["holt-winters"]["missed"] < scores["persistence"]["missed"]
    assert scores["holt-winters"]["wasted_wh"] < scores["persistence"]["wasted_wh"]
    expected = 50 + 40 * math.sin(2 * math.pi * (result["forecast"]["at_s"] / 60) / 60)
    assert abs(result["forecast"]["value"] - expected) < 3
    assert result["forecast"]["at_s"] == 60 * (48 * 60 - 1 + 5)


def a_gap_is_no_zero():
    file = write("gaps.csv", season(gaps=True))
    text = ok("--history", file, "--season", "1h", "--without", "lstm")
    assert "2880 steps of 1m, 58 missing" in text, text
    assert "* holt-winters" in text and "nine of ten are within" in text
    table = list(csv.DictReader(io.StringIO(ok("--history", file, "--season", "1h", "--without",
                                               "lstm", "--csv"))))
    assert float(table[4]["mae"]) < 1.2, table[4]
    assert table[5]["why_not"] == "left out" and table[5]["mae"] == ""
    assert [row["chosen"] for row in table] == ["0", "0", "0", "0", "1", "0"]


def jobs_are_a_load():
    rows = "".join(f"{600 * i},900,2\n" for i in range(300))
    file = write("jobs.csv", "submit_s,duration_s,gpus\n" + rows)
    result = json.loads(ok("--trace", file, "--season", "10m", "--without", "lstm", "--json"))
    scores = {score["name"]: score for score in result["forecasters"]}
    assert result["unit"] == "GPUs" and result["simulated"] is True
    # Five minutes of four GPUs, then five of two.
    assert scores["persistence"]["mae"] == 2 and scores["seasonal"]["mae"] == 0
    assert result["chosen"] == "seasonal" and result["forecast"]["value"] in (2, 4)


def a_recording_is_a_series():
    samples = "".join(f"sample 0 {1000000 * i} power_mw={100000 + 50000 * (i // 30 % 2)}\n"
                      for i in range(4000))
    file = write("board.takt", "takt-recording 1\ninfo simulated 1\ngpus 1\n" + samples)
    args = ["--recording", file, "--step", "1s", "--ahead", "5s", "--season", "1m"]
    result = json.loads(ok(*args, "--without", "lstm", "--json"))
    assert result["unit"] == "W" and result["simulated"] is True and result["steps"] == 4000
    assert result["chosen"] == "seasonal", result["chosen"]
    bad = takt(*args, "--gpu", "3")
    assert bad.returncode in (64, 65), bad
    assert "no 3" in bad.stderr


def a_network_is_trained_once_and_used():
    file, net = write("train.csv", season()), path("load.lstm")
    args = ["--history", file, "--season", "1h"]
    said = json.loads(ok("train", *args, *QUICK, "--out", net, "--json"))
    assert said["units"] == 4 and said["until_s"] == 60 * (2016 - 1), said
    first = open(net, "rb").read()
    ok("train", *args, *QUICK, "--out", net)
    assert open(net, "rb").read() == first
    assert not os.path.exists(net + ".part")
    result = json.loads(ok(*args, "--model", net, "--json"))
    assert result["held_out"] == 2880 - 2016
    assert "mae" in result["forecasters"][5]
    # Trained on everything: nothing is left to test it on.
    ok("train", *args, *QUICK, "--out", net, "--held-out", "1")
    assert json.loads(ok(*args, "--model", net, "--json"))["held_out"] == 28
    short = write("short.csv", season(20))
    done = takt("--history", short, "--season", "1h", "--model", net)
    assert done.returncode == 64 and "trained on all of this series" in done.stderr, done
    other = json.loads(ok(*args, "--ahead", "10m", "--model", net, "--json"))
    assert "5 steps ahead" in other["forecasters"][5]["why_not"]


def a_damaged_network_is_refused():
    file, net = write("damage.csv", season()), path("damage.lstm")
    ok("train", "--history", file, "--season", "1h", *QUICK, "--out", net)
    text = open(net, encoding="ascii").read()
    for damaged, why in ((text[:-20], "line"), (text.replace("lstm 1", "lstm 9", 1), "version 9"),
                         (text.replace("window 48", "window 47"), "checksum"), ("", "line 1")):
        write("damage.lstm", damaged)
        done = takt("--history", file, "--season", "1h", "--model", net)
        assert done.returncode not in (0, 1) and why in done.stderr, (why, done)
        assert "damage.lstm" in done.stderr


def a_page_is_complete():
    file, page = write("page.csv", season()), path("page.html")
    result = json.loads(ok("--history", file, "--season", "1h", "--without", "lstm", "--html", page, "--json"))
    assert document_of(page) == result and not result["simulated"]
    assert result["command"].startswith("takt forecast --history")
    newest = result["newest"]
    assert newest["steps"] == len(newest["was"]) == len(newest["said"]) == 400
    assert abs(newest["was"][-1] - newest["said"][-1]) < 5 * result["forecast"]["within_p90"], newest


def mistakes_are_told():
    file = write("mistake.csv", "time,value\n0,1\n60,abc\n")
    for args, why in (
            (["--history", path("nowhere.csv")], "nowhere.csv"),
            (["--history", file], "mistake.csv:3"),
            (["--history", write("few.csv", "time,value\n0,1\n60,2\n")], "too few"),
            (["--history", file, "--trace", file], "one of"),
            (["--history", write("s.csv", season(2)), "--ahead", "90s"], "multiple of the step"),
            (["--history", path("s.csv"), "--choose", "taste"], "error or load"),
            (["--history", path("s.csv"), "--without", "gru"], "gru"),
            (["--history", path("s.csv"), "--threshold", "much"], "threshold"),
            (["train", "--history", path("s.csv")], "--out"),
            (["guess"], "train can")):
        done = takt(*args)
        assert done.returncode in (64, 65, 66, 69), (args, done)
        assert why in done.stderr, (args, done.stderr)
        assert done.stdout == "", done.stdout


if __name__ == "__main__":
    sys.exit(tap.main([what_repeats_itself_is_told, forecasts_drive_a_governor, a_gap_is_no_zero, jobs_are_a_load,
                       a_recording_is_a_series, a_network_is_trained_once_and_used, a_damaged_network_is_refused,
                       a_page_is_complete, mistakes_are_told]))
