#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine of 64 GPUs, as many as takt takes: every view has them all, jobs get all of them or their part, and the
last one breaks alone.

Usage: many_gpus.py BUILD_FOLDER
"""
import json
import re
import sys

import kit

ALL = list(range(64))


def states(client):
    return [gpu["state"] for gpu in client.status()["gpus"]]


def every_view_has_them_all():
    with kit.machine("h100-64") as m:
        m.start()
        rows = [int(found) for found in re.findall(r"(?m)^ *(\d+) +\d+/1980 ", m.takt("status").stdout)]
        assert rows == ALL, rows
        topo = json.loads(m.takt("topo", "--json").stdout)
        for a in ALL:
            assert topo["link"][a] == ["X" if a == b else "NV18" for b in ALL], (a, topo["link"][a])
        assert topo["numa_node"] == [0] * 32 + [1] * 32, topo["numa_node"]
        lines = m.takt("topo").stdout
        assert all(re.search(rf"(?m)^{gpu}:( NV18){{{gpu}}} X( NV18){{{63 - gpu}}}$", lines) for gpu in ALL), lines
        checked = json.loads(m.twin_exec("doctor", "--json").stdout)
        assert checked["exit"] == 0 and not checked["actions"], checked
        up = [key for key, value in m.client().metrics().items() if key.startswith("takt_gpu_up{") and value == 1]
        assert len(up) == 64, up


def every_screen_has_them_all():
    """Of sixty lines they take two columns."""
    with kit.machine("h100-64") as m:
        m.start()
        m.more_env = {"LINES": "60", "COLUMNS": "200", "LC_ALL": "C"}
        for words in ([], ["--driver"]):
            shown = m.twin_exec("top", "--once", *words).stdout
            assert sorted(int(found) for found in re.findall(r"(\d+) [.#]+ +\d+ %", shown)) == ALL, shown
            assert shown.count("H100 80GB HBM3") == 1, shown
            look = json.loads(m.twin_exec("top", "--json", *words).stdout)
            assert look["from"] == ("driver" if words else "daemon"), look
            assert [gpu["index"] for gpu in look["status"]["gpus"]] == ALL, look


def jobs_get_all_or_their_part():
    with kit.machine("h100-64") as m:
        m.start()
        client = m.client()
        job = client.wait(client.submit(m.witness_argv(10), gpus=64)["id"])
        assert (job["state"], job["gpu_list"]) == ("done", ALL), job
        assert [sorted(end.gpus) for end in m.witness().ends] == [ALL], m.witness().ends
        halves = [client.submit(m.witness_argv(600_000), gpus=32)["id"] for _ in range(2)]
        kit.until(lambda: len(m.witness().begins) == 3, client.live)
        assert sorted(gpu for half in halves for gpu in client.job(half)["gpu_list"]) == ALL
        assert not client.wait(client.submit(["true"])["id"])["gpu_list"]
        for half in halves:
            client.cancel(half)


def the_last_one_breaks_alone():
    with kit.machine("h100-64") as m:
        m.start()
        client = m.client()
        m.twin("fault", "63", "lost")
        kit.until(lambda: states(client)[63] == "lost", client.status)
        assert "lost" not in states(client)[:63], states(client)
        checks = json.loads(m.twin_exec("doctor", "--json").stdout)["checks"]
        lost = [check["gpus"] for check in checks if check["verdict"] == "CRITICAL"]
        assert lost and all(gpus == [63] for gpus in lost), lost
        job = client.wait(client.submit(m.witness_argv(10), gpus=63)["id"])
        assert (job["state"], job["gpu_list"]) == ("done", ALL[:63]), job
        whole = client.submit(m.witness_argv(10), gpus=64)["id"]
        m.twin("fault", "all", "none")
        assert client.wait(whole)["gpu_list"] == ALL


if __name__ == "__main__":
    sys.exit(kit.main([every_view_has_them_all, every_screen_has_them_all, jobs_get_all_or_their_part, the_last_one_breaks_alone]))
