/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of power and clocks. What a board does under load alone is judged under load alone, and
 * what it does in every sample, not in one. Reasons and what they mean:
 * https://docs.nvidia.com/deploy/nvml-api, nvmlClocksEventReasons
 */
#include <string.h>

#include "health/doctor.h"

enum {
	SKEW_PERCENT = 90,
	SLOW_PERCENT = 90,
	PSTATE_SAVING = 5, /* P5 and above: video, or rest */
};

void takt_doctor_check_power_cap(const struct takt_doctor_facts *facts,
				 struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		uint32_t most_mw = gpu->facts.power_default_mw, limit_mw = gpu->last.power_limit_mw;
		uint64_t bit = 1ull << i;

		if (gpu->last.has & TAKT_HAS_POWER_ENFORCED &&
		    gpu->last.power_enforced_mw < limit_mw)
			limit_mw = gpu->last.power_enforced_mw;
		if (!(gpu->facts.has & TAKT_FACT_POWER_LIMITS) ||
		    !(gpu->last.has & TAKT_HAS_POWER_LIMIT))
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, bit, TAKT_DO_NONE, NULL,
					"the driver does not say");
		else if (limit_mw >= most_mw)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, bit, TAKT_DO_NONE, NULL,
					"%u W, not below the board's own %u W", limit_mw / 1000,
					most_mw / 1000);
		else if (gpu->held_by_takt)
			takt_doctor_say(
				report, TAKT_DOCTOR_INFO, bit, TAKT_DO_NONE, NULL,
				"%u W of the board's own %u W, set through takt: takt clock",
				limit_mw / 1000, most_mw / 1000);
		else
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_CAP,
				"nvidia-smi -pl sets it; one asked for on purpose is best declared "
				"with takt clock cap",
				"%u W of the board's own %u W", limit_mw / 1000, most_mw / 1000);
	}
}

struct reason {
	uint64_t bit;
	bool in_all; /* counts when it holds in every busy sample, else in any */
	enum takt_doctor_verdict verdict;
	enum takt_doctor_act action;
	const char *text;
};

/* The cause before its consequence: HW_SLOWDOWN is what the two above it do. Boards control their
 * power under full load, with a mean far below the limit, too (docs/research/hardware.md). */
static const struct reason reasons[] = {
	{TAKT_THROTTLE_HW_THERMAL, false, TAKT_DOCTOR_CRITICAL, TAKT_DO_COOLING,
	 "slowed to half or less: beyond its slowdown temperature"},
	{TAKT_THROTTLE_POWER_BRAKE, false, TAKT_DOCTOR_CRITICAL, TAKT_DO_POWER,
	 "slowed to half or less by the power supply's brake signal"},
	{TAKT_THROTTLE_HW_SLOWDOWN, true, TAKT_DOCTOR_CRITICAL, TAKT_DO_POWER,
	 "slowed to half or less by the board, which names no cause"},
	{TAKT_THROTTLE_SW_THERMAL, true, TAKT_DOCTOR_WARNING, TAKT_DO_COOLING,
	 "slowed down: as warm as it may get"},
	{TAKT_THROTTLE_SYNC_BOOST, true, TAKT_DOCTOR_INFO, TAKT_DO_NONE,
	 "held to the slowest GPU of its sync boost group"},
	{TAKT_THROTTLE_SW_POWER, true, TAKT_DOCTOR_INFO, TAKT_DO_NONE,
	 "held down by its power control, as boards are under full load"},
};

static const struct reason *first_reason(const struct takt_doctor_gpu *gpu)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reasons); i++)
		if (reasons[i].bit & (reasons[i].in_all ? gpu->throttle_all : gpu->throttle_any))
			return &reasons[i];
	return NULL;
}

void takt_doctor_check_throttle(const struct takt_doctor_facts *facts,
				struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		const struct reason *reason = first_reason(gpu);

		if (!(gpu->last.has & TAKT_HAS_THROTTLE))
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
					"the driver does not say");
		else if (gpu->throttled_known == 0)
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
					"at rest; run this again under load");
		else if (reason)
			takt_doctor_say(report, reason->verdict, 1ull << i, reason->action, NULL,
					"%s", reason->text);
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"nothing holds its clocks down");
	}
}

/* What it runs at when nobody has set anything: boards whose application clock is lower than their
 * highest (V100, T4) may keep to that. */
static uint32_t own_clock(const struct takt_doctor_gpu *gpu)
{
	uint32_t mhz = gpu->facts.has & TAKT_FACT_SM_MAX ? gpu->facts.sm_max_mhz : 0;

	if (gpu->board.has & TAKT_BOARD_APP_CLOCK && gpu->board.app_default_sm_mhz < mhz)
		mhz = gpu->board.app_default_sm_mhz;
	return mhz;
}

/* The driver tells application clocks, but not that clocks were locked: at full load all the time,
 * at full performance, slow, and no reason given. */
static bool is_locked(const struct takt_doctor_gpu *gpu)
{
	const uint64_t explained = ~(uint64_t)(TAKT_THROTTLE_IDLE | TAKT_THROTTLE_APP_CLOCKS);
	uint64_t seen = gpu->sm_max_seen_mhz, own = own_clock(gpu);

	if (gpu->samples < 2 || gpu->throttled_known < gpu->samples || seen == 0)
		return false;
	if (gpu->throttle_all & TAKT_THROTTLE_APP_CLOCKS)
		return seen < own;
	return gpu->full == gpu->samples && gpu->loaded == gpu->samples &&
	       !(gpu->throttle_any & explained) && seen * 100 < own * SLOW_PERCENT;
}

/* A lock shows under load alone: at rest the clock is low anyway. Application clocks show always.
 */
void takt_doctor_check_clock_lock(const struct takt_doctor_facts *facts,
				  struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		bool app = gpu->board.has & TAKT_BOARD_APP_CLOCK &&
			   gpu->board.app_sm_mhz < gpu->board.app_default_sm_mhz;
		uint64_t bit = 1ull << i;

		if (gpu->held_by_takt)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, bit, TAKT_DO_NONE, NULL,
					"what is set was set through takt: takt clock");
		else if (app)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_UNLOCK,
					"nvidia-smi -rac gives application clocks back",
					"application clock of %u MHz, %u is its own",
					gpu->board.app_sm_mhz, gpu->board.app_default_sm_mhz);
		else if (is_locked(gpu))
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_UNLOCK,
				"nvidia-smi -rgc gives locked clocks back",
				"at full load at %u of %u MHz, and no power or heat is the reason: "
				"somebody has set its clock, not through takt",
				gpu->sm_max_seen_mhz, own_clock(gpu));
		else if (gpu->busy)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, bit, TAKT_DO_NONE, NULL,
					"no setting is seen to hold its clock down");
		else
			takt_doctor_say(
				report, TAKT_DOCTOR_UNKNOWN, bit, TAKT_DO_NONE, NULL,
				"at rest, where a lock does not show; run this again under load");
	}
}

void takt_doctor_check_low_power(const struct takt_doctor_facts *facts,
				 struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		bool saving = gpu->busy >= 2 && gpu->busy == gpu->samples &&
			      gpu->last.has & TAKT_HAS_PSTATE && gpu->pstate_best >= PSTATE_SAVING;

		if (gpu->board.has & TAKT_BOARD_BATTERY && gpu->board.on_battery)
			takt_doctor_say(report, TAKT_DOCTOR_INFO, 1ull << i, TAKT_DO_NONE, NULL,
					"runs on battery, which limits its power");
		else if (saving)
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_HOST,
				"power profile of the machine; firmware's settings; power cables",
				"works all the time, but in P%u at best", gpu->pstate_best);
		else if (gpu->busy)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"not in a power-saving state");
	}
}

static bool comparable(const struct takt_doctor_gpu *gpu)
{
	return gpu->busy >= 2 && gpu->busy == gpu->samples && gpu->last.has & TAKT_HAS_SM_CLOCK;
}

/* Of those that work all the time: a gang goes at the pace of its slowest. */
void takt_doctor_check_clock_skew(const struct takt_doctor_facts *facts,
				  struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		uint32_t best = 0;

		TAKT_EACH_GPU (j, facts) {
			const struct takt_doctor_gpu *other = &facts->gpu[j];

			if (j != i && comparable(other) &&
			    strcmp(other->facts.name, gpu->facts.name) == 0 &&
			    other->sm_max_seen_mhz > best)
				best = other->sm_max_seen_mhz;
		}
		if (!comparable(gpu) || best == 0)
			continue;
		if ((uint64_t)gpu->sm_max_seen_mhz * 100 < (uint64_t)best * SKEW_PERCENT)
			takt_doctor_say(report, TAKT_DOCTOR_INFO, 1ull << i, TAKT_DO_NONE, NULL,
					"works at %u MHz at best, others of its kind at up to %u",
					gpu->sm_max_seen_mhz, best);
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"as quick as others of its kind");
	}
}
