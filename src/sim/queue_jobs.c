/* SPDX-License-Identifier: Apache-2.0 */
/* A job's life in the engine, each step told to the scheduler. */
#include "sim/queue_state.h"

#include "base/mem.h"
#include "base/timetypes.h"
#include "sim/trace.h"

#define PPM 1000000u

static int tell(struct queue_sim *sim, const struct takt_sched_event *event, struct takt_err *err)
{
	int rc = takt_sched_update(sim->sched, event, err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "tell the scheduler '%s' of job %llu",
				     takt_sched_event_name(event->kind),
				     (unsigned long long)event->job_id);
	sim->plan_needed = true;
	return 0;
}

static const struct takt_sim_job *source_of(const struct queue_sim *sim, uint32_t index)
{
	return &sim->config->work->jobs.at[sim->config->jobs[index].source];
}

static struct takt_sched_job describe(const struct queue_sim *sim, uint32_t index)
{
	const struct takt_queue_job *given = &sim->config->jobs[index];
	const struct takt_sim_job *source = source_of(sim, index);
	const struct takt_sim_kind *kind = &sim->config->work->kinds.at[source->kind];
	const struct takt_queue_predictor *predictor = sim->config->predictor;
	struct takt_sched_job job = {
		.id = queue_job_id(index),
		.submit_seq = queue_job_id(index),
		.priority = source->priority,
		.gpus = kind->gpus,
		.tasks = given->tasks,
		.submit_ns = given->submit_ns,
		.workload = given->workload,
		.on_failure = TAKT_FAILURE_REQUEUE,
	};

	if (sim->config->sched.preempt)
		job.flags |= TAKT_JOB_PREEMPTIBLE;
	if (sim->config->sched.migrate_most)
		job.flags |= TAKT_JOB_MOVABLE;
	if (sim->config->cluster->counts_cpu) {
		job.task.cpu_milli = kind->cpu_milli;
		job.task.mem_mib = kind->mem_mib;
	}
	job.task.devices = (uint16_t)kind->gpus;
	job.task.milli = (uint16_t)kind->milli;
	job.task.dev_mem_mib = kind->gpu_mem_mib;
	job.task.model_mask = kind->model_mask << 1; /* the scheduler counts models from 1 */
	if (source->has & 1u << TAKT_TRACE_JOB_DEADLINE)
		job.deadline_ns = (uint64_t)source->deadline_ns;
	if (predictor && !predictor->predict(predictor->ctx, index, source, &job.estimate_ns))
		job.estimate_ns = 0;
	return job;
}

int queue_submit(struct queue_sim *sim, uint32_t index, struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ADD,
					 .job_id = queue_job_id(index),
					 .at_ns = sim->now_ns,
					 .job = describe(sim, index)};
	struct queue_job *job = &sim->jobs[index];
	int rc = queue_tell_kind(sim, index, source_of(sim, index), &event.job.outlook, err);

	if (rc < 0)
		return rc;
	if (takt_sched_possible(sim->sched, &event.job, NULL) < 0) {
		job->state = QUEUE_OVER;
		sim->result.impossible++;
		return 0;
	}
	job->state = QUEUE_WAITING;
	job->left_ns = sim->config->jobs[index].work_ns;
	job->gpu_count = event.job.gpus * (event.job.tasks ? event.job.tasks : 1);
	job->crowd_ms = sim->crowd_ms;
	sim->wanted_gpus += job->gpu_count;
	return tell(sim, &event, err);
}

uint32_t queue_speed(const struct queue_sim *sim, uint32_t index,
		     const struct takt_sched_slot *slot)
{
	uint32_t workload = sim->config->jobs[index].workload;
	uint32_t model = sim->config->cluster->nodes.at[slot->node_id].model;
	uint32_t permille = 0;

	model = model == TAKT_SIM_NO_MODEL ? 0 : model + 1; /* as the scheduler counts them */
	if (workload && model < sim->config->workloads[workload - 1].count)
		permille = sim->config->workloads[workload - 1].permille[model];
	return permille ? permille : 1000;
}

/* value * times / by, rounded down, without a product that could overflow. */
static uint64_t scale(uint64_t value, uint64_t times, uint64_t by)
{
	return value / by * times + value % by * times / by;
}

static uint64_t work_in(const struct queue_job *job, uint64_t span_ns)
{
	return scale(span_ns, job->speed_permille, 1000);
}

/* Time that so much work takes at the job's speed, rounded up. */
static uint64_t time_for(const struct queue_job *job, uint64_t work_ns)
{
	uint64_t span_ns = scale(work_ns, 1000, job->speed_permille);

	return work_in(job, span_ns) < work_ns ? span_ns + 1 : span_ns;
}

static int schedule_checkpoint(struct queue_sim *sim, struct queue_job *job)
{
	uint64_t from = job->started_ns + job->overhead_ns, every = sim->config->checkpoint_ns, at;

	if (!sim->config->sched.preempt || every == 0)
		return 0;
	at = sim->now_ns < from ? from + every : from + ((sim->now_ns - from) / every + 1) * every;
	return at < job->end.at_ns ? queue_schedule(sim, &job->checkpoint, at) : 0;
}

/* From now on it holds its slots. A gang is as fast as its slowest task. */
static int begin_attempt(struct queue_sim *sim, uint32_t index, uint64_t overhead_ns)
{
	struct queue_job *job = &sim->jobs[index];
	int rc;

	job->speed_permille = UINT32_MAX;
	for (uint32_t i = 0; i < job->slot_count; i++) {
		uint32_t speed = queue_speed(sim, index, &job->slots[i]);

		if (speed < job->speed_permille)
			job->speed_permille = speed;
	}
	job->started_ns = sim->now_ns;
	job->overhead_ns = overhead_ns;
	queue_hold(sim, job, true);
	sim->result.lost_gpu_ms += overhead_ns / TAKT_NS_PER_MS * job->gpu_count;
	rc = queue_schedule(sim, &job->end,
			    sim->now_ns + overhead_ns + time_for(job, job->left_ns));
	return rc < 0 ? rc : schedule_checkpoint(sim, job);
}

static void end_attempt(struct queue_sim *sim, struct queue_job *job)
{
	queue_unschedule(sim, &job->end);
	queue_unschedule(sim, &job->checkpoint);
	queue_hold(sim, job, false);
	job->held_ns += sim->now_ns - job->started_ns;
}

int queue_start(struct queue_sim *sim, uint32_t index, struct takt_err *err)
{
	struct queue_job *job = &sim->jobs[index];
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_RUNNING,
					 .job_id = queue_job_id(index),
					 .at_ns = sim->now_ns};
	int rc = begin_attempt(sim, index, job->restarts ? sim->config->preempt_cost_ns : 0);

	job->state = QUEUE_RUNNING;
	return rc < 0 ? takt_err_set(err, rc, "no memory for an event") : tell(sim, &event, err);
}

int queue_clean(struct queue_sim *sim, const struct takt_sched_slot *slots, uint32_t count,
		struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_GPU_DRAINED, .at_ns = sim->now_ns};

	if (sim->config->sched.clean_at_end)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		event.node_id = slots[i].node_id;
		for (uint64_t mask = slots[i].gpu_mask; mask; mask &= mask - 1) {
			int rc;

			event.gpu = (uint32_t)__builtin_ctzll(mask);
			rc = tell(sim, &event, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* The GPUs go; whatever was to happen to the job does not. */
static int leave(struct queue_sim *sim, struct queue_job *job, const struct takt_sched_event *event,
		 struct takt_err *err)
{
	struct takt_sched_slot *slots = job->slots;
	uint32_t count = job->slot_count;
	int rc;

	end_attempt(sim, job);
	job->slots = NULL;
	job->slot_count = 0;
	rc = tell(sim, event, err);
	if (rc == 0)
		rc = queue_clean(sim, slots, count, err);
	takt_free(slots);
	return rc;
}

static void book_outcome(struct queue_sim *sim, uint32_t index)
{
	const struct queue_job *job = &sim->jobs[index];
	const struct takt_queue_job *given = &sim->config->jobs[index];
	struct takt_queue_outcome *outcome = &sim->result.outcomes[index];
	uint64_t jct = sim->now_ns - given->submit_ns;
	uint64_t stay_ms = sim->now_ns / TAKT_NS_PER_MS - given->submit_ns / TAKT_NS_PER_MS;
	uint64_t crowd = stay_ms ? (sim->crowd_ms - job->crowd_ms) / stay_ms : 1000;
	uint64_t share_ms = scale(given->work_ns / TAKT_NS_PER_MS, crowd, 1000);

	outcome->done = true;
	outcome->jct_ns = jct;
	outcome->wait_ns = jct > job->held_ns ? jct - job->held_ns : 0;
	outcome->preemptions = job->preemptions;
	outcome->rho_ppm = scale(stay_ms, PPM, share_ms ? share_ms : 1);
	sim->result.done++;
	sim->result.end_ns = sim->now_ns;
}

int queue_end(struct queue_sim *sim, uint32_t index, struct takt_err *err)
{
	struct queue_job *job = &sim->jobs[index];
	const struct takt_queue_predictor *predictor = sim->config->predictor;
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_ENDED, .job_id = queue_job_id(index), .at_ns = sim->now_ns};
	int rc = leave(sim, job, &event, err);

	if (rc < 0)
		return rc;
	job->state = QUEUE_OVER;
	sim->wanted_gpus -= job->gpu_count;
	book_outcome(sim, index);
	if (predictor && predictor->observe)
		rc = predictor->observe(predictor->ctx, index, sim->config->jobs[index].work_ns);
	return rc < 0 ? takt_err_set(err, rc, "book the run time of a job") : 0;
}

int queue_checkpoint(struct queue_sim *sim, uint32_t index, struct takt_err *err)
{
	bool needed = sim->plan_needed;
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_CHECKPOINT,
					 .job_id = queue_job_id(index),
					 .at_ns = sim->now_ns};
	int rc = tell(sim, &event, err);

	/* A checkpoint alone is no occasion to plan anew. */
	sim->plan_needed = needed;
	return rc < 0 ? rc : schedule_checkpoint(sim, &sim->jobs[index]);
}

/* What is safe stays done; what was done since is lost. */
static void keep_work(struct queue_sim *sim, struct queue_job *job, uint64_t every_ns)
{
	uint64_t ran = sim->now_ns - job->started_ns;
	uint64_t working = ran > job->overhead_ns ? ran - job->overhead_ns : 0;
	uint64_t safe = every_ns ? working / every_ns * every_ns : 0, done = work_in(job, safe);

	job->left_ns -= done < job->left_ns ? done : job->left_ns;
	sim->result.lost_gpu_ms += (working - safe) / TAKT_NS_PER_MS * job->gpu_count;
}

int queue_requeue(struct queue_sim *sim, uint32_t index, struct takt_err *err)
{
	struct queue_job *job = &sim->jobs[index];
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_REQUEUED,
					 .job_id = queue_job_id(index),
					 .at_ns = sim->now_ns};

	keep_work(sim, job, sim->config->checkpoint_ns);
	job->state = QUEUE_WAITING;
	job->restarts++;
	return leave(sim, job, &event, err);
}

/* Work goes on where it stopped: moving makes a checkpoint. */
int queue_move(struct queue_sim *sim, uint32_t index, uint32_t task,
	       const struct takt_sched_slot *to, struct takt_err *err)
{
	struct queue_job *job = &sim->jobs[index];
	struct takt_sched_slot from = job->slots[task];
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_MOVED,
					 .job_id = queue_job_id(index),
					 .at_ns = sim->now_ns,
					 .slots = job->slots,
					 .slot_count = job->slot_count};
	int rc;

	keep_work(sim, job, 1);
	end_attempt(sim, job);
	job->slots[task] = *to;
	rc = tell(sim, &event, err);
	if (rc == 0)
		rc = queue_clean(sim, &from, 1, err);
	if (rc < 0)
		return rc;
	sim->result.migrations++;
	rc = begin_attempt(sim, index, sim->config->preempt_cost_ns);
	return rc < 0 ? takt_err_set(err, rc, "no memory for an event") : 0;
}
