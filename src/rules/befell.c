/* SPDX-License-Identifier: Apache-2.0 */
/* What befell a GPU since a job began on it: for the word on why the job ended. */
#include "rules/rules_impl.h"

void takt_rules_gone(struct takt_rules_gpu *gpu, uint32_t xid)
{
	if (!gpu->was_lost && !gpu->is_lost_by_event) {
		gpu->was_gone = true;
		gpu->gone_at = gpu->now;
		gpu->gone_xid = 0;
	}
	if (xid)
		gpu->gone_xid = xid;
}

/* Of several XIDs the gravest, of equals the one that is the others' cause. */
static bool is_before(const struct takt_incident_xid *a, const struct takt_incident_xid *b)
{
	return a->level != b->level ? a->level > b->level : a->order < b->order;
}

static const struct takt_incident_xid *gravest_since(const struct takt_incidents *incidents,
						     struct takt_mono since)
{
	const struct takt_incident_xid *found = NULL;

	for (uint32_t i = 0; i < TAKT_INCIDENTS; i++)
		for (uint32_t j = 0; j < incidents->incident[i].xid_count; j++) {
			const struct takt_incident_xid *xid = &incidents->incident[i].xid[j];

			if (xid->last.ns >= since.ns && (!found || is_before(xid, found)))
				found = xid;
		}
	return found;
}

bool takt_rules_befell(const struct takt_rules_gpu *gpu, struct takt_mono since,
		       struct takt_rules_blow *ret)
{
	const struct takt_incident_xid *xid = gravest_since(&gpu->incidents, since);
	bool lost = gpu->was_gone && gpu->gone_at.ns >= since.ns;

	if (!lost && !xid)
		return false;
	*ret = (struct takt_rules_blow){
		.lost = lost,
		.xid = lost && gpu->gone_xid ? gpu->gone_xid
		       : xid		     ? xid->code
					     : 0,
		.fault = lost || xid->level == TAKT_LEVEL_CRITICAL,
		.at = lost			  ? gpu->gone_at
		      : xid->first.ns >= since.ns ? xid->first
						  : xid->last,
	};
	return true;
}
