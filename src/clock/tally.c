/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over epochs, see the header. */
#include "clock/tally.h"

/* Larger values than any board has: what is beyond them is no measurement. */
#define MAX_WORK 1e18

bool takt_tally_usable(const struct takt_governor_observation *seen)
{
	return (seen->has & TAKT_OBSERVED_WORK) && seen->epoch_ns > 0 && seen->work > 0 &&
	       seen->work < MAX_WORK &&
	       !((seen->has & TAKT_OBSERVED_THROTTLE) && (seen->throttle & TAKT_TALLY_THROTTLED));
}

void takt_tally_add(struct takt_tally *tally, const struct takt_governor_observation *seen)
{
	double time_s = (double)seen->epoch_ns / 1e9, rate = seen->work / time_s;

	tally->epochs++;
	tally->time_s += time_s;
	tally->work += seen->work;
	tally->rate_squares += rate * rate;
	if (!(seen->has & (TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER)))
		return;
	tally->energy_time_s += time_s;
	tally->energy_j += seen->has & TAKT_OBSERVED_ENERGY ? (double)seen->energy_mj / 1e3
							    : (double)seen->power_mw / 1e3 * time_s;
}

void takt_tally_halve(struct takt_tally *tally)
{
	tally->epochs /= 2;
	tally->time_s /= 2;
	tally->work /= 2;
	tally->rate_squares /= 2;
	tally->energy_j /= 2;
	tally->energy_time_s /= 2;
}

double takt_tally_rate(const struct takt_tally *tally)
{
	return tally->epochs ? tally->work / tally->time_s : 0;
}

double takt_tally_power_w(const struct takt_tally *tally)
{
	return tally->energy_time_s > 0 ? tally->energy_j / tally->energy_time_s : 0;
}

double takt_tally_variance(const struct takt_tally *tally)
{
	double mean = takt_tally_rate(tally), n = tally->epochs, spread;

	if (tally->epochs < 2)
		return 1;
	spread = tally->rate_squares / n / (mean * mean) - 1;
	return spread > 0 ? spread / (n - 1) : 0;
}

double takt_tally_slowdown(const struct takt_tally *tally, const struct takt_tally *reference)
{
	return takt_tally_rate(reference) / takt_tally_rate(tally) - 1;
}
