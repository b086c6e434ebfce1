/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_faces.h. Devices, /proc, and the order of it all; twin_faces_bus.c has /sys. */
#include "twin_faces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "twin_plant.h"

#define PROC "/proc/driver/nvidia"

enum {
	NVIDIA_MAJOR = 195,
	CONTROL_MINOR = 255,
	ID_SIZE = 16,
	MODULES_MAX = 1 << 20, /* bytes of /proc/modules */
};

static void id_of(const struct twin_gpu_desc *gpu, char ret[ID_SIZE])
{
	snprintf(ret, ID_SIZE, "%04x:%02x:%02x.0", gpu->pci.domain & 0xffff, gpu->pci.bus & 0xff,
		 gpu->pci.slot & 0x1f);
}

static int put_text(const char *path, const char *text, struct takt_err *err)
{
	return twin_plant_file(path, text, strlen(text), err);
}

static int put_devices(const struct twin_machine *machine, struct takt_err *err)
{
	char path[32];
	int rc = twin_plant_cover("/dev", err);

	for (uint32_t i = 0; rc == 0 && i < machine->gpu_count; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", i);
		rc = twin_plant_node(path, NVIDIA_MAJOR, i, err);
	}
	return rc < 0 ? rc : twin_plant_node("/dev/nvidiactl", NVIDIA_MAJOR, CONTROL_MINOR, err);
}

static int put_information(const struct twin_machine *machine, const struct twin_gpu_desc *gpu,
			   struct takt_err *err)
{
	char id[ID_SIZE], path[64], text[512];
	int rc;

	id_of(gpu, id);
	snprintf(path, sizeof(path), PROC "/gpus/%s", id);
	rc = twin_plant_folder(path, err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), PROC "/gpus/%s/information", id);
	snprintf(text, sizeof(text),
		 "Model: \t\t %s\nGPU UUID: \t %s\nVideo BIOS: \t %s\nBus Type: \t PCIe\n"
		 "Bus Location: \t %s\nDevice Minor: \t %u\n",
		 machine->board.name, gpu->uuid, machine->board.vbios, id, gpu->index);
	return put_text(path, text, err);
}

static int put_version(const struct twin_machine *machine, struct takt_err *err)
{
	struct utsname host;
	char text[256];

	if (uname(&host) != 0)
		return takt_err_set(err, -errno, "ask for the kernel's architecture");
	snprintf(text, sizeof(text),
		 "NVRM version: NVIDIA UNIX %s Kernel Module  %s  TWIN, a simulated driver\n",
		 host.machine, machine->driver_version);
	return put_text(PROC "/version", text, err);
}

static int put_modules(FILE *in, struct takt_err *err)
{
	static const char line[] = "nvidia 0 0 - Live 0x0000000000000000\n";
	char *text = malloc(MODULES_MAX);
	size_t size = sizeof(line) - 1;
	int rc;

	if (!text)
		return takt_err_set(err, -ENOMEM, "read '/proc/modules'");
	memcpy(text, line, size);
	size += fread(text + size, 1, MODULES_MAX - size, in);
	rc = twin_plant_file("/proc/driver/.modules", text, size, err);
	free(text);
	return rc < 0 ? rc : twin_plant_over("/proc/modules", "/proc/driver/.modules", err);
}

/* The machine's modules, and one more. A kernel that loads none has no such file, and a folder of
 * processes cannot be covered to make one. */
static int put_module(struct takt_err *err)
{
	FILE *in = fopen("/proc/modules", "re");
	int rc;

	if (!in)
		return errno == ENOENT ? 0 : takt_err_set(err, -errno, "read '/proc/modules'");
	rc = put_modules(in, err);
	fclose(in);
	return rc;
}

static int put_proc(const struct twin_machine *machine, struct takt_err *err)
{
	int rc = twin_plant_cover("/proc/driver", err);

	if (rc == 0)
		rc = twin_plant_folder(PROC, err);
	if (rc == 0)
		rc = twin_plant_folder(PROC "/gpus", err);
	for (uint32_t i = 0; rc == 0 && i < machine->gpu_count; i++)
		rc = put_information(machine, &machine->gpus[i], err);
	if (rc == 0)
		rc = put_version(machine, err);
	return rc < 0 ? rc : put_module(err);
}

static int put_bus(const struct twin_machine *machine, struct takt_err *err)
{
	char id[ID_SIZE];
	int rc = twin_plant_cover("/sys/bus/pci/devices", err);

	if (rc == 0)
		rc = twin_plant_cover("/sys/bus/pci/drivers", err);
	if (rc == 0)
		rc = twin_plant_folder("/sys/bus/pci/drivers/nvidia", err);
	for (uint32_t i = 0; rc == 0 && i < machine->gpu_count; i++) {
		id_of(&machine->gpus[i], id);
		rc = twin_faces_put_on_bus(machine, &machine->gpus[i], id, err);
	}
	return rc;
}

int twin_faces_put_on(struct twin_map *map, struct takt_err *err)
{
	const struct twin_machine *machine = &twin_map_file(map)->machine;
	int rc = twin_plant_begin(err);

	if (rc == 0)
		rc = put_devices(machine, err);
	if (rc == 0)
		rc = put_proc(machine, err);
	if (rc == 0)
		rc = twin_faces_put_instances(map, err);
	/* a machine may have no PCI bus at all, and clients that look for one are then right */
	if (rc == 0 && access("/sys/bus/pci/devices", F_OK) == 0)
		rc = put_bus(machine, err);
	return rc;
}
