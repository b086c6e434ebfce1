/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine runs jobs: takt's own (local/), later Slurm and Kubernetes. For callers; implementers
 * read engine_impl.h.
 *
 * The caller applies actions, each with an id of its own (idempotency: the same id twice is one
 * action) and the scheduler version it was planned on. Nothing is answered at once: what became of
 * an action, and everything else that happens to jobs and GPUs, comes back as numbered events. A
 * gap in the numbers means: ask for a snapshot.
 */
#ifndef TAKT_ENGINE_ENGINE_H
#define TAKT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/refusal.h"
#include "base/timetypes.h"

enum takt_engine_cap {
	TAKT_ENGINE_EXACT_GPU = 1u << 0, /* honours gpu_mask; else it chooses the GPUs itself */
	TAKT_ENGINE_FRACTION = 1u << 1,
	TAKT_ENGINE_SUSPEND = 1u << 2,
	TAKT_ENGINE_RESERVE = 1u << 3,
	TAKT_ENGINE_EVICT = 1u << 4,
	TAKT_ENGINE_SIGNAL = 1u << 5,
	TAKT_ENGINE_STAGE = 1u << 6,
};

enum takt_action_kind {
	TAKT_ACTION_START,  /* job_id, attempt, node_id, gpu_mask */
	TAKT_ACTION_SIGNAL, /* job_id, attempt, signal */
	TAKT_ACTION_STOP,   /* job_id, attempt, grace_ms: SIGTERM, the job's grace, SIGKILL */
	/* job_id, attempt, node_id: make everything that the attempt needs but its GPUs. Nothing of
	 * the job runs before a START of the same attempt; STOP instead of that ends it as
	 * NEVER_RAN. */
	TAKT_ACTION_STAGE,
};

/* Attempts from this number on are not at the job but at a command that is run beside it, without
 * GPUs; one at a time, whatever the job's own attempt does. */
#define TAKT_ENGINE_ASIDE (UINT32_C(1) << 31)

struct takt_action {
	uint64_t id; /* unique for ever; chosen by the caller */
	uint64_t planned_on;
	enum takt_action_kind kind;
	uint64_t job_id;
	uint32_t attempt; /* 1, 2, ... */
	uint32_t node_id;
	uint64_t gpu_mask;
	int signal;
	uint32_t grace_ms; /* STOP: what is alive long after it is ended without its help */
	bool staged; /* START: of an attempt that was staged; CONFLICT when it is not there (any
			more), rather than beginning it now */
};

/*
 * What became of an action. ACCEPTED: START has a process that will run it, STAGE one that waits,
 * SIGNAL was passed on, STOP is under way (or the attempt was over already); what follows comes as
 * events of the attempt.
 * CONFLICT: contradicts what is (an attempt of that job is alive, or this one has ended; message
 * says which); nothing was changed. FAILED: START or STAGE ran nothing and never will under this
 * attempt number (no ENDED follows; the job may be tried again as the next attempt); SIGNAL was not
 * delivered. UNKNOWN: a SIGNAL that may or may not have been delivered.
 */
enum takt_outcome {
	TAKT_OUTCOME_ACCEPTED,
	TAKT_OUTCOME_CONFLICT,
	TAKT_OUTCOME_FAILED,
	TAKT_OUTCOME_UNKNOWN
};

/* How an attempt ended. */
enum takt_end {
	TAKT_END_EXITED,      /* code */
	TAKT_END_SIGNALED,    /* code = signal number */
	TAKT_END_NOT_STARTED, /* exec failed (code = errno): message says why; nothing of the job
				 ran, and the next attempt would fail likewise */
	TAKT_END_NEVER_RAN,   /* nothing ran and nothing will under this attempt number, through no
				 fault of the job (found at recovery, disk full, ...): message says
				 why; the job may simply wait again for its next attempt */
	TAKT_END_LOST, /* its shim vanished: how it ended is not known; no process of it is left */
	TAKT_END_INTERRUPTED, /* the machine restarted under it (boot id of its records is another)
			       */
};

enum takt_engine_event_kind {
	TAKT_ENGINE_OUTCOME,  /* action_id, outcome, message */
	TAKT_ENGINE_STARTED,  /* job_id, attempt, pid, at, at_boot */
	TAKT_ENGINE_ENDED,    /* job_id, attempt, end, code, at, run_ns, out_of_*; its GPUs are
				 draining */
	TAKT_ENGINE_ADOPTED,  /* after a restart of ours: job_id, attempt still runs (pid), or
				 still waits (staged) */
	TAKT_ENGINE_SNAPSHOT, /* `seq` starts anew; what follows up to SNAPSHOT_END is everything
				 alive */
	TAKT_ENGINE_SNAPSHOT_END,
};

struct takt_engine_event {
	uint64_t seq;
	enum takt_engine_event_kind kind;
	uint64_t action_id;
	enum takt_outcome outcome;
	/* OUTCOME of a START or STAGE that FAILED, ENDED as NEVER_RAN: what kept it, where that is
	 * known. */
	enum takt_refusal refusal;
	uint64_t job_id;
	uint32_t attempt;
	int32_t pid; /* of the job's first process; 0 = not known */
	bool staged; /* ADOPTED: nothing of it has run, it waits for a START */
	enum takt_end end;
	int code;
	struct takt_wall at;
	struct takt_boot at_boot; /* STARTED, ADOPTED: the same instant, 0 = not known */
	uint64_t run_ns;	  /* ENDED: how long it ran, boot clock; 0 = not known */
	/* ENDED badly: the kernel ended it for want of memory; its program said last that it could
	 * not have as much GPU memory as it asked for. */
	bool out_of_memory, out_of_gpu_memory;
	char message[200];
};

struct takt_engine;

uint32_t takt_engine_caps(const struct takt_engine *engine);

/* Events go to `sink` on the caller's thread, from within takt_engine_pump(). */
void takt_engine_watch(struct takt_engine *engine,
		       void (*sink)(void *ctx, const struct takt_engine_event *event), void *ctx);

/* Take actions; each one's outcome comes as an event. Negative only when nothing was taken at all
 * (-TAKT_E_LIMIT: too many are waiting). May be called from within the sink. */
int takt_engine_apply(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		      struct takt_err *err);

/* Have the next pump deliver SNAPSHOT, one ADOPTED for each attempt that is alive, SNAPSHOT_END. */
void takt_engine_snapshot(struct takt_engine *engine);

/* A descriptor that is readable when pump has work; borrowed until free. */
int takt_engine_fd(const struct takt_engine *engine);

/* Do what is due, deliver events. Never blocks. *ret_next_ns: CLOCK_BOOTTIME by which to call
 * again, 0 = only when the descriptor is readable. */
int takt_engine_pump(struct takt_engine *engine, struct takt_boot now, uint64_t *ret_next_ns,
		     struct takt_err *err);

void takt_engine_free(struct takt_engine *engine); /* jobs go on; takes NULL */

#endif
