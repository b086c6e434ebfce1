/* SPDX-License-Identifier: Apache-2.0 */
/* Container engines, NVIDIA's toolkit, and how they were set up. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "health/file_words.h"
#include "health/gather.h"
#include "health/rooted.h"

enum {
	FILE_BYTES = 256 * 1024,
};

static bool any(const char *root, const char *const *paths)
{
	for (; *paths; paths++)
		if (takt_rooted_exists(root, *paths))
			return true;
	return false;
}

static bool has_program(const char *root, const char *name)
{
	static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/usr/sbin",
					      "/usr/local/nvidia/toolkit"};
	char path[256];

	if (name[0] == '/')
		return takt_rooted_exists(root, name);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (takt_rooted_exists(root, path))
			return true;
	}
	return false;
}

static void read_files(const char *root, char *text, struct takt_doctor_containers *ret)
{
	static const char *const cdi[] = {"/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml",
					  "/etc/cdi/nvidia.json", "/var/run/cdi/nvidia.json"};

	if (takt_rooted_text(root, "/etc/docker/daemon.json", text, FILE_BYTES)) {
		ret->runtime_named =
			takt_find_runtime(text, ret->runtime_path, sizeof(ret->runtime_path));
		ret->runtime_missing = ret->runtime_named && !has_program(root, ret->runtime_path);
		ret->cgroupfs = strstr(text, "native.cgroupdriver=cgroupfs");
	}
	if (takt_rooted_text(root, "/etc/nvidia-container-runtime/config.toml", text, FILE_BYTES))
		ret->no_cgroups = takt_says_no_cgroups(text);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(cdi) && !ret->cdi_path[0]; i++) {
		if (!takt_rooted_text(root, cdi[i], text, FILE_BYTES))
			continue;
		takt_strcpy(ret->cdi_path, sizeof(ret->cdi_path), cdi[i]);
		takt_find_cdi_version(text, ret->cdi_version, sizeof(ret->cdi_version));
	}
}

void takt_gather_containers(const char *root, struct takt_doctor_facts *facts)
{
	static const char *const docker[] = {"/usr/bin/dockerd", "/usr/sbin/dockerd",
					     "/run/docker.sock", NULL};
	struct takt_doctor_containers *ret = &facts->containers;
	char *text = takt_alloc(FILE_BYTES);

	ret->docker = any(root, docker);
	takt_strcpy(ret->which, sizeof(ret->which), "docker");
	ret->toolkit = has_program(root, "nvidia-container-runtime-hook") ||
		       has_program(root, "nvidia-container-toolkit");
	ret->systemd = takt_rooted_exists(root, "/run/systemd/system");
	if (takt_rooted_exists(root, "/dev/char"))
		facts->has |= TAKT_DOCTOR_DEV_CHAR;
	ret->char_links = takt_rooted_exists(root, "/dev/char/195:255");
	if (text)
		read_files(root, text, ret);
	takt_free(text);
}
