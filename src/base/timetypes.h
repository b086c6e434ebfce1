/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three clocks, three types that the compiler will not mix.
 *
 * mono: stops while the machine sleeps; rates and samples.  boot: runs on; durations, time-outs,
 * leases.  wall: for people and for files that outlive a boot; may jump either way.
 */
#ifndef TAKT_BASE_TIMETYPES_H
#define TAKT_BASE_TIMETYPES_H

#include <stdint.h>

struct takt_mono {
	uint64_t ns;
};
struct takt_boot {
	uint64_t ns;
};
struct takt_wall {
	int64_t ns; /* since 1970-01-01 UTC; 0 = not known */
};

#define TAKT_NS_PER_US 1000ull
#define TAKT_NS_PER_MS 1000000ull
#define TAKT_NS_PER_S  1000000000ull

#endif
