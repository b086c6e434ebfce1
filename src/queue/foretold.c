/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts that are foretold, and how they came true. The instant is the plan's. Its range comes from
 * earlier ones (src/model/start_range.h): when a job starts it is learned what was foretold at
 * first, and each time that half of the wait that was left had gone by. That outlives the daemon.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/queue_impl.h"

enum {
	LEAST_S = 60 /* of wait, to learn from */
};

static const char prefix[] = "start-range/"; /* and the number of the kind */

static const struct takt_plan_wait *word_on(const struct takt_queue *queue, uint64_t job_id)
{
	uint32_t ahead;
	const struct takt_plan_wait *wait = takt_queue_why(queue, job_id, &ahead);

	return wait && wait->how != TAKT_START_UNKNOWN ? wait : NULL;
}

static uint64_t gpus_of(const struct takt_queue *queue, uint64_t job_id)
{
	const struct takt_plan *plan = &queue->plan;
	uint64_t mask = 0;

	for (size_t i = 0; i < plan->reservation_count; i++)
		if (plan->reservations[i].job_id == job_id)
			mask |= plan->reservations[i].gpu_mask;
	return mask;
}

uint64_t takt_queue_gpu_kept_for(const struct takt_queue *queue, uint32_t gpu)
{
	const struct takt_plan *plan = &queue->plan;
	uint64_t holder;

	if (takt_queue_gpu(queue, gpu, &holder) != TAKT_GPU_FREE)
		return 0;
	for (size_t i = 0; i < plan->reservation_count; i++)
		if (!plan->reservations[i].foreseen && plan->reservations[i].gpu_mask >> gpu & 1)
			return plan->reservations[i].job_id;
	return 0;
}

/* It rests on what jobs are expected to take, and not on a time that was set. */
static bool is_estimated(enum takt_start_how how)
{
	return how == TAKT_START_ESTIMATE || how == TAKT_START_BEHIND;
}

static bool may_be_told(const struct takt_queue *queue, struct takt_queue_start *start)
{
	uint64_t ahead_ns = (uint64_t)(start->at.ns - queue->wall.ns), low_ns, high_ns;
	enum takt_start_range_word word =
		takt_start_range(&queue->start_ranges, ahead_ns, &low_ns, &high_ns);

	start->has_range = word == TAKT_START_RANGE_KNOWN;
	if (start->has_range) {
		start->low.ns = queue->wall.ns + (int64_t)low_ns;
		start->high.ns = queue->wall.ns + (int64_t)high_ns;
	}
	return word != TAKT_START_RANGE_WIDE;
}

static struct takt_queue_start start_of(const struct takt_queue *queue,
					const struct takt_plan_wait *wait)
{
	struct takt_queue_start start = {.at = {queue->config.epoch.ns + (int64_t)wait->start_ns}};

	if (start.at.ns < queue->wall.ns)
		start.at = queue->wall; /* the plan was made a moment ago */
	return start;
}

bool takt_queue_start_foretold(const struct takt_queue *queue, const struct takt_plan_wait *wait,
			       struct takt_queue_start *ret)
{
	*ret = (struct takt_queue_start){.has_range = false};
	if (wait->how == TAKT_START_UNKNOWN)
		return false;
	*ret = start_of(queue, wait);
	return !is_estimated(wait->how) || may_be_told(queue, ret);
}

bool takt_queue_foretold(const struct takt_queue *queue, const struct takt_queue_job *job,
			 struct takt_queue_start *ret)
{
	const struct takt_plan_wait *wait =
		job->phase == TAKT_PHASE_WAITING ? word_on(queue, job->row.id) : NULL;

	*ret = (struct takt_queue_start){.has_range = false};
	if (!wait || !takt_queue_start_foretold(queue, wait, ret))
		return false;
	ret->gpus = gpus_of(queue, job->row.id);
	if (job->told_count > 0 && job->told[0].start.ns < queue->wall.ns)
		ret->overdue_since = job->told[0].start;
	return true;
}

/* Leaves out the one that is missed least: between whose neighbours the least of the time until now
 * went by. The first and the last stay. */
static void thin_out(struct takt_queue_job *job, struct takt_wall now)
{
	struct takt_queue_told *told = job->told;
	uint32_t least = 1;
	double least_part = 2;

	for (uint32_t i = 1; i + 1 < job->told_count; i++) {
		double part = (double)(told[i + 1].at.ns - told[i - 1].at.ns) /
			      (double)(now.ns - told[i - 1].at.ns + 1);

		if (part < least_part) {
			least_part = part;
			least = i;
		}
	}
	memmove(&told[least], &told[least + 1], (job->told_count - least - 1) * sizeof(*told));
	job->told_count--;
}

void takt_queue_note_foretold(struct takt_queue *queue)
{
	for (size_t i = 0; i < queue->plan.wait_count; i++) {
		const struct takt_plan_wait *wait = &queue->plan.waits[i];
		struct takt_queue_job *job =
			is_estimated(wait->how) ? takt_queue_job_find(queue, wait->job_id) : NULL;
		struct takt_wall start;

		if (!job)
			continue;
		start = start_of(queue, wait).at;
		if (job->told_count == TAKT_QUEUE_MAX_TOLD)
			thin_out(job, queue->wall);
		job->told[job->told_count++] = (struct takt_queue_told){queue->wall, start};
	}
}

/* The last that was told by then. */
static const struct takt_queue_told *told_by(const struct takt_queue_job *job, int64_t at_ns)
{
	const struct takt_queue_told *told = &job->told[0];

	for (uint32_t i = 1; i < job->told_count && job->told[i].at.ns <= at_ns; i++)
		told = &job->told[i];
	return told;
}

/* What cannot be kept now is with what is learned next. */
static void keep(struct takt_queue *queue, uint32_t kind)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_STORE_MAX_KEPT);
	char key[sizeof(prefix) + 16];

	snprintf(key, sizeof(key), "%s%" PRIu32, prefix, kind);
	takt_start_range_write(&queue->start_ranges.kinds[kind], &text);
	if (text.rc == 0)
		(void)takt_store_keep(queue->config.store, key, takt_str_text(&text), TICKET_USAGE,
				      NULL);
}

static int take(void *ctx, const char *key, const char *text)
{
	struct takt_queue *queue = ctx;
	unsigned long long kind;

	if (takt_parse_u64(key + strlen(prefix), 0, TAKT_START_RANGE_KINDS - 1, &kind) == 0)
		(void)takt_start_range_read(text, &queue->start_ranges.kinds[kind]);
	return 0;
}

int takt_queue_load_start_ranges(struct takt_queue *queue, struct takt_err *err)
{
	return takt_store_each_kept(queue->config.store, prefix, take, queue, err);
}

void takt_queue_learn_start(struct takt_queue *queue, struct takt_queue_job *job)
{
	int64_t now_ns = queue->wall.ns;
	int64_t left_ns = job->told_count > 0 ? now_ns - job->told[0].at.ns : 0;
	uint32_t learned = 0; /* a bit a kind */

	for (; left_ns > LEAST_S * (int64_t)TAKT_NS_PER_S; left_ns /= 2) {
		int64_t then_ns = now_ns - left_ns;
		int64_t ahead_ns = told_by(job, then_ns)->start.ns - then_ns;

		learned |= 1U << takt_start_range_learn(&queue->start_ranges,
							ahead_ns > 0 ? (uint64_t)ahead_ns : 0,
							(uint64_t)left_ns);
	}
	for (uint32_t kind = 0; kind < TAKT_START_RANGE_KINDS; kind++)
		if (learned >> kind & 1)
			keep(queue, kind);
	job->told_count = 0;
}
