/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health of one GPU: samples and events in, a verdict with its evidence out.
 *
 * Pure: time is an argument, nothing is allocated, and the same calls give the same verdict, so
 * that a recording can be judged again. One struct a GPU, owned by the caller, plain data. Calls
 * are made in the order of time; what comes late is taken as of the newest time seen.
 *
 * Absence is data: what a sample does not have neither raises a finding nor ends one.
 */
#ifndef TAKT_RULES_RULES_H
#define TAKT_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timetypes.h"
#include "rules/finding.h"
#include "rules/incident.h"
#include "rules/kernel_log.h"
#include "rules/window.h"

/* What a board is made for; each absent where it is not known. */
enum takt_rules_board_has {
	TAKT_BOARD_TEMP_MAX = 1u << 0,
	TAKT_BOARD_TEMP_TARGET = 1u << 1,
	TAKT_BOARD_MEMORY_TEMP_MAX = 1u << 2,
	TAKT_BOARD_SM_MAX = 1u << 3,
	TAKT_BOARD_PCIE = 1u << 4,
	TAKT_BOARD_POWER_DEFAULT = 1u << 5,
	TAKT_BOARD_NVLINKS = 1u << 6,
};

struct takt_rules_board {
	uint32_t has;
	int32_t temp_max_c; /* highest it is to work at; not needed where samples have a margin */
	int32_t temp_target_c; /* it holds itself there: to be at it is no sign of heat */
	int32_t memory_temp_max_c;
	uint32_t sm_max_mhz;
	uint32_t pcie_gen_max, pcie_width_max; /* of board and slot together, as the driver says */
	uint32_t power_default_mw;
	uint32_t nvlinks; /* that must be up, as somebody declared or the kind of machine says */
};

/* Why a GPU is slower than it could be, as time that a driver counts. */
enum takt_rules_slow {
	TAKT_SLOW_POWER_CAP,
	TAKT_SLOW_SYNC_BOOST,
	TAKT_SLOW_SW_THERMAL,
	TAKT_SLOW_HW_THERMAL,
	TAKT_SLOW_POWER_BRAKE,
	TAKT_SLOW_COUNT,
};

enum takt_rules_has {
	TAKT_SEEN_TEMP = 1u << 0,
	TAKT_SEEN_MARGIN = 1u << 1,
	TAKT_SEEN_MEMORY_TEMP = 1u << 2,
	TAKT_SEEN_UTIL = 1u << 3,
	TAKT_SEEN_PSTATE = 1u << 4,
	TAKT_SEEN_SM_CLOCK = 1u << 5,
	TAKT_SEEN_CEILING = 1u << 6,
	TAKT_SEEN_POWER_LIMIT = 1u << 7,
	TAKT_SEEN_REASONS = 1u << 8,
	TAKT_SEEN_PCIE = 1u << 9,
	TAKT_SEEN_PCIE_REPLAYS = 1u << 10,
	TAKT_SEEN_NVLINKS = 1u << 11,
	TAKT_SEEN_NVLINK_ERRORS = 1u << 12,
	TAKT_SEEN_NVLINK_CRC = 1u << 13,
	TAKT_SEEN_ECC = 1u << 14,
	TAKT_SEEN_ROWS = 1u << 15,
	TAKT_SEEN_PAGES = 1u << 16,
	TAKT_SEEN_SRAM = 1u << 17,
	TAKT_SEEN_RECOVERY = 1u << 18,
	TAKT_SEEN_SLOW = 1u << 19, /* shifted by enum takt_rules_slow: each counter alone */
};

struct takt_rules_sample {
	struct takt_mono at;
	uint32_t has; /* enum takt_rules_has */
	bool lost;    /* the driver says that the GPU is gone; nothing else counts then */
	int32_t temp_c;
	int32_t margin_c; /* to the highest temperature that it is to work at */
	int32_t memory_temp_c;
	uint32_t util_pct, pstate, sm_mhz;
	uint32_t ceiling_mhz; /* what takt itself has set; absent where it has set nothing */
	uint32_t power_limit_mw;
	uint64_t reasons; /* as NVML numbers them */
	uint64_t slow_ns[TAKT_SLOW_COUNT];
	uint32_t pcie_gen, pcie_width;
	uint64_t pcie_replays;
	uint32_t nvlinks_up;
	uint64_t nvlink_errors; /* replays and recoveries, all links */
	uint64_t nvlink_crc;
	uint64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
	bool row_pending, row_failed;
	uint32_t pages_retired;
	bool page_pending, sram_threshold;
	uint32_t recovery; /* the driver's own recommendation, as NVML numbers it; 0 = none */
};

enum takt_rules_event_kind {
	TAKT_RULES_XID,
	TAKT_RULES_RESET, /* the GPU was reset, or the driver loaded anew: what was is over */
};

struct takt_rules_event {
	struct takt_mono at;
	enum takt_rules_event_kind kind;
	enum takt_incident_source source;
	struct takt_log_event log; /* of an NVML event the code alone */
};

enum takt_health {
	TAKT_HEALTH_HEALTHY,
	TAKT_HEALTH_SUSPECT,	 /* works; give it jobs last */
	TAKT_HEALTH_QUARANTINED, /* give it none */
	TAKT_HEALTH_LOST,	 /* there is nothing to give */
};
const char *takt_health_name(enum takt_health health);

/* What was measured, against what; the unit is that of the finding (takt_rules_text). */
struct takt_evidence {
	struct takt_mono at;
	int64_t value, limit;
};

enum {
	TAKT_RULES_HISTORY = 16,
	TAKT_RULES_APPS = 4,
	TAKT_RULES_FINDINGS = TAKT_FINDING_KINDS + TAKT_INCIDENTS,
};

struct takt_rules_change {
	struct takt_mono at;
	enum takt_health from, to;
	enum takt_finding_kind why; /* the first finding then; meaningless for HEALTHY */
};

/* One kind's state: since when it looks bad or good, and whether it is found. */
struct takt_rules_standing {
	bool found, is_bad, is_good;
	struct takt_mono bad_since, good_since; /* on the clock of takt_rules_awake */
	struct takt_mono found_at;
	struct takt_evidence evidence;
};

/* All is private but for `health`, `health_since` and the history. */
struct takt_rules_gpu {
	struct takt_rules_board board;
	enum takt_health health;
	struct takt_mono health_since;
	uint64_t changes; /* the newest is history[(changes - 1) % TAKT_RULES_HISTORY] */
	struct takt_rules_change history[TAKT_RULES_HISTORY];

	struct takt_mono now;
	bool sampled, unasked, was_lost, is_lost_by_event, has_recovery;
	struct takt_mono sampled_at, sampled_awake, asked_since, lost_at;
	bool was_gone; /* ever; since gone_at the last time, with gone_xid (0 = none was heard) */
	struct takt_mono gone_at;
	uint32_t gone_xid;
	bool came_back; /* readings said that it was gone, and at back_at the last time that it is
			   not */
	struct takt_mono back_at;
	uint64_t unasked_ns; /* altogether; see takt_rules_awake in rules_impl.h */
	struct takt_rules_standing standing[TAKT_FINDING_KINDS];
	struct takt_incidents incidents;
	struct takt_counter slow[TAKT_SLOW_COUNT], replays, link_errors, link_crc, corrected;
	struct takt_window slow_window[TAKT_SLOW_COUNT], replay_window, link_error_window,
		link_crc_window, corrected_window;
	uint32_t widest, most_nvlinks;
	uint32_t app_count;
	char apps[TAKT_RULES_APPS][32]; /* that had an XID 13 or 31 */
	struct takt_mono app_at;
};

void takt_rules_init(struct takt_rules_gpu *gpu, const struct takt_rules_board *board);

/* A reading. */
void takt_rules_sample(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample);
void takt_rules_event(struct takt_rules_gpu *gpu, const struct takt_rules_event *event);
/* Whether the driver is there at all. Without it nothing is known of any GPU. */
void takt_rules_driver(struct takt_rules_gpu *gpu, struct takt_mono now, bool gone);
/* Time goes on. asked: somebody asks the driver for readings, so that silence means something; not
 * so of a GPU that is left asleep. Findings neither ripen nor end by time in which nobody asks. */
void takt_rules_tick(struct takt_rules_gpu *gpu, struct takt_mono now, bool asked);

struct takt_rules_finding {
	enum takt_finding_kind kind;
	enum takt_level level;
	enum takt_remedy action;
	struct takt_mono since;
	struct takt_evidence evidence;
	const struct takt_incident
		*incident; /* of an XID; borrowed from the GPU until the next call */
	int32_t cause;	   /* index of the finding that it follows from; -1 = stands by itself */
};

struct takt_rules_verdict {
	enum takt_health health;
	enum takt_level severity; /* the gravest of all, the one word for it in every view */
	struct takt_mono since;
	uint32_t count;
	/* What stands by itself first, the gravest first; then what follows from it. */
	struct takt_rules_finding finding[TAKT_RULES_FINDINGS];
	uint32_t action_count; /* each once, in the order in which to do them */
	enum takt_remedy action[TAKT_REMEDY_COUNT];
};

void takt_rules_verdict(const struct takt_rules_gpu *gpu, struct takt_rules_verdict *ret);

/* The gravest of what befell a GPU. */
struct takt_rules_blow {
	bool lost;	     /* it was gone, or is */
	uint32_t xid;	     /* 0 = none was heard */
	bool fault;	     /* the GPU's or its board's; else programs bring the XID about */
	struct takt_mono at; /* first seen */
};
/* From that time on; false: nothing. What a reset has ended counts only if the GPU was lost. */
bool takt_rules_befell(const struct takt_rules_gpu *gpu, struct takt_mono since,
		       struct takt_rules_blow *ret);

/* Whether something critical stands of which no reading will ever say that it is over: only a reset
 * ends it, or somebody who has looked. */
bool takt_rules_waits_for_reset(const struct takt_rules_gpu *gpu);

/* "HW thermal slowdown for 34 s of the last 10 min (found at 6 s)"; names: with those of processes,
 * which not everybody may read. */
void takt_rules_text(const struct takt_rules_finding *finding, bool names, char *buf, size_t size);

#endif
