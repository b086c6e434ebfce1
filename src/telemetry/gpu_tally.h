/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takt itself counts of a GPU for the metrics page, since it started: how long each reason was
 * seen to hold the clock back, and XIDs. Plain data, zero to begin with. Internal to telemetry.
 */
#ifndef TAKT_TELEMETRY_GPU_TALLY_H
#define TAKT_TELEMETRY_GPU_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timetypes.h"
#include "device/device.h"

enum {
	TAKT_TALLY_REASONS = 9, /* enum takt_throttle */
	TAKT_TALLY_XIDS = 16,	/* different ones a GPU; further ones are counted as others */
	TAKT_TALLY_SLOT_S = 10,
	TAKT_TALLY_SLOTS = 30, /* the last five minutes, as dcgm-exporter counts XIDs */
};

struct takt_tally_xid {
	uint32_t xid;
	uint64_t times;
	struct takt_wall last;
	uint64_t slot; /* the newest of recent; slots are counted from boot */
	uint32_t recent[TAKT_TALLY_SLOTS];
};

struct takt_tally {
	bool throttle_seen;
	struct takt_mono at; /* of the sample before */
	uint64_t throttled_ns[TAKT_TALLY_REASONS];
	uint32_t xid_count;
	struct takt_tally_xid xids[TAKT_TALLY_XIDS];
	struct takt_tally_xid others;
	uint32_t last_xid; /* 0 = none yet */
	/* Of all NVLinks, between the last two times that they were read. */
	bool has_nvlink_rate;
	uint64_t nvlink_sent_bytes_per_s, nvlink_received_bytes_per_s;
	uint64_t nvlink_sent_bytes, nvlink_received_bytes; /* then */
	struct takt_mono nvlink_at;			   /* 0 = not read, or not told */
};

/* Time between two samples counts for the reasons of the later one; not time without samples. */
void takt_tally_feed(struct takt_tally *tally, const struct takt_gpu_reading *reading);
/* now: the same moment by the clock of samples. */
void takt_tally_xid(struct takt_tally *tally, uint32_t xid, struct takt_wall at,
		    struct takt_mono now);
/* How often it came in the last five minutes, to 10 s. */
uint64_t takt_tally_recent(const struct takt_tally_xid *xid, struct takt_mono now);

#endif
