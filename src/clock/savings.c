/* SPDX-License-Identifier: Apache-2.0 */
/* What a governor saved, see the header. */
#include "clock/savings.h"

#include <math.h>

enum {
	MIN_EPOCHS = 2 /* at the highest setting: fewer have no error */
};

/* Thermal and hardware slowdowns: such an epoch is no measure of the highest setting. */
static const uint64_t HARD_THROTTLES = 0x8 | 0x20 | 0x40 | 0x80;

uint32_t takt_signal_error_permille(enum takt_governor_signal signal)
{
	return signal == TAKT_SIGNAL_COUNTERS	   ? TAKT_COUNTERS_ERROR_PERMILLE
	       : signal == TAKT_SIGNAL_UTILISATION ? TAKT_UTILISATION_ERROR_PERMILLE
						   : 0;
}

static bool is_highest(const struct takt_governor_board *board,
		       const struct takt_governor_observation *seen)
{
	const struct takt_governor_cap *cap = &seen->cap;

	if ((seen->has & TAKT_OBSERVED_THROTTLE) && (seen->throttle & HARD_THROTTLES))
		return false;
	if ((cap->sets & TAKT_ACTUATE_CLOCKS) && board->sm_count &&
	    cap->max_mhz < board->sm_mhz[board->sm_count - 1])
		return false;
	return !(cap->sets & TAKT_ACTUATE_POWER) || cap->power_mw >= board->power_default_mw;
}

static void add(struct takt_savings_part *part, const struct takt_governor_observation *seen)
{
	double seconds = (double)seen->epoch_ns / 1e9, joules = (double)seen->energy_mj / 1e3;
	double rate = seen->work / seconds, cost = joules / seen->work;

	part->epochs++;
	part->seconds += seconds;
	part->work += seen->work;
	part->joules += joules;
	part->rate += rate;
	part->rate_squares += rate * rate;
	part->cost += cost;
	part->cost_squares += cost * cost;
}

void takt_savings_add(struct takt_savings *savings, const struct takt_governor_setup *setup,
		      const struct takt_governor_observation *seen)
{
	const uint32_t needed = TAKT_OBSERVED_WORK | TAKT_OBSERVED_ENERGY;

	if (seen->foreign || (seen->has & needed) != needed || !(seen->work > 0) ||
	    seen->epoch_ns == 0 || seen->energy_mj == 0)
		return;
	if (savings->signal == TAKT_SIGNAL_NONE || seen->signal < savings->signal)
		savings->signal = seen->signal;
	add(is_highest(&setup->board, seen) ? &savings->highest : &savings->below, seen);
}

/* Relative standard deviation of one epoch. */
static double spread(uint32_t n, double sum, double squares)
{
	double mean = sum / n, variance = (squares - sum * mean) / (n - 1);

	return variance > 0 ? sqrt(variance) / mean : 0;
}

/* Errors that have nothing to do with each other. */
static double both(double a, double b)
{
	return sqrt(a * a + b * b);
}

static uint32_t permille(double value)
{
	return value < 4e6 ? (uint32_t)(1000 * value + 0.5) : UINT32_MAX;
}

static int32_t rounded(double value)
{
	value = value < 1e9 ? value : 1e9;
	return (int32_t)(value + (value < 0 ? -0.5 : 0.5));
}

bool takt_savings_result(const struct takt_savings *savings, struct takt_saved *ret)
{
	const struct takt_savings_part *high = &savings->highest, *low = &savings->below;
	double mean_of, work, seconds, slowdown, of_signal;

	if (high->epochs < MIN_EPOCHS || low->epochs == 0)
		return false;
	work = high->work + low->work;
	seconds = high->seconds + low->seconds;
	of_signal = takt_signal_error_permille(savings->signal) / 1000.0;
	mean_of = sqrt(1.0 / high->epochs + 1.0 / low->epochs);
	slowdown = seconds * (high->work / high->seconds) / work - 1;
	*ret = (struct takt_saved){
		.signal = savings->signal,
		.epochs = high->epochs + low->epochs,
		.highest_epochs = high->epochs,
		.energy_mj = (uint64_t)(1000 * (high->joules + low->joules) + 0.5),
		.highest_mj = (uint64_t)(1000 * work * (high->joules / high->work) + 0.5),
		.highest_error_permille = permille(both(
			of_signal, mean_of * spread(high->epochs, high->cost, high->cost_squares))),
		.slowdown_permille = rounded(1000 * slowdown),
		.slowdown_error_permille = permille(both(
			of_signal, mean_of * spread(high->epochs, high->rate, high->rate_squares))),
	};
	return true;
}
