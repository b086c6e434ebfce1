/* SPDX-License-Identifier: Apache-2.0 */
/* A board as /sys/bus/pci shows it: see twin_faces.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "twin_faces.h"
#include "twin_plant.h"

#define DEVICES "/sys/bus/pci/devices"

enum {
	CLASS_VGA = 0x030000,
	CLASS_3D = 0x030200, /* a board without outputs for a screen */
	REVISION = 0xa1,
	CONFIG_SIZE = 256,
	CAPABILITY_AT = 0x60, /* of PCI Express, in the configuration space */
	RESOURCES = 13,	      /* lines of such a file: regions, rom, and those of bridges */
};

static uint32_t class_of(const struct twin_board *board)
{
	return board->brand == NVML_BRAND_GEFORCE ? CLASS_VGA : CLASS_3D;
}

static bool has_cpu(const struct twin_gpu_desc *gpu, uint32_t cpu)
{
	return cpu < 64 * TWIN_CPU_WORDS && (gpu->cpus[cpu / 64] >> (cpu % 64) & 1);
}

/* "0-55,112-167" */
static void cpu_list(const struct twin_gpu_desc *gpu, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (uint32_t first = 0; first < 64 * TWIN_CPU_WORDS && n < size; first++) {
		uint32_t last = first;

		if (!has_cpu(gpu, first))
			continue;
		while (has_cpu(gpu, last + 1))
			last++;
		n += (size_t)snprintf(ret + n, size - n, n ? ",%u" : "%u", first);
		if (last > first && n < size)
			n += (size_t)snprintf(ret + n, size - n, "-%u", last);
		first = last;
	}
}

/* Words of 32 CPUs, the highest first. */
static void cpu_mask(const struct twin_gpu_desc *gpu, char *ret, size_t size)
{
	size_t n = 0;

	for (uint32_t word = 2 * TWIN_CPU_WORDS; word-- > 0 && n < size;)
		n += (size_t)snprintf(ret + n, size - n, "%08x%s",
				      (uint32_t)(gpu->cpus[word / 2] >> (word % 2 * 32)),
				      word ? "," : "");
}

static void put_u16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *at, uint32_t value)
{
	put_u16(at, value);
	put_u16(at + 2, value >> 16);
}

/* The configuration space: who it is, and the link at its full speed. */
static void configure(const struct twin_board *board, uint8_t ret[CONFIG_SIZE])
{
	uint8_t *capability = ret + CAPABILITY_AT;
	uint32_t link = board->pcie_gen | board->pcie_width << 4;

	memset(ret, 0, CONFIG_SIZE);
	put_u32(ret, board->pci_device);
	put_u16(ret + 0x04, 0x0006); /* command: memory, bus master */
	put_u16(ret + 0x06, 0x0010); /* status: has capabilities */
	put_u32(ret + 0x08, class_of(board) << 8 | REVISION);
	put_u32(ret + 0x2c, board->pci_subsystem);
	ret[0x34] = CAPABILITY_AT;
	capability[0] = 0x10;		  /* PCI Express */
	put_u16(capability + 2, 0x0002);  /* version 2, an end point */
	put_u32(capability + 0x0c, link); /* what it can */
	put_u16(capability + 0x12, link); /* what it does */
}

static int put_attribute(const char *folder, const char *name, const char *text,
			 struct takt_err *err)
{
	char path[PATH_MAX], line[1024];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return twin_plant_file(path, line, (size_t)n, err);
}

static int put_hex(const char *folder, const char *name, int digits, uint32_t value,
		   struct takt_err *err)
{
	char text[16];

	snprintf(text, sizeof(text), "0x%0*x", digits, value);
	return put_attribute(folder, name, text, err);
}

static int put_identity(const struct twin_board *board, const char *folder, struct takt_err *err)
{
	const struct {
		const char *name;
		int digits;
		uint32_t value;
	} attributes[] = {
		{"vendor", 4, board->pci_device & 0xffff},
		{"device", 4, board->pci_device >> 16},
		{"subsystem_vendor", 4, board->pci_subsystem & 0xffff},
		{"subsystem_device", 4, board->pci_subsystem >> 16},
		{"class", 6, class_of(board)},
		{"revision", 2, REVISION},
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < TAKT_ARRAY_LEN(attributes); i++)
		rc = put_hex(folder, attributes[i].name, attributes[i].digits, attributes[i].value,
			     err);
	return rc;
}

static int put_place(const struct twin_gpu_desc *gpu, const char *folder, struct takt_err *err)
{
	char text[1024];
	int rc;

	snprintf(text, sizeof(text), "%u", gpu->numa);
	rc = put_attribute(folder, "numa_node", text, err);
	if (rc < 0)
		return rc;
	cpu_list(gpu, text, sizeof(text));
	rc = put_attribute(folder, "local_cpulist", text, err);
	if (rc < 0)
		return rc;
	cpu_mask(gpu, text, sizeof(text));
	return put_attribute(folder, "local_cpus", text, err);
}

static int put_link(const struct twin_board *board, const char *folder, struct takt_err *err)
{
	static const char *const speeds[] = {"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
	char text[32];
	int rc = 0;

	if (board->pcie_gen >= 1 && board->pcie_gen <= TAKT_ARRAY_LEN(speeds)) {
		snprintf(text, sizeof(text), "%s GT/s PCIe", speeds[board->pcie_gen - 1]);
		rc = put_attribute(folder, "max_link_speed", text, err);
	}
	if (rc < 0)
		return rc;
	snprintf(text, sizeof(text), "%u", board->pcie_width);
	return put_attribute(folder, "max_link_width", text, err);
}

/* No address is ours to name: regions that are not set, in the kernel's notation. */
static int put_resources(const char *folder, struct takt_err *err)
{
	static const char none[] = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
	char path[PATH_MAX], text[RESOURCES * sizeof(none)];
	size_t n = 0;

	for (int i = 0; i < RESOURCES; i++, n += sizeof(none) - 1)
		memcpy(text + n, none, sizeof(none) - 1);
	snprintf(path, sizeof(path), "%s/resource", folder);
	return twin_plant_file(path, text, n, err);
}

static int put_config(const struct twin_board *board, const char *folder, struct takt_err *err)
{
	uint8_t config[CONFIG_SIZE];
	char path[PATH_MAX];

	configure(board, config);
	snprintf(path, sizeof(path), "%s/config", folder);
	return twin_plant_file(path, config, sizeof(config), err);
}

/* The board and its driver know each other. */
static int put_driver(const char *id, const char *folder, struct takt_err *err)
{
	char path[PATH_MAX], target[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/driver", folder);
	rc = twin_plant_link(path, "../../drivers/nvidia", err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/nvidia/%s", id);
	snprintf(target, sizeof(target), "../../devices/%s", id);
	return twin_plant_link(path, target, err);
}

int twin_faces_put_on_bus(const struct twin_machine *machine, const struct twin_gpu_desc *gpu,
			  const char *id, struct takt_err *err)
{
	const struct twin_board *board = &machine->board;
	char folder[64];
	int rc;

	snprintf(folder, sizeof(folder), DEVICES "/%s", id);
	rc = twin_plant_folder(folder, err);
	if (rc == 0)
		rc = put_identity(board, folder, err);
	if (rc == 0)
		rc = put_place(gpu, folder, err);
	if (rc == 0)
		rc = put_link(board, folder, err);
	if (rc == 0)
		rc = put_resources(folder, err);
	if (rc == 0)
		rc = put_config(board, folder, err);
	return rc < 0 ? rc : put_driver(id, folder, err);
}
