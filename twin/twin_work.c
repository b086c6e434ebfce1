/* SPDX-License-Identifier: Apache-2.0 */
#include "twin_work.h"

#include <stddef.h>

#include "twin_noise.h"
#include "twin_rows.h"

static const uint64_t SECOND = 1000000000;

/* A kernel that waits for its peers keeps the GPU resident and does little: GUESS. */
static const struct twin_phase waiting = {
	.kind = TWIN_PHASE_COMMUNICATION, .util = 1000, .memory_util = 20, .activity = 180};

uint64_t twin_work_cycle_ns(const struct twin_load *load)
{
	uint64_t shares = 0;

	for (uint32_t i = 0; i < load->profile.phase_count; i++)
		shares += load->profile.phases[i].share;
	return load->step_ns * shares / 1000;
}

static bool waits(const struct twin_load *load)
{
	return load->work_limit_ns && load->work_ns >= load->work_limit_ns;
}

/* Index of the phase that it is in, and where in its step that ends. */
static uint32_t locate(const struct twin_load *load, uint64_t at_ns, uint64_t *ret_end_ns)
{
	uint64_t shares = 0;
	uint32_t i = 0;

	for (;; i++) {
		shares += load->profile.phases[i].share;
		*ret_end_ns = load->step_ns * shares / 1000;
		if (at_ns < *ret_end_ns || i + 1 >= load->profile.phase_count)
			return i;
	}
}

const struct twin_phase *twin_work_phase(const struct twin_load *load)
{
	uint64_t cycle_ns = twin_work_cycle_ns(load), end_ns;

	if (!cycle_ns)
		return NULL;
	if (waits(load))
		return &waiting;
	return &load->profile.phases[locate(load, load->work_ns % cycle_ns, &end_ns)];
}

static bool steps_differ(const struct twin_profile *profile)
{
	return profile->jitter || profile->slow_chance;
}

/* Permille of the speed that conditions allow: a straggler's, and that of the present step. */
static uint64_t pace_of(const struct twin_load *load)
{
	enum {
		JITTER = 100, /* what is drawn for: other numbers than those of readings */
		SLOW
	};
	const struct twin_profile *profile = &load->profile;
	uint64_t step, pace = load->pace_permille;
	int64_t jitter;

	if (!steps_differ(profile))
		return pace;
	step = load->work_ns / twin_work_cycle_ns(load);
	jitter = (int64_t)profile->jitter * twin_noise_draw(load->seed, step, JITTER) / 1000;
	if (twin_noise_permille(load->seed, step, SLOW) < profile->slow_chance)
		pace = pace * profile->slow_pace / 1000;
	pace = pace * (uint64_t)(1000 + jitter) / 1000;
	return pace ? pace : 1;
}

uint64_t twin_work_speed(const struct twin_load *load, const struct twin_pace *pace)
{
	const struct twin_phase *phase = twin_work_phase(load);
	uint64_t weight, time, share;

	if (!phase || waits(load))
		return 0;
	if (phase->kind == TWIN_PHASE_HOST) {
		time = 1000000 + phase->bus * (uint64_t)(pace->bus_stretch_permille - 1000);
		return SECOND * 1000000 / time * pace_of(load) / 1000;
	}
	share = (uint64_t)pace->share_permille * pace->part_permille / 1000;
	if (phase->kind == TWIN_PHASE_COMMUNICATION)
		return SECOND * load->link_permille / 1000 * share / 1000;
	if (twin_rows_are(&load->profile))
		return SECOND * 1000000 / twin_rows_time(&load->profile, pace->mhz) * share / 1000 *
		       pace_of(load) / 1000;
	weight = phase->clock_weight;
	time = 1000000 + weight * 1000 * (pace->max_mhz - pace->mhz) / pace->mhz +
	       (1000 - weight) * (pace->memory_stretch_permille - 1000);
	return SECOND * 1000000 / time * share / 1000 * pace_of(load) / 1000;
}

/* Time for `left_ns` of work less what is done of the first of them, rounded up; in two parts so
 * that nothing overflows. */
static uint64_t time_for(const struct twin_load *load, uint64_t left_ns, uint64_t speed)
{
	int64_t rest = (int64_t)(left_ns % speed * SECOND) - (int64_t)load->work_rest;
	uint64_t whole = left_ns / speed * SECOND;

	return rest > 0 ? whole + ((uint64_t)rest + speed - 1) / speed
			: whole - (uint64_t)-rest / speed;
}

uint64_t twin_work_until_ns(const struct twin_load *load, uint64_t speed)
{
	uint64_t cycle_ns = twin_work_cycle_ns(load), at_ns, end_ns, left_ns;

	if (!speed || !cycle_ns)
		return UINT64_MAX;
	at_ns = load->work_ns % cycle_ns;
	locate(load, at_ns, &end_ns);
	/* with a single phase nothing changes at its end, unless steps differ */
	left_ns = load->profile.phase_count > 1 || steps_differ(&load->profile) ? end_ns - at_ns
										: UINT64_MAX;
	if (load->work_limit_ns && load->work_limit_ns - load->work_ns < left_ns)
		left_ns = load->work_limit_ns - load->work_ns;
	return left_ns == UINT64_MAX ? UINT64_MAX : time_for(load, left_ns, speed);
}

void twin_work_advance(struct twin_load *load, uint64_t speed, uint64_t ns, uint64_t times)
{
	/* ns * speed < 1e8 * 1e9: split so that no product overflows */
	uint64_t step = ns * speed;
	uint64_t rest = step % SECOND * times + load->work_rest;

	load->work_ns += step / SECOND * times + rest / SECOND;
	load->work_rest = rest % SECOND;
}
