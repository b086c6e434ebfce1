/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `takt top` knows: the newest snapshot of a machine, and what came before it of each GPU as
 * far as a graph shows it. Knows nothing of terminals, and not where snapshots come from.
 */
#ifndef TAKT_TOP_MODEL_H
#define TAKT_TOP_MODEL_H

#include "base/str.h"
#include "base/sys.h"
#include "base/vec.h"
#include "codec/views.h"

enum {
	TAKT_TOP_HISTORY = 600, /* samples kept */
	TAKT_TOP_MAX_PROCS = TAKT_VIEW_MAX_GPUS * TAKT_VIEW_MAX_PROCS,
	TAKT_TOP_MAX_JOBS = 500, /* asked of the daemon; more are counted */
	TAKT_TOP_COMMAND = 256,
	TAKT_TOP_LOADS = 3, /* over 1, 5 and 15 minutes */
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
	/* Its own part of its GPUs' time, and of their memories'; of several GPUs the mean of those
	 * of which it is known. */
	uint32_t util_gpus; /* of which it is known; 0 = of none */
	uint32_t sm_pct_sum, mem_pct_sum;
	bool cpu_known;
	uint32_t cpu_permille; /* of one processor, since the last look: 2000 = two of them */
	uint64_t run_ms;       /* since its start; only with start_ticks */
	/* For the next look. */
	uint64_t cpu_ticks;
	struct takt_mono cpu_at; /* ns 0 = it was not read */
};

enum takt_top_host_has {
	TAKT_TOP_HOST_CPU = 1u << 0,
	TAKT_TOP_HOST_MEMORY = 1u << 1,
	TAKT_TOP_HOST_LOAD = 1u << 2,
};
/* What the machine itself does. */
struct takt_top_host {
	uint32_t has;
	uint32_t cpu_permille;			  /* of all its processors, since the last look */
	uint64_t mem_used_bytes, mem_total_bytes; /* used: what programs could not get */
	uint32_t load_centi[TAKT_TOP_LOADS];
};

/* The end of a job's log. */
struct takt_top_log {
	uint64_t job_id; /* 0 = none was asked for */
	uint32_t attempt;
	bool over;
	char why_not[160];	/* "" = it was read */
	uint64_t dropped_lines; /* before `text` */
	struct takt_str text;	/* owned; no NUL within */
};

struct takt_top_past;

/* One look at a machine. Owns its parts. */
struct takt_top_snapshot {
	struct takt_status_view status;
	struct takt_queue_view queue; /* only from a daemon */
	bool same_queue; /* it was not asked for again: the one before it still holds */
	TAKT_VEC(struct takt_top_proc) procs;
	struct takt_top_host host;
	struct takt_top_log log;
	struct takt_top_past *past; /* NULL = none was asked for */
	bool daemon;		    /* else the driver itself was read */
	char why_not[240];	    /* no news: why; the rest is what was known before */
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

/* Of a GPU before takt top was started: [0] = when it was asked for, [i] = i steps before. */
struct takt_top_past_gpu {
	char uuid[96];
	uint16_t permille[TAKT_TOP_SERIES][TAKT_TOP_HISTORY];
};
struct takt_top_past {
	uint32_t step_ms, gpu_count;
	struct takt_top_past_gpu *gpus; /* owned */
};
struct takt_top_past *takt_top_past_new(uint32_t gpu_count, uint32_t step_ms);
void takt_top_past_free(struct takt_top_past *past); /* NULL is fine */

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

/* The model that all GPUs are of; NULL where they differ. */
const char *takt_top_one_model(const struct takt_status_view *status);

/* What a GPU shows now, in thousandths of the full scale, or TAKT_NO_VALUE (graph.h). */
uint32_t takt_top_value(const struct takt_gpu_view *gpu, enum takt_top_series series);

/* For graph.h. */
struct takt_top_curve {
	const struct takt_top_history *history;
	enum takt_top_series series;
	uint32_t most; /* samples that are shown; 0 = all */
};
uint32_t takt_top_curve_at(const void *curve, uint32_t ago);

#endif
