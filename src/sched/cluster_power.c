/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node draws, by the model of PWR+FGD (CCGrid 2025): an accelerator draws its idle power
 * when nothing is held of it, else its full power; a CPU package the same, packages being filled
 * one after the other. What is not known gives no figure.
 */
#include <errno.h>

#include "sched/cluster_state.h"

static bool busy_after(const struct takt_device *device, bool taken)
{
	return taken || device->held != 0 || device->mig_busy != 0;
}

int takt_cluster_node_power_after_mw(const struct takt_cluster *cluster, uint32_t id,
				     const struct takt_request *request, uint64_t dev_mask,
				     uint64_t *ret)
{
	const struct takt_node *node = takt_cluster_node(cluster, id);
	const struct takt_cluster_cold *cold;
	int64_t cpu, packages, busy;
	uint64_t sum;

	if (!node)
		return -ENOENT;
	cold = &cluster->cold.at[id];
	if (cold->cpu_package_milli <= 0)
		return -ENOENT;
	cpu = node->cpu_milli - node->cpu_left_milli + (request ? request->cpu_milli : 0);
	packages = (node->cpu_milli + cold->cpu_package_milli - 1) / cold->cpu_package_milli;
	busy = (cpu + cold->cpu_package_milli - 1) / cold->cpu_package_milli;
	busy = busy < packages ? busy : packages;
	sum = (uint64_t)busy * cold->cpu_busy_mw + (uint64_t)(packages - busy) * cold->cpu_idle_mw;
	for (uint32_t i = 0; i < node->devices; i++) {
		const struct takt_cluster_model *model = &cluster->models.at[node->device[i].model];

		if (!model->busy_mw)
			return -ENOENT;
		sum += busy_after(&node->device[i], (dev_mask >> i & 1) != 0) ? model->busy_mw
									      : model->idle_mw;
	}
	*ret = sum;
	return 0;
}

int takt_cluster_node_power_mw(const struct takt_cluster *cluster, uint32_t node, uint64_t *ret)
{
	return takt_cluster_node_power_after_mw(cluster, node, NULL, 0, ret);
}
