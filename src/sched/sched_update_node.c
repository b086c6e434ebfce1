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

static int check_node(const struct takt_sched_node *node, struct takt_err *err)
{
	uint32_t n = node->gpu_count;

	if (n > TAKT_SCHED_MAX_NODE_GPUS)
		return takt_err_set(err, -EINVAL,
				    "gpu_count %" PRIu32 " of node %" PRIu32 " is over %d", n,
				    node->id, TAKT_SCHED_MAX_NODE_GPUS);
	if (n > 0 && !node->pair_score)
		return takt_err_set(err, -EINVAL, "pair_score of node %" PRIu32 " is missing",
				    node->id);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (node->pair_score[i * n + j] != node->pair_score[j * n + i])
				return takt_err_set(err, -EINVAL,
						    "pair_score of node %" PRIu32
						    " is not symmetric at %" PRIu32 ",%" PRIu32,
						    node->id, i, j);
	return 0;
}

static struct takt_sched_host *host_new(const struct takt_sched_node *node)
{
	struct takt_sched_host *host = takt_zalloc(sizeof(*host));
	size_t scores = (size_t)node->gpu_count * node->gpu_count;

	if (!host)
		return NULL;
	host->id = node->id;
	host->gpu_count = node->gpu_count;
	host->pair_score = takt_calloc(scores, sizeof(*host->pair_score));
	host->gpu_job = takt_calloc(node->gpu_count, sizeof(*host->gpu_job));
	if (!host->pair_score || !host->gpu_job) {
		takt_sched_host_free(host);
		return NULL;
	}
	if (scores > 0)
		memcpy(host->pair_score, node->pair_score, scores * sizeof(*host->pair_score));
	return host;
}

/* A removed node is back: `fresh` gives it new facts, the jobs placed there keep what they hold. */
static int host_return(struct takt_sched_host *host, const struct takt_sched_node *node,
		       struct takt_err *err)
{
	uint64_t held = host->assigned | host->running;
	struct takt_sched_host *fresh;
	struct takt_sched_host old = *host;

	if (held & ~takt_sched_low_bits(node->gpu_count))
		return takt_err_set(err, -EINVAL,
				    "gpu_count %" PRIu32 " of node %" PRIu32
				    ", which comes back, lacks a GPU that a job still holds",
				    node->gpu_count, node->id);
	fresh = host_new(node);
	if (!fresh)
		return takt_err_set(err, -ENOMEM, "node %" PRIu32, node->id);
	fresh->placed = host->placed;
	fresh->assigned = host->assigned;
	fresh->running = host->running;
	for (; held; held &= held - 1)
		fresh->gpu_job[__builtin_ctzll(held)] = host->gpu_job[__builtin_ctzll(held)];
	*host = *fresh;
	*fresh = old;
	takt_sched_host_free(fresh);
	return 0;
}

int takt_sched_on_node_add(struct takt_sched *sched, const struct takt_sched_event *event,
			   struct takt_err *err)
{
	const struct takt_sched_node *node = &event->node;
	struct takt_sched_host *host = takt_sched_host_find(sched, node->id);
	int rc = check_node(node, err);

	if (rc < 0)
		return rc;
	if (host && !host->removed)
		return takt_err_set(err, -EINVAL, "node.id %" PRIu32 " is there already", node->id);
	if (host)
		return host_return(host, node, err);
	rc = takt_vec_reserve(&sched->hosts, 1);
	host = rc < 0 ? NULL : host_new(node);
	if (rc == -TAKT_E_LIMIT)
		return takt_err_set(err, rc, "node.id %" PRIu32 " is one more than the %zu allowed",
				    node->id, sched->hosts.max);
	if (!host)
		return takt_err_set(err, -ENOMEM, "node %" PRIu32, node->id);
	return takt_vec_insert(&sched->hosts, takt_sched_host_place(sched, node->id), host);
}

void takt_sched_host_forget(struct takt_sched *sched, struct takt_sched_host *host)
{
	takt_vec_remove(&sched->hosts, takt_sched_host_place(sched, host->id));
	takt_sched_host_free(host);
}

int takt_sched_on_node_remove(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	struct takt_sched_host *host = takt_sched_need_host(sched, event->node_id, err);
	uint64_t drains;

	if (!host)
		return -EINVAL;
	if (host->placed == 0) {
		takt_sched_host_forget(sched, host);
		return 0;
	}
	for (drains = host->draining; drains; drains &= drains - 1)
		host->gpu_job[__builtin_ctzll(drains)] = 0;
	host->removed = true;
	host->quarantined = host->lost = host->outside = host->draining = 0;
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
	host->quarantined &= ~bit;
	host->lost &= ~bit;
	if (event->state == TAKT_GPU_QUARANTINED)
		host->quarantined |= bit;
	if (event->state == TAKT_GPU_LOST)
		host->lost |= bit;
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
	return 0;
}
