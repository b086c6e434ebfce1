/* SPDX-License-Identifier: Apache-2.0 */
/* See clock_terms.h. */
#include "daemon/clock_terms.h"

#include <stdio.h>
#include <string.h>

const char takt_declared_name[] = "clocks.declared";

void takt_declared_line(const struct takt_declared *wish, const char *uuid, struct takt_str *out)
{
	takt_str_add(out, uuid);
	if (wish->sm_max_mhz)
		takt_str_addf(out, " range %u %u", wish->sm_min_mhz, wish->sm_max_mhz);
	else
		takt_str_add(out, " reset");
	if (wish->power_limit_mw)
		takt_str_addf(out, " power %u", wish->power_limit_mw / 1000);
	if (wish->cap_power_mw)
		takt_str_addf(out, " cap %u", wish->cap_power_mw / 1000);
	if (wish->mig[0])
		takt_str_addf(out, " mig %s", wish->mig);
	takt_str_add(out, "\n");
}

const char *takt_declared_mig(const char *text, const char *uuid, char ret[TAKT_MIG_TEXT])
{
	const char *line = strstr(text, uuid);
	const char *at = line && uuid[0] ? strstr(line, " mig ") : NULL;

	ret[0] = '\0';
	if (at && at < line + strcspn(line, "\n"))
		snprintf(ret, TAKT_MIG_TEXT, "%.*s", (int)strcspn(at + 5, "\n"), at + 5);
	return ret;
}

void takt_clock_gpu_facts(const struct takt_gpu_facts *facts, struct takt_clock_gpu *ret)
{
	takt_strcpy(ret->uuid, sizeof(ret->uuid), facts->uuid);
	takt_strcpy(ret->name, sizeof(ret->name), facts->name);
	if (facts->has & TAKT_FACT_POWER_LIMITS) {
		ret->power_min_mw = facts->power_min_mw;
		ret->power_max_mw = facts->power_max_mw;
	}
	if ((facts->has & TAKT_FACT_SM_CLOCKS) && facts->sm_clock_count) {
		ret->list_min_mhz = facts->sm_clocks_mhz[0];
		ret->list_max_mhz = facts->sm_clocks_mhz[facts->sm_clock_count - 1];
	}
}

void takt_clock_gpu_reading(const struct takt_gpu_reading *reading, struct takt_clock_gpu *ret)
{
	ret->has_sm = reading->has & TAKT_HAS_SM_CLOCK;
	ret->has_mem = reading->has & TAKT_HAS_MEM_CLOCK;
	ret->sm_mhz = reading->sm_mhz;
	ret->mem_mhz = reading->mem_mhz;
	ret->persistence_off = (reading->has & TAKT_HAS_PERSISTENCE) && !reading->persistence;
	if (reading->has & TAKT_HAS_POWER_LIMIT)
		ret->power_limit_mw = reading->power_limit_mw;
}
