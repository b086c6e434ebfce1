#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs that users reserve for themselves: who may, how much, whose answer is needed, and what others see of it.

Usage: booking.py BUILD_FOLDER
"""
import contextlib
import json
import os
import re
import sys
import tempfile

import users  # first: it may replace the build folder
import kit
from users import ALICE, BOB

CARL = 4446
ADMINS = 4999
PASSWD = f"""root:x:0:0::/root:/bin/sh
alice:x:{ALICE}:{ALICE}::/:/bin/sh
bob:x:{BOB}:{BOB}::/:/bin/sh
carl:x:{CARL}:{CARL}::/:/bin/sh
"""
GROUP = f"""root:x:0:
alice:x:{ALICE}:
bob:x:{BOB}:
carl:x:{CARL}:
takt-admin:x:{ADMINS}:bob
"""
RULES = "[user *]\nreserve_gpu_hours = 6\nreserve_longest = 3h\nreserve_ahead = 2d\n"


def write_rules(m, text):
    with open(m.path("tenants.conf.new"), "w", encoding="ascii") as file:
        file.write(text)
    os.rename(m.path("tenants.conf.new"), m.path("tenants.conf"))


@contextlib.contextmanager
def lab(rules=RULES, gpus=2):
    """takt for alice and carl, of whom bob is the administrator."""
    with tempfile.TemporaryDirectory() as folder, users.accounts(folder, PASSWD, GROUP), \
            users.shared_machine(start=False, gpus=gpus) as m:
        write_rules(m, rules)
        m.more_flags = ("--tenants-file", m.path("tenants.conf"))
        yield m.start()


def gpu(m, uid, *words):
    return users.takt_as(m, uid, "gpu", *words, groups=[ADMINS] if uid == BOB else [])


def taken(m, uid, *words):
    """What takt says of it when it was taken."""
    done = gpu(m, uid, *words)
    assert done.returncode == 0, (words, done)
    return done.stdout


def refused(m, uid, status, *words):
    """What is said where it is not."""
    done = gpu(m, uid, *words)
    assert done.returncode == status, (words, done)
    return done.stderr


def seen(m, uid):
    """The reservations, as that user is shown them."""
    return users.ask(m, uid, "GET", "/v1/gpus")["reservations"]


def job(m, uid, gpus=1, **more):
    return users.ask(m, uid, "POST", "/v1/jobs", users.job_of(["sleep", "600"], gpus, **more))["id"]


def runs(m, number):
    kit.until(lambda: m.client().job(number)["state"] == "running", lambda: m.client().job(number))
    return m.client().job(number)["gpu_list"]


def waits_for_a_reservation(m, number):
    kit.until(lambda: m.client().job(number).get("why") == "reservation", lambda: m.client().job(number))


def out_of_the_box_administrators_reserve():
    with lab(rules="[user *]\nweight = 1\n") as m:
        said = refused(m, ALICE, 77, "reserve", "0", "--until", "1h")
        assert "no rule of tenants_file" in said and "reserve_gpu_hours" in said, said
        assert "you may reserve" not in taken(m, ALICE, "list")
        assert "alice" in taken(m, BOB, "reserve", "0", "--for-user", "alice", "--until", "1h")
        assert "alice" in taken(m, ALICE)
        # One that was made for her is not hers to give up.
        assert "not yours to release" in refused(m, ALICE, 77, "release", "1")
        # A rule that comes later counts at once.
        write_rules(m, RULES)
        kit.until(lambda: "you may reserve 6 GPU hours" in taken(m, ALICE, "list"), lambda: taken(m, ALICE))


def a_user_reserves_for_himself_within_his_rules():
    with lab() as m:
        said = taken(m, ALICE, "reserve", "0", "--until", "2h", "--reason", "secret plan", "--dry-run")
        assert said == "it would be granted\n" and not seen(m, ALICE), said
        said = taken(m, ALICE, "reserve", "0", "--until", "2h", "--reason", "secret plan")
        assert "alice" in said and "secret plan" in said and "4 are left" in said, said
        for words, what in (
                (("0-1", "--from", "5h", "--until", "8h"), "[user *] of tenants_file leaves 4 GPU hours"),
                (("1", "--until", "4h"), "reserve_longest"),
                (("1", "--from", "50h", "--until", "51h"), "reserve_ahead")):
            said = refused(m, ALICE, 65, "reserve", *words)
            assert what in said, said
        # For others, or for nobody, it is not his to say.
        for words in (("--for-user", "carl"), ("--for-user", "root")):
            assert "for yourself only" in refused(m, ALICE, 77, "reserve", "1", "--until", "1h", *words)
        for words in (("drain", "1", "--reason", "mine"), ("approve", "1"), ("refuse", "1", "--reason", "no")):
            assert "takt-admin" in refused(m, ALICE, 77, *words)
        # Others see that it is taken, by whom and until when, not what for; and it is.
        (view,) = seen(m, CARL)
        assert (view["user"], view["mine"], view["state"]) == ("alice", False, "granted") and "reason" not in view, view
        assert "secret" not in taken(m, CARL) + users.takt_as(m, CARL, "status").stdout
        assert seen(m, 0)[0]["reason"] == "secret plan"
        assert "GPU 0 is taken then by reservation 1" in refused(m, CARL, 75, "reserve", "0", "--from", "1h", "--until", "3h")
        assert "not yours to release" in refused(m, CARL, 77, "release", "1")
        both = job(m, CARL, 2)
        waits_for_a_reservation(m, both)
        assert "secret" not in users.takt_as(m, CARL, "explain", str(both)).stdout
        hers = job(m, ALICE, gpu_indices=[0])
        assert runs(m, hers) == [0]
        users.ask(m, ALICE, "POST", f"/v1/jobs/{hers}/cancel")
        # It is there after a crash, and gone when she says so; what she has had goes on counting.
        m.kill()
        m.start()
        waits_for_a_reservation(m, both)
        assert [at["reason"] for at in seen(m, ALICE)] == ["secret plan"]
        said = taken(m, ALICE, "release", "1")
        assert "no GPU is set aside or reserved" in said, said
        assert runs(m, both) == [0, 1]
        (view,) = seen(m, ALICE)
        assert view["state"] == "released" and view["until_ms"] > view["from_ms"], view
        assert "6 GPU hours" in taken(m, ALICE) and "5.9 are left" in taken(m, ALICE), taken(m, ALICE)
        taken(m, ALICE, "reserve", "1", "--from", "1h", "--until", "2h")
        assert [at["id"] for at in seen(m, ALICE)] == [1, 2], "a number is not used again"


def one_that_needs_an_answer_waits_for_it():
    with lab("[tenant lab]\nreserve_gpu_hours = 10\nreserve_approval = yes\n[user *]\ntenant = lab\n", gpus=1) as m:
        assert taken(m, ALICE, "reserve", "0", "--until", "2h", "--dry-run") == "it would be handed in, and wait for an administrator\n"
        said = taken(m, ALICE, "reserve", "0", "--until", "2h", "--reason", "paper")
        assert "waiting" in said and "an administrator has to approve" in said, said
        # Nothing is kept for it, but its place among the reservations.
        running = job(m, CARL)
        assert runs(m, running) == [0]
        assert "which waits for an answer" in refused(m, CARL, 75, "reserve", "0", "--until", "1h")
        assert "waits" in taken(m, BOB) and "takt gpu approve ID" in taken(m, BOB), taken(m, BOB)
        assert "takt-admin" in refused(m, ALICE, 77, "approve", "1")
        m.kill()
        m.start()
        assert seen(m, CARL)[0]["state"] == "waiting"
        assert "waiting" not in taken(m, BOB, "approve", "1")
        (view,) = seen(m, ALICE)
        assert (view["state"], view["decided_by"]) == ("granted", "bob"), view
        assert m.client().job(running)["state"] == "running", "what runs is left alone"
        users.ask(m, CARL, "POST", f"/v1/jobs/{running}/cancel")
        late = job(m, CARL)
        waits_for_a_reservation(m, late)
        assert "it is granted" in refused(m, BOB, 75, "refuse", "1", "--reason", "late")
        # A second one is refused, and that is read by who asked and by nobody else.
        taken(m, ALICE, "reserve", "0", "--from", "3h", "--until", "4h")
        assert refused(m, BOB, 64, "refuse", "2")
        assert "refused" in taken(m, BOB, "refuse", "2", "--reason", "the demo is then")
        assert "the demo is then" in taken(m, ALICE) and "the demo is then" not in taken(m, CARL)
        assert "waiting" in taken(m, CARL, "reserve", "0", "--from", "3h", "--until", "4h"), "its time is free"
        # She takes the first back: her hours, and everybody's GPU.
        taken(m, ALICE, "release", "1")
        runs(m, late)


def hours_of_a_tenant_are_for_all_of_it():
    with lab("[tenant lab]\nreserve_gpu_hours = 3\n[user alice]\ntenant = lab\n[user carl]\ntenant = lab\n") as m:
        taken(m, ALICE, "reserve", "0", "--until", "2h")
        said = refused(m, CARL, 65, "reserve", "1", "--until", "2h")
        assert "[tenant lab] of tenants_file leaves 1 GPU hours" in said, said
        taken(m, CARL, "reserve", "1", "--until", "30min")
        answer = json.loads(taken(m, CARL, "--json"))["booking"]
        assert answer["may"] and answer["rule"] == "[tenant lab]" and 0 < answer["left_gpu_ms"] < 3600000, answer


def the_example_of_the_page_does_what_the_page_says():
    with open(os.path.join(kit.SOURCE, "docs/administration.md"), encoding="utf-8") as page:
        (example,) = re.findall(r"```bookings\n(.*?)```", page.read(), re.S)
    with lab(example.replace("anna", "alice")) as m:
        assert not m.client().status().get("notes"), m.client().status()
        carls, alices = (users.ask(m, uid, "GET", "/v1/gpus")["booking"] for uid in (CARL, ALICE))
        hour = 3600000
        assert (carls["rule"], carls["week_gpu_ms"], carls["longest_ms"], carls["approval"]) == ("[user *]", 40 * hour, 12 * hour, False), carls
        assert (alices["rule"], alices["week_gpu_ms"], alices["ahead_ms"], alices["approval"]) == (
            "[tenant lab]", 200 * hour, 7 * 24 * hour, True), alices


if __name__ == "__main__":
    sys.exit(kit.main([
        out_of_the_box_administrators_reserve,
        a_user_reserves_for_himself_within_his_rules,
        one_that_needs_an_answer_waits_for_it,
        hours_of_a_tenant_are_for_all_of_it,
        the_example_of_the_page_does_what_the_page_says,
    ]))
