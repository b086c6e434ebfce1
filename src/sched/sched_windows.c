/* SPDX-License-Identifier: Apache-2.0 */
/* Events of windows: maintenance, and reservations in advance. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "sched/sched_update.h"

static size_t window_place(const struct takt_sched *sched, uint64_t id)
{
	size_t i = 0;

	while (i < sched->windows.len && sched->windows.at[i].id < id)
		i++;
	return i;
}

static int check_window(const struct takt_sched *sched, const struct takt_sched_window *window,
			struct takt_err *err)
{
	size_t i = window_place(sched, window->id);

	if (window->id == 0 || (i < sched->windows.len && sched->windows.at[i].id == window->id))
		return takt_err_set(err, -EINVAL, "window.id %" PRIu64 " is 0 or there already",
				    window->id);
	if (window->end_ns <= window->start_ns)
		return takt_err_set(err, -EINVAL, "window %" PRIu64 " ends before it has started",
				    window->id);
	if (window->gpu_mask && window->node_count != 1)
		return takt_err_set(err, -EINVAL,
				    "window.gpu_mask is of one node, window %" PRIu64
				    " names %" PRIu32,
				    window->id, window->node_count);
	if (window->tenant && !takt_tenants_find(sched->tenants, window->tenant))
		return takt_err_set(err, -EINVAL, "window.tenant %" PRIu32 " was not told before",
				    window->tenant);
	return 0;
}

/* A waiting job for which a window is kept is like no other. */
static int regroup(struct takt_sched *sched, uint64_t job_id)
{
	struct takt_sched_entry *entry = job_id ? takt_map_u64_ptr(&sched->by_id, job_id) : NULL;
	struct takt_sched_group *group;

	if (!entry || !entry->group)
		return 0;
	group = takt_sched_group_for(sched, entry);
	if (!group)
		return -ENOMEM;
	takt_sched_leave(sched, entry);
	takt_sched_join(sched, entry, group);
	return 0;
}

int takt_sched_on_window_add(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_window window = *event->window;
	uint32_t *nodes;
	int rc = check_window(sched, &window, err);

	if (rc < 0)
		return rc;
	nodes = takt_calloc(window.node_count, sizeof(*nodes));
	if (!nodes || takt_vec_reserve(&sched->windows, 1) < 0) {
		takt_free(nodes);
		return takt_err_set(err, -ENOMEM, "window %" PRIu64, window.id);
	}
	if (window.node_count > 0)
		memcpy(nodes, window.nodes, window.node_count * sizeof(*nodes));
	window.nodes = nodes;
	(void)takt_vec_insert(&sched->windows, window_place(sched, window.id), window);
	rc = regroup(sched, window.job);
	if (rc == 0)
		return 0;
	takt_vec_remove(&sched->windows, window_place(sched, window.id));
	takt_free(nodes);
	return takt_err_set(err, rc, "window %" PRIu64, event->window->id);
}

int takt_sched_on_window_remove(struct takt_sched *sched, const struct takt_sched_event *event,
				struct takt_err *err)
{
	size_t i = window_place(sched, event->window_id);
	struct takt_sched_window window;
	int rc;

	if (i == sched->windows.len || sched->windows.at[i].id != event->window_id)
		return takt_err_set(err, -EINVAL, "window_id %" PRIu64 " is not a known window",
				    event->window_id);
	window = sched->windows.at[i];
	takt_vec_remove(&sched->windows, i);
	rc = regroup(sched, window.job);
	if (rc < 0) {
		(void)takt_vec_insert(&sched->windows, i, window);
		return takt_err_set(err, rc, "window %" PRIu64, window.id);
	}
	takt_free((void *)window.nodes);
	return 0;
}
