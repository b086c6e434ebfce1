#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a daemon decided is decided again from its database, and a forged decision is found.

Usage: decisions_again.py BUILD_FOLDER
"""
import contextlib
import json
import sqlite3
import sys

import kit


def decided(m, *args):
    done = m.takt("simulate", "--replay", m.path("state/takt.db"), *args)
    return done.returncode, done.stdout


def a_daemons_decisions_come_out_again():
    with kit.machine() as m:
        m.start()
        client = m.client()
        jobs = [client.submit(m.witness_argv(50), gpus=gpus)["id"] for gpus in (4, 2, 8, 1, 3)]
        for job in jobs:
            client.wait(job)
        # A daemon that runs is not disturbed by somebody who looks.
        status, text = decided(m)
        assert status == 0, text
        assert m.stop() == 0
        status, text = decided(m, "--json")
        result = json.loads(text)
        assert status == 0 and result["differing"] == 0, text
        assert sum(d["placements"] for d in result["decisions"]) >= 1, text

        with contextlib.closing(sqlite3.connect(m.path("state/takt.db"))) as db:
            (row, plan), = db.execute("SELECT id, plan FROM decision ORDER BY id LIMIT 1")
            forged = plan.replace('"gpu_mask":[', '"gpu_mask":[7,', 1)
            assert forged != plan, plan
            db.execute("UPDATE decision SET plan = ? WHERE id = ?", (forged, row))
            db.commit()
        status, text = decided(m)
        assert status == 1 and "differs (- then, + now)" in text, text


if __name__ == "__main__":
    sys.exit(kit.main([a_daemons_decisions_come_out_again]))
