/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What parameters of takt's own governors may be: whoever hands in a job may set them, so that no
 * value may lead a governor's sums astray. Others check theirs in their init.
 */
#include <string.h>

#include "clock/governor.h"

enum {
	EPOCHS = 1000000, /* more than any job has */
	PERMILLE = 1000,
	MHZ = 100000,
};

static const struct {
	const struct takt_governor *governor;
	const char *name;
	int64_t min, max;
} ranges[] = {
	{&takt_governor_assured, "refs", 1, EPOCHS},
	{&takt_governor_assured, "probe_permille", 0, PERMILLE},
	{&takt_governor_fixed, "sm_mhz", 1, MHZ},
	{&takt_governor_fixed, "sm_permille", 1, PERMILLE},
	{&takt_governor_fixed, "power_mw", 1, 100000000},
	{&takt_governor_utilisation, "base_mhz", 1, MHZ},
	{&takt_governor_ladder, "dwell", 1, EPOCHS},
	{&takt_governor_ladder, "reanchor", 1, EPOCHS},
	{&takt_governor_memory_bound, "slack_permille", 0, PERMILLE},
	{&takt_governor_memory_bound, "least", 1, EPOCHS},
	{&takt_governor_memory_bound, "most", 1, EPOCHS},
	{&takt_governor_memory_bound, "again", 1, EPOCHS},
	{&takt_governor_idle_drop, "idle_ms", 0, 86400000},
	{&takt_governor_idle_drop, "sm_permille", 0, PERMILLE},
	{&takt_governor_geepafs, "hold", 1, EPOCHS},
	{&takt_governor_geepafs, "low_permille", 1, PERMILLE},
	{&takt_governor_zeus_cost, "eta_permille", 0, PERMILLE},
	{&takt_governor_zeus_cost, "warm_up", 0, EPOCHS},
	{&takt_governor_zeus_cost, "window", 1, EPOCHS},
	{&takt_governor_qlearning, "reanchor", 1, EPOCHS},
	{&takt_governor_qlearning, "sigmas_permille", 0, 100 * PERMILLE},
	{&takt_governor_slo, "calm", 1, EPOCHS},
	{&takt_governor_slo, "avoid", 1, 3600},
	{&takt_governor_forecast, "busy_permille", 1, PERMILLE},
	{&takt_governor_forecast, "slow", 1, EPOCHS},
};

int takt_governor_check_range(const struct takt_governor *governor,
			      const struct takt_governor_param *param, struct takt_err *err)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (ranges[i].governor != governor || strcmp(ranges[i].name, param->name) != 0)
			continue;
		if (param->value < ranges[i].min || param->value > ranges[i].max)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "governor '%s': %s must be %lld to %lld, not %lld",
					    governor->name, param->name, (long long)ranges[i].min,
					    (long long)ranges[i].max, (long long)param->value);
	}
	return 0;
}
