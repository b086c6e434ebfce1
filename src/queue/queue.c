/* SPDX-License-Identifier: Apache-2.0 */
/* The queue object: jobs in memory, submit and cancel, facts about GPUs, and what callers may look
 * at. */
#include "queue/queue.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

static int add_node(struct takt_queue *queue, struct takt_err *err)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_NODE_ADD,
		.node_id = TAKT_QUEUE_NODE,
		.node = {.id = TAKT_QUEUE_NODE,
			 .gpu_count = queue->config.gpu_count,
			 .pair_score = queue->config.pair_score,
			 .cpu_milli = queue->config.cpu_milli,
			 .mem_mib = queue->config.mem_mib,
			 .dev_mem_mib = queue->config.gpu_mem_mib,
			 .each_mem_mib = queue->config.each_mem_mib},
	};

	takt_queue_mig_node(queue, &event.node);
	return takt_sched_update(queue->sched, &event, err);
}

int takt_queue_new(const struct takt_queue_config *config, struct takt_queue **ret,
		   struct takt_err *err)
{
	struct takt_queue *queue = takt_zalloc(sizeof(*queue));
	int rc;

	if (!queue)
		return takt_err_set(err, -ENOMEM, "the job queue");
	queue->config = *config;
	if (queue->config.max_jobs == 0 || queue->config.max_jobs > TAKT_QUEUE_MAX_JOBS)
		queue->config.max_jobs = TAKT_QUEUE_MAX_JOBS;
	if (queue->config.max_bytes == 0)
		queue->config.max_bytes = TAKT_QUEUE_MAX_BYTES;
	queue->jobs = TAKT_MAP_U64(TAKT_QUEUE_MAX_JOBS);
	queue->waits = TAKT_MAP_U64(TAKT_QUEUE_MAX_JOBS);
	queue->users = queue->envs = TAKT_MAP_U64(TAKT_QUEUE_MAX_JOBS);
	queue->ended_badly = TAKT_MAP_U64(TAKT_QUEUE_MAX_JOBS);
	queue->changes.max = queue->staged.max = TAKT_QUEUE_MAX_JOBS;
	queue->tenants.max = TAKT_QUEUE_MAX_TENANTS;
	queue->tenant_ids = TAKT_MAP_STR(TAKT_QUEUE_MAX_TENANTS);
	queue->ledger.max = TAKT_QUEUE_MAX_HELD;
	queue->outlooks.max = UINT32_MAX; /* the model bounds its kinds */
	queue->next_signal_id = config->signal_id_base;
	rc = takt_queue_set_up(queue, &config->settings, err);
	if (rc == 0)
		rc = takt_sched_new(&queue->setup.sched, &queue->sched, err);
	if (rc == 0)
		rc = takt_runtime_new(&(struct takt_runtime_config){0}, &queue->runtimes, err);
	if (rc == 0)
		rc = takt_queue_mig_init(queue, err);
	if (rc == 0)
		rc = add_node(queue, err);
	if (rc == 0)
		rc = takt_store_next_ids(config->store, &queue->next_id, &queue->next_seq, err);
	if (queue->next_id <= config->highest_known_id)
		queue->next_id = config->highest_known_id + 1;
	if (rc < 0) {
		takt_queue_free(queue);
		return rc;
	}
	takt_engine_watch(config->engine, takt_queue_engine_event, queue);
	*ret = queue;
	return 0;
}

static void return_env(struct takt_queue_job *job)
{
	if (!job->env)
		return;
	job->spec.env = NULL;
	takt_queue_env_unref(job->env);
	job->env = NULL;
}

void takt_queue_job_free(struct takt_queue_job *job)
{
	takt_queue_batch_leave(job);
	return_env(job);
	takt_job_fini(&job->row);
	takt_jobspec_fini(&job->spec);
	takt_free(job->end);
	takt_free(job->refusal);
	takt_free(job);
}

void takt_queue_free(struct takt_queue *queue)
{
	if (!queue)
		return;
	takt_queue_free_batches(queue);
	TAKT_MAP_EACH(entry, &queue->jobs)
	takt_queue_job_free(entry->value.ptr);
	takt_map_fini(&queue->jobs);
	takt_map_fini(&queue->envs);
	takt_queue_users_fini(queue);
	takt_map_fini(&queue->waits);
	takt_map_fini(&queue->ended_badly);
	takt_vec_fini(&queue->changes);
	takt_vec_fini(&queue->ledger);
	takt_vec_fini(&queue->staged);
	takt_queue_mig_fini(queue);
	takt_plan_fini(&queue->plan);
	takt_sched_free(queue->sched);
	takt_runtime_free(queue->runtimes);
	takt_vec_fini(&queue->outlooks);
	takt_share_rules_fini(&queue->rules);
	takt_vec_fini(&queue->tenants);
	takt_map_fini(&queue->tenant_ids);
	takt_free(queue);
}

struct takt_queue_job *takt_queue_job_find(const struct takt_queue *queue, uint64_t job_id)
{
	return takt_map_u64_ptr(&queue->jobs, job_id);
}

const struct takt_queue_job *takt_queue_find(const struct takt_queue *queue, uint64_t job_id)
{
	return takt_queue_job_find(queue, job_id);
}

/* Of its description; of what it shares nothing. */
static size_t bytes_of(const struct takt_queue_job *job)
{
	size_t env = job->env ? 0 : takt_queue_env_bytes(job->spec.env);

	return strlen(job->row.spec_json) + env + job->env_away_bytes;
}

int takt_queue_job_put(struct takt_queue *queue, struct takt_queue_job *job)
{
	size_t bytes = bytes_of(job);
	int rc = takt_queue_user_has(queue, job->row.uid, 1, bytes);

	if (rc == 0) {
		rc = takt_map_u64_put_ptr(&queue->jobs, job->row.id, job);
		if (rc < 0)
			takt_queue_user_lets_go(queue, job->row.uid, 1, bytes);
	}
	if (rc < 0)
		return rc;
	queue->version++;
	job->bytes = bytes;
	return 0;
}

void takt_queue_job_drop(struct takt_queue *queue, struct takt_queue_job *job)
{
	queue->version++;
	if (takt_queue_job_find(queue, job->row.id) == job) {
		takt_map_u64_remove(&queue->jobs, job->row.id);
		takt_queue_user_lets_go(queue, job->row.uid, 1, job->bytes);
	}
	takt_queue_job_free(job);
}

void takt_queue_changed(struct takt_queue *queue, const struct takt_queue_job *job)
{
	queue->version++;
	if (queue->next_evict_ns)
		queue->next_evict_ns = 1; /* somebody may give way to it */
	queue->config.hooks->changed(queue->config.hooks_ctx, job);
}

uint64_t takt_queue_sched_ns(const struct takt_queue *queue, struct takt_wall wall)
{
	return wall.ns > queue->config.epoch.ns ? (uint64_t)(wall.ns - queue->config.epoch.ns) : 1;
}

/* 0 = at once. */
static uint64_t earliest_ns(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	struct takt_wall at = {job->spec.begin_ms * (int64_t)TAKT_NS_PER_MS};
	struct takt_wall refused_until = takt_queue_refused_until(queue, job);

	if (job->row.retry_at.ns > at.ns)
		at = job->row.retry_at;
	if (refused_until.ns > at.ns)
		at = refused_until;
	return at.ns ? takt_queue_sched_ns(queue, at) : 0;
}

static uint64_t deadline_ns(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	struct takt_wall at = {job->spec.deadline_ms * (int64_t)TAKT_NS_PER_MS};

	return at.ns ? takt_queue_sched_ns(queue, at) : 0;
}

enum takt_failure_policy takt_queue_on_failure(const struct takt_queue *queue,
					       const struct takt_queue_job *job)
{
	enum takt_failure_policy policy = queue->config.on_gpu_failure;

	return policy != TAKT_FAILURE_KEEP && job->spec.requeue ? TAKT_FAILURE_REQUEUE : policy;
}

/* What is reserved on each GPU: of a share what it asks for, else its part of the memory. */
static uint32_t gpu_mem_of(const struct takt_queue_config *config, const struct takt_jobspec *spec)
{
	if (spec->gpu_mem_mib || !spec->gpu_milli)
		return spec->gpu_mem_mib;
	return (uint32_t)((uint64_t)config->gpu_mem_mib * spec->gpu_milli / TAKT_REQUEST_WHOLE);
}

uint32_t takt_queue_asked_gpu_mem(const struct takt_queue *queue, const struct takt_jobspec *spec)
{
	return gpu_mem_of(&queue->config, spec);
}

uint32_t takt_queue_share_mem(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	return job->spec.gpu_milli ? gpu_mem_of(&queue->config, &job->spec) : 0;
}

static struct takt_request request_of(const struct takt_queue *queue,
				      const struct takt_queue_job *job)
{
	const struct takt_jobspec *spec = &job->spec;
	struct takt_request request = {
		.cpu_milli = (int32_t)(spec->cpu_milli || spec->gpus ? spec->cpu_milli
								     : TAKT_QUEUE_ONE_CPU_MILLI),
		.mem_mib = (int64_t)spec->mem_mib,
		.only_devices = spec->gpu_indices,
	};

	if (spec->mig[0]) {
		request.devices = 1;
		request.mig_profile = takt_queue_mig_profile(queue, spec->mig);
		return request;
	}
	request.devices = (uint16_t)spec->gpus;
	if (spec->gpus)
		request.milli = spec->gpu_milli ? (uint16_t)spec->gpu_milli : TAKT_REQUEST_WHOLE;
	request.dev_mem_mib =
		job->row.mem_held_mib ? job->row.mem_held_mib : gpu_mem_of(&queue->config, spec);
	return request;
}

/* Instances are tasks of one each. Of a kind that the machine has no more of, nobody can have any.
 */
static void ask_gpus(const struct takt_queue *queue, const struct takt_queue_job *job,
		     struct takt_sched_job *ret)
{
	bool mig = job->spec.mig[0];

	ret->task = request_of(queue, job);
	ret->gpus = mig ? 1 : job->spec.gpus;
	ret->tasks = mig ? job->spec.gpus : 0;
	if (!mig || ret->task.mig_profile)
		return;
	ret->gpus = TAKT_SCHED_MAX_NODE_GPUS + 1;
	ret->tasks = ret->task.devices = 0;
}

/* What is not the scheduler's to see clean. */
static bool is_part(const struct takt_jobspec *spec)
{
	return spec->gpu_milli || spec->mig[0];
}

void takt_queue_job_terms(const struct takt_queue *queue, const struct takt_queue_job *job,
			  struct takt_sched_job *ret)
{
	ret->tenant = job->tenant_id;
	ret->on_failure = takt_queue_on_failure(queue, job);
	ret->outlook = takt_queue_uses_outlooks(queue) ? job->estimate.kind + 1 : 0;
}

static struct takt_sched_job sched_job(const struct takt_queue *queue,
				       const struct takt_queue_job *job)
{
	struct takt_sched_job ask = {
		.id = job->row.id,
		.submit_seq = job->row.submit_seq,
		.priority = job->row.priority,
		.owner = takt_queue_owner(job->row.uid),
		.flags = (job->spec.use_outside ? TAKT_JOB_USE_OUTSIDE : 0u) |
			 (job->row.held || job->gives_way || job->evict.held ? TAKT_JOB_HELD : 0u) |
			 (job->spec.preemptible ? TAKT_JOB_PREEMPTIBLE : 0u) |
			 (is_part(&job->spec) ? TAKT_JOB_CLEAN_END : 0u),
		.array = job->spec.array_id,
		.array_limit = job->spec.array_limit,
		.earliest_start_ns = earliest_ns(queue, job),
		.estimate_ns = job->estimate.ns,
		.deadline_ns = deadline_ns(queue, job),
		.submit_ns = takt_queue_sched_ns(queue, job->row.submitted),
	};

	takt_queue_job_terms(queue, job, &ask);
	ask_gpus(queue, job, &ask);
	return ask;
}

/* The scheduler hears of a place: of instances, each by itself. */
static int tell_sched(struct takt_queue *queue, const struct takt_sched_event *event,
		      const struct takt_queue_job *job, struct takt_err *err)
{
	int32_t instances[TAKT_QUEUE_MAX_INSTANCES];
	struct takt_sched_slot slots[TAKT_QUEUE_MAX_INSTANCES];
	struct takt_sched_event placed = *event;
	uint32_t count = 0;

	if (event->kind != TAKT_SCHED_JOB_PLACED)
		return takt_sched_update(queue->sched, event, err);
	if (takt_queue_mig_held(queue, job, instances, &count) < 0)
		return takt_err_set(err, -EINVAL, "a MIG instance of job %llu is gone",
				    (unsigned long long)job->row.id);
	for (uint32_t i = 0; i < count; i++)
		slots[i] = takt_queue_mig_slot(queue, instances[i]);
	placed.slots = slots;
	placed.slot_count = count;
	return takt_sched_update(queue->sched, &placed, err);
}

/* The scheduler's books and ours change together. */
static int tell_place(struct takt_queue *queue, const struct takt_sched_event *event,
		      const struct takt_queue_job *job, struct takt_err *err)
{
	bool comes = event->kind == TAKT_SCHED_JOB_PLACED;
	bool goes = event->kind == TAKT_SCHED_JOB_DRAINING ||
		    event->kind == TAKT_SCHED_JOB_REQUEUED || event->kind == TAKT_SCHED_JOB_ENDED;
	int rc;

	if (job->evict.step == TAKT_EVICT_STILL) /* it keeps what it holds */
		return tell_sched(queue, event, job, err);
	rc = comes ? takt_ledger_reserve(queue, job) : 0;
	if (rc < 0)
		return takt_err_set(err, rc, "what job %llu holds",
				    (unsigned long long)job->row.id);
	rc = tell_sched(queue, event, job, err);
	if (rc == 0 && comes)
		takt_ledger_take(queue, job);
	if (rc == 0 && goes)
		takt_ledger_leave(queue, job->row.id);
	return rc;
}

/* When it happened, on the scheduler's clock; 0 = not known. */
static uint64_t event_ns(const struct takt_queue *queue, enum takt_sched_event_kind kind,
			 const struct takt_queue_job *job)
{
	struct takt_wall at = queue->wall;

	if (kind == TAKT_SCHED_JOB_ADD)
		at = job->row.submitted;
	else if ((kind == TAKT_SCHED_JOB_PLACED || kind == TAKT_SCHED_JOB_RUNNING) &&
		 job->row.started.ns)
		at = job->row.started;
	else if (kind == TAKT_SCHED_JOB_CHECKPOINT)
		at = job->row.checkpoint_at;
	return at.ns ? takt_queue_sched_ns(queue, at) : 0;
}

int takt_queue_tell(struct takt_queue *queue, enum takt_sched_event_kind kind,
		    const struct takt_queue_job *job, struct takt_err *err)
{
	struct takt_sched_after after[TAKT_SCHED_MAX_AFTER];
	struct takt_sched_event event = {
		.kind = kind,
		.node_id = TAKT_QUEUE_NODE,
		.job_id = job->row.id,
		.at_ns = event_ns(queue, kind, job),
		.gpu_mask = job->row.gpu_mask,
		.failed = job->row.state != TAKT_JOB_DONE,
		.job = sched_job(queue, job),
	};

	/* Whoever has had an attempt has had its dependencies met. */
	if (kind == TAKT_SCHED_JOB_ADD && job->row.attempt == 0) {
		event.job.after = after;
		event.job.after_count = takt_queue_sched_after(job, after);
	}
	queue->dirty = true;
	return tell_place(queue, &event, job, err);
}

/* The texts of its row. What it shares is written with the first that has it. */
static int write_texts(struct takt_queue_job *job, bool with_env)
{
	struct takt_str json = TAKT_STR(TAKT_SPEC_MAX_BYTES), env = TAKT_STR(TAKT_SPEC_MAX_BYTES);

	takt_jobspec_to_json(&job->spec, false, &json);
	job->row.spec_json = takt_str_take(&json);
	if (with_env) {
		takt_jobspec_env_to_json(&job->spec, &env);
		job->row.env_json = takt_str_take(&env);
	}
	return job->row.spec_json && (job->row.env_json || !with_env) ? 0 : -ENOMEM;
}

/* A job object around a spec; takes the spec over on success. */
static struct takt_queue_job *new_job(struct takt_jobspec *spec,
				      const struct takt_queue_entry *entry)
{
	struct takt_queue_job *job = takt_zalloc(sizeof(*job));

	if (!job)
		return NULL;
	job->spec = *spec;
	if (entry->env)
		takt_queue_env_lend(job, entry->env);
	if (write_texts(job, !entry->env || entry->env->id == entry->id) < 0) {
		return_env(job);
		takt_job_fini(&job->row);
		takt_free(job);
		return NULL;
	}
	takt_jobspec_init(spec);
	return job;
}

static uint32_t gpus_with(const struct takt_queue_config *config, uint32_t mem_mib)
{
	uint32_t count = 0;

	for (uint32_t gpu = 0; gpu < config->gpu_count; gpu++)
		count += takt_queue_gpu_mem(config, gpu) >= mem_mib;
	return count;
}

static uint32_t most_gpu_mem(const struct takt_queue_config *config)
{
	uint32_t most = 0;

	for (uint32_t gpu = 0; gpu < config->gpu_count; gpu++)
		if (takt_queue_gpu_mem(config, gpu) > most)
			most = takt_queue_gpu_mem(config, gpu);
	return most;
}

/* What the scheduler would wait for in vain. */
static int check_room(const struct takt_queue_config *config, const struct takt_jobspec *spec,
		      struct takt_err *err)
{
	if (spec->cpu_milli > (uint32_t)config->cpu_milli)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "asks for %u.%03u CPUs, the machine has %d.%03d",
				    spec->cpu_milli / 1000, spec->cpu_milli % 1000,
				    config->cpu_milli / 1000, config->cpu_milli % 1000);
	if (spec->mem_mib > (uint64_t)config->mem_mib)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "asks for %llu MiB of memory, the machine has %lld",
				    (unsigned long long)spec->mem_mib, (long long)config->mem_mib);
	return 0;
}

/* Of those that it names, as many as it asks for have to be there and to be had whole. */
static int check_named(const struct takt_queue_config *config, const struct takt_jobspec *spec,
		       struct takt_err *err)
{
	uint64_t there = config->gpu_count < 64 ? (1ull << config->gpu_count) - 1 : UINT64_MAX;
	uint64_t missing = spec->gpu_indices & ~there;
	uint64_t cut = spec->gpu_indices & config->mig_gpus;

	if (missing)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "asks for GPU %d; this machine has %u, counted from 0",
				    __builtin_ctzll(missing), config->gpu_count);
	if (cut && !spec->mig[0] &&
	    spec->gpus > (uint32_t)__builtin_popcountll(spec->gpu_indices & ~cut))
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "asks for GPU %d, which is cut into MIG instances (--mig)",
				    __builtin_ctzll(cut));
	return 0;
}

static int check_gpu_mem(const struct takt_queue_config *config, const struct takt_jobspec *spec,
			 struct takt_err *err)
{
	if (spec->gpu_mem_mib && spec->gpus > gpus_with(config, spec->gpu_mem_mib))
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "asks for %u GPUs with %u MiB each, %u here have that, the "
				    "largest here has %u%s",
				    spec->gpus, spec->gpu_mem_mib,
				    gpus_with(config, spec->gpu_mem_mib), most_gpu_mem(config),
				    config->gpu_mem_mib ? "" : " (not known)");
	return 0;
}

static int check_count(struct takt_queue *queue, const struct takt_jobspec *spec,
		       struct takt_err *err)
{
	struct takt_sched_job ask = {
		.id = queue->next_id, .submit_seq = queue->next_seq, .gpus = spec->gpus};
	uint32_t cut = (uint32_t)__builtin_popcountll(queue->config.mig_gpus);
	int rc;

	if (spec->mig[0])
		return takt_queue_mig_possible(queue, spec, err);
	rc = takt_sched_possible(queue->sched, &ask, err);
	if (rc == 0 && spec->gpus > queue->config.gpu_count - cut)
		rc = takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				  "asks for %u GPUs; %u of the %u here are cut into MIG instances "
				  "(--mig)",
				  spec->gpus, cut, queue->config.gpu_count);
	return rc;
}

/* GPUs that will come are waited for; which instances they will have nobody knows. */
static int check_gpus(struct takt_queue *queue, const struct takt_jobspec *spec,
		      struct takt_err *err)
{
	const struct takt_queue_config *config = &queue->config;
	bool are_out_of_sight = spec->gpus && config->why_no_gpus;
	int rc;

	if (are_out_of_sight && config->gpus_will_come && !spec->mig[0])
		return 0;
	if (are_out_of_sight)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "takt sees no GPU here since its start: %s",
				    config->why_no_gpus);
	rc = check_count(queue, spec, err);
	if (rc == 0)
		rc = check_named(config, spec, err);
	return rc < 0 ? rc : check_gpu_mem(config, spec, err);
}

int takt_queue_check_possible(struct takt_queue *queue, const struct takt_jobspec *spec,
			      struct takt_err *err)
{
	int rc;

	rc = takt_jobspec_check_exec(spec, err);
	if (rc < 0)
		return rc;
	if (takt_jobspec_sets_gpus(spec) && spec->use_outside)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "clocks and power limits are not changed under processes that "
				    "are not takt's: drop --clock and --power-limit, or "
				    "--use-outside");
	if (spec->clock_ask == TAKT_CLOCK_ASK_LOCK && is_part(spec))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "clocks are locked only on GPUs that a job holds alone: ask "
				    "for a ceiling (--clock) or for whole GPUs");
	rc = check_gpus(queue, spec, err);
	if (rc == 0)
		rc = check_room(&queue->config, spec, err);
	if (rc == 0)
		rc = takt_queue_check_freezable(spec, err);
	return rc < 0 ? rc : takt_queue_check_after(queue, spec, err);
}

/* Among the live jobs, and on its way to disk. */
static int admit(struct takt_queue *queue, struct takt_queue_job *job, bool weighed,
		 struct takt_err *err)
{
	int rc = takt_queue_find_tenant(queue, job, true, err);

	if (rc == 0)
		rc = takt_queue_estimate(queue, job, err);
	if (rc < 0)
		return rc;
	if (!weighed)
		rc = takt_queue_check_bytes(queue, job->row.uid, bytes_of(job), err);
	if (rc < 0)
		return rc;
	rc = takt_queue_job_put(queue, job);
	if (rc < 0)
		return takt_err_set(err, rc, "the job queue");
	return takt_queue_post(queue, job, TICKET_INSERT, err);
}

static void fill_row(struct takt_queue_job *job, const struct takt_queue_entry *entry)
{
	job->row.id = entry->id;
	job->row.submit_seq = entry->seq;
	job->row.uid = entry->uid;
	job->row.gid = entry->gid;
	job->row.state = TAKT_JOB_WAITING;
	job->row.submitted = entry->now;
	job->row.priority = job->spec.priority;
	job->row.held = job->spec.held ? TAKT_HOLD_OWNER : TAKT_HOLD_NONE;
}

int takt_queue_submit_one(struct takt_queue *queue, const struct takt_queue_entry *entry,
			  struct takt_jobspec *spec, struct takt_queue_job **ret,
			  struct takt_err *err)
{
	struct takt_queue_job *job = new_job(spec, entry);
	int rc;

	if (!job)
		return takt_err_set(err, -ENOMEM, "the job's description");
	fill_row(job, entry);
	rc = admit(queue, job, entry->weighed, err);
	if (rc < 0) {
		return_env(job);
		*spec = job->spec;
		takt_jobspec_init(&job->spec);
		takt_queue_job_drop(queue, job);
		return rc;
	}
	takt_free(job->row.env_json); /* the store has it, and the description */
	job->row.env_json = NULL;
	*ret = job;
	return 0;
}

static int submit_alone(struct takt_queue *queue, uid_t uid, gid_t gid, struct takt_jobspec *spec,
			struct takt_wall now, void *token, struct takt_err *err)
{
	const struct takt_queue_entry entry = {
		.uid = uid, .gid = gid, .now = now, .id = queue->next_id, .seq = queue->next_seq};
	struct takt_jobspecs one = {.count = 1, .jobs = spec};
	struct takt_queue_job *job = NULL;
	size_t bytes = 0;
	int rc = takt_queue_check_limits_of(queue, uid, &one, &bytes, err);

	if (rc == 0)
		rc = takt_queue_submit_one(queue, &entry, spec, &job, err);
	if (rc < 0)
		return rc;
	queue->next_id++;
	queue->next_seq++;
	job->token = token;
	return 0;
}

int takt_queue_submit(struct takt_queue *queue, uid_t uid, gid_t gid, struct takt_jobspec *spec,
		      struct takt_wall now, void *token, struct takt_err *err)
{
	struct takt_jobspecs specs = {.count = 1};
	int rc = takt_queue_refuse_names(spec, err);

	if (rc == 0 && !spec->has_array)
		rc = takt_queue_check_possible(queue, spec, err);
	if (rc < 0)
		return rc;
	if (!spec->has_array)
		return submit_alone(queue, uid, gid, spec, now, token, err);
	specs.jobs = takt_calloc(1, sizeof(*specs.jobs));
	if (!specs.jobs)
		return takt_err_set(err, -ENOMEM, "the jobs");
	*specs.jobs = *spec;
	takt_jobspec_init(spec);
	rc = takt_queue_submit_many(queue, uid, gid, &specs, now, token, err);
	if (specs.jobs)
		*spec = *specs.jobs; /* refused before any was made */
	takt_free(specs.jobs);
	return rc;
}

void takt_queue_forget_token(struct takt_queue *queue, void *token)
{
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->token == token)
			job->token = NULL;
		if (job->batch && job->batch->token == token)
			job->batch->token = NULL;
	}
	for (struct takt_queue_batch *batch = queue->batches; batch; batch = batch->next)
		if (batch->token == token)
			batch->token = NULL;
	TAKT_VEC_EACH (change, &queue->changes)
		if (change->token == token)
			change->token = NULL;
}

static int find_live(const struct takt_queue *queue, uint64_t job_id, struct takt_queue_job **ret,
		     struct takt_err *err)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, job_id);

	if (!job)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu has ended",
				    (unsigned long long)job_id);
	*ret = job;
	return 0;
}

int takt_queue_cancel(struct takt_queue *queue, uint64_t job_id, enum takt_cause why,
		      struct takt_wall now, struct takt_err *err)
{
	struct takt_queue_job *job = NULL;
	int rc = find_live(queue, job_id, &job, err);

	if (rc < 0 || job->row.cancel_wanted || job->phase == TAKT_PHASE_ENDING)
		return rc;
	job->row.cancel_wanted = true;
	takt_queue_note_cause(job, why);
	queue->wall = now;
	switch (job->phase) {
	case TAKT_PHASE_WAITING:
		takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
		return 0;
	case TAKT_PHASE_PREPARING:
		takt_queue_call_off(queue, job);
		takt_queue_end(queue, job, TAKT_JOB_CANCELLED);
		return 0;
	case TAKT_PHASE_STARTING:
	case TAKT_PHASE_RUNNING:
		job->stop_wanted = true;
		job->row.state = TAKT_JOB_STOPPING;
		takt_queue_stop(queue, job);
		takt_queue_changed(queue, job);
		return takt_queue_post(queue, job, TICKET_NOTE, err);
	default: /* ACCEPTING: ends when it is accepted */
		return 0;
	}
}

int takt_queue_send_signal(struct takt_queue *queue, const struct takt_queue_job *job, int signal,
			   struct takt_err *err)
{
	struct takt_action action = {
		.id = queue->next_signal_id++,
		.planned_on = takt_sched_version(queue->sched),
		.kind = TAKT_ACTION_SIGNAL,
		.job_id = job->row.id,
		.attempt = job->row.attempt,
		.signal = signal,
	};

	return takt_engine_apply(queue->config.engine, &action, 1, err);
}

int takt_queue_signal(struct takt_queue *queue, uint64_t job_id, int signal, struct takt_err *err)
{
	struct takt_queue_job *job = NULL;
	int rc = find_live(queue, job_id, &job, err);

	if (rc < 0)
		return rc;
	if (job->phase != TAKT_PHASE_RUNNING)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu is %s, not running",
				    (unsigned long long)job_id,
				    takt_job_state_name(job->row.state));
	if (job->evict.step >= TAKT_EVICT_STILLING)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu is frozen for job %llu",
				    (unsigned long long)job_id,
				    (unsigned long long)job->row.evict_for);
	return takt_queue_send_signal(queue, job, signal, err);
}

void takt_queue_prepared(struct takt_queue *queue, uint64_t job_id, const char *clock_note)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, job_id);

	if (!job || job->phase != TAKT_PHASE_PREPARING)
		return;
	takt_strcpy(job->clock_note, sizeof(job->clock_note), clock_note);
	job->prepared = true;
	takt_queue_try_start(queue, job);
}

void takt_queue_memory_limited(struct takt_queue *queue, uint64_t job_id)
{
	struct takt_queue_job *job = takt_queue_job_find(queue, job_id);

	if (job)
		job->row.mps_limited = true;
}

static int tell_gpu(struct takt_queue *queue, const struct takt_sched_event *event,
		    struct takt_err *err)
{
	queue->dirty = true;
	return takt_sched_update(queue->sched, event, err);
}

int takt_queue_gpu_outside(struct takt_queue *queue, uint32_t gpu, bool outside,
			   struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_GPU_OUTSIDE,
					 .node_id = TAKT_QUEUE_NODE,
					 .gpu = gpu,
					 .outside = outside};

	return tell_gpu(queue, &event, err);
}

int takt_queue_gpu_health(struct takt_queue *queue, uint32_t gpu, enum takt_gpu_state state,
			  struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_GPU_HEALTH,
					 .node_id = TAKT_QUEUE_NODE,
					 .gpu = gpu,
					 .state = state};

	return tell_gpu(queue, &event, err);
}

/* The store may have room again: post the ends that it refused, let the plan run. */
static void retry_refused(struct takt_queue *queue)
{
	queue->retry_ns = 0;
	queue->dirty = true;
	takt_queue_stage_again(queue);
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		struct takt_queue_job *job = entry->value.ptr;

		if (job->end_refused)
			takt_queue_post_end(queue, job);
	}
}

static void sooner(uint64_t *next_ns, uint64_t at_ns)
{
	if (at_ns && (*next_ns == 0 || at_ns < *next_ns))
		*next_ns = at_ns;
}

/* Boot time at which something is due; 0 = on events only. */
static uint64_t next_pump_ns(const struct takt_queue *queue)
{
	uint64_t now_ns = takt_queue_sched_ns(queue, queue->wall), next_ns = queue->retry_ns;

	sooner(&next_ns, queue->next_limit_ns);
	sooner(&next_ns, queue->next_end_ns);
	sooner(&next_ns, takt_queue_next_estimate_ns(queue));
	sooner(&next_ns, queue->next_evict_ns);
	sooner(&next_ns, queue->next_usage_ns);
	if (queue->wake_ns > now_ns)
		sooner(&next_ns, queue->now.ns + (queue->wake_ns - now_ns));
	return next_ns;
}

int takt_queue_pump(struct takt_queue *queue, struct takt_boot now, struct takt_wall wall,
		    uint64_t *ret_next_ns, struct takt_err *err)
{
	bool jumped = takt_queue_follow_wall(queue, now, wall), more;
	int rc = 0;

	queue->now = now;
	queue->wall = wall;
	takt_queue_take_completions(queue);
	more = takt_queue_feed_batches(queue);
	if (queue->retry_ns && queue->retry_ns <= now.ns)
		retry_refused(queue);
	if (queue->next_limit_ns && queue->next_limit_ns <= now.ns)
		takt_queue_check_limits(queue);
	if (queue->next_end_ns && queue->next_end_ns <= now.ns)
		takt_queue_look_at_ends(queue);
	if (takt_queue_estimates_due(queue))
		takt_queue_look_at_estimates(queue);
	if (queue->tenants.len && queue->next_usage_ns <= now.ns)
		takt_queue_save_usage(queue);
	if (queue->next_evict_ns && queue->next_evict_ns <= now.ns)
		takt_queue_check_evictions(queue);
	takt_queue_end_dependants(queue);
	if (queue->wake_ns && takt_queue_sched_ns(queue, wall) >= queue->wake_ns)
		queue->dirty = true;
	if (queue->dirty && !jumped && !queue->retry_ns && !queue->config.observes)
		rc = takt_queue_replan(queue, err);
	if (rc < 0)
		takt_queue_pause(queue);
	*ret_next_ns = jumped || more ? now.ns : next_pump_ns(queue); /* first the windows anew */
	return rc;
}

uint64_t takt_queue_version(const struct takt_queue *queue)
{
	return queue->version + takt_sched_version(queue->sched);
}
