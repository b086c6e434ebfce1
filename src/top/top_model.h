/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `takt top` knows: the newest snapshot of a machine, and what came before it of each GPU as
 * far as a graph shows it. Knows nothing of terminals, and not where snapshots come from.
 */
#ifndef TAKT_TOP_MODEL_H
#define TAKT_TOP_MODEL_H

#include "base/sys.h"
#include "base/vec.h"
#include "codec/views.h"

enum {
	TAKT_TOP_HISTORY = 600, /* samples kept */
	TAKT_TOP_MAX_PROCS = TAKT_VIEW_MAX_GPUS * TAKT_VIEW_MAX_PROCS,
	TAKT_TOP_MAX_JOBS = 500, /* asked of the daemon; more are counted */
	TAKT_TOP_COMMAND = 256,
};

/* A process, once, however many GPUs it is on. */
struct takt_top_proc {
	struct takt_proc_id id; /* start_ticks 0 = it could not be looked at: it gets no signals */
	uint32_t uid;		/* UINT32_MAX = not known */
	char user[33];
	char command[TAKT_TOP_COMMAND]; /* "" = not yours to see */
	uint64_t job_id;		/* 0 = not takt's */
	uint64_t gpu_mask;
	bool memory_known;
	uint64_t memory_bytes; /* on all of them */
};

/* One look at a machine. Owns its parts. */
struct takt_top_snapshot {
	struct takt_status_view status;
	struct takt_queue_view queue; /* only from a daemon */
	bool same_queue; /* it was not asked for again: the one before it still holds */
	TAKT_VEC(struct takt_top_proc) procs;
	bool daemon;	   /* else the driver itself was read */
	char why_not[240]; /* no news: why; the rest is what was known before */
	struct takt_wall at;
};
void takt_top_snapshot_init(struct takt_top_snapshot *snapshot);
void takt_top_snapshot_fini(struct takt_top_snapshot *snapshot);

/* Moves the queue over to a newer snapshot that did not ask for it. */
void takt_top_keep_queue(struct takt_top_snapshot *newer, struct takt_top_snapshot *older);

/* Fills `procs` from the GPUs' lists: ascending pid, each once. -ENOMEM. */
int takt_top_gather_procs(struct takt_top_snapshot *snapshot);
/* Processes that GPUs have beyond those that they list; one on two of them counts twice. */
uint64_t takt_top_unlisted(const struct takt_top_snapshot *snapshot);

enum takt_top_series {
	TAKT_TOP_UTIL,
	TAKT_TOP_MEMORY,
	TAKT_TOP_POWER, /* of its limit */
	TAKT_TOP_TEMP,	/* of 100 degrees */
	TAKT_TOP_CLOCK, /* of the highest */
	TAKT_TOP_SERIES,
};

/* Of a GPU, in thousandths; the newest at (next - 1). */
struct takt_top_history {
	char uuid[96];
	uint32_t next, count;
	uint16_t permille[TAKT_TOP_SERIES][TAKT_TOP_HISTORY];
};

struct takt_top_model {
	struct takt_top_snapshot now;
	uint32_t history_count;
	struct takt_top_history *history; /* owned; beside now.status.gpus */
	bool lost;			  /* whoever is asked does not answer: `now` is old */
	char lost_why[240];
};
void takt_top_model_fini(struct takt_top_model *model);

/* Takes the snapshot over: *snapshot is empty afterwards. One with why_not set only says that there
 * is no news. -ENOMEM: nothing is taken. */
int takt_top_model_take(struct takt_top_model *model, struct takt_top_snapshot *snapshot);

/* What a GPU shows now, in thousandths of the full scale, or TAKT_NO_VALUE (graph.h). */
uint32_t takt_top_value(const struct takt_gpu_view *gpu, enum takt_top_series series);

/* For graph.h. */
struct takt_top_curve {
	const struct takt_top_history *history;
	enum takt_top_series series;
};
uint32_t takt_top_curve_at(const void *curve, uint32_t ago);

#endif
