#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deploy/ has for Prometheus and Grafana asks for what takt exports, and each alert is tried both ways.

Usage: alerts.py SOURCE_FOLDER
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

SOURCE = sys.argv[1]
RULES = os.path.join(SOURCE, "deploy/prometheus/takt.rules.yml")
TESTS = os.path.join(SOURCE, "tests/deploy/alerts.test.yml")


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def exported():
    """Names that the page can have: they stand in the sources as they are."""
    sources = glob.glob(os.path.join(SOURCE, "src/telemetry/*.c")) + glob.glob(os.path.join(SOURCE, "src/daemon/*.c"))
    return {name for path in sources for name in re.findall(r'"(takt_[a-z0-9_]+)"', text(path))}


def dashboards():
    return {path: json.loads(text(path)) for path in glob.glob(os.path.join(SOURCE, "deploy/grafana/*.json"))}


def queries():
    """[(where, query)] of alerts, panels and variables."""
    found = [(os.path.basename(RULES), expr) for expr in re.findall(r"^ +expr: (.*)$", text(RULES), re.M)]
    for path, board in dashboards().items():
        found += [(f"{os.path.basename(path)}: {panel['title']}", target["expr"])
                  for panel in board["panels"] for target in panel["targets"]]
        found += [(f"{os.path.basename(path)}: ${one['name']}", one["query"])
                  for one in board["templating"]["list"] if one["type"] == "query"]
    return found


def every_metric_that_is_asked_for_is_exported():
    known, asked = exported(), queries()
    assert len(known) > 30 and len(asked) > 40, (len(known), len(asked))
    for where, query in asked:
        names = {name if name in known else re.sub("_(bucket|sum|count)$", "", name)
                 for name in re.findall(r"\btakt_[a-z0-9_]+", query)}
        assert names or "up{" in query, (where, query)
        assert names <= known, f"{where}: takt exports no {names - known}"


def every_alert_says_what_to_do_and_is_tried_both_ways():
    blocks = re.split(r"^ +- alert: ", text(RULES), flags=re.M)[1:]
    cases = re.findall(r"alertname: (\w+)(?:, |\n +)exp_alerts:( \[\])?", text(TESTS))
    for block in blocks:
        name = block.split()[0]
        assert re.search(r"severity: (critical|warning|info)", block), name
        assert re.search(r'summary: ".*\$labels\.instance', block) and 'todo: "' in block, name
        silent = [empty for alert, empty in cases if alert == name]
        assert " []" in silent and "" in silent, f"{name}: fires {silent.count('')} times, is silent {silent.count(' []')}"


def dashboards_are_whole():
    boards = dashboards()
    assert len(boards) == 2, boards.keys()
    assert len({board["uid"] for board in boards.values()}) == 2
    for path, board in boards.items():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids), path
        named = {one["name"] for one in board["templating"]["list"]}
        for panel in board["panels"]:
            used = set(re.findall(r"\$(\w+)", json.dumps(panel))) - {"__rate_interval", "__all"}
            assert used <= named, (path, panel["title"], used)
            assert panel["fieldConfig"]["defaults"]["unit"] and panel["title"], (path, panel["id"])


def promtool(*words):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=120,
                          cwd=os.path.dirname(TESTS))
    return done.returncode, done.stdout + done.stderr


def alerts_fire_when_they_should():
    if not shutil.which("promtool"):
        raise tap.Skip("prometheus is not installed")
    code, said = promtool("check", "rules", RULES)
    assert code == 0, said
    code, said = promtool("test", "rules", TESTS)
    assert code == 0, said


if __name__ == "__main__":
    sys.exit(tap.main([every_metric_that_is_asked_for_is_exported, every_alert_says_what_to_do_and_is_tried_both_ways,
                       dashboards_are_whole, alerts_fire_when_they_should]))
