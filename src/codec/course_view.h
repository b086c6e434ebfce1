/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a job went: what it said of its steps, and what its governor decided, as the API shows it.
 * JSON as in views.h.
 */
#ifndef TAKT_CODEC_COURSE_VIEW_H
#define TAKT_CODEC_COURSE_VIEW_H

#include "codec/views.h"

enum {
	TAKT_COURSE_VIEW_MAX_SAID = 512,
	TAKT_COURSE_VIEW_MAX_DECISIONS = 256,
	TAKT_COURSE_VIEW_MAX_NCCL = 128,
};

/* What the job told at a moment: TAKT_PV_STEPS, _TOKENS, _QUERIES, _LATENCY. */
struct takt_course_said_view {
	uint32_t has;
	int64_t at_ms; /* wall clock */
	uint64_t steps, tokens, queries, latency_us;
};

enum takt_course_has {
	TAKT_COURSE_SM = 1u << 0,
	TAKT_COURSE_POWER = 1u << 1,
	TAKT_COURSE_WORK = 1u << 2,
};

/* One decision: a range of clocks or a power limit, and why, from when until when, and means of
 * what was seen of the job's GPUs while it was in force. */
struct takt_course_decision_view {
	uint32_t has;		   /* enum takt_course_has: was seen */
	int64_t at_ms, until_ms;   /* wall clock; until: the end of the last epoch that was seen */
	char reason[32], text[96]; /* enum takt_governor_reason: for machines, for people */
	uint32_t min_mhz, max_mhz; /* 0 = not set */
	uint32_t power_limit_mw;   /* the same */
	uint64_t epochs;
	uint32_t sm_mhz, power_mw; /* of one GPU */
	uint64_t work_milli_s;	   /* a second, in thousandths: by `signal` of the course */
};

/* What the job's NCCL said last of one kind of operation of one communicator on one GPU: of several
 * message sizes of the one that takes longest. */
struct takt_course_nccl_view {
	uint32_t gpu, ranks, nodes;
	char operation[64], comm[64]; /* "AllReduce"; the communicator's name or id */
	uint64_t bus_bytes_s;	      /* bus bandwidth */
	uint64_t operation_us, age_ms;
};

struct takt_course_view {
	uint64_t id;
	bool simulated;
	uint32_t attempt;
	char governor[32]; /* "" = nobody governs, or nothing is kept of it any more */
	char signal[16];   /* whose word `work_milli_s` is: "job", "counters", "utilisation"; "" =
			    * none
			    */
	uint32_t said_count, decision_count, nccl_count;
	struct takt_course_said_view said[TAKT_COURSE_VIEW_MAX_SAID]; /* oldest first */
	struct takt_course_decision_view decisions[TAKT_COURSE_VIEW_MAX_DECISIONS];
	bool has_nccl; /* it says something */
	struct takt_course_nccl_view nccl[TAKT_COURSE_VIEW_MAX_NCCL];
};
int takt_course_view_to_json(const struct takt_course_view *view, struct takt_str *out);
/* *ret is overwritten. */
int takt_course_view_from_json(const char *text, size_t len, struct takt_course_view *ret,
			       struct takt_err *err);

#endif
