/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler as an object: its life, and the questions that change nothing. */
#include "sched/sched.h"

#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "sched/plan_state.h"

enum {
	MAX_JOBS_DEFAULT = 1000000,
	MAX_NODES_DEFAULT = 100000,
	RESERVE_DEFAULT = 16,
	BACKFILL_DEFAULT = 1000,
	PREEMPT_DEFAULT = 8,
	MAX_NAMES = 1 << 20, /* of a space, selectors, workloads, windows */
};

static void fill_defaults(struct takt_sched_config *config)
{
	config->max_jobs = config->max_jobs ? config->max_jobs : MAX_JOBS_DEFAULT;
	config->max_nodes = config->max_nodes ? config->max_nodes : MAX_NODES_DEFAULT;
	config->order = config->order ? config->order : &takt_order_priority;
	config->reserve_depth = config->reserve_depth ? config->reserve_depth : RESERVE_DEFAULT;
	config->backfill_depth = config->backfill_depth ? config->backfill_depth : BACKFILL_DEFAULT;
	config->safety_permille = config->safety_permille ? config->safety_permille : 1000;
	config->preempt_depth = config->preempt_depth ? config->preempt_depth : PREEMPT_DEFAULT;
}

static void set_limits(struct takt_sched *sched)
{
	size_t max_jobs = sched->config.max_jobs;

	sched->hosts.max = sched->config.max_nodes;
	sched->host_of.max = TAKT_CLUSTER_MAX_NODES;
	sched->jobs.max = sched->fresh.max = sched->open.placed.max = max_jobs;
	sched->queue.max = takt_sched_queue_most(max_jobs);
	sched->open.borrowed.max = MAX_NAMES;
	sched->by_id = sched->by_seq = sched->arrays = TAKT_MAP_U64(max_jobs);
	sched->models.max = TAKT_SCHED_MAX_MODELS - 1;
	for (size_t space = 0; space < TAKT_SPACE_COUNT; space++)
		sched->names[space].max = MAX_NAMES;
	sched->selectors.max = sched->workloads.max = sched->windows.max = MAX_NAMES;
	sched->outlooks.max = MAX_NAMES;
	sched->selector_by_id = TAKT_MAP_U64(MAX_NAMES);
	sched->flaps.max = sched->config.max_nodes;
	for (size_t level = 0; level < TAKT_SCHED_LEVELS; level++)
		sched->domains_of[level].max = TAKT_CLUSTER_MAX_DOMAINS;
	takt_sched_groups_init(sched, max_jobs);
	sched->keys_until_ns = UINT64_MAX;
}

/* The cluster, with model 0 and what holds unclean GPUs in it. */
static int make_cluster(struct takt_sched *sched, struct takt_err *err)
{
	struct takt_cluster_config config = {.placement = sched->config.placement};
	struct takt_model_desc unknown = {.name = "?"};
	struct takt_request drain = {.devices = 1, .milli = TAKT_REQUEST_WHOLE};
	uint32_t model;
	int rc = takt_cluster_new(&config, &sched->cluster, err);

	if (rc == 0)
		rc = takt_cluster_model(sched->cluster, &unknown, &model, err);
	if (rc == 0)
		rc = takt_cluster_kind(sched->cluster, &drain, &sched->drain_kind, err);
	return rc;
}

int takt_sched_new(const struct takt_sched_config *config, struct takt_sched **ret,
		   struct takt_err *err)
{
	struct takt_tenants_config tenants = {0};
	struct takt_sched *sched = takt_zalloc(sizeof(*sched));
	int rc;

	if (!sched)
		return takt_err_set(err, -ENOMEM, "scheduler");
	sched->config = *config;
	fill_defaults(&sched->config);
	set_limits(sched);
	if (config->order_config)
		sched->order_config = *config->order_config;
	sched->order_config.keeps = !config->preempt;
	rc = takt_order_config_check(&sched->order_config, err);
	if (rc == 0)
		rc = make_cluster(sched, err);
	if (rc == 0)
		rc = takt_tenants_new(config->tenants ? config->tenants : &tenants, &sched->tenants,
				      err);
	if (rc < 0) {
		takt_sched_free(sched);
		return rc;
	}
	*ret = sched;
	return 0;
}

static void free_jobs(struct takt_sched *sched)
{
	takt_sched_groups_fini(sched); /* while what their heaps hold is there */
	TAKT_VEC_EACH (entry, &sched->jobs)
		takt_sched_entry_free(*entry);
	takt_vec_fini(&sched->jobs);
	takt_vec_fini(&sched->fresh);
	takt_vec_fini(&sched->queue);
	takt_vec_fini(&sched->open.placed);
	takt_vec_fini(&sched->open.borrowed);
	takt_map_fini(&sched->by_id);
	takt_map_fini(&sched->by_seq);
	TAKT_MAP_EACH(array, &sched->arrays)
	takt_free(array->value.ptr);
	takt_map_fini(&sched->arrays);
}

static void free_words(struct takt_sched *sched)
{
	takt_vec_fini(&sched->models);
	for (size_t space = 0; space < TAKT_SPACE_COUNT; space++) {
		TAKT_VEC_EACH (name, &sched->names[space])
			takt_free(*name);
		takt_vec_fini(&sched->names[space]);
	}
	takt_vec_fini(&sched->selectors);
	takt_vec_fini(&sched->workloads);
	TAKT_VEC_EACH (outlook, &sched->outlooks)
		takt_free(*outlook);
	takt_vec_fini(&sched->outlooks);
	takt_map_fini(&sched->selector_by_id);
}

void takt_sched_free(struct takt_sched *sched)
{
	if (!sched)
		return;
	free_jobs(sched);
	TAKT_VEC_EACH (host, &sched->hosts)
		takt_sched_host_free(*host);
	takt_vec_fini(&sched->hosts);
	takt_vec_fini(&sched->host_of);
	free_words(sched);
	TAKT_VEC_EACH (window, &sched->windows)
		takt_free((void *)window->nodes);
	takt_vec_fini(&sched->windows);
	takt_vec_fini(&sched->flaps);
	for (size_t level = 0; level < TAKT_SCHED_LEVELS; level++)
		takt_vec_fini(&sched->domains_of[level]);
	takt_tenants_free(sched->tenants);
	takt_cluster_free(sched->cluster);
	takt_free(sched);
}

uint64_t takt_sched_version(const struct takt_sched *sched)
{
	return sched->version;
}

const struct takt_tenants *takt_sched_tenants(const struct takt_sched *sched)
{
	return sched->tenants;
}

int takt_sched_possible(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_err *err)
{
	const struct takt_sched_host *largest = takt_sched_nearest(sched, job, TAKT_WHY_IMPOSSIBLE);

	if (!largest)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE, "no machine is known to run it on");
	if (job->gpus <= largest->gpu_count)
		return 0;
	return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
			    "asks for %" PRIu32 " GPU%s, the largest node has %" PRIu32, job->gpus,
			    job->gpus == 1 ? "" : "s", largest->gpu_count);
}

int takt_sched_gpu(const struct takt_sched *sched, uint32_t node_id, uint32_t gpu,
		   enum takt_gpu_state *ret_state, bool *ret_outside, uint64_t *ret_job_id)
{
	const struct takt_sched_host *host = takt_sched_host_find(sched, node_id);

	if (!host || host->removed || gpu >= host->gpu_count)
		return -ENOENT;
	if (ret_state)
		*ret_state = takt_sched_host_gpu_state(host, gpu);
	if (ret_outside)
		*ret_outside = host->outside >> gpu & 1;
	if (ret_job_id)
		*ret_job_id = host->gpu_job[gpu];
	return 0;
}
