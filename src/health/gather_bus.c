/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's devices on the PCI bus. Of one that is suspended nothing is read but its identity and
 * that it is: reading its configuration would wake it.
 *
 *	/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:04.0/0000:3d:00.0
 *	             host bridge  root port    switch, up    switch, down  GPU
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "health/file_words.h"
#include "health/gather.h"
#include "health/rooted.h"

enum {
	CONFIG_BYTES = 4096,
	HEAD_BYTES = 0x108, /* with less the capabilities are missing */
	LEVELS = 16,	    /* of bridges */
};

struct bus {
	const char *root;
	struct takt_doctor_facts *facts;
};

static bool read_attribute(const struct bus *bus, const char *device, const char *name, char *ret,
			   size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", device, name);
	return takt_rooted_line(bus->root, path, ret, size);
}

/* Only root is given what lies beyond the first 64 bytes. */
static void read_acs(const struct bus *bus, const char *bridge, struct takt_doctor_pci *pci)
{
	uint8_t config[CONFIG_BYTES];
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), "%s/config", bridge);
	len = takt_rooted_bytes(bus->root, path, config, sizeof(config));
	pci->acs_known = pci->acs_known && len > HEAD_BYTES;
	pci->acs_redirects = pci->acs_redirects || takt_bridge_redirects(config, len);
}

/* Cuts the last component off; false at the host bridge. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || strncmp(slash, "/pci", 4) == 0)
		return false;
	*slash = '\0';
	slash = strrchr(path, '/');
	return slash && strncmp(slash, "/pci", 4) != 0;
}

/* The bridges above it, from the nearest on. */
static void read_bridges(const struct bus *bus, const char *device, struct takt_doctor_pci *pci)
{
	char full[PATH_MAX], real[PATH_MAX], text[32], *path = real;
	unsigned long long width;
	int level = 0;

	if (snprintf(full, sizeof(full), "%s%s", bus->root, device) >= (int)sizeof(full) ||
	    !realpath(full, real) || !strstr(real, "/pci0") ||
	    strncmp(real, bus->root, strlen(bus->root)) != 0)
		return;
	path += strlen(bus->root);
	pci->acs_known = true;
	while (level < LEVELS && go_up(path)) {
		level++;
		if (level == 1 && read_attribute(bus, path, "max_link_width", text, sizeof(text)) &&
		    takt_parse_u64(text, 1, 64, &width) == 0)
			pci->port_max_width = (uint32_t)width;
		if (level == 2)
			takt_strcpy(pci->switch_id, sizeof(pci->switch_id), takt_path_name(path));
		read_acs(bus, path, pci);
	}
	pci->acs_known = pci->acs_known && level > 0;
	/* Only a root port above a switch is a third level. */
	if (level < 3)
		pci->switch_id[0] = '\0';
}

static void add_gpu(const struct bus *bus, const char *device)
{
	struct takt_doctor_facts *facts = bus->facts;
	struct takt_doctor_pci *pci = &facts->pci[facts->pci_count];
	char path[PATH_MAX], text[PATH_MAX];

	if (facts->pci_count == TAKT_DEVICE_MAX_GPUS)
		return;
	facts->pci_count++;
	takt_strcpy(pci->id, sizeof(pci->id), takt_path_name(device));
	snprintf(path, sizeof(path), "%s/driver", device);
	if (takt_rooted_link(bus->root, path, text, sizeof(text)))
		takt_strcpy(pci->driver, sizeof(pci->driver), takt_path_name(text));
	pci->asleep = read_attribute(bus, device, "power/runtime_status", text, sizeof(text)) &&
		      strncmp(text, "suspend", 7) == 0;
	if (!pci->asleep)
		read_bridges(bus, device, pci);
}

static void look_at(void *ctx, const char *device)
{
	const struct bus *bus = ctx;
	char vendor[16], class[16];

	if (!read_attribute(bus, device, "vendor", vendor, sizeof(vendor)) ||
	    strcmp(vendor, "0x10de") != 0 ||
	    !read_attribute(bus, device, "class", class, sizeof(class)))
		return;
	if (strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0)
		add_gpu(bus, device);
	else if (strncmp(class, "0x0680", 6) == 0)
		bus->facts->nvswitches++;
}

void takt_gather_bus(const char *root, struct takt_doctor_facts *facts)
{
	struct bus bus = {root, facts};

	if (!takt_rooted_exists(root, "/sys/bus/pci/devices"))
		return;
	facts->has |= TAKT_DOCTOR_BUS;
	takt_rooted_glob(root, "/sys/bus/pci/devices/*", look_at, &bus);
}
