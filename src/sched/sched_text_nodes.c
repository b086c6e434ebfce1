/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences about jobs that are told by nodes and not by the GPUs of one node, and the figures
 * behind them: how many nodes lack what, and when the job is predicted to start.
 */
#include <inttypes.h>

#include "sched/sched_text.h"

/* What the sentence says of itself; the figures say how many nodes it is true of. */
static const char *const sentences[TAKT_WHY_COUNT] = {
	[TAKT_WHY_ARRAY] = "as many jobs of its array run as may: it starts when one of them ends",
	[TAKT_WHY_QUOTA] =
		"its tenant has as many GPUs as it may have: it starts when other jobs of "
		"the tenant end, or the quota grows",
	[TAKT_WHY_IMPOSSIBLE] =
		"no node, and no set of nodes, is large enough for it: it runs when "
		"larger ones are added",
	[TAKT_WHY_SELECTOR] = "no node has the labels that it asks for, or all have taints that it "
			      "does not tolerate",
	[TAKT_WHY_MODEL] = "no node has GPUs of a model that it allows",
	[TAKT_WHY_UNHEALTHY] =
		"the nodes that are large enough are quarantined, lost or closed: they "
		"must come back",
	[TAKT_WHY_OUTSIDE] = "processes outside takt use the GPUs that it could have: they must "
			     "leave, or the job be allowed to share",
	[TAKT_WHY_GPUS] = "too few GPUs are free: jobs that run must end first",
	[TAKT_WHY_FRACTION] =
		"no GPU has so large a share left: jobs that share one must end first",
	[TAKT_WHY_DEV_MEMORY] = "no GPU has so much memory left",
	[TAKT_WHY_MIG] = "no GPU has room for a slice of that profile",
	[TAKT_WHY_NUMA] = "enough GPUs are free, but nowhere on one NUMA node",
	[TAKT_WHY_CPU] =
		"too few CPU cores are free where it could run: jobs that hold them must end",
	[TAKT_WHY_MEMORY] =
		"too little memory is free where it could run: jobs that hold it must end",
	[TAKT_WHY_PER_NODE] = "as many tasks of its kind run on each node as may",
	[TAKT_WHY_POLICY] =
		"the placement policy lets it wait rather than have it on the nodes that "
		"are free: much slower GPUs, or too much in use",
	[TAKT_WHY_AFFINITY] =
		"where it would be near to, or apart from, the jobs that it names there "
		"is no room",
	[TAKT_WHY_RESERVATION] =
		"what is free is reserved, or needed for maintenance, before the job "
		"would be over",
	[TAKT_WHY_TOPOLOGY] =
		"all its tasks would find room, but not in one domain of the level that "
		"it requires",
	[TAKT_WHY_PREEMPTION] = "jobs are pushed out for it: it starts when they are gone",
};

static void add_gang(struct takt_str *text, const struct takt_plan_wait *wait)
{
	takt_str_addf(text,
		      "only some of its %" PRIu32
		      " tasks would find room: it starts when as many as it needs can at once",
		      wait->tasks);
}

static void add_behind(struct takt_str *text, const struct takt_plan_wait *wait)
{
	if (wait->behind_job)
		takt_str_addf(text,
			      "waits its turn: job %" PRIu64
			      " is ahead of it, and what is free is kept for that one",
			      wait->behind_job);
	else
		takt_str_add(text, "waits its turn: what is free goes to jobs ahead of it");
}

static void add_dependency(struct takt_str *text, const struct takt_plan_wait *wait)
{
	if (wait->unblock == TAKT_UNBLOCK_RELEASE)
		takt_str_addf(text,
			      "comes after job %" PRIu64
			      ", which failed: it never starts, and should be removed",
			      wait->behind_job);
	else
		takt_str_addf(text, "comes after job %" PRIu64 ", which has not ended",
			      wait->behind_job);
}

bool takt_text_by_nodes(const struct takt_plan_wait *wait, struct takt_str *text)
{
	switch (wait->why) {
	case TAKT_WHY_DEPENDENCY:
		add_dependency(text, wait);
		return true;
	case TAKT_WHY_EARLIEST:
		takt_str_add(text, "its earliest start has not come");
		return true;
	case TAKT_WHY_GANG:
		add_gang(text, wait);
		return true;
	case TAKT_WHY_ORDER:
		if (wait->fit)
			add_behind(text, wait);
		return wait->fit != 0;
	default:
		break;
	}
	if (!sentences[wait->why] ||
	    (wait->fit == 0 && wait->tasks <= 1 && wait->why >= TAKT_WHY_IMPOSSIBLE &&
	     wait->why <= TAKT_WHY_GPUS))
		return false;
	takt_str_add(text, sentences[wait->why]);
	return true;
}

/* "of 12 nodes 3 could take a task; 5 lack cpu, 4 model" */
static void add_nodes(struct takt_str *text, const struct takt_plan_fit *fit)
{
	const char *before = ";";

	takt_str_addf(text, "; of %" PRIu32 " nodes %" PRIu32 " could take a task", fit->nodes,
		      fit->fit);
	for (int why = 0; why < TAKT_WHY_COUNT; why++) {
		if (fit->any[why] == 0)
			continue;
		takt_str_addf(text, "%s %s keeps it from %" PRIu32, before,
			      takt_why_name((enum takt_why)why), fit->any[why]);
		before = ",";
	}
}

static void add_span(struct takt_str *text, uint64_t span_ns)
{
	uint64_t seconds = span_ns / UINT64_C(1000000000);

	if (seconds >= 3600)
		takt_str_addf(text, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600,
			      seconds % 3600 / 60);
	else if (seconds >= 60)
		takt_str_addf(text, "%" PRIu64 " min", seconds / 60);
	else
		takt_str_addf(text, "%" PRIu64 " s", seconds);
}

static void add_start(struct takt_str *text, const struct takt_plan_wait *wait, uint64_t now_ns)
{
	static const char *const by[TAKT_START_HOW_COUNT] = {
		[TAKT_START_NOW] = "as soon as they are gone",
		[TAKT_START_RELEASE] = "when it is time",
		[TAKT_START_ESTIMATE] = "from the predicted ends of running jobs",
		[TAKT_START_BEHIND] = "from the predicted ends of running jobs and of those ahead",
	};

	if (wait->how == TAKT_START_UNKNOWN || wait->start_ns < now_ns)
		return;
	takt_str_add(text, "; predicted to start in ");
	add_span(text, wait->start_ns - now_ns);
	takt_str_addf(text, " (%s)", by[wait->how]);
}

int takt_why_details(const struct takt_plan *plan, const struct takt_plan_wait *wait,
		     uint64_t now_ns, struct takt_str *ret_text)
{
	takt_why_text(wait, ret_text);
	if (wait->fit > 0 && wait->fit <= plan->fit_count)
		add_nodes(ret_text, &plan->fits[wait->fit - 1]);
	add_start(ret_text, wait, now_ns);
	return ret_text->rc;
}
