/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler's events and plans as JSON.
 *
 * Events are JSON lines: a first line {"format": "takt-events", "version": 1}, then one event a
 * line, so that a log can be appended to, read in bounded memory and compared by eye. A snapshot is
 * such a log; where a decision was made on it, its first line also has "now_ns", the time of the
 * decision on the scheduler's clock, and how the scheduler was set up. Fields are named as in
 *struct takt_sched_event, which fields an event has is in docs/sched.md; GPUs are lists of indices:
 *
 *	{"event":"node_add","node_id":0,"pair_score":[[0,150],[150,0]]}
 *	{"event":"gpu_health","node_id":0,"gpu":1,"state":"lost"}
 *	{"event":"job_add","job_id":7,"submit_seq":7,"priority":0,"gpus":1}
 *	{"event":"job_placed","job_id":7,"node_id":0,"gpu_mask":[0]}
 *
 * Reading is strict: an unknown, missing or surplus field, a wrong type or a value out of range is
 * -TAKT_E_CORRUPT and names line and field. Numbers are exact up to 2^53; one beyond cannot be
 * written (-ERANGE).
 */
#ifndef TAKT_CODEC_SNAPSHOT_H
#define TAKT_CODEC_SNAPSHOT_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "codec/sched_settings.h"
#include "sched/sched.h"

enum {
	TAKT_SNAPSHOT_MAX_LINE = 128 * 1024,
	TAKT_SNAPSHOT_MAX_BYTES = 1024 * 1024 * 1024, /* of a log */
	TAKT_PLAN_MAX_BYTES = 512 * 1024 * 1024,
	TAKT_PLAN_MAX_ENTRIES = 1000000, /* placements, and waits, of a plan that is read */
};

/* Appends the first line of a log, and one event as one line, each with its newline. */
int takt_events_begin(struct takt_str *out);
int takt_event_to_json(const struct takt_sched_event *event, struct takt_str *out,
		       struct takt_err *err);

/*
 * Hands each event of a log to `take`, borrowed for the call; stops at the first negative return
 * and returns it with err, which `take` may set, prefixed by the line.
 */
int takt_events_from_json(const char *text, size_t len,
			  int (*take)(void *ctx, const struct takt_sched_event *event,
				      struct takt_err *err),
			  void *ctx, struct takt_err *err);

/* The time of the decision that was made on a log; -ENOENT (without a message) when it says none.
 */
int takt_events_now_ns(const char *text, size_t len, uint64_t *ret_now_ns, struct takt_err *err);
/* How the scheduler was set up that made it; all 0, a daemon's defaults then, when it says nothing.
 */
int takt_events_settings(const char *text, size_t len, struct takt_sched_settings *ret,
			 struct takt_err *err);

/* The canonical log of the present state. *out keeps what it had before, also on failure (then it
 * may have grown). The first line of a decision's says when it was made, 0 = not known, and with
 * which settings, NULL = not known. */
int takt_snapshot_to_json(const struct takt_sched *sched, struct takt_str *out,
			  struct takt_err *err);
int takt_decision_to_json(const struct takt_sched *sched, uint64_t now_ns,
			  const struct takt_sched_settings *settings, struct takt_str *out,
			  struct takt_err *err);
/* A new scheduler that has taken all events of the log; nothing on failure. */
int takt_snapshot_load(const char *text, size_t len, const struct takt_sched_config *config,
		       struct takt_sched **ret, struct takt_err *err);

/* One object, one line a placement and a wait. */
int takt_plan_to_json(const struct takt_plan *plan, struct takt_str *out, struct takt_err *err);
/* *ret is overwritten, not released; the caller's to takt_plan_fini. Untouched on failure. */
int takt_plan_from_json(const char *text, size_t len, struct takt_plan *ret, struct takt_err *err);

#endif
