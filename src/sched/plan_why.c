/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why each job waits that this plan has not placed.
 *
 * First what has nothing to do with room: a hold, a dependency, a time, a limit. A job of whole
 * GPUs on one node is then told of the node where it is nearest to running (sched_wait.c). For any
 * other the nodes are counted by what they lack for one of its tasks, and what could come true by
 * waiting goes before what cannot: if some nodes lack only CPU for now, CPU is the reason, whatever
 * the others are.
 */
#include <errno.h>
#include <string.h>

#include "sched/plan_state.h"

enum {
	KINDS = 2 * (TAKT_SCHED_MAX_NODE_GPUS + 2), /* (GPUs asked for, may share) */
};

struct explainer {
	struct takt_planner *planner;
	struct takt_plan_wait plain[KINDS]; /* why NONE = not known */
	struct takt_map fits;		    /* kind, gang or not -> index in fits, plus 1 */
	bool behind;			    /* the head has been passed */
	uint32_t ahead;
};

/* What the cluster calls it, and what a waiting job is told. */
static enum takt_why why_of(enum takt_fit cause)
{
	static const uint8_t why[TAKT_FIT_CAUSES] = {
		[TAKT_FIT_SCOPE] = TAKT_WHY_RESERVATION,  [TAKT_FIT_SELECTOR] = TAKT_WHY_SELECTOR,
		[TAKT_FIT_MODEL] = TAKT_WHY_MODEL,	  [TAKT_FIT_COUNT_OF] = TAKT_WHY_IMPOSSIBLE,
		[TAKT_FIT_SIZE] = TAKT_WHY_IMPOSSIBLE,	  [TAKT_FIT_DRAINED] = TAKT_WHY_UNHEALTHY,
		[TAKT_FIT_HEALTH] = TAKT_WHY_UNHEALTHY,	  [TAKT_FIT_OUTSIDE] = TAKT_WHY_OUTSIDE,
		[TAKT_FIT_DEVICES] = TAKT_WHY_GPUS,	  [TAKT_FIT_FRACTION] = TAKT_WHY_FRACTION,
		[TAKT_FIT_DEV_MEM] = TAKT_WHY_DEV_MEMORY, [TAKT_FIT_MIG] = TAKT_WHY_MIG,
		[TAKT_FIT_NUMA] = TAKT_WHY_NUMA,	  [TAKT_FIT_CPU] = TAKT_WHY_CPU,
		[TAKT_FIT_MEM] = TAKT_WHY_MEMORY,	  [TAKT_FIT_PER_NODE] = TAKT_WHY_PER_NODE,
		[TAKT_FIT_POLICY] = TAKT_WHY_POLICY,
	};

	return (enum takt_why)why[cause];
}

/* Room for several tasks is asked for only where there are several: it is dear the first time. */
static void count_nodes(struct takt_planner *planner, uint32_t kind, bool gang,
			struct takt_plan_fit *ret)
{
	struct takt_fit_counts counts;
	uint64_t room;

	takt_cluster_explain(planner->sched->cluster, kind, NULL, &counts);
	room = gang ? takt_cluster_domain_room(planner->sched->cluster, kind, 0) : counts.fit;
	*ret = (struct takt_plan_fit){
		.nodes = counts.nodes,
		.fit = counts.fit,
		.room = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX,
	};
	for (uint32_t cause = 0; cause < TAKT_FIT_CAUSES; cause++) {
		ret->first[why_of((enum takt_fit)cause)] += counts.first[cause];
		ret->any[why_of((enum takt_fit)cause)] += counts.all[cause];
	}
}

/* Counted once for a kind and plan, and once more for gangs of it. */
static const struct takt_plan_fit *fit_of(struct explainer *explainer, uint32_t kind, bool gang,
					  uint32_t *ret_index)
{
	uint64_t key = 2 * (uint64_t)kind + gang;
	struct takt_planner *planner = explainer->planner;
	const union takt_map_value *known = takt_map_u64_get(&explainer->fits, key);
	struct takt_plan_fit fit;

	if (!known) {
		union takt_map_value value = {.u64 = planner->fits.len + 1};

		count_nodes(planner, kind, gang, &fit);
		if (takt_vec_push(&planner->fits, fit) < 0 ||
		    takt_map_u64_put(&explainer->fits, key, value) < 0) {
			takt_plan_fail(planner, -ENOMEM);
			return NULL;
		}
		known = takt_map_u64_get(&explainer->fits, key);
	}
	*ret_index = (uint32_t)known->u64;
	return &planner->fits.at[known->u64 - 1];
}

/* No node can take one task: what is free and refused, the commonest of what waiting can change,
 * else what stands in the way of the nodes that come nearest. */
static enum takt_why why_no_node(const struct takt_plan_fit *fit)
{
	static const enum takt_why lasting[] = {
		TAKT_WHY_OUTSIDE, TAKT_WHY_UNHEALTHY, TAKT_WHY_IMPOSSIBLE,
		TAKT_WHY_MODEL,	  TAKT_WHY_SELECTOR,
	};
	enum takt_why best = fit->first[TAKT_WHY_POLICY] > 0 ? TAKT_WHY_POLICY : TAKT_WHY_NONE;

	for (int why = TAKT_WHY_GPUS; best != TAKT_WHY_POLICY && why <= TAKT_WHY_PER_NODE; why++)
		if (fit->first[why] > (best ? fit->first[best] : 0))
			best = (enum takt_why)why;
	for (size_t i = 0; best == TAKT_WHY_NONE && i < TAKT_ARRAY_LEN(lasting); i++)
		if (fit->first[lasting[i]] > 0)
			best = lasting[i];
	return best ? best : TAKT_WHY_IMPOSSIBLE;
}

/* Nobody ahead of it waits for room. */
static bool is_first(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	if (planner->head)
		return planner->head == entry;
	return planner->kept.len == 0 || planner->kept.at[0].entry == entry;
}

/* Tasks that find room where the job may be now, as far as it needs them. */
static uint32_t room_in_scope(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	const struct takt_sched *sched = planner->sched;
	const struct takt_scope *scope = takt_plan_scope(planner, entry, planner->now_ns);
	uint32_t least = takt_sched_min_tasks(&entry->job);
	uint32_t room = 0;

	if (!scope)
		return least;
	TAKT_VEC_EACH (it, &sched->hosts) {
		uint32_t node = (*it)->node;

		if (!(*it)->removed && room < least &&
		    takt_cluster_why_not(sched->cluster, entry->kind, node, scope) == 0)
			room += takt_cluster_room(sched->cluster, entry->kind, node);
	}
	return room;
}

/* Some node can take a task, and yet the job waits. */
static enum takt_why why_in_spite(struct takt_planner *planner,
				  const struct takt_sched_entry *entry,
				  const struct takt_plan_fit *fit)
{
	const struct takt_sched_job *job = &entry->job;

	if (fit->room < takt_sched_min_tasks(job))
		return TAKT_WHY_GANG;
	if (room_in_scope(planner, entry) < takt_sched_min_tasks(job))
		return job->near_group || job->apart_group ? TAKT_WHY_AFFINITY
							   : TAKT_WHY_RESERVATION;
	if (is_first(planner, entry) && takt_sched_tasks(job) > 1 &&
	    takt_cluster_request(planner->sched->cluster, entry->kind)->speeds)
		return TAKT_WHY_GANG; /* room enough, but not on one model */
	if (job->topology == TAKT_TOPOLOGY_REQUIRED && takt_sched_tasks(job) > 1 &&
	    is_first(planner, entry))
		return TAKT_WHY_TOPOLOGY;
	return TAKT_WHY_ORDER;
}

static void explain_general(struct explainer *explainer, const struct takt_sched_entry *entry,
			    struct takt_plan_wait *wait)
{
	const struct takt_plan_fit *fit =
		fit_of(explainer, entry->kind, takt_sched_tasks(&entry->job) > 1, &wait->fit);
	enum takt_why never = TAKT_WHY_NONE;

	if (!fit)
		return;
	wait->why = fit->fit == 0 ? why_no_node(fit) : why_in_spite(explainer->planner, entry, fit);
	if (wait->why >= TAKT_WHY_ORDER)
		never = takt_plan_why_never(explainer->planner, entry);
	if (never)
		wait->why = never;
	for (int why = 0; why < TAKT_WHY_COUNT; why++)
		if (fit->any[why] > 0)
			wait->also |= UINT64_C(1) << why;
}

/* What is set aside or reserved for others is not free to this job. */
static void take_out_kept(const struct takt_planner *planner, const struct takt_sched_job *job,
			  struct takt_plan_wait *wait)
{
	const struct takt_sched_host *host = takt_sched_nearest(planner->sched, job, wait->why);
	uint64_t free_gpus;

	if (!host || wait->free == 0)
		return;
	free_gpus = takt_sched_host_free_gpus(host, job->flags) & ~host->reserved;
	wait->kept = takt_sched_count(free_gpus & takt_plan_kept(planner, job, host));
	wait->kept = wait->kept < wait->free ? wait->kept : wait->free;
	wait->free -= wait->kept;
}

static void explain_plain(struct explainer *explainer, const struct takt_sched_entry *entry,
			  struct takt_plan_wait *wait)
{
	uint32_t need = entry->job.gpus < KINDS / 2 ? entry->job.gpus : KINDS / 2 - 1;
	struct takt_plan_wait *memo =
		&explainer->plain[2 * need + (entry->job.flags & TAKT_JOB_USE_OUTSIDE ? 1 : 0)];

	if (memo->why == TAKT_WHY_NONE)
		takt_sched_explain(explainer->planner->sched, &entry->job, memo);
	*wait = *memo;
	if (explainer->planner->sched->windows.len > 0)
		take_out_kept(explainer->planner, &entry->job, wait);
	if (entry->kind == TAKT_SCHED_NO_KIND)
		return;
	if (wait->why == TAKT_WHY_SELECTOR ||
	    (wait->why == TAKT_WHY_ORDER &&
	     (is_first(explainer->planner, entry) || explainer->planner->sched->windows.len > 0)))
		explain_general(explainer, entry, wait);
}

/* What is free and would do for the head stays free for it, where it is nearest to running. */
static void reserve_for_head(struct explainer *explainer, const struct takt_plan_wait *wait)
{
	struct takt_sched_entry *head = explainer->planner->head;
	struct takt_sched_host *host =
		takt_sched_nearest(explainer->planner->sched, &head->job, wait->why);

	explainer->behind = true;
	if (!host)
		return;
	host->reserved = takt_sched_host_free_gpus(host, head->job.flags);
	memset(explainer->plain, 0, sizeof(explainer->plain));
}

/* Free GPUs that are kept for a job count as promised for those behind it. */
static void reserve_kept(struct explainer *explainer, const struct takt_plan_kept *kept)
{
	for (uint32_t i = 0; i < kept->slot_count; i++) {
		const struct takt_slot *slot = &kept->slots[i];
		struct takt_sched_host *host = explainer->planner->sched->host_of.at[slot->node];

		host->reserved |= slot->dev_mask & takt_sched_host_free_gpus(host, UINT32_MAX);
	}
	memset(explainer->plain, 0, sizeof(explainer->plain));
}

static bool evicts_for(const struct takt_planner *planner, uint64_t job_id)
{
	TAKT_VEC_EACH (eviction, &planner->evictions)
		if (eviction->for_job == job_id)
			return true;
	return false;
}

/* Whether nothing of its own has a part in why it waits, so that all such jobs of its group wait
 * for the same. */
static bool is_alike(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	const struct takt_sched_job *job = &entry->job;
	bool one_is_first = planner->head || planner->kept.len > 0;

	return entry->group && planner->sched->windows.len == 0 && planner->evictions.len == 0 &&
	       !(job->flags & TAKT_JOB_HELD) && job->after_count == 0 &&
	       job->earliest_start_ns <= planner->now_ns &&
	       !(one_is_first && is_first(planner, entry));
}

static void find_reason(struct explainer *explainer, const struct takt_sched_entry *entry,
			bool plain, struct takt_plan_wait *wait)
{
	enum takt_why not_ready = takt_plan_not_ready(explainer->planner, entry);

	if (plain)
		explain_plain(explainer, entry, wait);
	else if (entry->kind != TAKT_SCHED_NO_KIND)
		explain_general(explainer, entry, wait);
	else
		wait->why = TAKT_WHY_IMPOSSIBLE;
	if (wait->why)
		wait->also |= UINT64_C(1) << wait->why;
	if (not_ready) {
		wait->why = not_ready;
		wait->must_end = 0;
	} else if (evicts_for(explainer->planner, entry->job.id)) {
		wait->why = TAKT_WHY_PREEMPTION;
		wait->must_end = 0;
	}
	wait->also |= UINT64_C(1) << wait->why;
}

/* Found once for all that are alike. For whole GPUs on one node that is done above: what is kept
 * for jobs ahead counts there. */
static void set_reason(struct explainer *explainer, const struct takt_sched_entry *entry,
		       struct takt_plan_wait *wait)
{
	struct takt_planner *planner = explainer->planner;
	struct takt_sched_group *group = entry->group;
	bool plain, alike = is_alike(planner, entry);

	if (alike && group->told == planner->sched->serial) {
		const struct takt_plan_wait *told = &planner->waits.at[group->told_at];

		wait->why = told->why;
		wait->also = told->also;
		wait->fit = told->fit;
		return;
	}
	plain = takt_plan_is_plain(entry);
	find_reason(explainer, entry, plain, wait);
	if (alike && !plain) {
		group->told = planner->sched->serial;
		group->told_at = planner->waits.len;
	}
}

/* Whom what is free is kept for: the first in line, or else a job that names its GPUs. 0 = nobody.
 */
static uint64_t kept_for_job(const struct takt_planner *planner,
			     const struct takt_sched_entry *entry)
{
	uint64_t job = 0;

	TAKT_VEC_EACH (kept, &planner->kept) {
		if (kept->entry == entry || kept->foreseen)
			continue;
		if (!takt_plan_names_gpus(planner, kept->entry))
			return kept->entry->job.id;
		job = job ? job : kept->entry->job.id;
	}
	return job;
}

static uint64_t job_ahead(const struct explainer *explainer, const struct takt_sched_entry *entry,
			  enum takt_why why)
{
	const struct takt_planner *planner = explainer->planner;

	if (why == TAKT_WHY_DEPENDENCY)
		return entry->job.after[0].job_id;
	if (why < TAKT_WHY_ORDER || why > TAKT_WHY_PREEMPTION)
		return 0;
	if (explainer->behind && planner->head != entry)
		return planner->head->job.id;
	return why == TAKT_WHY_ORDER ? kept_for_job(planner, entry) : 0;
}

static enum takt_unblock unblock_of(const struct takt_sched_entry *entry, enum takt_why why)
{
	static const uint8_t unblock[TAKT_WHY_COUNT] = {
		[TAKT_WHY_HELD] = TAKT_UNBLOCK_RELEASE,
		[TAKT_WHY_DEPENDENCY] = TAKT_UNBLOCK_JOBS_END,
		[TAKT_WHY_EARLIEST] = TAKT_UNBLOCK_TIME,
		[TAKT_WHY_ARRAY] = TAKT_UNBLOCK_JOBS_END,
		[TAKT_WHY_QUOTA] = TAKT_UNBLOCK_QUOTA,
		[TAKT_WHY_IMPOSSIBLE] = TAKT_UNBLOCK_LARGER,
		[TAKT_WHY_SELECTOR] = TAKT_UNBLOCK_LARGER,
		[TAKT_WHY_MODEL] = TAKT_UNBLOCK_LARGER,
		[TAKT_WHY_UNHEALTHY] = TAKT_UNBLOCK_REPAIR,
		[TAKT_WHY_OUTSIDE] = TAKT_UNBLOCK_OUTSIDE_USE,
		[TAKT_WHY_ORDER] = TAKT_UNBLOCK_JOB_AHEAD,
		[TAKT_WHY_RESERVATION] = TAKT_UNBLOCK_TIME,
	};

	if (why == TAKT_WHY_DEPENDENCY && entry->job.after[0].failed)
		return TAKT_UNBLOCK_RELEASE;
	return unblock[why] ? (enum takt_unblock)unblock[why] : TAKT_UNBLOCK_JOBS_END;
}

static void explain(struct explainer *explainer, struct takt_sched_entry *entry)
{
	struct takt_planner *planner = explainer->planner;
	struct takt_plan_wait wait = {0};

	set_reason(explainer, entry, &wait);
	wait.job_id = entry->job.id;
	wait.need = entry->job.gpus;
	wait.tasks = takt_sched_tasks(&entry->job);
	wait.ahead = explainer->ahead++;
	wait.behind_job = job_ahead(explainer, entry, wait.why);
	wait.unblock = unblock_of(entry, wait.why);
	takt_plan_fail(planner, takt_vec_push(&planner->waits, wait));
	if (entry == planner->head)
		reserve_for_head(explainer, &wait);
	else if (takt_plan_kept_for(planner, entry))
		reserve_kept(explainer, takt_plan_kept_for(planner, entry));
}

static void explain_queue(struct takt_planner *planner, const struct takt_sched_entry *only)
{
	struct takt_sched *sched = planner->sched;
	struct explainer explainer = {.planner = planner, .fits = TAKT_MAP_U64(1 << 20)};

	takt_plan_hold_nothing(planner);
	takt_plan_fail(planner, takt_sched_sort_queue(sched));
	sched->queue_gaps = 0;
	for (size_t i = 0; planner->rc == 0 && i < sched->queue.len; i++) {
		struct takt_sched_entry *entry = takt_sched_queue_at(sched, i);

		sched->queue_gaps += !entry;
		if (!entry || entry->slot_count > 0)
			continue;
		planner->waits_cut = !only && explainer.ahead >= planner->most_waits;
		if (planner->waits_cut)
			break;
		if (!only || entry == only || entry == planner->head)
			explain(&explainer, entry);
		else
			explainer.ahead++;
	}
	takt_map_fini(&explainer.fits);
	TAKT_VEC_EACH (host, &sched->hosts)
		(*host)->reserved = 0;
}

void takt_plan_explain(struct takt_planner *planner)
{
	explain_queue(planner, NULL);
	takt_plan_foresee_queue(planner, NULL);
}

/* The head's word is needed for that of those behind it, and dropped. */
void takt_plan_explain_one(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	struct takt_plan_wait wait = {0};

	explain_queue(planner, entry);
	TAKT_VEC_EACH (it, &planner->waits)
		if (it->job_id == entry->job.id)
			wait = *it;
	takt_vec_clear(&planner->waits);
	takt_plan_fail(planner, takt_vec_push(&planner->waits, wait));
	takt_plan_foresee_queue(planner, entry);
}
