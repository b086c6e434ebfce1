/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gives a program access to a MIG instance besides the node of its GPU: two more nodes,
 * /dev/nvidia-caps/nvidia-capN, of the GPU instance and of the compute instance. Their numbers are
 * the driver's and stand in /proc.
 */
#ifndef TAKT_DEVICE_MIG_CAPS_H
#define TAKT_DEVICE_MIG_CAPS_H

#include "device/device.h"

#define TAKT_MIG_CAPS_DIR "/proc/driver/nvidia/capabilities"

enum {
	TAKT_MIG_CAPS_EACH = 2
};

/*
 * The N of both nodes, as `dir` tells (TAKT_MIG_CAPS_DIR but for tests), for an instance of the GPU
 * whose node is /dev/nvidia<gpu_minor>. -ENOENT: the driver tells of no such instance, or the
 * instance's numbers are not known; -TAKT_E_CORRUPT: a file that does not say a number.
 */
int takt_mig_caps(const char *dir, uint32_t gpu_minor, const struct takt_gpu_instance *instance,
		  uint16_t ret[TAKT_MIG_CAPS_EACH], struct takt_err *err);

/* The N that the text of one such file says; -TAKT_E_CORRUPT leaves *ret alone. */
int takt_mig_cap_minor(const char *text, uint16_t *ret);

#endif
