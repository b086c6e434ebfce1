/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same mix through the whole scheduler (sched.h): events in, plan, all of it taken as facts.
 * Jobs arrive in batches, each batch makes one plan, which says of the others why; these leave.
 */
#include <errno.h>

#include "base/rng.h"
#include "base/sort.h"
#include "sched/sched.h"
#include "sim/bench_world.h"
#include "sim/sim_build.h"

enum {
	RACK_LEVEL = 1,
	GANG_ONE_IN = 8,
	GANG_MOST = 8,
	PERMILLE = 1000,
};

struct job {
	uint64_t id;
	uint64_t milli;
	uint32_t tasks;
	bool placed;
};

struct planner {
	const struct takt_bench_config *config;
	const struct bench_input *input;
	struct takt_sched *sched;
	struct takt_plan plan;
	struct takt_rng rng;
	uint64_t next_id;
	uint64_t capacity_milli, asked_milli, held_milli;
	uint64_t placed, released, rejected; /* tasks, tasks, jobs */
	TAKT_VEC(struct job) batch;
	TAKT_VEC(struct job) running;
	TAKT_VEC(uint32_t) ns; /* of each plan, by job */
};

static int tell(struct planner *planner, const struct takt_sched_event *event, struct takt_err *err)
{
	return takt_sched_update(planner->sched, event, err);
}

static int tell_nodes(struct planner *planner, struct takt_err *err)
{
	const struct takt_bench_config *config = planner->config;
	const struct takt_sim_cluster *cluster = &planner->input->cluster;
	int rc = 0;

	for (uint32_t i = 0; i < config->nodes && rc == 0; i++) {
		const struct takt_sim_node *from = &cluster->nodes.at[i % cluster->nodes.len];
		struct takt_sched_event event = {
			.kind = TAKT_SCHED_NODE_ADD,
			.node = {.id = i + 1,
				 .gpu_count = from->gpus,
				 .cpu_milli = config->cluster ? from->cpu_milli
							      : (int32_t)config->cpu_milli,
				 .mem_mib = config->cluster ? from->mem_mib : config->mem_mib}};

		if (config->features & TAKT_BENCH_TOPOLOGY)
			event.node.domain[0] = 1 + i / BENCH_RACK_NODES;
		planner->capacity_milli += UINT64_C(1000) * from->gpus;
		rc = tell(planner, &event, err);
	}
	return rc;
}

static int tell_tenants(struct planner *planner, struct takt_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < BENCH_TEAMS * (BENCH_USERS + 1) && rc == 0; i++) {
		struct takt_tenant tenant = takt_bench_tenant(i, planner->capacity_milli);
		struct takt_sched_event event = {.kind = TAKT_SCHED_TENANT, .tenant = &tenant};

		rc = tell(planner, &event, err);
	}
	return rc;
}

static int tell_world(struct planner *planner, struct takt_err *err)
{
	struct takt_sched_event level = {.kind = TAKT_SCHED_NAME,
					 .space = TAKT_SPACE_LEVEL,
					 .name_id = RACK_LEVEL,
					 .name = "rack"};
	int rc = 0;

	if (planner->config->features & TAKT_BENCH_TOPOLOGY)
		rc = tell(planner, &level, err);
	if (rc == 0)
		rc = tell_nodes(planner, err);
	if (rc == 0 && planner->config->features & TAKT_BENCH_QUOTA)
		rc = tell_tenants(planner, err);
	return rc;
}

static int arrive(struct planner *planner, struct takt_err *err)
{
	const struct takt_sim_work *work = &planner->input->work;
	const struct takt_sim_kind *kind =
		&work->kinds.at[work->jobs.at[takt_rng_below(&planner->rng, work->jobs.len)].kind];
	uint32_t features = planner->config->features;
	struct job job = {.id = ++planner->next_id, .tasks = 1};
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_ADD,
		.at_ns = job.id,
		.job = {.id = job.id, .submit_seq = job.id, .gpus = kind->gpus}};

	event.job.task = takt_sim_request(kind);
	if (features & TAKT_BENCH_GANG && takt_rng_below(&planner->rng, GANG_ONE_IN) == 0)
		job.tasks = 1 + (uint32_t)takt_rng_below(&planner->rng, GANG_MOST);
	event.job.tasks = job.tasks;
	if (features & TAKT_BENCH_TOPOLOGY && job.tasks > 1) {
		event.job.topology = TAKT_TOPOLOGY_REQUIRED;
		event.job.level = RACK_LEVEL;
	}
	if (features & TAKT_BENCH_QUOTA)
		event.job.tenant =
			1 + BENCH_TEAMS +
			(uint32_t)takt_rng_below(&planner->rng, BENCH_TEAMS * BENCH_USERS);
	job.milli = takt_sim_kind_milli(kind) * job.tasks;
	planner->asked_milli += job.milli;
	planner->batch.at[planner->batch.len++] = job;
	return tell(planner, &event, err);
}

static int leave(struct planner *planner, const struct job *job, struct takt_err *err)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_ENDED, .job_id = job->id, .at_ns = planner->next_id};

	return tell(planner, &event, err);
}

/* One plan for the batch, all of it taken. */
static int plan(struct planner *planner, struct takt_err *err)
{
	uint64_t first = planner->batch.at[0].id;
	int rc = takt_sched_run(planner->sched, planner->next_id, 0, &planner->plan, err);

	if (rc == 0)
		rc = takt_sched_commit(planner->sched, &planner->plan, planner->next_id, err);
	if (rc == 0 && takt_vec_reserve(&planner->running, planner->batch.len) < 0)
		rc = takt_err_set(err, -ENOMEM, "no memory for jobs");
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < planner->plan.placement_count; i++)
		planner->batch.at[planner->plan.placements[i].job_id - first].placed = true;
	for (size_t i = 0; i < planner->batch.len && rc == 0; i++) {
		const struct job *job = &planner->batch.at[i];

		if (!job->placed) {
			planner->rejected++;
			rc = leave(planner, job, err);
			continue;
		}
		planner->running.at[planner->running.len++] = *job;
		planner->held_milli += job->milli;
		planner->placed += job->tasks;
	}
	return rc;
}

/* A batch of arrivals; ret_ns is what they cost, each. */
static int step(struct planner *planner, struct takt_err *err)
{
	uint64_t start = takt_bench_now_ns();
	int rc = 0;

	takt_vec_clear(&planner->batch);
	for (uint32_t i = 0; i < planner->config->planner_batch && rc == 0; i++)
		rc = arrive(planner, err);
	if (rc == 0)
		rc = plan(planner, err);
	if (rc == 0 && takt_vec_push(&planner->ns, (uint32_t)((takt_bench_now_ns() - start) /
							      planner->batch.len)) < 0)
		rc = takt_err_set(err, -ENOMEM, "no memory for a time");
	return rc;
}

static int release(struct planner *planner, struct takt_err *err)
{
	size_t at = takt_rng_below(&planner->rng, planner->running.len);
	struct job job = planner->running.at[at];

	takt_vec_remove_swap(&planner->running, at);
	planner->held_milli -= job.milli;
	planner->released += job.tasks;
	return leave(planner, &job, err);
}

static int run(struct planner *planner, uint64_t *ret_cpu_ns, uint64_t *ret_wall_ns,
	       struct takt_err *err)
{
	const struct takt_bench_config *config = planner->config;
	uint64_t load = planner->capacity_milli / PERMILLE * config->load_permille;
	uint64_t until = config->churn ? load : planner->capacity_milli;
	uint64_t cpu = takt_bench_cpu_ns(), wall = takt_bench_now_ns();
	int rc = 0;

	while (rc == 0 && planner->asked_milli < until)
		rc = step(planner, err);
	if (config->churn) {
		planner->placed = planner->released = planner->rejected = 0;
		takt_vec_clear(&planner->ns);
		cpu = takt_bench_cpu_ns();
		wall = takt_bench_now_ns();
	}
	while (config->churn && rc == 0 &&
	       planner->placed + planner->released < config->operations) {
		rc = step(planner, err);
		while (rc == 0 && planner->held_milli >= load && planner->running.len)
			rc = release(planner, err);
	}
	*ret_cpu_ns = takt_bench_cpu_ns() - cpu;
	*ret_wall_ns = takt_bench_now_ns() - wall;
	return rc;
}

static void planner_fini(struct planner *planner)
{
	takt_plan_fini(&planner->plan);
	takt_sched_free(planner->sched);
	takt_vec_fini(&planner->batch);
	takt_vec_fini(&planner->running);
	takt_vec_fini(&planner->ns);
}

static int planner_init(const struct takt_bench_config *config, const struct bench_input *input,
			struct planner *ret, struct takt_err *err)
{
	struct takt_sched_config sched = {
		.max_nodes = config->nodes,
		.placement = input->placement,
		.backfill = TAKT_BACKFILL_GREEDY,
		.reasons =
			config->features & TAKT_BENCH_WHY ? TAKT_REASONS_ALL : TAKT_REASONS_ASKED,
		.clean_at_end = true,
	};
	int rc;

	*ret = (struct planner){
		.config = config,
		.input = input,
		.batch = TAKT_VEC_INIT(TAKT_BENCH_MAX_BATCH),
		.running = TAKT_VEC_INIT(BENCH_MAX_TASKS),
		.ns = TAKT_VEC_INIT(BENCH_MAX_TASKS),
	};
	takt_rng_init(&ret->rng, config->seed);
	for (size_t i = 0; i < input->work.kinds.len; i++)
		if (input->work.kinds.at[i].model_mask)
			return takt_err_set(err, -EINVAL,
					    "%s names models of GPUs; the planner is measured "
					    "with a mix that does not",
					    config->mix);
	rc = takt_vec_reserve(&ret->batch, config->planner_batch);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for a batch");
	rc = takt_sched_new(&sched, &ret->sched, err);
	return rc < 0 ? rc : tell_world(ret, err);
}

int takt_bench_planner(const struct takt_bench_config *config, const struct bench_input *input,
		       struct takt_bench_result *ret, struct takt_err *err)
{
	struct planner planner;
	int rc = planner_init(config, input, &planner, err);

	if (rc == 0)
		rc = run(&planner, &ret->cpu_ns, &ret->wall_ns, err);
	if (rc == 0) {
		ret->nodes = config->nodes;
		ret->gpus = planner.capacity_milli / PERMILLE;
		ret->kinds = input->work.kinds.len;
		ret->asked_milli = planner.asked_milli;
		ret->held_milli = planner.held_milli;
		ret->rejections.count = planner.rejected;
		ret->releases.count = planner.released;
		rc = takt_bench_percentiles(planner.ns.at, planner.ns.len, &ret->placements);
		ret->placements.count = planner.placed;
		ret->placements_per_s = takt_bench_per_s(planner.placed, ret->cpu_ns);
		ret->ops_per_s = takt_bench_per_s(planner.placed + planner.released, ret->cpu_ns);
	}
	planner_fini(&planner);
	return rc;
}
