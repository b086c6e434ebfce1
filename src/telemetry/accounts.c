/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums behind a job's report.
 *
 * Energy is a difference of the board's own counter, which ticks about ten times a second: at each
 * end up to one tick is missing, so a span of 20 ticks bounds the error at a tenth and shorter ones
 * are not told. Where the counter is dear to read it is read less often the longer a job runs, so
 * that what is missing at its end is a fortieth at most. The counter is the board's, not the job's:
 * with another process on the board there is no honest figure either.
 */
#include "telemetry/accounts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"

static const uint64_t min_period_ns = 100 * TAKT_NS_PER_MS;
/* Time between two samples further apart than this belongs to neither. */
static const uint64_t max_gap_ns = TAKT_NS_PER_S;
/* Read further apart, the counter does not show how often it ticks. */
static const uint64_t close_ns = 250 * TAKT_NS_PER_MS;
static const uint64_t not_throttling = TAKT_THROTTLE_IDLE | TAKT_THROTTLE_APP_CLOCKS;

uint64_t takt_energy_clock_period_ns(const struct takt_energy_clock *clock)
{
	uint32_t n = clock->changes < TAKT_PERIOD_CHANGES ? clock->changes : TAKT_PERIOD_CHANGES;
	uint64_t span_ns, period_ns;

	if (n < 2)
		return clock->earlier_ns > 0 ? clock->earlier_ns : min_period_ns;
	span_ns =
		takt_mono_elapsed_ns(clock->changed_at[(clock->changes - 1) % TAKT_PERIOD_CHANGES],
				     clock->changed_at[(clock->changes - n) % TAKT_PERIOD_CHANGES]);
	period_ns = span_ns / (n - 1);
	return period_ns > min_period_ns ? period_ns : min_period_ns;
}

/* How much may be missing at an end: until the counter ticks, or is read. */
static uint64_t coarseness_ns(const struct takt_energy_clock *clock)
{
	uint64_t period_ns = takt_energy_clock_period_ns(clock);

	return clock->apart_ns > period_ns ? clock->apart_ns : period_ns;
}

/* One reading that is late says nothing of the others. */
static void note_apart(struct takt_energy_clock *clock, uint64_t apart_ns)
{
	uint64_t most_ns = clock->apart_ns + clock->apart_ns / 4;

	if (clock->read_at.ns != 0)
		clock->apart_ns = most_ns == 0 || apart_ns < most_ns ? apart_ns : most_ns;
}

static void feed_clock(struct takt_energy_clock *clock, const struct takt_gpu_reading *reading)
{
	uint64_t apart_ns;

	if (!(reading->has & TAKT_HAS_ENERGY) || reading->energy_at.ns == clock->read_at.ns)
		return;
	apart_ns = takt_mono_elapsed_ns(reading->energy_at, clock->read_at);
	note_apart(clock, apart_ns);
	if (apart_ns > close_ns) {
		clock->earlier_ns = takt_energy_clock_period_ns(clock);
		clock->changes = 0;
	} else if (reading->energy_mj != clock->last_mj) {
		clock->changed_at[clock->changes++ % TAKT_PERIOD_CHANGES] = reading->energy_at;
	}
	clock->read_at = reading->energy_at;
	clock->last_mj = reading->energy_mj;
}

void takt_accounts_init(struct takt_accounts *accounts, uint64_t stale_ns)
{
	*accounts = (struct takt_accounts){
		.list = TAKT_VEC_INIT(TAKT_ACCOUNTS_MAX),
		.stale_ns = stale_ns,
	};
}

void takt_accounts_fini(struct takt_accounts *accounts)
{
	TAKT_VEC_EACH (entry, &accounts->list)
		takt_free(*entry);
	takt_vec_fini(&accounts->list);
}

int takt_accounts_open(struct takt_accounts *accounts, uint64_t job_id, uint64_t gpu_mask,
		       struct takt_err *err)
{
	struct takt_account_entry *entry;
	int rc;

	if (takt_accounts_find(accounts, job_id))
		return takt_err_set(err, -EEXIST, "account of job %" PRIu64, job_id);
	entry = takt_zalloc(sizeof(*entry));
	if (!entry)
		return takt_err_set(err, -ENOMEM, "account of job %" PRIu64, job_id);
	entry->job_id = job_id;
	entry->gpu_mask = gpu_mask;
	entry->opened_at = accounts->now;
	rc = takt_vec_push(&accounts->list, entry);
	if (rc < 0) {
		takt_free(entry);
		return takt_err_set(err, rc, "account of job %" PRIu64, job_id);
	}
	return 0;
}

struct takt_account_entry *takt_accounts_find(const struct takt_accounts *accounts, uint64_t job_id)
{
	TAKT_VEC_EACH (entry, &accounts->list)
		if ((*entry)->job_id == job_id)
			return *entry;
	return NULL;
}

void takt_accounts_close(struct takt_accounts *accounts, struct takt_account_entry *entry)
{
	for (size_t i = 0; i < accounts->list.len; i++) {
		if (accounts->list.at[i] == entry) {
			takt_vec_remove_swap(&accounts->list, i);
			break;
		}
	}
	takt_free(entry);
}

static void feed_energy(const struct takt_account_entry *entry, struct takt_account_gpu *sum,
			const struct takt_gpu_reading *reading)
{
	if (!(reading->has & TAKT_HAS_ENERGY))
		return;
	if (!sum->energy_begun) {
		/* What the counter said long before the job is not where its energy begins. */
		if (takt_mono_elapsed_ns(entry->opened_at, reading->energy_at) > close_ns)
			return;
		sum->energy_begun = true;
		sum->energy_first_mj = reading->energy_mj;
		sum->energy_first_at = reading->energy_at;
	} else if (reading->energy_mj < sum->energy_last_mj) {
		sum->energy_reset = true;
	}
	sum->energy_last_mj = reading->energy_mj;
	sum->energy_last_at = reading->energy_at;
}

static void feed_throttle(struct takt_account_gpu *sum, const struct takt_gpu_reading *reading)
{
	uint64_t ns = takt_mono_elapsed_ns(reading->at, sum->last_at);
	uint64_t reasons = reading->throttle & ~not_throttling;

	if (!(reading->has & TAKT_HAS_THROTTLE))
		return;
	sum->throttle_seen = true;
	if (reasons == 0)
		return;
	sum->throttle_reasons |= reasons;
	if (sum->last_at.ns != 0 && ns <= max_gap_ns)
		sum->throttled_ns += ns;
}

static void feed_util(struct takt_account_gpu *sum, const struct takt_gpu_reading *reading)
{
	uint64_t ns = takt_mono_elapsed_ns(reading->at, sum->last_at);

	if (!(reading->has & TAKT_HAS_GPU_UTIL) || sum->last_at.ns == 0 || ns > max_gap_ns)
		return;
	sum->util_ns += ns;
	sum->busy_permille_ns += 10 * reading->gpu_util_pct * ns;
	if (reading->gpu_util_pct == 0)
		sum->idle_ns += ns;
}

static void feed_gpu(const struct takt_account_entry *entry, struct takt_account_gpu *sum,
		     const struct takt_gpu_reading *reading)
{
	feed_energy(entry, sum, reading);
	feed_throttle(sum, reading);
	feed_util(sum, reading);
	if (reading->has & TAKT_HAS_SM_CLOCK) {
		sum->sm_sum += reading->sm_mhz;
		sum->sm_samples++;
	}
	if (reading->has & TAKT_HAS_MEMORY) {
		sum->memory_seen = true;
		if (reading->mem_used_bytes > sum->peak_memory_bytes)
			sum->peak_memory_bytes = reading->mem_used_bytes;
	}
	sum->last_at = reading->at;
}

void takt_account_begin(struct takt_account_entry *entry, uint32_t gpu,
			const struct takt_gpu_reading *reading)
{
	feed_energy(entry, &entry->gpus[gpu], reading);
	entry->gpus[gpu].last_at = reading->at;
}

void takt_accounts_feed(struct takt_accounts *accounts, uint32_t gpu,
			const struct takt_gpu_reading *reading)
{
	if (reading->at.ns > accounts->now.ns)
		accounts->now = reading->at;
	feed_clock(&accounts->clocks[gpu], reading);
	TAKT_VEC_EACH (entry, &accounts->list)
		if ((*entry)->gpu_mask >> gpu & 1)
			feed_gpu(*entry, &(*entry)->gpus[gpu], reading);
}

uint64_t takt_accounts_energy_every_ns(const struct takt_accounts *accounts, uint32_t gpu)
{
	uint64_t every_ns = TAKT_ENERGY_IDLE_NS, ns;

	TAKT_VEC_EACH (entry, &accounts->list) {
		if (!((*entry)->gpu_mask >> gpu & 1))
			continue;
		ns = takt_mono_elapsed_ns(accounts->now, (*entry)->opened_at) /
		     TAKT_ACCOUNT_ENERGY_PARTS;
		ns = ns < TAKT_ENERGY_JOB_NS ? ns : TAKT_ENERGY_JOB_NS;
		every_ns = ns < every_ns ? ns : every_ns;
	}
	return every_ns;
}

/* NULL, or why the energy of this GPU cannot be told; a message may be put into buf. */
static const char *energy_why_not(const struct takt_accounts *accounts,
				  const struct takt_energy_clock *clock,
				  const struct takt_account_gpu *sum, char *buf, size_t size)
{
	uint64_t coarse_ns = coarseness_ns(clock), need_ns = TAKT_ACCOUNT_PERIODS * coarse_ns;

	if (!sum->energy_begun)
		return clock->read_at.ns == 0 ? "the GPU has no energy counter"
					      : "it ended before the energy counter was read";
	if (sum->energy_reset)
		return "the energy counter was reset";
	if (takt_mono_elapsed_ns(accounts->now, sum->energy_last_at) >
	    accounts->stale_ns + coarse_ns)
		return "the GPU stopped answering";
	if (takt_mono_elapsed_ns(sum->energy_last_at, sum->energy_first_at) >= need_ns)
		return NULL;
	snprintf(buf, size, "shorter than %d periods of the counter (%" PRIu64 " ms)",
		 TAKT_ACCOUNT_PERIODS, (uint64_t)(need_ns / TAKT_NS_PER_MS));
	return buf;
}

static void sum_energy(const struct takt_accounts *accounts, const struct takt_account_entry *entry,
		       struct takt_account *ret)
{
	const char *why = entry->shared ? "shared GPU: another process was seen" : NULL;
	char buf[sizeof(ret->energy_why_not)];
	uint64_t sum_mj = 0;

	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS && !why; g++) {
		const struct takt_account_gpu *gpu = &entry->gpus[g];

		if (!(entry->gpu_mask >> g & 1))
			continue;
		why = energy_why_not(accounts, &accounts->clocks[g], gpu, buf, sizeof(buf));
		sum_mj += gpu->energy_last_mj - gpu->energy_first_mj;
	}
	if (entry->gpu_mask == 0)
		why = "no GPU";
	if (why) {
		takt_strcpy(ret->energy_why_not, sizeof(ret->energy_why_not), why);
		return;
	}
	ret->has |= TAKT_ACCOUNT_ENERGY;
	ret->energy_mj = sum_mj;
}

/* Mean of the GPUs' means, so that a GPU that was sampled less counts as much. */
static void sum_clock(const struct takt_account_entry *entry, struct takt_account *ret)
{
	uint64_t sum_mhz = 0, n = 0, lowest = UINT64_MAX, highest = 0;

	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS; g++) {
		const struct takt_account_gpu *gpu = &entry->gpus[g];
		uint64_t mhz = gpu->sm_samples ? gpu->sm_sum / gpu->sm_samples : 0;

		if (gpu->sm_samples == 0)
			continue;
		sum_mhz += mhz;
		lowest = mhz < lowest ? mhz : lowest;
		highest = mhz > highest ? mhz : highest;
		n++;
	}
	if (n == 0)
		return;
	ret->has |= TAKT_ACCOUNT_MEAN_SM;
	ret->mean_sm_mhz = (uint32_t)(sum_mhz / n);
	if (n == 1 || n < (uint64_t)__builtin_popcountll(entry->gpu_mask))
		return;
	ret->has |= TAKT_ACCOUNT_SM_SPREAD;
	ret->sm_spread_mhz = (uint32_t)(highest - lowest);
}

static void sum_util(const struct takt_account_entry *entry, struct takt_account *ret)
{
	uint64_t sum_permille = 0, idle_ns = 0, n = 0;

	for (uint64_t left = entry->gpu_mask; left; left &= left - 1) {
		const struct takt_account_gpu *gpu = &entry->gpus[__builtin_ctzll(left)];

		if (gpu->util_ns == 0)
			return;
		sum_permille += gpu->busy_permille_ns / gpu->util_ns;
		idle_ns += gpu->idle_ns;
		n++;
	}
	if (n == 0 || entry->shared)
		return;
	ret->has |= TAKT_ACCOUNT_UTIL;
	ret->mean_util_permille = (uint32_t)(sum_permille / n);
	ret->idle_ns = idle_ns;
}

static void sum_memory(const struct takt_account_entry *entry, struct takt_account *ret)
{
	bool seen = entry->share && entry->own_seen;
	uint64_t peak_bytes = entry->own_peak_bytes;

	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS && !entry->share; g++) {
		const struct takt_account_gpu *gpu = &entry->gpus[g];

		seen |= gpu->memory_seen;
		if (gpu->peak_memory_bytes > peak_bytes)
			peak_bytes = gpu->peak_memory_bytes;
	}
	if (!seen)
		return;
	ret->has |= TAKT_ACCOUNT_PEAK_MEMORY;
	ret->peak_memory_bytes = peak_bytes;
}

/* What was not seen is in no sum, and whether it was the job's alone nobody knows. */
static bool was_away(const struct takt_accounts *accounts, const struct takt_account_entry *entry,
		     struct takt_account *ret)
{
	uint64_t ran_ns = takt_mono_elapsed_ns(accounts->now, entry->opened_at);

	if (entry->away_ns <= ran_ns / TAKT_ACCOUNT_AWAY_PARTS)
		return false;
	snprintf(ret->energy_why_not, sizeof(ret->energy_why_not),
		 "takt was away for %" PRIu64 " of %" PRIu64 " s",
		 (uint64_t)((entry->away_ns + TAKT_NS_PER_S - 1) / TAKT_NS_PER_S),
		 (uint64_t)((ran_ns + TAKT_NS_PER_S - 1) / TAKT_NS_PER_S));
	return true;
}

void takt_account_sum(const struct takt_accounts *accounts, const struct takt_account_entry *entry,
		      struct takt_account *ret)
{
	struct takt_account account = {.written = entry->written};

	*ret = account;
	if (was_away(accounts, entry, ret))
		return;
	sum_energy(accounts, entry, &account);
	sum_clock(entry, &account);
	sum_util(entry, &account);
	sum_memory(entry, &account);
	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS; g++) {
		const struct takt_account_gpu *gpu = &entry->gpus[g];

		if (gpu->throttle_seen)
			account.has |= TAKT_ACCOUNT_THROTTLED;
		account.throttled_ns += gpu->throttled_ns;
		account.throttle_reasons |= gpu->throttle_reasons;
	}
	*ret = account;
}
