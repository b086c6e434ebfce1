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

/* Later by so many nanoseconds; stays at the end of time instead of wrapping. */
static inline struct takt_mono takt_mono_add(struct takt_mono t, uint64_t ns)
{
	return (struct takt_mono){ns > UINT64_MAX - t.ns ? UINT64_MAX : t.ns + ns};
}
static inline struct takt_boot takt_boot_add(struct takt_boot t, uint64_t ns)
{
	return (struct takt_boot){ns > UINT64_MAX - t.ns ? UINT64_MAX : t.ns + ns};
}

/* Nanoseconds from `since` to `now`; 0 if `since` is still to come. */
static inline uint64_t takt_mono_elapsed_ns(struct takt_mono now, struct takt_mono since)
{
	return now.ns > since.ns ? now.ns - since.ns : 0;
}
static inline uint64_t takt_boot_elapsed_ns(struct takt_boot now, struct takt_boot since)
{
	return now.ns > since.ns ? now.ns - since.ns : 0;
}

#define TAKT_NS_PER_US 1000ull
#define TAKT_NS_PER_MS 1000000ull
#define TAKT_NS_PER_S  1000000000ull

#endif
