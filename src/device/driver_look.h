/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the driver that there is now: at boot its module may be loaded after takt has started,
 * and it may be taken away or loaded anew under a takt that runs. A process that has had the
 * driver's library open goes on with the library and the driver that it met, so each look is a
 * process of its own; and whoever has it looked for never waits for a driver that hangs.
 */
#ifndef TAKT_DEVICE_DRIVER_LOOK_H
#define TAKT_DEVICE_DRIVER_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/timetypes.h"
#include "device/device.h"

struct takt_driver_look {
	const struct takt_machine_config *config; /* borrowed; what a look is begun by */
	pid_t pid;				  /* of a look; 0 = none */
	uint32_t looks;				  /* so far */
	bool hangs;				  /* the driver does: it is not looked for again, */
	struct takt_boot next; /* the next look, or when one that is under way hangs */
};

/* nvml_path, sysfs_root and leaves_asleep of config count. The first look is due at `first`. */
void takt_driver_look_init(struct takt_driver_look *look, const struct takt_machine_config *config,
			   struct takt_boot first);

/* Begins a look when it is time to, and sees what came of one; true: the driver answers, and has a
 * GPU. Else *ret_next is when to come back at the latest. */
bool takt_driver_look_step(struct takt_driver_look *look, struct takt_boot now,
			   struct takt_boot *ret_next);

/* Ends a look that is under way. */
void takt_driver_look_fini(struct takt_driver_look *look);

/* For main() of a program that uses the above, before anything else: true when this process is a
 * look, which *ret_status is then the exit status of. */
bool takt_driver_look_main(int argc, char **argv, int *ret_status);

#endif
