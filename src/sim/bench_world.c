/* SPDX-License-Identifier: Apache-2.0 */
/* Cluster, mix and tenants of `takt bench sched`. */
#include "sim/bench_world.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "sched/compare/compare.h"
#include "sim/sim_build.h"
#include "sim/trace.h"

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t takt_bench_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t takt_bench_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* A cluster of so many equal nodes; the models that the mix asks for come in turn. */
static int uniform(const struct takt_bench_config *config, struct takt_sim_cluster *cluster,
		   struct takt_err *err)
{
	char text[64];

	snprintf(text, sizeof(text), "uniform:%ux%u", config->nodes, config->gpus);
	return takt_sim_cluster_load(text, cluster, err);
}

int takt_bench_read(const struct takt_bench_config *config, struct bench_input *ret,
		    struct takt_err *err)
{
	const char *name = config->placement ? config->placement : "takt";
	struct bench_input input = {.placement = takt_compare_find(name)};
	int rc;

	if (!input.placement)
		return takt_err_set(err, -EINVAL, "there is no placement policy '%s'", name);
	rc = config->cluster ? takt_sim_cluster_load(config->cluster, &input.cluster, err)
			     : uniform(config, &input.cluster, err);

	if (rc < 0)
		return rc;
	if (input.cluster.automatic || input.cluster.nodes.len == 0)
		rc = takt_err_set(err, -EINVAL, "a benchmark needs a cluster with nodes");
	if (rc == 0)
		rc = takt_sim_work_load(config->mix, 1u << TAKT_TRACE_JOB_GPUS, &input.cluster,
					&input.work, err);
	if (rc < 0) {
		takt_sim_cluster_fini(&input.cluster);
		return rc;
	}
	rc = takt_fgd_typical(&input.work, &input.typical, err);
	if (rc == 0 && input.work.jobs.len == 0) {
		takt_fgd_typical_fini(&input.typical);
		rc = takt_err_set(err, -EINVAL, "%s has no jobs", config->mix);
	}
	if (rc < 0) {
		takt_sim_work_fini(&input.work);
		takt_sim_cluster_fini(&input.cluster);
		return rc;
	}
	*ret = input;
	return 0;
}

void takt_bench_input_fini(struct bench_input *input)
{
	takt_fgd_typical_fini(&input->typical);
	takt_sim_work_fini(&input->work);
	takt_sim_cluster_fini(&input->cluster);
}

static int add_models(const struct bench_input *input, struct takt_cluster *cluster,
		      struct takt_err *err)
{
	size_t count = input->cluster.models.texts.len;

	for (size_t i = 0; i < count || i == 0; i++) {
		struct takt_model_desc desc = {.name = count ? input->cluster.models.texts.at[i]
							     : "GPU"};
		uint32_t id;
		int rc = takt_cluster_model(cluster, &desc, &id, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int add_rack(struct bench_world *world, uint32_t node, uint32_t *ret, struct takt_err *err)
{
	char name[32];

	if (!world->rack_level)
		return 0;
	snprintf(name, sizeof(name), "rack%u", node / BENCH_RACK_NODES);
	return takt_cluster_domain(world->cluster, world->rack_level, 0, name, ret, err);
}

static int add_node(const struct takt_bench_config *config, const struct bench_input *input,
		    struct bench_world *world, uint32_t i, struct takt_err *err)
{
	const struct takt_sim_node *from = &input->cluster.nodes.at[i % input->cluster.nodes.len];
	uint32_t models = (uint32_t)takt_cluster_model_count(world->cluster), id;
	struct takt_node_desc desc = {
		.cpu_milli = config->cluster ? from->cpu_milli : (int32_t)config->cpu_milli,
		.mem_mib = config->cluster ? from->mem_mib : config->mem_mib,
		.device_count = from->gpus,
		.model = from->model == TAKT_SIM_NO_MODEL ? i % models : from->model,
	};
	int rc = add_rack(world, i, &desc.domain, err);

	world->capacity_milli += UINT64_C(1000) * from->gpus;
	return rc < 0 ? rc : takt_cluster_add_node(world->cluster, &desc, &id, err);
}

static int add_nodes(const struct takt_bench_config *config, const struct bench_input *input,
		     struct bench_world *world, struct takt_err *err)
{
	int rc = add_models(input, world->cluster, err);

	if (rc == 0 && config->features & TAKT_BENCH_TOPOLOGY)
		rc = takt_cluster_level(world->cluster, "rack", &world->rack_level, err);
	for (uint32_t i = 0; i < config->nodes && rc == 0; i++)
		rc = add_node(config, input, world, i, err);
	return rc;
}

struct takt_tenant takt_bench_tenant(uint32_t i, uint64_t capacity_milli)
{
	uint64_t team_milli = capacity_milli / BENCH_TEAMS * 2;
	bool team = i < BENCH_TEAMS;

	return (struct takt_tenant){
		.id = 1 + i,
		.parent = team ? TAKT_TENANT_ROOT : 1 + (i - BENCH_TEAMS) / BENCH_USERS,
		.weight = 1,
		.quota_milli = team ? team_milli / 2 : 0,
		.limit_milli = team ? team_milli : team_milli / 2,
		.may_borrow = true,
	};
}

static int add_tenants(struct bench_world *world, struct takt_err *err)
{
	struct takt_tenants_config config = {.max_tenants = 0};
	int rc = takt_tenants_new(&config, &world->tenants, err);

	for (uint32_t i = 0; i < BENCH_TEAMS * (BENCH_USERS + 1) && rc == 0; i++) {
		struct takt_tenant tenant = takt_bench_tenant(i, world->capacity_milli);

		rc = takt_tenants_set(world->tenants, &tenant, err);
	}
	return rc;
}

static int add_kinds(const struct bench_input *input, struct bench_world *world,
		     struct takt_err *err)
{
	int rc = takt_vec_reserve(&world->kinds, input->work.kinds.len);

	for (size_t i = 0; i < input->work.kinds.len && rc == 0; i++) {
		struct takt_request request = takt_sim_request(&input->work.kinds.at[i]);

		rc = takt_cluster_kind(world->cluster, &request, &world->kinds.at[i], err);
		if (rc == 0)
			world->kinds.len++;
	}
	return rc;
}

static int add_mix(const struct bench_input *input, struct bench_world *world)
{
	const struct takt_sim_work *work = &input->work;
	int rc = takt_vec_reserve(&world->mix, work->jobs.len);

	for (size_t i = 0; i < work->jobs.len && rc == 0; i++) {
		uint32_t kind = work->jobs.at[i].kind;

		world->mix.at[world->mix.len++] = (struct bench_draw){
			.kind = world->kinds.at[kind],
			.milli = (uint32_t)takt_sim_kind_milli(&work->kinds.at[kind])};
	}
	return rc;
}

int takt_bench_build(const struct takt_bench_config *config, const struct bench_input *input,
		     struct bench_world *ret, struct takt_err *err)
{
	struct bench_world world = {
		.kinds = TAKT_VEC_INIT(TAKT_SIM_MAX_KINDS),
		.mix = TAKT_VEC_INIT(TAKT_SIM_MAX_JOBS),
		.running = TAKT_VEC_INIT(BENCH_MAX_TASKS),
	};
	struct takt_workload workload = {.items = input->typical.items.at,
					 .count = input->typical.items.len};
	struct takt_cluster_config cluster = {
		.placement = input->placement, .workload = &workload, .seed = config->seed};
	uint64_t start = takt_bench_cpu_ns();
	int rc = takt_cluster_new(&cluster, &world.cluster, err);

	if (rc < 0)
		return rc;
	rc = add_nodes(config, input, &world, err);
	world.setup_ns = takt_bench_cpu_ns() - start;
	if (rc == 0 && config->features & TAKT_BENCH_QUOTA)
		rc = add_tenants(&world, err);
	if (rc == 0)
		rc = add_kinds(input, &world, err);
	if (rc == 0 && add_mix(input, &world) < 0)
		rc = takt_err_set(err, -ENOMEM, "no memory for the mix");
	if (rc < 0) {
		takt_bench_world_fini(&world);
		return rc;
	}
	start = takt_bench_cpu_ns();
	for (size_t i = 0; i < world.kinds.len; i++)
		takt_cluster_warm(world.cluster, world.kinds.at[i]);
	world.warm_ns = takt_bench_cpu_ns() - start;
	*ret = world;
	return 0;
}

void takt_bench_world_fini(struct bench_world *world)
{
	takt_tenants_free(world->tenants);
	takt_cluster_free(world->cluster);
	takt_vec_fini(&world->kinds);
	takt_vec_fini(&world->mix);
	takt_vec_fini(&world->running);
}
