#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt-actuate and takt-guard as processes: who is served, who is refused, what every fault leads to.

Usage: actuate_process_test.py TAKT_ACTUATE TAKT_GUARD TAKT_TWIN LIBNVIDIA_ML
"""
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time

from actuate_rig import (ADVISE, BENCHMARK, BUSY, CAP, CHANGED, CLEAN, DECLARE, END, HELLO, LEASED, MADE_TO_CALL, RENEW, REQUEST,
                         RESET, SET, UNAVAILABLE, UNKNOWN, VERSION, VERSION_RC, ACTUATE, DEADLINE_MS, GUARD, MS, NVML,
                         REFUSED, WAIT_S, Client, Skip, main, restored, rig, until)


def a_clock_is_set_read_back_and_restored():
    with rig() as m:
        client = m.connect(m.start())
        reply = client.ask(SET, 10, m.uuids[1], high=1417)
        assert (reply["rc"], reply["gpu_state"]) == (0, LEASED), reply
        assert reply["max"] == 1410 and m.locked() == {1: (reply["min"], 1410)}, m.locked()
        assert 0 < reply["readback"] <= 1410, reply
        assert client.ask(END, 10)["rc"] == 0
        assert m.locked() == {}
        assert client.status(1)["gpu_state"] == CLEAN


def a_lock_to_one_clock_is_both_ends():
    with rig() as m:
        client = m.connect(m.start())
        assert client.ask(SET, 10, m.uuids[0], low=1200, high=1200)["rc"] == 0
        assert m.locked() == {0: (1200, 1200)}


def a_term_signal_restores_and_ends():
    with rig() as m:
        actuator = m.start()
        client = m.connect()
        for gpu in (0, 1):
            assert client.ask(SET, 10 + gpu, m.uuids[gpu])["rc"] == 0
        actuator.terminate()
        assert actuator.wait(WAIT_S) == 0, m.said()
        assert m.locked() == {}
        assert not os.path.exists(m.path("socket"))
        until(lambda: not m.guards(), "the guard leaves too")


def a_client_that_vanished_keeps_its_clock_for_its_time_and_no_longer():
    with rig() as m:
        client = m.connect(m.start())
        assert client.ask(SET, 10, m.uuids[0], ttl_ms=600)["rc"] == 0
        assert client.ask(SET, 20, m.uuids[1], ttl_ms=600_000)["rc"] == 0
        client.close()
        until(lambda: list(m.locked()) == [1], m.locked)
        assert "the lease of job 1 ran out" in m.said() and "of job 2" not in m.said(), m.said()


def the_most_demanding_of_two_clients_wins():
    with rig() as m:
        one, other = m.connect(m.start()), m.connect()
        assert one.ask(SET, 10, m.uuids[0], high=900, rank=BENCHMARK)["rc"] == 0
        refused = other.ask(SET, 20, m.uuids[0], high=600, rank=BENCHMARK)
        assert refused["rc"] == BUSY and "job 1" in refused["message"], refused
        assert one.ask(SET, 10, m.uuids[0], high=900)["rc"] == 0
        second = other.ask(SET, 40, m.uuids[0], high=600)
        assert (second["rc"], second["max"], second["lease"]) == (0, 900, 10), second
        assert other.ask(SET, 20, m.uuids[1], high=600)["rc"] == 0
        assert {g: top for g, (_, top) in m.locked().items()} == {0: 900, 1: 600}
        assert other.ask(RESET, uuid=m.uuids[0])["rc"] == 0
        assert list(m.locked()) == [1]
        assert other.ask(SET, 20, m.uuids[0], high=600)["rc"] < 0  # lease 20 is on the other GPU
        assert other.ask(SET, 30, m.uuids[0], high=600)["rc"] == 0


def power_limits_go_back_and_caps_stay():
    with rig() as m:
        process = m.start()
        client = m.connect(process)
        reply = client.ask(SET, 10, m.uuids[0], power_w=300)
        assert (reply["rc"], reply["power"]) == (0, 300_000), reply
        assert client.ask(CAP, uuid=m.uuids[1], power_w=350)["rc"] == 0
        assert m.limits() == {0: 300_000, 1: 350_000}
        m.kill(process)
        restored(m, caps={1: 350_000})
        until(lambda: not m.guards(), "the guard leaves the cap alone")
        client = m.connect(m.start())
        assert client.status(1)["cap"] == 350_000 and m.limits() == {1: 350_000}
        assert client.ask(CAP)["rc"] == 0
        assert m.limits() == {}


def declare(m, text, name="declared"):
    with open(m.path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return m.path(name)


def what_is_declared_stands_when_all_are_dead():
    with rig() as m:
        process = m.start("--declared", declare(m, ""))
        client = m.connect(process)
        assert client.ask(DECLARE)["rc"] == 0 and not m.locked()
        declare(m, f"{m.uuids[0]} range 345 990 power 400\n{m.uuids[1]} reset cap 350\n")
        reply = client.ask(DECLARE)
        assert (reply["rc"], reply["base_max"], reply["base_power"]) == (0, 990, 400_000), reply
        stand = {0: 400_000, 1: 350_000}
        assert m.locked() == {0: (345, 990)} and m.limits() == stand, (m.locked(), m.limits())
        assert client.ask(SET, 10, m.uuids[0], high=600, power_w=300)["rc"] == 0
        m.kill(process)
        until(lambda: m.locked() == {0: (345, 990)} and m.limits() == stand, m.limits)
        client = m.connect(m.start("--declared", m.path("declared")))
        declare(m, "GPU-x never\n")
        assert "line 1" in client.ask(DECLARE)["message"] and m.limits() == stand
        declare(m, f"{m.uuids[1]} reset cap 5\n")
        assert client.ask(DECLARE)["rc"] < 0 and m.limits() == stand
        declare(m, "")
        assert client.ask(DECLARE)["rc"] == 0
        restored(m, caps={1: 350_000})


def declare_once(m, text, crash=""):
    return subprocess.run([ACTUATE, "--declare", declare(m, text, "next"), "--declared", m.path("declared"),
                           "--journal", m.path("journal"), "--lock", m.path("lock"), "--nvml", NVML,
                           "--deadline-ms", DEADLINE_MS], env=dict(m.env, TAKT_CRASH_AT=crash), capture_output=True,
                          text=True, timeout=WAIT_S)


def a_machine_can_be_declared_with_nobody_at_work():
    with rig() as m:
        done = declare_once(m, f"* reset power 500\n{m.uuids[1]} range 345 990\n")
        assert done.returncode == 0 and m.locked() == {1: (345, 990)} and m.limits() == {0: 500_000}, done
        process = m.start("--declared", m.path("declared"))
        assert m.connect(process).status(1)["base_max"] == 990
        assert declare_once(m, "").returncode != 0 and m.locked()  # it is another's to do
        process.terminate()
        assert process.wait(WAIT_S) == 0 and m.locked() and m.limits() == {0: 500_000}
        m.fault(1, "permission")
        done = declare_once(m, f"{m.uuids[1]} range 345 600\n")
        assert done.returncode == 77 and f"nvidia-smi -i {m.uuids[1]} -lgc 345,600" in done.stderr, done
        m.fault(1)
        done = declare_once(m, "")
        assert done.returncode == 0 and not m.locked() and not m.limits(), (done, m.locked(), m.limits())


def a_memory_clock_goes_back_and_memory_errors_end_it():
    with rig() as m:
        process = m.start()
        client = m.connect(process)
        clocks = [gpu["memory_locked"] for gpu in m.state()]
        assert clocks == [False] * len(clocks)
        reply = client.ask(SET, 10, m.uuids[0], low=0, high=0, mem=10_000)
        assert (reply["rc"], reply["gpu_state"]) == (0, LEASED) and reply["mem_max"] > 0, reply
        assert reply["message"] == "memory clock set; no memory errors since", reply
        assert m.state()[0]["memory_locked"]
        m.kill(process)
        until(lambda: not m.state()[0]["memory_locked"], "the guard puts it back")
        client = m.connect(m.start())
        assert client.ask(SET, 10, m.uuids[0], low=0, high=0, mem=10_000)["rc"] == 0
        m.fault(0, "ecc-corrected=3")
        until(lambda: not m.state()[0]["memory_locked"], "errors end it")
        assert "3 corrected" in client.status(0)["message"], client.status(0)
        again = client.ask(SET, 10, m.uuids[0], low=0, high=0, mem=10_000)
        assert again["rc"] < 0 and "3 corrected" in again["message"], again


def who_dies_while_he_declares_leaves_it_to_the_next():
    with rig() as m:
        for text, stands in ((f"* reset power 500\n{m.uuids[1]} range 345 990\n", True), ("", False)):
            done = declare_once(m, text, crash="declare.kept")
            if done.returncode != 0:  # with crash points
                assert bool(m.locked()) != stands, "the boards were touched before the file"
            process = m.start("--declared", m.path("declared"))
            until(lambda s=stands: (m.locked() == {1: (345, 990)}) == s and bool(m.limits()) == s, m.limits)
            process.terminate()
            assert process.wait(WAIT_S) == 0


def bad_messages_are_answered_and_hurt_nobody():
    with rig() as m:
        client = m.connect(m.start())
        good = REQUEST.pack(VERSION, HELLO, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b"", b"")
        for bad in (b"x", good[:-1], good + b"y", os.urandom(3000)):
            client.socket.send(bad)
            reply = client.receive()
            assert reply["rc"] == VERSION_RC and f"{REQUEST.size} bytes" in reply["message"], reply
        client.socket.send(REQUEST.pack(7, SET, 5, 1, 1, MS, 0, 900, 0, 1, 0, 0, 0, 0, m.uuids[0].encode(), b""))
        assert client.receive()["rc"] == VERSION_RC
        client.socket.send(os.urandom(REQUEST.size))
        assert client.receive()["rc"] < 0
        assert client.ask(HELLO)["rc"] == 0
        assert m.locked() == {}


def a_client_that_reads_nothing_is_let_go():
    with rig() as m:
        client, deaf = m.connect(m.start()), m.connect()
        deaf.socket.setblocking(False)

        def flood():
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                while True:
                    deaf.send(HELLO)
            return "does not take its replies" in m.said()
        until(flood, "it is said")
        assert client.ask(HELLO)["rc"] == 0


def welcome(m):
    try:
        return m.connect().ask(HELLO)["rc"] == 0
    except (AssertionError, ConnectionResetError, BrokenPipeError):
        return False


def there_are_sixteen_places():
    with rig() as m:
        m.start()
        clients = [m.connect() for _ in range(16)]
        for client in clients:
            assert client.ask(HELLO)["rc"] == 0
        late = m.connect()
        assert "16 clients" in late.receive()["message"]
        clients[3].close()
        until(lambda: welcome(m), "a place is free again")


def another_user_is_turned_away():
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    with rig() as m:
        m.start()
        os.chmod(m.folder, 0o755)
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            heard = Client(m.path("socket")).receive()
            os._exit(0 if heard["rc"] == -13 and "another user" in heard["message"] else 1)
        assert os.waitpid(child, 0)[1] == 0


def without_permission_it_advises():
    with rig() as m:
        m.fault("all", "permission")
        client = m.connect(m.start())
        reply = client.ask(SET, 10, m.uuids[0])
        assert (reply["rc"], reply["gpu_state"]) == (-1, ADVISE), reply
        assert f"nvidia-smi -i {m.uuids[0]} -lgc " in reply["message"], reply
        assert client.status(0)["lease"] == 10
        assert client.ask(RENEW, 10)["rc"] == 0
        assert m.locked() == {}


def a_refused_restore_is_changed_until_it_works():
    with rig() as m:
        client = m.connect(m.start())
        assert client.ask(SET, 10, m.uuids[0])["rc"] == 0
        m.fault(0, "driver-restore-refused")
        assert client.ask(END, 10)["rc"] < 0
        status = client.status(0)
        assert status["gpu_state"] == CHANGED and "nvidia-smi" in status["message"], status
        assert m.locked()
        m.fault(0)
        restored(m)
        until(lambda: client.status(0)["gpu_state"] == CLEAN, "clean")


def a_lost_gpu_is_unknown_and_restored_when_it_is_back():
    with rig() as m:
        client = m.connect(m.start())
        assert client.ask(SET, 10, m.uuids[0])["rc"] == 0
        m.fault(0, "lost")
        assert client.ask(END, 10)["rc"] == -19
        assert client.status(0)["gpu_state"] == UNKNOWN
        assert client.ask(SET, 20, m.uuids[1])["rc"] == 0
        m.fault(0)
        until(lambda: list(m.locked()) == [1], "GPU 0 restored")


def a_hanging_gpu_holds_nobody_up():
    with rig(3) as m:
        client = m.connect(m.start())
        m.fault(0, "hang")
        slow = client.send(SET, 10, m.uuids[0])
        for gpu in (1, 2):
            reply = m.connect().ask(SET, 10 * gpu + 10, m.uuids[gpu])
            assert reply["rc"] == 0, reply
        assert not select.select([client.socket], [], [], 0)[0], "the others waited"
        m.fault(0)
        reply = client.receive()
        assert (reply["seq"], reply["rc"], reply["gpu_state"]) == (slow, 0, LEASED), reply


def a_gpu_that_hangs_is_unknown_until_it_answers():
    with rig() as m:
        client = m.connect(m.start("--deadline-ms", "1000"))
        m.fault(0, "hang")
        reply = client.ask(SET, 10, m.uuids[0])
        assert (reply["rc"], reply["gpu_state"]) == (-110, UNKNOWN), reply
        m.fault(0)
        until(lambda: list(m.locked()) == [0], "what hung took effect")
        until(lambda: client.status(0)["gpu_state"] == LEASED, "and is known")


def a_second_actuator_is_refused_by_name():
    with rig() as m:
        first = m.start()
        second = m.spawn(socket_name="other")
        assert second.wait(WAIT_S) == 75
        assert f"held by the actuator with pid {first.pid}" in m.said(), m.said()
        assert m.connect().ask(HELLO)["rc"] == 0


def who_lost_the_right_to_set_stops():
    with rig() as m:
        old = m.start()
        client = m.connect()
        assert client.ask(SET, 10, m.uuids[0])["rc"] == 0
        os.unlink(m.path("lock"))  # somebody tidies up
        new = m.start(socket_name="other")
        restored(m)  # found on record, and put back by the new one
        fresh = m.connect(new, "other")
        assert fresh.ask(SET, 20, m.uuids[0], high=600)["rc"] == 0
        try:
            client.ask(SET, 10, m.uuids[0], high=1200)
        except ConnectionResetError:
            pass
        assert old.wait(WAIT_S) == 75
        assert "another process sets the clocks now" in m.said()
        until(lambda: len(m.guards()) == 1, "its guard wakes, finds that somebody else answers for the GPU, and leaves")
        assert {g: top for g, (_, top) in m.locked().items()} == {0: 600}


def a_stopped_actuator_is_not_a_dead_one():
    with rig() as m:
        actuator = m.start()
        client = m.connect()
        assert client.ask(SET, 10, m.uuids[0], ttl_ms=5000)["rc"] == 0
        actuator.send_signal(signal.SIGSTOP)
        time.sleep(5.5)  # the lease is over
        assert m.locked()  # the guard leaves it to the living one
        actuator.send_signal(signal.SIGCONT)
        restored(m)
        assert client.ask(HELLO)["rc"] == 0


def a_dead_guard_is_replaced_and_the_new_one_works():
    with rig() as m:
        actuator = m.start()
        client = m.connect()
        assert client.ask(SET, 10, m.uuids[0])["rc"] == 0
        for _ in range(3):
            (old,) = m.guards()
            os.kill(old, signal.SIGKILL)
            until(lambda: m.guards() not in ([], [old]), "another guard")
            assert client.ask(SET, 10, m.uuids[0], high=700)["rc"] == 0
        m.kill(actuator)
        restored(m)


def a_guard_keeps_nothing_open_that_is_not_its_own():
    with rig() as m:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(m.path("socket"))
        listening.listen()
        actuator = subprocess.Popen(
            [ACTUATE, "--listen-fd", str(listening.fileno()), "--journal", m.path("journal"), "--lock",
             m.path("lock"), "--guard", GUARD, "--nvml", NVML],
            env=m.env, pass_fds=[listening.fileno()], stderr=m.log)
        m.started.append(actuator)
        listening.close()
        assert m.connect().ask(SET, 10, m.uuids[0])["rc"] == 0
        (guard,) = m.guards()
        opened = {os.readlink(f"/proc/{guard}/fd/{fd}") for fd in os.listdir(f"/proc/{guard}/fd")}
        assert opened <= {"/dev/null", "anon_inode:[pidfd]", m.path("log"), m.path("journal")} | {
            name for name in opened if name.startswith("socket:")}, opened
        assert len([name for name in opened if name.startswith("socket:")]) == 1, opened
        m.fault(0, "driver-restore-refused")  # so that the guard stays
        m.kill(actuator)
        try:
            Client(m.path("socket"))
            raise AssertionError("somebody still listens")
        except ConnectionRefusedError:
            pass


def a_guard_whose_folder_was_removed_leaves():
    with rig() as m:
        actuator = m.start()
        assert m.connect().ask(SET, 10, m.uuids[0])["rc"] == 0
        m.fault(0, "driver-restore-refused")
        m.kill(actuator)
        until(lambda: REFUSED in m.said(), "the guard tries")
        guards = m.guards()
        assert guards
        os.rename(m.folder, m.folder + ".gone")
        until(lambda: not any(os.path.exists(f"/proc/{pid}/fd/3") or os.path.exists(f"/proc/{pid}/exe")
                              for pid in guards), "it leaves")
        os.rename(m.folder + ".gone", m.folder)


def without_a_guard_nothing_is_set():
    with rig() as m:
        client = m.connect(m.spawn(guard=m.path("none")))
        reply = client.ask(SET, 10, m.uuids[0])
        assert reply["rc"] == UNAVAILABLE and "guard" in reply["message"], reply
        assert m.locked() == {}
        assert "cannot be started" in m.said()


def a_declared_baseline_comes_back_even_by_the_guard():
    with rig() as m:
        with open(m.path("baseline"), "w", encoding="utf-8") as file:
            file.write(f"{m.uuids[0]} range 600 1200\n")
        actuator = m.start("--baseline", m.path("baseline"))
        client = m.connect()
        assert client.ask(SET, 10, m.uuids[0])["rc"] == 0
        assert client.ask(END, 10)["rc"] == 0
        assert m.locked() == {0: (600, 1200)}
        for gpu in (0, 1):
            assert client.ask(SET, 20 + gpu, m.uuids[gpu])["rc"] == 0
        m.kill(actuator)
        until(lambda: m.locked() == {0: (600, 1200)}, "the baseline of both")


def wrong_use_is_said_and_nothing_starts():
    with rig() as m:
        with open(m.path("bad"), "w", encoding="utf-8") as file:
            file.write("* reset\n* rest\n")
        with open(m.path("passwd"), "w", encoding="utf-8") as file:
            file.write("root:x:0:0\n")
        common = ["--socket", m.path("s"), "--lock", m.path("lock"), "--guard", GUARD]
        rows = [
            ([ACTUATE], 64, "--journal and --lock are needed"),
            ([ACTUATE, "--wrong"], 64, "'--wrong' is no flag"),
            ([ACTUATE, "--lock"], 64, "--lock needs a value"),
            ([ACTUATE, "--lock", "lock"], 64, "must begin with /"),
            ([ACTUATE, "--deadline-ms", "soon"], 64, "'soon'"),
            ([ACTUATE, *common, "--journal", m.path("journal"), "--baseline", m.path("bad")], None,
             "line 2"),
            ([ACTUATE, *common, "--journal", m.path("passwd")], 65, "is no clock journal of takt"),
            ([ACTUATE, *common, "--journal", m.path("no/journal")], None, "no/journal"),
            ([GUARD, "--journal", m.path("journal"), "--lock", m.path("lock")], 64, "--watch-fd"),
        ]
        for command, status, says in rows:
            done = subprocess.run(command, env=m.env, capture_output=True, text=True, timeout=WAIT_S)
            assert done.returncode != 0 and status in (None, done.returncode), (command, done)
            assert says in done.stderr, (command, done.stderr)


def a_socket_in_use_is_left_to_its_owner():
    with rig() as m:
        m.start()
        second = m.spawn()
        assert second.wait(WAIT_S) != 0
        assert "socket '" in m.said()
        assert m.connect().ask(HELLO)["rc"] == 0


def who_dies_of_a_refused_call_leaves_no_gpu_changed():
    """The driver's library had held back the signal by which a refusal is told, so that it ends the process."""
    with rig() as m:
        actuator = m.start()
        assert m.connect().ask(SET, 10, m.uuids[0])["rc"] == 0
        assert m.locked()
        made = subprocess.run([MADE_TO_CALL, "--deaf", str(actuator.pid), "bpf"], capture_output=True, text=True)
        if made.returncode == 77:
            raise Skip(made.stdout.strip())
        assert actuator.wait(WAIT_S) == -signal.SIGSYS, made
        restored(m)


def a_driver_can_be_let_make_every_call():
    with rig() as m:
        def answer(*flags):
            """To a call that has a bad address and is not on the list."""
            process = m.start(*flags)
            made = subprocess.run([MADE_TO_CALL, str(process.pid), "bpf"], capture_output=True, text=True)
            if made.returncode == 77:
                raise Skip(made.stdout.strip())
            (guard,) = until(m.guards, "its guard")
            guards = subprocess.run([MADE_TO_CALL, str(guard), "bpf"], capture_output=True, text=True).stdout
            assert m.connect().ask(HELLO)["rc"] == 0  # it goes on
            process.terminate()
            process.wait(WAIT_S)
            until(lambda: not m.guards(), "the guard leaves")
            return made.stdout, guards
        assert answer() == ("bpf: Operation not permitted\n",) * 2
        refusal = "the system call 'bpf' was refused; if the driver needs it, driver_calls = any lets it have every call"
        assert f"takt-actuate: {refusal}" in m.said() and f"takt-guard: {refusal}" in m.said(), m.said()
        assert answer("--driver-calls", "any") == ("bpf: Bad address\n",) * 2
        refused = m.spawn("--driver-calls", "all")
        assert refused.wait(WAIT_S) == 64 and "--driver-calls 'all': listed and any are accepted" in m.said()


def a_journal_that_cannot_be_read_restores_every_gpu():
    with rig(3) as m:
        actuator = m.start(guard=m.guard_script("TAKT_CRASH_AT=actuate.guard_woken"))
        assert m.connect().ask(SET, 10, m.uuids[1])["rc"] == 0
        m.kill(actuator)
        until(lambda: not m.guards(), "the guard died too")
        with open(m.path("journal"), "r+b") as file:
            file.write(os.urandom(8192))
        assert m.locked()
        m.start()
        restored(m)
        assert "records of the clock journal are unreadable" in m.said()


TESTS = [
    a_clock_is_set_read_back_and_restored, a_lock_to_one_clock_is_both_ends,
    a_term_signal_restores_and_ends,
    a_client_that_vanished_keeps_its_clock_for_its_time_and_no_longer,
    the_most_demanding_of_two_clients_wins, power_limits_go_back_and_caps_stay,
    what_is_declared_stands_when_all_are_dead, a_machine_can_be_declared_with_nobody_at_work,
    a_memory_clock_goes_back_and_memory_errors_end_it,
    who_dies_while_he_declares_leaves_it_to_the_next,
    bad_messages_are_answered_and_hurt_nobody, a_client_that_reads_nothing_is_let_go,
    there_are_sixteen_places, another_user_is_turned_away, without_permission_it_advises,
    a_refused_restore_is_changed_until_it_works, a_lost_gpu_is_unknown_and_restored_when_it_is_back,
    a_hanging_gpu_holds_nobody_up, a_gpu_that_hangs_is_unknown_until_it_answers, a_second_actuator_is_refused_by_name,
    who_lost_the_right_to_set_stops, a_stopped_actuator_is_not_a_dead_one,
    a_dead_guard_is_replaced_and_the_new_one_works, a_guard_keeps_nothing_open_that_is_not_its_own,
    a_guard_whose_folder_was_removed_leaves, without_a_guard_nothing_is_set,
    a_declared_baseline_comes_back_even_by_the_guard, wrong_use_is_said_and_nothing_starts,
    who_dies_of_a_refused_call_leaves_no_gpu_changed, a_driver_can_be_let_make_every_call,
    a_socket_in_use_is_left_to_its_owner, a_journal_that_cannot_be_read_restores_every_gpu,
]

if __name__ == "__main__":
    sys.exit(main(TESTS))
