/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine of queue_run.h remembers; shared by its files alone. */
#ifndef TAKT_SIM_QUEUE_STATE_H
#define TAKT_SIM_QUEUE_STATE_H

#include "base/heap.h"
#include "sim/queue_run.h"

/* In the order in which they are told at one instant. */
enum queue_event_kind {
	QUEUE_END,
	QUEUE_CHECKPOINT,
	QUEUE_FAILURE,
	QUEUE_REPAIR,
	QUEUE_WAKE,
};

struct queue_event {
	struct takt_heap_node node;
	uint64_t at_ns;
	enum queue_event_kind kind;
	uint32_t index; /* of the job or the failure */
};

enum queue_job_state {
	QUEUE_TO_COME,
	QUEUE_WAITING,
	QUEUE_RUNNING,
	QUEUE_OVER,
};

struct queue_job {
	struct queue_event end, checkpoint;
	enum queue_job_state state;
	uint32_t preemptions, restarts;
	uint64_t left_ns;     /* of its work, at the last safe point */
	uint64_t overhead_ns; /* this attempt's time before work goes on */
	uint64_t started_ns;
	uint64_t held_ns;  /* time with GPUs, all attempts that are over */
	uint64_t crowd_ms; /* the crowd integral when it was submitted */
	uint32_t speed_permille;
	uint32_t gpu_count; /* of all tasks */
	uint32_t slot_count;
	struct takt_sched_slot *slots; /* owned; NULL while it does not run */
};

struct queue_sim {
	const struct takt_queue_config *config;
	struct takt_sched *sched;
	struct takt_plan plan;
	struct queue_job *jobs;	      /* owned, by job */
	struct queue_event *failures; /* owned: failure i, then repair i */
	uint32_t *down;		      /* owned: of each node, failures not repaired yet */
	struct queue_event wake;
	struct takt_heap heap;
	size_t next_job;     /* to be submitted */
	uint64_t refresh_ns; /* when outlooks are told next */
	uint32_t outlooks_told;
	uint32_t first_open; /* all jobs before it are over */
	uint64_t now_ns;
	uint64_t held_gpus;   /* now */
	uint64_t wanted_gpus; /* by jobs that wait or run */
	uint64_t crowd_ms;    /* integral of max(1, wanted / GPUs), permille times ms */
	bool plan_needed;
	struct takt_queue_result result;
};

static inline uint64_t queue_job_id(uint32_t index)
{
	return (uint64_t)index + 1;
}

/* queue_clock.c */
/* Moves the clock on and books what was held meanwhile. */
void queue_advance(struct queue_sim *sim, uint64_t now_ns);
/* GPUs of a job come or go. */
void queue_hold(struct queue_sim *sim, const struct queue_job *job, bool held);
int queue_schedule(struct queue_sim *sim, struct queue_event *event, uint64_t at_ns);
void queue_unschedule(struct queue_sim *sim, struct queue_event *event);
int queue_by_time(const struct takt_heap_node *a, const struct takt_heap_node *b);

/* queue_jobs.c: a job's life, told to the scheduler. */
int queue_submit(struct queue_sim *sim, uint32_t index, struct takt_err *err);
int queue_start(struct queue_sim *sim, uint32_t index, struct takt_err *err);
int queue_end(struct queue_sim *sim, uint32_t index, struct takt_err *err);
int queue_checkpoint(struct queue_sim *sim, uint32_t index, struct takt_err *err);
/* Pushed out, or its node failed. */
int queue_requeue(struct queue_sim *sim, uint32_t index, struct takt_err *err);
int queue_move(struct queue_sim *sim, uint32_t index, uint32_t task,
	       const struct takt_sched_slot *to, struct takt_err *err);
/* GPUs that a job held are clean again, where the scheduler waits to be told. */
int queue_clean(struct queue_sim *sim, const struct takt_sched_slot *slots, uint32_t count,
		struct takt_err *err);
uint32_t queue_speed(const struct queue_sim *sim, uint32_t index,
		     const struct takt_sched_slot *slot);

/* queue_outlook.c: what is learned of run times, told to the scheduler. */
/* The outlook of a job that is submitted, told if it is a new one; 0 without outlooks. */
int queue_tell_kind(struct queue_sim *sim, uint32_t index, const struct takt_sim_job *source,
		    uint32_t *ret_id, struct takt_err *err);
/* All that have changed, if it is time again. */
int queue_tell_outlooks(struct queue_sim *sim, struct takt_err *err);

/* queue_plan.c: asks for plans until one has nothing to do. */
int queue_plan(struct queue_sim *sim, struct takt_err *err);

/* queue_nodes.c */
int queue_add_nodes(struct queue_sim *sim, struct takt_err *err);
int queue_fail(struct queue_sim *sim, uint32_t failure, struct takt_err *err);
int queue_repair(struct queue_sim *sim, uint32_t failure, struct takt_err *err);

#endif
