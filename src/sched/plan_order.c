/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main pass of a plan: waiting jobs in queue order, each placed if it fits.
 *
 * It goes by groups of jobs that are alike. The first group of the heap has the job that goes
 *first; if that one finds no place, then how far its group may still be looked at is the backfill's
 *word:
 *
 *	none		the job is the head, nothing that wants GPUs is placed behind it
 *	greedy		the group is done with, others may overtake
 *	easy, ...	GPUs are kept for the job, then others may overtake as long as they are not
 *in its way; how far a job reaches into what is kept decides, so of a group that failed only jobs
 *that reach less far are tried again
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "sched/plan_state.h"

/* A ready job is out of its group's heap until the end of the plan. */
static void set_aside(struct takt_planner *planner, struct takt_sched_entry *entry)
{
	takt_sched_unready(planner->sched, entry);
	entry->next_stashed = planner->stash;
	planner->stash = entry;
}

static void block(struct takt_planner *planner, struct takt_sched_group *group)
{
	takt_sched_block(planner->sched, group);
	group->next_blocked = planner->blocked;
	planner->blocked = group;
}

void takt_plan_put_back(struct takt_planner *planner)
{
	struct takt_sched_entry *entry;

	while ((entry = planner->stash)) {
		planner->stash = entry->next_stashed;
		takt_sched_make_ready(planner->sched, entry);
	}
	while (planner->blocked) {
		struct takt_sched_group *group = planner->blocked;

		planner->blocked = group->next_blocked;
		takt_sched_unblock(planner->sched, group);
	}
	TAKT_VEC_EACH (group, &planner->sched->groups)
		(*group)->blocked_reach = UINT32_MAX;
}

/* Tenants. */

static uint64_t asked_by(const struct takt_planner *planner, uint32_t tenant)
{
	const union takt_map_value *value = takt_map_u64_get(&planner->asked, tenant);

	return value ? value->u64 : 0;
}

/* From the tenant up: what this plan has placed counts as had. */
bool takt_plan_within_quota(const struct takt_planner *planner,
			    const struct takt_sched_entry *entry, uint32_t tasks)
{
	const struct takt_tenants *tenants = planner->sched->tenants;
	uint64_t milli = (uint64_t)entry->task_milli * tasks;
	uint32_t id = entry->job.tenant;

	while (id != TAKT_TENANT_ROOT) {
		const struct takt_tenant *tenant = takt_tenants_find(tenants, id);
		uint64_t has = takt_tenants_has_milli(tenants, id) + asked_by(planner, id) + milli;

		if (tenant->limit_milli && has > tenant->limit_milli)
			return false;
		if (!tenant->may_borrow && has > tenant->quota_milli)
			return false;
		id = tenant->parent;
	}
	return true;
}

static void charge(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	uint32_t id = entry->job.tenant;

	while (id != TAKT_TENANT_ROOT) {
		union takt_map_value value = {.u64 = asked_by(planner, id) +
						     takt_sched_gpu_milli(entry)};
		int rc = takt_map_u64_put(&planner->asked, id, value);

		if (rc < 0)
			takt_plan_fail(planner, rc);
		id = takt_tenants_find(planner->sched->tenants, id)->parent;
	}
}

enum takt_why takt_plan_not_ready(const struct takt_planner *planner,
				  const struct takt_sched_entry *entry)
{
	const struct takt_sched_job *job = &entry->job;

	if (job->flags & TAKT_JOB_HELD)
		return TAKT_WHY_HELD;
	if (job->after_count > 0)
		return TAKT_WHY_DEPENDENCY;
	if (job->earliest_start_ns > planner->now_ns)
		return TAKT_WHY_EARLIEST;
	if (entry->array && job->array_limit && entry->array->running >= job->array_limit)
		return TAKT_WHY_ARRAY;
	return takt_plan_within_quota(planner, entry, takt_sched_min_tasks(job)) ? TAKT_WHY_NONE
										 : TAKT_WHY_QUOTA;
}

/* Placing. */

/* The instance just taken is the only one there. */
static bool is_first(const struct takt_device *device)
{
	uint32_t instances = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(device->mig_at); i++)
		instances += device->mig_at[i] != 0;
	return instances == 1;
}

static void add_layout(struct takt_planner *planner, const struct takt_sched_entry *entry,
		       const struct takt_slot *slot)
{
	const struct takt_node *node = takt_cluster_node(planner->sched->cluster, slot->node);
	uint32_t gpu = (uint32_t)__builtin_ctzll(slot->dev_mask);
	struct takt_plan_layout layout = {
		.node_id = planner->sched->host_of.at[slot->node]->id,
		.gpu = gpu,
		.profile = entry->job.task.mig_profile,
		.start = slot->mig_start,
		.first = is_first(&node->device[gpu]),
		.for_job = entry->job.id,
	};

	if (node->device[gpu].mig != TAKT_MIG_FIXED) /* there already */
		takt_plan_fail(planner, takt_vec_push(&planner->layouts, layout));
}

static int64_t pair_sum(const struct takt_sched_host *host, uint64_t mask)
{
	int64_t sum = 0;

	for (uint64_t i = mask; i; i &= i - 1)
		for (uint64_t j = i & (i - 1); j; j &= j - 1)
			sum += host->pair_score[(size_t)__builtin_ctzll(i) * host->gpu_count +
						(size_t)__builtin_ctzll(j)];
	return sum;
}

static void add_placement(struct takt_planner *planner, const struct takt_sched_entry *entry,
			  uint32_t task)
{
	const struct takt_slot *slot = &entry->slots[task];
	struct takt_sched_host *host = planner->sched->host_of.at[slot->node];
	struct takt_plan_placement placement = {
		.job_id = entry->job.id,
		.node_id = host->id,
		.gpu_mask = slot->dev_mask,
		.pair_score_sum = pair_sum(host, slot->dev_mask),
		.task = task,
		.tasks = entry->slot_count,
		.milli = slot->dev_mask ? slot->milli : TAKT_REQUEST_WHOLE,
		.mig_start = slot->mig_start,
	};

	host->taken |= slot->dev_mask;
	takt_plan_fail(planner, takt_vec_push(&planner->placements, placement));
	if (entry->job.task.mig_profile)
		add_layout(planner, entry, slot);
}

static int keep_slots(struct takt_planner *planner, struct takt_sched_entry *entry, uint32_t n)
{
	struct takt_slot *slots = planner->slots;

	if (n > 1) {
		slots = takt_calloc(n, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		memcpy(slots, planner->slots, n * sizeof(*slots));
	}
	if (takt_vec_push(&planner->sched->open.placed, entry) < 0) {
		if (n > 1)
			takt_free(slots);
		return -ENOMEM;
	}
	takt_sched_set_slots(entry, slots, n, n > 1 ? NULL : slots);
	return 0;
}

void takt_plan_start(struct takt_planner *planner, struct takt_sched_entry *entry, uint32_t n)
{
	int rc = keep_slots(planner, entry, n);

	if (rc < 0) {
		takt_plan_fail(planner, rc);
		return;
	}
	takt_sched_unready(planner->sched, entry);
	if (entry->array)
		entry->array->running++;
	charge(planner, entry);
	takt_plan_use_spare(planner, entry, entry->slots, n, planner->now_ns);
	for (uint32_t task = 0; task < n; task++)
		add_placement(planner, entry, task);
	planner->ends_known = false;
}

/* What becomes of a job that fits nowhere now. */

/* It waits for what takt does not govern: no job that ends makes room for it. */
static bool is_ungoverned(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	enum takt_start_how how;

	if (takt_plan_is_plain(entry) && planner->sched->windows.len == 0 &&
	    planner->sched->tainted == 0)
		return takt_sched_ungoverned(planner->sched, entry->job.gpus, entry->job.flags) !=
		       TAKT_WHY_NONE;
	return !takt_plan_can_start(planner, entry, &how) || how == TAKT_START_RELEASE;
}

static uint32_t reserve_depth(const struct takt_planner *planner)
{
	switch (planner->sched->config.backfill) {
	case TAKT_BACKFILL_EASY:
		return 1;
	case TAKT_BACKFILL_CONSERVATIVE:
		return planner->sched->config.reserve_depth;
	default:
		return 0;
	}
}

/* Where the head will start is told to those who ask for reasons: nothing overtakes it anyway. */
static void become_head(struct takt_planner *planner, struct takt_sched_entry *entry)
{
	planner->head = entry;
	if (planner->sched->config.reasons == TAKT_REASONS_ALL)
		(void)takt_plan_reserve(planner, entry);
}

/* Of the jobs that are alike the next may fit where this one does not: it may be over before a
 * window begins. */
static bool length_decides(const struct takt_planner *planner)
{
	TAKT_VEC_EACH (window, &planner->sched->windows)
		if (window->end_ns > planner->now_ns)
			return true;
	return false;
}

bool takt_plan_names_gpus(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	return takt_cluster_request(planner->sched->cluster, entry->kind)->only_devices != 0;
}

/* For so many of those that may go anywhere something is kept. */
static uint32_t kept_in_line(const struct takt_planner *planner)
{
	uint32_t n = 0;

	TAKT_VEC_EACH (kept, &planner->kept)
		n += !takt_plan_names_gpus(planner, kept->entry);
	return n;
}

/* For those that wait: all that name their GPUs and the first in line, unless whoever fits goes. */
static bool is_to_keep(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	if (takt_plan_names_gpus(planner, entry))
		return planner->sched->config.backfill != TAKT_BACKFILL_GREEDY;
	return kept_in_line(planner) < reserve_depth(planner);
}

static void did_not_fit(struct takt_planner *planner, struct takt_sched_entry *entry,
			uint32_t reach)
{
	struct takt_sched_group *group = entry->group;

	if (is_to_keep(planner, entry) && takt_plan_reserve(planner, entry)) {
		set_aside(planner, entry);
		return;
	}
	if (planner->sched->config.backfill == TAKT_BACKFILL_NONE) {
		if (entry->job.gpus > 0 && !takt_plan_declines(planner, entry) &&
		    !is_ungoverned(planner, entry))
			become_head(planner, entry);
		if (planner->head || !length_decides(planner))
			block(planner, group);
		else
			set_aside(planner, entry);
		return;
	}
	planner->tried += planner->kept.len > 0 || length_decides(planner);
	if (planner->tried > planner->sched->config.backfill_depth) {
		block(planner, group);
		return;
	}
	if (length_decides(planner)) {
		set_aside(planner, entry);
		return;
	}
	group->blocked_reach = reach;
	if (reach == 0)
		block(planner, group);
	else
		set_aside(planner, entry);
}

static uint64_t waiting_milli(struct takt_planner *planner)
{
	if (planner->waiting_known)
		return planner->waiting_milli;
	planner->waiting_known = true;
	TAKT_VEC_EACH (it, &planner->sched->jobs)
		if (!takt_sched_is_placed(*it))
			planner->waiting_milli += takt_sched_gpu_milli(*it);
	return planner->waiting_milli;
}

/* The order policy wants what is free to be left to others. */
static bool is_held_back(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	const struct takt_sched *sched = planner->sched;
	const struct takt_cluster_totals *totals = takt_cluster_totals(sched->cluster);
	struct takt_order_load load = {.capacity_milli = totals->usable * 1000};
	uint64_t held_milli = (uint64_t)totals->held_milli;
	struct takt_order_job job;

	if (!sched->config.order->holds)
		return false;
	takt_sched_order_job(sched, entry, &job);
	load.free_milli = load.capacity_milli > held_milli ? load.capacity_milli - held_milli : 0;
	load.waiting_milli = waiting_milli(planner);
	return takt_order_holds(sched->config.order, &sched->order_config, &job, &load,
				planner->now_ns);
}

/* Tries the job that goes first. */
static void consider(struct takt_planner *planner, struct takt_sched_entry *entry)
{
	struct takt_sched_group *group = entry->group;
	uint32_t reach;
	uint32_t n;

	reach = takt_plan_hold_for(planner, entry);
	if (reach >= group->blocked_reach) {
		planner->tried++;
		set_aside(planner, entry);
		return;
	}
	if (is_held_back(planner, entry)) {
		set_aside(planner, entry);
		return;
	}
	n = takt_plan_place(planner, entry, planner->now_ns);
	if (n == 0) {
		did_not_fit(planner, entry, reach);
		return;
	}
	takt_plan_start(planner, entry, n);
	if (planner->sched->windows.len > 0)
		takt_plan_keep_others(planner, entry);
}

/* Whether the group's first job is to be tried; else it is out of the way. */
static bool is_next(struct takt_planner *planner, struct takt_sched_group *group,
		    struct takt_sched_entry *entry)
{
	if (entry->kind == TAKT_SCHED_NO_KIND || (planner->head && entry->job.gpus > 0) ||
	    (planner->tried > planner->sched->config.backfill_depth && entry->job.gpus > 0)) {
		block(planner, group);
		return false;
	}
	switch (takt_plan_not_ready(planner, entry)) {
	case TAKT_WHY_NONE:
		return true;
	case TAKT_WHY_ARRAY:
	case TAKT_WHY_QUOTA:
		block(planner, group);
		return false;
	case TAKT_WHY_EARLIEST:
		takt_plan_wake_at(planner, entry->job.earliest_start_ns);
		set_aside(planner, entry);
		return false;
	default:
		set_aside(planner, entry);
		return false;
	}
}

void takt_plan_place_in_order(struct takt_planner *planner)
{
	struct takt_sched_group *group;

	while (planner->rc == 0 && (group = takt_sched_first_group(planner->sched))) {
		struct takt_sched_entry *entry = takt_sched_first_job(group);

		if (is_next(planner, group, entry))
			consider(planner, entry);
	}
	takt_plan_hold_nothing(planner);
}
