/* SPDX-License-Identifier: Apache-2.0 */
/* Events of tenants; their books are in tenant.c. */
#include <errno.h>
#include <inttypes.h>

#include "sched/sched_update.h"

/* The order of the queue may depend on any of this. */
static int order_changes(struct takt_sched *sched, int rc)
{
	if (rc >= 0)
		sched->keys_stale = true;
	return rc;
}

int takt_sched_on_tenant(struct takt_sched *sched, const struct takt_sched_event *event,
			 struct takt_err *err)
{
	return order_changes(sched, takt_tenants_set(sched->tenants, event->tenant, err));
}

int takt_sched_on_tenant_remove(struct takt_sched *sched, const struct takt_sched_event *event,
				struct takt_err *err)
{
	TAKT_VEC_EACH (entry, &sched->jobs)
		if ((*entry)->job.tenant == event->tenant_id)
			return takt_err_set(err, -EINVAL,
					    "tenant_id %" PRIu32 " still has job %" PRIu64,
					    event->tenant_id, (*entry)->job.id);
	if (takt_tenants_remove(sched->tenants, event->tenant_id, NULL) < 0)
		return takt_err_set(err, -EINVAL,
				    "tenant_id %" PRIu32 " is not there, or has tenants below it",
				    event->tenant_id);
	return order_changes(sched, 0);
}

int takt_sched_on_tenant_usage(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err)
{
	int rc = takt_tenants_restore(sched->tenants, event->tenant_id, event->usage, event->at_ns);

	if (rc < 0)
		return takt_err_set(err, -EINVAL, "tenant_id %" PRIu32 " is not there",
				    event->tenant_id);
	return order_changes(sched, rc);
}
