/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a job on this machine, from "submit" to its last word: the place where the store
 * (what is promised), the scheduler (what should happen) and an engine (what does happen) meet. It
 * decides nothing about placement and starts nothing itself.
 *
 *   submit -> [insert on disk] -> accepted, waiting
 *   placed by the plan -> STARTING [on disk, and the caller's `prepare` done] -> engine START
 *   engine STARTED -> running        engine ENDED -> its GPUs drain, end [on disk] -> ended
 *
 * Nothing is handed to the engine before the store has the attempt, and nothing is called ended
 * before the store has the end: so after a crash at any point the store names every attempt that
 * may exist, and the engine's records say what became of it.
 *
 * Single-threaded and non-blocking. Time is an argument. Facts that other rooms know (a GPU is
 * clean again, a process from outside sits on it) are handed in.
 */
#ifndef TAKT_QUEUE_QUEUE_H
#define TAKT_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "codec/jobspec.h"
#include "codec/sched_settings.h"
#include "codec/share_rules.h"
#include "engine/engine.h"
#include "sched/sched.h"
#include "store/store.h"

enum {
	TAKT_QUEUE_NODE = 0
}; /* the one node of this machine */

/* Of jobs whose descriptions are longer nothing is learned at the start: it reads thousands. */
enum {
	TAKT_QUEUE_LEARN_SPEC = 16 * 1024 /* bytes */
};

enum takt_queue_phase {
	TAKT_PHASE_ACCEPTING, /* insert posted */
	TAKT_PHASE_WAITING,
	TAKT_PHASE_PREPARING, /* placed; waits for the store and for `prepare` */
	TAKT_PHASE_STARTING,  /* with the engine */
	TAKT_PHASE_RUNNING,
	TAKT_PHASE_ENDING, /* over; the end is posted */
};

/* Of a job that WAITS or is PREPARING: is its next attempt made already? See stage.c. */
enum takt_queue_stage {
	TAKT_STAGE_NONE,
	TAKT_STAGE_WRITING, /* on its way to disk; the engine has not heard of it */
	TAKT_STAGE_READY,   /* the engine has it, or makes it */
	TAKT_STAGE_OFF,	    /* the engine is to call it off */
};

/* Which jobs are staged. */
enum takt_queue_staging {
	TAKT_STAGING_OFF,
	TAKT_STAGING_ASKED, /* those that ask for it, or for a prefetch */
	TAKT_STAGING_ALL,
};

/* Where a run time is known from. */
enum takt_estimate_from {
	TAKT_ESTIMATE_NONE,
	TAKT_ESTIMATE_OWNER,
	TAKT_ESTIMATE_HISTORY,	/* earlier jobs */
	TAKT_ESTIMATE_LIMIT,	/* its time limit: no longer than that */
	TAKT_ESTIMATE_OUTLIVED, /* it has run longer than was expected */
};

struct takt_queue_estimate {
	uint64_t ns; /* of the whole run; 0 = not known */
	enum takt_estimate_from from;
	bool has_error;
	uint64_t error_ns; /* HISTORY: by how much such predictions were off on average */
	/* The room's own: see estimate.c. */
	uint32_t kind, step;
	uint64_t model_ns;
};

/* A start that is foretold. */
struct takt_queue_start {
	struct takt_wall at;
	bool has_range;			/* false: too few have come true to say how well */
	struct takt_wall low, high;	/* eight in ten start between these */
	struct takt_wall overdue_since; /* what was foretold first has gone by; 0 = it has not */
	uint64_t gpus;			/* on which the plan means it to start, as a mask */
};

enum {
	TAKT_QUEUE_MAX_TOLD = 16 /* words on the start of one job */
};

/* Starts that are refused, again and again, since the last one that was not. */
struct takt_queue_refusal {
	enum takt_refusal kind; /* of the newest; NONE = none is */
	uint32_t tries;		/* in a row */
	struct takt_wall since, next;
	char text[160]; /* in the words of who refused last */
};

const char *takt_estimate_from_name(enum takt_estimate_from from); /* "", "owner", ... */

/* A job that has to go for others: see preempt.c. */
enum takt_evict_step {
	TAKT_EVICT_NONE,
	TAKT_EVICT_SUSPECTED,
	TAKT_EVICT_DECIDED,
	TAKT_EVICT_NOTED,
	TAKT_EVICT_ASKED,
	TAKT_EVICT_TOLD,
	TAKT_EVICT_ENDING,
	TAKT_EVICT_STILLING, /* it is frozen instead: see stand_still.c */
	TAKT_EVICT_STILL,
};

/* takt_job.evict of one that goes because somebody asked for it. */
enum {
	TAKT_EVICT_ROW_ASKED = 6
};

struct takt_queue_evict {
	enum takt_evict_step step;
	enum takt_evict_why why;
	bool stop;		/* not run again */
	bool taken_over;	/* from an earlier takt */
	uint64_t serial;	/* of the newest plan that says so */
	uint64_t due_ns;	/* boot time of the next step; 0 = none is due */
	uint64_t give_up_ns;	/* STILLING: boot time to end it instead */
	uint32_t thaws_refused; /* STILL: by the scheduler, in a row */
	uint64_t clean_gpus;	/* STILL: of its own, those that the other has left */
	bool held;		/* STILL: with the scheduler */
	bool restless;		/* it could not be frozen */
};

/* What a job's owner can ask to hear of (spec.hook). */
enum takt_job_event {
	TAKT_EVENT_STARTED,
	TAKT_EVENT_REQUEUED,  /* its attempt failed, was lost or interrupted; it waits again */
	TAKT_EVENT_PREEMPTED, /* its attempt made room for others; it waits again */
	TAKT_EVENT_FROZEN,
	TAKT_EVENT_THAWED,
	TAKT_EVENT_ENDED,
	TAKT_EVENT_COUNT
};

const char *takt_job_event_name(enum takt_job_event event); /* "started", ... */

/* A job that has not ended durably. Owned by the queue, borrowed by callers until the next call. */
struct takt_queue_job {
	struct takt_job row;
	struct takt_jobspec spec;
	enum takt_queue_phase phase;
	int32_t pid;		       /* of its first process; 0 = none known */
	struct takt_boot started_boot; /* of its attempt; 0 = not known */
	bool row_durable;	       /* PREPARING: the store has the attempt */
	bool prepared;		       /* PREPARING: the caller is ready */
	bool stop_wanted;	       /* cancel while it starts or runs */
	bool stop_sent;
	uint32_t stops_refused; /* by the engine, in a row */
	enum takt_queue_stage stage;
	uint32_t start_writes;	 /* of its row with an attempt to start, that the store has not
				    answered */
	uint32_t stage_writes;	 /* of its row as staged, that the store has not answered */
	uint64_t stage_after_ns; /* boot time before which it is not staged again */
	uint32_t stages_failed;	 /* attempts that could not be staged, in a row */
	bool ends;		 /* stage OFF: it ends as end_as when that is done */
	enum takt_job_state end_as;
	/* RUNNING: its attempt is over, and why is looked for since then (cause.c). Owned. */
	struct takt_engine_event *end;
	struct takt_boot end_since;
	size_t bytes;	       /* of its description, as counted against the limit */
	size_t env_away_bytes; /* of its environment, which is not in spec: kept_env.c */
	uint32_t never_ran;    /* attempts in a row that came to nothing */
	struct takt_queue_refusal *refusal; /* owned; NULL = its last start was not refused */
	uint64_t limit_ns;	      /* RUNNING: boot time of its time limit; 0 = not looked at */
	uint64_t rested_ns;	      /* of this attempt, frozen by its owner and thawed again */
	struct takt_boot rests_since; /* row.frozen; 0 = since before this takt */
	bool rest_unknown;	      /* it was frozen for nobody knows how long */
	bool changing;		      /* a change of its row is posted */
	uint32_t writes;	      /* of its row, that the store has not answered */
	uint32_t events;	      /* bits of those to be told of when it has */
	bool end_refused;     /* ENDING: the store could not take the end; posted again later */
	bool end_missing;     /* ENDING: the same, once at least */
	bool placeless;	      /* may be alive, and has no place with the scheduler, see load.c */
	char clock_note[200]; /* said by `prepare` */
	struct takt_queue_estimate estimate;
	struct takt_queue_evict evict;
	/* What the takt before this one noted of it, it may have told it without getting that to
	 * disk: until then (boot time; 0 = not looked at) it may end of that. */
	bool in_doubt;
	uint64_t doubt_until_ns;
	uint32_t tenant_id; /* of the scheduler's; 0 = none: see tenants.c */
	bool gives_way;	    /* WAITING: to the job that it made room for, row.evict_for */
	/* What was said of its start while it waits: see foretold.c. */
	struct takt_queue_told {
		struct takt_wall at, start;
	} told[TAKT_QUEUE_MAX_TOLD];
	uint32_t told_count;
	void *token;			/* ACCEPTING: the submitter's */
	struct takt_queue_batch *batch; /* ACCEPTING: shared with the jobs accepted together */
	struct takt_queue_env *env;	/* that spec.env is borrowed from; NULL = its own */
};

struct takt_queue_hooks {
	/* The outcome of a submit: job (now waiting) or an error; `token` as given to submit. */
	void (*accepted)(void *ctx, void *token, const struct takt_queue_job *job,
			 const struct takt_err *error);
	/* The outcome of takt_queue_change: on disk, or an error and nothing has changed. */
	void (*noted)(void *ctx, void *token, const struct takt_queue_job *job,
		      const struct takt_err *error);
	/* GPUs are promised to the job: apply its clocks, open its account, then
	 * takt_queue_prepared(), at once or later. */
	void (*prepare)(void *ctx, const struct takt_queue_job *job);
	/* The attempt is over or was called off: end its lease and account. *ret_report is zeroed
	 * before. */
	void (*release)(void *ctx, const struct takt_queue_job *job,
			struct takt_job_report *ret_report);
	/* It moved on; an ended one is durable and forgotten by the queue right after this call. */
	void (*changed)(void *ctx, const struct takt_queue_job *job);
	/* Something that its owner wants to hear of has happened and is on disk; after a crash it
	 * is not said again. Only of jobs with spec.hook; an ended one is forgotten soon after. */
	void (*event)(void *ctx, const struct takt_queue_job *job, enum takt_job_event event);
	/* Whether no process of a running job that was told to stand still runs any more; then
	 * *ret_mem_mib is what is used of the memory of its fullest GPU, left alone where that is
	 * not known. NULL = it does. */
	bool (*stands_still)(void *ctx, const struct takt_queue_job *job, uint32_t *ret_mem_mib);
	/* The attempt has ended badly by itself, which the queue heard at `since`: what of its GPUs
	 * explains that, as far as is known; *ret is left alone where nothing does. False: more
	 * will be known soon, ask again. NULL = nothing ever explains it. */
	bool (*cause)(void *ctx, const struct takt_queue_job *job, struct takt_boot since,
		      struct takt_job_cause *ret);
	/* The engine's word on an attempt that is not the queue's (TAKT_ENGINE_ASIDE). */
	void (*aside)(void *ctx, const struct takt_engine_event *event);
	/* A ticket of the store with tag 0, which is not the queue's, was answered. May be NULL. */
	void (*stored)(void *ctx, const struct takt_store_completion *done);
	/* The user's name, "" where it is not known; for rules that name users. NULL = none is. */
	void (*user_name)(void *ctx, uid_t uid, char ret[64]);
};

/* A MIG instance: a device of its own, on a GPU that is cut. */
struct takt_queue_instance {
	char uuid[96];
	char profile[32]; /* "1g.10gb" */
	uint32_t gpu;
	uint32_t slices; /* of computing, 1..7 */
	uint32_t mem_mib;
	uint32_t place; /* this and the next are the queue's own */
	bool gone;	/* held by a job, and no more */
};

struct takt_queue_config {
	struct takt_store *store;   /* borrowed until free */
	struct takt_engine *engine; /* borrowed; its watcher is taken over */
	const int32_t *pair_score;  /* gpu_count x gpu_count, borrowed for new and load */
	uint32_t gpu_count;
	const char *const *gpu_uuid; /* gpu_count, borrowed until free; NULL: not known */
	const char *why_no_gpus;     /* borrowed until free; NULL: gpu_count is all there are */
	/* With why_no_gpus: there are GPUs, and a later start will see them. Jobs for them wait,
	 * and what is possible is not judged before. */
	bool gpus_will_come;
	int32_t cpu_milli;    /* that jobs may have together; 0 = none to count */
	int64_t mem_mib;      /* the same */
	uint32_t gpu_mem_mib; /* of the smallest GPU; 0 = not known */
	const uint32_t
		*each_mem_mib; /* gpu_count, borrowed until free; NULL: all as the smallest */
	uint64_t mig_gpus;     /* that are cut into MIG instances; nobody gets them otherwise */
	const struct takt_queue_instance *instances; /* borrowed for new */
	uint32_t instance_count;
	/* What the GPUs of mig_gpus may be cut into later: profile, slices, mem_mib. Borrowed for
	 * new. */
	const struct takt_queue_instance *kinds;
	uint32_t kind_count;
	uint32_t max_jobs; /* live at a time; 0 = 200,000, which is also the limit */
	size_t max_bytes;  /* of their descriptions together; 0 = 512 MiB */
	/* Several users: each has his share of both (0 = a quarter), a part is kept for root. */
	bool shared;
	uint32_t user_max_jobs;
	size_t user_max_bytes;
	enum takt_queue_staging staging;
	bool observes; /* nothing is placed; what still runs is seen to its end */
	/* What becomes of a running job whose GPU has failed. Jobs that may be run again are,
	 * unless it is KEEP. */
	enum takt_failure_policy on_gpu_failure;
	struct takt_sched_settings
		settings; /* all 0: by priority, nothing overtakes, no preemption */
	const struct takt_queue_hooks *hooks; /* borrowed */
	void *hooks_ctx;
	/* Ids start above this one too: attempts of it are on disk, even where the store does not
	 * know it (a damaged database was moved aside). Whose records are found must be whose job
	 * it is. */
	uint64_t highest_known_id;
	/* Zero of the scheduler's clock, which is the wall's; what lies before counts as it. Any
	 * instant not long ago, so that the numbers stay small. */
	struct takt_wall epoch;
	/* By which the wall clock is ahead of the boot clock, so that a jump while takt was away is
	 * noticed; 0 = not to be looked at. */
	int64_t wall_ahead_ns;
	uint64_t signal_id_base; /* first id of signal actions; unique over restarts (wall clock ns
				    will do) */
};

struct takt_queue;
int takt_queue_new(const struct takt_queue_config *config, struct takt_queue **ret,
		   struct takt_err *err);
void takt_queue_free(struct takt_queue *queue);

/* Load what the store holds. Every attempt that may be alive is listed through `attempt`, for the
 * engine to adopt or bury; its word comes back as events. Call once, before anything else. */
int takt_queue_load(struct takt_queue *queue,
		    int (*attempt)(void *ctx, const struct takt_queue_job *job,
				   struct takt_err *err),
		    void *ctx, struct takt_err *err);

/* Takes the spec's contents over on success. `accepted` is called later with `token`. An impossible
 * request is refused here. An array is accepted as a whole, with its first job, when all its jobs
 * are on disk; refused by the disk, those that are there end as cancelled without having started.
 */
int takt_queue_submit(struct takt_queue *queue, uid_t uid, gid_t gid, struct takt_jobspec *spec,
		      struct takt_wall now, void *token, struct takt_err *err);
/* Several at once, arrays too, in this order and with numbers in a row; otherwise as an array. They
 * may name those before them in what they come after. The message of a refusal names the job,
 * "jobs[2]: ...". */
int takt_queue_submit_many(struct takt_queue *queue, uid_t uid, gid_t gid,
			   struct takt_jobspecs *specs, struct takt_wall now, void *token,
			   struct takt_err *err);
enum {
	/* Bytes of descriptions that may be handed in at once; an array's environment counts once.
	 */
	TAKT_QUEUE_MAX_HAND_IN = 32 * 1024 * 1024,
};

enum {
	TAKT_TRIAL_RUNS = 8,
};
/* Jobs of an array, by their indices, of which the same is to be expected. */
struct takt_queue_trial_run {
	uint32_t first, last;
	bool starts; /* at once, on these together */
	uint64_t gpu_mask;
	enum takt_why why; /* else, as below */
	char text[320];
	struct takt_queue_start start;
};
/* What would become of a job if it were handed in now; of an array of its first, and of its jobs in
 * runs. */
struct takt_queue_trial {
	bool starts; /* at once, on these */
	uint64_t gpu_mask;
	enum takt_why why; /* else: why it waits */
	char text[320];
	uint32_t ahead;		       /* jobs that wait and go first */
	struct takt_queue_start start; /* its `at` 0 = not known */
	struct takt_queue_estimate estimate;
	uint32_t run_count; /* 0 = no array */
	struct takt_queue_trial_run runs[TAKT_TRIAL_RUNS];
	uint32_t more; /* of its jobs, in no run: they come after those */
};
/* What would become of these if they were handed in together. *ret has room for all. Nothing is
 * kept of them. Refuses what submit refuses. */
int takt_queue_try(struct takt_queue *queue, uid_t uid, struct takt_jobspecs *specs,
		   struct takt_wall now, struct takt_queue_trial *ret, struct takt_err *err);
/* Wanted from now on, over restarts too. `changed` follows when it ends; `why` is what is told of
 * it. -TAKT_E_CONFLICT when it has ended. */
int takt_queue_cancel(struct takt_queue *queue, uint64_t job_id, enum takt_cause why,
		      struct takt_wall now, struct takt_err *err);
enum {
	TAKT_CAUSE_TEXT = 96
};
/* "GPU 3 was lost, XID 79"; "" = there is no cause. Returns buf. */
const char *takt_job_cause_text(const struct takt_job *row, char *buf, size_t size);

/* What an owner or an administrator may change about a job that waits. */
struct takt_queue_change {
	bool set_held, set_priority, set_promise, set_time_limit;
	bool begin_anew; /* RUNNING, and nothing else set: it is ended and waits again */
	enum takt_job_hold held;
	int32_t priority; /* -1000..1000 */
	/* Checked by the caller; both count of one that runs, too. */
	struct takt_job_promise promise;
	uint64_t time_limit_ms; /* 0 = none; of one that runs, longer than it has run */
};
/* Puts what was changed since into the description that a job came with. */
void takt_queue_keep_changes(const struct takt_job *row, struct takt_jobspec *spec);
/*
 * Counts at once for what is planned; `noted` is called with `token` when it is on disk. Refused by
 * the disk it is undone. -TAKT_E_CONFLICT when the job does not wait (any more) or, to begin anew,
 * does not run; -TAKT_E_BUSY while another change of it is being written.
 */
int takt_queue_change(struct takt_queue *queue, uint64_t job_id,
		      const struct takt_queue_change *change, void *token, struct takt_err *err);
/* A running job's work so far is safe: it loses less when it has to go for others. */
int takt_queue_checkpointed(struct takt_queue *queue, uint64_t job_id, struct takt_wall now,
			    struct takt_err *err);
/* All its processes stand still, or go on; it keeps its GPUs and their memory. */
int takt_queue_freeze(struct takt_queue *queue, uint64_t job_id, bool frozen, struct takt_err *err);
int takt_queue_signal(struct takt_queue *queue, uint64_t job_id, int signal, struct takt_err *err);
/* Who gave the token hung up: `accepted` or `noted` is not to be called. */
void takt_queue_forget_token(struct takt_queue *queue, void *token);

/* A word about the job for its owner, kept with its end unless the end says something itself. For
 * `release`. */
void takt_queue_remark(struct takt_queue *queue, uint64_t job_id, const char *text);

/* Something else than good manners holds the job's latest attempt to its GPU memory. */
void takt_queue_memory_limited(struct takt_queue *queue, uint64_t job_id);

void takt_queue_prepared(struct takt_queue *queue, uint64_t job_id, const char *clock_note);

/* What one job has of one GPU. */
struct takt_queue_holding {
	uint64_t job_id;
	uint32_t attempt;
	uint32_t gpu;
	uint32_t milli;	   /* of it; 1000 = whole, 0 = a MIG instance */
	int32_t instance;  /* which, by the config's list; -1 = none */
	uint32_t mem_mib;  /* reserved on it, of a share; 0 = not counted */
	bool left;	   /* the job is over; the GPU is not known to be clean of it */
	uint64_t stand_in; /* of a share that was left: who keeps it with the scheduler */
};
/* A GPU of mig_gpus has these instances now (of that GPU all). Those that are no more and that a
 * job holds stay its own until it has left; *ret_held: such there are, call again when it has.
 * Kinds that were not told to new, and more than there is room for, are left out: -TAKT_E_LIMIT,
 * with the rest done. After any other failure call again. */
int takt_queue_mig_change(struct takt_queue *queue, uint32_t gpu,
			  const struct takt_queue_instance *instances, uint32_t count,
			  bool *ret_held, struct takt_err *err);
/* On these GPUs no job gets an instance that has none yet: they are being cut. */
void takt_queue_mig_close(struct takt_queue *queue, uint64_t gpus);
/* UUID of a MIG instance, by its number. */
const char *takt_queue_instance_uuid(const struct takt_queue *queue, int32_t instance);
/* All of them, in no order. Borrowed until the next call that is not const. */
const struct takt_queue_holding *takt_queue_holdings(const struct takt_queue *queue,
						     size_t *ret_count);

/* Facts about GPUs. */
/* Nothing is left on it of any job that has gone. */
int takt_queue_gpu_clean(struct takt_queue *queue, uint32_t gpu, struct takt_err *err);
/* The same of one that has been left, where others hold the GPU too. */
int takt_queue_holding_gone(struct takt_queue *queue, const struct takt_queue_holding *holding,
			    struct takt_err *err);
/* Known from before this queue was loaded: that attempt has left a GPU, which nobody holds, and it
 * may not be clean of it. As of any job that has left a GPU, the ledger has it from here on. */
int takt_queue_gpu_left(struct takt_queue *queue, uint32_t gpu, uint64_t job_id, uint32_t attempt,
			struct takt_err *err);
int takt_queue_gpu_outside(struct takt_queue *queue, uint32_t gpu, bool outside,
			   struct takt_err *err);
int takt_queue_gpu_health(struct takt_queue *queue, uint32_t gpu, enum takt_gpu_state state,
			  struct takt_err *err);
/*
 * GPUs that are kept from `from` to `until` for the jobs of one user or tenant: what else is not
 * over by then is not placed there. Whatever runs there already goes on; with maintenance its own
 * policy for failing GPUs decides.
 */
#define TAKT_QUEUE_MAINTENANCE UINT64_MAX /* nobody's, see above */
#define TAKT_QUEUE_NOBODY      (UINT64_C(1) << 40)
struct takt_queue_window {
	uint64_t id; /* the caller's, > 0 */
	uint64_t gpu_mask;
	struct takt_wall from, until; /* INT64_MAX = for ever */
	uint64_t owner;		      /* a uid, or one of the above */
	const char *tenant;	      /* for all its users instead; NULL = for the owner */
};
/* -TAKT_E_NOT_FOUND: no rule knows the tenant. */
int takt_queue_keep_gpus(struct takt_queue *queue, const struct takt_queue_window *window,
			 struct takt_err *err);
void takt_queue_release_gpus(struct takt_queue *queue, uint64_t window_id);
/* How often the wall clock was set so far. Windows are instants of that clock: before the next pump
 * they are to be named again. */
uint64_t takt_queue_wall_jumps(const struct takt_queue *queue);

/* FREE, ASSIGNED, ... and the job on it (0 = none); of several one that has not left. */
enum takt_gpu_state takt_queue_gpu(const struct takt_queue *queue, uint32_t gpu,
				   uint64_t *ret_job_id);
/* More jobs are known to have been given it than it has room for: whose it is, the engine has yet
 * to say, and takt_queue_gpu only guesses. */
bool takt_queue_gpu_contested(const struct takt_queue *queue, uint32_t gpu);
/* The first job that runs, or may, where the scheduler cannot count it: on a contested GPU, or on a
 * MIG instance that is gone. Until it ends nobody else gets *ret_gpus. 0 = there is none. */
uint64_t takt_queue_placeless(const struct takt_queue *queue, uint64_t *ret_gpus);

/* Do what is due: store completions, a new plan where something changed. *ret_next_ns: boot time to
 * call again, 0 = on events only. */
int takt_queue_pump(struct takt_queue *queue, struct takt_boot now, struct takt_wall wall,
		    uint64_t *ret_next_ns, struct takt_err *err);

/* What such a job asks to have reserved on each of its GPUs, in MiB; 0 = nothing is said. */
uint32_t takt_queue_asked_gpu_mem(const struct takt_queue *queue, const struct takt_jobspec *spec);

/* Live job, or NULL. */
const struct takt_queue_job *takt_queue_find(const struct takt_queue *queue, uint64_t job_id);
/* Running ones first by id, then waiting in queue order, the first `most` of them at least. Stops
 * at a negative return. */
int takt_queue_each(struct takt_queue *queue, uint32_t most,
		    int (*each)(void *ctx, const struct takt_queue_job *job), void *ctx);
/* From now on until the next plan it says why of so many waiting jobs, in queue order. It says so
 * of the first 256 anyway. */
void takt_queue_explain(struct takt_queue *queue, uint32_t most);
/* The newest plan's word on a waiting job; NULL when it has none (yet): see takt_queue_explain.
 * *ret_ahead: waiting jobs of higher rank. */
const struct takt_plan_wait *takt_queue_why(const struct takt_queue *queue, uint64_t job_id,
					    uint32_t *ret_ahead);
/* Another one whenever something that a live job's view shows has changed. */
uint64_t takt_queue_version(const struct takt_queue *queue);
/* What may be set anew while jobs wait and run; as in the configuration. The half-life of usage is
 * the rules' affair. */
struct takt_queue_terms {
	struct takt_sched_settings settings;
	enum takt_queue_staging staging;
	enum takt_failure_policy on_gpu_failure; /* of jobs that are handed in from now on */
	uint32_t max_jobs, user_max_jobs;
	size_t user_max_bytes;
};
/* From the next plan on. -TAKT_E_USAGE: settings that do not go together. Nothing has changed on
 * failure. */
int takt_queue_set_terms(struct takt_queue *queue, const struct takt_queue_terms *terms,
			 struct takt_err *err);
/* Who may have how much, from now on; takes the contents of *rules over on success. */
int takt_queue_set_rules(struct takt_queue *queue, struct takt_share_rules *rules,
			 struct takt_err *err);

/* What the file of tenants says; borrowed until the rules change. */
const struct takt_share_rules *takt_queue_rules(const struct takt_queue *queue);
bool takt_queue_knows_tenant(const struct takt_queue *queue, const char *name);
/* The rule of the tenant that such a job counts for; NULL = none. Borrowed until the rules change.
 */
const struct takt_share_rule *takt_queue_tenant_rule(const struct takt_queue *queue, uid_t uid,
						     const char *asked);
/* That of the next tenant above it that has one ("lab" of "lab/vision"); NULL = none. */
const struct takt_share_rule *takt_queue_tenant_above(const struct takt_queue *queue,
						      const struct takt_share_rule *rule);

/* Why its start is refused, or that of its user's jobs; NULL = as far as is known it is not.
 * Borrowed until the next call. */
const struct takt_queue_refusal *takt_queue_refused(const struct takt_queue *queue,
						    const struct takt_queue_job *job);
/* When no start at all succeeds: what is refused. NULL = some do, or too few were tried to say. */
const struct takt_queue_refusal *takt_queue_all_refused(const struct takt_queue *queue);

/* Where its user stands among those who share. */
struct takt_queue_share {
	uint32_t place, of;  /* 1 is served first; of all users who have handed in something */
	uint64_t used_gpu_s; /* decayed */
	uint64_t has_milli;  /* GPUs now */
};
/* False where nothing is shared. */
bool takt_queue_share(const struct takt_queue *queue, const struct takt_queue_job *job,
		      struct takt_queue_share *ret);

/* When and where it starts, if it waits and there is something to be said of that: never in the
 * past, and nothing where the range would be wider than the wait. */
bool takt_queue_foretold(const struct takt_queue *queue, const struct takt_queue_job *job,
			 struct takt_queue_start *ret);
/* The job that waits for which the newest plan keeps a GPU free; 0 = none. */
uint64_t takt_queue_gpu_kept_for(const struct takt_queue *queue, uint32_t gpu);
void takt_queue_counts(const struct takt_queue *queue, uint32_t *ret_waiting,
		       uint32_t *ret_running);

#endif
