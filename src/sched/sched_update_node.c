/* SPDX-License-Identifier: Apache-2.0 */
/* Events of nodes and of their GPUs. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "sched/sched_update.h"

struct takt_sched_host *takt_sched_need_host(const struct takt_sched *sched, uint32_t id,
					     struct takt_err *err)
{
	struct takt_sched_host *host = takt_sched_host_find(sched, id);

	if (host && !host->removed)
		return host;
	takt_err_set(err, -EINVAL, "node_id %" PRIu32 " is not a known node", id);
	return NULL;
}

static struct takt_sched_host *need_gpu(const struct takt_sched *sched,
					const struct takt_sched_event *event, struct takt_err *err)
{
	struct takt_sched_host *host = takt_sched_need_host(sched, event->node_id, err);

	if (!host || event->gpu < host->gpu_count)
		return host;
	takt_err_set(err, -EINVAL,
		     "gpu %" PRIu32 " is not one of the %" PRIu32 " GPUs of node %" PRIu32,
		     event->gpu, host->gpu_count, host->id);
	return NULL;
}

static int check_scores(const struct takt_sched_node *node, struct takt_err *err)
{
	uint32_t n = node->pair_score ? node->gpu_count : 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (node->pair_score[i * n + j] != node->pair_score[j * n + i])
				return takt_err_set(err, -EINVAL,
						    "pair_score of node %" PRIu32
						    " is not symmetric at %" PRIu32 ",%" PRIu32,
						    node->id, i, j);
	return 0;
}

static int check_node(const struct takt_sched *sched, const struct takt_sched_node *node,
		      struct takt_err *err)
{
	if (node->gpu_count > TAKT_SCHED_MAX_NODE_GPUS)
		return takt_err_set(err, -EINVAL,
				    "gpu_count %" PRIu32 " of node %" PRIu32 " is over %d",
				    node->gpu_count, node->id, TAKT_SCHED_MAX_NODE_GPUS);
	if (node->cpu_milli < 0 || node->mem_mib < 0)
		return takt_err_set(err, -EINVAL,
				    "cpu_milli or mem_mib of node %" PRIu32 " is negative",
				    node->id);
	if (node->mig_cut & ~takt_sched_low_bits(node->gpu_count) ||
	    (node->mig_cut && !node->mig_layout))
		return takt_err_set(err, -EINVAL,
				    "mig_cut of node %" PRIu32
				    " is beyond its GPUs, or has no mig_layout",
				    node->id);
	if (node->model > sched->models.len)
		return takt_err_set(err, -EINVAL,
				    "model %" PRIu32 " of node %" PRIu32 " was not told before",
				    node->model, node->id);
	for (uint32_t i = 0; i < TAKT_SCHED_LEVELS; i++)
		if (node->domain[i] && i >= sched->names[TAKT_SPACE_LEVEL].len)
			return takt_err_set(err, -EINVAL,
					    "domain of node %" PRIu32 " is of level %" PRIu32
					    ", which was not told before",
					    node->id, i + 1);
	return check_scores(node, err);
}

/* Tasks that are on the old number of a node in the cluster go over to the new one. */
static int take_over(struct takt_sched *sched, uint32_t from, uint32_t to, struct takt_err *err)
{
	uint64_t mark = takt_cluster_mark(sched->cluster);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sched->jobs.len; i++) {
		struct takt_sched_entry *entry = sched->jobs.at[i];

		for (uint32_t task = 0; rc == 0 && task < entry->slot_count; task++) {
			struct takt_slot slot = entry->slots[task];

			if (slot.node != from)
				continue;
			rc = takt_cluster_give(sched->cluster, entry->kind, &slot);
			slot.node = to;
			if (rc == 0)
				rc = takt_cluster_take(sched->cluster, entry->kind, &slot);
		}
	}
	if (rc < 0) {
		takt_cluster_rollback(sched->cluster, mark);
		return takt_err_set(err, rc == -ENOMEM ? rc : -EINVAL,
				    "node comes back with less than its jobs hold");
	}
	takt_cluster_commit(sched->cluster, mark);
	TAKT_VEC_EACH (entry, &sched->jobs)
		for (uint32_t task = 0; task < (*entry)->slot_count; task++)
			if ((*entry)->slots[task].node == from)
				(*entry)->slots[task].node = to;
	return 0;
}

/* A removed node is back: `fresh` has new facts, the jobs placed there keep what they hold. */
static int host_return(struct takt_sched *sched, struct takt_sched_host *host,
		       const struct takt_sched_node *node, struct takt_err *err)
{
	uint64_t held = host->assigned | host->running;
	struct takt_sched_host *fresh;
	int rc;

	if (held & ~takt_sched_low_bits(node->gpu_count))
		return takt_err_set(err, -EINVAL,
				    "gpu_count %" PRIu32 " of node %" PRIu32
				    ", which comes back, lacks a GPU that a job still holds",
				    node->gpu_count, node->id);
	rc = takt_sched_host_new(sched, node, &fresh, err);
	if (rc < 0)
		return rc;
	rc = take_over(sched, host->node, fresh->node, err);
	if (rc < 0) {
		takt_sched_host_retire(sched, fresh);
		return rc;
	}
	fresh->placed = host->placed;
	fresh->assigned = host->assigned;
	fresh->running = host->running;
	for (; held; held &= held - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(held);

		fresh->gpu_job[gpu] = host->gpu_job[gpu];
		fresh->sharers[gpu] = host->sharers[gpu];
	}
	sched->hosts.at[takt_sched_host_place(sched, host->id)] = fresh;
	takt_sched_host_retire(sched, host);
	return 0;
}

int takt_sched_on_node_add(struct takt_sched *sched, const struct takt_sched_event *event,
			   struct takt_err *err)
{
	const struct takt_sched_node *node = &event->node;
	struct takt_sched_host *host = takt_sched_host_find(sched, node->id);
	int rc = check_node(sched, node, err);

	if (rc < 0)
		return rc;
	if (host && !host->removed)
		return takt_err_set(err, -EINVAL, "node.id %" PRIu32 " is there already", node->id);
	if (host)
		return host_return(sched, host, node, err);
	rc = takt_vec_reserve(&sched->hosts, 1);
	if (rc == -TAKT_E_LIMIT)
		return takt_err_set(err, rc, "node.id %" PRIu32 " is one more than the %zu allowed",
				    node->id, sched->hosts.max);
	if (rc < 0)
		return takt_err_set(err, rc, "node %" PRIu32, node->id);
	rc = takt_sched_host_new(sched, node, &host, err);
	if (rc < 0)
		return rc;
	return takt_vec_insert(&sched->hosts, takt_sched_host_place(sched, node->id), host);
}

void takt_sched_host_forget(struct takt_sched *sched, struct takt_sched_host *host)
{
	takt_vec_remove(&sched->hosts, takt_sched_host_place(sched, host->id));
	takt_sched_host_retire(sched, host);
}

int takt_sched_on_node_remove(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_host *host = takt_sched_need_host(sched, event->node_id, err);
	int rc;

	if (!host)
		return -EINVAL;
	rc = takt_sched_note_failure(sched, host->id, event->at_ns, err);
	if (rc < 0)
		return rc;
	if (host->placed == 0) {
		takt_sched_host_forget(sched, host);
		return 0;
	}
	rc = takt_cluster_remove_node(sched->cluster, host->node, err);
	if (rc < 0)
		return rc;
	for (uint64_t drains = host->draining; drains; drains &= drains - 1)
		host->gpu_job[__builtin_ctzll(drains)] = 0;
	host->removed = true;
	host->quarantined = host->lost = host->outside = host->draining = 0;
	takt_sched_host_tell(sched, host);
	return 0;
}

int takt_sched_on_node_cordon(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_host *host = takt_sched_need_host(sched, event->node_id, err);

	if (!host)
		return -EINVAL;
	host->cordoned = event->outside;
	takt_sched_host_tell(sched, host);
	return 0;
}

/* GPUs. */

int takt_sched_on_gpu_health(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	if (event->state != TAKT_GPU_FREE && event->state != TAKT_GPU_QUARANTINED &&
	    event->state != TAKT_GPU_LOST)
		return takt_err_set(err, -EINVAL, "state '%s' is not free, quarantined or lost",
				    takt_gpu_state_name(event->state));
	bit = UINT64_C(1) << event->gpu;
	if (event->state != TAKT_GPU_FREE && !((host->quarantined | host->lost) & bit)) {
		int rc = takt_sched_note_failure(sched, host->id, event->at_ns, err);

		if (rc < 0)
			return rc;
	}
	host->quarantined &= ~bit;
	host->lost &= ~bit;
	if (event->state == TAKT_GPU_QUARANTINED)
		host->quarantined |= bit;
	if (event->state == TAKT_GPU_LOST)
		host->lost |= bit;
	takt_sched_host_tell(sched, host);
	return 0;
}

int takt_sched_on_gpu_outside(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	bit = UINT64_C(1) << event->gpu;
	host->outside = event->outside ? host->outside | bit : host->outside & ~bit;
	takt_sched_host_tell(sched, host);
	return 0;
}

int takt_sched_on_gpu_draining(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	bit = UINT64_C(1) << event->gpu;
	if ((host->assigned | host->running) & bit)
		return takt_err_set(err, -EINVAL,
				    "gpu %" PRIu32 " of node %" PRIu32 " cannot drain: job %" PRIu64
				    " holds it",
				    event->gpu, host->id, host->gpu_job[event->gpu]);
	host->draining |= bit;
	host->gpu_job[event->gpu] = event->job_id;
	takt_sched_host_tell(sched, host);
	return 0;
}

int takt_sched_on_gpu_drained(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);
	uint64_t bit;

	if (!host)
		return -EINVAL;
	bit = UINT64_C(1) << event->gpu;
	if (!(host->draining & bit))
		return takt_err_set(err, -EINVAL,
				    "gpu %" PRIu32 " of node %" PRIu32 " is not draining",
				    event->gpu, host->id);
	host->draining &= ~bit;
	host->gpu_job[event->gpu] = 0;
	takt_sched_host_tell(sched, host);
	return 0;
}

int takt_sched_on_gpu_layout(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	struct takt_sched_host *host = need_gpu(sched, event, err);

	if (!host)
		return -EINVAL;
	if (!event->layout)
		return takt_err_set(err, -EINVAL, "layout of gpu %" PRIu32 " is missing",
				    event->gpu);
	return takt_sched_host_cut(sched, host, event->gpu, event->layout, err);
}
