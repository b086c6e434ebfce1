/* SPDX-License-Identifier: Apache-2.0 */
/* Groups XIDs, see the header. */
#include "rules/incident.h"
#include "base/str.h"
#include "rules/xid.h"

#define SAME_NS	   (2 * TAKT_NS_PER_S)
#define SILENCE_NS (180 * TAKT_NS_PER_S)
#define INFO_NS	   (600 * TAKT_NS_PER_S)
#define WARNING_NS (86400 * TAKT_NS_PER_S)

/* NVLink 5: what the line's registers say, or else its one word. */
static void judge_nvlink5(const struct takt_log_event *event, struct takt_incident_xid *ret)
{
	const struct takt_nvlink5 *row = NULL;

	if (event->has & TAKT_LOG_REGISTERS)
		row = takt_nvlink5_decode(event->code, event->unit, event->info, event->status);
	if (row) {
		ret->level = row->level;
		ret->action = row->action;
	} else if (event->has & TAKT_LOG_FATAL) {
		ret->level = event->fatal ? TAKT_LEVEL_CRITICAL : TAKT_LEVEL_INFO;
		ret->action = event->fatal ? TAKT_REMEDY_RESET_GPU : TAKT_REMEDY_NONE;
	}
}

static struct takt_incident_xid judge(const struct takt_log_event *event)
{
	const struct takt_xid *xid = takt_xid_find(event->code);
	struct takt_incident_xid ret = {
		.code = event->code,
		.level = xid ? xid->level : TAKT_LEVEL_WARNING,
		.action = xid ? xid->action : TAKT_REMEDY_CONTACT_SUPPORT,
		.order = xid ? xid->order : 5,
	};

	if (event->code >= 144 && event->code <= 150)
		judge_nvlink5(event, &ret);
	takt_strcpy(ret.name, sizeof(ret.name), event->name);
	return ret;
}

static bool is_before(const struct takt_incident_xid *a, const struct takt_incident_xid *b)
{
	if (a->level != b->level)
		return a->level > b->level;
	if (a->order != b->order)
		return a->order < b->order;
	return a->first.ns < b->first.ns;
}

const struct takt_incident_xid *takt_incident_cause(const struct takt_incident *incident)
{
	const struct takt_incident_xid *cause = &incident->xid[0];

	for (uint32_t i = 1; i < incident->xid_count; i++)
		if (is_before(&incident->xid[i], cause))
			cause = &incident->xid[i];
	return cause;
}

/* The incident that goes on at that time, or a place for a new one: the least one's if need be. */
static struct takt_incident *place_for(struct takt_incidents *incidents, struct takt_mono at)
{
	struct takt_incident *least = &incidents->incident[0];

	for (uint32_t i = 0; i < TAKT_INCIDENTS; i++) {
		struct takt_incident *one = &incidents->incident[i];

		if (one->xid_count && takt_mono_elapsed_ns(at, one->last) < SILENCE_NS)
			return one;
		if (least->xid_count && (!one->xid_count || is_before(takt_incident_cause(least),
								      takt_incident_cause(one))))
			least = one;
	}
	*least = (struct takt_incident){.first = at};
	return least;
}

/* The code's place in the incident, or that of the least one if that is less than it; NULL: all are
 * more. */
static struct takt_incident_xid *slot_for(struct takt_incident *incident,
					  const struct takt_incident_xid *xid)
{
	struct takt_incident_xid *least = &incident->xid[0];

	for (uint32_t i = 0; i < incident->xid_count; i++) {
		if (incident->xid[i].code == xid->code)
			return &incident->xid[i];
		if (is_before(least, &incident->xid[i]))
			least = &incident->xid[i];
	}
	if (incident->xid_count == TAKT_INCIDENT_XIDS && !is_before(xid, least))
		return NULL;
	if (incident->xid_count < TAKT_INCIDENT_XIDS)
		least = &incident->xid[incident->xid_count++];
	*least = (struct takt_incident_xid){.code = xid->code, .first = xid->first};
	return least;
}

/* A line that says more than the driver's bare number decides, as does the gravest of several. */
static void merge(struct takt_incident_xid *known, const struct takt_incident_xid *xid,
		  enum takt_incident_source source)
{
	bool same = known->count && takt_mono_elapsed_ns(xid->first, known->last) <= SAME_NS;
	bool says_more =
		source == TAKT_INCIDENT_KERNEL_LOG && !(known->sources & TAKT_INCIDENT_KERNEL_LOG);
	bool says_less =
		source == TAKT_INCIDENT_NVML && (known->sources & TAKT_INCIDENT_KERNEL_LOG) && same;

	known->order = xid->order;
	if (!known->count || (same && says_more) || (!says_less && xid->level > known->level)) {
		known->level = xid->level;
		known->action = xid->action;
	}
	if (xid->name[0])
		takt_strcpy(known->name, sizeof(known->name), xid->name);
	known->sources |= source;
	known->count += !same;
	known->last = xid->first;
}

void takt_incidents_add(struct takt_incidents *incidents, enum takt_incident_source source,
			struct takt_mono at, const struct takt_log_event *event)
{
	struct takt_incident *incident = place_for(incidents, at);
	struct takt_incident_xid xid = judge(event), *known;

	xid.first = at;
	incident->last = at;
	known = slot_for(incident, &xid);
	if (known)
		merge(known, &xid, source);
}

/* Whether a reset is what mends it. */
static bool is_mended_by_reset(const struct takt_incident_xid *cause)
{
	return cause->action == TAKT_REMEDY_RESET_GPU || cause->action == TAKT_REMEDY_REBOOT;
}

static bool is_over(const struct takt_incident *incident, struct takt_mono now, bool recovered)
{
	const struct takt_incident_xid *cause = takt_incident_cause(incident);
	uint64_t silent_ns = takt_mono_elapsed_ns(now, incident->last);

	if (cause->level == TAKT_LEVEL_CRITICAL)
		return recovered && is_mended_by_reset(cause) && silent_ns >= INFO_NS;
	return silent_ns >= (cause->level == TAKT_LEVEL_INFO ? INFO_NS : WARNING_NS);
}

void takt_incidents_expire(struct takt_incidents *incidents, struct takt_mono now, bool recovered)
{
	for (uint32_t i = 0; i < TAKT_INCIDENTS; i++)
		if (incidents->incident[i].xid_count &&
		    is_over(&incidents->incident[i], now, recovered))
			incidents->incident[i].xid_count = 0;
}

bool takt_incidents_stay(const struct takt_incidents *incidents, bool has_recovery)
{
	for (uint32_t i = 0; i < TAKT_INCIDENTS; i++) {
		const struct takt_incident *incident = &incidents->incident[i];
		const struct takt_incident_xid *cause = takt_incident_cause(incident);

		if (incident->xid_count && cause->level == TAKT_LEVEL_CRITICAL &&
		    !(has_recovery && is_mended_by_reset(cause)))
			return true;
	}
	return false;
}
