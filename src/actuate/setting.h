/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takt sets on a GPU: knobs, each of which is set and put back on its own. A setting speaks of
 * some of them; the others are meant to stand at their baseline.
 */
#ifndef TAKT_ACTUATE_SETTING_H
#define TAKT_ACTUATE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/range.h"

enum takt_knob {
	TAKT_KNOB_SM_CLOCK,    /* a range that the SM clock stays in */
	TAKT_KNOB_POWER_LIMIT, /* what the board may draw */
	TAKT_KNOB_MEM_CLOCK,   /* a range that the memory clock stays in */
	TAKT_KNOBS
};

#define TAKT_KNOB_BIT(knob) (1u << (knob))

struct takt_setting {
	uint32_t knobs; /* TAKT_KNOB_BIT of those it speaks of */
	struct takt_clock_range sm;
	uint32_t power_limit_mw;
	struct takt_clock_range mem;
};

enum {
	TAKT_SETTING_TEXT = 96
};

static inline bool takt_setting_has(const struct takt_setting *setting, enum takt_knob knob)
{
	return setting->knobs & TAKT_KNOB_BIT(knob);
}

/* Whether both have the same value for a knob that both speak of. */
bool takt_setting_same(const struct takt_setting *a, const struct takt_setting *b,
		       enum takt_knob knob);

/* The part of a setting that speaks of one knob. */
struct takt_setting takt_setting_only(const struct takt_setting *setting, enum takt_knob knob);

/* *ret takes over what `from` says of a knob that it speaks of. */
void takt_setting_take(struct takt_setting *ret, const struct takt_setting *from,
		       enum takt_knob knob);

/* "[210,900] MHz, 250 W, memory [405,1215] MHz"; "something unknown" when it speaks of no knob.
 * Returns buf. */
const char *takt_setting_text(const struct takt_setting *setting, char buf[TAKT_SETTING_TEXT]);

#endif
