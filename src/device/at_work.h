/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a board's SM clock says anything of the range that it is held in. It does while the board
 * is at work and knows of nothing that holds its clock back; an idle one, or one at its power
 * limit, may run as low as it likes.
 */
#ifndef TAKT_DEVICE_AT_WORK_H
#define TAKT_DEVICE_AT_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* Reasons that explain an SM clock below what is allowed. */
enum {
	TAKT_THROTTLE_HOLDS_BACK = TAKT_THROTTLE_APP_CLOCKS | TAKT_THROTTLE_SW_POWER |
				   TAKT_THROTTLE_HW_SLOWDOWN | TAKT_THROTTLE_SYNC_BOOST |
				   TAKT_THROTTLE_SW_THERMAL | TAKT_THROTTLE_HW_THERMAL |
				   TAKT_THROTTLE_POWER_BRAKE | TAKT_THROTTLE_DISPLAY,
};

/* Busy, by the driver's own utilisation (with MIG there is none: then never), at a clock that is
 * known. */
bool takt_reading_is_busy(const struct takt_gpu_reading *reading);

/* That, and neither a reason, nor power near its limit, nor a memory clock far below the highest
 * explains a low SM clock. False as well where reasons are not told. */
bool takt_reading_at_work(const struct takt_gpu_facts *facts,
			  const struct takt_gpu_reading *reading);

#endif
