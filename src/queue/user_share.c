/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each user has in the queue: how many jobs that are not over, how many bytes of descriptions,
 * those to come counted. Where several users share takt none may have more than his share of
 * either, and a part of both is root's alone, so that nobody can fill the queue for all others.
 *
 * And how many of a user's jobs are being started: a plan may place thousands of small ones, which
 * would be thousands of starts in one turn of the main loop, before anybody else's.
 */
#include <errno.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

struct takt_queue_user {
	size_t jobs, bytes;
	uint32_t starting; /* as of the newest plan, see takt_queue_count_starts */
	struct takt_queue_user_refusal refusal;
};

static struct takt_queue_user *find(const struct takt_queue *queue, uid_t uid)
{
	return takt_map_u64_ptr(&queue->users, uid);
}

struct takt_queue_user_refusal *takt_queue_user_refusal(const struct takt_queue *queue, uid_t uid)
{
	struct takt_queue_user *user = find(queue, uid);

	return user ? &user->refusal : NULL;
}

int takt_queue_user_has(struct takt_queue *queue, uid_t uid, size_t jobs, size_t bytes)
{
	struct takt_queue_user *user = find(queue, uid);

	if (!user) {
		user = takt_zalloc(sizeof(*user));
		if (!user || takt_map_u64_put_ptr(&queue->users, uid, user) < 0) {
			takt_free(user);
			return -ENOMEM;
		}
	}
	user->jobs += jobs;
	user->bytes += bytes;
	queue->bytes += bytes;
	return 0;
}

void takt_queue_user_lets_go(struct takt_queue *queue, uid_t uid, size_t jobs, size_t bytes)
{
	struct takt_queue_user *user = find(queue, uid);

	if (!user)
		return;
	user->jobs -= jobs;
	user->bytes -= bytes;
	queue->bytes -= bytes;
	if (user->jobs > 0 || user->bytes > 0)
		return;
	queue->users_refused -= user->refusal.of.kind != TAKT_REFUSAL_NONE;
	takt_map_u64_remove(&queue->users, uid);
	takt_free(user);
}

void takt_queue_users_fini(struct takt_queue *queue)
{
	TAKT_MAP_EACH(entry, &queue->users)
	takt_free(entry->value.ptr);
	takt_map_fini(&queue->users);
}

static struct takt_queue_user had_by(const struct takt_queue *queue, uid_t uid)
{
	const struct takt_queue_user *user = find(queue, uid);

	return user ? *user : (struct takt_queue_user){.jobs = 0};
}

static bool has_share(const struct takt_queue *queue, uid_t uid)
{
	return queue->config.shared && uid != 0;
}

static size_t share_of(size_t said, size_t limit)
{
	return said ? said : limit / TAKT_QUEUE_USER_PART;
}

/* How much more he may have, of what all have together and root of that. */
static size_t room_for(const struct takt_queue *queue, uid_t uid, size_t limit, size_t all,
		       size_t root)
{
	size_t of_users = limit - limit / TAKT_QUEUE_ROOT_PART;
	size_t room = all < limit ? limit - all : 0, left;

	if (!has_share(queue, uid))
		return room;
	left = all - root < of_users ? of_users - (all - root) : 0;
	return left < room ? left : room;
}

static const char *for_root(const struct takt_queue *queue, uid_t uid)
{
	return has_share(queue, uid) ? ", but for what is kept for root" : "";
}

int takt_queue_check_count(const struct takt_queue *queue, uid_t uid, uint32_t count,
			   struct takt_err *err)
{
	const struct takt_queue_config *config = &queue->config;
	size_t live = queue->jobs.len + queue->to_come, own = had_by(queue, uid).jobs;
	size_t room = room_for(queue, uid, config->max_jobs, live, had_by(queue, 0).jobs);
	size_t share = share_of(config->user_max_jobs, config->max_jobs);

	if (has_share(queue, uid) && own + count > share)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "%u %s more: you have %zu that are not over, and a user may "
				    "have %zu (user_max_jobs)",
				    count, count == 1 ? "job" : "jobs", own, share);
	if (count <= room)
		return 0;
	if (count == 1)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "the queue is full with %zu jobs%s (max_jobs)", live,
				    for_root(queue, uid));
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "%u jobs: the queue has room for %zu more%s (max_jobs)", count, room,
			    for_root(queue, uid));
}

int takt_queue_check_bytes(const struct takt_queue *queue, uid_t uid, size_t bytes,
			   struct takt_err *err)
{
	const struct takt_queue_config *config = &queue->config;
	size_t root = had_by(queue, 0).bytes;
	size_t share = share_of(config->user_max_bytes, config->max_bytes);

	if (has_share(queue, uid) && had_by(queue, uid).bytes + bytes > share)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "the descriptions of your jobs would be over %zu bytes, what a "
				    "user may have (user_descriptions)",
				    share);
	if (bytes <= room_for(queue, uid, config->max_bytes, queue->bytes, root))
		return 0;
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "the queue is full: the descriptions of its jobs would be over %zu "
			    "bytes%s",
			    config->max_bytes, for_root(queue, uid));
}

void takt_queue_count_starts(struct takt_queue *queue)
{
	TAKT_MAP_EACH(entry, &queue->users)
	((struct takt_queue_user *)entry->value.ptr)->starting = 0;
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		const struct takt_queue_job *job = entry->value.ptr;

		if (job->phase == TAKT_PHASE_PREPARING || job->phase == TAKT_PHASE_STARTING)
			find(queue, job->row.uid)->starting++;
	}
}

bool takt_queue_may_start(struct takt_queue *queue, uint64_t job_id)
{
	const struct takt_queue_job *job = takt_queue_job_find(queue, job_id);
	struct takt_queue_user *user = job ? find(queue, job->row.uid) : NULL;

	return !user || user->starting++ < (user->refusal.of.kind ? 1 : TAKT_QUEUE_STARTS);
}
