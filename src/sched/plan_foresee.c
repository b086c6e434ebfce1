/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When and where those start that wait: one plan for all of them, so that no two are told of the
 * same GPU at the same time.
 *
 * The queue is gone through in its order. Each job gets the first place in time that what runs and
 * what was kept or foreseen for those before it leave: within its array's limit, beside the windows
 * of others, and, where nothing overtakes, not before those that go first. Nobody is held back for
 * what is only foreseen.
 *
 * Nothing is foreseen of a job that waits for what takt does not govern, for a job that it comes
 * after, or for its tenant's quota.
 */
#include "sched/plan_state.h"

enum {
	FORESEEN = 32,	/* jobs, in a plan for all */
	LOOKED_AT = 256 /* jobs, for one */
};

struct walk {
	struct takt_planner *planner;
	uint64_t floor_ns;
	bool behind; /* the head has been passed */
};

/* Some job that runs says how long, a window ends, or a job waits for its time; else no start can
 * be told. */
static bool can_look_ahead(struct takt_planner *planner)
{
	if (planner->sched->windows.len > 0)
		return true;
	TAKT_VEC_EACH (wait, &planner->waits)
		if (wait->why == TAKT_WHY_EARLIEST)
			return true;
	if (planner->sched->estimated == 0)
		return false;
	takt_plan_list_ends(planner);
	TAKT_VEC_EACH (end, &planner->ends)
		if (end->entry)
			return end->end_ns != UINT64_MAX;
	return false;
}

static bool may_be_foreseen(const struct takt_planner *planner,
			    const struct takt_sched_entry *entry)
{
	enum takt_why not_ready = takt_plan_not_ready(planner, entry);

	return entry->kind != TAKT_SCHED_NO_KIND &&
	       (not_ready == TAKT_WHY_NONE || not_ready == TAKT_WHY_EARLIEST ||
		not_ready == TAKT_WHY_ARRAY);
}

/* Where nothing overtakes the first job that waits for GPUs, those behind it start when it does, at
 * the earliest. */
static void raise_floor(struct walk *walk, const struct takt_sched_entry *entry, uint64_t start_ns)
{
	const struct takt_planner *planner = walk->planner;

	walk->behind = walk->behind || entry == planner->head;
	if (walk->behind && entry->job.gpus > 0 && start_ns > walk->floor_ns &&
	    takt_plan_not_ready(planner, entry) == TAKT_WHY_NONE)
		walk->floor_ns = start_ns;
}

static void foresee(struct walk *walk, struct takt_sched_entry *entry)
{
	struct takt_planner *planner = walk->planner;
	const struct takt_plan_kept *kept = takt_plan_kept_for(planner, entry);

	if (!kept && may_be_foreseen(planner, entry) &&
	    takt_plan_foresee(planner, entry, entry->job.gpus > 0 ? walk->floor_ns : 0))
		kept = takt_vec_last(&planner->kept);
	if (!kept)
		return;
	raise_floor(walk, entry, kept->start_ns);
	/* By then it has started, or what it rests on has not come true. */
	if (kept->start_ns != UINT64_MAX)
		takt_plan_wake_at(planner, kept->start_ns);
}

static void tell(struct takt_planner *planner, struct takt_plan_wait *wait)
{
	const struct takt_plan_kept *kept = NULL;

	TAKT_VEC_EACH (it, &planner->kept)
		if (it->entry->job.id == wait->job_id)
			kept = it;
	if (kept && kept->how != TAKT_START_UNKNOWN) {
		wait->how = kept->how;
		wait->start_ns = kept->start_ns;
	} else if (wait->why == TAKT_WHY_PREEMPTION) {
		wait->how = TAKT_START_NOW;
		wait->start_ns = planner->now_ns;
	}
}

void takt_plan_foresee_queue(struct takt_planner *planner, const struct takt_sched_entry *last)
{
	struct takt_sched *sched = planner->sched;
	uint32_t left = last ? LOOKED_AT : FORESEEN;
	struct walk walk = {.planner = planner};

	planner->ends_known = planner->evictions.len == 0 && planner->ends_known;
	if (planner->rc == 0 && can_look_ahead(planner)) {
		for (size_t i = 0; planner->rc == 0 && left > 0 && i < sched->queue.len; i++) {
			struct takt_sched_entry *entry = takt_sched_queue_at(sched, i);

			if (!entry || entry->slot_count > 0)
				continue;
			left--;
			/* Behind a job without a time there is none. */
			if (walk.floor_ns != UINT64_MAX)
				foresee(&walk, entry);
			if (entry == last)
				break;
		}
	}
	TAKT_VEC_EACH (wait, &planner->waits)
		tell(planner, wait);
}
