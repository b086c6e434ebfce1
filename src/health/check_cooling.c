/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of heat, and of what keeps it and power in order: fans, the air, power supplies. Little of
 * these is seen from within; what is said here are signs, and where there are none nothing.
 */
#include <string.h>

#include "health/doctor.h"

enum {
	MARGIN_LITTLE_C = 5, /* of what is left before it slows down */
	MARGIN_SOME_C = 15,
	FAN_TOP_PERCENT = 95,
	WARMER_C = 20, /* places in one stream of air differ by half of that and more */
	DRAWS_MORE_PERCENT = 110,
};

/* By the margin to the board's own threshold: on Hopper and Ada boards there is no absolute one,
 * and 85 degrees are much for one board and little for another. False = it is not known. */
static bool degrees_left(const struct takt_doctor_gpu *gpu, int32_t *ret)
{
	bool margin = gpu->board.has & TAKT_BOARD_MARGIN;
	bool slowdown = gpu->facts.has & TAKT_FACT_THROTTLE_TEMP && gpu->last.has & TAKT_HAS_TEMP;

	if (margin)
		*ret = gpu->board.margin_c;
	else if (slowdown)
		*ret = gpu->facts.slowdown_temp_c - gpu->last.temp_c;
	return margin || slowdown;
}

void takt_doctor_check_temperature(const struct takt_doctor_facts *facts,
				   struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		int32_t left_c;

		if (!degrees_left(gpu, &left_c))
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
					"the driver does not say where it slows down");
		else if (left_c <= MARGIN_LITTLE_C)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_COOLING,
					NULL, "%d degrees left before it slows down", left_c);
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"more than %d degrees left before it slows down",
					MARGIN_LITTLE_C);
	}
}

/* Fans of cool boards stand still on purpose. */
static bool judge_fan(const struct takt_doctor_gpu *gpu, uint64_t bit,
		      struct takt_doctor_report *report)
{
	int32_t left_c;

	if (!(gpu->last.has & TAKT_HAS_FAN) || !degrees_left(gpu, &left_c) ||
	    left_c > MARGIN_SOME_C)
		return false;
	if (gpu->last.fan_pct == 0)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_COOLING,
				"its fan: a cable, dust, or a setting that keeps it from turning",
				"its fan stands still, with %d degrees left before it slows down",
				left_c);
	else if (gpu->last.fan_pct >= FAN_TOP_PERCENT)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_COOLING,
				"dust, the room's air, what stands beside it",
				"its fan is at %u %%, and %d degrees are left before it slows down",
				gpu->last.fan_pct, left_c);
	else
		return false;
	return true;
}

static bool comparable(const struct takt_doctor_gpu *gpu)
{
	return gpu->busy >= 2 && gpu->busy == gpu->samples && gpu->last.has & TAKT_HAS_TEMP &&
	       gpu->last.has & TAKT_HAS_POWER;
}

/* Of those of its kind that work, too; ret_more: those that are much cooler though they draw as
 * much power. */
static uint32_t count_like(const struct takt_doctor_facts *facts, uint32_t gpu,
			   uint32_t *ret_cooler)
{
	const struct takt_doctor_gpu *own = &facts->gpu[gpu];
	uint32_t like = 0;

	*ret_cooler = 0;
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *other = &facts->gpu[i];

		if (i == gpu || !comparable(other) ||
		    strcmp(own->facts.name, other->facts.name) != 0)
			continue;
		like++;
		*ret_cooler += other->last.temp_c + WARMER_C <= own->last.temp_c &&
			       (uint64_t)other->last.power_mw * DRAWS_MORE_PERCENT >=
				       (uint64_t)own->last.power_mw * 100;
	}
	return like;
}

static void judge_warmth(const struct takt_doctor_facts *facts, uint32_t gpu,
			 struct takt_doctor_report *report)
{
	uint32_t cooler, like = count_like(facts, gpu, &cooler);

	if (!comparable(&facts->gpu[gpu]) || like < 2)
		return;
	if (2 * cooler > like)
		takt_doctor_say(
			report, TAKT_DOCTOR_WARNING, 1ull << gpu, TAKT_DO_COOLING,
			"its place in the air: a fan beside it, a blank that is missing, "
			"dust, its cooler's seat",
			"%d C: most of its kind are at least %d degrees cooler, and draw as "
			"much power",
			facts->gpu[gpu].last.temp_c, WARMER_C);
	else
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << gpu, TAKT_DO_NONE, NULL,
				"not much warmer than others of its kind");
}

static uint32_t say_alarms(const struct takt_doctor_facts *facts, bool supply,
			   enum takt_doctor_act action, struct takt_doctor_report *report)
{
	uint32_t said = 0;

	for (uint32_t i = 0; i < facts->alarm_count; i++) {
		const struct takt_doctor_alarm *alarm = &facts->alarm[i];

		if (alarm->supply != supply)
			continue;
		said++;
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, action,
				supply ? "its cable, its breaker, the supply itself; is the other "
					 "one enough?"
				       : "the machine's fans",
				"the sensor %s of %s says that something is wrong", alarm->sensor,
				alarm->chip);
	}
	return said;
}

void takt_doctor_check_cooling(const struct takt_doctor_facts *facts,
			       struct takt_doctor_report *report)
{
	if (say_alarms(facts, false, TAKT_DO_COOLING, report) == 0 && facts->fans)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"no fan of the machine is said to be broken");
	TAKT_EACH_GPU (i, facts) {
		if (!judge_fan(&facts->gpu[i], 1ull << i, report))
			judge_warmth(facts, i, report);
	}
}

static bool is_braked(const struct takt_doctor_gpu *gpu)
{
	return gpu->throttle_any & TAKT_THROTTLE_POWER_BRAKE;
}

/* The brake is pulled for a whole machine when one of its supplies is out, or its rack draws too
 * much; for one board by that board and its cable. */
static void judge_brake(const struct takt_doctor_facts *facts, struct takt_doctor_report *report)
{
	uint32_t busy = 0, braked = 0;
	uint64_t gpus = 0;

	TAKT_EACH_GPU (i, facts) {
		busy += facts->gpu[i].busy > 0;
		braked += is_braked(&facts->gpu[i]);
		gpus |= is_braked(&facts->gpu[i]) ? 1ull << i : 0;
	}
	if (braked >= 2 && 2 * braked > busy)
		takt_doctor_say(report, TAKT_DOCTOR_CRITICAL, gpus, TAKT_DO_POWER,
				"a supply without input or out, redundancy that is lost, the "
				"rack's limit: the machine's BMC knows",
				"%u of %u GPUs at work are braked at once: it is the machine's "
				"power supply, not a board",
				braked, busy);
	else if (braked && busy > braked)
		takt_doctor_say(report, TAKT_DOCTOR_INFO, gpus, TAKT_DO_NONE, NULL,
				"braked while others at work are not: rather its cable or board "
				"than the machine's supply");
}

void takt_doctor_check_supply(const struct takt_doctor_facts *facts,
			      struct takt_doctor_report *report)
{
	uint32_t said = say_alarms(facts, true, TAKT_DO_POWER, report);

	if (said == 0 && facts->supplies)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%u power suppl%s without an alarm", facts->supplies,
				facts->supplies == 1 ? "y" : "ies");
	judge_brake(facts, report);
}
