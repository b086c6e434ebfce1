/* SPDX-License-Identifier: Apache-2.0 */
/* Where the driver's library lies when the loader does not find it: nothing is loaded by this, it
 * is for telling people what to set. */
#ifndef TAKT_DEVICE_NVML_FIND_H
#define TAKT_DEVICE_NVML_FIND_H

#include <stdbool.h>
#include <stddef.h>

#define TAKT_NVML_LIBRARY "libnvidia-ml.so.1"

/* Where NixOS, WSL and GKE put it, beside the loader's own folders. */
#define TAKT_NVML_FOLDERS                                                                       \
	"/run/opengl-driver/lib:/usr/lib/wsl/lib:/usr/local/nvidia/lib64:/home/kubernetes/bin/" \
	"nvidia/lib64"

/* The library's path in the first of the folders, a list as LD_LIBRARY_PATH is (NULL: none), that
 * has it. Folders are absolute or left out. */
bool takt_nvml_find(const char *folders, char *ret, size_t size);

#endif
