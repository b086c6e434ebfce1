/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of waiting jobs: who goes first, by the order policy. A key is worked out when a plan is
 * made, for jobs that have none yet, and for all when something that the policy reads has changed.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/sched_update.h"

/* Facts that may change for every waiting job from one plan to the next. */
static bool always_stale(const struct takt_sched *sched)
{
	return sched->config.order->reads & (TAKT_ORDER_TENANT_RANK | TAKT_ORDER_TENANT_AHEAD);
}

static void set_key(struct takt_sched *sched, struct takt_sched_entry *entry, uint32_t tenant_ahead,
		    uint64_t now_ns)
{
	const struct takt_order *order = sched->config.order;
	struct takt_order_job job;
	uint64_t until;

	takt_sched_order_job(sched, entry, &job);
	job.tenant_ahead = tenant_ahead;
	takt_order_key(order, &sched->order_config, &job, now_ns, &entry->key);
	until = takt_order_next_change_ns(order, &sched->order_config, &job, now_ns);
	entry->key_until_ns = until;
	takt_sched_queue_moved(sched, entry);
	if (until < sched->keys_until_ns)
		sched->keys_until_ns = until;
}

/* Jobs that are held, or come after others, are not looked at. */
static void set_ready(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	if (!(entry->job.flags & TAKT_JOB_HELD) && entry->job.after_count == 0)
		takt_sched_make_ready(sched, entry);
}

static void take_fresh(struct takt_sched *sched, uint64_t now_ns)
{
	while (sched->fresh.len > 0) {
		struct takt_sched_entry *entry = sched->fresh.at[--sched->fresh.len];

		entry->fresh_at = TAKT_SCHED_NOWHERE;
		set_key(sched, entry, 0, now_ns);
		set_ready(sched, entry);
	}
}

static int by_tenant(const void *a, const void *b, void *ctx)
{
	const struct takt_sched_job *x = &(*(struct takt_sched_entry *const *)a)->job;
	const struct takt_sched_job *y = &(*(struct takt_sched_entry *const *)b)->job;

	(void)ctx;
	if (x->tenant != y->tenant)
		return x->tenant < y->tenant ? -1 : 1;
	return (x->submit_seq > y->submit_seq) - (x->submit_seq < y->submit_seq);
}

/* Every waiting job gets its key anew, tenant by tenant. */
static int renew_keys(struct takt_sched *sched, uint64_t now_ns)
{
	TAKT_CLEANUP(freep)
	struct takt_sched_entry **all =
		takt_calloc(sched->jobs.len, sizeof(struct takt_sched_entry *));
	uint32_t ahead = 0;
	size_t n = 0;
	int rc;

	if (!all)
		return -ENOMEM;
	TAKT_VEC_EACH (entry, &sched->jobs)
		if ((*entry)->group || takt_sched_is_placed(*entry))
			all[n++] = *entry;
	rc = takt_sort(all, n, sizeof(*all), by_tenant, NULL);
	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (entry, &sched->jobs)
		if ((*entry)->group)
			takt_sched_unready(sched, *entry);
	sched->keys_until_ns = UINT64_MAX;
	for (size_t i = 0, first = 0; i < n; i++) {
		if (i == 0 || all[i]->job.tenant != all[first]->job.tenant) {
			ahead = 0;
			for (first = i; first < n && all[first]->job.tenant == all[i]->job.tenant;
			     first++)
				ahead += takt_sched_is_placed(all[first]);
			first = i;
		}
		if (!all[i]->group)
			continue;
		set_key(sched, all[i], ahead++, now_ns);
		set_ready(sched, all[i]);
	}
	TAKT_VEC_EACH (entry, &sched->fresh)
		(*entry)->fresh_at = TAKT_SCHED_NOWHERE;
	takt_vec_clear(&sched->fresh);
	return 0;
}

int takt_sched_refresh_keys(struct takt_sched *sched, uint64_t now_ns)
{
	uint64_t capacity = UINT64_C(1000) * takt_cluster_totals(sched->cluster)->usable;

	if (takt_tenants_count(sched->tenants) > 0) {
		int rc = takt_tenants_divide(sched->tenants, capacity, now_ns);

		if (rc < 0)
			return rc;
	}
	if (sched->keys_stale || always_stale(sched) || now_ns >= sched->keys_until_ns ||
	    now_ns < sched->keys_from_ns) {
		int rc = renew_keys(sched, now_ns);

		if (rc < 0)
			return rc;
		sched->keys_stale = false;
	} else {
		take_fresh(sched, now_ns);
	}
	sched->keys_from_ns = now_ns;
	return 0;
}
