#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every panel of the dashboards in deploy/grafana has data from a takt at work, and the alerts load beside them.

Usage: dashboards.py BUILD_FOLDER
"""
import glob
import json
import os
import re
import sys

import kit
import prom_kit
import scrape

RULES = os.path.join(kit.SOURCE, "deploy/prometheus/takt.rules.yml")


def filled(query):
    """A panel's query as Grafana would send it with all chosen."""
    for name, value in (("$__rate_interval", "1m"), ("$instance", ".+"), ("$gpu", ".+")):
        query = query.replace(name, value)
    assert "$" not in query, query
    return query


def panels():
    for path in sorted(glob.glob(os.path.join(kit.SOURCE, "deploy/grafana/*.json"))):
        with open(path, encoding="utf-8") as file:
            board = json.load(file)
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{board['title']}: {panel['title']}", target


def every_panel_has_data():
    prom_kit.need()
    with kit.machine(gpus=4) as m, prom_kit.prometheus(m.folder, scrape.listening(m), rules=[RULES]) as prom:
        client = m.client()
        first = client.submit(m.witness_argv(500), gpus=4)["id"]
        second = client.submit(m.witness_argv(50), gpus=4)["id"]  # waits for the first one's GPUs: a handover
        client.wait(first)
        client.wait(second)
        client.submit(m.load_argv("--profile", "gemm", "--seconds", "600"), gpus=2)
        client.submit(["sleep", "600"], gpus=1, clock_ask="ceiling", clock_mhz=1200)
        empty = list(panels())
        assert len(empty) > 30, empty

        def all_have_data():
            empty[:] = [(where, target) for where, target in empty if not prom.query(filled(target["expr"]))]
            return not empty
        kit.until(all_have_data, lambda: [(where, filled(target["expr"])) for where, target in empty], seconds=3 * kit.WAIT_S)
        for where, target in panels():
            for labels, _ in prom.query(filled(target["expr"])):
                missing = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - labels.keys()
                assert not missing, f"{where}: its legend names {missing}, which {labels} has not"
        groups = prom.get("/api/v1/rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) >= 24 and all(rule["health"] in ("ok", "unknown") for rule in rules), rules
        firing = [alert["labels"]["alertname"] for alert in prom.get("/api/v1/alerts")["alerts"]
                  if alert["state"] == "firing"]
        assert not firing, f"a healthy machine has alerts: {firing}"


def a_lost_gpu_is_told():
    prom_kit.need()
    with kit.machine(gpus=2) as m, prom_kit.prometheus(m.folder, scrape.listening(m), rules=[RULES]) as prom:
        kit.until(lambda: len(prom.query("takt_gpu_up == 1")) == 2, lambda: prom.targets())
        m.twin("fault", "1", "lost")

        def told():
            return [alert["labels"] for alert in prom.get("/api/v1/alerts")["alerts"]
                    if alert["labels"]["alertname"] == "GpuLost" and alert["state"] == "firing"]
        (labels,) = kit.until(told, lambda: prom.get("/api/v1/alerts"), seconds=2 * kit.WAIT_S)
        assert labels["gpu"] == "1" and labels["severity"] == "critical", labels


if __name__ == "__main__":
    sys.exit(kit.main([every_panel_has_data, a_lost_gpu_is_told]))
