/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading /sys/bus/pci/devices. The path of a device in the tree names every bridge above it:
 *
 *	/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:04.0/0000:3d:00.0
 *	             host bridge  root port    switch, up    switch, down  GPU
 *
 * Two devices whose paths part below a bridge meet there: one switch between them when each hangs
 * directly on a port of it, several otherwise. If they part at the host bridge they meet in it; if
 * the host bridges differ, the NUMA nodes decide.
 */
#include "device/sysfs_pci.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"
#include "device/cpu_list.h"
#include "device/link_kind.h"
#include "device/pci_id.h"

static bool device_path(const char *root, const char *pci_bus_id, const char *attribute, char *ret,
			size_t size)
{
	struct takt_pci_id id;
	int n;

	if (!takt_pci_id_parse(pci_bus_id, &id))
		return false;
	n = snprintf(ret, size, "%s/bus/pci/devices/%04x:%02x:%02x.%x%s%s", root, id.domain, id.bus,
		     id.device, id.function, *attribute ? "/" : "", attribute);
	return n > 0 && (size_t)n < size;
}

/* One line without its newline. */
static bool read_line(const char *root, const char *pci_bus_id, const char *attribute, char *ret,
		      size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (!device_path(root, pci_bus_id, attribute, path, sizeof(path)))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, ret, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

bool takt_sysfs_numa(const char *root, const char *pci_bus_id, int32_t *ret)
{
	char line[32];
	long long node;

	/* -1 is the kernel's "unknown". */
	if (!read_line(root, pci_bus_id, "numa_node", line, sizeof(line)) ||
	    takt_parse_i64(line, 0, INT32_MAX, &node) < 0)
		return false;
	*ret = (int32_t)node;
	return true;
}

bool takt_sysfs_cpus(const char *root, const char *pci_bus_id, uint64_t *ret, size_t words)
{
	char line[4096];

	return read_line(root, pci_bus_id, "local_cpulist", line, sizeof(line)) &&
	       takt_cpu_list_parse(line, ret, words);
}

/* A display controller of NVIDIA's. */
static bool is_board(const char *root, const char *pci_bus_id)
{
	char line[32];

	return read_line(root, pci_bus_id, "vendor", line, sizeof(line)) &&
	       strcmp(line, "0x10de") == 0 &&
	       read_line(root, pci_bus_id, "class", line, sizeof(line)) &&
	       strncmp(line, "0x03", 4) == 0;
}

/* Whether that driver has the device: "nvidia", or "" for none. A virtual machine's has another. */
static bool has_driver(const char *root, const char *pci_bus_id, const char *wanted)
{
	char path[PATH_MAX], driver[PATH_MAX] = "";
	const char *name;
	ssize_t n;

	if (!device_path(root, pci_bus_id, "driver", path, sizeof(path)))
		return false;
	n = readlink(path, driver, sizeof(driver) - 1);
	driver[n > 0 ? n : 0] = '\0';
	name = strrchr(driver, '/');
	return strcmp(name ? name + 1 : driver, wanted) == 0;
}

enum takt_sleep takt_sysfs_sleep(const char *root, const char *pci_bus_id)
{
	char line[32];

	if (!read_line(root, pci_bus_id, "power/runtime_status", line, sizeof(line)))
		return TAKT_SLEEP_AWAKE;
	return strcmp(line, "suspended") == 0	 ? TAKT_SLEEP_ASLEEP
	       : strcmp(line, "suspending") == 0 ? TAKT_SLEEP_FALLING
						 : TAKT_SLEEP_AWAKE;
}

/* How many GPUs, those of the driver or those of none, and how many of them sleep. A driver has a
 * folder with its devices, which spares a look at all the others of the machine. */
static uint32_t count_gpus(const char *root, const char *driver, uint32_t *ret_asleep)
{
	const char *folder = *driver ? "drivers/" : "devices";
	uint32_t gpus = 0;
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *devices;

	*ret_asleep = 0;
	snprintf(path, sizeof(path), "%s/bus/pci/%s%s", root, folder, driver);
	devices = opendir(path);
	while (devices && (entry = readdir(devices)) != NULL) {
		if (!is_board(root, entry->d_name) || !has_driver(root, entry->d_name, driver))
			continue;
		gpus++;
		*ret_asleep += takt_sysfs_sleep(root, entry->d_name) != TAKT_SLEEP_AWAKE;
	}
	if (devices)
		closedir(devices);
	return gpus;
}

bool takt_sysfs_all_asleep(const char *root)
{
	uint32_t asleep, gpus = count_gpus(root, "nvidia", &asleep);

	return gpus > 0 && asleep == gpus;
}

bool takt_sysfs_has_gpu(const char *root)
{
	uint32_t asleep;

	return count_gpus(root, "nvidia", &asleep) > 0 || count_gpus(root, "", &asleep) > 0;
}

bool takt_sysfs_is_switch(const char *root, const char *pci_bus_id)
{
	char line[32];

	return read_line(root, pci_bus_id, "class", line, sizeof(line)) &&
	       strncmp(line, "0x0680", 6) == 0;
}

/* The part of the device's path from its host bridge on. */
static bool tree_path(const char *root, const char *pci_bus_id, char ret[PATH_MAX])
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *bridge;

	if (!device_path(root, pci_bus_id, "", path, sizeof(path)) || !realpath(path, real))
		return false;
	bridge = strstr(real, "/pci");
	return bridge && takt_strcpy(ret, PATH_MAX, bridge + 1);
}

/* Components that both paths begin with, and how many come after them in the longer rest. */
static void compare_paths(const char *a, const char *b, size_t *ret_common, size_t *ret_rest)
{
	size_t common = 0, rest_a = 1, rest_b = 1;

	for (;;) {
		size_t n = strcspn(a, "/");

		if (a[n] == '\0' || strncmp(a, b, n + 1) != 0)
			break;
		a += n + 1;
		b += n + 1;
		common++;
	}
	for (; *a; a++)
		rest_a += *a == '/';
	for (; *b; b++)
		rest_b += *b == '/';
	*ret_common = common;
	*ret_rest = rest_a > rest_b ? rest_a : rest_b;
}

uint8_t takt_sysfs_link(const char *root, const char *a, const char *b)
{
	char path_a[PATH_MAX], path_b[PATH_MAX];
	size_t common, rest;
	int32_t node_a, node_b;

	if (!tree_path(root, a, path_a) || !tree_path(root, b, path_b))
		return LINK_UNKNOWN;
	compare_paths(path_a, path_b, &common, &rest);
	if (common > 1)
		return rest <= 2 ? LINK_PIX : LINK_PXB;
	if (common == 1)
		return LINK_PHB;
	if (!takt_sysfs_numa(root, a, &node_a) || !takt_sysfs_numa(root, b, &node_b))
		return LINK_UNKNOWN;
	return node_a == node_b ? LINK_NODE : LINK_SYS;
}
