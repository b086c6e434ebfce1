#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt run --container: with a stand-in for docker (see there), and with podman itself where it can run.

Usage: containers.py BUILD_FOLDER
"""
import contextlib
import os
import shutil
import subprocess
import sys

import reachable  # noqa: F401, first: it may replace the build folder
import kit
import looks
import stand_in_docker


@contextlib.contextmanager
def docked(**more):
    """A machine, the stand-in's daemon, and the options of a job that uses it."""
    with kit.machine(**more) as m:
        os.mkdir(m.path("runtime"))
        shutil.copy2(stand_in_docker.__file__, m.path("runtime/docker"))
        os.chmod(m.path("runtime/docker"), 0o755)
        daemon = stand_in_docker.Daemon(m.path("dockerd.sock"), {
            "PATH": "/usr/bin:/bin", "TAKT_TWIN": m.path("machine"),
            "LD_LIBRARY_PATH": os.path.dirname(kit.TWIN_LIB)})
        words = ["--container", "lab/torch:2", "--container-runtime", "docker", "-e",
                 f"PATH={m.path('runtime')}:/usr/bin:/bin", "-e", f"STAND_IN_DOCKER={m.path('dockerd.sock')}"]
        try:
            yield m.start(), daemon, words
        finally:
            daemon.close()


def gpu_of(client, index):
    return client.status()["gpus"][index]


def outside(view):
    return [proc for proc in view.get("procs", []) if not proc.get("job_id")]


def a_command_runs_in_a_container():
    with docked(gpus=2) as (m, daemon, words):
        done = m.takt("run", *words, "-n", "1", "-e", "SECRET=hunter2", "--container-arg=--shm-size=1g", "--", "sh", "-c",
                      "echo $SECRET; pwd; echo $CUDA_VISIBLE_DEVICES; exit 4", cwd=m.path("jobs"))
        assert done.returncode == 4, done
        assert done.stdout == f"hunter2\n{m.path('jobs')}\n0\n", done
        run = daemon.runs[0]
        assert run["image"] == "lab/torch:2" and "--shm-size=1g" in run["words"], run
        assert not any("hunter2" in word for word in run["words"]), run
        assert "PATH" not in run["env"] and run["env"]["TAKT_JOB_ID"] == "1", run
        uuid = m.client().job(1)["gpu_uuid"][0]
        assert run["words"][run["words"].index("--gpus") + 1] == f'"device={uuid}"', run


def its_processes_are_the_jobs_and_not_from_outside():
    with docked(gpus=1) as (m, daemon, words):
        client = m.client()
        job = int(m.takt("submit", "-q", *words, "-n", "1", "--", *m.load_argv("--seconds", "600", "--quiet")).stdout)
        kit.until(lambda: gpu_of(client, 0).get("procs"), lambda: (client.job(job), gpu_of(client, 0)))
        looks.read_again(client, 0, 20)  # the very first look may meet it before it has become what it is
        view = gpu_of(client, 0)
        assert view["state"] != "outside" and not outside(view), view
        client.cancel(job)
        assert client.wait(job)["state"] == "cancelled"
        assert not daemon.containers, daemon.containers
        kit.until(lambda: gpu_of(client, 0)["state"] == "free", lambda: gpu_of(client, 0))


def a_container_says_how_far_it_is():
    """Its file is there to be mounted before it starts, and nothing else of that folder is; staged or not."""
    script = f"import sys; sys.path.insert(0, {os.path.join(kit.SOURCE, 'examples')!r}); " \
             "from takt_progress import Progress; Progress().add(steps=7)"
    with docked(gpus=1) as (m, daemon, words):
        client = m.client()
        for stage in ((), ("--stage",)):
            job = int(m.takt("submit", "-q", *words, *stage, "-n", "1", "--", sys.executable, "-c", script).stdout)
            assert client.wait(job)["state"] == "done", client.job(job)
            assert client.job(job)["progress"]["steps"] == 7, client.job(job)
            run, path = daemon.runs[-1], m.path(f"state/jobs/{job}.1/progress")
            assert run["env"]["TAKT_PROGRESS"] == path, run
            mounts = [word for word in run["words"] if word.startswith("--mount=")]
            assert f"--mount=type=bind,source={path},target={path}" in mounts and len(mounts) == 2, mounts


def a_container_is_removed_when_its_job_is_cancelled():
    with docked(gpus=1) as (m, daemon, words):
        client = m.client()
        job = int(m.takt("submit", "-q", *words, "-n", "0", "--grace", "100ms", "--", "sleep", "1000").stdout)
        kit.until(lambda: daemon.containers, lambda: client.job(job))
        client.cancel(job)
        client.wait(job)
        assert not daemon.containers, daemon.containers  # gone before the job counts as over


def a_container_is_removed_when_the_shim_was_killed():
    with docked(gpus=1) as (m, daemon, words):
        client = m.client()
        job = int(m.takt("submit", "-q", *words, "-n", "1", "--", "sleep", "1000").stdout)
        kit.until(lambda: daemon.containers and client.job(job)["state"] == "running",
                  lambda: client.job(job))
        os.kill(m.shims()[job, 1], 9)
        assert client.wait(job)["state"] == "lost"
        assert not daemon.containers, daemon.containers


def ranks_have_a_container_each():
    with docked(gpus=1) as (m, daemon, words):
        done = m.takt("run", "-q", *words, "-n", "0", "--ranks=2", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE")
        assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["0 of 2", "1 of 2"], done


def a_container_is_started_when_its_staged_job_has_gpus():
    with docked(gpus=1) as (m, daemon, words):
        client = m.client()
        client.submit(["/bin/sh", "-c", f"while [ ! -e {m.path('free')} ]; do sleep 0.02; done"], gpus=1)
        job = int(m.takt("submit", "-q", *words, "--gpus", "1", "--stage", "--",
                           "sh", "-c", "echo on $CUDA_VISIBLE_DEVICES").stdout)
        kit.until(lambda: os.path.exists(m.path(f"state/jobs/{job}.1/staged")), lambda: client.job(job))
        assert not daemon.runs, daemon.runs
        with open(m.path("free"), "w", encoding="ascii"):
            pass
        view = client.wait(job)
        assert (view["state"], view["attempt"]) == ("done", 1), view
        run = daemon.runs[0]
        assert run["words"][run["words"].index("--gpus") + 1] == f'"device={view["gpu_uuid"][0]}"', run
        assert "on 0" in m.takt("logs", str(job)).stdout, m.takt("logs", str(job)).stdout


def a_runtime_that_is_not_there_is_named():
    with kit.machine(gpus=1) as m:
        m.start()
        done = m.takt("run", "-n", "0", "--container", "x", "--container-runtime", "apptainer", "-e", "PATH=/nowhere",
                      "--", "true")
        assert done.returncode == 127 and "'apptainer'" in done.stderr, done


def a_container_that_a_job_starts_itself_is_explained():
    """`docker run --gpus all` in a job: the container is dockerd's and takes what it was not given."""
    with kit.machine(gpus=2) as m:
        client = m.start().client()
        # Processes of these names; what they are is not looked at.
        dockerd, docker = m.path("dockerd"), m.path("docker")
        shutil.copy2("/bin/sh", dockerd)
        shutil.copy2("/bin/sleep", docker)
        job = client.submit([docker, "600"], gpus=1)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        assert "stray_note" not in client.job(job)
        given = client.job(job)["gpu_list"][0]
        load = " ".join(m.load_argv("--gpus", str(1 - given), "--seconds", "600", "--quiet"))
        outer = subprocess.Popen([dockerd, "-c", f"{load}; true"], env=m.env(), start_new_session=True)
        try:
            kit.until(lambda: "stray_note" in client.job(job), lambda: client.job(job))
            shown = m.takt("show", str(job)).stdout
            assert f"uses GPU {1 - given}" in shown and "takt run --container" in shown, shown
            idle = client.submit(["sleep", "600"])["id"]
            kit.until(lambda: client.job(idle)["state"] == "running", lambda: client.job(idle))
            assert "stray_note" not in client.job(idle), "a job that runs no docker is not to blame"
        finally:
            os.killpg(outer.pid, 9)
            outer.wait()


def a_job_on_a_gpu_that_is_not_its_own_is_told():
    with kit.machine(gpus=2) as m:
        client = m.start().client()
        job = client.submit(m.load_argv("--gpus", "0,1", "--seconds", "600", "--quiet"), gpus=1,
                            env=["PATH=/usr/bin:/bin"])["id"]
        try:
            kit.until(lambda: "was not given to it" in client.job(job).get("stray_note", ""),
                      lambda: client.job(job))
        finally:
            client.cancel(job)


@contextlib.contextmanager
def podman(m):
    """Environment of a podman whose images and state are in the machine's folder, with one tiny image in it."""
    if not shutil.which("podman") or not os.path.exists("/bin/busybox"):
        raise kit.Skip("podman and busybox-static are not installed")
    hard = os.sysconf("SC_OPEN_MAX")
    runtime = "crun" if shutil.which("crun") and not os.path.isdir("/sys/fs/cgroup/unified") else "runc"
    with open(m.path("containers.conf"), "w", encoding="ascii") as file:
        file.write(f'[containers]\ndefault_ulimits = ["nofile={hard}:{hard}", "nproc=1000:1000"]\n'
                   f'[engine]\nruntime = "{runtime}"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n')
    with open(m.path("storage.conf"), "w", encoding="ascii") as file:
        file.write(f'[storage]\ndriver = "vfs"\ngraphroot = "{m.path("images")}"\nrunroot = "{m.path("podman")}"\n')
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": m.folder, "CONTAINERS_CONF": m.path("containers.conf"),
           "CONTAINERS_STORAGE_CONF": m.path("storage.conf")}
    os.makedirs(m.path("root/bin"))
    shutil.copy2("/bin/busybox", m.path("root/bin/busybox"))
    for name in ("sh", "sleep", "echo", "id", "cat"):
        os.symlink("busybox", m.path(f"root/bin/{name}"))
    subprocess.run(["tar", "-C", m.path("root"), "-cf", m.path("root.tar"), "."], check=True)
    image = subprocess.run(["podman", "import", m.path("root.tar"), "localhost/tiny:1"], env=env, capture_output=True,
                           text=True, timeout=kit.WAIT_S, check=False)
    args = [] if runtime == "crun" else ["--container-arg=--cgroups=enabled"]
    tried = subprocess.run(["podman", "run", "--rm", "--network=host", *[a.split("=", 1)[1] for a in args],
                            "localhost/tiny:1", "sh", "-c", "true"], env=env, capture_output=True, text=True,
                           timeout=kit.WAIT_S, check=False)
    if image.returncode or tried.returncode:
        raise kit.Skip("podman cannot run here: " + (image.stderr + tried.stderr).strip().replace("\n", " ")[-150:])
    words = ["--container", "localhost/tiny:1", "--container-runtime", "podman", *args]
    for name, value in env.items():
        words += ["-e", f"{name}={value}"]
    try:
        yield env, words
    finally:
        subprocess.run(["podman", "rm", "--all", "--force"], env=env, capture_output=True, timeout=kit.WAIT_S, check=False)


def containers_of(env):
    listed = subprocess.run(["podman", "ps", "--all", "--quiet"], env=env, capture_output=True, text=True,
                            timeout=kit.WAIT_S, check=True)
    return listed.stdout.split()


def podman_itself_runs_it():
    with kit.machine(gpus=1) as m, podman(m) as (env, words):
        m.start()
        done = m.takt("run", "-q", *words, "-n", "0", "-e", "GREETING=two words", "--", "sh", "-c",
                      "echo $GREETING; id -u; echo $TAKT_JOB_ID; pwd; exit 6", cwd=m.path("jobs"))
        assert done.returncode == 6, done
        assert done.stdout.endswith(f"two words\n{os.getuid()}\n1\n{m.path('jobs')}\n"), done
        assert not containers_of(env)


def podman_leaves_nothing_behind():
    with kit.machine(gpus=1) as m, podman(m) as (env, words):
        client = m.start().client()
        for end in ("cancel", "kill"):
            job = int(m.takt("submit", "-q", *words, "-n", "0", "--grace", "1s", "--", "sleep", "1000").stdout)
            kit.until(lambda: containers_of(env), lambda: (client.job(job), m.takt("logs", str(job))))
            if end == "cancel":
                client.cancel(job)
            else:
                os.kill(m.shims()[job, 1], 9)
            client.wait(job)
            assert not containers_of(env), (end, m.takt("logs", str(job)).stdout)


if __name__ == "__main__":
    sys.exit(kit.main([
        a_command_runs_in_a_container,
        its_processes_are_the_jobs_and_not_from_outside,
        a_container_says_how_far_it_is,
        a_container_is_removed_when_its_job_is_cancelled,
        a_container_is_removed_when_the_shim_was_killed,
        ranks_have_a_container_each,
        a_container_is_started_when_its_staged_job_has_gpus,
        a_runtime_that_is_not_there_is_named,
        a_container_that_a_job_starts_itself_is_explained,
        a_job_on_a_gpu_that_is_not_its_own_is_told,
        podman_itself_runs_it,
        podman_leaves_nothing_behind,
    ]))
