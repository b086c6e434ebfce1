#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt-twin as its users meet it: machines, workloads, faults, and what it says to mistakes."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from twin_machine import Machine, main, tap, TWIN  # noqa: E402


def takt_twin(*arguments, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("TAKT_TWIN", "CUDA_VISIBLE_DEVICES")}
    return subprocess.run([TWIN, *arguments], env=dict(clean, **env), capture_output=True,
                          text=True, timeout=60, check=False)


def refused(done, status, *words):
    assert done.returncode == status, (done.returncode, done.stderr)
    assert done.stdout == "", done.stdout
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def help_teaches():
    general = takt_twin("--help")
    assert general.returncode == 0
    page = takt_twin("man").stdout
    for verb in ("create", "destroy", "list", "board", "machine", "exec", "load", "fault", "kmsg", "state",
                 "time", "man"):
        assert verb in general.stdout and f'.SS "takt\\-twin {verb}"\n' in page
        assert takt_twin(verb, "--help").stdout.count("usage: takt-twin " + verb) == 1


def mistakes_are_named():
    refused(takt_twin("frobnicate"), 64, "no verb 'frobnicate'", "usage:")
    refused(takt_twin("create"), 64, "takt-twin list")
    refused(takt_twin("create", "dgx-99"), 66, "no machine 'dgx-99'")
    refused(takt_twin("create", "hgx-h100", "--gpus", "9"), 64, "has 8 GPUs, not 9")
    refused(takt_twin("create", "hgx-h100", "--gpus", "many"), 64, "--gpus", "'many'")
    refused(takt_twin("create", "hgx-h100", "--frob"), 64, "'--frob'")
    refused(takt_twin("state"), 64, "TAKT_TWIN")
    refused(takt_twin("state", TAKT_TWIN=__file__), 76, __file__)
    refused(takt_twin("load", TAKT_TWIN="/nonexistent"), 66, "/nonexistent")
    refused(takt_twin("exec", "--", "true"), 64, "no machine")


def mistakes_on_a_machine_are_named():
    with Machine("hgx-h100", "--gpus", "2") as machine:
        refused(machine.run("create", "hgx-h100", "--path", machine.path), 75, "exists already")
        refused(machine.run("load", "--profile", "tetris"), 64, "'tetris'", "gemm")
        refused(machine.run("load", "--gpus", "2"), 66, "no GPU '2'")
        refused(machine.run("fault", "0", "smoke"), 64, "'smoke'", "hang")
        refused(machine.run("fault", "0", "slow"), 64, "slow=20")
        refused(machine.run("fault", "0", "lost=3"), 64, "takes no value")
        refused(machine.run("exec", "--", "no-such-program"), 127, "no-such-program")
        refused(machine.run("load", "--mem", "90000"), 1, "out of memory")


def exit_codes_pass_through():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        assert machine.run("exec", "--", "sh", "-c", "exit 7").returncode == 7
        assert machine.run("load", "--steps", "1", "--step-time-ms", "1",
                           "--exit-code", "9").returncode == 9


def a_seed_repeats_a_machine():
    def uuids(*options):
        with Machine("dgx1-v100", *options) as machine:
            return [gpu["uuid"] for gpu in machine.state()]

    assert uuids("--seed", "4") == uuids("--seed", "4")
    assert uuids() != uuids()
    assert len(set(uuids())) == 8


def step_ms(machine, *options):
    done = machine.run("load", "--steps", "5", "--step-time-ms", "40", "--quiet", *options)
    assert done.returncode == 0, done.stderr
    return float(re.search(r"mean_step_ms ([\d.]+)", done.stdout)[1])


LOCK = """
import ctypes, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
device = ctypes.c_void_p()
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceSetGpuLockedClocks(device, 345, int(sys.argv[1])) == 0
"""


@tap.plain
def a_locked_clock_slows_compute_and_hardly_memory():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        gemm, stream = step_ms(machine), step_ms(machine, "--profile", "stream")
        done = machine.run("exec", "--", sys.executable, "-c", LOCK, "990")
        assert done.returncode == 0, done.stderr
        # a busy machine may take longer than the model says, never less
        assert step_ms(machine) > 1.9 * 40
        assert gemm >= 40 and stream >= 40
        assert machine.state()[0]["lock_max_mhz"] == 990
        work = machine.start_load("--profile", "stream")
        machine.until(lambda: machine.state()[0]["sm_mhz"] == 990)
        work.kill()
        assert step_ms(machine, "--profile", "stream") < 1.9 * 40


def a_load_takes_the_gpus_it_is_given():
    with Machine("hgx-h100") as machine:
        third = machine.state()[3]["uuid"]
        machine.env["CUDA_VISIBLE_DEVICES"] = f"1,{third}"
        load = machine.start_load("--mem", "500", gpu=3)
        users = [[p["pid"] for p in gpu["processes"]] for gpu in machine.state()]
        assert users == [[], [load.pid], [], [load.pid], [], [], [], []], users
        refused(machine.run("load", "--steps", "1", CUDA_VISIBLE_DEVICES=""), 69,
                "no GPU is visible")


def a_load_ends_by_sigterm_unless_it_ignores_it():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        plain = machine.start_load()
        deaf = machine.start_load("--ignore-term")
        plain.send_signal(signal.SIGTERM)
        deaf.send_signal(signal.SIGTERM)
        assert plain.wait(10) == -signal.SIGTERM
        machine.until(lambda: [p["pid"] for p in machine.state()[0]["processes"]] == [deaf.pid])
        assert deaf.poll() is None


def a_load_on_a_lost_gpu_fails():
    with Machine("hgx-h100", "--gpus", "2") as machine:
        load = machine.start_load("--gpus", "1", gpu=1)
        assert machine.run("fault", "1", "lost").returncode == 0
        assert load.wait(10) not in (0, None)
        refused(machine.run("load", "--gpus", "1", "--steps", "1"), 1, "lost")


def a_destroyed_machine_is_gone_for_new_programs():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        assert machine.run("destroy").returncode == 0
        refused(machine.run("state"), 66, machine.path)


SCRIPT = """\
# a bad minute
0s     2    xid=13
50ms   all  ecc-corrected=3
0s     0    lost    # out of order
"""


def scripts_are_played_in_time_and_refused_as_a_whole():
    with Machine("hgx-h100", "--gpus", "4") as machine:
        script, log = (os.path.join(machine.folder.name, name) for name in ("script", "log"))

        def play(text):
            with open(script, "w", encoding="ascii") as file:
                file.write(text)
            return machine.run("fault", "--script", script, "--log", log)

        refused(play(SCRIPT), 64, script, "line 4", "before")
        refused(play("0s 0 smoke\n"), 64, "line 1", "'smoke'")
        refused(play("soon 0 lost\n"), 64, "line 1", "'soon'", "5s")
        refused(play("1s lost\n"), 64, "line 1", "TIME GPU FAULT")
        assert machine.state()[2]["faults"] == [] and open(log, encoding="ascii").read() == ""
        assert play("0s 2 xid=13\n\n50ms 1,3 ecc\n60ms 0 lost # the end\n").returncode == 0
        lines = open(log, encoding="ascii").read().splitlines()
        told = [re.search(r"NVRM: Xid \(PCI:0000:(..):00\): (\d+),", line).groups()
                for line in lines]
        at_once = {bus: [xid for where, xid in told[1:5] if where == bus] for bus in ("64", "86")}  # in any order
        assert told[0] == ("75", "13") and told[5:] == [("53", "79")], told
        assert at_once == {"64": ["48", "63"], "86": ["48", "63"]}, told
        assert machine.state()[0]["faults"] == ["lost"]


WITHOUT = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
print(nvml.nvmlInit_v2(), hasattr(nvml, "nvmlDeviceGetMemoryInfo_v2"),
      hasattr(nvml, "nvmlInitWithFlags"), hasattr(nvml, "nvmlDeviceGetMemoryInfo"))
"""


@tap.plain
def functions_can_be_missing():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        names = "nvmlDeviceGetMemoryInfo_v2,nvmlInitWithFlags"
        done = machine.run("exec", "--hide", names, "--", sys.executable, "-c", WITHOUT)
        # what remains works, also where it needs what is hidden
        assert done.stdout.split() == ["0", "False", "False", "True"], (done.stdout, done.stderr)
        refused(machine.run("exec", "--hide", "nvmlFrobnicate", "--", "true"), 66,
                "'nvmlFrobnicate'")
        assert machine.run("destroy").returncode == 0
        assert os.listdir(machine.folder.name) == []


VERSIONS = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
text = ctypes.create_string_buffer(80)
print(nvml.nvmlInit_v2(), nvml.nvmlSystemGetNVMLVersion(text, 80), text.value.decode(),
      nvml.nvmlSystemGetDriverVersion(text, 80), text.value.decode(),
      hasattr(nvml, "nvmlDeviceGetClkMonStatus"), hasattr(nvml, "nvmlDeviceGetTemperatureV"),
      hasattr(nvml, "nvmlInternalGetExportTable"))
"""


@tap.plain
def exec_picks_the_library_of_the_machines_driver():
    shown = {}
    for branch in ("535", "550", "13x"):
        with Machine("hgx-h100", "--gpus", "1", "--driver", branch) as machine:
            done = machine.run("exec", "--", sys.executable, "-c", VERSIONS)
            shown[branch] = done.stdout.split()
            if branch == "535":  # the wrong library beside a driver
                env = {"LD_LIBRARY_PATH": os.path.dirname(os.environ["TAKT_TWIN_LIB"])}
                done = subprocess.run([sys.executable, "-c", INIT, "libnvidia-ml.so.1"],
                                      env=dict(machine.env, **env), timeout=60, check=False)
                assert done.returncode == 18, done.returncode
    assert shown["535"] == "0 0 12.535.183.06 0 535.183.06 True False True".split(), shown
    assert shown["550"] == "0 0 12.550.90.07 0 550.90.07 True False True".split(), shown
    assert shown["13x"] == "0 0 13.580.105.08 0 580.105.08 True True False".split(), shown
    refused(takt_twin("create", "hgx-h100", "--driver", "470"), 64, "'470'", "13x")


# In a mount namespace of its own: a driver seems loaded, then the script (arguments follow) runs.
BESIDE_A_DRIVER = """
mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia || exit 77
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $1" > /proc/driver/nvidia/version
shift
exec "$@"
"""
INIT = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).nvmlInit_v2())"


def beside_a_driver(machine, version, *command, **env):
    shell = ["unshare", "--mount", "sh", "-c", BESIDE_A_DRIVER, "sh"]
    done = subprocess.run([*shell, version, *command], env=dict(machine.env, **env),
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode in (1, 77, 127):
        raise tap.Skip(f"no mount namespace of our own: {done.stderr.strip()[:80]}")
    return done


@tap.plain
def a_real_driver_keeps_the_twin_away():
    library = os.environ["TAKT_TWIN_LIB"]
    driver_not_loaded, folder = 9, os.path.dirname(library)
    with Machine("hgx-h100", "--gpus", "1") as machine:
        def init(name, version="580.105.08", **env):
            return beside_a_driver(machine, version, sys.executable, "-c", INIT, name,
                                   **env).returncode

        done = beside_a_driver(machine, "580.105.08", TWIN, "exec", "--", "true")
        refused(done, 69, "real NVIDIA driver")
        assert init(library) == driver_not_loaded
        assert init("libnvidia-ml.so.1", LD_LIBRARY_PATH=folder, TAKT_TWIN_FORCE="1") \
            == driver_not_loaded
        assert init(library, TAKT_TWIN_FORCE="1") == 0
        # a version file that the twin's own helpers made is no real driver
        assert init(library, version="TWIN 550.90.07") == 0


MACHINE = """board = "{board}"
bus = [1, 2]
numa = [0, 0]
cpus = ["0-7"]
near = "PHB"
links = [[0, 2], [2, 0]]
"""
PROFILE = """step_ms = 40
[work]
kind = "compute"
share = 1000
util = 900
memory_util = 100
activity = 500
clock_weight = 1000
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def users_describe_their_own_machines_and_workloads():
    with tempfile.TemporaryDirectory() as folder:
        mine = write(folder, "mine.toml", MACHINE.format(board="h100-sxm"))
        profile = write(folder, "job.toml", PROFILE)
        with Machine(mine) as machine:
            assert [gpu["name"] for gpu in machine.state()] == ["NVIDIA H100 80GB HBM3"] * 2
            done = machine.run("load", "--profile", profile, "--steps", "2")
            assert done.stdout.count("step ") == 2, done.stdout
            assert 38 < float(done.stdout.split("mean_step_ms")[1]) < 90, done.stdout


ALL_64 = ",".join(str(gpu) for gpu in range(64))


def a_machine_may_have_64_gpus():
    with Machine("h100-64") as machine:
        gpus = machine.state()
        assert len({gpu["uuid"] for gpu in gpus}) == 64
        done = machine.run("load", "--gpus", ALL_64, "--steps", "2", "--step-time-ms", "10")
        assert done.returncode == 0 and done.stdout.count("step ") == 2, done
        load = machine.start_load("--gpus", f"31,{gpus[63]['uuid']}", gpu=63)
        users = [at for at, gpu in enumerate(machine.state()) if gpu["processes"]]
        assert users == [31, 63] and load.poll() is None, users


def the_last_of_64_gpus_breaks_alone():
    with Machine("h100-64") as machine:
        def broken():
            return [at for at, gpu in enumerate(machine.state()) if gpu["faults"]]

        for gpu in ("32", "63"):  # the numbers that masks of 32 bits would take for others
            assert machine.run("fault", gpu, "lost").returncode == 0
            assert broken() == [int(gpu)], broken()
            refused(machine.run("load", "--gpus", ALL_64, "--steps", "1"), 1, f"GPU {gpu}", "lost")
            assert machine.run("fault", gpu, "none").returncode == 0
        assert machine.run("fault", "all", "slow=1").returncode == 0
        assert broken() == list(range(64))
        refused(machine.run("fault", "64", "lost"), 66, "0 to 63")


MANY = """board = "l40s"
gpus = {gpus}
cpus = ["0-7", "8-15"]
near = "PIX"
"""


TALK = PROFILE + """[talk]
kind = "communication"
share = 1000
util = 1000
memory_util = 60
activity = 200
"""


def sets_of_many_gpus_are_as_fast_as_their_narrowest_link():
    """Near buses first, then between sockets; 20 is more than the table of all sets is for."""
    with tempfile.TemporaryDirectory() as folder:
        talk = write(folder, "talk.toml", TALK)
        with Machine(write(folder, "many.toml", MANY.format(gpus=20))) as machine:
            def ms(gpus):
                return job_ms(machine, "--profile", talk, "--gpus", gpus)

            near = ms("0,1,9")
            for across in ("0,10", "0,1,10", "0,1,2,10,11,12"):
                far = ms(across)
                assert far > near * 1.15, (across, near, far)
            assert machine.run("fault", "1", "pcie-width=4").returncode == 0
            assert ms("0,1,9") > near * 1.5
            assert ms("10,15,19") < near * 1.15


def a_machine_of_another_layout_is_refused():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        with open(machine.path, "r+b") as file:
            file.seek(8)
            layout = file.read(1)[0]
            file.seek(8)
            file.write(bytes([layout - 1]))
        refused(machine.run("state"), 76, "another version", "create it again")
        with open(machine.path, "r+b") as file:
            file.truncate(771064)
        refused(machine.run("state"), 76, "another version", "create it again")


READ = """
import ctypes, sys
nvml, power, gpu = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(), ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)) == 0
assert nvml.nvmlDeviceGetPowerUsage(gpu, ctypes.byref(power)) == 0
print(power.value)
"""


@tap.plain
def sensors_show_the_truth_where_noise_is_left_out():

    def shown(*options):
        with Machine("hgx-h100", "--gpus", "1", "--seed", "5", "--speed", "0", *options) as machine:
            assert machine.run("time", "--advance", "10s").returncode == 0
            return int(machine.run("exec", "--", sys.executable, "-c", READ).stdout)

    assert shown("--no-noise") != shown()


def mistakes_in_files_name_line_key_and_remedy():
    good = MACHINE.format(board="h100-sxm")
    cases = [
        (good.replace("h100-sxm", "h100"), 66, "no board 'h100'"),
        (good.replace("bus = [1, 2]", "bus = [2, 1]"), 65, "mine.toml:2: bus", "rise"),
        (good.replace("PHB", "CLOSE"), 65, "mine.toml:5: near", "NODE"),
        (good + "fan = 3\n", 65, "mine.toml:7: fan", "not a key"),
        (good.replace("[0, 2]", "[0, 3]"), 65, "mine.toml:6: links", "same both ways"),
        (good.replace("[[0, 2], [2, 0]]", "[[0, 40], [40, 0]]"), 65, "links", "nvlinks"),
        (good.replace("cpus", "#"), 65, "cpus is missing"),
        (good.replace('near = "PHB"', "near"), 65, "mine.toml:5:", "key = value"),
        ("gpus = 3\n" + good, 65, "mine.toml:1: gpus", "as many as bus"),
        ("gpus = 65\n" + good, 65, "mine.toml:1: gpus", "from 1 to 64"),
        (good.replace("numa = [0, 0]", "numa = [0]"), 65, "mine.toml:3: numa", "each GPU"),
        (good.replace("numa", "#"), 65, "numa is missing"),
        (good + '[permission]\nsetters = "me"\n', 65, "mine.toml:8: permission.setters", "nobody"),
        (good + '[permission]\nroot = ["nvmlFrob"]\n', 65, "mine.toml:8: permission.root",
         "function"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for text, status, *words in cases:
            path = write(folder, "mine.toml", text)
            refused(takt_twin("create", path, "--dir", folder), status, *words)
        refused(takt_twin("create", os.path.join(folder, "none.toml")), 66, "none.toml")
        with Machine("hgx-h100", "--gpus", "1") as machine:
            bad = write(folder, "job.toml", PROFILE.replace("share = 1000", "share = 900"))
            refused(machine.run("load", "--profile", bad), 65, "job.toml:4: work.share",
                    "1000, not 900")
            bad = write(folder, "job.toml", PROFILE.replace("compute", "music"))
            refused(machine.run("load", "--profile", bad), 65, "job.toml:3: work.kind", "host")


def mistakes_in_boards_name_line_key_and_remedy():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../twin/boards/t4.toml")
    with open(source, encoding="utf-8") as file:
        good = file.read()
    cases = [
        (good.replace("cores = 2560", "cores = 0"), "cores", "from 1 to 1000000"),
        (good.replace('brand = "NVIDIA"', 'brand = "nv"'), "brand", "GEFORCE"),
        (good.replace('"gsp"', '"gps"'), "features", "gsp"),
        (good.replace("memory = [5001, 405]", "memory = [405, 5001]"), "clocks.memory", "fall"),
        (good.replace("default = 70000", "default = 90000"), "b.toml:39: power.default", "between"),
        (good.replace("sm_step_x10 = 150", "sm_step_x10 = 160"), "b.toml:27: clocks.sm_max"),
        (good.replace("shutdown_c = 96", "shutdown_c = 90"), "thermal.gpu_max_c", "shutdown_c"),
        (good.replace("k_per_kw = 330", "k_per_kw = 5000"), "b.toml:54: thermal.k_per_kw", "at rest"),
        (good + "[mig]\nprofiles = [[19, 0, 9, 1, 7, 14, 1, 0, 0, 0, 4864]]\n", "b.toml:23: features",
         "mig"),
        (good.replace('"gsp"', '"mig"') + "[mig]\nprofiles = [[19, 0, 9, 1, 7, 14, 1, 0, 0, 0, 9]]\n",
         "mig.profiles", "1 to 7"),
        (good.replace("tau_ms", "tau"), "thermal.tau_ms is missing"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for text, *words in cases:
            assert text != good
            refused(takt_twin("board", write(folder, "b.toml", text)), 65, "b.toml", *words)
    assert "leak_per_k" in takt_twin("board", "--keys").stdout


def job_ms(machine, *arguments):
    done = machine.run("load", "--profile", "gpt-train", "--step-time-ms", "100", "--steps", "6",
                       "--mem", "100", "--quiet", *arguments)
    return float(done.stdout.split("mean_step_ms")[1])


def a_badly_linked_set_and_a_straggler_are_slower():
    with Machine("dgx1-v100") as machine:
        good, bad = job_ms(machine, "--gpus", "0,3"), job_ms(machine, "--gpus", "0,7")
        assert good < 130 < 160 < bad, (good, bad)
    with Machine("hgx-h100") as machine:
        even = job_ms(machine, "--gpus", "0,1")
        slow = job_ms(machine, "--gpus", "0,1", "--straggler", "1=50")
        assert slow > even * 1.6, (even, slow)


def links_that_go_down_slow_a_running_job():
    with Machine("dgx1-v100") as machine:
        child = machine.start_load("--profile", "gpt-train", "--step-time-ms", "100", "--mem", "9",
                                   "--gpus", "0,3", out=True)
        good = [ms for ms in step_times(child, 4)][1:]
        # both links between the two; the far ends go down, too
        for link in (2, 3):
            assert machine.run("fault", "0", f"link-down={link}").returncode == 0
        bad = [ms for ms in step_times(child, 8)][4:]
        # the quickest of each: a busy machine makes steps longer, never shorter
        assert min(bad) > min(good) * 1.3, (good, bad)
        assert machine.run("fault", "0,3", "none").returncode == 0
        again = [ms for ms in step_times(child, 8)][4:]
        assert min(again) < min(bad) / 1.2, (again, bad)
        lines = machine.run("kmsg").stdout.splitlines()
        assert [line.split("PCI:0000:")[1][:2] for line in lines] == ["06", "0b"] * 2, lines


def a_bus_that_falls_back_slows_jobs_that_need_it():
    with Machine("l40s-8", "--gpus", "4") as machine:
        even = job_ms(machine, "--gpus", "0,1")
        assert machine.run("fault", "1", "pcie-width=4").returncode == 0
        assert job_ms(machine, "--gpus", "0,1") > even * 1.3
        assert job_ms(machine, "--gpus", "2,3") < even * 1.15
        starved = ("--profile", "data-starved", "--step-time-ms", "50", "--steps", "4", "--quiet")
        one, four = (float(machine.run("load", "--gpus", gpu, *starved)
                           .stdout.split("mean_step_ms")[1]) for gpu in ("0", "1"))
        assert four > one * 1.3, (one, four)


def a_measured_workload_runs_as_it_was_measured():
    rows = os.environ["TAKT_TWIN_ROWS"]
    with Machine("dgx-a100", "--gpus", "1", "--speed", "20") as machine:
        def load(*more):
            return machine.run("load", "--rows", rows, "--quiet", *more)

        name = "cifar100/shufflenetv2/bs1024/adadelta"
        done = load("--workload", "gpt3-175b/stage0/forward", "--step-time-ms", "500", "--steps",
                    "20")
        # held down to the board's 400 W, at which 52.9 ms were measured, of 50.2 at full power
        assert 520 < float(done.stdout.split("mean_step_ms")[1]) < 600, (done.stdout, done.stderr)
        assert "beyond" not in done.stderr
        refused(load("--workload", name), 64, "measured.csv:", "--measured-on")
        refused(load("--workload", "none"), 66, "'none'")
        refused(load(), 64, "--workload")
        low = write(machine.folder.name, "low.csv",
                    "workload,core_mhz,time,power_w\njob,500,2,90\njob,1000,1,150\n")
        done = machine.run("load", "--rows", low, "--workload", "job", "--step-time-ms", "100",
                           "--steps", "9")
        assert done.stderr.count("beyond what was measured, 500 to 1000 MHz") == 1, done.stderr


def step_times(child, count):
    for _ in range(count):
        yield float(child.stdout.readline().split("time_ms ")[1].split()[0])


def a_fault_to_come_needs_nobody():
    with Machine("hgx-h100", "--gpus", "2") as machine:
        done = machine.run("fault", "1", "lost", "--at", "400ms")
        assert done.returncode == 0 and machine.state()[1]["faults"] == []
        assert [p["fault"] for p in machine.state()[1]["planned"]] == ["lost"]
        machine.until(lambda: machine.state()[1]["faults"] == ["lost"])
        assert machine.state()[1]["planned"] == [] and machine.state()[0]["faults"] == []
        assert " 79, " in machine.run("kmsg").stdout
        assert machine.run("fault", "all", "none").returncode == 0
        assert machine.run("fault", "all", "lost", "--at", "1s").returncode == 0
        assert machine.run("fault", "all", "forget").returncode == 0
        assert machine.state()[0]["planned"] == []


def errors_take_jobs_along_or_leave_them():
    with Machine("hgx-h100", "--gpus", "2") as machine:
        one = machine.start_load("--gpus", "0", "--quiet", "--mem", "9")
        other = machine.start_load("--gpus", "0", "--quiet", "--mem", "9")
        for harmless in ("xid=63", "ecc-corrected=5", "xid=92"):
            assert machine.run("fault", "0", harmless).returncode == 0
        work = sum(p["work_ms"] for p in machine.state()[0]["processes"])
        machine.until(lambda: sum(p["work_ms"] for p in machine.state()[0]["processes"])
                      > work + 100)
        assert machine.run("fault", "0", "xid=31").returncode == 0  # of one program
        machine.until(lambda: [one.poll(), other.poll()].count(None) == 1)
        assert machine.run("fault", "0", "ecc").returncode == 0
        assert 0 not in (one.wait(timeout=20), other.wait(timeout=20))
        done = machine.run("load", "--steps", "1", "--quiet")
        assert done.returncode == 0, done.stderr


def a_hanging_gpu_stops_its_job_until_it_answers():
    with Machine("hgx-h100", "--gpus", "2", "--speed", "5") as machine:
        child = machine.start_load("--gpus", "0,1", "--quiet")

        def work():
            return [p["work_ms"] for gpu in machine.state() for p in gpu["processes"]]

        machine.until(lambda: len(work()) == 2 and min(work()) > 0)
        assert machine.run("fault", "1", "hang").returncode == 0
        def rests():
            before = work()
            time.sleep(0.3)  # a second and a half there
            return before == work()

        # the program waits; its GPUs go on with what was given to them, then rest
        machine.until(rests)
        stopped = work()
        machine.until(lambda: [gpu["util_pct"] for gpu in machine.state()] == [0, 0])
        assert stopped == work() and child.poll() is None
        assert machine.run("fault", "1", "none").returncode == 0
        machine.until(lambda: min(work()) > max(stopped) + 500)


def an_overheated_gpu_takes_its_job_along():
    with Machine("hgx-h100", "--gpus", "2", "--speed", "100") as machine:
        child = machine.start_load("--gpus", "0,1", "--quiet")
        assert machine.run("fault", "1", "air=1").returncode == 0
        machine.until(lambda: machine.state()[1]["faults"] == ["lost"])
        assert child.wait(timeout=20) != 0
        hot = machine.state()[1]
        assert hot["power_mw"] == 0 and hot["temp_c"] > 40, hot


def time_can_be_sped_up():
    with Machine("hgx-h100", "--gpus", "2", "--speed", "50") as machine:
        before = machine.machine_state()
        done = machine.run("load", "--steps", "400", "--quiet", "--gpus", "0")
        after = machine.machine_state()
        world, own = (after[key] - before[key] for key in ("boot_ns", "now_ns"))
        assert own == 50 * world or abs(own / world - 50) < 1, (own, world)
        # 40 s of work, at the speed that work has in the machine's own time
        mean = float(done.stdout.split("mean_step_ms")[1])
        assert 99 < mean < 150, done.stdout
        joules = (after["gpus"][0]["energy_mj"] - before["gpus"][0]["energy_mj"]) / 1e3
        assert 550 * 40 < joules < 720 * own / 1e9, (joules, own)
        refused(machine.run("time", "--speed", "1001"), 64, "1000")


def a_stopped_clock_and_a_seed_repeat_a_machine_to_the_bit():
    shown = []
    for _ in range(2):
        with Machine("hgx-h100", "--gpus", "2", "--seed", "5", "--speed", "0") as machine:
            for act in (("fault", "1", "power-brake", "--at", "3s"), ("time", "--advance", "10s"),
                        ("fault", "0", "air=20"), ("time", "--advance", "500s")):
                assert machine.run(*act).returncode == 0
            # counted from its making, which is of the world
            state = machine.state()
            shown.append(state)
    assert shown[0] == shown[1]
    assert shown[0][1]["energy_mj"] > 500 * 60 * 1000


def a_load_leaks_until_memory_is_out():
    with Machine("t4-4", "--gpus", "1") as machine:
        done = machine.run("load", "--profile", "memory-leak", "--step-time-ms", "10", "--mem",
                           "14000")
        assert done.returncode != 0 and "out of memory" in done.stderr, done.stderr
        assert 1 <= done.stdout.count("step ") <= 5


def a_load_can_fail_and_hang():
    with Machine("hgx-h100", "--gpus", "1") as machine:
        done = machine.run("load", "--step-time-ms", "10", "--steps", "9", "--fail-at", "2")
        assert done.returncode != 0 and done.stdout.count("step ") == 2
        child = machine.start_load("--step-time-ms", "10", "--hang-at", "2")
        machine.until(lambda: machine.state()[0]["util_pct"] == 100
                      and machine.state()[0]["power_mw"] < 300000)
        assert child.poll() is None


sys.exit(main([
    users_describe_their_own_machines_and_workloads,
    a_machine_may_have_64_gpus,
    the_last_of_64_gpus_breaks_alone,
    sets_of_many_gpus_are_as_fast_as_their_narrowest_link,
    a_machine_of_another_layout_is_refused,
    sensors_show_the_truth_where_noise_is_left_out,
    mistakes_in_files_name_line_key_and_remedy,
    mistakes_in_boards_name_line_key_and_remedy,
    a_badly_linked_set_and_a_straggler_are_slower,
    links_that_go_down_slow_a_running_job,
    a_bus_that_falls_back_slows_jobs_that_need_it,
    a_fault_to_come_needs_nobody,
    errors_take_jobs_along_or_leave_them,
    a_hanging_gpu_stops_its_job_until_it_answers,
    an_overheated_gpu_takes_its_job_along,
    a_measured_workload_runs_as_it_was_measured,
    time_can_be_sped_up,
    a_stopped_clock_and_a_seed_repeat_a_machine_to_the_bit,
    a_load_leaks_until_memory_is_out,
    a_load_can_fail_and_hang,
    help_teaches,
    mistakes_are_named,
    mistakes_on_a_machine_are_named,
    exit_codes_pass_through,
    a_seed_repeats_a_machine,
    a_locked_clock_slows_compute_and_hardly_memory,
    a_load_takes_the_gpus_it_is_given,
    a_load_ends_by_sigterm_unless_it_ignores_it,
    a_load_on_a_lost_gpu_fails,
    a_destroyed_machine_is_gone_for_new_programs,
    a_real_driver_keeps_the_twin_away,
    scripts_are_played_in_time_and_refused_as_a_whole,
    functions_can_be_missing,
    exec_picks_the_library_of_the_machines_driver,
]))
