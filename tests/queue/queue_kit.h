/* SPDX-License-Identifier: Apache-2.0 */
/* What the queue's tests share: a real store in a temporary folder, an engine that does what the
 * test says, and a journal of what the queue asked for. */
#ifndef TESTS_QUEUE_QUEUE_KIT_H
#define TESTS_QUEUE_QUEUE_KIT_H

#include "engine/engine_impl.h"
#include "queue/queue.h"

enum {
	KIT_GPUS = 8,
	KIT_MAX_ACTIONS = 8192
};

struct kit_engine {
	struct takt_engine base;
	struct takt_action actions[KIT_MAX_ACTIONS]; /* in the order the queue gave them */
	size_t count;
	int refuse_rc; /* negative: apply fails with it */
};

struct kit {
	char dir[64];
	struct takt_store *store;
	struct kit_engine engine;
	struct takt_queue *queue;
	int32_t pair_score[KIT_GPUS * KIT_GPUS];
	uint64_t boot_ns;
	int64_t wall_ahead_ns; /* of the boot clock; a test that changes it sets the wall clock */
	int64_t set_since_ns;  /* by which it was set since what the next event tells of */
	uint64_t highest_known_id;
	size_t max_bytes;  /* as in takt_queue_config */
	uint32_t max_jobs; /* likewise */
	bool shared;	   /* likewise */
	int32_t cpu_milli; /* the same; 0 = 4000 */
	enum takt_queue_staging staging;
	uint32_t gpu_count;	 /* that the machine shows; 0 = KIT_GPUS */
	uint32_t gpus_gone;	 /* as many of the first are not there */
	const char *why_no_gpus; /* as in takt_queue_config */
	bool gpus_will_come, has_no_gpus;
	uint64_t run_ns;   /* of the next kit_ended() */
	uint64_t mig_gpus; /* the next three as in takt_queue_config */
	const struct takt_queue_instance *instances;
	uint32_t instance_count;
	const struct takt_queue_instance *kinds; /* that may come later */
	uint32_t kind_count;
	bool no_gpu_mem; /* the driver does not say how much the GPUs have; else 80 GiB */
	const uint32_t *each_mem_mib; /* or this each, the first being the smallest */
	bool hold_prepare;	      /* the test says takt_queue_prepared itself */
	struct takt_sched_settings settings;
	enum takt_failure_policy on_gpu_failure; /* as in takt_queue_config */
	/* What the hooks saw. */
	uint64_t accepted_id; /* newest */
	struct takt_err refused;
	size_t accepted_count, noted_count, refused_count, ended_count, released_count;
	enum takt_job_state last_state; /* of the newest durable end */
	int last_exit_code;
	char events[256];     /* of jobs with a hook: "1 started, 1 ended, " */
	bool restless;	      /* who is told to stand still does not */
	uint64_t restless_id; /* nor does this job */
	uint32_t kept_mib;    /* what one that stands still is seen to keep */
	uint64_t claimed[64]; /* job ids handed over by load */
	size_t claimed_count;
};

void kit_open(struct kit *kit);
void kit_open_with(struct kit *kit, struct takt_sched_settings settings,
		   enum takt_failure_policy on_gpu_failure);
/* With preemption, and nothing else that is not as it comes. */
void kit_open_preempting(struct kit *kit);
void kit_close(struct kit *kit);
/* The daemon dies and comes back: queue and store are opened anew on the same files. */
void kit_restart(struct kit *kit);
/* A queue over the store that is open: 0, or why there is none. */
int kit_open_queue(struct kit *kit, struct takt_err *err);
/* Pumps once, so much later; when to pump again. */
uint64_t kit_pump_in(struct kit *kit, uint64_t ns);
/* The same, and until everything is on disk. */
void kit_later(struct kit *kit, uint64_t ns);
/* One turn of the daemon: all is on disk, then it is when the queue wants to be pumped next, at the
 * latest end_ns. False: that is now. */
bool kit_turn(struct kit *kit, uint64_t end_ns);
/* Pump until the store has nothing outstanding for us, at most a few seconds. */
void kit_settle(struct kit *kit);
/* Whether the engine was told to start it. */
bool kit_is_started(const struct kit *kit, uint64_t job_id);
/* It ends and its GPUs are clean. */
void kit_end_cleanly(struct kit *kit, uint64_t job_id, enum takt_end end, int code);
/* `sleep 1` on n GPUs; owned by the caller. */
struct takt_jobspec kit_spec(uint32_t gpus);
/* Submits it, accepted: its id. Takes the spec. */
uint64_t kit_accept_spec(struct kit *kit, struct takt_jobspec spec);
/* Submit `sleep 1` on n GPUs; returns what takt_queue_submit said. */
int kit_submit(struct kit *kit, uint32_t gpus, int priority, struct takt_err *err);
/* The same, accepted: its id. */
uint64_t kit_accept(struct kit *kit, uint32_t gpus, int priority);
/* Newest action of a kind for a job, or NULL. */
const struct takt_action *kit_action(const struct kit *kit, enum takt_action_kind kind,
				     uint64_t job_id);
/* Whether the engine was told to end it. */
bool kit_was_stopped(const struct kit *kit, uint64_t job_id);
/* Its owner cancels it, and that is not refused. */
void kit_cancel(struct kit *kit, uint64_t job_id);
void kit_started(struct kit *kit, uint64_t job_id);
void kit_adopted(struct kit *kit, uint64_t job_id);
/* Pump until the job is at that step of being pushed out, at most a few seconds. */
void kit_until(struct kit *kit, uint64_t job_id, enum takt_evict_step step);
void kit_ended(struct kit *kit, uint64_t job_id, enum takt_end end, int code);
/* All GPUs of the mask are clean again. */
void kit_clean(struct kit *kit, uint64_t mask);
/* State in the store, whether live or ended. */
enum takt_job_state kit_stored(struct kit *kit, uint64_t job_id);

#endif
