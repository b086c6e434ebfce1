/* SPDX-License-Identifier: Apache-2.0 */
/* Who is pushed out, see the header. */
#include "sched/plan_victims.h"

#include <errno.h>

#include "base/sort.h"

enum {
	LIST_MAX = 1 << 24,
	RESTART_MS = 60000,
};

static int by_cost(const void *va, const void *vb, void *ctx)
{
	const struct takt_victim *a = va;
	const struct takt_victim *b = vb;

	(void)ctx;
	if (a->cost != b->cost)
		return a->cost < b->cost ? -1 : 1;
	return a->entry->job.submit_seq > b->entry->job.submit_seq ? -1 : 1;
}

/* Numbers of nodes depend on who was told of first; ranks do not. */
static int by_node(const void *va, const void *vb, void *ctx)
{
	const struct takt_victim_at *a = va;
	const struct takt_victim_at *b = vb;

	if (a->node != b->node)
		return takt_cluster_node(ctx, a->node)->rank < takt_cluster_node(ctx, b->node)->rank
			       ? -1
			       : 1;
	return (a->victim > b->victim) - (a->victim < b->victim);
}

/* A job that is preemptible and has had its minimum run time. */
static bool could_go(const struct takt_planner *planner, const struct takt_order_job *job)
{
	return job->preemptible &&
	       takt_order_span_ns(job->since_ns, planner->now_ns) >= job->min_run_ns;
}

static int list_one(struct takt_victims *victims, struct takt_sched_entry *entry)
{
	struct takt_planner *planner = victims->planner;
	struct takt_victim victim = {.entry = entry};
	struct takt_order_job job;

	takt_sched_order_job(planner->sched, entry, &job);
	if (!could_go(planner, &job)) {
		if (job.preemptible)
			takt_plan_wake_at(planner, takt_order_later(job.since_ns, job.min_run_ns));
		return 0;
	}
	takt_order_key(planner->sched->config.order, &planner->sched->order_config, &job,
		       planner->now_ns, &victim.key);
	victim.loss_gpu_ms = takt_order_loss_gpu_ms(&job, planner->now_ns);
	victim.cost = victim.loss_gpu_ms + RESTART_MS + RESTART_MS * job.gpu_milli / 1000;
	return takt_vec_push(&victims->all, victim);
}

static int list_places(struct takt_victims *victims, uint32_t victim)
{
	const struct takt_sched_entry *entry = victims->all.at[victim].entry;
	uint32_t last = UINT32_MAX;
	int rc = 0;

	for (uint32_t i = 0; i < entry->slot_count && rc == 0; i++) {
		if (entry->slots[i].node == last)
			continue;
		last = entry->slots[i].node;
		rc = takt_vec_push(&victims->at, (struct takt_victim_at){last, victim});
	}
	return rc;
}

/* Unclean GPUs come free by themselves: nobody is pushed out for what they will do for. */
static void give_drains(struct takt_sched *sched)
{
	if (sched->unclean == 0)
		return;
	TAKT_VEC_EACH (host, &sched->hosts)
		for (uint64_t left = (*host)->drain_held; left; left &= left - 1) {
			struct takt_slot slot = takt_sched_drain_slot(*host, left & -left);

			(void)takt_cluster_give(sched->cluster, sched->drain_kind, &slot);
		}
}

int takt_victims_init(struct takt_victims *victims, struct takt_planner *planner)
{
	int rc = 0;

	*victims = (struct takt_victims){.planner = planner};
	victims->all.max = victims->at.max = victims->chosen.max = LIST_MAX;
	victims->trial.max = victims->best_trial.max = LIST_MAX;
	give_drains(planner->sched);
	for (struct takt_sched_entry *entry = planner->sched->placed; entry && rc == 0;
	     entry = entry->next_placed)
		if (!takt_sched_on_removed(planner->sched, entry))
			rc = list_one(victims, entry);
	if (rc == 0)
		rc = takt_sort(victims->all.at, victims->all.len, sizeof(*victims->all.at), by_cost,
			       NULL);
	for (uint32_t i = 0; i < victims->all.len && rc == 0; i++)
		rc = list_places(victims, i);
	if (rc == 0)
		rc = takt_sort(victims->at.at, victims->at.len, sizeof(*victims->at.at), by_node,
			       planner->sched->cluster);
	return rc;
}

void takt_victims_fini(struct takt_victims *victims)
{
	takt_vec_fini(&victims->all);
	takt_vec_fini(&victims->at);
	takt_vec_fini(&victims->chosen);
	takt_vec_fini(&victims->trial);
	takt_vec_fini(&victims->best_trial);
}

static bool order_allows(const struct takt_victims *victims, const struct takt_order_job *job,
			 const struct takt_victim *victim, const struct takt_sched_entry *entry)
{
	const struct takt_sched *sched = victims->planner->sched;
	struct takt_order_job running;

	if (takt_order_compare(&entry->key, &victim->key) >= 0)
		return false;
	takt_sched_order_job(sched, victim->entry, &running);
	return takt_order_may_evict(sched->config.order, &sched->order_config, job, &running,
				    victims->planner->now_ns);
}

static bool tenants_allow(const struct takt_victims *victims, const struct takt_victim *victim,
			  const struct takt_sched_entry *entry)
{
	return entry->job.tenant && victim->entry->job.tenant &&
	       takt_tenants_may_reclaim(victims->planner->sched->tenants, entry->job.tenant,
					takt_sched_gpu_milli(entry), victim->entry->job.tenant,
					takt_sched_gpu_milli(victim->entry));
}

/* Returns whether there is anybody. */
static bool mark_allowed(struct takt_victims *victims, const struct takt_sched_entry *entry)
{
	struct takt_order_job job;
	bool any = false;

	takt_sched_order_job(victims->planner->sched, entry, &job);
	TAKT_VEC_EACH (victim, &victims->all) {
		bool by_order = !victim->gone && order_allows(victims, &job, victim, entry);

		victim->reclaimed =
			!victim->gone && !by_order && tenants_allow(victims, victim, entry);
		victim->allowed = by_order || victim->reclaimed;
		any = any || victim->allowed;
	}
	return any;
}

/* All its tasks, wherever they are. */
static void give_job(struct takt_victims *victims, uint32_t i)
{
	struct takt_victim *victim = &victims->all.at[i];

	for (uint32_t task = 0; task < victim->entry->slot_count; task++)
		(void)takt_cluster_give(victims->planner->sched->cluster, victim->entry->kind,
					&victim->entry->slots[task]);
	victim->gone = true;
}

/* The reverse; what was given is still free. */
static void take_job(struct takt_victims *victims, uint32_t i)
{
	struct takt_victim *victim = &victims->all.at[i];

	for (uint32_t task = 0; task < victim->entry->slot_count; task++)
		takt_plan_fail(victims->planner,
			       takt_cluster_take(victims->planner->sched->cluster,
						 victim->entry->kind, &victim->entry->slots[task]));
	victim->gone = false;
}

static uint32_t room_at(const struct takt_victims *victims, const struct takt_sched_entry *entry,
			uint32_t node)
{
	return takt_cluster_room(victims->planner->sched->cluster, entry->kind, node);
}

/* Takes back those that are not needed for so much room on the node, the dearest first. */
static void spare(struct takt_victims *victims, const struct takt_sched_entry *entry, uint32_t node,
		  uint32_t least)
{
	for (size_t i = victims->trial.len; i-- > 0;) {
		uint32_t victim = victims->trial.at[i];

		take_job(victims, victim);
		if (room_at(victims, entry, node) >= least)
			takt_vec_remove(&victims->trial, i);
		else
			give_job(victims, victim);
	}
}

/* Room for one task more on a node, for less than `limit`: the victims in `trial`, which have been
 * taken back again. UINT64_MAX = no. places[0..n) are the node's. */
static uint64_t try_node(struct takt_victims *victims, const struct takt_sched_entry *entry,
			 const struct takt_victim_at *places, size_t n, uint64_t limit)
{
	uint32_t node = places[0].node;
	uint32_t least = room_at(victims, entry, node) + 1;
	uint64_t cost = 0;
	bool enough = false;

	takt_vec_clear(&victims->trial);
	for (size_t i = 0; i < n && !enough; i++) {
		const struct takt_victim *victim = &victims->all.at[places[i].victim];

		if (!victim->allowed || victim->gone)
			continue;
		if (takt_vec_push(&victims->trial, places[i].victim) < 0) {
			takt_plan_fail(victims->planner, -ENOMEM);
			break;
		}
		give_job(victims, places[i].victim);
		enough = room_at(victims, entry, node) >= least;
	}
	if (enough)
		spare(victims, entry, node, least);
	TAKT_VEC_EACH (victim, &victims->trial) {
		cost += victims->all.at[*victim].cost;
		take_job(victims, *victim);
	}
	return enough && cost < limit ? cost : UINT64_MAX;
}

/* Whether the GPUs of allowed victims, with those that are free, would do for one task more at all:
 * most nodes need not be tried. */
static bool is_worth(const struct takt_victims *victims, const struct takt_sched_entry *entry,
		     const struct takt_victim_at *places, size_t n, uint64_t limit)
{
	const struct takt_cluster *cluster = victims->planner->sched->cluster;
	const struct takt_request *request = takt_cluster_request(cluster, entry->kind);
	const struct takt_node *node = takt_cluster_node(cluster, places[0].node);
	uint32_t gpus = takt_sched_count(node->whole);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const struct takt_victim *victim = &victims->all.at[places[i].victim];

		if (!victim->allowed || victim->gone)
			continue;
		if (!any && victim->cost >= limit)
			return false;
		any = true;
		for (uint32_t task = 0; task < victim->entry->slot_count; task++)
			if (victim->entry->slots[task].node == places[0].node)
				gpus += takt_sched_count(victim->entry->slots[task].dev_mask);
	}
	return any && gpus >= request->devices;
}

static size_t places_of_node(const struct takt_victims *victims, size_t first)
{
	size_t n = 1;

	while (first + n < victims->at.len &&
	       victims->at.at[first + n].node == victims->at.at[first].node)
		n++;
	return n;
}

/* The node where room for one task more costs least; its victims in best_trial. */
static bool find_cheapest(struct takt_victims *victims, const struct takt_sched_entry *entry)
{
	uint64_t best = UINT64_MAX;
	size_t n;

	for (size_t first = 0; first < victims->at.len && victims->planner->rc == 0; first += n) {
		const struct takt_victim_at *places = &victims->at.at[first];
		uint64_t cost;

		n = places_of_node(victims, first);
		if (!is_worth(victims, entry, places, n, best))
			continue;
		cost = try_node(victims, entry, places, n, best);
		if (cost == UINT64_MAX ||
		    takt_vec_reserve(&victims->best_trial, victims->trial.len) < 0)
			continue;
		best = cost;
		takt_vec_clear(&victims->best_trial);
		TAKT_VEC_EACH (victim, &victims->trial)
			takt_plan_fail(victims->planner,
				       takt_vec_push(&victims->best_trial, *victim));
	}
	return best != UINT64_MAX && victims->planner->rc == 0;
}

static bool push_out(struct takt_victims *victims)
{
	TAKT_VEC_EACH (victim, &victims->best_trial) {
		if (takt_vec_push(&victims->chosen, *victim) < 0) {
			takt_plan_fail(victims->planner, -ENOMEM);
			return false;
		}
		give_job(victims, *victim);
	}
	return true;
}

/* The tasks of the job, taken in the cluster; 0 = no place. */
static uint32_t place(const struct takt_victims *victims, const struct takt_sched_entry *entry)
{
	return takt_plan_place(victims->planner, entry, victims->planner->now_ns);
}

/* Gang by gang: victims that all tasks find room without stay after all. The last one was needed.
 */
static void spare_chosen(struct takt_victims *victims, const struct takt_sched_entry *entry)
{
	struct takt_cluster *cluster = victims->planner->sched->cluster;

	for (size_t i = victims->chosen.len - 1; i-- > 0;) {
		uint32_t victim = victims->chosen.at[i];
		uint64_t mark = takt_cluster_mark(cluster);
		bool fits;

		take_job(victims, victim);
		fits = place(victims, entry) > 0;
		takt_cluster_rollback(cluster, mark);
		victims->all.at[victim].gone = true;
		if (!fits)
			continue;
		take_job(victims, victim);
		takt_vec_remove(&victims->chosen, i);
	}
}

/* Reclaiming goes no further than the shares, all victims together. */
static bool tenants_allow_all(const struct takt_victims *victims,
			      const struct takt_sched_entry *entry)
{
	TAKT_CLEANUP(freep)
	struct takt_tenant_part *parts =
		takt_calloc(victims->chosen.len, sizeof(struct takt_tenant_part));
	size_t n = 0;

	if (!parts) {
		takt_plan_fail(victims->planner, -ENOMEM);
		return false;
	}
	TAKT_VEC_EACH (i, &victims->chosen) {
		const struct takt_victim *victim = &victims->all.at[*i];

		if (victim->reclaimed)
			parts[n++] = (struct takt_tenant_part){
				.tenant = victim->entry->job.tenant,
				.milli = takt_sched_gpu_milli(victim->entry)};
	}
	return takt_tenants_may_reclaim_all(victims->planner->sched->tenants, entry->job.tenant,
					    takt_sched_gpu_milli(entry), parts, n);
}

/* Pushes out node after node until all tasks fit. */
static uint32_t make_room(struct takt_victims *victims, const struct takt_sched_entry *entry)
{
	uint32_t n = 0;

	while (n == 0 && find_cheapest(victims, entry) && push_out(victims))
		n = place(victims, entry);
	return n;
}

uint32_t takt_victims_choose(struct takt_victims *victims, const struct takt_sched_entry *entry)
{
	struct takt_cluster *cluster = victims->planner->sched->cluster;
	uint64_t mark = takt_cluster_mark(cluster);
	uint32_t n;

	takt_vec_clear(&victims->chosen);
	/* Free by now, if only because of what drains: it stays taken, for those behind. */
	if (place(victims, entry) > 0) {
		takt_cluster_commit(cluster, mark);
		return 0;
	}
	n = mark_allowed(victims, entry) ? make_room(victims, entry) : 0;
	if (n > 0 && victims->chosen.len > 1) {
		takt_cluster_rollback(cluster, mark);
		mark = takt_cluster_mark(cluster);
		TAKT_VEC_EACH (victim, &victims->chosen)
			give_job(victims, *victim);
		spare_chosen(victims, entry);
		n = place(victims, entry);
	}
	if (n > 0 && victims->planner->rc == 0 && tenants_allow_all(victims, entry) &&
	    takt_plan_leaves_kept(victims->planner, entry, n)) {
		takt_cluster_commit(cluster, mark);
		return n;
	}
	takt_cluster_rollback(cluster, mark);
	TAKT_VEC_EACH (victim, &victims->chosen)
		victims->all.at[*victim].gone = false;
	return 0;
}
