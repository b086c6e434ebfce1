/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs next, where and when: looking ahead.
 *
 * The future is played in the cluster, under a mark. Jobs that run give their GPUs back at their
 * predicted ends, in order; what is kept for jobs ahead is taken when it begins and given back when
 * it ends; windows come and go. The first instant at which the job finds a place, one that is not
 * in the way of anything kept for later, is its start. Jobs of unknown length end after all the
 * others, the oldest first; a start that needs one of them to end has a place but no time.
 *
 * Since the same is played whenever nothing has changed, a reservation is the same from plan to
 * plan until what it rests on changes.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/plan_state.h"

/* Order of ends: by time; of unknown length, by how long they have run; then by job. */
static int by_end(const void *va, const void *vb, void *ctx)
{
	const struct takt_plan_end *a = va;
	const struct takt_plan_end *b = vb;

	(void)ctx;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	if (!a->entry || !b->entry)
		return a->entry ? 1 : -1;
	if (a->entry->since_ns != b->entry->since_ns)
		return a->entry->since_ns < b->entry->since_ns ? -1 : 1;
	return a->entry->job.id < b->entry->job.id ? -1 : 1;
}

/* Who is pushed out by this plan goes at once. */
static uint64_t end_of(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	TAKT_VEC_EACH (eviction, &planner->evictions)
		if (eviction->job_id == entry->job.id)
			return planner->now_ns;
	return takt_sched_predicted_end_ns(planner->sched, entry, planner->now_ns);
}

static void list_jobs(struct takt_planner *planner)
{
	struct takt_sched *sched = planner->sched;

	for (struct takt_sched_entry *entry = sched->placed; entry; entry = entry->next_placed)
		takt_plan_fail(planner, takt_vec_push(&planner->ends,
						      (struct takt_plan_end){
							      end_of(planner, entry), entry, {0}}));
	TAKT_VEC_EACH (it, &sched->open.placed)
		takt_plan_fail(
			planner,
			takt_vec_push(&planner->ends,
				      (struct takt_plan_end){takt_plan_end_if_started(
								     planner, *it, planner->now_ns),
							     *it,
							     {0}}));
}

/* Unclean GPUs come free at once. */
static void list_drains(struct takt_planner *planner)
{
	if (planner->sched->unclean == 0)
		return;
	TAKT_VEC_EACH (host, &planner->sched->hosts)
		for (uint64_t left = (*host)->drain_held; left; left &= left - 1)
			takt_plan_fail(
				planner,
				takt_vec_push(&planner->ends,
					      (struct takt_plan_end){
						      planner->now_ns, NULL,
						      takt_sched_drain_slot(*host, left & -left)}));
}

void takt_plan_list_ends(struct takt_planner *planner)
{
	if (planner->ends_known)
		return;
	takt_vec_clear(&planner->ends);
	list_drains(planner);
	list_jobs(planner);
	if (planner->rc == 0)
		takt_plan_fail(planner, takt_sort(planner->ends.at, planner->ends.len,
						  sizeof(*planner->ends.at), by_end, NULL));
	planner->ends_known = true;
}

/* The future as it is played. */
struct future {
	struct takt_planner *planner;
	const struct takt_sched_entry *entry;
	uint64_t floor_ns; /* it does not start before */
	uint64_t at_ns;
	size_t next;	/* of `ends` */
	bool promising; /* something has come free that the job may use */
};

static void give_back(struct future *future, const struct takt_plan_end *end)
{
	struct takt_sched *sched = future->planner->sched;

	if (!end->entry) {
		(void)takt_cluster_give(sched->cluster, sched->drain_kind, &end->drain);
		future->promising = true;
		return;
	}
	if (future->entry->array && end->entry->array == future->entry->array)
		future->promising = true;
	for (uint32_t i = 0; i < end->entry->slot_count; i++) {
		const struct takt_slot *slot = &end->entry->slots[i];

		(void)takt_cluster_give(sched->cluster, end->entry->kind, slot);
		future->promising = future->promising ||
				    takt_cluster_why_not(sched->cluster, future->entry->kind,
							 slot->node, NULL) == 0;
	}
}

/* What is kept for others and is over by then. */
static void end_kept(struct future *future, struct takt_plan_kept *kept)
{
	struct takt_cluster *cluster = future->planner->sched->cluster;

	if (!kept->playing || kept->end_ns > future->at_ns)
		return;
	while (kept->played > 0)
		(void)takt_cluster_give(cluster, kept->entry->kind, &kept->slots[--kept->played]);
	kept->playing = false;
	future->promising = true;
}

/* What begins by then, when all that is over has been given back. */
static void begin_kept(struct future *future, struct takt_plan_kept *kept)
{
	struct takt_cluster *cluster = future->planner->sched->cluster;

	if (kept->playing || kept->start_ns > future->at_ns || future->at_ns >= kept->end_ns)
		return;
	kept->playing = true;
	kept->played = 0;
	while (kept->played < kept->slot_count &&
	       takt_cluster_take(cluster, kept->entry->kind, &kept->slots[kept->played]) == 0)
		kept->played++;
}

static void consider_instant(const struct future *future, uint64_t at_ns, uint64_t *next)
{
	if (at_ns > future->at_ns && at_ns < *next)
		*next = at_ns;
}

/* When something changes next. */
static uint64_t next_instant(const struct future *future)
{
	const struct takt_planner *planner = future->planner;
	uint64_t next = UINT64_MAX;

	if (future->next < planner->ends.len)
		consider_instant(future, planner->ends.at[future->next].end_ns, &next);
	TAKT_VEC_EACH (kept, &planner->kept) {
		consider_instant(future, kept->start_ns, &next);
		consider_instant(future, kept->end_ns, &next);
	}
	TAKT_VEC_EACH (window, &planner->sched->windows)
		if (window->end_ns < TAKT_WINDOW_FOR_EVER)
			consider_instant(future, window->end_ns, &next);
	consider_instant(future, future->floor_ns, &next);
	return next;
}

/* Everything that happens at that instant; of the jobs of unknown length one. */
static void advance(struct future *future)
{
	struct takt_planner *planner = future->planner;
	const struct takt_plan_end *ends = planner->ends.at;

	TAKT_VEC_EACH (window, &planner->sched->windows)
		future->promising = future->promising || window->end_ns == future->at_ns;
	if (future->floor_ns == future->at_ns)
		future->promising = true;
	while (future->next < planner->ends.len && ends[future->next].end_ns <= future->at_ns) {
		give_back(future, &ends[future->next++]);
		if (future->at_ns == UINT64_MAX)
			break;
	}
	TAKT_VEC_EACH (kept, &planner->kept)
		end_kept(future, kept);
	TAKT_VEC_EACH (kept, &planner->kept)
		begin_kept(future, kept);
}

/* Whether its array lets one more run from that instant on: beside those that still run then, and
 * those that begin while it would. */
static bool array_lets(const struct future *future)
{
	const struct takt_planner *planner = future->planner;
	const struct takt_sched_array *array = future->entry->array;
	uint64_t end_ns = takt_plan_end_if_started(planner, future->entry, future->at_ns);
	uint32_t running = 0;

	if (!array || !future->entry->job.array_limit)
		return true;
	for (size_t i = future->next; i < planner->ends.len; i++)
		running += planner->ends.at[i].entry && planner->ends.at[i].entry->array == array;
	TAKT_VEC_EACH (kept, &planner->kept)
		running += kept->entry->array == array && kept->end_ns > future->at_ns &&
			   takt_plan_is_in_way(kept, end_ns);
	return running < future->entry->job.array_limit;
}

/* What is kept for later must stay free, as far as the job would still be there. */
static bool fits(struct future *future, uint32_t *ret_n)
{
	struct takt_planner *planner = future->planner;
	uint64_t end_ns = takt_plan_end_if_started(planner, future->entry, future->at_ns);
	size_t holds = planner->holds.len;

	TAKT_VEC_EACH (kept, &planner->kept)
		if (!kept->playing && kept->end_ns > future->at_ns &&
		    takt_plan_is_in_way(kept, end_ns))
			takt_plan_hold(planner, kept, NULL);
	*ret_n = takt_plan_place(planner, future->entry, future->at_ns);
	takt_plan_release_to(planner, holds);
	return *ret_n > 0;
}

/* Plays until the job fits; its slots stand in planner->slots and are taken. */
static bool play(struct future *future, uint32_t *ret_n)
{
	struct takt_planner *planner = future->planner;
	uint32_t least = takt_sched_min_tasks(&future->entry->job);

	for (;;) {
		advance(future);
		if (planner->rc < 0)
			return false;
		if (future->promising && future->at_ns >= future->floor_ns && array_lets(future) &&
		    takt_cluster_domain_room(planner->sched->cluster, future->entry->kind, 0) >=
			    least &&
		    fits(future, ret_n))
			return true;
		future->promising = least > 1 && future->promising;
		if (future->at_ns == UINT64_MAX && future->next == planner->ends.len)
			return false;
		future->at_ns = next_instant(future);
	}
}

static void stop_playing(struct takt_planner *planner)
{
	TAKT_VEC_EACH (kept, &planner->kept)
		kept->playing = false;
}

static enum takt_start_how how_found(const struct future *future)
{
	if (future->at_ns == UINT64_MAX)
		return TAKT_START_UNKNOWN;
	if (future->at_ns > future->planner->now_ns &&
	    future->at_ns == future->entry->job.earliest_start_ns)
		return TAKT_START_RELEASE;
	TAKT_VEC_EACH (window, &future->planner->sched->windows)
		if (window->end_ns == future->at_ns)
			return TAKT_START_RELEASE;
	if (future->planner->kept.len > 0)
		return TAKT_START_BEHIND;
	return future->next > 0 ? TAKT_START_ESTIMATE : TAKT_START_RELEASE;
}

/* Of jobs that begin at a time that nobody knows each counts for the others, though they may come
 * one after the other. */
static void less(int64_t *amount, int64_t by)
{
	*amount = *amount > by ? *amount - by : 0;
}

void takt_plan_use_spare(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 const struct takt_slot *slots, uint32_t n, uint64_t start_ns)
{
	uint64_t end_ns = takt_plan_end_if_started(planner, entry, start_ns);
	const struct takt_request *request = &entry->job.task;

	TAKT_VEC_EACH (kept, &planner->kept) {
		if (kept->entry == entry || kept->start_ns < start_ns ||
		    !takt_plan_is_in_way(kept, end_ns))
			continue;
		for (uint32_t i = 0; i < kept->slot_count; i++)
			for (uint32_t j = 0; j < n; j++)
				if (slots[j].node == kept->slots[i].node) {
					less(&kept->spare[i].cpu_milli, request->cpu_milli);
					less(&kept->spare[i].mem_mib, request->mem_mib);
				}
	}
}

static int keep(struct future *future, struct takt_sched_entry *entry, uint32_t n)
{
	struct takt_planner *planner = future->planner;
	struct takt_plan_kept kept = {
		.entry = entry,
		.start_ns = future->at_ns,
		.end_ns = takt_plan_end_if_started(planner, entry, future->at_ns),
		.how = how_found(future),
		.slots = takt_calloc(n, sizeof(*kept.slots)),
		.slot_count = n,
		.spare = takt_calloc(n, sizeof(*kept.spare)),
	};

	if (!kept.slots || !kept.spare || takt_vec_reserve(&planner->kept, 1) < 0) {
		takt_free(kept.slots);
		takt_free(kept.spare);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct takt_node *node =
			takt_cluster_node(planner->sched->cluster, planner->slots[i].node);

		kept.slots[i] = planner->slots[i];
		kept.spare[i] = (struct takt_plan_spare){node->cpu_left_milli, node->mem_left_mib};
	}
	takt_plan_use_spare(planner, entry, kept.slots, n, kept.start_ns);
	planner->kept.at[planner->kept.len++] = kept;
	return 0;
}

/* Whether `entry`, started now in the slots of the planner, would be in the way of what is kept: on
 * one of its GPUs, or with more CPU or memory than will be left of a machine. */
static bool collides(const struct takt_planner *planner, const struct takt_plan_kept *kept,
		     const struct takt_sched_entry *entry, uint32_t n)
{
	const struct takt_request *request = &entry->job.task;

	if (kept->entry == entry || kept->start_ns == UINT64_MAX ||
	    kept->start_ns >= takt_plan_end_if_started(planner, entry, planner->now_ns))
		return false;
	for (uint32_t i = 0; i < kept->slot_count; i++) {
		uint64_t gpu_mask = kept->slots[i].dev_mask &
				    ~takt_plan_own(planner, &entry->job, kept->slots[i].node);
		int64_t tasks = 0;

		if (kept->slots[i].dev_mask && !gpu_mask)
			continue;

		for (uint32_t j = 0; j < n; j++) {
			const struct takt_slot *slot = &planner->slots[j];

			if (slot->node != kept->slots[i].node)
				continue;
			if (slot->dev_mask & gpu_mask)
				return true;
			tasks++;
		}
		if (tasks * request->cpu_milli > kept->spare[i].cpu_milli ||
		    tasks * request->mem_mib > kept->spare[i].mem_mib)
			return true;
	}
	return false;
}

bool takt_plan_leaves_kept(const struct takt_planner *planner, const struct takt_sched_entry *entry,
			   uint32_t n)
{
	TAKT_VEC_EACH (kept, &planner->kept)
		if (takt_order_compare(&kept->entry->key, &entry->key) < 0 &&
		    collides(planner, kept, entry, n))
			return false;
	return true;
}

static void release(struct takt_planner *planner, size_t i)
{
	takt_free(planner->kept.at[i].slots);
	takt_free(planner->kept.at[i].spare);
	takt_vec_remove(&planner->kept, i);
}

void takt_plan_keep_now(struct takt_planner *planner, struct takt_sched_entry *entry, uint32_t n)
{
	struct future now = {.planner = planner, .entry = entry, .at_ns = planner->now_ns};
	struct takt_plan_kept kept;
	size_t at = 0;
	int rc = keep(&now, entry, n);

	if (rc < 0) {
		takt_plan_fail(planner, rc);
		return;
	}
	kept = planner->kept.at[--planner->kept.len];
	kept.how = TAKT_START_NOW;
	for (size_t i = planner->kept.len; i-- > 0;)
		if (planner->kept.at[i].entry == entry ||
		    collides(planner, &planner->kept.at[i], entry, n))
			release(planner, i);
	while (at < planner->kept.len &&
	       takt_order_compare(&planner->kept.at[at].entry->key, &entry->key) < 0)
		at++;
	/* There was room for it a moment ago. */
	takt_plan_fail(planner, takt_vec_insert(&planner->kept, at, kept));
}

/* Plays, and keeps what was found if that is asked for; the cluster is as it was. */
static bool look_ahead(struct future *future, struct takt_sched_entry *keep_for)
{
	struct takt_planner *planner = future->planner;
	struct takt_cluster *cluster = planner->sched->cluster;
	uint64_t earliest_ns = future->entry->job.earliest_start_ns;
	uint64_t mark;
	bool found;
	uint32_t n;

	future->at_ns = planner->now_ns;
	future->floor_ns = future->floor_ns > earliest_ns ? future->floor_ns : earliest_ns;
	takt_plan_hold_nothing(planner);
	takt_plan_list_ends(planner);
	mark = takt_cluster_mark(cluster);
	found = play(future, &n);
	if (found && keep_for)
		takt_plan_fail(planner, keep(future, keep_for, n));
	takt_cluster_rollback(cluster, mark);
	stop_playing(planner);
	return found && planner->rc == 0;
}

bool takt_plan_reserve(struct takt_planner *planner, struct takt_sched_entry *entry)
{
	return look_ahead(&(struct future){.planner = planner, .entry = entry}, entry);
}

bool takt_plan_foresee(struct takt_planner *planner, struct takt_sched_entry *entry,
		       uint64_t floor_ns)
{
	struct future future = {.planner = planner, .entry = entry, .floor_ns = floor_ns};

	if (!look_ahead(&future, entry))
		return false;
	takt_vec_last(&planner->kept)->foreseen = true;
	return true;
}

bool takt_plan_can_start(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 enum takt_start_how *ret_how)
{
	struct future future = {.planner = planner, .entry = entry};

	if (!look_ahead(&future, NULL))
		return false;
	*ret_how = how_found(&future);
	return true;
}

static bool overlaps(const struct takt_plan_kept *kept, const struct takt_sched_entry *entry)
{
	for (uint32_t i = 0; i < kept->slot_count; i++)
		for (uint32_t j = 0; j < entry->slot_count; j++)
			if (kept->slots[i].node == entry->slots[j].node &&
			    kept->slots[i].dev_mask & entry->slots[j].dev_mask)
				return true;
	return false;
}

void takt_plan_keep_others(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	uint64_t end_ns = takt_plan_end_if_started(planner, entry, planner->now_ns);

	for (size_t i = planner->kept.len; i-- > 0;) {
		struct takt_plan_kept kept = planner->kept.at[i];

		if (!takt_plan_is_in_way(&kept, end_ns) || !overlaps(&kept, entry))
			continue;
		release(planner, i);
		if (takt_plan_reserve(planner, kept.entry)) {
			kept = planner->kept.at[--planner->kept.len];
			takt_plan_fail(planner, takt_vec_insert(&planner->kept, i, kept));
		}
	}
}

const struct takt_plan_kept *takt_plan_kept_for(const struct takt_planner *planner,
						const struct takt_sched_entry *entry)
{
	TAKT_VEC_EACH (kept, &planner->kept)
		if (kept->entry == entry)
			return kept;
	return NULL;
}

static void add_reservation(struct takt_planner *planner, const struct takt_plan_kept *kept,
			    uint32_t task)
{
	const struct takt_slot *slot = &kept->slots[task];
	struct takt_plan_reservation reservation = {
		.job_id = kept->entry->job.id,
		.task = task,
		.tasks = kept->slot_count,
		.node_id = planner->sched->host_of.at[slot->node]->id,
		.gpu_mask = slot->dev_mask,
		.milli = slot->dev_mask ? slot->milli : TAKT_REQUEST_WHOLE,
		.mig_start = slot->mig_start,
		.start_ns = kept->start_ns == UINT64_MAX ? 0 : kept->start_ns,
		.how = kept->how,
		.foreseen = kept->foreseen,
	};

	takt_plan_fail(planner, takt_vec_push(&planner->reservations, reservation));
}

void takt_plan_add_reservations(struct takt_planner *planner)
{
	TAKT_VEC_EACH (kept, &planner->kept) {
		if (kept->foreseen && kept->start_ns == UINT64_MAX)
			continue; /* neither a time nor anything kept */
		for (uint32_t task = 0; task < kept->slot_count; task++)
			add_reservation(planner, kept, task);
	}
}

void takt_plan_reserve_fini(struct takt_planner *planner)
{
	TAKT_VEC_EACH (kept, &planner->kept) {
		takt_free(kept->slots);
		takt_free(kept->spare);
	}
	takt_vec_fini(&planner->kept);
}
