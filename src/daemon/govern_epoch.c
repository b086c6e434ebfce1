/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of a governed job, see the header. */
#include "daemon/govern_epoch.h"

#include <math.h>
#include <string.h>

#include "base/timetypes.h"
#include "clock/fit.h"
#include "device/at_work.h"

static const uint64_t settle_ns = 500 * TAKT_NS_PER_MS;

enum {
	FEWEST_AT_WORK = 2, /* samples that a clock is judged by, and half of all */
};

static const double LEAST_ACTIVE = 0.01; /* of the time, all parts together */

void takt_epoch_begin(struct takt_epoch *epoch, uint32_t gpu_count, uint64_t now_ns)
{
	epoch->begun_ns = now_ns;
	epoch->gpu_count = gpu_count;
	for (uint32_t i = 0; i < TAKT_DEVICE_MAX_GPUS; i++) {
		struct takt_epoch_gpu *gpu = &epoch->gpu[i];

		takt_counters_begin(&gpu->counters);
		*gpu = (struct takt_epoch_gpu){.seq = gpu->seq, .counters = gpu->counters};
	}
	memset(epoch->rank, 0, sizeof(epoch->rank));
}

static void sample_at_work(struct takt_epoch_gpu *gpu, uint64_t begun_ns,
			   const struct takt_gpu_facts *facts,
			   const struct takt_gpu_reading *reading)
{
	if (reading->at.ns < begun_ns + settle_ns)
		return;
	gpu->late++;
	if (takt_reading_is_busy(reading) && reading->sm_mhz > gpu->busy_mhz)
		gpu->busy_mhz = reading->sm_mhz;
	if (!takt_reading_at_work(facts, reading))
		return;
	gpu->at_work++;
	gpu->at_work_mhz += reading->sm_mhz;
}

/* Between two readings of the counter within the epoch: it may be read less often than the rest. */
static void sample_energy(struct takt_epoch_gpu *gpu, uint64_t begun_ns,
			  const struct takt_gpu_reading *reading)
{
	if (!(reading->has & TAKT_HAS_ENERGY) || reading->energy_at.ns < begun_ns)
		return;
	if (gpu->first_at_ns == 0) {
		gpu->first_at_ns = reading->energy_at.ns;
		gpu->first_mj = reading->energy_mj;
	}
	gpu->last_at_ns = reading->energy_at.ns;
	gpu->last_mj = reading->energy_mj;
}

void takt_epoch_sample(struct takt_epoch *epoch, uint32_t which, const struct takt_gpu_facts *facts,
		       const struct takt_gpu_reading *reading)
{
	struct takt_epoch_gpu *gpu = &epoch->gpu[which];

	if (reading->seq == gpu->seq || reading->stale || reading->lost)
		return;
	takt_counters_add(&gpu->counters, reading, epoch->begun_ns);
	if (reading->at.ns < epoch->begun_ns)
		return;
	gpu->seq = reading->seq;
	if (gpu->samples == 0) {
		gpu->has = reading->has;
		gpu->temp_c = reading->temp_c;
	}
	gpu->samples++;
	gpu->has &= reading->has;
	sample_energy(gpu, epoch->begun_ns, reading);
	gpu->sm_mhz += reading->sm_mhz;
	gpu->mem_mhz += reading->mem_mhz;
	gpu->power_mw += reading->power_mw;
	gpu->gpu_util_pct += reading->gpu_util_pct;
	gpu->mem_util_pct += reading->mem_util_pct;
	gpu->busy_mhz_pct += (uint64_t)reading->gpu_util_pct * reading->sm_mhz;
	gpu->throttle |= reading->throttle;
	gpu->temp_c = reading->temp_c > gpu->temp_c ? reading->temp_c : gpu->temp_c;
	sample_at_work(gpu, epoch->begun_ns, facts, reading);
}

/* Of one GPU; *ret_mhz: its mean clock at work. */
static enum takt_clock_fit fit_of(const struct takt_epoch_gpu *gpu, uint32_t max_mhz,
				  uint32_t reach_mhz, uint32_t *ret_mhz)
{
	if (gpu->at_work < FEWEST_AT_WORK || 2 * gpu->at_work < gpu->late)
		return TAKT_CLOCK_FITS;
	*ret_mhz = (uint32_t)(gpu->at_work_mhz / gpu->at_work);
	return takt_clock_fit(max_mhz, *ret_mhz, reach_mhz);
}

bool takt_epoch_keeps_to(const struct takt_epoch *epoch, uint32_t max_mhz,
			 uint32_t reach_mhz[TAKT_DEVICE_MAX_GPUS], uint32_t *ret_which,
			 uint32_t *ret_mhz)
{
	for (uint32_t i = 0; i < epoch->gpu_count; i++) {
		if (fit_of(&epoch->gpu[i], max_mhz, reach_mhz[i], ret_mhz) != TAKT_CLOCK_FITS) {
			*ret_which = i;
			return false;
		}
		if (epoch->gpu[i].busy_mhz > reach_mhz[i])
			reach_mhz[i] = epoch->gpu[i].busy_mhz;
	}
	return true;
}

static uint64_t count_of(const struct takt_progress_file *said, uint32_t unit)
{
	return unit == TAKT_PROGRESS_STEPS    ? said->steps
	       : unit == TAKT_PROGRESS_TOKENS ? said->tokens
					      : said->queries;
}

uint32_t takt_epoch_unit(const struct takt_progress_file *said)
{
	static const uint32_t units[] = {TAKT_PROGRESS_STEPS, TAKT_PROGRESS_TOKENS,
					 TAKT_PROGRESS_QUERIES};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(units); i++)
		if (said->has & units[i])
			return units[i];
	return 0;
}

static void rank_progress(struct takt_epoch_rank *rank, const struct takt_progress_file *said,
			  uint64_t begun_ns)
{
	rank->has = said->has;
	if (!said->has || said->at_ns < begun_ns)
		return; /* of before the setting was there */
	if (!rank->told || takt_progress_went_back(&rank->last, said))
		rank->first = *said;
	rank->last = *said;
	rank->told = true;
}

void takt_epoch_progress(struct takt_epoch *epoch, const struct takt_progress_said *said)
{
	for (uint32_t i = 0; i < said->count; i++)
		rank_progress(&epoch->rank[i], &said->rank[i], epoch->begun_ns);
}

bool takt_epoch_is_told(const struct takt_epoch *epoch)
{
	uint32_t count = 0, told = 0;

	for (uint32_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++) {
		count += epoch->rank[i].has != 0;
		told += epoch->rank[i].has && epoch->rank[i].told;
	}
	return count > 0 && told == count;
}

static bool has_rate(const struct takt_epoch_rank *rank, uint32_t unit, uint64_t passed_ns)
{
	uint64_t span_ns = rank->last.at_ns - rank->first.at_ns;

	return rank->told && count_of(&rank->last, unit) > count_of(&rank->first, unit) &&
	       2 * span_ns >= passed_ns;
}

bool takt_epoch_has_rate(const struct takt_epoch *epoch, uint32_t unit, uint64_t now_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++) {
		if (!(epoch->rank[i].has & unit))
			continue;
		if (!has_rate(&epoch->rank[i], unit, now_ns - epoch->begun_ns))
			return false;
		any = true;
	}
	return any;
}

/* A second. */
static double rate_of(const struct takt_epoch_rank *rank, uint32_t unit)
{
	double seconds = (double)(rank->last.at_ns - rank->first.at_ns) / TAKT_NS_PER_S;

	return (double)(count_of(&rank->last, unit) - count_of(&rank->first, unit)) / seconds;
}

static double slowest_rate(const struct takt_epoch *epoch, uint32_t unit)
{
	double slowest = INFINITY;

	for (uint32_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++)
		if (epoch->rank[i].has & unit)
			slowest = fmin(slowest, rate_of(&epoch->rank[i], unit));
	return slowest;
}

static void observe_service(const struct takt_epoch_rank *rank,
			    struct takt_governor_observation *ret)
{
	if (!rank->has || !rank->told)
		return;
	if ((rank->last.has & TAKT_PROGRESS_LATENCY) && rank->last.latency_us <= UINT32_MAX) {
		uint32_t latency_us = (uint32_t)rank->last.latency_us;

		ret->has |= TAKT_OBSERVED_LATENCY;
		ret->latency_us = latency_us > ret->latency_us ? latency_us : ret->latency_us;
	}
	if ((rank->last.has & TAKT_PROGRESS_QUERIES) && rank->last.at_ns > rank->first.at_ns) {
		ret->has |= TAKT_OBSERVED_LOAD;
		ret->load += rate_of(rank, TAKT_PROGRESS_QUERIES);
	}
}

static void observe_job(const struct takt_epoch *epoch, uint32_t unit, uint64_t now_ns,
			struct takt_governor_observation *ret)
{
	if (takt_epoch_has_rate(epoch, unit, now_ns)) {
		ret->has |= TAKT_OBSERVED_WORK;
		ret->signal = TAKT_SIGNAL_JOB;
		ret->work = slowest_rate(epoch, unit) * ((double)ret->epoch_ns / TAKT_NS_PER_S);
	}
	for (uint32_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++)
		observe_service(&epoch->rank[i], ret);
}

/* What all GPUs told all the time. */
static uint32_t told_by_all(const struct takt_epoch *epoch)
{
	uint32_t has = epoch->gpu_count ? UINT32_MAX : 0;

	for (uint32_t i = 0; i < epoch->gpu_count; i++)
		has &= epoch->gpu[i].samples ? epoch->gpu[i].has : 0;
	return has;
}

/* Means over GPUs of what each had on average. */
struct means {
	double sm_mhz, mem_mhz, power_mw, gpu_util_pct, mem_util_pct, busy_mhz_pct;
	double counted_mw; /* by the energy counter */
	bool counted;	   /* it is known of all */
};

static void add_mean(double *mean, uint64_t sum, const struct takt_epoch_gpu *gpu, uint32_t gpus)
{
	*mean += (double)sum / gpu->samples / gpus;
}

static void mean(const struct takt_epoch *epoch, struct means *ret)
{
	uint32_t gpus = epoch->gpu_count;

	*ret = (struct means){.counted = true};
	for (uint32_t i = 0; i < gpus; i++) {
		const struct takt_epoch_gpu *gpu = &epoch->gpu[i];
		uint64_t span_ns = gpu->last_at_ns - gpu->first_at_ns;

		add_mean(&ret->sm_mhz, gpu->sm_mhz, gpu, gpus);
		add_mean(&ret->mem_mhz, gpu->mem_mhz, gpu, gpus);
		add_mean(&ret->power_mw, gpu->power_mw, gpu, gpus);
		add_mean(&ret->gpu_util_pct, gpu->gpu_util_pct, gpu, gpus);
		add_mean(&ret->mem_util_pct, gpu->mem_util_pct, gpu, gpus);
		add_mean(&ret->busy_mhz_pct, gpu->busy_mhz_pct, gpu, gpus);
		ret->counted &= span_ns > 0 && gpu->last_mj > gpu->first_mj;
		if (ret->counted)
			ret->counted_mw += (double)(gpu->last_mj - gpu->first_mj) /
					   ((double)span_ns / TAKT_NS_PER_S) / gpus;
	}
}

/* The counter where there is one; its mean power holds for the few moments at either end that no
 * sample covers. */
static void observe_power(const struct takt_epoch *epoch, uint32_t has, const struct means *means,
			  struct takt_governor_observation *ret)
{
	if ((has & TAKT_HAS_ENERGY) && means->counted) {
		ret->has |= TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER;
		ret->power_mw = (uint32_t)(means->counted_mw + 0.5);
		ret->energy_mj =
			(uint64_t)(means->counted_mw * (double)ret->epoch_ns / TAKT_NS_PER_S + 0.5);
	} else if (has & TAKT_HAS_POWER) {
		ret->has |= TAKT_OBSERVED_POWER;
		ret->power_mw = (uint32_t)(means->power_mw + 0.5);
	}
}

static void observe_boards(const struct takt_epoch *epoch, uint32_t has, const struct means *means,
			   struct takt_governor_observation *ret)
{
	static const struct {
		uint32_t reading, observed;
	} bits[] = {
		{TAKT_HAS_SM_CLOCK, TAKT_OBSERVED_SM_CLOCK},
		{TAKT_HAS_MEM_CLOCK, TAKT_OBSERVED_MEM_CLOCK},
		{TAKT_HAS_GPU_UTIL, TAKT_OBSERVED_GPU_UTIL},
		{TAKT_HAS_MEM_UTIL, TAKT_OBSERVED_MEM_UTIL},
		{TAKT_HAS_TEMP, TAKT_OBSERVED_TEMP},
		{TAKT_HAS_THROTTLE, TAKT_OBSERVED_THROTTLE},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(bits); i++)
		ret->has |= has & bits[i].reading ? bits[i].observed : 0;
	ret->sm_mhz = has & TAKT_HAS_SM_CLOCK ? (uint32_t)(means->sm_mhz + 0.5) : 0;
	ret->mem_mhz = has & TAKT_HAS_MEM_CLOCK ? (uint32_t)(means->mem_mhz + 0.5) : 0;
	ret->gpu_util_permille =
		has & TAKT_HAS_GPU_UTIL ? (uint32_t)(10 * means->gpu_util_pct + 0.5) : 0;
	ret->mem_util_permille =
		has & TAKT_HAS_MEM_UTIL ? (uint32_t)(10 * means->mem_util_pct + 0.5) : 0;
	for (uint32_t i = 0; i < epoch->gpu_count; i++) {
		const struct takt_epoch_gpu *gpu = &epoch->gpu[i];

		if (has & TAKT_HAS_THROTTLE)
			ret->throttle |= gpu->throttle;
		if ((has & TAKT_HAS_TEMP) && (i == 0 || gpu->temp_c > ret->temp_c))
			ret->temp_c = gpu->temp_c;
	}
}

bool takt_epoch_has_counters(const struct takt_epoch *epoch)
{
	for (uint32_t i = 0; i < epoch->gpu_count; i++)
		if (!takt_counters_are_there(&epoch->gpu[i].counters))
			return false;
	return epoch->gpu_count > 0;
}

uint32_t takt_epoch_parts(const struct takt_epoch *epoch, uint64_t now_ns)
{
	uint32_t parts = epoch->gpu_count ? UINT32_MAX : 0;

	for (uint32_t i = 0; i < epoch->gpu_count; i++)
		parts &= takt_counters_parts(&epoch->gpu[i].counters, now_ns - epoch->begun_ns);
	return parts;
}

bool takt_epoch_parts_work(const struct takt_epoch *epoch, uint32_t parts)
{
	double sum = 0;

	for (uint32_t i = 0; i < epoch->gpu_count; i++)
		sum += takt_counters_sum(&epoch->gpu[i].counters, parts) / epoch->gpu_count;
	return sum >= LEAST_ACTIVE;
}

/* Mean over GPUs; false: one of them does not tell. */
static bool mean_active(const struct takt_epoch *epoch, enum takt_active part, uint32_t *ret)
{
	double ppm = 0;

	for (uint32_t i = 0; i < epoch->gpu_count; i++) {
		const struct takt_counters *counters = &epoch->gpu[i].counters;

		if (!(counters->parts & 1u << part))
			return false;
		ppm += takt_counters_ppm(counters, part) / epoch->gpu_count;
	}
	*ret = (uint32_t)(ppm / 1000 + 0.5);
	return epoch->gpu_count > 0;
}

static void observe_activity(const struct takt_epoch *epoch, struct takt_governor_observation *ret)
{
	if (mean_active(epoch, TAKT_ACTIVE_DRAM, &ret->dram_active_permille))
		ret->has |= TAKT_OBSERVED_DRAM;
	if (mean_active(epoch, TAKT_ACTIVE_SM, &ret->sm_active_permille))
		ret->has |= TAKT_OBSERVED_SM;
	if (mean_active(epoch, TAKT_ACTIVE_TENSOR, &ret->tensor_active_permille))
		ret->has |= TAKT_OBSERVED_TENSOR;
}

/* What the driver calls idle does no work, whatever else stirs there. */
static bool is_busy(uint32_t has, const struct means *means, const struct takt_epoch_basis *basis)
{
	return (has & TAKT_HAS_SM_CLOCK) && basis->highest_mhz > 0 &&
	       (!(has & TAKT_HAS_GPU_UTIL) || means->gpu_util_pct > 0);
}

static void observe_counters(const struct takt_epoch *epoch, const struct takt_epoch_basis *basis,
			     uint64_t now_ns, struct takt_governor_observation *ret)
{
	double rate = 0;

	if (basis->parts == 0 || (takt_epoch_parts(epoch, now_ns) & basis->parts) != basis->parts)
		return;
	for (uint32_t i = 0; i < epoch->gpu_count; i++) {
		const struct takt_epoch_gpu *gpu = &epoch->gpu[i];
		double mhz = (double)gpu->sm_mhz / gpu->samples;

		rate += takt_counters_work(&gpu->counters, basis->parts, mhz / basis->highest_mhz) /
			epoch->gpu_count;
	}
	if (!(rate > 0))
		return;
	ret->has |= TAKT_OBSERVED_WORK;
	ret->signal = TAKT_SIGNAL_COUNTERS;
	ret->work = rate * (double)ret->epoch_ns / TAKT_NS_PER_S;
}

/* Seconds at the highest clock that would have been as busy. */
static void observe_utilisation(const struct means *means, uint32_t highest_mhz,
				struct takt_governor_observation *ret)
{
	if (!(means->busy_mhz_pct > 0))
		return;
	ret->has |= TAKT_OBSERVED_WORK;
	ret->signal = TAKT_SIGNAL_UTILISATION;
	ret->work = means->busy_mhz_pct / 100 / highest_mhz * (double)ret->epoch_ns / TAKT_NS_PER_S;
}

static void observe_work(const struct takt_epoch *epoch, const struct takt_epoch_basis *basis,
			 uint32_t has, const struct means *means,
			 struct takt_governor_observation *ret)
{
	if (basis->signal == TAKT_SIGNAL_JOB)
		observe_job(epoch, basis->unit, ret->now_ns, ret);
	else if (!is_busy(has, means, basis))
		return;
	else if (basis->signal == TAKT_SIGNAL_COUNTERS)
		observe_counters(epoch, basis, ret->now_ns, ret);
	else if (basis->signal == TAKT_SIGNAL_UTILISATION && (has & TAKT_HAS_GPU_UTIL))
		observe_utilisation(means, basis->highest_mhz, ret);
}

void takt_epoch_observe(const struct takt_epoch *epoch, const struct takt_epoch_basis *basis,
			uint64_t now_ns, struct takt_governor_observation *ret)
{
	uint32_t has = told_by_all(epoch);
	struct means means = {.counted = false};

	*ret = (struct takt_governor_observation){.now_ns = now_ns,
						  .epoch_ns = now_ns - epoch->begun_ns};
	if (has) {
		mean(epoch, &means);
		observe_power(epoch, has, &means, ret);
		observe_boards(epoch, has, &means, ret);
	}
	if (!basis->shared)
		observe_activity(epoch, ret);
	observe_work(epoch, basis, has, &means, ret);
	ret->idle = (has & TAKT_HAS_GPU_UTIL) && !(means.gpu_util_pct > 0) &&
		    !(ret->has & TAKT_OBSERVED_WORK);
}
