/* SPDX-License-Identifier: Apache-2.0 */
/* From readings of a GPU to its means over the time that was looked. */
#include "health/slow.h"

#include "base/compiler.h"

enum {
	IDLE_PERCENT = 2,
	PPM_PER_PERMILLE = 1000,
	NVLINK_MB_S = 25000,	   /* a link, one way: Volta to Hopper */
	NVLINK_NEWER_MB_S = 50000, /* since Blackwell */
};

static const uint64_t HEAT = TAKT_THROTTLE_SW_THERMAL | TAKT_THROTTLE_HW_THERMAL,
		      BRAKE = TAKT_THROTTLE_POWER_BRAKE;

/* Clocks and their reasons mean something while it works. */
static void see_work(struct takt_slow_watch *watch, const struct takt_gpu_reading *r)
{
	if (!(r->has & TAKT_HAS_GPU_UTIL) || r->gpu_util_pct <= IDLE_PERCENT)
		return;
	if (r->has & TAKT_HAS_SM_CLOCK) {
		watch->sm_mhz += r->sm_mhz;
		watch->clocks++;
	}
	if (r->has & TAKT_HAS_THROTTLE) {
		watch->heat += (r->throttle & HEAT) != 0;
		watch->brake += (r->throttle & BRAKE) != 0;
		watch->at_limit += (r->throttle & TAKT_THROTTLE_SW_POWER) != 0;
		watch->throttles++;
	}
}

/* The slow part is read once a second, and comes again with every reading until then. */
static void see_slow_part(struct takt_slow_watch *watch, const struct takt_gpu_reading *r)
{
	if (r->slow_at.ns == 0 || (watch->slow_parts && r->slow_at.ns == watch->last_at.ns))
		return;
	if (watch->slow_parts++ == 0) {
		watch->first_at = r->slow_at;
		watch->first = r->vitals;
	}
	watch->last_at = r->slow_at;
	watch->last = r->vitals;
	for (uint32_t part = 0; part < TAKT_ACTIVE_COUNT; part++) {
		if (!(r->vitals.has & TAKT_VITAL_ACTIVE << part) || watch->slow_parts == 1)
			continue;
		watch->active[part] += r->vitals.active_ppm[part];
		watch->actives[part]++;
	}
}

void takt_slow_see(struct takt_slow_watch *watch, const struct takt_gpu_reading *r)
{
	watch->reading = *r;
	if (r->has & TAKT_HAS_GPU_UTIL) {
		watch->util += r->gpu_util_pct;
		watch->utils++;
	}
	if (r->has & TAKT_HAS_MEM_UTIL) {
		watch->mem_util += r->mem_util_pct;
		watch->mem_utils++;
	}
	if (r->has & TAKT_HAS_POWER) {
		watch->power_mw += r->power_mw;
		watch->powers++;
	}
	see_work(watch, r);
	see_slow_part(watch, r);
}

static uint32_t mean(uint64_t sum, uint32_t count, uint32_t bit, uint32_t *has)
{
	if (count == 0)
		return 0;
	*has |= bit;
	return (uint32_t)(sum / count);
}

static void sum_up_power(const struct takt_slow_watch *watch, const struct takt_gpu_facts *facts,
			 struct takt_slow_gpu *ret)
{
	const struct takt_gpu_reading *r = &watch->reading;

	ret->power_mw = mean(watch->power_mw, watch->powers, TAKT_SLOW_POWER, &ret->has);
	if (r->has & TAKT_HAS_POWER_LIMIT) {
		ret->power_limit_mw = r->power_limit_mw;
		ret->has |= TAKT_SLOW_POWER_LIMIT;
	}
	if (r->has & TAKT_HAS_POWER_ENFORCED && r->power_enforced_mw < ret->power_limit_mw)
		ret->power_limit_mw = r->power_enforced_mw;
	if (facts->has & TAKT_FACT_POWER_LIMITS) {
		ret->power_default_mw = facts->power_default_mw;
		ret->has |= TAKT_SLOW_POWER_DEFAULT;
	}
}

static uint32_t share(uint64_t part, uint64_t whole)
{
	return part < whole ? (uint32_t)(part * 1000 / whole) : 1000;
}

static void sum_up_held(const struct takt_slow_watch *watch, uint64_t ns, struct takt_slow_gpu *ret)
{
	uint32_t both = watch->first.has & watch->last.has;

	ret->has |= both & TAKT_VITAL_HELD_POLICIES ? TAKT_SLOW_HELD_POLICIES : 0u;
	ret->has |= both & TAKT_VITAL_HELD_REASONS ? TAKT_SLOW_HELD_REASONS : 0u;
	for (uint32_t i = 0; i < TAKT_HELD_COUNT; i++)
		if (watch->last.held_ns[i] > watch->first.held_ns[i])
			ret->held[i] = share(watch->last.held_ns[i] - watch->first.held_ns[i], ns);
}

static void sum_up_links(const struct takt_slow_watch *watch, const struct takt_gpu_facts *facts,
			 uint64_t ns, struct takt_slow_gpu *ret)
{
	const uint32_t needed = TAKT_VITAL_NVLINK_BYTES | TAKT_VITAL_NVLINKS;
	const struct takt_gpu_vitals *a = &watch->first, *b = &watch->last;
	uint64_t sent = b->nvlink_sent_bytes - a->nvlink_sent_bytes;
	uint64_t received = b->nvlink_received_bytes - a->nvlink_received_bytes;
	uint64_t mb_s = facts->has & TAKT_FACT_COMPUTE_CAP && facts->compute_major >= 10
				? NVLINK_NEWER_MB_S
				: NVLINK_MB_S;

	if ((a->has & b->has & needed) != needed || b->nvlinks_up == 0 ||
	    b->nvlink_sent_bytes < a->nvlink_sent_bytes ||
	    b->nvlink_received_bytes < a->nvlink_received_bytes)
		return;
	ret->has |= TAKT_SLOW_NVLINK;
	/* MB/s are bytes in a microsecond. */
	ret->nvlink = share(sent > received ? sent : received,
			    mb_s * b->nvlinks_up * (ns / TAKT_NS_PER_US));
}

void takt_slow_sum_up(const struct takt_slow_watch *watch, const struct takt_gpu_facts *facts,
		      struct takt_slow_gpu *ret)
{
	uint64_t ns = takt_mono_elapsed_ns(watch->last_at, watch->first_at);

	ret->has = 0;
	ret->util = mean(watch->util * 10, watch->utils, TAKT_SLOW_UTIL, &ret->has);
	ret->mem_util = mean(watch->mem_util * 10, watch->mem_utils, TAKT_SLOW_MEM_UTIL, &ret->has);
	ret->sm_mhz = mean(watch->sm_mhz, watch->clocks, TAKT_SLOW_SM_CLOCK, &ret->has);
	ret->heat = mean(watch->heat * 1000, watch->throttles, TAKT_SLOW_THROTTLE, &ret->has);
	ret->brake = mean(watch->brake * 1000, watch->throttles, TAKT_SLOW_THROTTLE, &ret->has);
	ret->at_limit =
		mean(watch->at_limit * 1000, watch->throttles, TAKT_SLOW_THROTTLE, &ret->has);
	if (facts->has & TAKT_FACT_SM_MAX) {
		ret->sm_max_mhz = facts->sm_max_mhz;
		ret->has |= TAKT_SLOW_SM_MAX;
	}
	sum_up_power(watch, facts, ret);
	for (uint32_t i = 0; i < TAKT_ACTIVE_COUNT; i++)
		ret->active[i] = mean(watch->active[i] / PPM_PER_PERMILLE, watch->actives[i],
				      TAKT_SLOW_ACTIVE << i, &ret->has);
	if (ns < TAKT_NS_PER_MS)
		return;
	sum_up_held(watch, ns, ret);
	sum_up_links(watch, facts, ns, ret);
}
