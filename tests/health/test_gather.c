/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor gathers from files, on folders that look like a machine's root. The driver is
 * never asked here: there is a GPU that sleeps, or no module for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "health/doctor.h"
#include "health/gather.h"

static char root[PATH_MAX];
static struct takt_doctor_facts facts;

#define TREE "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:04.0/"

static void folder(const char *path)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s%s')\"", root, path);
	assert_int_equal(system(command), 0);
}

static void put_bytes(const char *path, const void *bytes, size_t n)
{
	char full[2 * PATH_MAX];
	FILE *file;

	folder(path);
	snprintf(full, sizeof(full), "%s%s", root, path);
	file = fopen(full, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void put_link(const char *path, const char *target)
{
	char full[2 * PATH_MAX];

	folder(path);
	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(symlink(target, full), 0);
}

static void put_gpu(const char *status)
{
	put(TREE "0000:3d:00.0/vendor", "0x10de\n");
	put(TREE "0000:3d:00.0/class", "0x030200\n");
	put(TREE "0000:3d:00.0/power/runtime_status", status);
	put_link(TREE "0000:3d:00.0/driver", "../../../../../../bus/pci/drivers/nvidia");
	put_link("/sys/bus/pci/devices/0000:3d:00.0",
		 "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:04.0/"
		 "0000:3d:00.0");
	put(TREE "max_link_width", "8\n");
}

/* A bridge whose ACS sends requests and completions of peers upwards. */
static void put_acs(const char *bridge, uint8_t control)
{
	uint8_t config[512] = {[0x100] = 0x01, [0x102] = 0x01, [0x103] = 0x14, /* next: 0x140 */
			       [0x140] = 0x0d, [0x142] = 0x01, [0x146] = control};

	put_bytes(bridge, config, sizeof(config));
}

static int make_root(void **state)
{
	snprintf(root, sizeof(root), "/tmp/takt-gather-XXXXXX");
	assert_non_null(mkdtemp(root));
	memset(&facts, 0, sizeof(facts));
	return 0;
}

static int remove_root(void **state)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void gather(void)
{
	struct takt_gather config = {.root = root, .home = "/home/you", .nvml_path = "/nowhere"};

	memset(&facts, 0, sizeof(facts));
	takt_doctor_gather(&config, &facts);
}

static void a_sleeping_gpu_is_left_asleep(void **state)
{
	put_gpu("suspended\n");
	put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  "
					   "550.90.07  Fri May 31 09:35:42 UTC 2024\n");
	gather();
	assert_int_equal(facts.asked, TAKT_ASKED_ASLEEP);
	assert_int_equal(facts.pci_count, 1);
	assert_true(facts.pci[0].asleep);
	assert_string_equal(facts.pci[0].driver, "nvidia");
	assert_string_equal(facts.kernel_version, "550.90.07");
	assert_false(facts.open_module);
	assert_false(facts.pci[0].acs_known); /* nothing of it was read */
}

static void a_module_that_is_not_loaded_is_not_loaded_by_looking(void **state)
{
	put_gpu("active\n");
	gather();
	assert_int_equal(facts.asked, TAKT_ASKED_NO_MODULE);
}

static void with_the_module_the_driver_is_asked(void **state)
{
	put_gpu("active\n");
	put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for "
					   "x86_64  565.57.01  Release Build\n");
	gather();
	assert_int_equal(facts.asked, TAKT_ASKED_NO_LIB);
	assert_true(facts.open_module);
	assert_string_equal(facts.kernel_version, "565.57.01");
}

static void bridges_above_a_gpu_are_read(void **state)
{
	put_gpu("active\n");
	put_acs(TREE "config", 0x1d);
	put_acs("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/config", 0);
	put_acs("/sys/devices/pci0000:3a/0000:3a:00.0/config", 0);
	gather();
	assert_int_equal(facts.pci[0].port_max_width, 8);
	assert_string_equal(facts.pci[0].switch_id, "0000:3b:00.0");
	assert_true(facts.pci[0].acs_known);
	assert_true(facts.pci[0].acs_redirects);
	put_acs(TREE "config", 0x11);
	gather();
	assert_true(facts.pci[0].acs_known);
	assert_false(facts.pci[0].acs_redirects);
	put_bytes(TREE "config", "1234", 4); /* all that others than root are given */
	gather();
	assert_false(facts.pci[0].acs_known);
}

/* A container's files, but all the machine's processes. */
static void a_machine_made_of_a_containers_files(void **state)
{
	put("/.dockerenv", "");
	gather();
	assert_true(facts.in_container && facts.hides_processes);
	put_link("/proc/self/ns/pid", "pid:[4026531836]");
	put_link("/usr/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1");
	put_link("/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.159.04");
	gather();
	assert_true(facts.in_container);
	assert_false(facts.hides_processes);
	assert_string_equal(facts.cuda_lib_version, "580.159.04");
}

static void the_host_is_read(void **state)
{
	put("/proc/modules", "mlx5_core 1 0 - Live 0x0\nnvidia_peermem 16384 0 - Live 0x0\n");
	put("/proc/1/comm", "systemd\n");
	put("/proc/77/comm", "nv-fabricmanage\n");
	put_link("/proc/self/ns/pid", "pid:[4026532999]");
	put("/sys/devices/system/node/node0/cpulist", "0\n");
	put("/sys/devices/system/node/node1/cpulist", "1\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
	put("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	put_link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.550.90.07");
	gather();
	assert_true(facts.peermem);
	assert_false(facts.nouveau);
	assert_true(facts.fabric_manager);
	assert_true(facts.in_container && facts.hides_processes);
	assert_int_equal(facts.numa_nodes, 2);
	assert_int_equal(facts.port_count, 1);
	assert_string_equal(facts.port[0].device, "mlx5_0");
	assert_string_equal(facts.port[0].state, "ACTIVE");
	assert_string_equal(facts.port[0].phys, "LinkUp");
	assert_int_equal(facts.port[0].gbit, 400);
	assert_string_equal(facts.cuda_lib_version, "550.90.07");
}

static void containers_are_read(void **state)
{
	put("/usr/bin/dockerd", "");
	put("/etc/docker/daemon.json",
	    "{\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"], \"runtimes\": {\"nvidia\": "
	    "{\"args\": [], \"path\": \"nvidia-container-runtime\"}}}");
	put("/etc/nvidia-container-runtime/config.toml",
	    "[nvidia-container-cli]\n#no-cgroups = false\nno-cgroups = true\n");
	put("/var/run/cdi/nvidia.yaml",
	    "mounts:\n- hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.590.48.01\n");
	gather();
	assert_true(facts.containers.docker);
	assert_false(facts.containers.toolkit);
	assert_true(facts.containers.cgroupfs);
	assert_true(facts.containers.no_cgroups);
	assert_true(facts.containers.runtime_missing);
	assert_string_equal(facts.containers.cdi_version, "590.48.01");
	put("/usr/bin/nvidia-container-runtime", "");
	put("/usr/bin/nvidia-container-runtime-hook", "");
	gather();
	assert_true(facts.containers.toolkit);
	assert_false(facts.containers.runtime_missing);
}

static void packages_are_read_and_not_run(void **state)
{
	const char *site = "/home/you/.local/lib/python3.11/site-packages";
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/torch-2.6.0+cu124.dist-info/METADATA", site);
	put(path, "Name: torch\n");
	snprintf(path, sizeof(path), "%s/torch/version.py", site);
	put(path, "__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\n");
	put("/usr/lib/python3/dist-packages/tensorflow-2.17.1.dist-info/METADATA", "");
	put("/usr/local/cuda/version.json",
	    "{\n   \"cuda\" : {\n      \"name\" : \"CUDA SDK\",\n      \"version\" : \"12.4.1\"\n");
	gather();
	assert_int_equal(facts.package_count, 3);
	assert_string_equal(facts.package[0].name, "TensorFlow");
	assert_string_equal(facts.package[0].cuda, "12.3");
	assert_string_equal(facts.package[1].version, "2.6.0+cu124");
	assert_string_equal(facts.package[1].cuda, "12.4");
	assert_string_equal(facts.package[2].cuda, "12.4.1");
}

static void a_torch_without_cuda_and_one_that_does_not_say(void **state)
{
	put("/usr/lib/python3/dist-packages/torch-2.6.0+cpu.dist-info/METADATA", "");
	put("/usr/lib/python3/dist-packages/torch/version.py", "cuda: Optional[str] = None\n");
	put("/usr/local/lib/python3.11/dist-packages/torch-2.5.0.dist-info/METADATA", "");
	gather();
	assert_int_equal(facts.package_count, 2);
	assert_string_equal(facts.package[0].cuda, "");
	assert_string_equal(facts.package[1].cuda, "?");
}

#define SWITCH "/sys/bus/pci/devices/0000:05:00.0/"

static void put_switch(void)
{
	put(SWITCH "vendor", "0x10de\n");
	put(SWITCH "class", "0x068000\n");
}

static void the_fabric_managers_version_is_read(void **state)
{
	const char *status =
		"Package: nvidia-fabricmanager-535\nStatus: deinstall ok config-files\n"
		"Version: 535.54.03-1\n\nPackage: nvidia-fabricmanager-550\n"
		"Status: install ok installed\nVersion: 550.90.07-0ubuntu0.22.04.1\n\n";

	put("/var/lib/dpkg/status", status);
	gather();
	assert_string_equal(facts.fabric_manager_version, ""); /* nothing for it to manage */
	put_switch();
	gather();
	assert_string_equal(facts.fabric_manager_version, "550.90.07");
}

static void without_dpkg_its_log_tells(void **state)
{
	put_switch();
	put("/var/log/fabricmanager.log",
	    "[INFO] [tid 1] Fabric Manager version 535.54.03 is running with following "
	    "configuration options\n...\n[INFO] [tid 9] Fabric Manager version 550.90.07 is "
	    "running with following configuration options\n");
	gather();
	assert_string_equal(facts.fabric_manager_version, "550.90.07");
}

static void sensors_of_fans_and_supplies(void **state)
{
	put("/sys/class/hwmon/hwmon0/name", "nct6775\n");
	put("/sys/class/hwmon/hwmon0/fan1_input", "1200\n");
	put("/sys/class/hwmon/hwmon0/fan1_fault", "0\n");
	put("/sys/class/hwmon/hwmon0/in3_alarm", "1\n"); /* an input that is not connected */
	put("/sys/class/hwmon/hwmon1/name", "pfe1100\n");
	put("/sys/class/hwmon/hwmon1/in1_alarm", "0\n");
	gather();
	assert_int_equal(facts.fans, 1);
	assert_int_equal(facts.supplies, 1);
	assert_int_equal(facts.alarm_count, 0);
	put("/sys/class/hwmon/hwmon0/fan1_fault", "1\n");
	put("/sys/class/hwmon/hwmon1/in1_alarm", "1\n");
	gather();
	assert_int_equal(facts.alarm_count, 2);
	assert_false(facts.alarm[0].supply);
	assert_string_equal(facts.alarm[0].sensor, "fan1_fault");
	assert_true(facts.alarm[1].supply);
	assert_string_equal(facts.alarm[1].chip, "pfe1100");
}

/* What needs memory is then not known, and nothing else is. */
static void without_memory_the_rest_is_gathered(void **state)
{
	unsigned long n = 0;

	put_switch();
	put("/proc/modules", "nvidia_peermem 16384 0 - Live 0x0\n");
	put("/proc/1/comm", "systemd\n");
	put("/etc/docker/daemon.json", "{\"runtimes\": {\"nvidia\": {\"path\": \"x\"}}}");
	put("/var/log/fabricmanager.log", "Fabric Manager version 550.90.07 is running\n");
	do {
		takt_alloc_fail_nth(++n, 1);
		gather();
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(facts.nvswitches, 1);
		assert_true(facts.has & TAKT_DOCTOR_PROCESSES);
		if (facts.has & TAKT_DOCTOR_MODULES)
			assert_true(facts.peermem);
	} while (!facts.containers.runtime_named); /* the last that asks for some */
	assert_true(n > 3);
	assert_string_equal(facts.fabric_manager_version, "550.90.07");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)
	const struct CMUnitTest tests[] = {
		CASE(a_sleeping_gpu_is_left_asleep),
		CASE(a_module_that_is_not_loaded_is_not_loaded_by_looking),
		CASE(with_the_module_the_driver_is_asked),
		CASE(bridges_above_a_gpu_are_read),
		CASE(a_machine_made_of_a_containers_files),
		CASE(the_host_is_read),
		CASE(containers_are_read),
		CASE(packages_are_read_and_not_run),
		CASE(a_torch_without_cuda_and_one_that_does_not_say),
		CASE(the_fabric_managers_version_is_read),
		CASE(without_dpkg_its_log_tells),
		CASE(sensors_of_fans_and_supplies),
		CASE(without_memory_the_rest_is_gathered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
