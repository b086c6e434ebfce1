/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long jobs will run. What the owner says goes first; else what jobs of his with that command
 * and size took (src/model/runtime.h), learned from history when takt starts and from each end
 * since;
 * else the time limit, which caps all three. Who has outlived his estimate is expected to run as
 * long again. Who waits hears of what was learned once a second at most, however many jobs end, and
 * the scheduler of each kind's outlook once, however many jobs are of it.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

enum {
	LEARN_FROM = 2000, /* newest ended jobs */
	LOOK_AGAIN_S = 30, /* at what runs, and at what waits if something was learned */
	RENEW_AGAIN_S = 1, /* what waits */
};

const char *takt_estimate_from_name(enum takt_estimate_from from)
{
	static const char *const names[] = {"", "owner", "history", "limit", "outlived"};

	return names[from];
}

/* FNV-1a, of a word and its end. */
static uint64_t hash_on(uint64_t hash, const char *word)
{
	do
		hash = (hash ^ (unsigned char)*word) * UINT64_C(0x100000001b3);
	while (*word++);
	return hash;
}

/* What is run, and where; never 0, which would be no name. What a job is called says less: sleep 60
 * and sleep 36000 are both called sleep. */
static uint64_t command_of(const struct takt_jobspec *spec)
{
	uint64_t hash = hash_on(UINT64_C(0xcbf29ce484222325), spec->cwd ? spec->cwd : "");

	for (char **word = spec->argv; word && *word; word++)
		hash = hash_on(hash, *word);
	return hash ? hash : 1;
}

static struct takt_runtime_job describe(uid_t uid, const struct takt_jobspec *spec)
{
	return (struct takt_runtime_job){
		.owner = uid, .name = command_of(spec), .gpus = spec->gpus};
}

/* False when nothing is left. */
static bool take_off(uint64_t *ns, uint64_t part_ns)
{
	*ns = *ns > part_ns ? *ns - part_ns : 0;
	return *ns > 0 || part_ns == 0;
}

/* What has ended and how long it ran, but not while it stood still for others; false when that says
 * nothing of its kind. */
static bool ran_to_its_end(const struct takt_job *row, uint64_t *ret_ns)
{
	if (row->state != TAKT_JOB_DONE && row->state != TAKT_JOB_FAILED)
		return false;
	if (row->report.has & TAKT_REPORT_WALL)
		*ret_ns = row->report.wall_ns;
	else if (row->started.ns && row->ended.ns > row->started.ns)
		*ret_ns = (uint64_t)(row->ended.ns - row->started.ns);
	else
		return false;
	return take_off(ret_ns, row->stood_ns);
}

struct past {
	struct takt_runtime_job job;
	uint64_t ran_ns;
};

struct history {
	struct past *list; /* the newest first */
	size_t count;
};

static int note_past(void *ctx, const struct takt_job *row)
{
	struct history *history = ctx;
	struct past past = {.ran_ns = 0};
	struct takt_jobspec spec;

	if (history->count == LEARN_FROM || !ran_to_its_end(row, &past.ran_ns))
		return 0;
	takt_jobspec_init(&spec);
	if (takt_jobspec_from_json(row->spec_json, strlen(row->spec_json), &spec, NULL) == 0) {
		past.job = describe(row->uid, &spec);
		history->list[history->count++] = past;
	}
	takt_jobspec_fini(&spec);
	return 0;
}

int takt_queue_learn_history(struct takt_queue *queue, struct takt_err *err)
{
	struct history history = {.list = takt_calloc(LEARN_FROM, sizeof(struct past))};
	int rc = history.list
			 ? takt_store_each_history(queue->config.store, LEARN_FROM,
						   TAKT_QUEUE_LEARN_SPEC, note_past, &history, err)
			 : takt_err_set(err, -ENOMEM, "run times of earlier jobs");

	for (size_t i = history.count; rc == 0 && i-- > 0;) {
		uint32_t kind, step = TAKT_RUNTIME_NEW;

		rc = takt_runtime_kind(queue->runtimes, &history.list[i].job, &kind, err);
		if (rc == 0)
			takt_runtime_ended(queue->runtimes, kind, &step, history.list[i].ran_ns, 0);
	}
	takt_free(history.list);
	return rc;
}

static uint64_t ran_ns(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	return job->phase == TAKT_PHASE_RUNNING && job->row.started.ns &&
			       queue->wall.ns > job->row.started.ns
		       ? (uint64_t)(queue->wall.ns - job->row.started.ns)
		       : 0;
}

static void cap(struct takt_queue_estimate *estimate, uint64_t limit_ns)
{
	if (limit_ns == 0 || (estimate->ns && estimate->ns <= limit_ns))
		return;
	*estimate = (struct takt_queue_estimate){.ns = limit_ns,
						 .from = TAKT_ESTIMATE_LIMIT,
						 .kind = estimate->kind,
						 .step = estimate->step,
						 .model_ns = estimate->model_ns};
}

/* As if it had not begun. */
static void estimate_whole(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_queue_estimate *estimate = &job->estimate;
	struct takt_runtime_prediction learned;

	estimate->ns = job->spec.estimate_ms * TAKT_NS_PER_MS;
	estimate->from = estimate->ns ? TAKT_ESTIMATE_OWNER : TAKT_ESTIMATE_NONE;
	estimate->has_error = false;
	if (takt_runtime_predict(queue->runtimes, estimate->kind, &learned) && learned.alike) {
		estimate->model_ns = learned.mean_ns ? learned.mean_ns : 1;
		if (estimate->ns == 0) {
			estimate->ns = estimate->model_ns;
			estimate->from = TAKT_ESTIMATE_HISTORY;
			estimate->has_error = learned.has_error;
			estimate->error_ns = learned.error_ns;
		}
	}
	cap(estimate, job->spec.time_limit_ms * TAKT_NS_PER_MS);
}

int takt_queue_estimate(struct takt_queue *queue, struct takt_queue_job *job, struct takt_err *err)
{
	struct takt_runtime_job known = describe(job->row.uid, &job->spec);
	int rc = takt_runtime_kind(queue->runtimes, &known, &job->estimate.kind, err);

	if (rc < 0)
		return rc;
	job->estimate.step = TAKT_RUNTIME_NEW;
	estimate_whole(queue, job);
	return takt_queue_tell_outlook(queue, job->estimate.kind, err);
}

/* For the row of its end, from which history is read: also the time that its owner had it stand
 * still. Where nobody knows that, nothing is to be learned from it. */
static void note_stood(const struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t rested_ns;

	if (takt_queue_rested(queue, job, &rested_ns))
		job->row.stood_ns += rested_ns;
	else
		job->row.stood_ns = INT64_MAX;
	job->rested_ns = 0;
	job->rests_since = queue->now;
}

void takt_queue_learn_end(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_queue_estimate *estimate = &job->estimate;
	uint64_t ran = 0;

	note_stood(queue, job);
	if (!ran_to_its_end(&job->row, &ran))
		return;
	takt_runtime_ended(queue->runtimes, estimate->kind, &estimate->step, ran,
			   estimate->model_ns);
	queue->learned = true;
}

static void tell_estimate(struct takt_queue *queue, const struct takt_queue_job *job)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ESTIMATE,
					 .job_id = job->row.id,
					 .estimate_ns = job->estimate.ns};

	if (takt_sched_update(queue->sched, &event, NULL) == 0)
		queue->dirty = true;
}

static void reached(struct takt_queue *queue, struct takt_queue_job *job, uint64_t ran)
{
	uint64_t rested;

	if (takt_queue_rested(queue, job, &rested) && take_off(&ran, rested) &&
	    take_off(&ran, job->row.stood_ns))
		takt_runtime_reached(queue->runtimes, job->estimate.kind, &job->estimate.step, ran);
}

/* Who has outlived his estimate runs as long again, for all that is known. */
static void watch_running(struct takt_queue *queue, struct takt_queue_job *job)
{
	struct takt_queue_estimate *estimate = &job->estimate;
	uint64_t ran = ran_ns(queue, job);

	reached(queue, job, ran);
	if (estimate->ns == 0 || ran < estimate->ns || estimate->from == TAKT_ESTIMATE_LIMIT)
		return;
	while (estimate->ns <= ran && estimate->ns < UINT64_MAX / 4)
		estimate->ns *= 2;
	estimate->from = TAKT_ESTIMATE_OUTLIVED;
	estimate->has_error = false;
	cap(estimate, job->spec.time_limit_ms * TAKT_NS_PER_MS);
	tell_estimate(queue, job);
}

static void renew(struct takt_queue *queue, struct takt_queue_job *job)
{
	uint64_t was_ns = job->estimate.ns;

	estimate_whole(queue, job);
	(void)takt_queue_tell_outlook(queue, job->estimate.kind, NULL);
	if (job->estimate.ns != was_ns)
		tell_estimate(queue, job);
}

void takt_queue_estimate_anew(struct takt_queue *queue, struct takt_queue_job *job)
{
	renew(queue, job);
	if (job->phase == TAKT_PHASE_RUNNING)
		watch_running(queue, job);
}

static bool renewal_due(const struct takt_queue *queue)
{
	return queue->learned && queue->next_renewal_ns <= queue->now.ns;
}

bool takt_queue_estimates_due(const struct takt_queue *queue)
{
	return renewal_due(queue) ||
	       (queue->next_estimate_ns && queue->next_estimate_ns <= queue->now.ns);
}

uint64_t takt_queue_next_estimate_ns(const struct takt_queue *queue)
{
	uint64_t next_ns = queue->next_estimate_ns;

	return queue->learned && (next_ns == 0 || queue->next_renewal_ns < next_ns)
		       ? queue->next_renewal_ns
		       : next_ns;
}

void takt_queue_look_at_estimates(struct takt_queue *queue)
{
	bool running = false, due = renewal_due(queue);

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		running = running || job->phase == TAKT_PHASE_RUNNING;
		if (job->phase == TAKT_PHASE_RUNNING)
			watch_running(queue, job);
		else if (job->phase == TAKT_PHASE_WAITING && due)
			renew(queue, job);
	}
	if (due) {
		queue->learned = false;
		queue->next_renewal_ns = queue->now.ns + RENEW_AGAIN_S * TAKT_NS_PER_S;
	}
	queue->next_estimate_ns = running ? queue->now.ns + LOOK_AGAIN_S * TAKT_NS_PER_S : 0;
}

/* Outlooks, for the order that asks for them. */

static uint32_t seconds(uint64_t ms)
{
	uint64_t s = (ms + 999) / 1000;

	return s < UINT32_MAX ? (uint32_t)s : UINT32_MAX;
}

static void fill_outlook(const struct takt_queue *queue, uint32_t kind,
			 struct takt_sched_outlook *ret)
{
	struct takt_runtime_prediction learned;
	struct takt_runtime_outlook is;

	takt_runtime_outlook(queue->runtimes, kind, &is);
	*ret = (struct takt_sched_outlook){.id = kind + 1, .is.steps = TAKT_RUNTIME_STEPS};
	if (takt_runtime_predict(queue->runtimes, kind, &learned))
		ret->is.mean_s = seconds(learned.mean_ns / TAKT_NS_PER_MS);
	for (uint32_t i = 0; i < TAKT_RUNTIME_STEPS; i++) {
		ret->is.age_s[i] = seconds(is.age_ms[i]);
		ret->is.rank_s[i] = seconds(is.rank_ms[i]);
	}
}

bool takt_queue_uses_outlooks(const struct takt_queue *queue)
{
	return queue->setup.sched.order->reads & TAKT_ORDER_OUTLOOK;
}

/* What the scheduler was told of a kind; 0 = nothing yet. */
static int told_of(struct takt_queue *queue, uint32_t kind, uint64_t **ret, struct takt_err *err)
{
	while (queue->outlooks.len <= kind)
		if (takt_vec_push(&queue->outlooks, 0) < 0)
			return takt_err_set(err, -ENOMEM, "outlooks of kinds of jobs");
	*ret = &queue->outlooks.at[kind];
	return 0;
}

int takt_queue_tell_outlook(struct takt_queue *queue, uint32_t kind, struct takt_err *err)
{
	struct takt_sched_outlook outlook;
	struct takt_sched_event event = {.kind = TAKT_SCHED_OUTLOOK, .outlook = &outlook};
	uint64_t is = takt_runtime_told(queue->runtimes, kind) + 1, *told = NULL;
	int rc;

	if (!takt_queue_uses_outlooks(queue))
		return 0;
	rc = told_of(queue, kind, &told, err);
	if (rc < 0 || *told == is)
		return rc;
	fill_outlook(queue, kind, &outlook);
	rc = takt_sched_update(queue->sched, &event, err);
	if (rc == 0)
		*told = is;
	return rc;
}
