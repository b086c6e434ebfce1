/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's own time. It begins as CLOCK_BOOTTIME does and may pass faster, stand still, or be
 * moved on by hand; it never goes back. Everything in a machine is in this time: energy, heat,
 * progress, faults to come.
 *
 * A change begins a little after it was announced, so all processes follow it at the same moment:
 * what each reads before that moment is of the old stretch, for all. Readers never wait. Writers
 * hold the machine's clock lock (twin_shared.h), prepare a stretch that nobody looks at and raise
 * the number; one that is killed meanwhile leaves nothing.
 */
#ifndef TAKT_TWIN_TWIN_CLOCK_H
#define TAKT_TWIN_TWIN_CLOCK_H

#include "twin_layout.h"

enum {
	TWIN_MAX_SPEED = 1000
};

/* How long before it begins a change is announced. */
#define TWIN_CLOCK_LEAD_NS 50000000ull

/* CLOCK_BOOTTIME. */
uint64_t twin_now_ns(void);

/* A clock that starts at `boot_ns`, at the beginning of a cell at or before that time, so that
 * machines made alike go on alike. Before anybody else sees it. */
void twin_clock_init(struct twin_clock *clock, uint64_t boot_ns, uint64_t speed);

/* The machine's time at a moment of CLOCK_BOOTTIME. */
uint64_t twin_clock_at(const struct twin_clock *clock, uint64_t boot_ns);

/* CLOCK_BOOTTIME of a moment of the machine's that is past; of one that was jumped over, the moment
 * of the jump. Exact within the last two stretches. */
uint64_t twin_clock_boot(const struct twin_clock *clock, uint64_t machine_ns, uint64_t boot_ns);

/* Of the newest stretch, which may be announced only. */
uint64_t twin_clock_speed(const struct twin_clock *clock);

/* Has it begun? */
bool twin_clock_begun(const struct twin_clock *clock);

/* Announces a stretch that begins TWIN_CLOCK_LEAD_NS from now, `skip_ns` later than the machine's
 * time then. False if the newest has not begun yet, or if this process was held up for so long that
 * nobody would have heard of it in time: try again later. */
bool twin_clock_announce(struct twin_clock *clock, uint64_t speed, uint64_t skip_ns);

#endif
