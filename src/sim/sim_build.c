/* SPDX-License-Identifier: Apache-2.0 */
/* From the simulated cluster to the scheduler's, see the header. */
#include "sim/sim_build.h"

#include <assert.h>

#include "sim/gpu_power.h"

/* Traces do not say which CPUs their nodes have: all are taken for Xeon Platinum 8163, with the
 * figures of PWR+FGD (CCGrid 2025). */
enum {
	PACKAGE_CPU_MILLI = 24000,
	PACKAGE_IDLE_MW = 20000,
	PACKAGE_BUSY_MW = 165000,
};

static int add_models(const struct takt_sim_cluster *from, struct takt_cluster *cluster,
		      struct takt_err *err)
{
	for (size_t i = 0; i < from->models.texts.len; i++) {
		struct takt_model_desc desc = {.name = from->models.texts.at[i]};
		struct takt_gpu_power power;
		uint32_t id;
		int rc;

		if (takt_gpu_power_find(desc.name, &power)) {
			desc.idle_mw = power.idle_w * 1000;
			desc.busy_mw = power.busy_w * 1000;
		}
		rc = takt_cluster_model(cluster, &desc, &id, err);
		if (rc < 0)
			return rc;
		assert(id == i);
	}
	return 0;
}

static int add_node(const struct takt_sim_cluster *from, size_t i, const uint32_t *ranks,
		    struct takt_cluster *cluster, struct takt_err *err)
{
	const struct takt_sim_node *node = &from->nodes.at[i];
	struct takt_node_desc desc = {
		.name = node->name,
		.cpu_milli = node->cpu_milli,
		.mem_mib = node->mem_mib,
		.device_count = node->gpus,
		.model = node->model,
		.rank_valid = true,
		.rank = ranks ? ranks[i] : (uint32_t)i,
		.cpu_package_milli = PACKAGE_CPU_MILLI,
		.cpu_idle_mw = PACKAGE_IDLE_MW,
		.cpu_busy_mw = PACKAGE_BUSY_MW,
	};
	struct takt_model_desc unnamed = {.name = "?"};
	uint32_t id;
	int rc;

	if (node->model == TAKT_SIM_NO_MODEL) {
		rc = takt_cluster_model(cluster, &unnamed, &desc.model, err);
		if (rc < 0)
			return rc;
	}
	return takt_cluster_add_node(cluster, &desc, &id, err);
}

int takt_sim_build(const struct takt_sim_cluster *from, const uint32_t *ranks,
		   const struct takt_cluster_config *config, struct takt_cluster **ret,
		   struct takt_err *err)
{
	struct takt_cluster *cluster;
	int rc = takt_cluster_new(config, &cluster, err);

	if (rc < 0)
		return rc;
	rc = add_models(from, cluster, err);
	for (size_t i = 0; i < from->nodes.len && rc == 0; i++)
		rc = add_node(from, i, ranks, cluster, err);
	if (rc < 0) {
		takt_cluster_free(cluster);
		return rc;
	}
	*ret = cluster;
	return 0;
}

struct takt_request takt_sim_request(const struct takt_sim_kind *kind)
{
	return (struct takt_request){
		.cpu_milli = kind->cpu_milli,
		.devices = (uint16_t)kind->gpus,
		.milli = (uint16_t)kind->milli,
		.mem_mib = kind->mem_mib,
		.dev_mem_mib = kind->gpu_mem_mib,
		.model_mask = kind->gpus ? kind->model_mask : 0,
	};
}

int takt_sim_build_kinds(struct takt_cluster *cluster, const struct takt_sim_work *work,
			 uint32_t *ret, struct takt_err *err)
{
	for (size_t i = 0; i < work->kinds.len; i++) {
		struct takt_request request = takt_sim_request(&work->kinds.at[i]);
		int rc = takt_cluster_kind(cluster, &request, &ret[i], err);

		if (rc < 0)
			return rc;
	}
	return 0;
}
