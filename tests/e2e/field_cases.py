#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users of other tools reported, one case for each kind, as its report has it: the command and what is right.

field/ has their inputs. Each kind has tests of its own in its room; here it is done as its first reporter would.

Usage: field_cases.py BUILD_FOLDER
"""
import datetime
import json
import os
import re
import subprocess
import sys

import kit
import users

HERE = os.path.dirname(os.path.abspath(__file__))
NO_NAME = (54321, 54322)  # uids that passwd does not have
DCGM = ("FB_TOTAL", "FB_USED_PERCENT", "POWER_MGMT_LIMIT", "ENFORCED_POWER_LIMIT", "CLOCK_THROTTLE_REASONS", "PSTATE",
        "SLOWDOWN_TEMP", "ROW_REMAP_PENDING", "PCIE_LINK_GEN", "PCIE_LINK_WIDTH")


def text_of(name):
    with open(os.path.join(HERE, "field", name), encoding="utf-8") as file:
        return file.read()


def say(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def health(m):
    return {gpu["index"]: gpu["state"] for gpu in json.loads(m.takt("health", "--json").stdout)["gpus"]}


def await_suspects(m, *indexes):
    kit.until(lambda: [gpu for gpu, state in health(m).items() if state == "suspect"] == list(indexes),
              lambda: m.takt("health").stdout)


def kernel_log_heads():
    with kit.machine("hgx-h100") as m:
        log = m.path("kern.log")
        say(log, "")
        m.start("--kernel-log", log)
        say(log, text_of("lines.log"))
        await_suspects(m, 1, 2, 3)
        say(log, "Mar  3 08:15:09 gpu-a job[12]: NVRM: Xid (PCI:0000:1b:00): 94, pid=7, name=job, Contained: SM\n"
                 "[ 9.1] NVRM: Xid (PCI:0000:97:00): 94, pid=7, name=job, Contained: SM\n")
        await_suspects(m, 1, 2, 3, 4)  # the kernel's line after it was understood: the program's was not overlooked


def a_kernel_log_that_is_rotated():
    def xid(number, bus):
        return f"[ {number}.1] NVRM: Xid (PCI:0000:{bus}:00): 94, pid=7, name=job, Contained: SM\n"
    with kit.machine("t4-4") as m:
        log = m.path("kern.log")
        say(log, "")
        m.start("--kernel-log", log)
        say(log, xid(1, "1b"))
        await_suspects(m, 0)
        os.rename(log, log + ".1")
        say(log, xid(2, "1c"))
        await_suspects(m, 0, 1)


def processes_of_another_pid_namespace():
    apart = ("unshare", "-p", "-f", "--mount-proc")
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        raise kit.Skip("a PID namespace of its own is not allowed here")
    with kit.machine() as m:
        load = subprocess.Popen(m.load_argv("--profile", "gemm", "--gpus", "1", "--seconds", "3600", "--quiet"), env=m.env())
        try:
            kit.until(lambda: m.boards()[1].get("processes"), "it computes")
            done = m.run(kit.TWIN, "exec", "--machine", m.path("machine"), "--", *apart, m.path("bin/takt"), "doctor",
                         "--socket", "/none", "--seconds", "2")
            lines = [line for line in done.stdout.splitlines() if "dead-process" in line]
            assert [line.split()[0] for line in lines if " GPU 1 " in line] == ["UNKNOWN"], done.stdout
            assert "PID namespace" in done.stdout and not re.search(r"\breset\b|WARNING", done.stdout), done.stdout
        finally:
            load.kill()
            load.wait()


def users_without_a_name():
    with users.shared_machine(gpus=2) as m:
        for uid in NO_NAME:
            m.client().wait(users.ask(m, uid, "POST", "/v1/jobs", users.job_of(["true"], 1))["id"])
        rows = [line.split()[0] for line in m.takt("report").stdout.splitlines() if line]
        assert {*map(str, NO_NAME)} <= {*rows}, rows
        found = json.loads(m.takt("jobs", "--user", str(NO_NAME[0]), "--json").stdout)["jobs"]
        assert [job["user"] for job in found] == [str(NO_NAME[0])], found


def the_health_of_one_gpu():
    with kit.machine() as m:
        m.start()
        kit.until(lambda: m.takt("health", "3").returncode == 0, lambda: m.takt("health", "3"))
        said = json.loads(m.takt("health", "3", "--json").stdout)
        assert [gpu["index"] for gpu in said["gpus"]] == [3], said


def output_without_end():
    with kit.machine() as m:
        m.start("--output-limit", "8M")
        client = m.client()
        job = client.submit(["sh", "-c", 'yes "the same warning of a library"'])["id"]
        kit.until(lambda: client.job(job).get("output_cut_to", 0) > 64 << 20, lambda: client.job(job))
        log = os.stat(m.path(f"state/jobs/{job}.1/log"))
        assert log.st_blocks * 512 < log.st_size / 2, log
        assert client.job(job)["state"] == "running" and "output_limit" in m.takt("show", str(job)).stdout
        kit.until(lambda: f"job {job} prints more than is kept" in m.said(), m.said)
        client.cancel(job)


def days_that_do_not_exist():
    with kit.machine() as m:
        m.start()
        year = datetime.date.today().year + 1
        february = f"{year}-02-{30 if year % 4 == 0 else 29}"
        for words, wrong in ((("submit", "--gpus", "0", "--begin", february, "--", "true"), february),
                             (("gpu", "reserve", "3", "--from", f"{year}-04-31", "--until", f"{year + 1}-01-01", "--reason", "x"),
                              f"{year}-04-31")):
            done = m.takt(*words)
            assert done.returncode != 0 and wrong in done.stderr, done
        assert not m.client().live() and f"{year}-05-01" not in m.takt("gpu").stdout


def a_library_on_the_search_path_alone():
    with users.shared_machine(start=False, gpus=1) as m:
        there = m.env(LD_LIBRARY_PATH=os.path.dirname(kit.TWIN_LIB))
        words = [word for word in m.flags() if word not in ("--nvml-path", kit.TWIN_LIB)]
        m.serve = subprocess.Popen([m.path("bin/takt"), "serve", *words], env=there, stdin=subprocess.DEVNULL, stdout=m.log,
                                   stderr=m.log, start_new_session=True)
        remedy = f"nvml_path = {kit.TWIN_LIB}"
        kit.until(lambda: "LD_LIBRARY_PATH" in m.said() and remedy in m.said(), m.said)
        kit.until(lambda: remedy in " ".join(m.takt("status").stdout.split()), lambda: m.takt("status"))
        doctor = subprocess.run([m.path("bin/takt"), "doctor", "--socket", "/none", "--seconds", "1"], env=there,
                                capture_output=True, text=True, check=False)
        assert remedy in " ".join(doctor.stdout.split()), doctor


def instances_of_a_job():
    with kit.machine() as m:
        trace = os.path.join(HERE, "field", "pai.csv")
        done = m.takt("simulate", "--cluster", "uniform:5x8", "--trace", trace, "--queue", "fifo", "--json")
        (result,) = json.loads(done.stdout)["results"]
        assert result["wait_mean_s"] == (3600 - 10) / 2, result  # 40 GPUs are all there are: the second waits for the first


def dcgm_names_of_known_readings():
    with kit.machine(gpus=2) as m:
        m.start("--metrics-listen", "127.0.0.1:0")

        def known():
            return {name.split("{")[0] for name in m.client().metrics()}
        wanted = {f"DCGM_FI_DEV_{name}" for name in DCGM} | {*re.findall(r"DCGM_FI_\w+", text_of("rules.yml"))}
        kit.until(lambda: wanted <= known(), lambda: sorted(wanted - known()))
        series = m.client().metrics()
        for name in wanted:
            assert sum(key.startswith(name + "{") for key in series) == 2, (name, "a series a GPU")
        (total,) = [value for key, value in series.items() if re.match(r'DCGM_FI_DEV_FB_TOTAL\{.*gpu="0"', key)]
        (bytes_,) = [value for key, value in series.items() if re.match(r'takt_gpu_memory_bytes\{.*gpu="0"', key)]
        assert total == bytes_ // 2**20, (total, bytes_)


def a_job_file_of_another_kind():
    with kit.machine(gpus=1) as m:
        m.start()
        for name, kind in (("compose.yaml", "YAML"), ("train.sbatch", "Slurm")):
            done = m.takt("submit", "-f", os.path.join(HERE, "field", name))
            assert done.returncode != 0 and "neither TOML nor JSON" in done.stderr and kind in done.stderr, done
        assert not m.client().live()
        script = m.path("train.sbatch")
        kit.write_program(script, text_of("train.sbatch"))
        done = m.takt("submit", "--", script)
        assert done.returncode == 0 and "#SBATCH" in done.stderr and "--sbatch" in done.stderr, done


def a_driver_that_is_loaded_anew():
    with kit.machine("t4-4") as m:
        m.start("--metrics-listen", "127.0.0.1:0")
        m.client().submit(m.load_argv("--seconds", "12", "--quiet"), gpus=1)
        kit.until(lambda: any(gpu.get("processes") for gpu in m.boards()), "it computes")
        m.twin("fault", "all", "driver-reload=2")
        kit.until(lambda: "answers no more" in m.said(), m.said)

        def is_back():
            m.close_clients()
            gpus, series = m.client().status()["gpus"], m.client().metrics()
            return ([gpu["state"] for gpu in gpus if not gpu["stale"] and "power_mw" in gpu] == ["free"] * 4
                    and {value for name, value in series.items() if name.startswith("takt_gpu_up{")} == {1.0})

        def tried():
            try:
                return is_back()
            except (OSError, kit.http.client.HTTPException):
                return False  # it is just starting anew
        kit.until(tried, m.said)
        assert m.client().wait(m.client().submit(["true"], gpus=1)["id"])["state"] == "done"


if __name__ == "__main__":
    sys.exit(kit.main([
        kernel_log_heads, a_kernel_log_that_is_rotated, processes_of_another_pid_namespace, users_without_a_name,
        the_health_of_one_gpu, output_without_end, days_that_do_not_exist, a_library_on_the_search_path_alone, instances_of_a_job,
        dcgm_names_of_known_readings, a_job_file_of_another_kind, a_driver_that_is_loaded_anew,
    ], at_once=4))
