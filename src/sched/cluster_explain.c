/* SPDX-License-Identifier: Apache-2.0 */
/* Why a task does not fit: nodes counted by what keeps it from each. */
#include "sched/place_index.h"

static const char *const names[TAKT_FIT_CAUSES] = {
	[TAKT_FIT_SCOPE] = "scope",
	[TAKT_FIT_SELECTOR] = "selector",
	[TAKT_FIT_MODEL] = "model",
	[TAKT_FIT_COUNT_OF] = "device_count",
	[TAKT_FIT_SIZE] = "size",
	[TAKT_FIT_DRAINED] = "drained",
	[TAKT_FIT_HEALTH] = "health",
	[TAKT_FIT_OUTSIDE] = "outside",
	[TAKT_FIT_DEVICES] = "devices",
	[TAKT_FIT_FRACTION] = "fraction",
	[TAKT_FIT_DEV_MEM] = "device_memory",
	[TAKT_FIT_MIG] = "mig",
	[TAKT_FIT_NUMA] = "numa",
	[TAKT_FIT_CPU] = "cpu",
	[TAKT_FIT_MEM] = "memory",
	[TAKT_FIT_PER_NODE] = "per_node",
	[TAKT_FIT_POLICY] = "policy",
};

const char *takt_fit_name(enum takt_fit cause)
{
	return (unsigned)cause < TAKT_FIT_CAUSES ? names[cause] : "?";
}

uint32_t takt_cluster_why_not(struct takt_cluster *cluster, uint32_t kind, uint32_t node,
			      const struct takt_scope *scope)
{
	uint32_t causes;

	takt_cluster_update_epoch(cluster);
	causes = takt_fit_why(cluster, takt_cluster_at(cluster, node), kind);
	if (causes)
		return causes | (uint32_t)!takt_scope_has(cluster, scope, node) << TAKT_FIT_SCOPE;
	return (uint32_t)!takt_scope_fits(cluster, scope, takt_cluster_at(cluster, node), kind)
	       << TAKT_FIT_SCOPE;
}

static void count(struct takt_fit_counts *counts, uint32_t causes)
{
	counts->nodes++;
	if (!causes) {
		counts->fit++;
		return;
	}
	counts->first[__builtin_ctz(causes)]++;
	for (; causes; causes &= causes - 1)
		counts->all[__builtin_ctz(causes)]++;
}

void takt_cluster_explain_naive(struct takt_cluster *cluster, uint32_t kind,
				const struct takt_scope *scope, struct takt_fit_counts *ret)
{
	struct takt_fit_counts counts = {0};

	takt_cluster_update_epoch(cluster);
	for (uint32_t i = 0; i < cluster->node_count; i++)
		if (!(takt_cluster_at(cluster, i)->flags & TAKT_NODE_REMOVED))
			count(&counts, takt_cluster_why_not(cluster, kind, i, scope));
	*ret = counts;
}

void takt_cluster_explain(struct takt_cluster *cluster, uint32_t kind,
			  const struct takt_scope *scope, struct takt_fit_counts *ret)
{
	struct takt_fit_counts counts = {0};
	struct takt_place_view *view;

	takt_cluster_update_epoch(cluster);
	view = takt_index_causes(cluster, kind);
	if (!view || (scope && scope->keep_off_count)) {
		takt_cluster_explain_naive(cluster, kind, scope, ret);
		return;
	}
	if (!scope) {
		*ret = view->counts;
		return;
	}
	for (uint32_t i = 0; i < cluster->node_count; i++) {
		uint32_t out = !takt_scope_has(cluster, scope, i);

		if (view->causes[i] != TAKT_CLUSTER_NONE)
			count(&counts, view->causes[i] | out << TAKT_FIT_SCOPE);
	}
	*ret = counts;
}
