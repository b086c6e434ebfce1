/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gangs whose work runs at different speeds on different models: all tasks on one model, since a
 * gang is as fast as its slowest task and the faster GPUs would wait for it.
 *
 * The placement policy says on which: where it puts the first task. If the gang does not fit on
 * that model, its nodes are left out and the policy is asked again. The model stays allowed
 * meanwhile, so that a policy that lets work wait for a fast model compares with it still.
 */
#include <errno.h>

#include "sched/plan_state.h"

/* The model that a task gets on a node: the lowest of its models that is allowed. */
static uint32_t model_on(const struct takt_node *node, const struct takt_request *request)
{
	uint64_t models = node->models;

	if (request->model_mask)
		models &= request->model_mask;
	return models ? (uint32_t)__builtin_ctzll(models) : TAKT_CLUSTER_MAX_MODELS;
}

/* Leaves out what the scope does, and the nodes of the models in `models` or, with `only`, those of
 * all others. */
static bool narrow(struct takt_planner *planner, const struct takt_request *request,
		   const struct takt_scope *scope, uint64_t models, bool only,
		   struct takt_scope *ret)
{
	const struct takt_cluster *cluster = planner->sched->cluster;
	size_t nodes = takt_cluster_node_count(cluster), words = nodes / 64 + 1;

	takt_vec_clear(&planner->other_models);
	if (takt_vec_reserve(&planner->other_models, words) < 0) {
		takt_plan_fail(planner, -ENOMEM);
		return false;
	}
	for (size_t i = 0; i < words; i++)
		planner->other_models.at[i] =
			scope && i < scope->leave_out_words ? scope->leave_out[i] : 0;
	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t model = model_on(takt_cluster_node(cluster, i), request);
		bool named = model < TAKT_CLUSTER_MAX_MODELS && (models >> model & 1) != 0;

		if (named != only)
			planner->other_models.at[i / 64] |= UINT64_C(1) << i % 64;
	}
	*ret = scope ? *scope : (struct takt_scope){0};
	ret->leave_out = planner->other_models.at;
	ret->leave_out_words = words;
	return true;
}

static uint32_t place_on(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 const struct takt_scope *scope, uint32_t model)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	struct takt_request request = *takt_cluster_request(cluster, entry->kind);
	uint32_t n;
	int rc;

	request.model_mask = UINT64_C(1) << model;
	rc = takt_cluster_kind(cluster, &request, &planner->stand_in, NULL);
	if (rc < 0) {
		takt_plan_fail(planner, rc);
		return 0;
	}
	/* Not with a limit a node: tasks of another kind are not counted for it. */
	planner->has_stand_in = request.max_per_node == 0;
	n = takt_plan_place_gang(planner, entry, scope);
	planner->has_stand_in = false;
	return n;
}

uint32_t takt_plan_place_on_one_model(struct takt_planner *planner,
				      const struct takt_sched_entry *entry,
				      const struct takt_scope *scope)
{
	const struct takt_cluster *cluster = planner->sched->cluster;
	const struct takt_request request = *takt_cluster_request(cluster, entry->kind);
	struct takt_scope some = scope ? *scope : (struct takt_scope){0};
	struct takt_slot first;
	uint64_t tried = 0;

	while (takt_plan_pick(planner, entry->kind, &some, &first)) {
		uint32_t model = model_on(takt_cluster_node(cluster, first.node), &request);
		uint32_t n;

		if (!narrow(planner, &request, scope, UINT64_C(1) << model, true, &some))
			return 0;
		n = place_on(planner, entry, &some, model);
		tried |= UINT64_C(1) << model;
		if (n > 0 || !narrow(planner, &request, scope, tried, false, &some))
			return n;
	}
	return 0;
}

bool takt_plan_declines(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	struct takt_fit_counts counts;

	if (takt_cluster_request(planner->sched->cluster, entry->kind)->speeds == 0)
		return false;
	takt_cluster_explain(planner->sched->cluster, entry->kind, NULL, &counts);
	return counts.first[TAKT_FIT_POLICY] > 0;
}
