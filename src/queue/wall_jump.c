/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wall clock is set while jobs wait and run. What people named is an instant of their calendar
 * and stays one: --begin, --deadline, windows. What has happened keeps its distance from now: how
 * long a job has run, how long it waits to be tried again. So the scheduler's clock goes on evenly,
 * and what is on record as wall time is moved along. How far the wall clock is ahead of the boot
 * clock is kept in the store, so that a jump while takt was away is followed when it comes back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/sys.h"
#include "queue/queue_impl.h"

static const char stored[] = "wall_ahead";
static const int64_t least_jump_ns = TAKT_NS_PER_S; /* less is a clock that is being slewed */

static int64_t distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

static bool move(struct takt_wall *at, int64_t by_ns)
{
	if (at->ns == 0)
		return false;
	at->ns = at->ns + by_ns > 0 ? at->ns + by_ns : 1;
	return true;
}

/* True when anything of it was moved. Of a job that waits, `started` is not of this attempt. */
static bool move_row(struct takt_job *row, int64_t by_ns)
{
	bool moved = move(&row->retry_at, by_ns);

	moved |= move(&row->evict_at, by_ns);
	moved |= move(&row->started, by_ns);
	moved |= move(&row->checkpoint_at, by_ns);
	return moved;
}

static void keep(struct takt_queue *queue)
{
	char text[96], boot_id[40];

	takt_boot_id(boot_id);
	snprintf(text, sizeof(text), "%" PRId64 " %s", queue->wall_ahead_ns, boot_id);
	if (takt_store_keep(queue->config.store, stored, text, TICKET_USAGE, NULL) >= 0)
		queue->wall_kept_ns = queue->wall_ahead_ns;
}

static void follow(struct takt_queue *queue, int64_t by_ns)
{
	queue->config.epoch.ns += by_ns;
	queue->wall_jumps++;
	queue->dirty = true;
	takt_queue_refusals_move(queue, by_ns);
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		for (uint32_t i = 0; i < job->told_count; i++) {
			(void)move(&job->told[i].at, by_ns);
			(void)move(&job->told[i].start, by_ns);
		}
		if (job->phase == TAKT_PHASE_ENDING)
			continue;
		if (move_row(&job->row, by_ns) && job->phase >= TAKT_PHASE_WAITING)
			(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
		if (job->phase == TAKT_PHASE_WAITING &&
		    (job->spec.begin_ms || job->spec.deadline_ms))
			(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, NULL);
	}
}

bool takt_queue_follow_wall(struct takt_queue *queue, struct takt_boot now, struct takt_wall wall)
{
	int64_t ahead_ns = wall.ns - (int64_t)now.ns;
	bool jumped =
		queue->wall_known && distance(ahead_ns, queue->wall_ahead_ns) >= least_jump_ns;

	if (jumped)
		follow(queue, ahead_ns - queue->wall_ahead_ns);
	queue->wall_ahead_ns = ahead_ns;
	if (!queue->wall_known || distance(ahead_ns, queue->wall_kept_ns) >= least_jump_ns / 2)
		keep(queue);
	queue->wall_known = true;
	return jumped;
}

struct takt_wall takt_queue_wall_at(const struct takt_queue *queue, struct takt_boot at,
				    struct takt_wall said)
{
	int64_t ahead_ns = queue->wall_known ? queue->wall_ahead_ns : queue->config.wall_ahead_ns;
	int64_t is_ns = (int64_t)at.ns + ahead_ns;

	if (at.ns == 0 || ahead_ns == 0 || distance(is_ns, said.ns) < least_jump_ns)
		return said;
	return (struct takt_wall){is_ns};
}

struct kept {
	int64_t ahead_ns;
	char boot_id[40];
	bool found;
};

static int take(void *ctx, const char *key, const char *text)
{
	struct kept *kept = ctx;

	kept->found = strcmp(key, stored) == 0 &&
		      sscanf(text, "%" SCNd64 " %39s", &kept->ahead_ns, kept->boot_id) == 2;
	return 0;
}

int takt_queue_load_wall(struct takt_queue *queue, struct takt_err *err)
{
	int64_t now_ns = queue->config.wall_ahead_ns;
	struct kept kept = {.found = false};
	char boot_id[40];
	int rc = takt_store_each_kept(queue->config.store, stored, take, &kept, err);

	takt_boot_id(boot_id);
	if (rc < 0 || now_ns == 0 || !kept.found || strcmp(kept.boot_id, boot_id) != 0 ||
	    distance(now_ns, kept.ahead_ns) < least_jump_ns)
		return rc;
	queue->wall_away_ns = now_ns - kept.ahead_ns;
	return 0;
}

void takt_queue_move_loaded(const struct takt_queue *queue, struct takt_job *row)
{
	if (queue->wall_away_ns)
		(void)move_row(row, queue->wall_away_ns);
}

uint64_t takt_queue_wall_jumps(const struct takt_queue *queue)
{
	return queue->wall_jumps;
}
