/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which load of the driver this is. A clock lock lives exactly as long as the loaded driver: after
 * a reload, as after a reboot, what the journal says of it is history.
 */
#ifndef TAKT_ACTUATE_DRIVER_LOAD_H
#define TAKT_ACTUATE_DRIVER_LOAD_H

#include "base/sys.h"
#include "device/device.h"

enum {
	TAKT_DRIVER_LOAD = 112
};

/*
 * "550.54.15 module 23811": version, and the inode of the module's directory in sysfs, which the
 * kernel numbers anew for each load (the times of that inode say only when somebody looked). Where
 * sysfs shows no module (simulated driver, some containers) the version alone: then a reload within
 * one boot passes for the same load and a GPU is restored that did not need it, which harms nobody.
 */
void takt_driver_load(const struct takt_sys *sys, const struct takt_machine_info *info,
		      char ret[TAKT_DRIVER_LOAD]);
/* Whether two of these are of different loads. Where one was asked while sysfs did not answer, the
 * versions alone tell. */
bool takt_driver_load_differs(const char *a, const char *b);

#endif
