/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel knows of the machine around the GPUs. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "health/file_words.h"
#include "health/gather.h"
#include "health/rooted.h"

enum {
	MODULES_BYTES = 256 * 1024,
	PACKAGES_BYTES =
		16 * 1024 * 1024, /* a log that is longer is not read wholly, so not at all */
};

/* The kernel's own process namespace has a number that never changes (PROC_PID_INIT_INO). */
static const char init_namespace[] = "pid:[4026531836]";

struct host {
	const char *root;
	struct takt_doctor_facts *facts;
};

static void read_modules(const char *root, struct takt_doctor_facts *facts)
{
	char *text = takt_alloc(MODULES_BYTES);

	if (text && takt_rooted_text(root, "/proc/modules", text, MODULES_BYTES)) {
		facts->has |= TAKT_DOCTOR_MODULES;
		facts->nouveau = strncmp(text, "nouveau ", 8) == 0 || strstr(text, "\nnouveau ");
		facts->peermem = strncmp(text, "nvidia_peermem ", 15) == 0 ||
				 strstr(text, "\nnvidia_peermem ");
	}
	takt_free(text);
}

void takt_gather_module(const char *root, struct takt_doctor_facts *facts)
{
	char line[512], link[64];
	bool marked;

	if (takt_rooted_line(root, "/proc/driver/nvidia/version", line, sizeof(line)) &&
	    takt_find_module_version(line, facts->kernel_version, sizeof(facts->kernel_version))) {
		facts->has |= TAKT_DOCTOR_KERNEL_MODULE;
		facts->open_module = strstr(line, "Open Kernel Module");
	}
	read_modules(root, facts);
	marked = takt_rooted_exists(root, "/.dockerenv") ||
		 takt_rooted_exists(root, "/run/.containerenv");
	facts->other_namespace = takt_rooted_link(root, "/proc/self/ns/pid", link, sizeof(link))
					 ? strcmp(link, init_namespace) != 0
					 : marked;
	facts->hides_processes = facts->other_namespace;
	facts->in_container = marked || facts->hides_processes;
}

static void count_node(void *ctx, const char *path)
{
	struct host *host = ctx;

	(void)path;
	host->facts->numa_nodes++;
}

static void look_at_process(void *ctx, const char *path)
{
	struct host *host = ctx;
	char name[32];

	if (!takt_rooted_line(host->root, path, name, sizeof(name)))
		return;
	host->facts->has |= TAKT_DOCTOR_PROCESSES;
	/* the kernel keeps 15 characters */
	if (strncmp(name, "nv-fabricmanager", 15) == 0)
		host->facts->fabric_manager = true;
}

/* What is installed is what will run; where there is no dpkg, what it said when it started. */
static void read_manager_version(const char *root, struct takt_doctor_facts *facts)
{
	char *text = takt_alloc(PACKAGES_BYTES), *ret = facts->fabric_manager_version;
	size_t size = sizeof(facts->fabric_manager_version);

	if (!text)
		return;
	if (!takt_rooted_text(root, "/var/lib/dpkg/status", text, PACKAGES_BYTES) ||
	    !takt_find_package_version(text, "nvidia-fabricmanager", ret, size)) {
		if (takt_rooted_text(root, "/var/log/fabricmanager.log", text, PACKAGES_BYTES) &&
		    strlen(text) < PACKAGES_BYTES - 1)
			takt_find_manager_version(text, ret, size);
	}
	takt_free(text);
}

/* "4: ACTIVE" is said as ACTIVE. */
static void read_word(const struct host *host, const char *port, const char *name, char *ret,
		      size_t size)
{
	char path[PATH_MAX], line[64];
	const char *colon;

	snprintf(path, sizeof(path), "%s/%s", port, name);
	if (!takt_rooted_line(host->root, path, line, sizeof(line)))
		return;
	colon = strchr(line, ':');
	takt_strcpy(ret, size, colon ? colon + 1 + strspn(colon + 1, " ") : line);
}

/* /sys/class/infiniband/mlx5_0/ports/1 */
static void look_at_port(void *ctx, const char *path)
{
	struct host *host = ctx;
	struct takt_doctor_port *port = &host->facts->port[host->facts->port_count];
	char layer[32] = "", rate[48] = "";
	const char *device = path + strlen("/sys/class/infiniband/");
	unsigned gbit = 0;

	if (host->facts->port_count == TAKT_DOCTOR_MAX_PORTS)
		return;
	snprintf(port->device, sizeof(port->device), "%.*s", (int)strcspn(device, "/"), device);
	if (sscanf(takt_path_name(path), "%u", &port->number) != 1)
		return;
	read_word(host, path, "state", port->state, sizeof(port->state));
	read_word(host, path, "phys_state", port->phys, sizeof(port->phys));
	read_word(host, path, "link_layer", layer, sizeof(layer));
	read_word(host, path, "rate", rate, sizeof(rate));
	port->ethernet = strcmp(layer, "Ethernet") == 0;
	if (sscanf(rate, "%u", &gbit) == 1)
		port->gbit = gbit;
	if (port->state[0])
		host->facts->port_count++;
}

static void look_at_library(void *ctx, const char *path)
{
	struct host *host = ctx;
	char target[PATH_MAX];
	const char *version;

	if (host->facts->has & TAKT_DOCTOR_CUDA_LIB ||
	    !takt_rooted_link(host->root, path, target, sizeof(target)))
		return;
	version = strstr(takt_path_name(target), ".so.");
	if (!version || !strchr(version + 4, '.'))
		return;
	takt_strcpy(host->facts->cuda_lib_version, sizeof(host->facts->cuda_lib_version),
		    version + 4);
	host->facts->has |= TAKT_DOCTOR_CUDA_LIB;
}

void takt_gather_host(const char *root, struct takt_doctor_facts *facts)
{
	static const char *const libraries[] = {"/usr/lib/*-linux-gnu/libcuda.so.1",
						"/usr/lib64/libcuda.so.1", "/usr/lib/libcuda.so.1",
						"/usr/local/nvidia/lib64/libcuda.so.1"};
	struct host host = {root, facts};

	if (takt_rooted_exists(root, "/sys/devices/system/node"))
		facts->has |= TAKT_DOCTOR_NUMA_NODES;
	takt_rooted_glob(root, "/sys/devices/system/node/node[0-9]*", count_node, &host);
	/* With hidepid other people's processes are not there at all, not even the first. */
	if (takt_rooted_exists(root, "/proc/1/comm"))
		takt_rooted_glob(root, "/proc/[0-9]*/comm", look_at_process, &host);
	if (facts->nvswitches || facts->fabric_manager)
		read_manager_version(root, facts);
	facts->has |= TAKT_DOCTOR_PORTS;
	takt_rooted_glob(root, "/sys/class/infiniband/*/ports/[0-9]*", look_at_port, &host);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(libraries); i++)
		takt_rooted_glob(root, libraries[i], look_at_library, &host);
}
