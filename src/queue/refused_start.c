/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts that are refused: by the launcher (this user runs nothing here, jobs cannot be kept apart,
 * no cgroup), or because nobody is there to ask. A job whose start was refused waits for a pause
 * that grows, and its GPUs are others' meanwhile. What is refused of its user's jobs, or of several
 * of them one after the other, is asked for with one of them at a time; what is refused of all
 * holds up all. A start that succeeds ends it.
 */
#include "base/mem.h"
#include "base/str.h"
#include "queue/queue_impl.h"

enum {
	MANY = 3, /* refusals that are not one job's bad luck any more */
};

/* Of one job, or of one of a user's. */
static const struct takt_pace pauses = {TAKT_NS_PER_S, 60 * TAKT_NS_PER_S};

static struct takt_wall in(const struct takt_queue *queue, uint64_t ns)
{
	return (struct takt_wall){queue->wall.ns + (int64_t)ns};
}

static void note(const struct takt_queue *queue, struct takt_queue_refusal *refusal,
		 enum takt_refusal kind, const char *text)
{
	if (!refusal->kind)
		*refusal = (struct takt_queue_refusal){.since = queue->wall};
	refusal->kind = kind;
	refusal->tries++;
	takt_strcpy(refusal->text, sizeof(refusal->text), text);
}

/* When its waiting jobs may start has changed. */
static void tell_of_user(struct takt_queue *queue, uid_t uid)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		const struct takt_queue_job *job = entry->value.ptr;

		if (job->row.uid == uid && job->phase == TAKT_PHASE_WAITING)
			(void)takt_queue_tell(queue, TAKT_SCHED_JOB_CHANGE, job, NULL);
	}
}

/* What was under way when the first was refused is one try. */
static void note_user(struct takt_queue *queue, uid_t uid, enum takt_refusal kind, const char *text)
{
	struct takt_queue_refusal *refusal = &takt_queue_user_refusal(queue, uid)->of;

	if (refusal->kind && refusal->next.ns > queue->wall.ns)
		return;
	queue->users_refused += !refusal->kind;
	note(queue, refusal, kind, text);
	refusal->next = in(queue, takt_pace_ns(&pauses, refusal->tries - 1));
	tell_of_user(queue, uid);
}

void takt_queue_note_refusal(struct takt_queue *queue, struct takt_queue_job *job,
			     enum takt_refusal kind, const char *text)
{
	enum takt_refusal_scope scope = takt_refusal_scope(kind);
	struct takt_queue_user_refusal *user = takt_queue_user_refusal(queue, job->row.uid);

	if (!job->refusal) {
		job->refusal = takt_zalloc(sizeof(*job->refusal));
		user->jobs++;
	}
	if (scope == TAKT_REFUSED_ALL || !job->refusal)
		takt_queue_pause(queue);
	note(queue, &queue->refusal, kind, text);
	queue->refusal.next = in(queue, queue->retry_ns ? queue->retry_ns - queue->now.ns : 0);
	if (!job->refusal)
		return;
	note(queue, job->refusal, kind, text);
	job->refusal->next = scope == TAKT_REFUSED_ALL
				     ? queue->refusal.next
				     : in(queue, takt_pace_ns(&pauses, job->refusal->tries - 1));
	if (scope == TAKT_REFUSED_USER || (scope == TAKT_REFUSED_JOB && user->jobs >= MANY))
		note_user(queue, job->row.uid, kind, text);
}

void takt_queue_refusal_over(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_queue_user_refusal *user = takt_queue_user_refusal(queue, job->row.uid);
	bool held_up = user->of.kind;

	takt_free(job->refusal);
	job->refusal = NULL;
	queue->refusal = (struct takt_queue_refusal){.kind = TAKT_REFUSAL_NONE};
	queue->users_refused -= held_up;
	*user = (struct takt_queue_user_refusal){.jobs = 0};
	if (held_up)
		tell_of_user(queue, job->row.uid);
}

/* NULL where what refused it has let others start since. */
static const struct takt_queue_refusal *own_refusal(const struct takt_queue *queue,
						    const struct takt_queue_job *job,
						    const struct takt_queue_user_refusal *user)
{
	enum takt_refusal_scope scope =
		job->refusal ? takt_refusal_scope(job->refusal->kind) : TAKT_REFUSED_JOB;
	bool over = (scope == TAKT_REFUSED_USER && !user->of.kind) ||
		    (scope == TAKT_REFUSED_ALL && !queue->refusal.kind);

	return over ? NULL : job->refusal;
}

const struct takt_queue_refusal *takt_queue_refused(const struct takt_queue *queue,
						    const struct takt_queue_job *job)
{
	const struct takt_queue_user_refusal *user = takt_queue_user_refusal(queue, job->row.uid);
	const struct takt_queue_refusal *own = user ? own_refusal(queue, job, user) : NULL;

	if (own || !user)
		return own;
	if (user->of.kind)
		return &user->of;
	return takt_refusal_scope(queue->refusal.kind) == TAKT_REFUSED_ALL ? &queue->refusal : NULL;
}

struct takt_wall takt_queue_refused_until(const struct takt_queue *queue,
					  const struct takt_queue_job *job)
{
	const struct takt_queue_user_refusal *user = takt_queue_user_refusal(queue, job->row.uid);
	const struct takt_queue_refusal *own = user ? own_refusal(queue, job, user) : NULL;
	struct takt_wall until = own ? own->next : (struct takt_wall){0};

	if (user && user->of.kind && user->of.next.ns > until.ns)
		until = user->of.next;
	return until;
}

const struct takt_queue_refusal *takt_queue_all_refused(const struct takt_queue *queue)
{
	const struct takt_queue_refusal *refusal = &queue->refusal;

	return refusal->kind == TAKT_REFUSAL_LAUNCHER || refusal->kind == TAKT_REFUSAL_ISOLATION ||
			       refusal->tries >= MANY
		       ? refusal
		       : NULL;
}

static void move(struct takt_queue_refusal *refusal, int64_t by_ns)
{
	refusal->since.ns += by_ns;
	refusal->next.ns += by_ns;
}

void takt_queue_refusals_move(struct takt_queue *queue, int64_t by_ns)
{
	move(&queue->refusal, by_ns);
	TAKT_MAP_EACH(entry, &queue->users)
	move(&takt_queue_user_refusal(queue, (uid_t)entry->key)->of, by_ns);
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->refusal)
			move(job->refusal, by_ns);
	}
}
