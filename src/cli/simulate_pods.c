/* SPDX-License-Identifier: Apache-2.0 */
/* Cluster, pods and policies by the command's options. */
#include <string.h>

#include "cli/simulate_pods.h"
#include "sim/trace.h"

void takt_simulate_pods_fini(struct takt_simulate_pods *pods)
{
	takt_sim_placements_fini(&pods->placements);
	takt_fgd_typical_fini(&pods->typical);
	takt_sim_classes_fini(&pods->classes);
	takt_sim_work_fini(&pods->work);
	takt_sim_cluster_fini(&pods->cluster);
}

/* By --against; without it FGD, or the first. */
static int find_baseline(const struct takt_simulate *simulate, struct takt_simulate_pods *pods,
			 struct takt_err *err)
{
	const char *given = takt_cli_value(simulate->cli, "against");
	const char *name = given ? given : "fgd";

	for (size_t i = 0; i < pods->placements.at.len; i++) {
		if (strcmp(pods->placements.at.at[i].name, name) != 0)
			continue;
		pods->baseline = i;
		return 0;
	}
	return given ? takt_err_set(err, -TAKT_E_USAGE,
				    "'--against %.40s' is none of the policies that are simulated",
				    given)
		     : 0;
}

static int load_cluster(struct takt_simulate *simulate, struct takt_simulate_pods *pods,
			struct takt_err *err)
{
	int64_t nodes;
	int rc = takt_sim_cluster_load(simulate->cluster, &pods->cluster, err);

	if (rc < 0)
		return rc;
	if (pods->cluster.automatic || pods->cluster.gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.60s': pods are placed on a cluster of given size that has "
				    "GPUs",
				    simulate->cluster);
	rc = takt_cli_number(simulate->cli, "nodes", 1, TAKT_SIM_MAX_NODES, 0, &nodes, err);
	if (rc < 0 || nodes == 0)
		return rc;
	takt_simulate_note(simulate, "nodes", "%lld", (long long)nodes);
	return takt_sim_cluster_sample(&pods->cluster, (size_t)nodes, err);
}

static int load_parts(struct takt_simulate *simulate, struct takt_simulate_pods *pods,
		      struct takt_err *err)
{
	const uint32_t required =
		1u << TAKT_TRACE_JOB_CPU | 1u << TAKT_TRACE_JOB_MEMORY | 1u << TAKT_TRACE_JOB_GPUS;
	const char *list = takt_cli_value(simulate->cli, "placement");
	int rc = takt_sim_placements(list ? list : "takt,fgd", &pods->placements, err);

	rc = rc < 0 ? rc : load_cluster(simulate, pods, err);
	rc = rc < 0 ? rc
		    : takt_sim_work_load(takt_simulate_behind(simulate->trace, "openb"), required,
					 &pods->cluster, &pods->work, err);
	rc = rc < 0 ? rc : takt_sim_classes(&pods->work, &pods->classes, err);
	rc = rc < 0 ? rc : takt_fgd_typical(&pods->work, &pods->typical, err);
	return rc < 0 ? rc : find_baseline(simulate, pods, err);
}

int takt_simulate_pods_load(struct takt_simulate *simulate, struct takt_simulate_pods *ret,
			    struct takt_err *err)
{
	struct takt_simulate_pods pods = {.baseline = 0};
	int rc = load_parts(simulate, &pods, err);

	if (rc < 0) {
		takt_simulate_pods_fini(&pods);
		return rc;
	}
	for (size_t i = 0; i < simulate->param_count; i++)
		pods.params[i] = (struct takt_place_param){simulate->params[i].name,
							   simulate->params[i].value};
	*ret = pods;
	return 0;
}

void takt_simulate_pods_meta(const struct takt_simulate_pods *pods, struct takt_sim_meta *ret)
{
	ret->cluster_hash = pods->cluster.hash;
	ret->trace_hash = pods->work.hash;
	ret->nodes = pods->cluster.nodes.len;
	ret->gpus = pods->cluster.gpus;
	ret->jobs = pods->work.jobs.len;
}
