#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon's account in hostile hands, and other users of the machine, against root's actuator.

Every attack is one of two kinds: something that has to be refused, after which the machine is as it was; or something that
may be answered, after which no board stands where it cannot, others are served, and all can be put back. The witness is the
simulated machine, which knows nothing of takt, and what the kernel says of files and processes.

Usage: hostile_actuate.py TAKT_ACTUATE TAKT_GUARD TAKT_TWIN LIBNVIDIA_ML SOURCES TAKT_ENTER_MIG TAKT_MADE_TO_CALL [SEED]
"""
import array
import contextlib
import fcntl
import os
import random
import resource
import signal
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "actuate"), os.path.join(HERE, "..")]

import actuate_rig as rig_of  # noqa: E402
from actuate_rig import (BENCHMARK, BUSY, CAP, CPU, DECLARE, END, HELLO, MIG, MS, NOT_FOUND, RENEW, REQUEST,  # noqa: E402
                         RESET, SET, STATUS, VERSION, VERSION_RC, Client, Skip, main, restored, until)

DAEMON, ALICE = 4321, 4242
SEED = int(sys.argv[8]) if len(sys.argv) > 8 else 20261128
EINVAL, LIMIT, CONFLICT, EACCES = -22, -4098, -4097, -13
LAST = (1 << 32) - 1
FIELDS = ("version op seq lease_id job_id ttl_ns min_mhz max_mhz power_limit_mw rank gpu_index mem_min_mhz mem_max_mhz "
          "assume_unlocked uuid mig").split()
GPUS, IN_MIG = 3, 2


class Raw(Client):
    """A connection of a user's, over which any field may say anything."""

    def __init__(self, m, uid=DAEMON):
        os.seteuid(uid)
        try:
            until(lambda: self.comes(m.path("socket")), "there is room among those who wait to be let in")
        finally:
            os.seteuid(0)

    def comes(self, path):
        with contextlib.suppress(BlockingIOError):
            super().__init__(path)
            return True

    def message(self, **fields):
        self.seq += 1
        values = dict.fromkeys(FIELDS, 0)
        values |= {"version": VERSION, "seq": self.seq, "ttl_ns": 60_000 * MS, "rank": 1, "assume_unlocked": 1, "uuid": b"", "mig": b""}
        return REQUEST.pack(*(values | fields).values())

    def say(self, **fields):
        """The answer to a message with these fields."""
        self.socket.send(self.message(**fields))
        return self.receive()


@contextlib.contextmanager
def guarded(*flags, mig=None):
    """A machine on which root's actuator serves the daemon's account."""
    if os.getuid() != 0:
        raise Skip("only root can become another user")
    with rig_of.rig(GPUS, mig) as m:
        os.chmod(m.folder, 0o755)
        m.actuator = m.start("--client-uid", str(DAEMON), *flags)
        yield m


def stands(m):
    """All that an actuator can change, by the machine's own word."""
    gpus = m.state()
    return (m.locked(gpus), m.memory_locked(gpus), m.limits(gpus), m.cpu_limits(), m.instances(gpus),
            [gpu["mig"] for gpu in gpus])


def as_user(uid, function):
    """Whether the call raised PermissionError in a process of that user's; the error's name if it raised another."""
    pid = os.fork()
    if pid == 0:
        code = 2
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            try:
                function()
                code = 0
            except PermissionError:
                code = 1
        os._exit(code)
    return {0: "done", 1: "not permitted"}.get(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "failed otherwise")


# What has to be refused, one message each: {what: (answer, fields)}. A "uuid" of 1 is GPU 1's.

def refused_messages():
    big = 1 << 63
    lease = {"op": SET, "lease_id": 50, "job_id": 5, "max_mhz": 900, "uuid": 1}
    cap = {"op": CAP, "uuid": 1}
    mig = {"op": MIG, "uuid": IN_MIG}
    return {
        "set a GPU that is not here": (NOT_FOUND, lease | {"uuid": b"GPU-00000000-0000-0000-0000-000000000000"}),
        "set a GPU without a name": (NOT_FOUND, lease | {"uuid": b""}),
        "set a GPU whose name has no end": (EINVAL, lease | {"uuid": b"G" * 96}),
        "set the CPUs as if they were a GPU": (NOT_FOUND, lease | {"uuid": b"CPU"}),
        "set a GPU by the beginning of its name": (NOT_FOUND, lease | {"uuid": b"GPU-"}),
        "set a GPU by a path": (NOT_FOUND, lease | {"uuid": b"../../GPU"}),
        "set a GPU by a format": (NOT_FOUND, lease | {"uuid": b"%n%s%n%s"}),
        "set by lease 0": (EINVAL, lease | {"lease_id": 0}),
        "set with a rank above all": (EINVAL, lease | {"rank": 3}),
        "set with the last rank there could be": (EINVAL, lease | {"rank": LAST}),
        "set for no time": (EINVAL, lease | {"ttl_ns": 0}),
        "set for a nanosecond": (EINVAL, lease | {"ttl_ns": 1}),
        "set for longer than a day": (EINVAL, lease | {"ttl_ns": 24 * 3600 * 1000 * MS + 1}),
        "set for ever": (EINVAL, lease | {"ttl_ns": 2 * big - 1}),
        "set a lowest clock above the highest": (EINVAL, lease | {"min_mhz": 1200}),
        "set a lowest clock alone": (EINVAL, lease | {"min_mhz": 1200, "max_mhz": 0}),
        "set a power limit of a milliwatt": (EINVAL, lease | {"power_limit_mw": 1}),
        "set a power limit below the board's": (EINVAL, lease | {"power_limit_mw": 199_000}),
        "set a power limit above the board's": (EINVAL, lease | {"power_limit_mw": 701_000}),
        "set the last power limit there could be": (EINVAL, lease | {"power_limit_mw": LAST}),
        "set a lowest memory clock above the highest": (EINVAL, lease | {"mem_min_mhz": 2619, "mem_max_mhz": 1}),
        "set a lowest memory clock alone": (EINVAL, lease | {"mem_min_mhz": 2619}),
        "cap a GPU at a milliwatt": (EINVAL, cap | {"power_limit_mw": 1}),
        "cap a GPU above what it takes": (EINVAL, cap | {"power_limit_mw": LAST}),
        "cap all GPUs at what none takes": (EINVAL, cap | {"uuid": b"", "power_limit_mw": 5000}),
        "cap a GPU that is not here": (NOT_FOUND, cap | {"uuid": b"GPU-1", "power_limit_mw": 300_000}),
        "reset a GPU that is not here": (NOT_FOUND, {"op": RESET, "uuid": b"GPU-1"}),
        "end lease 0": (NOT_FOUND, {"op": END}),
        "end a lease that never was": (NOT_FOUND, {"op": END, "lease_id": 77}),
        "end the last lease there could be": (NOT_FOUND, {"op": END, "lease_id": 2 * big - 1}),
        "renew a lease that never was": (NOT_FOUND, {"op": RENEW, "lease_id": 77}),
        "renew for a nanosecond": (EINVAL, {"op": RENEW, "ttl_ns": 1}),
        "renew for ever": (EINVAL, {"op": RENEW, "ttl_ns": 2 * big - 1}),
        "look at a GPU beyond the last": (NOT_FOUND, {"op": STATUS, "gpu_index": GPUS}),
        "look at the last GPU there could be": (NOT_FOUND, {"op": STATUS, "gpu_index": LAST}),
        "hold the CPUs for a nanosecond": (EINVAL, {"op": CPU, "max_mhz": 1000, "ttl_ns": 1}),
        "hold the CPUs for ever": (EINVAL, {"op": CPU, "max_mhz": 1000, "ttl_ns": 2 * big - 1}),
        "hold the CPUs at a clock that none has": (EINVAL, {"op": CPU, "max_mhz": LAST}),
        "cut a GPU into words": (EINVAL, mig | {"mig": b"everything"}),
        "cut a GPU by a command": (EINVAL, mig | {"mig": b"9:0; reboot"}),
        "cut a GPU by a text without an end": (EINVAL, mig | {"mig": b"9" * 80}),
        "cut a GPU that is not here": (NOT_FOUND, mig | {"uuid": b"GPU-1", "mig": b"9:0"}),
        "ask for operation 0": (EINVAL, {"op": 0}),
        "ask for the operation after the last": (EINVAL, {"op": MIG + 1}),
        "ask for the last operation there could be": (EINVAL, {"op": LAST}),
        "speak version 0": (VERSION_RC, lease | {"version": 0}),
        "speak the version before": (VERSION_RC, lease | {"version": VERSION - 1}),
        "speak the version after": (VERSION_RC, lease | {"version": VERSION + 1}),
        "speak the last version there could be": (VERSION_RC, lease | {"version": LAST}),
    }


HEARD = {}


def hear():
    """{what: (answer, whether the machine was as before)}, from one actuator; and whether it serves at the end."""
    if HEARD:
        return HEARD
    with guarded(mig=IN_MIG) as m:
        client, before = Raw(m), stands(m)
        for what, (_, fields) in refused_messages().items():
            if isinstance(fields.get("uuid"), int):
                fields = fields | {"uuid": m.uuids[fields["uuid"]].encode()}
            reply = client.say(**fields)
            HEARD[what] = reply["rc"], reply["message"], stands(m) == before
        HEARD["at the end"] = client.say(op=HELLO)["rc"], m.actuator.poll()
    return HEARD


def refused(what, wanted):
    def case():
        rc, message, same = hear()[what]
        assert rc == wanted and message, (rc, message)
        assert same, "the machine is not as it was"
        assert HEARD["at the end"] == (0, None), HEARD["at the end"]
    return f"the daemon's account cannot {what}", case


# What may be answered, and stays within what the boards can do.

def clocks_beyond_the_boards_are_the_nearest_they_have():
    with guarded() as m:
        client, uuid = Raw(m), m.uuids[0].encode()
        tops = max(gpu["lock_max_mhz"] for gpu in m.state())
        for low, high in ((LAST, LAST), (1, LAST), (1, 1)):
            reply = client.say(op=SET, lease_id=10, job_id=1, min_mhz=low, max_mhz=high, uuid=uuid)
            (gpu,) = [gpu for gpu in m.state() if gpu["index"] == 0]
            assert reply["rc"] == 0 and gpu["locked"], (low, high, reply)
            assert 200 < gpu["lock_min_mhz"] <= gpu["lock_max_mhz"] <= 1980, (low, high, gpu, tops)
        assert client.say(op=END, lease_id=10)["rc"] == 0
        restored(m)


def a_ceiling_for_cpus_is_never_below_their_lowest_clock():
    with guarded() as m:
        client = Raw(m)
        client.say(op=CPU, max_mhz=1)
        assert all(mhz >= 800 for mhz in m.cpu_limits().values()), m.cpu_limits()
        client.say(op=CPU, max_mhz=0)
        restored(m)


def a_lease_raises_no_limit_above_a_facilitys_cap():
    with guarded() as m:
        client, uuid = Raw(m), m.uuids[0].encode()
        assert client.say(op=CAP, power_limit_mw=300_000)["rc"] == 0
        for rank in range(3):
            client.say(op=SET, lease_id=10 + rank, job_id=1 + rank, rank=rank, power_limit_mw=700_000, uuid=uuid)
            assert m.limits() == dict.fromkeys(range(GPUS), 300_000), (rank, m.limits())
        assert client.say(op=CAP)["rc"] == 0


def a_lease_of_one_gpu_is_none_of_another():
    with guarded() as m:
        client = Raw(m)
        assert client.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[0].encode())["rc"] == 0
        before = stands(m)
        reply = Raw(m).say(op=SET, lease_id=10, job_id=2, max_mhz=600, uuid=m.uuids[1].encode())
        assert reply["rc"] == CONFLICT and stands(m) == before, reply


def a_benchmark_is_not_outbid():
    with guarded() as m:
        uuid = m.uuids[0].encode()
        assert Raw(m).say(op=SET, lease_id=10, job_id=1, rank=BENCHMARK, max_mhz=900, uuid=uuid)["rc"] == 0
        before = stands(m)
        assert Raw(m).say(op=SET, lease_id=20, job_id=2, rank=BENCHMARK, max_mhz=1980, uuid=uuid)["rc"] == BUSY
        Raw(m).say(op=SET, lease_id=30, job_id=3, max_mhz=1980, power_limit_mw=200_000, uuid=uuid)
        assert stands(m) == before, stands(m)


def an_end_that_is_sent_again_ends_nothing_else():
    with guarded() as m:
        client, uuid = Raw(m), m.uuids[0].encode()
        assert client.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=uuid)["rc"] == 0
        end = client.message(op=END, lease_id=10)
        client.socket.send(end)
        assert client.receive()["rc"] == 0
        assert client.say(op=SET, lease_id=20, job_id=1, max_mhz=900, uuid=uuid)["rc"] == 0
        for _ in range(5):
            client.socket.send(end)
            assert client.receive()["rc"] == NOT_FOUND
        assert list(m.locked()) == [0], m.locked()


def a_gpu_that_is_not_in_mig_mode_is_not_cut():
    with guarded() as m:
        before = stands(m)
        assert Raw(m).say(op=MIG, uuid=m.uuids[0].encode(), mig=b"19:0")["rc"] < 0
        assert stands(m) == before


def declaring_reads_no_file_of_the_callers():
    with guarded() as m:
        before = stands(m)
        Raw(m).say(op=DECLARE, uuid=m.path("mine").encode(), mig=b"/etc/shadow")
        assert stands(m) == before and "shadow" not in m.said() and m.actuator.poll() is None, m.said()


# More of everything than anybody needs.

def more_leases_than_there_are_places_are_refused_and_go():
    with guarded() as m:
        client, uuid = Raw(m), m.uuids[0].encode()
        rcs = [client.say(op=SET, lease_id=n, job_id=n, rank=0, max_mhz=900, ttl_ns=3_600_000 * MS, uuid=uuid)["rc"] for n in range(1, 521)]
        assert rcs[:512] == [0] * 512 and set(rcs[512:]) == {LIMIT}, rcs
        assert Raw(m, 0).say(op=RESET)["rc"] == 0
        restored(m)
        assert client.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[1].encode())["rc"] == 0


def a_gpu_that_hangs_with_hundreds_of_requests_holds_up_nobody_for_long():
    with guarded("--deadline-ms", "500") as m:
        hostile, other = Raw(m), Raw(m, 0)
        m.fault(0, "hang")
        for n in range(300):
            hostile.socket.send(hostile.message(op=SET, lease_id=1000 + n, job_id=1000 + n, max_mhz=900, uuid=m.uuids[0].encode()))
        assert other.say(op=HELLO)["rc"] == 0
        hostile.close()
        until(lambda: other.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[1].encode())["rc"] == 0, "its places are free again")
        assert m.locked()[1][1] == 900
        m.fault(0)
        assert other.say(op=RESET)["rc"] == 0
        restored(m)


def all_places_taken_by_the_silent_end_no_lease_later():
    with guarded() as m:
        silent = [Raw(m)]
        assert silent[0].say(op=SET, lease_id=10, job_id=1, max_mhz=900, ttl_ns=300 * MS, uuid=m.uuids[0].encode())["rc"] == 0
        silent += [Raw(m) for _ in range(15)]
        late = Raw(m)
        assert late.receive()["rc"] == LIMIT
        restored(m)
        for client in silent:
            client.close()
        until(lambda: served(m), "a place is free again")


def served(m, uid=DAEMON):
    try:
        return Raw(m, uid).say(op=HELLO)["rc"] == 0
    except (AssertionError, OSError):
        return False


def who_comes_and_goes_by_the_hundred_holds_up_nobody():
    with guarded() as m:
        client = Raw(m)
        for _ in range(600):
            with contextlib.suppress(OSError):
                Raw(m).close()
        assert client.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[0].encode())["rc"] == 0
        assert list(m.locked()) == [0]


def other_users_by_the_hundred_take_no_place():
    with guarded() as m:
        client, strangers = Raw(m), []
        for _ in range(300):
            with contextlib.suppress(OSError):
                strangers.append(Raw(m, ALICE))
        until(lambda: served(m), "the daemon is served beside them")
        assert client.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[0].encode())["rc"] == 0
        for stranger in strangers:
            stranger.close()


def descriptors(m):
    return len(os.listdir(f"/proc/{m.actuator.pid}/fd"))


def descriptors_that_nobody_asked_for_are_not_kept():
    with guarded() as m:
        client = Raw(m)
        assert client.say(op=HELLO)["rc"] == 0
        before, null = descriptors(m), os.open("/dev/null", os.O_RDONLY)
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 200))]
        for _ in range(50):
            client.socket.sendmsg([client.message(op=HELLO)], passed)
            assert client.receive()["rc"] == 0
        os.close(null)
        assert descriptors(m) == before, (descriptors(m), before)


def a_connection_that_is_closed_leaves_nothing_open():
    with guarded() as m:
        client = Raw(m)
        assert client.say(op=HELLO)["rc"] == 0
        before = descriptors(m)
        for _ in range(40):
            torn = Raw(m)
            torn.socket.send(b"x")
            torn.socket.send(torn.message(op=HELLO))
            torn.close()
        until(lambda: descriptors(m) == before, lambda: f"all are closed: {descriptors(m)}, not {before}")
        assert client.say(op=HELLO)["rc"] == 0


def who_reads_no_answer_is_let_go_and_others_are_served():
    with guarded() as m:
        client, deaf = Raw(m), Raw(m)
        deaf.socket.setblocking(False)

        def flood():
            with contextlib.suppress(OSError):
                while True:
                    deaf.socket.send(deaf.message(op=HELLO))
            return "does not take its replies" in m.said()
        until(flood, "it is said")
        assert client.say(op=HELLO)["rc"] == 0


def message(length):
    def case():
        with guarded() as m:
            client, before = Raw(m), stands(m)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            client.socket.send((client.message(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[0].encode()) * 400)[:length])
            reply = client.receive()
            assert reply["rc"] == VERSION_RC and stands(m) == before, reply
            assert client.say(op=HELLO)["rc"] == 0
    return f"the daemon's account is not served for {length} bytes", case


def messages_at_random_set_no_board_where_it_cannot_stand():
    with guarded(mig=IN_MIG) as m:
        chance, client = random.Random(SEED), Raw(m)
        for _ in range(3000):
            raw = bytearray(chance.randbytes(REQUEST.size))
            raw[0:4] = VERSION.to_bytes(4, "little")
            raw[4:8] = (chance.randrange(12)).to_bytes(4, "little")
            if chance.random() < 0.8:
                raw[80:176] = m.uuids[chance.randrange(GPUS)].encode().ljust(96, b"\0")
                raw[176] = 0
            try:
                client.socket.send(bytes(raw) if chance.random() < 0.9 else bytes(raw[:chance.randrange(1, len(raw))]))
                client.socket.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    client.socket.recv(4096)
            except OSError:  # hung up on
                client.close()
                client = Raw(m)
        assert m.actuator.poll() is None, m.said()
        for gpu in m.state():
            assert not gpu["locked"] or 200 < gpu["lock_min_mhz"] <= gpu["lock_max_mhz"] <= 1980, gpu
            assert 200_000 <= gpu["limit_mw"] <= 700_000, gpu
        assert all(800 <= mhz for mhz in m.cpu_limits().values())
        client.close()
        roots = Raw(m, 0)
        for fields in ({"op": CAP}, {"op": CPU}, {"op": RESET}):
            roots.say(**fields)
        restored(m)


# Other users, and what is no message.

def of_another_user(uid, who, what, **fields):
    def case():
        with guarded() as m:
            daemons = Raw(m)
            assert daemons.say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[0].encode())["rc"] == 0
            before, stranger = stands(m), Raw(m, uid)
            with contextlib.suppress(OSError):
                stranger.socket.send(stranger.message(uuid=m.uuids[0].encode(), **fields))
            heard = []
            with contextlib.suppress(ConnectionResetError):  # a refusal that was not read in time goes with it
                while True:
                    heard.append(stranger.receive())
            assert len(heard) <= 1, heard
            for reply in heard:
                assert reply["rc"] == EACCES and reply["epoch"] == 0 and reply["uuid"] == "", reply
            assert stands(m) == before and daemons.say(op=HELLO)["rc"] == 0
    return f"{who} cannot {what}", case


def file_of(m, name, flags):
    os.close(os.open(m.path(name), flags))


def lock(m, name):
    fcntl.flock(os.open(m.path(name), os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def by_hand(what, function):
    """Not by a message: as the daemon's account, from outside."""
    def case():
        with guarded() as m:
            assert Raw(m).say(op=SET, lease_id=10, job_id=1, max_mhz=900, uuid=m.uuids[0].encode())["rc"] == 0
            before = stands(m)
            said = as_user(DAEMON, lambda: function(m))
            assert said == "not permitted", said
            assert stands(m) == before and served(m) and m.actuator.poll() is None and m.guards()
    return f"the daemon's account cannot {what}", case


STRANGERS = [of_another_user(uid, who, what, **fields) for uid, who in ((ALICE, "another user"), (65534, "nobody"))
             for what, fields in {
                 "greet the actuator": {"op": HELLO}, "set a clock": {"op": SET, "lease_id": 20, "job_id": 2, "max_mhz": 600},
                 "end the daemon's lease": {"op": END, "lease_id": 10}, "reset a GPU": {"op": RESET},
                 "cap a GPU": {"op": CAP, "power_limit_mw": 300_000}, "see how a GPU stands": {"op": STATUS},
                 "cut a GPU": {"op": MIG, "mig": b"19:0"}, "hold the CPUs": {"op": CPU, "max_mhz": 1000}}.items()]

BY_HAND = [by_hand(what, function) for what, function in {
    "kill the actuator": lambda m: os.kill(m.actuator.pid, signal.SIGKILL),
    "stop the actuator": lambda m: os.kill(m.actuator.pid, signal.SIGSTOP),
    "end the actuator": lambda m: os.kill(m.actuator.pid, signal.SIGTERM),
    "kill the guard": lambda m: os.kill(m.guards()[0], signal.SIGKILL),
    "stop the guard": lambda m: os.kill(m.guards()[0], signal.SIGSTOP),
    "read the actuator's memory": lambda m: open(f"/proc/{m.actuator.pid}/mem", "rb").close(),
    "write the actuator's memory": lambda m: open(f"/proc/{m.actuator.pid}/mem", "r+b").close(),
    "see what the actuator has open": lambda m: os.listdir(f"/proc/{m.actuator.pid}/fd"),
    "change the actuator's limits": lambda m: resource.prlimit(m.actuator.pid, resource.RLIMIT_NOFILE, (3, 3)),
    "read the journal": lambda m: file_of(m, "journal", os.O_RDONLY),
    "write the journal": lambda m: file_of(m, "journal", os.O_WRONLY),
    "remove the journal": lambda m: os.unlink(m.path("journal")),
    "put a link beside the journal": lambda m: os.symlink("/etc/shadow", m.path("journal.new")),
    "move the journal away": lambda m: os.rename(m.path("journal"), m.path("gone")),
    "hold the lock of whoever sets": lambda m: lock(m, "lock"),
    "remove that lock": lambda m: os.unlink(m.path("lock")),
    "take the socket's place": lambda m: os.unlink(m.path("socket")),
    "open the socket to nobody": lambda m: os.chmod(m.path("socket"), 0),
}.items()]


if __name__ == "__main__":
    sys.exit(main([
        *(refused(what, wanted) for what, (wanted, _) in refused_messages().items()),
        *map(message, (1, REQUEST.size - 1, REQUEST.size + 1, 2 * REQUEST.size, 65536)),
        clocks_beyond_the_boards_are_the_nearest_they_have, a_ceiling_for_cpus_is_never_below_their_lowest_clock,
        a_lease_raises_no_limit_above_a_facilitys_cap, a_lease_of_one_gpu_is_none_of_another, a_benchmark_is_not_outbid,
        an_end_that_is_sent_again_ends_nothing_else, a_gpu_that_is_not_in_mig_mode_is_not_cut,
        declaring_reads_no_file_of_the_callers, more_leases_than_there_are_places_are_refused_and_go,
        a_gpu_that_hangs_with_hundreds_of_requests_holds_up_nobody_for_long,
        all_places_taken_by_the_silent_end_no_lease_later, who_comes_and_goes_by_the_hundred_holds_up_nobody,
        other_users_by_the_hundred_take_no_place, descriptors_that_nobody_asked_for_are_not_kept,
        a_connection_that_is_closed_leaves_nothing_open, who_reads_no_answer_is_let_go_and_others_are_served,
        messages_at_random_set_no_board_where_it_cannot_stand, *STRANGERS, *BY_HAND]))
