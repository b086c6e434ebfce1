/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that fail again and again. One that failed flap_count times within flap_window_ns gets
 * nothing new for flap_rest_ns after the last of these failures, though it looks healthy.
 *
 * Failures are remembered by id, since a node that fails may be removed and come back. Only the
 * newest are kept, as many as decide.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/compiler.h"
#include "sched/sched_update.h"

static uint32_t decisive(const struct takt_sched *sched)
{
	uint32_t most = (uint32_t)TAKT_ARRAY_LEN(((struct takt_sched_flap *)0)->at_ns);

	return sched->config.flap_count < most ? sched->config.flap_count : most;
}

static size_t flap_place(const struct takt_sched *sched, uint32_t node_id)
{
	size_t low = 0;
	size_t high = sched->flaps.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sched->flaps.at[mid].node_id < node_id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void remember(struct takt_sched_flap *flap, uint32_t most, uint64_t at_ns)
{
	if (flap->count == most) {
		memmove(flap->at_ns, flap->at_ns + 1, (most - 1) * sizeof(*flap->at_ns));
		flap->count--;
	}
	flap->at_ns[flap->count++] = at_ns;
}

int takt_sched_note_failure(struct takt_sched *sched, uint32_t node_id, uint64_t at_ns,
			    struct takt_err *err)
{
	uint32_t most = decisive(sched);
	size_t i = flap_place(sched, node_id);

	if (most == 0 || at_ns == 0)
		return 0;
	if (i == sched->flaps.len || sched->flaps.at[i].node_id != node_id) {
		struct takt_sched_flap fresh = {.node_id = node_id};
		int rc = takt_vec_insert(&sched->flaps, i, fresh);

		if (rc < 0)
			return takt_err_set(err, rc, "failure of node %" PRIu32, node_id);
	}
	remember(&sched->flaps.at[i], most, at_ns);
	return 0;
}

int takt_sched_on_node_failed(struct takt_sched *sched, const struct takt_sched_event *event,
			      struct takt_err *err)
{
	if (event->at_ns == 0)
		return takt_err_set(err, -EINVAL, "at_ns of a failure is missing");
	return takt_sched_note_failure(sched, event->node_id, event->at_ns, err);
}

static uint64_t rest_of(const struct takt_sched *sched, const struct takt_sched_flap *flap)
{
	uint32_t most = decisive(sched);

	if (most == 0 || flap->count < most ||
	    flap->at_ns[most - 1] - flap->at_ns[0] > sched->config.flap_window_ns)
		return 0;
	return flap->at_ns[most - 1] + sched->config.flap_rest_ns;
}

uint64_t takt_sched_rests_until(const struct takt_sched *sched, uint32_t node_id)
{
	size_t i = flap_place(sched, node_id);

	if (i == sched->flaps.len || sched->flaps.at[i].node_id != node_id)
		return 0;
	return rest_of(sched, &sched->flaps.at[i]);
}

uint64_t takt_sched_update_rest(struct takt_sched *sched, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	TAKT_VEC_EACH (flap, &sched->flaps) {
		uint64_t until = rest_of(sched, flap);
		struct takt_sched_host *host = takt_sched_host_find(sched, flap->node_id);
		bool rests = until > now_ns;

		if (rests && until < next)
			next = until;
		if (!host || host->removed || host->resting == rests)
			continue;
		host->resting = rests;
		takt_sched_host_tell(sched, host);
	}
	return next;
}
