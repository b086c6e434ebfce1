#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics page as a real Prometheus sees it, and dashboards that were made for dcgm-exporter.

Usage: scrape.py BUILD_FOLDER
"""
import os
import pwd
import re
import shutil
import sys

import kit
import prom_kit

# What the well-known dashboard for dcgm-exporter asks, variables filled in as Grafana does.
WHERE = '{instance=~".+", gpu=~"0|1|2|3|4|5|6|7"}'
QUERIES = [f"DCGM_FI_DEV_GPU_TEMP{WHERE}", f"DCGM_FI_DEV_POWER_USAGE{WHERE}", f"sum(DCGM_FI_DEV_POWER_USAGE{WHERE})",
           f"DCGM_FI_DEV_SM_CLOCK{WHERE} * 1000000", f"DCGM_FI_DEV_GPU_UTIL{WHERE}", f"DCGM_FI_DEV_FB_USED{WHERE}"]
TENSOR = f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{WHERE}"  # of boards since Hopper


def listening(m, *flags):
    """takt with its page on a port of its own; ADDRESS:PORT."""
    m.start("--metrics-listen", "127.0.0.1:0", *flags)
    port = kit.until(lambda: re.search(r"metrics on port (\d+)", m.said()), m.said)
    return f"127.0.0.1:{port[1]}"


def prometheus_scrapes_and_the_dashboard_is_full():
    prom_kit.need()
    with kit.machine(gpus=4) as m, prom_kit.prometheus(m.folder, listening(m)) as prom:
        for query in [*QUERIES, TENSOR]:
            rows = kit.until(lambda: prom.query(query), lambda: f"{query}: {prom.targets()}")
            assert len(rows) == (1 if query.startswith("sum") else 4), (query, rows)
        (target,) = prom.targets()
        assert target["health"] == "up" and not target["lastError"], target
        values = prom.get("/api/v1/label/gpu/values", **{"match[]": "DCGM_FI_DEV_GPU_TEMP"})
        assert values == ["0", "1", "2", "3"], values
        boards = m.boards()
        for labels, value in prom.query("DCGM_FI_DEV_SM_CLOCK"):
            board = boards[int(labels["gpu"])]
            assert labels["UUID"] == board["uuid"] and "H100" in labels["modelName"] and labels["Hostname"], labels
            assert value > 0, value
        types = prom.get("/api/v1/metadata", metric="takt_gpu_energy_joules")
        assert types["takt_gpu_energy_joules"][0]["type"] == "counter", types  # it asked for OpenMetrics


def older_boards_lack_the_query_that_they_cannot_answer():
    """Not shown as 0: a tensor core that nobody can watch is not idle."""
    prom_kit.need()
    with kit.machine("dgx1-v100", gpus=2) as m, prom_kit.prometheus(m.folder, listening(m)) as prom:
        for query in QUERIES:
            kit.until(lambda: prom.query(query), lambda: f"{query}: {prom.targets()}")
        client = m.client()
        kit.until(lambda: any(name.startswith("takt_gpu_retired_pages_total{") for name in client.metrics()), "vitals are read")
        assert not [name for name in client.metrics() if "PROF" in name or "activity" in name]
        assert not prom.query(TENSOR)


def what_goes_wrong_is_counted():
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()

        def value(name, word, gpu=1):
            return [value for key, value in client.metrics().items()
                    if key.startswith(f'{name}{{gpu="{gpu}"') and word in key]
        assert kit.until(lambda: value("takt_gpu_memory_errors_total", '"uncorrected"'), client.metrics) == [0]
        m.twin("fault", "1", "ecc")
        m.twin("fault", "1", "link-down=2")
        kit.until(lambda: value("takt_gpu_memory_errors_total", '"uncorrected"') == [1], client.metrics)
        assert value("takt_gpu_row_remap_pending", "") == [1] and value("takt_gpu_recovery_action", "") == [1]
        kit.until(lambda: value("takt_gpu_nvlinks_active", "") == [value("takt_gpu_nvlinks", "")[0] - 1], client.metrics)
        kit.until(lambda: value("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "") == [0], client.metrics)
        count = "DCGM_EXP_XID_ERRORS_COUNT"
        kit.until(lambda: value(count, 'window_size_in_ms="300000"}', 0) == [0], client.metrics)
        m.twin("fault", "0", "xid=31")  # a program's
        kit.until(lambda: value(count, 'xid="31"', 0) == [1], client.metrics)
        assert value("DCGM_FI_DEV_XID_ERRORS", 'err_code="31"', 0) == [31], client.metrics()
        job = client.submit(m.load_argv("--profile", "gemm", "--seconds", 600), gpus=1)  # on the one that is well
        kit.until(lambda: client.job(job["id"])["state"] == "running", lambda: client.job(job["id"]))
        m.twin("fault", "0", "power-brake")
        kit.until(lambda: value("takt_gpu_throttle_seconds_total", "hw_power_brake", 0)[0] > 0.3,
                  client.metrics)


def rules_made_for_dcgm_exporter_find_their_fields():
    """Many take fields beyond its default list: no data is no alert."""
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        for field in ("FB_TOTAL", "FB_USED_PERCENT", "POWER_MGMT_LIMIT", "ENFORCED_POWER_LIMIT", "CLOCK_THROTTLE_REASONS",
                      "PSTATE", "SLOWDOWN_TEMP", "ROW_REMAP_PENDING", "PCIE_LINK_GEN", "PCIE_LINK_WIDTH"):
            kit.until(lambda: [name for name in client.metrics() if name.startswith(f"DCGM_FI_DEV_{field}{{")][1:],
                      lambda: f"{field}: {client.metrics()}")


def promtool_takes_the_page():
    prom_kit.need()
    with kit.machine(gpus=2) as m:
        m.start()
        client = m.client()
        client.submit(["sleep", "1000"], gpus=1)
        page = client.raw("GET", "/metrics")[1]
        # Names that dcgm-exporter chose are as they are.
        said = [line for line in prom_kit.lint(page) if line and not line.startswith("DCGM_")]
        assert not said, said
        assert prom_kit.lint(b"# TYPE x counter\nx 1\n"), "it can say something"


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def the_network_is_on_the_page():
    """Ports as the kernel shows them: one counts on, one goes."""
    with kit.machine(gpus=1) as m:
        port, eth = m.path("sys/class/infiniband/mlx5_0/ports/1"), m.path("sys/class/net/eth0")
        for name, text in {"link_layer": "InfiniBand", "state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)",
                           "counters/port_xmit_data": "1000", "counters/symbol_error": "2"}.items():
            put(f"{port}/{name}", text + "\n")
        for name, text in {"type": "1", "operstate": "up", "carrier": "1", "statistics/rx_bytes": "77"}.items():
            put(f"{eth}/{name}", text + "\n")
        os.mkdir(f"{eth}/device")
        os.symlink("../../../../bus/pci", f"{eth}/device/subsystem")
        m.start("--sysfs-root", m.path("sys"))
        client = m.client()
        sent = 'takt_net_sent_bytes_total{kind="infiniband",device="mlx5_0",port="1"}'
        received = 'takt_net_received_bytes_total{kind="ethernet",device="eth0"}'
        kit.until(lambda: client.metrics().get(sent) == 4000, client.metrics)
        page = client.metrics()
        assert page[received] == 77, page
        assert page['takt_net_rate_bytes_per_second{kind="infiniband",device="mlx5_0",port="1"}'] == 50e9, page
        assert page['takt_net_errors_total{kind="infiniband",device="mlx5_0",port="1",error="symbol_error"}'] == 2, page
        shutil.rmtree(eth)
        put(f"{port}/counters/port_xmit_data", "1001\n")
        kit.until(lambda: client.metrics().get(sent) == 4004, client.metrics)
        assert not [name for name in client.metrics() if "eth0" in name], client.metrics()
        if shutil.which("promtool"):
            assert not [line for line in prom_kit.lint(client.raw("GET", "/metrics")[1]) if "takt_net" in line]


def one_gpu_that_fails_leaves_the_others_on_the_page():
    with kit.machine(gpus=4) as m:
        m.start()
        client = m.client()
        m.twin("fault", "1", "hang=3600")
        m.twin("fault", "2", "lost")

        def with_power():
            return {re.search('gpu="([0-9]+)"', name)[1] for name in client.metrics()
                    if name.startswith("DCGM_FI_DEV_POWER_USAGE{")}
        kit.until(lambda: with_power() == {"0", "3"}, lambda: client.metrics())
        up = {name: value for name, value in client.metrics().items() if name.startswith("takt_gpu_up{")}
        assert sorted(up.values()) == [0, 0, 1, 1], up
        m.twin("fault", "all", "none")


def a_file_for_node_exporter_is_whole_and_goes_with_takt():
    with kit.machine(gpus=2) as m:
        os.mkdir(m.path("textfile"))
        os.symlink("/etc/hostname", m.path("textfile/takt.prom.new"))  # followed by nobody
        m.start("--metrics-textfile", m.path("textfile/takt.prom"))
        kit.until(lambda: "takt.prom.new'" in m.said() or "metrics_textfile" in m.said(), m.said)
        assert os.listdir(m.path("textfile")) == ["takt.prom.new"], "nothing half"
        os.unlink(m.path("textfile/takt.prom.new"))
        kit.until(lambda: os.listdir(m.path("textfile")) == ["takt.prom"], m.said)
        with open(m.path("textfile/takt.prom"), encoding="utf-8") as file:
            text = file.read()
        assert 'takt_gpu_up{gpu="1"' in text and text.endswith("\n") and "# EOF" not in text, text
        assert os.stat(m.path("textfile/takt.prom")).st_mode & 0o777 == 0o644
        assert m.stop() == 0
        assert os.listdir(m.path("textfile")) == []


def who_wants_only_our_names_says_so():
    with kit.machine(gpus=1) as m:
        m.start("--metrics-dcgm", "no")
        assert not [name for name in m.client().metrics() if name.startswith("DCGM")]
        m.stop()
        m.start("--metrics-hostname", "hostname")
        (name,) = [name for name in m.client().metrics() if name.startswith("DCGM_FI_DEV_GPU_UTIL{")]
        assert ',hostname="' in name and 'Hostname' not in name, name


def a_users_nccl_is_on_the_page_while_his_job_runs():
    """As NCCL's inspector plugin writes it, into a folder that all jobs share."""
    with kit.machine(gpus=2) as m:
        folder = m.path("nccl")
        m.start("--nccl-inspector", folder)
        kit.until(lambda: "nccl_inspector" in m.said(), m.said)
        os.mkdir(folder)
        client = m.client()
        uuids = [gpu["uuid"] for gpu in client.status()["gpus"]]

        def put(gpu, gigabytes_s):
            labels = '{comm_name="DP Group 0",n_nodes="2",nranks="16",collective="AllReduce",message_size="4-5GB"}'
            with open(f"{folder}/nccl_inspector_metrics_{uuids[gpu]}.prom", "w", encoding="utf-8") as file:
                file.write(f"nccl_bus_bandwidth_gbs{labels} {gigabytes_s}\n"
                           f"nccl_collective_exec_time_microseconds{labels} 9500\n")

        def of_nccl():
            return {name: value for name, value in client.metrics().items() if name.startswith("takt_nccl_")}

        put(0, 1.5)
        put(1, 2.5)  # nobody has this GPU
        job = client.submit(["sleep", "1000"], gpus=1)["id"]
        gpu = kit.until(lambda: client.job(job)["state"] == "running" and client.job(job)["gpu_list"],
                        lambda: client.job(job))[0]
        put(gpu, 48.5)  # since the job began; what an earlier one left is not its own
        page = kit.until(lambda: {name: value for name, value in of_nccl().items() if "bandwidth" in name},
                         client.metrics)
        ((name, value),) = page.items()
        assert value == 48.5e9 and uuids[gpu] in name, page
        assert 'comm="DP Group 0",operation="AllReduce",ranks="16",nodes="2"}' in name, page
        assert [value for name, value in of_nccl().items() if "operation_seconds" in name] == [0.0095], of_nccl()
        if shutil.which("promtool"):
            assert not [line for line in prom_kit.lint(client.raw("GET", "/metrics")[1]) if "takt_nccl" in line]
        client.cancel(job)
        kit.until(lambda: not of_nccl(), client.metrics)


def gpus_that_are_all_suspended_are_left_asleep():
    """Of a laptop, by a copy of the kernel's sysfs; whatever asked the driver for anything would wake them."""
    with kit.machine(gpus=1) as m:
        device = m.path("sys/bus/pci/devices/0000:01:00.0")
        os.makedirs(device + "/power")
        os.symlink("../../../../bus/pci/drivers/nvidia", device + "/driver")
        os.makedirs(m.path("sys/bus/pci/drivers/nvidia"))
        os.symlink("../../devices/0000:01:00.0", m.path("sys/bus/pci/drivers/nvidia/0000:01:00.0"))
        for name, text in (("vendor", "0x10de"), ("class", "0x030000"), ("power/runtime_status", "suspended")):
            with open(f"{device}/{name}", "w", encoding="ascii") as file:
                file.write(text + "\n")
        m.start("--sysfs-root", m.path("sys"))
        status = m.client().status()
        assert status["gpus"] == [] and "every GPU is suspended" in m.takt("status").stdout, status
        assert not os.path.exists(m.path("run/actuate.sock")), "the actuator starts the driver as well"
        refused = m.takt("submit", "--gpus", "1", "true")
        assert refused.returncode != 0 and "every GPU is suspended" in refused.stderr, refused
        m.stop()
        m.start("--sysfs-root", m.path("sys"), "--wake-gpus", "yes")
        assert len(m.client().status()["gpus"]) == 1, m.client().status()
        kit.until(lambda: os.path.exists(m.path("run/actuate.sock")), m.said)


def put_on_bus(m, bus_id, status):
    device, driver = m.path(f"sys/bus/pci/devices/{bus_id}"), m.path("sys/bus/pci/drivers/nvidia")
    if not os.path.exists(device):
        os.makedirs(device + "/power")
        os.symlink("../../../../bus/pci/drivers/nvidia", device + "/driver")
        os.makedirs(driver, exist_ok=True)
        os.symlink(f"../../devices/{bus_id}", f"{driver}/{bus_id}")
    for name, text in (("vendor", "0x10de"), ("class", "0x030000"), ("power/runtime_status", status)):
        with open(f"{device}/{name}.new", "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.replace(f"{device}/{name}.new", f"{device}/{name}")


def of_gpu(client, gpu):
    return {name.split("{")[0]: value for name, value in client.metrics().items() if f'gpu="{gpu}"' in name}


def one_that_sleeps_beside_another_is_left_so():
    """It is known and may be given to jobs; it is looked at while takt has to answer for what is on it."""
    with kit.machine(gpus=2) as m:
        m.start("--sysfs-root", m.path("sys"))
        client = m.client()
        bus = [gpu["pci_bus_id"][4:].lower() for gpu in client.status()["gpus"]]
        put_on_bus(m, bus[0], "active")
        put_on_bus(m, bus[1], "suspended")
        second = kit.until(lambda: (gpu := client.status()["gpus"][1])["asleep"] and gpu, client.status)
        assert second["state"] == "free" and second["uuid"] and not second["stale"] and not second["lost"], second
        assert second["health"] == "healthy" and "power_mw" not in second and "mem_used_bytes" not in second, second
        first = client.status()["gpus"][0]
        assert not first["asleep"] and first["power_mw"], first
        page = kit.until(lambda: (one := of_gpu(client, 1)).get("takt_gpu_asleep") == 1 and one, client.metrics)
        assert page["takt_gpu_lost"] == 0 and not page.keys() & {"takt_gpu_up", "takt_gpu_power_watts"}, page
        page = of_gpu(client, 0)
        assert page["takt_gpu_asleep"] == 0 and page["takt_gpu_up"] == 1 and page["takt_gpu_power_watts"] > 0, page
        row = [line for line in m.takt("status").stdout.splitlines() if "asleep" in line]
        assert len(row) == 1 and "asleep" in m.takt("top", "--once").stdout, m.takt("status").stdout

        job = client.submit(["sleep", "1000"], gpus=2)["id"]
        kit.until(lambda: client.job(job)["state"] == "running", lambda: client.job(job))
        kit.until(lambda: "power_mw" in client.status()["gpus"][1], client.status)
        client.cancel(job)
        client.wait(job)
        kit.until(lambda: [gpu["state"] for gpu in client.status()["gpus"]] == ["free", "free"], client.status)
        kit.until(lambda: client.status()["gpus"][1]["asleep"], client.status)
        put_on_bus(m, bus[1], "active")
        kit.until(lambda: "power_mw" in client.status()["gpus"][1], client.status)


def strange_words_reach_prometheus_as_they_are():
    prom_kit.need()
    usual, strange = b"NVIDIA H100 80GB HBM3", 'GPU "H\\10"\n\u00fc \u20ac \u4e16'.encode()
    with kit.machine(gpus=1) as m:
        with open(m.path("machine"), "r+b") as file:
            data = file.read()
            assert usual in data and len(strange) <= len(usual)
            file.seek(0)
            file.write(data.replace(usual, strange.ljust(len(usual), b"\0")))
        with prom_kit.prometheus(m.folder, listening(m)) as prom:
            for name, label in (("takt_gpu_up", "model"), ("DCGM_FI_DEV_GPU_UTIL", "modelName")):
                ((labels, _),) = kit.until(lambda name=name: prom.query(name), prom.targets)
                assert labels[label] == strange.decode(), labels


def jobs_are_named_and_their_users_only_where_wanted():
    prom_kit.need()
    with kit.machine(gpus=2) as m, prom_kit.prometheus(m.folder, listening(m)) as prom:
        client = m.client()
        half, rest = [client.submit(["sleep", "1000"], gpus=1, gpu_milli=500, name=f"of.{number}")["id"]
                      for number in range(2)]

        def jobs(query="takt_gpu_job"):
            return {int(labels.get("takt_job") or labels.get("hpc_job") or 0): labels for labels, _ in prom.query(query)}
        found = kit.until(lambda: len(jobs()) == 2 and jobs(), lambda: (prom.targets(), client.live()))
        assert set(found) == {half, rest} and found[half]["engine"] == "takt", found
        assert not {"user", "name", "exported_job"} & {*found[half], *found[rest]}, found
        # Which job a GPU's figures belong to, by what dashboards do with such a series.
        joined = 'takt_gpu_up * on (uuid) group_right() takt_gpu_job'
        assert set(kit.until(lambda: jobs(joined), prom.targets)) == {half, rest}
        assert not [name for name in client.metrics() if "hpc_job" in name]
    with kit.machine(gpus=2) as m:
        address = listening(m, "--metrics-user", "yes", "--metrics-job-name", "yes", "--metrics-hpc-job", "yes")
        with prom_kit.prometheus(m.folder, address) as prom:
            client = m.client()
            job = client.submit(["sleep", "1000"], gpus=1, name="train.v1")
            ((labels, _),) = kit.until(lambda: prom.query("takt_gpu_job"), prom.targets)
            me = pwd.getpwuid(os.getuid()).pw_name
            assert (labels["user"], labels["name"], labels["takt_job"]) == (me, "train.v1", str(job["id"])), labels
            of_job = f'DCGM_FI_DEV_GPU_UTIL{{hpc_job="{job["id"]}"}}'
            ((labels, _),) = kit.until(lambda: prom.query(of_job), prom.targets)
            names = [name for name in client.metrics() if name.startswith("DCGM_FI_DEV_GPU_UTIL{")]
            assert len(names) == 2 and sum(name.endswith(f',hpc_job="{job["id"]}"}}') for name in names) == 1, names
            client.cancel(job["id"])


if __name__ == "__main__":
    sys.exit(kit.main([prometheus_scrapes_and_the_dashboard_is_full,
                       older_boards_lack_the_query_that_they_cannot_answer, what_goes_wrong_is_counted,
                       rules_made_for_dcgm_exporter_find_their_fields, promtool_takes_the_page,
                       one_gpu_that_fails_leaves_the_others_on_the_page,
                       a_file_for_node_exporter_is_whole_and_goes_with_takt,
                       the_network_is_on_the_page, a_users_nccl_is_on_the_page_while_his_job_runs,
                       gpus_that_are_all_suspended_are_left_asleep, one_that_sleeps_beside_another_is_left_so,
                       strange_words_reach_prometheus_as_they_are,
                       jobs_are_named_and_their_users_only_where_wanted, who_wants_only_our_names_says_so], at_once=3))
