/* SPDX-License-Identifier: Apache-2.0 */
/*
 * geepafs: the algorithm of GEEPAFS (Zhang, Wilson, Wang, Yin, EuroSys 2024), for comparison.
 *
 * Every so often it probes: four clocks, up and down again, one epoch each. Performance over clock
 * is modelled by least squares, as a line and as lines with a fold at each of the probed clocks.
 * The one of least error counts, and none where that is above 100 points squared. Then
 *
 *	f_eff = the probed clock of most modelled performance a watt
 *	f_perf = the lowest clock of at least p times the modelled performance at the highest one
 *	f_cap = max over probes of f / ((1 - p) (f/fmax + 100/u - 1) + f/fmax)
 *	wish = max(min(f_perf, f_cap), f_eff), up to the next listed clock
 *
 * with u the GPU's utilisation in percent at clock f, and p = 1 / (1 + promised slowdown), 0.95
 * without a promise. The wish is held until the next probes.
 *
 * Performance is what the board offers of: the driver's utilisation of memory, the published
 * signal; else how active memory is by its counters; else what the job reports, as percent of the
 * most that it reported while probing. Without any of them, or where memory's is 0, f_cap alone
 * decides; without the GPU's utilisation there is no f_cap. Each board is governed by itself, where
 * the original decides for all boards of a machine at the same tick. It sets clocks, never limits.
 *
 * Parameters: `hold`, epochs between probes (75: the published 15 s of 200 ms each);
 *`low_permille`, the lowest probe as a share of the highest clock (622, as on the published V100:
 *952, 1147, 1335, 1530 MHz; on the published A100 it is 787).
 */
#include <string.h>

#include "clock/levels.h"
#include "clock/tally.h"

enum {
	PROBES = 4,
	ROUNDS = 2,
};

#define MAX_ERROR 100.0 /* mean squared, in points of percent */

enum signal {
	SIGNAL_NONE,
	SIGNAL_MEM_UTIL,
	SIGNAL_DRAM,
	SIGNAL_WORK,
};

struct probe {
	uint32_t mhz, count, util_count, power_count;
	double perf, util, power_w; /* sums over count, util_count, power_count */
};

struct geepafs {
	struct probe probes[PROBES]; /* ascending */
	uint32_t next;		     /* of the zig-zag; PROBES * ROUNDS: done */
	uint32_t held;		     /* epochs since then */
	uint32_t mhz;		     /* what is held */
	uint32_t signal;	     /* enum signal, the same for all probes */
};

/* low + slope[0] min(f - knee, 0) + slope[1] max(f - knee, 0); a line has equal slopes. */
struct fold {
	double knee, at_knee, slope[2], error;
};

static void begin_probes(struct geepafs *own)
{
	for (size_t i = 0; i < PROBES; i++)
		own->probes[i] = (struct probe){.mhz = own->probes[i].mhz};
	own->next = own->held = 0;
	own->signal = SIGNAL_NONE;
}

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct geepafs *own = state;
	double top = takt_governor_max_mhz(setup);
	double low = (double)takt_governor_param(setup, "low_permille", 622) / 1000;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	for (size_t i = 0; i < PROBES && top > 0; i++)
		own->probes[i].mhz = takt_levels_ceil_mhz(
			&setup->board, top * (low + (1 - low) * (double)i / (PROBES - 1)));
	own->mhz = (uint32_t)top;
	return 0;
}

/* lo..hi, hi..lo. */
static size_t zigzag(uint32_t turn)
{
	uint32_t at = turn % PROBES;

	return turn / PROBES % 2 ? PROBES - 1 - at : at;
}

static enum signal best_signal(const struct takt_governor_observation *seen)
{
	if (seen->has & TAKT_OBSERVED_MEM_UTIL)
		return SIGNAL_MEM_UTIL;
	if (seen->has & TAKT_OBSERVED_DRAM)
		return SIGNAL_DRAM;
	return takt_tally_usable(seen) ? SIGNAL_WORK : SIGNAL_NONE;
}

static double performance(const struct takt_governor_observation *seen, enum signal signal)
{
	if (signal == SIGNAL_MEM_UTIL)
		return seen->mem_util_permille / 10.0;
	if (signal == SIGNAL_DRAM)
		return seen->dram_active_permille / 10.0;
	return seen->work / ((double)seen->epoch_ns / 1e9);
}

static bool note(struct probe *probe, const struct takt_governor_observation *seen,
		 enum signal signal)
{
	bool energy = seen->has & TAKT_OBSERVED_ENERGY && seen->epoch_ns;

	if (signal != SIGNAL_NONE && best_signal(seen) != signal)
		return false;
	if (signal != SIGNAL_NONE) {
		probe->perf += performance(seen, signal);
		probe->count++;
	}
	if (seen->has & TAKT_OBSERVED_GPU_UTIL) {
		probe->util += seen->gpu_util_permille / 10.0;
		probe->util_count++;
	}
	if (energy || (seen->has & TAKT_OBSERVED_POWER)) {
		probe->power_w += energy ? (double)seen->energy_mj * 1e6 / (double)seen->epoch_ns
					 : seen->power_mw / 1000.0;
		probe->power_count++;
	}
	return true;
}

static double perf_of(const struct probe *probe)
{
	return probe->count ? probe->perf / probe->count : 0;
}

/* What a job reports has a unit of its own: percent of the most. */
static void in_percent(struct geepafs *own)
{
	double most = 0;

	for (size_t i = 0; i < PROBES; i++)
		most = perf_of(&own->probes[i]) > most ? perf_of(&own->probes[i]) : most;
	for (size_t i = 0; i < PROBES && most > 0; i++)
		own->probes[i].perf *= 100 / most;
}

static double at(const struct fold *fold, double mhz)
{
	return fold->at_knee + (mhz - fold->knee) * fold->slope[mhz > fold->knee];
}

static double error_of(const struct fold *fold, const struct probe *probes)
{
	double sum = 0;

	for (size_t i = 0; i < PROBES; i++) {
		double off = at(fold, probes[i].mhz) - perf_of(&probes[i]);

		sum += off * off / PROBES;
	}
	return sum;
}

/* Solves the symmetric m x = v by elimination; false when it has no single solution. */
static bool solve(size_t n, double m[3][3], double v[3])
{
	for (size_t i = 0; i < n; i++) {
		if (m[i][i] < 1e-9)
			return false;
		for (size_t j = i + 1; j < n; j++) {
			double factor = m[j][i] / m[i][i];

			for (size_t k = i; k < n; k++)
				m[j][k] -= factor * m[i][k];
			v[j] -= factor * v[i];
		}
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t k = i + 1; k < n; k++)
			v[i] -= m[i][k] * v[k];
		v[i] /= m[i][i];
	}
	return true;
}

/* Least squares with the knee at `knee`; two unknowns for a line, three for a fold. */
static bool fit(const struct probe *probes, double knee, size_t unknowns, struct fold *ret)
{
	double m[3][3] = {{0}}, v[3] = {0}, scale = probes[PROBES - 1].mhz;

	for (size_t i = 0; i < PROBES; i++) {
		double off = (probes[i].mhz - knee) / scale;
		double x[3] = {1, unknowns == 2 || off < 0 ? off : 0, off > 0 ? off : 0};

		for (size_t j = 0; j < unknowns; j++) {
			for (size_t k = 0; k < unknowns; k++)
				m[j][k] += x[j] * x[k];
			v[j] += x[j] * perf_of(&probes[i]);
		}
	}
	if (!solve(unknowns, m, v))
		return false;
	*ret = (struct fold){.knee = knee, .at_knee = v[0]};
	ret->slope[0] = v[1] / scale;
	ret->slope[1] = v[unknowns - 1] / scale;
	ret->error = error_of(ret, probes);
	return true;
}

/* A fold at either end is the line. */
static bool best_fit(const struct probe *probes, struct fold *ret)
{
	bool found = fit(probes, probes[0].mhz, 2, ret);

	for (size_t i = 1; i + 1 < PROBES; i++) {
		struct fold fold = {0};

		if (fit(probes, probes[i].mhz, 3, &fold) && (!found || fold.error < ret->error)) {
			*ret = fold;
			found = true;
		}
	}
	return found && ret->error <= MAX_ERROR;
}

static double efficient_mhz(const struct probe *probes, const struct fold *fold)
{
	double best = 0, mhz = 0;

	for (size_t i = 0; i < PROBES; i++) {
		double watts =
			probes[i].power_count ? probes[i].power_w / probes[i].power_count : 0;
		double efficiency = watts > 0 ? at(fold, probes[i].mhz) / watts : 0;

		if (efficiency > best) {
			best = efficiency;
			mhz = probes[i].mhz;
		}
	}
	return mhz;
}

/* Lowest listed clock from which on the model says enough. */
static double enough_mhz(const struct takt_governor_board *board, const struct fold *fold, double p)
{
	size_t i = board->sm_count - 1;
	double need = p * at(fold, board->sm_mhz[i]);

	while (i > 0 && at(fold, board->sm_mhz[i - 1]) >= need)
		i--;
	return board->sm_mhz[i];
}

static double cap_mhz(const struct probe *probes, double p, double top)
{
	double most = 0;

	for (size_t i = 0; i < PROBES; i++) {
		double f = probes[i].mhz, u, cap;

		if (probes[i].util_count == 0)
			return top;
		u = probes[i].util / probes[i].util_count;
		cap = u > 0 ? f / ((1 - p) * (f / top + 100 / u - 1) + f / top) : 0;
		most = cap > most ? cap : most;
	}
	return most;
}

static double share_kept(const struct takt_governor_setup *setup)
{
	return setup->job.has_promise ? 1000.0 / (1000 + setup->job.max_slowdown_permille) : 0.95;
}

static double least_perf(const struct probe *probes)
{
	double least = perf_of(&probes[0]);

	for (size_t i = 1; i < PROBES; i++)
		least = perf_of(&probes[i]) < least ? perf_of(&probes[i]) : least;
	return least;
}

static void conclude(struct geepafs *own, const struct takt_governor_setup *setup)
{
	double p = share_kept(setup), top = takt_governor_max_mhz(setup);
	double mhz = cap_mhz(own->probes, p, top);
	struct fold fold = {0};

	if (own->signal == SIGNAL_WORK)
		in_percent(own);
	if (own->signal != SIGNAL_NONE && least_perf(own->probes) > 0) {
		double perf = top, efficient = 0;

		if (best_fit(own->probes, &fold)) {
			perf = enough_mhz(&setup->board, &fold, p);
			efficient = efficient_mhz(own->probes, &fold);
		}
		mhz = perf < mhz ? perf : mhz;
		mhz = efficient > mhz ? efficient : mhz;
	}
	own->mhz = takt_levels_ceil_mhz(&setup->board, mhz);
}

static bool in_force(const struct geepafs *own, const struct takt_governor_setup *setup,
		     const struct takt_governor_observation *seen)
{
	uint32_t held = seen->cap.sets & TAKT_ACTUATE_CLOCKS ? seen->cap.max_mhz
							     : takt_governor_max_mhz(setup);

	return held == own->probes[zigzag(own->next)].mhz;
}

static void observe(struct geepafs *own, const struct takt_governor_setup *setup,
		    const struct takt_governor_observation *seen)
{
	if (own->next == PROBES * ROUNDS) {
		if (++own->held >= takt_governor_param(setup, "hold", 75))
			begin_probes(own);
		return;
	}
	if (!in_force(own, setup, seen))
		return;
	if (own->next == 0)
		own->signal = best_signal(seen);
	if (note(&own->probes[zigzag(own->next)], seen, own->signal) &&
	    ++own->next == PROBES * ROUNDS)
		conclude(own, setup);
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct geepafs *own = state;
	bool probing;

	if (takt_levels_stand_back(seen, ret))
		return;
	if (!takt_governor_max_mhz(setup)) {
		ret->reason = TAKT_REASON_OBSERVE;
		return;
	}
	if (seen->has)
		observe(own, setup, seen);
	probing = own->next < PROBES * ROUNDS;
	takt_governor_ask_mhz(setup, probing ? own->probes[zigzag(own->next)].mhz : own->mhz,
			      probing ? TAKT_REASON_PROBE : TAKT_REASON_LEARNED, ret);
	ret->probe = probing;
}

const struct takt_governor takt_governor_geepafs = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "geepafs",
	.summary = "GEEPAFS: four clocks probed twice, fold-line model; for comparison",
	.params = "hold low_permille",
	.state_bytes = sizeof(struct geepafs),
	.state_version = 1,
	.init = init,
	.step = step,
};
