/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XIDs of one GPU, as they belong together.
 *
 * The same code within two seconds is the same event, whoever tells it: the driver's library and
 * the kernel's log, or several lines of the log. Events with less than three minutes of silence
 * between them are one incident. Its cause is the gravest code; of equals the one whose order in
 * data/health/xid_policy.tsv is lower, then the first.
 */
#ifndef TAKT_RULES_INCIDENT_H
#define TAKT_RULES_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timetypes.h"
#include "rules/finding.h"
#include "rules/kernel_log.h"

enum takt_incident_source {
	TAKT_INCIDENT_NVML = 1u << 0,
	TAKT_INCIDENT_KERNEL_LOG = 1u << 1,
};

enum {
	TAKT_INCIDENTS = 8,
	TAKT_INCIDENT_XIDS = 8, /* different codes kept of each; the least ones go first */
};

struct takt_incident_xid {
	uint32_t code;
	enum takt_level level;
	enum takt_remedy action;
	uint32_t order;
	uint32_t sources; /* enum takt_incident_source */
	uint32_t count;	  /* events, not lines */
	struct takt_mono first, last;
	char name[32]; /* of the process; "" = not known */
};

struct takt_incident {
	uint32_t xid_count; /* 0 = no incident */
	struct takt_incident_xid xid[TAKT_INCIDENT_XIDS];
	struct takt_mono first, last;
};

struct takt_incidents {
	struct takt_incident incident[TAKT_INCIDENTS];
};

/* Adds what one source says of one XID. */
void takt_incidents_add(struct takt_incidents *incidents, enum takt_incident_source source,
			struct takt_mono at, const struct takt_log_event *event);
/* Ends those that are long over: information after ten minutes, warnings after a day; with
 * `recovered`, too, what a reset mends, ten minutes after it was last seen: the driver itself asks
 * for nothing any more. */
void takt_incidents_expire(struct takt_incidents *incidents, struct takt_mono now, bool recovered);

/* Whether one of them is critical and never expires; has_recovery: the driver says what it asks
 * for.
 */
bool takt_incidents_stay(const struct takt_incidents *incidents, bool has_recovery);

const struct takt_incident_xid *takt_incident_cause(const struct takt_incident *incident);

#endif
