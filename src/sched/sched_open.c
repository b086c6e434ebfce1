/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open plan. What a plan places is really taken from the cluster, and stays so until something
 * happens: if that is the caller's commit of the plan, nothing has to be placed a second time.
 */
#include <errno.h>

#include "sched/plan_state.h"

void takt_sched_close(struct takt_sched *sched)
{
	if (!sched->open.is)
		return;
	takt_cluster_rollback(sched->cluster, sched->open.mark);
	TAKT_VEC_EACH (it, &sched->open.placed) {
		struct takt_sched_entry *entry = *it;

		for (uint32_t i = 0; i < entry->slot_count; i++)
			sched->host_of.at[entry->slots[i].node]->taken = 0;
		if (entry->array)
			entry->array->running--;
		takt_sched_clear_slots(entry);
		takt_sched_make_ready(sched, entry);
	}
	takt_vec_clear(&sched->open.placed);
	takt_vec_clear(&sched->open.borrowed);
	sched->open.is = false;
}

int takt_sched_commit(struct takt_sched *sched, const struct takt_plan *plan, uint64_t at_ns,
		      struct takt_err *err)
{
	if (!sched->open.is || plan->version != sched->version || plan->serial != sched->serial)
		return takt_err_set(err, -TAKT_E_STALE, "the plan is not the newest one");
	TAKT_VEC_EACH (borrowed, &sched->open.borrowed)
		(void)takt_cluster_give(sched->cluster, borrowed->kind, &borrowed->slot);
	takt_vec_clear(&sched->open.borrowed);
	takt_cluster_commit(sched->cluster, sched->open.mark);
	sched->open.is = false;
	TAKT_VEC_EACH (it, &sched->open.placed) {
		struct takt_sched_entry *entry = *it;

		for (uint32_t i = 0; i < entry->slot_count; i++)
			sched->host_of.at[entry->slots[i].node]->taken = 0;
		if (entry->array)
			entry->array->running--;
		takt_sched_settle_in(sched, entry, at_ns);
		sched->version++;
	}
	takt_vec_clear(&sched->open.placed);
	return 0;
}
