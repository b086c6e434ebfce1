/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of waiting jobs that are alike, and the heap of groups: the job that goes first of all is
 * the first of the first group.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/sched_update.h"

enum {
	EMPTY_GROUPS_KEPT = 1024,
};

static int by_key(const struct takt_heap_node *a, const struct takt_heap_node *b)
{
	return takt_order_compare(&TAKT_CONTAINER_OF(a, struct takt_sched_entry, node)->key,
				  &TAKT_CONTAINER_OF(b, struct takt_sched_entry, node)->key);
}

static int by_first(const struct takt_heap_node *a, const struct takt_heap_node *b)
{
	return by_key(takt_heap_first(&TAKT_CONTAINER_OF(a, struct takt_sched_group, node)->jobs),
		      takt_heap_first(&TAKT_CONTAINER_OF(b, struct takt_sched_group, node)->jobs));
}

void takt_sched_groups_init(struct takt_sched *sched, size_t max_jobs)
{
	sched->ready = TAKT_HEAP(max_jobs + EMPTY_GROUPS_KEPT, by_first);
	sched->groups.max = max_jobs + EMPTY_GROUPS_KEPT;
	sched->group_by_hash = TAKT_MAP_U64(max_jobs + EMPTY_GROUPS_KEPT);
}

static void group_free(struct takt_sched_group *group)
{
	takt_heap_fini(&group->jobs);
	takt_free(group);
}

void takt_sched_groups_fini(struct takt_sched *sched)
{
	takt_heap_fini(&sched->ready);
	TAKT_VEC_EACH (group, &sched->groups)
		group_free(*group);
	takt_vec_fini(&sched->groups);
	takt_map_fini(&sched->group_by_hash);
}

static uint64_t hash_of(const struct takt_sched_shape *shape)
{
	const unsigned char *bytes = (const unsigned char *)shape;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*shape); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void unlink_group(struct takt_sched *sched, struct takt_sched_group *group)
{
	union takt_map_value *value = takt_map_u64_get(&sched->group_by_hash, group->hash);
	struct takt_sched_group *first = value->ptr;

	if (first == group && !group->next) {
		takt_map_u64_remove(&sched->group_by_hash, group->hash);
		return;
	}
	if (first == group) {
		value->ptr = group->next;
		return;
	}
	while (first->next != group)
		first = first->next;
	first->next = group->next;
}

/* Groups that no job has any more. */
static void forget_empty(struct takt_sched *sched)
{
	size_t kept = 0;

	for (size_t i = 0; i < sched->groups.len; i++) {
		struct takt_sched_group *group = sched->groups.at[i];

		if (group->members > 0) {
			sched->groups.at[kept++] = group;
			continue;
		}
		unlink_group(sched, group);
		group_free(group);
	}
	sched->groups.len = kept;
	sched->empty_groups = 0;
}

static struct takt_sched_group *group_new(struct takt_sched *sched,
					  const struct takt_sched_shape *shape, uint64_t hash)
{
	union takt_map_value *known;
	struct takt_sched_group *group;

	if (sched->empty_groups >= EMPTY_GROUPS_KEPT)
		forget_empty(sched);
	group = takt_zalloc(sizeof(*group));
	known = takt_map_u64_get(&sched->group_by_hash, hash);
	if (!group || takt_vec_reserve(&sched->groups, 1) < 0 ||
	    takt_vec_reserve(&sched->ready.nodes, sched->groups.len + 1) < 0)
		goto fail;
	group->next = known ? known->ptr : NULL;
	if (takt_map_u64_put_ptr(&sched->group_by_hash, hash, group) < 0)
		goto fail;
	group->shape = *shape;
	group->hash = hash;
	group->blocked_reach = UINT32_MAX;
	group->jobs = TAKT_HEAP(sched->jobs.max, by_key);
	sched->groups.at[sched->groups.len++] = group;
	sched->empty_groups++;
	return group;
fail:
	takt_free(group);
	return NULL;
}

static struct takt_sched_group *group_of(struct takt_sched *sched,
					 const struct takt_sched_shape *shape)
{
	uint64_t hash = hash_of(shape);
	struct takt_sched_group *group = takt_map_u64_ptr(&sched->group_by_hash, hash);

	for (; group; group = group->next)
		if (memcmp(&group->shape, shape, sizeof(*shape)) == 0)
			return group;
	return group_new(sched, shape, hash);
}

static bool has_window(const struct takt_sched *sched, uint64_t job_id)
{
	TAKT_VEC_EACH (window, &sched->windows)
		if (window->job == job_id)
			return true;
	return false;
}

static struct takt_sched_shape shape_of(const struct takt_sched *sched,
					const struct takt_sched_entry *entry)
{
	const struct takt_sched_job *job = &entry->job;
	struct takt_sched_shape shape;

	memset(&shape, 0, sizeof(shape));
	shape.kind = entry->kind;
	shape.tasks = takt_sched_tasks(job);
	shape.min_tasks = takt_sched_min_tasks(job);
	shape.topology = job->topology;
	shape.level = job->level;
	shape.tenant = job->tenant;
	shape.owner = job->owner;
	shape.workload = job->workload;
	shape.near_group = job->near_group;
	shape.near_level = job->near_level;
	shape.apart_group = job->apart_group;
	shape.apart_level = job->apart_level;
	shape.array_limit = job->array ? job->array_limit : 0;
	shape.array = shape.array_limit ? job->array : 0;
	shape.alone = has_window(sched, job->id) ? job->id : 0;
	return shape;
}

struct takt_sched_group *takt_sched_group_for(struct takt_sched *sched,
					      const struct takt_sched_entry *entry)
{
	struct takt_sched_shape shape = shape_of(sched, entry);
	struct takt_sched_group *group = group_of(sched, &shape);

	if (!group ||
	    takt_vec_reserve(&group->jobs.nodes, group->members + 1 - group->jobs.nodes.len) < 0 ||
	    takt_vec_reserve(&sched->fresh, 1) < 0 || takt_sched_queue_reserve(sched) < 0)
		return NULL;
	return group;
}

void takt_sched_join(struct takt_sched *sched, struct takt_sched_entry *entry,
		     struct takt_sched_group *group)
{
	sched->empty_groups -= group->members == 0;
	group->members++;
	entry->group = group;
	entry->fresh_at = (uint32_t)sched->fresh.len;
	sched->fresh.at[sched->fresh.len++] = entry;
	takt_sched_enqueue(sched, entry);
}

static void leave_fresh(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	struct takt_sched_entry *last = *takt_vec_last(&sched->fresh);

	last->fresh_at = entry->fresh_at;
	takt_vec_remove_swap(&sched->fresh, entry->fresh_at);
	entry->fresh_at = TAKT_SCHED_NOWHERE;
}

void takt_sched_leave(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	struct takt_sched_group *group = entry->group;

	if (!group)
		return;
	if (entry->fresh_at != TAKT_SCHED_NOWHERE)
		leave_fresh(sched, entry);
	else if (entry->key_until_ns != UINT64_MAX && entry->key_until_ns == sched->keys_until_ns)
		sched->keys_stale = true; /* the others' may be later */
	takt_sched_unready(sched, entry);
	group->members--;
	sched->empty_groups += group->members == 0;
	entry->group = NULL;
}

/* The heap of groups follows a change of the first job of one. */
static void settle(struct takt_sched *sched, struct takt_sched_group *group)
{
	bool in_heap = group->node.place != 0;

	if (group->jobs.nodes.len == 0 && in_heap)
		takt_heap_remove(&sched->ready, &group->node);
	else if (group->jobs.nodes.len > 0 && in_heap)
		takt_heap_update(&sched->ready, &group->node);
	else if (group->jobs.nodes.len > 0 && !group->blocked)
		(void)takt_heap_push(&sched->ready, &group->node);
}

void takt_sched_make_ready(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	if (entry->node.place != 0)
		return;
	(void)takt_heap_push(&entry->group->jobs, &entry->node);
	settle(sched, entry->group);
}

void takt_sched_unready(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	if (entry->node.place == 0)
		return;
	takt_heap_remove(&entry->group->jobs, &entry->node);
	settle(sched, entry->group);
}

struct takt_sched_group *takt_sched_first_group(const struct takt_sched *sched)
{
	struct takt_heap_node *node = takt_heap_first(&sched->ready);

	return node ? TAKT_CONTAINER_OF(node, struct takt_sched_group, node) : NULL;
}

struct takt_sched_entry *takt_sched_first_job(const struct takt_sched_group *group)
{
	struct takt_heap_node *node = takt_heap_first(&group->jobs);

	return node ? TAKT_CONTAINER_OF(node, struct takt_sched_entry, node) : NULL;
}

void takt_sched_block(struct takt_sched *sched, struct takt_sched_group *group)
{
	group->blocked = true;
	if (group->node.place != 0)
		takt_heap_remove(&sched->ready, &group->node);
}

void takt_sched_unblock(struct takt_sched *sched, struct takt_sched_group *group)
{
	group->blocked = false;
	settle(sched, group);
}
