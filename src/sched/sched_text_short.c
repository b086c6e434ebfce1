/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits in a few words, for the last column of a table; sched_text.c has the sentence. */
#include <inttypes.h>

#include "sched/sched_plan.h"

/* Those that no figure makes clearer. */
static const char *const words[TAKT_WHY_COUNT] = {
	[TAKT_WHY_HELD] = "held",
	[TAKT_WHY_EARLIEST] = "not yet time",
	[TAKT_WHY_ARRAY] = "limit of its array",
	[TAKT_WHY_QUOTA] = "quota of its tenant",
	[TAKT_WHY_IMPOSSIBLE] = "no machine is large enough",
	[TAKT_WHY_SELECTOR] = "no node has its labels",
	[TAKT_WHY_MODEL] = "no GPU of its model",
	[TAKT_WHY_UNHEALTHY] = "GPUs out of service",
	[TAKT_WHY_OUTSIDE] = "GPUs used outside takt",
	[TAKT_WHY_ORDER] = "its turn has not come",
	[TAKT_WHY_GPUS] = "needs more GPUs",
	[TAKT_WHY_FRACTION] = "needs a larger share",
	[TAKT_WHY_DEV_MEMORY] = "needs GPU memory",
	[TAKT_WHY_MIG] = "needs room for its slice",
	[TAKT_WHY_NUMA] = "needs one NUMA node",
	[TAKT_WHY_CPU] = "needs CPU cores",
	[TAKT_WHY_MEMORY] = "needs memory",
	[TAKT_WHY_PER_NODE] = "limit of its nodes",
	[TAKT_WHY_POLICY] = "placement policy",
	[TAKT_WHY_AFFINITY] = "needs its neighbours",
	[TAKT_WHY_RESERVATION] = "reserved for others",
	[TAKT_WHY_TOPOLOGY] = "needs GPUs near each other",
	[TAKT_WHY_PREEMPTION] = "others make room",
};

static void add_dependency(const struct takt_plan_wait *wait, struct takt_str *text)
{
	takt_str_addf(text, "after %" PRIu64 "%s", wait->behind_job,
		      wait->unblock == TAKT_UNBLOCK_RELEASE ? ", which failed" : "");
}

static void add_behind(const struct takt_plan_wait *wait, const char *before, struct takt_str *text)
{
	if (wait->behind_job)
		takt_str_addf(text, "%sbehind %" PRIu64, before, wait->behind_job);
}

/* Whether a figure says more than the words; where it does the text has it. */
static bool add_figure(const struct takt_plan_wait *wait, struct takt_str *text)
{
	switch (wait->why) {
	case TAKT_WHY_DEPENDENCY:
		add_dependency(wait, text);
		return true;
	case TAKT_WHY_ORDER:
		add_behind(wait, "", text);
		return wait->behind_job != 0;
	case TAKT_WHY_GPUS:
		if (wait->must_end == 0)
			return false;
		takt_str_addf(text, "needs %" PRIu32 " more", wait->must_end);
		add_behind(wait, ", ", text);
		return true;
	case TAKT_WHY_IMPOSSIBLE:
		if (wait->total == 0 || wait->need <= wait->total)
			return false;
		takt_str_addf(text, "needs %" PRIu32 ", there are %" PRIu32, wait->need,
			      wait->total);
		return true;
	case TAKT_WHY_UNHEALTHY:
		if (wait->unhealthy == 0)
			return false;
		takt_str_addf(text, "%" PRIu32 " out of service", wait->unhealthy);
		return true;
	case TAKT_WHY_OUTSIDE:
		if (wait->outside == 0)
			return false;
		takt_str_addf(text, "%" PRIu32 " used outside takt", wait->outside);
		return true;
	case TAKT_WHY_GANG:
		takt_str_addf(text, "needs all %" PRIu32 " at once", wait->tasks);
		return true;
	default:
		return false;
	}
}

int takt_why_words(const struct takt_plan_wait *wait, struct takt_str *ret_text)
{
	if ((size_t)wait->why < TAKT_WHY_COUNT && !add_figure(wait, ret_text) && words[wait->why])
		takt_str_add(ret_text, words[wait->why]);
	return ret_text->rc;
}
