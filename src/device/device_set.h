/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that change a GPU. Only src/actuate may include this file: the layer checker refuses
 * everybody else. They run on the GPU's own worker and wait for it until `deadline`
 * (CLOCK_MONOTONIC).
 *
 * 0, -EPERM, -TAKT_E_UNSUPPORTED (board, or a source without setters), -ENODEV (GPU lost),
 * -ETIMEDOUT (the call may still take effect later: treat as unknown), -EINVAL, -EIO; err->vendor
 * holds the driver's own code.
 */
#ifndef TAKT_DEVICE_DEVICE_SET_H
#define TAKT_DEVICE_DEVICE_SET_H

#include "device/device.h"

/* Lock the SM clock into [min_mhz, max_mhz]; both from facts->sm_clocks_mhz. NVML has no getter. */
int takt_machine_lock_sm(struct takt_machine *machine, uint32_t gpu, uint32_t min_mhz,
			 uint32_t max_mhz, struct takt_mono deadline, struct takt_err *err);
int takt_machine_unlock_sm(struct takt_machine *machine, uint32_t gpu, struct takt_mono deadline,
			   struct takt_err *err);
int takt_machine_set_power_limit(struct takt_machine *machine, uint32_t gpu, uint32_t limit_mw,
				 struct takt_mono deadline, struct takt_err *err);

#endif
