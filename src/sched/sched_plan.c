/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan: its phases, in order, and what they fill. */
#include "sched/plan_state.h"

#include <errno.h>

#include "base/mem.h"

enum {
	LIST_MAX = 1 << 24, /* entries of any list of a plan */
};

void takt_plan_fail(struct takt_planner *planner, int rc)
{
	if (planner->rc == 0)
		planner->rc = rc;
}

void takt_plan_wake_at(struct takt_planner *planner, uint64_t at_ns)
{
	if (at_ns > planner->now_ns && at_ns < planner->wakeup_ns)
		planner->wakeup_ns = at_ns;
}

static void planner_init(struct takt_planner *planner, struct takt_sched *sched,
			 struct takt_plan *plan, uint64_t now_ns, uint32_t most_waits)
{
	*planner = (struct takt_planner){
		.sched = sched,
		.plan = plan,
		.now_ns = now_ns,
		.most_waits = most_waits,
		.wakeup_ns = UINT64_MAX,
		.asked = TAKT_MAP_U64(LIST_MAX),
	};
	planner->placements.max = planner->waits.max = planner->evictions.max = LIST_MAX;
	planner->migrations.max = planner->reservations.max = planner->layouts.max = LIST_MAX;
	planner->fits.max = planner->ends.max = planner->kept.max = planner->holds.max = LIST_MAX;
	planner->leave_out.max = planner->keep_off.max = LIST_MAX;
	planner->other_models.max = LIST_MAX;
}

/* Nodes that flap, keys as of now, the mark under which the plan is made. */
static void begin(struct takt_planner *planner)
{
	struct takt_sched *sched = planner->sched;

	takt_sched_close(sched);
	takt_plan_fini(planner->plan);
	takt_plan_wake_at(planner, takt_sched_update_rest(sched, planner->now_ns));
	takt_plan_fail(planner, takt_sched_refresh_keys(sched, planner->now_ns));
	sched->serial++;
	sched->open.mark = takt_cluster_mark(sched->cluster);
	sched->open.is = true;
}

#define HAND_OVER(member, counter)                   \
	do {                                         \
		plan->member = planner->member.at;   \
		plan->counter = planner->member.len; \
		planner->member.at = NULL;           \
		takt_vec_fini(&planner->member);     \
	} while (0)

static void hand_over(struct takt_planner *planner)
{
	struct takt_plan *plan = planner->plan;

	plan->version = planner->sched->version;
	plan->serial = planner->sched->serial;
	plan->waits_cut = planner->waits_cut;
	if (planner->sched->keys_until_ns != UINT64_MAX)
		takt_plan_wake_at(planner, planner->sched->keys_until_ns);
	plan->next_wakeup_ns = planner->wakeup_ns == UINT64_MAX ? 0 : planner->wakeup_ns;
	HAND_OVER(placements, placement_count);
	HAND_OVER(waits, wait_count);
	HAND_OVER(evictions, eviction_count);
	HAND_OVER(migrations, migration_count);
	HAND_OVER(reservations, reservation_count);
	HAND_OVER(layouts, layout_count);
	HAND_OVER(fits, fit_count);
}

static void planner_fini(struct takt_planner *planner)
{
	takt_vec_fini(&planner->placements);
	takt_vec_fini(&planner->waits);
	takt_vec_fini(&planner->evictions);
	takt_vec_fini(&planner->migrations);
	takt_vec_fini(&planner->reservations);
	takt_vec_fini(&planner->layouts);
	takt_vec_fini(&planner->fits);
	takt_map_fini(&planner->asked);
	takt_vec_fini(&planner->ends);
	takt_plan_reserve_fini(planner);
	takt_vec_fini(&planner->holds);
	takt_vec_fini(&planner->leave_out);
	takt_vec_fini(&planner->keep_off);
	takt_vec_fini(&planner->other_models);
	takt_free(planner->slots);
}

static int end(struct takt_planner *planner, struct takt_err *err)
{
	int rc = planner->rc;

	if (rc == 0)
		hand_over(planner);
	else
		takt_sched_close(planner->sched);
	planner_fini(planner);
	return rc < 0 ? takt_err_set(err, rc, "plan for %zu jobs", planner->sched->jobs.len) : 0;
}

int takt_sched_run(struct takt_sched *sched, uint64_t now_ns, uint64_t seed, struct takt_plan *plan,
		   struct takt_err *err)
{
	(void)seed;
	return takt_sched_run_briefly(sched, now_ns, UINT32_MAX, plan, err);
}

int takt_sched_run_briefly(struct takt_sched *sched, uint64_t now_ns, uint32_t most_waits,
			   struct takt_plan *plan, struct takt_err *err)
{
	struct takt_planner planner;

	planner_init(&planner, sched, plan, now_ns, most_waits);
	begin(&planner);
	takt_plan_handle_failures(&planner);
	takt_plan_place_in_order(&planner);
	takt_plan_preempt(&planner);
	takt_plan_consolidate(&planner);
	if (sched->config.reasons == TAKT_REASONS_ALL)
		takt_plan_explain(&planner);
	takt_plan_add_reservations(&planner);
	takt_plan_put_back(&planner);
	return end(&planner, err);
}

int takt_sched_why(struct takt_sched *sched, uint64_t job_id, uint64_t now_ns,
		   struct takt_plan *plan, struct takt_err *err)
{
	struct takt_sched_entry *entry = takt_map_u64_ptr(&sched->by_id, job_id);
	struct takt_planner planner;

	if (!entry || entry->phase != TAKT_SCHED_WAITING)
		return takt_err_set(err, -ENOENT, "job %llu does not wait",
				    (unsigned long long)job_id);
	planner_init(&planner, sched, plan, now_ns, UINT32_MAX);
	begin(&planner);
	takt_plan_handle_failures(&planner);
	takt_plan_place_in_order(&planner);
	takt_plan_preempt(&planner);
	takt_plan_consolidate(&planner);
	if (entry->slot_count == 0)
		takt_plan_explain_one(&planner, entry);
	takt_plan_add_reservations(&planner);
	takt_plan_put_back(&planner);
	return end(&planner, err);
}

void takt_plan_fini(struct takt_plan *plan)
{
	takt_free(plan->placements);
	takt_free(plan->waits);
	takt_free(plan->evictions);
	takt_free(plan->migrations);
	takt_free(plan->reservations);
	takt_free(plan->layouts);
	takt_free(plan->fits);
	*plan = (struct takt_plan){0};
}
