/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for a driver that is not there yet: at boot its module may be loaded after takt has
 * started. A thread of its own opens the driver's library every so often, since that may take
 * long, and closes it again; whoever waits looks at the result and never blocks.
 */
#ifndef TAKT_DEVICE_DRIVER_WAIT_H
#define TAKT_DEVICE_DRIVER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

struct takt_driver_wait;

/* config: nvml_path, sysfs_root and leaves_asleep count; copied. The first look is after every_ns.
 * A driver that hangs is not tried again: each try would leave a thread in it. */
int takt_driver_wait_new(const struct takt_machine_config *config, uint64_t every_ns,
			 struct takt_driver_wait **ret, struct takt_err *err);

/* Whether the driver answered and has a GPU; once true it stays so. NULL = false. */
bool takt_driver_wait_is_over(struct takt_driver_wait *wait);

/* Does not wait for the thread, which may be in the driver. NULL is allowed. */
void takt_driver_wait_free(struct takt_driver_wait *wait);

#endif
