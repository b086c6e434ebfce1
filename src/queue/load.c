/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a start of the daemon: the live jobs of the store come back. Those that wait, wait; those
 * that had an attempt keep its GPUs until the engine has said what became of it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "queue/queue_impl.h"

enum {
	UUID_TEXT = 96
};

struct load {
	struct takt_queue *queue;
	struct takt_err *err;
	/* GPUs on record that the machine does not show now, by their numbers beyond its own. */
	char missing[TAKT_SCHED_MAX_NODE_GPUS][UUID_TEXT];
};

static int copy_row(const struct takt_job *from, struct takt_job *ret)
{
	*ret = *from;
	ret->env_json = NULL;
	ret->spec_json = takt_strdup(from->spec_json);
	ret->message = takt_strdup(from->message);
	ret->mig = takt_strdup(from->mig);
	ret->gpu_uuids = takt_strdup(from->gpu_uuids);
	return (from->spec_json && !ret->spec_json) || (from->message && !ret->message) ||
			       (from->mig && !ret->mig) || (from->gpu_uuids && !ret->gpu_uuids)
		       ? -ENOMEM
		       : 0;
}

/* The number that a GPU has now; -1: there is none left. */
static int number_of(struct load *load, const char *uuid, size_t len)
{
	const struct takt_queue_config *config = &load->queue->config;

	for (uint32_t gpu = 0; gpu < config->gpu_count; gpu++)
		if (strlen(config->gpu_uuid[gpu]) == len &&
		    memcmp(config->gpu_uuid[gpu], uuid, len) == 0)
			return (int)gpu;
	for (uint32_t gpu = config->gpu_count; gpu < TAKT_SCHED_MAX_NODE_GPUS; gpu++) {
		char *missing = load->missing[gpu];

		if (!missing[0])
			snprintf(missing, UUID_TEXT, "%.*s", (int)len, uuid);
		if (strlen(missing) == len && memcmp(missing, uuid, len) == 0)
			return (int)gpu;
	}
	return -1;
}

/* The GPUs of a row, as many as `max`: where each UUID begins, its length, its number now. False:
 * it does not name them all, or one has no number. */
static bool find_numbers(struct load *load, const struct takt_job *row, const char **uuid,
			 size_t *len, int *number, uint32_t max)
{
	const char *text = row->gpu_uuids;
	uint32_t n = 0;

	for (; *text && n < max; n++) {
		uuid[n] = text;
		len[n] = strcspn(text, ",");
		number[n] = len[n] ? number_of(load, text, len[n]) : -1;
		if (number[n] < 0)
			return false;
		text += len[n] + (text[len[n]] == ',');
	}
	return n == max && !*text;
}

/* GPUs are known by their UUIDs: the numbers in a row are those of the start that placed the job,
 * and the driver may have come back with fewer GPUs, or more, since. */
static int renumber(struct load *load, struct takt_job *row)
{
	uint32_t n = (uint32_t)__builtin_popcountll(row->gpu_mask);
	const char *uuid[TAKT_SCHED_MAX_NODE_GPUS];
	size_t len[TAKT_SCHED_MAX_NODE_GPUS];
	int number[TAKT_SCHED_MAX_NODE_GPUS];
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_SCHED_MAX_NODE_GPUS * UUID_TEXT);
	uint64_t mask = 0;

	if (!load->queue->config.gpu_uuid || !row->gpu_uuids ||
	    !find_numbers(load, row, uuid, len, number, n))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		mask |= 1ull << number[i];
	if (mask == row->gpu_mask)
		return 0;
	for (uint64_t left = mask; left; left &= left - 1)
		for (uint32_t i = 0; i < n; i++)
			if (number[i] == __builtin_ctzll(left))
				takt_str_addf(&text, "%s%.*s", left == mask ? "" : ",", (int)len[i],
					      uuid[i]);
	takt_free(row->gpu_uuids);
	row->gpu_uuids = takt_str_take(&text);
	row->gpu_mask = mask;
	return row->gpu_uuids ? 0 : -ENOMEM;
}

/* What the jobs of an array have together, read with the first of them that lives. */
static int load_shared_env(struct takt_queue *queue, struct takt_queue_job *job,
			   struct takt_err *err)
{
	struct takt_queue_env *env = takt_map_u64_ptr(&queue->envs, job->row.env_of);
	struct takt_jobspec read = {.env = NULL};
	char *json = NULL;
	int rc = 0;

	if (!job->row.env_of)
		return 0;
	if (env) {
		takt_queue_env_lend(job, env);
		return 0;
	}
	rc = takt_store_environment(queue->config.store, job->row.env_of, &json, err);
	if (rc == 0 && json)
		rc = takt_jobspec_env_from_json(json, strlen(json), &read, err);
	takt_free(json);
	if (rc < 0 || !json)
		return rc;
	env = takt_queue_env_share(queue, job->row.env_of, job->row.uid, read.env);
	if (!env)
		return takt_err_set(err, -ENOMEM, "the environment of an array");
	takt_queue_env_lend(job, env);
	takt_queue_env_unref(env); /* it is the job's */
	return 0;
}

static int load_one(void *ctx, const struct takt_job *row)
{
	struct load *load = ctx;
	struct takt_queue *queue = load->queue;
	struct takt_queue_job *job = takt_zalloc(sizeof(*job));
	int rc;

	if (!job)
		return takt_err_set(load->err, -ENOMEM, "load job %llu",
				    (unsigned long long)row->id);
	takt_jobspec_init(&job->spec);
	rc = copy_row(row, &job->row);
	if (rc == 0)
		rc = renumber(load, &job->row);
	takt_queue_move_loaded(queue, &job->row);
	if (rc == 0)
		rc = takt_jobspec_from_json(row->spec_json, strlen(row->spec_json), &job->spec,
					    load->err);
	takt_queue_keep_changes(row, &job->spec);
	if (rc == 0)
		rc = load_shared_env(queue, job, load->err);
	if (rc == 0)
		rc = takt_queue_env_load(job, row, load->err);
	if (rc == 0)
		rc = takt_queue_find_tenant(queue, job, false, load->err);
	if (rc == 0)
		rc = takt_queue_estimate(queue, job, load->err);
	if (rc == 0)
		rc = takt_queue_job_put(queue, job);
	if (rc < 0) {
		takt_queue_job_free(job);
		return takt_err_wrap(load->err, rc, "load job %llu", (unsigned long long)row->id);
	}
	job->phase = row->state == TAKT_JOB_WAITING ? TAKT_PHASE_WAITING : TAKT_PHASE_STARTING;
	job->stop_wanted = row->cancel_wanted || row->timed_out;
	if (row->state == TAKT_JOB_WAITING && row->staged) {
		rc = takt_queue_stage_adopt(queue, job);
		if (rc < 0)
			return takt_err_set(load->err, rc, "load job %llu",
					    (unsigned long long)row->id);
	}
	takt_queue_load_eviction(queue, job);
	rc = takt_queue_load_after(queue, job, load->err);
	return rc < 0 ? rc : takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, job, load->err);
}

/* What the attempts that may be alive hold together. */
struct attempted {
	uint64_t gpus;
	int64_t cpu_milli, mem_mib;
	uint32_t whole_mib[TAKT_SCHED_MAX_NODE_GPUS]; /* the most that one asked of each GPU */
	uint32_t shares_mib[TAKT_SCHED_MAX_NODE_GPUS];
};

static int64_t max_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void add_gpus(const struct takt_queue_job *job, struct attempted *sum)
{
	for (uint64_t left = job->row.gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		sum->shares_mib[gpu] += job->row.mem_held_mib;
		sum->whole_mib[gpu] = (uint32_t)max_of(sum->whole_mib[gpu], job->spec.gpu_mem_mib);
	}
}

/* What a GPU must have at least. */
static uint32_t held_on(const struct attempted *sum, uint32_t gpu)
{
	return (uint32_t)max_of(sum->whole_mib[gpu], sum->shares_mib[gpu]);
}

/* The memory of each GPU of a node; true when some have more than the configuration says. */
static bool memory_of(const struct takt_queue_config *config, const struct attempted *held,
		      struct takt_sched_node *node, uint32_t each[TAKT_SCHED_MAX_NODE_GPUS])
{
	bool more = false, unlike = false;

	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		uint32_t has = gpu < config->gpu_count ? takt_queue_gpu_mem(config, gpu)
						       : config->gpu_mem_mib;

		each[gpu] = (uint32_t)max_of(has, held_on(held, gpu));
		more = more || each[gpu] != has;
		unlike = unlike || each[gpu] != each[0];
	}
	node->dev_mem_mib = unlike || node->gpu_count == 0 ? config->gpu_mem_mib : each[0];
	node->each_mem_mib = unlike ? each : NULL;
	return more;
}

static void add_attempt(const struct takt_queue_job *job, struct attempted *sum)
{
	sum->gpus |= job->row.gpu_mask;
	sum->cpu_milli += job->spec.cpu_milli;
	if (sum->cpu_milli > INT32_MAX)
		sum->cpu_milli = INT32_MAX;
	sum->mem_mib += (int64_t)job->spec.mem_mib;
	add_gpus(job, sum);
}

static struct attempted attempted(const struct takt_queue *queue)
{
	struct attempted sum = {0};

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		const struct takt_queue_job *job = entry->value.ptr;

		if (job->phase == TAKT_PHASE_STARTING && job->evict.step != TAKT_EVICT_STILL)
			add_attempt(job, &sum);
	}
	return sum;
}

static int tell_node(struct takt_queue *queue, struct takt_sched_node node, struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_NODE_REMOVE,
					 .node_id = TAKT_QUEUE_NODE};
	int rc = takt_sched_update(queue->sched, &event, err);

	event.kind = TAKT_SCHED_NODE_ADD;
	event.node = node;
	return rc < 0 ? rc : takt_sched_update(queue->sched, &event, err);
}

/*
 * An attempt may be on record on GPUs that the machine does not show now (one fell off, the driver
 * is not there), or hold more CPUs and memory than it has now. The scheduler knows of such GPUs as
 * lost and of a larger machine, so that the attempt keeps what it has, the others of its GPUs
 * included, until the engine has said what became of it.
 */
static int keep_missing(struct takt_queue *queue, struct takt_err *err)
{
	const struct takt_queue_config *config = &queue->config;
	struct attempted held = attempted(queue);
	struct takt_sched_node node = {
		.id = TAKT_QUEUE_NODE,
		.gpu_count = config->gpu_count,
		.cpu_milli = (int32_t)max_of(config->cpu_milli, held.cpu_milli),
		.mem_mib = max_of(config->mem_mib, held.mem_mib),
	};
	uint32_t have = config->gpu_count, each[TAKT_SCHED_MAX_NODE_GPUS];
	int32_t *score;
	int rc;

	while (node.gpu_count < 64 && held.gpus >> node.gpu_count)
		node.gpu_count++;
	if (!memory_of(config, &held, &node, each) && node.gpu_count == have &&
	    node.cpu_milli == config->cpu_milli && node.mem_mib == config->mem_mib)
		return 0;
	score = takt_calloc((size_t)node.gpu_count * node.gpu_count + 1, sizeof(*score));
	if (!score)
		return takt_err_set(err, -ENOMEM, "GPUs of jobs to adopt");
	for (uint32_t a = 0; a < have; a++)
		memcpy(&score[a * node.gpu_count], &config->pair_score[a * have],
		       have * sizeof(*score));
	node.pair_score = score;
	takt_queue_mig_node(queue, &node);
	rc = tell_node(queue, node, err);
	takt_free(score);
	for (uint32_t gpu = have; rc == 0 && gpu < node.gpu_count; gpu++)
		rc = takt_queue_gpu_health(queue, gpu, TAKT_GPU_LOST, err);
	return rc;
}

/*
 * The GPUs of an attempt are its own until its end. Where the store names more jobs for a GPU than
 * there is room for, some of them have ended without the store being told, or were about to start
 * and did not. Which, the engine will say: until then nothing new is placed on these GPUs, and who
 * has no place gets one when there is room.
 */
static int take_place(struct takt_queue *queue, struct takt_queue_job *job, struct takt_err *err)
{
	struct takt_err taken;
	int rc = takt_queue_tell(queue, TAKT_SCHED_JOB_PLACED, job, &taken);

	job->placeless = rc == -EINVAL;
	if (rc != -EINVAL)
		return rc < 0 ? takt_err_set(err, rc, "%s", taken.msg) : 0;
	queue->contested_gpus |= job->row.gpu_mask;
	return takt_queue_tell(queue, TAKT_SCHED_JOB_ENDED, job, err);
}

static bool finds_place(struct takt_queue *queue, const struct takt_queue_job *job)
{
	if (takt_queue_tell(queue, TAKT_SCHED_JOB_ADD, job, NULL) < 0)
		return false;
	if (takt_queue_tell(queue, TAKT_SCHED_JOB_PLACED, job, NULL) == 0)
		return true;
	(void)takt_queue_tell(queue, TAKT_SCHED_JOB_ENDED, job, NULL);
	return false;
}

static void find_place(struct takt_queue *queue, struct takt_queue_job *job)
{
	bool alive = job->phase == TAKT_PHASE_STARTING || job->phase == TAKT_PHASE_RUNNING;

	job->placeless = alive && !finds_place(queue, job);
	if (job->placeless)
		queue->contested_gpus |= job->row.gpu_mask;
	else if (job->phase == TAKT_PHASE_RUNNING)
		(void)takt_queue_tell(queue, TAKT_SCHED_JOB_RUNNING, job, NULL);
}

void takt_queue_find_places(struct takt_queue *queue)
{
	if (!queue->contested_gpus)
		return;
	queue->contested_gpus = 0;
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->placeless)
			find_place(queue, job);
	}
}

static int claim_attempts(struct takt_queue *queue,
			  int (*attempt)(void *ctx, const struct takt_queue_job *job,
					 struct takt_err *err),
			  void *ctx, struct takt_err *err)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;
		int rc = 0;

		if (job->phase == TAKT_PHASE_STARTING && !takt_queue_still_claim(queue, job))
			rc = take_place(queue, job, err);
		if (rc == 0 && (job->phase == TAKT_PHASE_STARTING || job->stage))
			rc = attempt(ctx, job, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void end_cancelled(struct takt_queue *queue)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->phase == TAKT_PHASE_WAITING && job->row.cancel_wanted)
			takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
	}
}

int takt_queue_load(struct takt_queue *queue,
		    int (*attempt)(void *ctx, const struct takt_queue_job *job,
				   struct takt_err *err),
		    void *ctx, struct takt_err *err)
{
	struct load load = {.queue = queue, .err = err};
	int rc = takt_queue_learn_history(queue, err);

	if (rc == 0)
		rc = takt_queue_load_wall(queue, err);
	if (rc == 0)
		rc = takt_queue_load_start_ranges(queue, err);
	if (rc == 0)
		rc = takt_store_each_live(queue->config.store, load_one, &load, err);
	if (rc == 0)
		rc = keep_missing(queue, err);
	if (rc == 0)
		rc = claim_attempts(queue, attempt, ctx, err);
	if (rc == 0)
		end_cancelled(queue);
	if (rc == 0 && queue->config.observes)
		takt_queue_stage(queue, 0); /* nothing is placed: nobody is next */
	return rc;
}
