/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that are kept for somebody, or from everybody, for a time. */
#include "queue/queue_impl.h"

/* INT64_MAX stays what it is: for ever. */
static uint64_t window_ns(const struct takt_queue *queue, struct takt_wall at)
{
	return at.ns == INT64_MAX ? INT64_MAX : takt_queue_sched_ns(queue, at);
}

uint64_t takt_queue_owner(uint64_t uid)
{
	return uid + 1;
}

int takt_queue_keep_gpus(struct takt_queue *queue, const struct takt_queue_window *window,
			 struct takt_err *err)
{
	const uint32_t node = TAKT_QUEUE_NODE;
	struct takt_sched_window keep = {
		.id = window->id,
		.start_ns = window_ns(queue, window->from),
		.end_ns = window_ns(queue, window->until),
		.owner = window->owner == TAKT_QUEUE_MAINTENANCE ? 0
								 : takt_queue_owner(window->owner),
		.gpu_mask = window->gpu_mask,
		.nodes = &node,
		.node_count = 1,
	};
	const struct takt_sched_event event = {.kind = TAKT_SCHED_WINDOW_ADD, .window = &keep};
	int rc =
		window->tenant ? takt_queue_tenant_id(queue, window->tenant, &keep.tenant, err) : 0;

	if (rc < 0)
		return rc;
	keep.owner = window->tenant ? 0 : keep.owner;
	queue->dirty = true;
	return takt_sched_update(queue->sched, &event, err);
}

void takt_queue_release_gpus(struct takt_queue *queue, uint64_t window_id)
{
	const struct takt_sched_event event = {.kind = TAKT_SCHED_WINDOW_REMOVE,
					       .window_id = window_id};

	queue->dirty = true;
	(void)takt_sched_update(queue->sched, &event,
				NULL); /* one that was never taken is no loss */
}
