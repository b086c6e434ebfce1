/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why runs of the same job take unlike times: by the GPUs that they were given, by the clocks they
 * had, by waiting for work; or by nothing that was seen. Of jobs that takt has run: same owner,
 * name, command and demands, ended well, undisturbed.
 *
 * How long a job takes may be its own affair (data, a seed, an early stop), so that only a GPU that
 * is slower every time is a warning.
 */
#include <string.h>

#include "health/doctor.h"

enum {
	RUNS_LEAST = 6,
	SLOW_MS = 1000,	       /* a GPU that is slower shows soon; */
	SPREAD_MS = 60 * 1000, /* starting makes short runs unlike */
	SIDE_LEAST = 4,	       /* all of 4 above all of 4 others is chance once in 70 times */
	SPREAD_PERCENT = 10,
	SLOWER_PERCENT = 5,
	CLOCK_PERCENT = 5,
	UTIL_POINTS = 10,
};

/* The runs of one thing, quickest first. */
struct group {
	const struct takt_doctor_facts *facts;
	uint32_t count;
	const struct takt_doctor_run *at[TAKT_DOCTOR_MAX_RUNS];
};

static void insert(struct group *group, const struct takt_doctor_run *run)
{
	uint32_t i = group->count++;

	for (; i > 0 && group->at[i - 1]->ran_ms > run->ran_ms; i--)
		group->at[i] = group->at[i - 1];
	group->at[i] = run;
}

/* Of the thing that the first of them is a run of, those that are not judged yet. */
static void collect(const struct takt_doctor_facts *facts, uint32_t first, bool *judged,
		    struct group *ret)
{
	ret->facts = facts;
	ret->count = 0;
	for (uint32_t i = first; i < facts->run_count; i++) {
		if (judged[i] || facts->run[i].thing != facts->run[first].thing)
			continue;
		judged[i] = true;
		insert(ret, &facts->run[i]);
	}
}

static uint64_t median_ms(const struct group *group)
{
	return group->at[group->count / 2]->ran_ms;
}

/* Between the quartiles, of the median. */
static uint64_t spread_percent(const struct group *group)
{
	uint64_t quick = group->at[group->count / 4]->ran_ms;
	uint64_t slow = group->at[group->count - 1 - group->count / 4]->ran_ms;

	return (slow - quick) * 100 / median_ms(group);
}

static bool same_board(const struct takt_doctor_facts *facts, uint64_t a, uint64_t b)
{
	return strcmp(facts->gpu[__builtin_ctzll(a)].facts.name,
		      facts->gpu[__builtin_ctzll(b)].facts.name) == 0;
}

/* Whether every run that had the GPU took longer than every one without; ret_percent: by how much,
 * median against median. */
static bool is_slower(const struct group *group, uint32_t gpu, uint32_t *ret_with,
		      uint32_t *ret_percent)
{
	uint32_t without = 0, with = 0;
	uint64_t bit = 1ull << gpu, mine, others;

	while (without < group->count && !(group->at[without]->gpus & bit))
		without++;
	for (uint32_t i = without; i < group->count; i++)
		with += (group->at[i]->gpus & bit) != 0 &&
			same_board(group->facts, group->at[i]->gpus, group->at[0]->gpus);
	if (without < SIDE_LEAST || with < SIDE_LEAST || without + with != group->count)
		return false;
	mine = group->at[without + with / 2]->ran_ms;
	others = group->at[without / 2]->ran_ms;
	*ret_with = with;
	*ret_percent = (uint32_t)((mine - others) * 100 / others);
	return *ret_percent >= SLOWER_PERCENT;
}

static bool say_slow_gpu(const struct group *group, struct takt_doctor_report *report)
{
	bool said = false;

	for (uint32_t gpu = 0; gpu < group->facts->gpu_count; gpu++) {
		uint32_t with, percent;

		if (!is_slower(group, gpu, &with, &percent))
			continue;
		said = true;
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 1ull << gpu, TAKT_DO_SLOW_GPU,
				"takt doctor --seconds 10 while it works: heat, a power limit, its "
				"PCIe link; takt doctor JOB of one that runs there",
				"all %u runs of '%s' with it took longer than all %u without, by "
				"%u %%",
				with, group->at[0]->name, group->count - with, percent);
	}
	return said;
}

/* Of the half of the runs from `from` on, those that tell. */
static bool mean_of_half(const struct group *group, bool slow, bool clock, uint32_t *ret)
{
	uint32_t half = group->count / 2, from = slow ? group->count - half : 0;
	uint64_t sum = 0;

	for (uint32_t i = from; i < from + half; i++) {
		uint32_t value = clock ? group->at[i]->sm_mhz : group->at[i]->util_permille;

		if (value == 0)
			return false;
		sum += value;
	}
	*ret = (uint32_t)(sum / half);
	return true;
}

/* What else differs between the quick and the slow half. */
static void say_why(const struct group *group, struct takt_doctor_report *report)
{
	uint32_t quick, slow;
	uint64_t percent = spread_percent(group);
	const char *name = group->at[0]->name;

	if (mean_of_half(group, false, true, &quick) && mean_of_half(group, true, true, &slow) &&
	    slow * 100 <= quick * (100 - CLOCK_PERCENT))
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%u runs of '%s' differ by %u %%: the slow half ran at %u MHz, the "
				"quick one at %u (heat, power, or a promise that takt keeps)",
				group->count, name, (unsigned)percent, slow, quick);
	else if (mean_of_half(group, false, false, &quick) &&
		 mean_of_half(group, true, false, &slow) && slow + UTIL_POINTS * 10 <= quick)
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%u runs of '%s' differ by %u %%: in the slow half the GPUs were "
				"busy for %u %% of the time, in the quick one for %u (input, or "
				"CPUs that others use)",
				group->count, name, (unsigned)percent, slow / 10, quick / 10);
	else
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%u runs of '%s' differ by %u %% between quartiles; GPUs, clocks "
				"and utilisation do not explain it",
				group->count, name, (unsigned)percent);
}

void takt_doctor_check_runs(const struct takt_doctor_facts *facts,
			    struct takt_doctor_report *report)
{
	bool judged[TAKT_DOCTOR_MAX_RUNS] = {false};
	uint32_t even = 0;
	struct group group;

	for (uint32_t i = 0; i < facts->run_count; i++) {
		if (judged[i])
			continue;
		collect(facts, i, judged, &group);
		if (group.count < RUNS_LEAST || median_ms(&group) < SLOW_MS ||
		    say_slow_gpu(&group, report) || median_ms(&group) < SPREAD_MS)
			continue;
		if (spread_percent(&group) >= SPREAD_PERCENT)
			say_why(&group, report);
		else
			even++;
	}
	if (even)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"of %u kind%s of jobs all runs took alike", even,
				even == 1 ? "" : "s");
}
