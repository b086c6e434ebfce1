/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver shows of GPU instances: capabilities, as files that give numbers of devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "twin_faces.h"
#include "twin_mig.h"
#include "twin_plant.h"

#define CAPABILITIES "/proc/driver/nvidia/capabilities"

/* Numbers are given by a formula, whether the instance is there or not: two for the machine, then
 * of each GPU fifteen GPU instances, each with one for itself and eight for compute instances (as
 * in NVIDIA's public listing: gpu0/gi1/access is 12, gpu1/gi0/access 138). */
enum {
	MINOR_CONFIG = 1,
	MINOR_MONITOR = 2,
	FIRST_MINOR = 3,
	GPU_INSTANCES = 15,
	MINORS_EACH = 9, /* of a GPU instance */
	FIRST_MAJOR = 384,
	LAST_MAJOR = 511 /* the kernel's second range of majors for drivers that ask for any */
};

static uint32_t minor_of(uint32_t gpu, uint32_t instance)
{
	return FIRST_MINOR + (gpu * GPU_INSTANCES + instance) * MINORS_EACH;
}

static void write_minors(const struct twin_machine *machine, FILE *out)
{
	fprintf(out, "config %d\nmonitor %d\n", MINOR_CONFIG, MINOR_MONITOR);
	for (uint32_t gpu = 0; gpu < machine->gpu_count; gpu++) {
		for (uint32_t gi = 0; gi < GPU_INSTANCES; gi++) {
			uint32_t minor = minor_of(gpu, gi);
			fprintf(out, "gpu%u/gi%u/access %u\n", gpu, gi, minor);
			for (uint32_t ci = 0; ci < MINORS_EACH - 1; ci++)
				fprintf(out, "gpu%u/gi%u/ci%u/access %u\n", gpu, gi, ci,
					minor + 1 + ci);
		}
	}
}

static int put_minors(const struct twin_machine *machine, struct takt_err *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int rc;

	if (!out)
		return takt_err_set(err, -ENOMEM, "list the numbers of MIG devices");
	write_minors(machine, out);
	if (fclose(out) != 0) {
		free(text);
		return takt_err_set(err, -ENOMEM, "list the numbers of MIG devices");
	}
	rc = twin_plant_folder("/proc/driver/nvidia-caps", err);
	if (rc == 0)
		rc = twin_plant_file("/proc/driver/nvidia-caps/mig-minors", text, size, err);
	free(text);
	return rc;
}

/* A major that no driver of this machine has, so that nothing is behind the nodes. 0 if there is
 * none. */
static uint32_t free_major(void)
{
	bool taken[LAST_MAJOR + 1] = {false};
	FILE *in = fopen("/proc/devices", "re");
	char line[128];
	unsigned number;

	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%u ", &number) == 1 && number <= LAST_MAJOR)
			taken[number] = true;
	}
	if (in)
		fclose(in);
	for (uint32_t major = LAST_MAJOR; major >= FIRST_MAJOR; major--) {
		if (!taken[major])
			return major;
	}
	return 0;
}

/* A capability: the file, and the device that it names. */
static int put_capability(const char *file, uint32_t major, uint32_t minor, struct takt_err *err)
{
	char text[96], node[48];
	int rc;

	snprintf(text, sizeof(text),
		 "DeviceFileMinor: %u\nDeviceFileMode: 256\nDeviceFileModify: 1\n", minor);
	rc = twin_plant_file(file, text, strlen(text), err);
	snprintf(node, sizeof(node), "/dev/nvidia-caps/nvidia-cap%u", minor);
	return rc < 0 ? rc : twin_plant_node(node, major, minor, err);
}

static int put_folders(const char *const *folders, size_t n, struct takt_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = twin_plant_folder(folders[i], err);
	return rc;
}

static int put_machine(uint32_t major, struct takt_err *err)
{
	static const char *const folders[] = {"/dev/nvidia-caps", CAPABILITIES,
					      CAPABILITIES "/mig"};
	int rc = put_folders(folders, sizeof(folders) / sizeof(folders[0]), err);

	if (rc == 0)
		rc = put_capability(CAPABILITIES "/mig/config", major, MINOR_CONFIG, err);
	if (rc == 0)
		rc = put_capability(CAPABILITIES "/mig/monitor", major, MINOR_MONITOR, err);
	return rc;
}

/* A GPU instance's or a compute instance's folder with its `access`. */
static int put_access(const char *folder, uint32_t major, uint32_t minor, struct takt_err *err)
{
	char path[128];
	int rc = twin_plant_folder(folder, err);

	snprintf(path, sizeof(path), "%s/access", folder);
	return rc < 0 ? rc : put_capability(path, major, minor, err);
}

static int put_instance(const struct twin_gpu *gpu, const struct twin_board *board, uint32_t index,
			uint32_t start, uint32_t major, struct takt_err *err)
{
	const struct twin_gpu_instance *instance = &gpu->instances[start];
	uint32_t id = twin_mig_id(twin_mig_profile(gpu, board, start), start);
	char path[96];
	int rc;

	snprintf(path, sizeof(path), CAPABILITIES "/gpu%u/mig/gi%u", index, id);
	rc = put_access(path, major, minor_of(index, id), err);
	for (uint32_t i = 0; rc == 0 && i < TWIN_MIG_SLICES - 1; i++) {
		const struct twin_compute_instance *compute = &instance->compute[i];
		if (!compute->slices)
			continue;
		snprintf(path, sizeof(path), CAPABILITIES "/gpu%u/mig/gi%u/ci%u", index, id,
			 compute->id);
		rc = put_access(path, major, minor_of(index, id) + 1 + compute->id, err);
	}
	return rc;
}

static int put_gpu(struct twin_map *map, uint32_t index, uint32_t major, struct takt_err *err)
{
	struct twin_gpu gpu;
	char path[64];
	int rc;

	snprintf(path, sizeof(path), CAPABILITIES "/gpu%u", index);
	rc = twin_plant_folder(path, err);
	snprintf(path, sizeof(path), CAPABILITIES "/gpu%u/mig", index);
	if (rc == 0)
		rc = twin_plant_folder(path, err);
	twin_read(map, index, &gpu);
	for (uint32_t i = 0; rc == 0 && i < TWIN_MIG_SLICES; i++) {
		if (gpu.instances[i].used)
			rc = put_instance(&gpu, twin_map_board(map), index, i, major, err);
	}
	return rc;
}

int twin_faces_put_instances(struct twin_map *map, struct takt_err *err)
{
	const struct twin_machine *machine = &twin_map_file(map)->machine;
	uint32_t major = free_major();
	int rc;

	if (machine->board.mig_count == 0)
		return 0;
	if (major == 0)
		return takt_err_set(err, -EBUSY, "find a device number for --faces");
	rc = put_minors(machine, err);
	if (rc == 0)
		rc = put_machine(major, err);
	for (uint32_t i = 0; rc == 0 && i < machine->gpu_count; i++)
		rc = put_gpu(map, i, major, err);
	return rc;
}
