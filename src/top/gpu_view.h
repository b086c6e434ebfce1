/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver says of a GPU, as the API shows it: for the daemon, and for who looks without
 * one. */
#ifndef TAKT_TOP_GPU_VIEW_H
#define TAKT_TOP_GPU_VIEW_H

#include "codec/views.h"
#include "device/device.h"

/* "sw_power_cap,hw_thermal" of enum takt_throttle. */
void takt_throttle_text(uint64_t bits, char *buf, size_t size);

/* "12.4" of 12040; "" of 0, where it is not known. */
void takt_cuda_text(int32_t cuda_version, char *buf, size_t size);

/* Both add to *view. */
void takt_gpu_view_facts(const struct takt_gpu_facts *facts, struct takt_gpu_view *view);
/* All but its processes. */
void takt_gpu_view_reading(const struct takt_gpu_facts *facts,
			   const struct takt_gpu_reading *reading, struct takt_mono now,
			   struct takt_gpu_view *view);

#endif
