/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef TAKT_QUEUE_QUEUE_IMPL_H
#define TAKT_QUEUE_QUEUE_IMPL_H

#include "base/map.h"
#include "base/pace.h"
#include "base/vec.h"
#include "model/runtime.h"
#include "model/start_range.h"
#include "queue/queue.h"

enum {
	TAKT_QUEUE_MAX_JOBS = 200000,
	TAKT_QUEUE_MAX_TENANTS = 10000,
	TAKT_QUEUE_MAX_BYTES = 512 * 1024 * 1024,
	TAKT_QUEUE_MAX_HELD = 64 * 1024, /* shares of GPUs, held or left: 64 GPUs in thousandths */
	TAKT_QUEUE_ONE_CPU_MILLI = 1000, /* what a job counts as that asks for nothing at all */
	TAKT_QUEUE_LONGEST_PAUSE_MS = 300000, /* before a job that failed is tried again */
	TAKT_QUEUE_MAX_STAGED = 16,
	TAKT_QUEUE_STARTS = 64, /* of a user's jobs at a time, where a plan places more */
	TAKT_QUEUE_USER_PART =
		4, /* of the queue a user may have a quarter, where nothing is said, */
	TAKT_QUEUE_ROOT_PART = 16,  /* and a sixteenth is root's alone */
	TAKT_QUEUE_EXPLAINED = 256, /* first waiting jobs, of which each plan says why they wait */
};

enum {
	TAKT_QUEUE_MAX_INSTANCES = 64 /* of a job */
};

/* What the store (a full disk), the engine or the scheduler has refused is asked for again. */
extern const struct takt_pace takt_queue_refusals;

/* Memory of a GPU in MiB; 0 = not known. */
static inline uint32_t takt_queue_gpu_mem(const struct takt_queue_config *config, uint32_t gpu)
{
	return config->each_mem_mib ? config->each_mem_mib[gpu] : config->gpu_mem_mib;
}

/* See mig.c. */
struct takt_queue_mig {
	/* Owned. One keeps its place in the list; one that is no more has no UUID. */
	struct takt_queue_instance *instances;
	uint32_t count;
	struct takt_sched_model model;
	uint8_t layout[TAKT_SCHED_MAX_NODE_GPUS * TAKT_SCHED_MIG_SLICES];
};

/* What a ticket of the store was for. */
enum ticket_kind {
	TICKET_INSERT,
	TICKET_START,
	TICKET_END,
	TICKET_NOTE,
	TICKET_CHANGE,
	TICKET_STAGE,
	TICKET_EVICT,
	TICKET_USAGE /* of no job */
};

enum {
	TICKET_BITS = 3 /* of a tag, below the job's id */
};

/* A change of a job's row on its way to disk. */
struct pending_change {
	uint64_t job_id;
	void *token; /* NULL = nobody waits */
	enum takt_job_hold was_held;
	int32_t was_priority;
	struct takt_job_promise was_promise, was_said; /* on record, in force */
	struct takt_job_limit was_limit;	       /* on record */
	uint64_t was_limit_ms;			       /* in force */
};

/* shared_env.c: an environment that the jobs of an array have together. Owned by them together. */
struct takt_queue_env {
	struct takt_queue *queue;
	uint64_t id; /* in the store; of the array's first job */
	uid_t uid;
	uint32_t refs;
	size_t bytes;
	char **list; /* owned */
};

/* Who hands in a job, when, and what it gets. */
struct takt_queue_entry {
	uid_t uid;
	gid_t gid;
	struct takt_wall now;
	uint64_t id, seq;
	struct takt_queue_env *env; /* NULL = its own */
	bool weighed;		    /* there is room for its description */
};

/* Jobs that are accepted together. Owned by its members together; gone with the last. While it is
 * posting it is the queue's. */
struct takt_queue_batch {
	void *token;	     /* NULL = nobody waits */
	uint32_t members;    /* jobs that point here */
	uint32_t left;	     /* inserts that the store has not answered */
	bool posting;	     /* more are to come */
	struct takt_err why; /* rc 0 = none was refused */
	/* POSTING: what is to come, and where that has got to. */
	struct takt_jobspecs specs; /* owned */
	uint32_t spec, element;
	uint32_t to_come;
	uint64_t array_id;
	struct takt_queue_entry entry; /* of the next; its env of the array, counted */
	size_t bytes_to_come;
	struct takt_queue_batch *next;
};

/* Its number with the scheduler is its place in the list, plus 1. */
struct takt_queue_tenant {
	char name[64]; /* of the tenant that it is, or is a user of; "" = of none */
	bool of_user;
	uid_t uid;
	uint32_t parent;
	uint64_t saved; /* its usage as the store has it */
};

struct takt_queue {
	struct takt_queue_config config;
	struct takt_sched_setup setup; /* of sched */
	struct takt_sched *sched;
	struct takt_map jobs; /* id -> struct takt_queue_job *, owned; in order of acceptance */
	uint64_t next_decision_ns; /* boot time before which no decision is kept */
	uint64_t next_id, next_seq, next_signal_id;
	TAKT_VEC(struct pending_change) changes; /* posted, in that order; one a job at most */
	struct takt_plan plan;			 /* newest */
	uint64_t planned_ns;			 /* by the scheduler's clock: when */
	struct takt_map waits;			 /* job id -> index into plan.waits */
	TAKT_VEC(uint64_t) staged;		 /* jobs whose stage is not NONE */
	struct takt_map ended_badly;		 /* ids; whose dependants are to be ended */
	uint64_t next_limit_ns; /* boot time to look at time limits; 0 = no job has one */
	uint64_t next_end_ns; /* boot time to look at ends that are kept back; 0 = there are none */
	uint64_t wake_ns;     /* by the scheduler's clock: plan again; 0 = on events only */
	uint64_t version;     /* rises with changes that the scheduler is not told */
	bool dirty;	      /* something changed since the plan was made */
	size_t bytes;	      /* of the live jobs' descriptions, those to come counted */
	struct takt_map users; /* uid -> struct takt_queue_user *, owned */
	struct takt_map envs;  /* id -> struct takt_queue_env *, borrowed from the jobs */
	struct takt_queue_batch *batches; /* owned; not posted whole, the next to be fed first */
	uint32_t to_come;		  /* jobs of those */
	TAKT_VEC(struct takt_queue_holding) ledger;
	struct takt_queue_mig mig;
	uint64_t stand_ins;	 /* so far */
	uint64_t contested_gpus; /* of attempts that may be alive and have no place, see load.c */
	uint64_t closed_gpus;	 /* whose MIG instances may go at any moment */
	uint32_t unended[TAKT_SCHED_MAX_NODE_GPUS]; /* jobs on it whose end the store has refused */
	uint64_t retry_ns; /* boot time before which nothing starts: the store refused; 0 = go */
	uint32_t refusals; /* pauses for that in a row */
	struct takt_queue_refusal refusal; /* of all starts, since one succeeded */
	uint32_t users_refused;		   /* of whose jobs one is started at a time */
	struct takt_runtime *runtimes;	   /* owned; what earlier jobs took */
	bool learned;			   /* something, since the last look at estimates */
	uint64_t next_estimate_ns;	   /* boot time of the next look; 0 = none is due */
	uint64_t next_renewal_ns;      /* boot time before which who waits hears of nothing new */
	TAKT_VEC(uint64_t) outlooks;   /* by kind: told with it, as of takt_runtime_told() + 1 */
	bool evicts;		       /* some job may have to go, and that may be called off */
	uint64_t next_evict_ns;	       /* boot time to look at evictions; 0 = none is under way */
	struct takt_share_rules rules; /* owned */
	TAKT_VEC(struct takt_queue_tenant) tenants;
	struct takt_map tenant_ids; /* by key, see tenants.c */
	uint64_t next_usage_ns;	    /* boot time to write down what was used; 0 = no tenants */
	struct takt_start_ranges start_ranges;
	struct takt_boot now; /* as of the last pump */
	struct takt_wall wall;
	bool wall_known;       /* the next two are */
	int64_t wall_ahead_ns; /* of the boot clock, at the last pump; as the store has it */
	int64_t wall_kept_ns;
	int64_t wall_away_ns; /* by which it jumped before the queue was loaded */
	uint64_t wall_jumps;  /* since */
};

struct takt_queue_job *takt_queue_job_find(const struct takt_queue *queue, uint64_t job_id);
/* Owned by the queue from success on. */
int takt_queue_job_put(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_job_free(struct takt_queue_job *job); /* that is not put */
void takt_queue_job_drop(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_changed(struct takt_queue *queue, const struct takt_queue_job *job);

/* batch.c: one job of several. Its insert was answered. */
void takt_queue_batch_inserted(struct takt_queue *queue, struct takt_queue_job *job,
			       const struct takt_err *refused);
void takt_queue_batch_leave(struct takt_queue_job *job);
/* Posts what the store has room for, but not for long: false = there is nothing more to post. */
bool takt_queue_feed_batches(struct takt_queue *queue);
/* What they posted stays the store's; nobody is answered. */
void takt_queue_free_batches(struct takt_queue *queue);
/* Whether all of them may be handed in; a refusal of one of several names it: "jobs[2]: ...". */
int takt_queue_check_all(struct takt_queue *queue, const struct takt_jobspecs *specs,
			 struct takt_err *err);
/* admission.c: whether there is room for all of them, before any is posted. *ret_bytes: of their
 * descriptions, an array's environment once; no less than they will come to. */
int takt_queue_check_limits_of(const struct takt_queue *queue, uid_t uid,
			       const struct takt_jobspecs *specs, size_t *ret_bytes,
			       struct takt_err *err);
/* user_share.c: what a user has in the queue, and all together. */
int takt_queue_user_has(struct takt_queue *queue, uid_t uid, size_t jobs, size_t bytes);
void takt_queue_user_lets_go(struct takt_queue *queue, uid_t uid, size_t jobs, size_t bytes);
void takt_queue_users_fini(struct takt_queue *queue);
/* What is refused of all his jobs, for refused_start.c. NULL = he has none. */
struct takt_queue_user_refusal {
	struct takt_queue_refusal of;
	uint32_t jobs; /* refused for the first time, since one of his started */
};
struct takt_queue_user_refusal *takt_queue_user_refusal(const struct takt_queue *queue, uid_t uid);
/* So many jobs, or bytes of descriptions, more. */
int takt_queue_check_count(const struct takt_queue *queue, uid_t uid, uint32_t count,
			   struct takt_err *err);
int takt_queue_check_bytes(const struct takt_queue *queue, uid_t uid, size_t bytes,
			   struct takt_err *err);
/* Of those that a plan places: who is being started, then whether one more of that user's may be
 * now, which then counts. */
void takt_queue_count_starts(struct takt_queue *queue);
bool takt_queue_may_start(struct takt_queue *queue, uint64_t job_id);
/* Of an environment. */
size_t takt_queue_env_bytes(char *const *env);
/* Takes the list over (NULL = an empty one), also on failure; one that is there already for that id
 * is counted once more. NULL: no memory. */
struct takt_queue_env *takt_queue_env_share(struct takt_queue *queue, uint64_t id, uid_t uid,
					    char **list);
struct takt_queue_env *takt_queue_env_ref(struct takt_queue_env *env);
/* NULL is fine. */
void takt_queue_env_unref(struct takt_queue_env *env);
/* The job has it from now on. */
void takt_queue_env_lend(struct takt_queue_job *job, struct takt_queue_env *env);
/* kept_env.c: environments that stay in the store while their jobs wait. */
/* After a start of the daemon, of a job that has its row and its description: its environment, but
 * one that it shares. A job that waits and has none any more is held. */
int takt_queue_env_load(struct takt_queue_job *job, const struct takt_job *row,
			struct takt_err *err);
/* Before it is made ready to start. False: it has none yet and goes on waiting, held if there is
 * none. */
bool takt_queue_env_fetch(struct takt_queue *queue, struct takt_queue_job *job);
/* How many jobs the description is for, and the descriptions together. */
uint32_t takt_queue_jobs_of(const struct takt_jobspec *spec);
uint32_t takt_queue_jobs_of_all(const struct takt_jobspecs *specs);
/* names.c: puts numbers in the place of names, where the first job will have next_id and the others
 * the numbers after it. -TAKT_E_USAGE: "jobs[2]: ...". */
int takt_queue_resolve_names(struct takt_jobspecs *specs, uint64_t next_id, struct takt_err *err);
int takt_queue_refuse_names(const struct takt_jobspec *spec, struct takt_err *err);
/* One job, for which there is room. Takes the spec's contents over on success. */
int takt_queue_submit_one(struct takt_queue *queue, const struct takt_queue_entry *entry,
			  struct takt_jobspec *spec, struct takt_queue_job **ret,
			  struct takt_err *err);

/* Refuses what could never start. */
int takt_queue_check_possible(struct takt_queue *queue, const struct takt_jobspec *spec,
			      struct takt_err *err);

/* What the job is to have reserved on each of its GPUs, in MiB; 0 of whole ones. */
uint32_t takt_queue_share_mem(const struct takt_queue *queue, const struct takt_queue_job *job);

/* windows.c: the number by which the scheduler knows the owner of a job. */
uint64_t takt_queue_owner(uint64_t uid);

/* The scheduler's clock. */
uint64_t takt_queue_sched_ns(const struct takt_queue *queue, struct takt_wall wall);

/* ledger.c */
/* Room for what the job is about to hold. */
int takt_ledger_reserve(struct takt_queue *queue, const struct takt_queue_job *job);
void takt_ledger_take(struct takt_queue *queue, const struct takt_queue_job *job);
/* The number of its attempt is known: so its holdings are called. */
void takt_ledger_name(struct takt_queue *queue, const struct takt_queue_job *job);
/* It holds nothing any more; what it had is kept from others until it is clean. */
void takt_ledger_leave(struct takt_queue *queue, uint64_t job_id);
/* The engine never heard of what it has just left: its shares are clean. */
void takt_ledger_unused(struct takt_queue *queue, const struct takt_queue_job *job);
/* Everything that is kept is known to the scheduler; negative: not yet, so no plan is to be made.
 */
int takt_ledger_keep(struct takt_queue *queue);
/* The scheduler may give the GPU to others. */
int takt_ledger_tell_drained(struct takt_queue *queue, uint32_t gpu, struct takt_err *err);

/* load.c: those that have no place get one as soon as there is room. */
void takt_queue_find_places(struct takt_queue *queue);

/* mig.c */
int takt_queue_mig_init(struct takt_queue *queue, struct takt_err *err);
/* One that holds it has left it (-1: none was held): if it is gone it is forgotten with the last.
 */
void takt_queue_mig_left(struct takt_queue *queue, int32_t instance);
/* Whether one of the instances that the job was given is not there any more. */
bool takt_queue_mig_is_gone(const struct takt_queue *queue, const struct takt_queue_job *job);
void takt_queue_mig_fini(struct takt_queue *queue);
/* What of the node is cut. */
void takt_queue_mig_node(const struct takt_queue *queue, struct takt_sched_node *node);
uint8_t takt_queue_mig_profile(const struct takt_queue *queue, const char *name);
int takt_queue_mig_possible(const struct takt_queue *queue, const struct takt_jobspec *spec,
			    struct takt_err *err);
/* The UUIDs of what it was placed on, into its row. */
int takt_queue_mig_place(const struct takt_queue *queue, struct takt_queue_job *job,
			 const struct takt_plan_placement *placements, uint32_t count);
/* The instances of its row; -EINVAL: one of them is not there any more. */
int takt_queue_mig_held(const struct takt_queue *queue, const struct takt_queue_job *job,
			int32_t ret_instances[TAKT_QUEUE_MAX_INSTANCES], uint32_t *ret_count);
struct takt_sched_slot takt_queue_mig_slot(const struct takt_queue *queue, int32_t instance);

/* refused_start.c: starts that are refused. */
/* The engine did not start it, or nothing of it ran. Before it waits again. */
void takt_queue_note_refusal(struct takt_queue *queue, struct takt_queue_job *job,
			     enum takt_refusal kind, const char *text);
void takt_queue_refusal_over(struct takt_queue *queue, struct takt_queue_job *job);
/* Before when it is not started, because it was refused; 0 = it may be. */
struct takt_wall takt_queue_refused_until(const struct takt_queue *queue,
					  const struct takt_queue_job *job);
/* The wall clock was set. */
void takt_queue_refusals_move(struct takt_queue *queue, int64_t by_ns);

/* freeze.c: how long its attempt has stood still because its owner said so; false: not known. */
bool takt_queue_rested(const struct takt_queue *queue, const struct takt_queue_job *job,
		       uint64_t *ret_ns);

/* cause.c */
/* It is being ended, or has ended, because of that. */
void takt_queue_note_cause(struct takt_queue_job *job, enum takt_cause cause);
/* The same: a GPU of it has failed, as far as that is known. */
void takt_queue_note_gpu_cause(struct takt_queue *queue, struct takt_queue_job *job);
/* Why the attempt ended, into its row. False: that is looked for, and takt_queue_attempt_ended is
 * called again when it is known or there is no more hope. */
bool takt_queue_find_cause(struct takt_queue *queue, struct takt_queue_job *job,
			   const struct takt_engine_event *event);
void takt_queue_look_at_ends(struct takt_queue *queue);
/* Its attempt ended of what was no fault of its own: a GPU failed. */
bool takt_queue_gpu_failed(const struct takt_queue_job *job);

/* limits.c */
void takt_queue_watch_limit(struct takt_queue *queue, const struct takt_queue_job *job);
/* Its limit, or how long it ran, is another one than was reckoned with. */
void takt_queue_limit_anew(struct takt_queue *queue, struct takt_queue_job *job);
/* As its limit counts it, at the latest pump: without the time that it stood still for others. */
uint64_t takt_queue_ran_ns(const struct takt_queue *queue, const struct takt_queue_job *job);
void takt_queue_check_limits(struct takt_queue *queue);

/* wall_jump.c: somebody sets the wall clock. */
/* True when it was set since the last pump. */
bool takt_queue_follow_wall(struct takt_queue *queue, struct takt_boot now, struct takt_wall wall);
/* What the wall clock, as it is set now, says of that instant; `said` where that is not known or
 * differs by less than a jump. */
struct takt_wall takt_queue_wall_at(const struct takt_queue *queue, struct takt_boot at,
				    struct takt_wall said);
/* Whether it was set while takt was away; then each row as it is loaded. */
int takt_queue_load_wall(struct takt_queue *queue, struct takt_err *err);
void takt_queue_move_loaded(const struct takt_queue *queue, struct takt_job *row);

/* estimate.c: how long jobs will run. */
int takt_queue_learn_history(struct takt_queue *queue, struct takt_err *err);
/* Of a job that is not told to the scheduler yet. */
int takt_queue_estimate(struct takt_queue *queue, struct takt_queue_job *job, struct takt_err *err);
/* Of one that waits or runs, and has another time limit. */
void takt_queue_estimate_anew(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_learn_end(struct takt_queue *queue, struct takt_queue_job *job);
bool takt_queue_estimates_due(const struct takt_queue *queue);
/* Boot time of the next look; 0 = none is due. */
uint64_t takt_queue_next_estimate_ns(const struct takt_queue *queue);
void takt_queue_look_at_estimates(struct takt_queue *queue);
bool takt_queue_uses_outlooks(const struct takt_queue *queue);
int takt_queue_tell_outlook(struct takt_queue *queue, uint32_t kind, struct takt_err *err);

/* foretold.c: of a new plan, and of a job that starts. */
void takt_queue_note_foretold(struct takt_queue *queue);
void takt_queue_learn_start(struct takt_queue *queue, struct takt_queue_job *job);
int takt_queue_load_start_ranges(struct takt_queue *queue, struct takt_err *err);
/* What may be said of a start that a plan foresees, but for GPUs; false: nothing. */
bool takt_queue_start_foretold(const struct takt_queue *queue, const struct takt_plan_wait *wait,
			       struct takt_queue_start *ret);

/* tenants.c: whose share a job counts against. */
bool takt_queue_has_tenants(const struct takt_queue *queue);
/* Fills job->tenant_id. Strict: a tenant that is not there or not his is refused; else the job
 * counts for its user alone. */
int takt_queue_find_tenant(struct takt_queue *queue, struct takt_queue_job *job, bool strict,
			   struct takt_err *err);
/* The scheduler's number of a tenant that has rules; -TAKT_E_NOT_FOUND. */
int takt_queue_tenant_id(struct takt_queue *queue, const char *name, uint32_t *ret,
			 struct takt_err *err);
/* So many more of his jobs may wait, by the rules. */
int takt_queue_check_queued(const struct takt_queue *queue, uid_t uid, uint32_t count,
			    struct takt_err *err);
void takt_queue_save_usage(struct takt_queue *queue);

/* terms.c */
/* The scheduler's configuration; as it was on failure. */
int takt_queue_set_up(struct takt_queue *queue, const struct takt_sched_settings *settings,
		      struct takt_err *err);
/* Nothing has changed on failure. */
int takt_queue_change_settings(struct takt_queue *queue, const struct takt_sched_settings *settings,
			       struct takt_err *err);
/* Fills what of a job depends on the settings. */
/* What becomes of a job whose GPU has failed: who may be run again is, else it is the
 * administrator's word. */
enum takt_failure_policy takt_queue_on_failure(const struct takt_queue *queue,
					       const struct takt_queue_job *job);
void takt_queue_job_terms(const struct takt_queue *queue, const struct takt_queue_job *job,
			  struct takt_sched_job *ret);

/* preempt.c: jobs that have to go for others. */
/* What the newest plan says. */
void takt_queue_heed_evictions(struct takt_queue *queue);
/* "It has to go" is on disk, or refused. */
void takt_queue_evict_noted(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused);
void takt_queue_check_evictions(struct takt_queue *queue);
/* Whether this end is an eviction; then what is noted of it before the job waits again. */
bool takt_queue_was_evicted(const struct takt_queue *queue, const struct takt_queue_job *job,
			    const struct takt_engine_event *event);
void takt_queue_evicted(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_load_eviction(struct takt_queue *queue, struct takt_queue_job *job);

void takt_queue_forget_eviction(struct takt_queue_job *job);
/* It stays after all. On record it is still to go while an earlier takt may have told it so. */
void takt_queue_drop_eviction(struct takt_queue *queue, struct takt_queue_job *job);
/* It goes now: it is told, and ended in the end. */
void takt_queue_tell_to_go(struct takt_queue *queue, struct takt_queue_job *job);
/* A running job is to begin anew, because somebody said so: called before that goes to disk, and
 * when it is there. */
void takt_queue_ask_to_go(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_asking_noted(struct takt_queue *queue, struct takt_queue_job *job);

/* stand_still.c: jobs that are frozen for others. */
int takt_queue_check_freezable(const struct takt_jobspec *spec, struct takt_err *err);
/* It has to go. True: it stands still instead, as soon as that is on disk, or will once the same is
 * decided of the others that go with it. */
bool takt_queue_stand_still(struct takt_queue *queue, struct takt_queue_job *job);
/* "Is to stand still" is on disk, or refused. */
void takt_queue_still_noted(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused);
/* Of one that runs and is STILLING or STILL: what is due. */
void takt_queue_check_still(struct takt_queue *queue, struct takt_queue_job *job);
/* A GPU is clean of a job that had it whole. True when it is that of a job that stands still, which
 * has it again. */
bool takt_queue_still_has(struct takt_queue *queue, uint32_t gpu);
/* Its attempt is over, before anything else is made of that. */
void takt_queue_still_ended(struct takt_queue *queue, struct takt_queue_job *job);
/* After a start of the daemon: true when it is one of these; before the scheduler hears of it. */
bool takt_queue_still_load(struct takt_queue_job *job);
/* When all are loaded, of one that may be alive: true when it has no place with the scheduler. */
bool takt_queue_still_claim(struct takt_queue *queue, struct takt_queue_job *job);

/* after.c: jobs that come after others. */
int takt_queue_check_after(struct takt_queue *queue, const struct takt_jobspec *spec,
			   struct takt_err *err);
/* Fills at most TAKT_SCHED_MAX_AFTER entries; how many. */
uint32_t takt_queue_sched_after(const struct takt_queue_job *job, struct takt_sched_after *ret);
void takt_queue_note_bad_end(struct takt_queue *queue, const struct takt_queue_job *job);
/* Those of its dependencies that are over ended how? After a start of the daemon. */
int takt_queue_load_after(struct takt_queue *queue, const struct takt_queue_job *job,
			  struct takt_err *err);
/* Ends the jobs whose dependencies can never be met. */
void takt_queue_end_dependants(struct takt_queue *queue);

/* Feed the scheduler an event about a job; a refusal would be a defect of ours and is returned. */
int takt_queue_tell(struct takt_queue *queue, enum takt_sched_event_kind kind,
		    const struct takt_queue_job *job, struct takt_err *err);

/* Post the row; remembers the ticket. */
int takt_queue_post(struct takt_queue *queue, struct takt_queue_job *job, enum ticket_kind kind,
		    struct takt_err *err);
/* events.c: said when what is posted by then is on disk, at most once. */
void takt_queue_note_event(struct takt_queue_job *job, enum takt_job_event event);
/* The store has answered a write. */
void takt_queue_tell_events(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused);
/* The owner's word on the job. */
void takt_queue_say(struct takt_queue_job *job, const char *message);
/* Nothing starts for a while: the store or the engine refused. */
void takt_queue_pause(struct takt_queue *queue);
/* What was refused is not any more. */
void takt_queue_went_well(struct takt_queue *queue);
/* Post the end; when even that is refused it is tried again later. */
void takt_queue_post_end(struct takt_queue *queue, struct takt_queue_job *job);
/* It holds no GPU any more. */
void takt_queue_clear_place(struct takt_queue_job *job);
/* The store has taken or refused a change. */
void takt_queue_change_done(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused);
/* Handle what the store has finished. */
void takt_queue_take_completions(struct takt_queue *queue);

/* Keep what the present plan was made of; before its placements are told. */
void takt_queue_keep_decision(struct takt_queue *queue);

/* why.c: the new plan's reasons can be looked up. */
int takt_queue_index_waits(struct takt_queue *queue);

/* From plan to engine. */
int takt_queue_replan(struct takt_queue *queue, struct takt_err *err);
void takt_queue_try_start(struct takt_queue *queue, struct takt_queue_job *job);
/* The placement is called off before the engine had it: the job waits again, its GPUs drain like
 * any other. */
void takt_queue_call_off(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_stop(struct takt_queue *queue, struct takt_queue_job *job);
/* Boot time to ask for a stop again that could not be asked for. */
uint64_t takt_queue_stop_again_ns(const struct takt_queue *queue, const struct takt_queue_job *job);
/* To one that may be alive, whatever it is doing. */
int takt_queue_send_signal(struct takt_queue *queue, const struct takt_queue_job *job, int signal,
			   struct takt_err *err);
/* A waiting job's placements, `count` of them: the GPUs are its own from here on, unless it cannot
 * have them; then it goes on waiting. */
void takt_queue_promise(struct takt_queue *queue, const struct takt_plan_placement *placements,
			uint32_t count);
/* Give the engine an action on the latest attempt. */
int takt_queue_order(struct takt_queue *queue, struct takt_queue_job *job,
		     enum takt_action_kind kind);

/* stage.c: attempts that are made before their GPUs are free. */
/* After a plan: stage who is next, call off who is not any more. */
void takt_queue_stage(struct takt_queue *queue, uint64_t now_ns);
/* A stop that the engine could not take. */
void takt_queue_stage_again(struct takt_queue *queue);
/* After a start of the daemon: an attempt that may wait. */
int takt_queue_stage_adopt(struct takt_queue *queue, struct takt_queue_job *job);
void takt_queue_stage_off(struct takt_queue *queue, struct takt_queue_job *job);
/* It gets GPUs: row.attempt is the one to start. Not while one is being called off. */
void takt_queue_stage_place(struct takt_queue *queue, struct takt_queue_job *job);
/* The engine has its START. */
void takt_queue_stage_started(struct takt_queue *queue, struct takt_queue_job *job);
/* It is to end: true when it will, once its attempt is called off. */
bool takt_queue_stage_keeps(struct takt_queue *queue, struct takt_queue_job *job,
			    enum takt_job_state state);
/* TICKET_STAGE. */
void takt_queue_stage_written(struct takt_queue *queue, struct takt_queue_job *job,
			      const struct takt_err *refused);
/* An event of the latest attempt; true when it was about its stage. */
bool takt_queue_stage_heard(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_engine_event *event);

/* From engine to store. */
/* Its attempt is over and why is in its row, as far as that is known. */
void takt_queue_attempt_ended(struct takt_queue *queue, struct takt_queue_job *job,
			      const struct takt_engine_event *event);
void takt_queue_engine_event(void *ctx, const struct takt_engine_event *event);
void takt_queue_end(struct takt_queue *queue, struct takt_queue_job *job,
		    enum takt_job_state state);

#endif
