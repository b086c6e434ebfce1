/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is expected of run times, told by whoever has a model of them and handed on to the order
 * policy. An outlook stays where it is in memory, so that jobs that are shown to a policy may point
 * at it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "sched/sched_update.h"

static size_t place_of(const struct takt_sched *sched, uint32_t id)
{
	size_t low = 0;
	size_t high = sched->outlooks.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sched->outlooks.at[mid]->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct takt_sched_outlook *find(const struct takt_sched *sched, uint32_t id)
{
	size_t i = place_of(sched, id);

	return i < sched->outlooks.len && sched->outlooks.at[i]->id == id ? sched->outlooks.at[i]
									  : NULL;
}

const struct takt_order_outlook *takt_sched_outlook_find(const struct takt_sched *sched,
							 uint32_t id)
{
	const struct takt_sched_outlook *outlook = id ? find(sched, id) : NULL;

	return outlook ? &outlook->is : NULL;
}

static int check(const struct takt_sched_outlook *outlook, struct takt_err *err)
{
	const struct takt_order_outlook *is = &outlook->is;

	if (outlook->id == 0 || is->steps == 0 || is->steps > TAKT_ORDER_OUTLOOK_STEPS)
		return takt_err_set(err, -EINVAL, "outlook.id is 0, or it has not 1 to %d steps",
				    TAKT_ORDER_OUTLOOK_STEPS);
	for (uint32_t i = 0; i < is->steps; i++)
		if (is->rank_s[i] == 0 ||
		    (i == 0 ? is->age_s[i] != 0 : is->age_s[i] <= is->age_s[i - 1]))
			return takt_err_set(err, -EINVAL,
					    "outlook %" PRIu32 ", step %" PRIu32
					    ": rank_s is 0, or age_s does not rise from 0",
					    outlook->id, i);
	return 0;
}

static int add(struct takt_sched *sched, const struct takt_sched_outlook *outlook,
	       struct takt_err *err)
{
	struct takt_sched_outlook *copy = takt_alloc(sizeof(*copy));
	int rc = copy ? takt_vec_insert(&sched->outlooks, place_of(sched, outlook->id), copy)
		      : -ENOMEM;

	if (rc < 0) {
		takt_free(copy);
		return takt_err_set(err, rc, "outlook %" PRIu32, outlook->id);
	}
	*copy = *outlook;
	return 0;
}

int takt_sched_on_outlook(struct takt_sched *sched, const struct takt_sched_event *event,
			  struct takt_err *err)
{
	struct takt_sched_outlook *known = find(sched, event->outlook->id);
	int rc = check(event->outlook, err);

	if (rc < 0)
		return rc;
	if (!known)
		return add(sched, event->outlook, err);
	if (memcmp(&known->is, &event->outlook->is, sizeof(known->is)) == 0)
		return 0;
	known->is = event->outlook->is;
	if (sched->config.order->reads & TAKT_ORDER_OUTLOOK)
		sched->keys_stale = true;
	return 0;
}
