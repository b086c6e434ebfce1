/* SPDX-License-Identifier: Apache-2.0 */
/* Knob by knob: see the header. */
#include "actuate/setting.h"

#include <stdio.h>
#include <string.h>

bool takt_setting_same(const struct takt_setting *a, const struct takt_setting *b,
		       enum takt_knob knob)
{
	if (!takt_setting_has(a, knob) || !takt_setting_has(b, knob))
		return false;
	switch (knob) {
	case TAKT_KNOB_SM_CLOCK:
		return takt_clock_range_equal(a->sm, b->sm);
	case TAKT_KNOB_MEM_CLOCK:
		return takt_clock_range_equal(a->mem, b->mem);
	default:
		return a->power_limit_mw == b->power_limit_mw;
	}
}

struct takt_setting takt_setting_only(const struct takt_setting *setting, enum takt_knob knob)
{
	struct takt_setting only = {0};

	takt_setting_take(&only, setting, knob);
	return only;
}

void takt_setting_take(struct takt_setting *ret, const struct takt_setting *from,
		       enum takt_knob knob)
{
	if (!takt_setting_has(from, knob))
		return;
	ret->knobs |= TAKT_KNOB_BIT(knob);
	if (knob == TAKT_KNOB_SM_CLOCK)
		ret->sm = from->sm;
	else if (knob == TAKT_KNOB_MEM_CLOCK)
		ret->mem = from->mem;
	else
		ret->power_limit_mw = from->power_limit_mw;
}

const char *takt_setting_text(const struct takt_setting *setting, char buf[TAKT_SETTING_TEXT])
{
	int used = 0;

	if (takt_setting_has(setting, TAKT_KNOB_SM_CLOCK))
		used = snprintf(buf, TAKT_SETTING_TEXT, "[%u,%u] MHz", setting->sm.min_mhz,
				setting->sm.max_mhz);
	if (takt_setting_has(setting, TAKT_KNOB_POWER_LIMIT))
		used += snprintf(buf + used, (size_t)(TAKT_SETTING_TEXT - used), "%s%u W",
				 used ? ", " : "", setting->power_limit_mw / 1000);
	if (takt_setting_has(setting, TAKT_KNOB_MEM_CLOCK))
		used += snprintf(buf + used, (size_t)(TAKT_SETTING_TEXT - used),
				 "%smemory [%u,%u] MHz", used ? ", " : "", setting->mem.min_mhz,
				 setting->mem.max_mhz);
	if (used == 0)
		(void)snprintf(buf, TAKT_SETTING_TEXT, "something unknown");
	return buf;
}
