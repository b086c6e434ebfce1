/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's cpufreq as files in a fake world: what takt writes there limits nothing but itself.
 */
#ifndef TAKT_TESTS_FAKE_CPUS_H
#define TAKT_TESTS_FAKE_CPUS_H

#include <stdint.h>

#include "fake_sys.h"

enum {
	FAKE_CPUS = 6, /* policies 0 to 3 of one kind, 4 and 5 of another; CPU 2 shares policy 1 */
};

/* Below /sys: 0 to 3 may run at 800 to 3600 MHz, 4 and 5 at 400 to 2400, each within its own. */
void fake_cpus_add(struct fake_sys *world);

/* What a file of a policy says, in kHz; 0 = there is no such policy. */
uint32_t fake_cpus_khz(struct fake_sys *world, uint32_t policy, const char *name);

/* Whether all stand as they were added. */
int fake_cpus_as_found(struct fake_sys *world);

#endif
