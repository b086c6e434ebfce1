/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the local engine as they see each other.
 *
 *   local_engine.c  lifecycle, actions taken in, the pump
 *   local_run.c     one attempt from its directory to its end
 *   local_stage.c   one that is staged: kept, handed over or called off
 *   local_orders.c  SIGNAL and STOP until they are answered
 *   local_link.c    the connection to the launcher
 *
 * Everything that needs attention at a time has it in due_ns; the pump walks what is due. Events
 * are delivered at once, as the last thing a step does: the watcher may only apply(), which merely
 * queues.
 */
#ifndef TAKT_ENGINE_LOCAL_LOCAL_PRIVATE_H
#define TAKT_ENGINE_LOCAL_LOCAL_PRIVATE_H

#include <stdbool.h>

#include "base/map.h"
#include "base/pace.h"
#include "base/vec.h"
#include "engine/engine_impl.h"
#include "engine/local/local_engine.h"
#include "launch/launch.h"

enum {
	LOCAL_MAX_SENT = 48, /* requests on their way; below what the launcher takes at once */
	LOCAL_MAX_ACTIONS = 65536,
	LOCAL_MAX_ORDERS = 4096,
	LOCAL_MAX_REMEMBERED = 8192, /* action ids whose outcome is known */
	LOCAL_ACTIONS_A_PUMP = 32,
	LOCAL_STEPS_A_PUMP = 64,
};

enum local_state {
	LOCAL_UNSENT,  /* has a directory; START is to be sent */
	LOCAL_ASKED,   /* START was sent; no reply yet */
	LOCAL_LOOK,    /* what became of it is to be read from its directory */
	LOCAL_WATCHED, /* its shim is watched by pidfd, or polled for want of a descriptor */
	LOCAL_REAP,    /* its shim vanished; what is left of it is being killed */
};

enum local_stage {
	LOCAL_PLAIN,   /* not staged, or not any more: it has started */
	LOCAL_MAKING,  /* its process is not known to wait yet */
	LOCAL_WAITING, /* is told now and then that it is still wanted */
	LOCAL_GOING,   /* `go` is written; it is told to look until it has started */
	LOCAL_OFF,     /* is told to end until it has */
};

struct local_run {
	uint64_t job_id;
	uint32_t attempt;
	uid_t uid;
	gid_t gid;
	enum local_state state;
	uint64_t start_action; /* whose outcome is owed; 0 = none */
	bool adoption_owed;    /* ADOPTED is to be said once it is found alive */
	bool started_said;
	enum local_stage stage;
	struct takt_action turn; /* MAKING to OFF: the START that is owed an outcome; id 0 = none */
	char id[TAKT_ATTEMPT_ID_MAX];	  /* of the attempt; "" = not known */
	char secret[TAKT_ATTEMPT_SECRET]; /* known with its id */
	bool forged;			  /* the end on record is another attempt's */
	bool litters;			  /* something of it may be left though it never ran */
	int32_t job_pid;		  /* 0 = not known */
	struct takt_proc_id shim;
	int pidfd;		       /* owned; -1 = none */
	uint64_t due_ns;	       /* boot time of the next step; 0 = waits for an event */
	struct takt_job_limits limits; /* of a START that is not sent yet, or a staged one's turn */
	bool admits;		       /* `limits` are those of its turn */
	enum takt_refusal refusal;     /* what kept it from running, once that is so, */
	char why[160];		       /* in words; "" = nothing did */
	uint64_t gpu_mask;	       /* recovered: of its START */
	uint32_t looks;		       /* in a row, in vain */
	uint64_t give_up_ns;	       /* START: when the launcher has been missing for too long */
};

struct local_order {
	struct takt_action action;
	uint64_t seq; /* of the request on its way; 0 = unsent */
};

struct local_sent {
	uint64_t seq;
	uint64_t run; /* its key; 0 = an order's, or a question's */
};

/* A STOP that the launcher has passed on. The shim ends the job; what is alive at `due_ns` the
 * launcher ends itself. */
struct local_stop {
	uint64_t job_id;
	uint32_t attempt;
	uint64_t due_ns; /* boot time */
	uint32_t tries;
};

/* Whose a process is, asked of the launcher. */
struct local_question {
	uint64_t seq;
	struct takt_proc_id process;
};

struct local_engine {
	struct takt_engine engine;
	struct takt_engine_local_config config; /* its strings are ours, below */
	char *launch_socket;			/* owned */
	int jobs_dirfd;				/* owned */
	int epollfd;				/* owned */
	int wakefd;				/* owned; readable while actions wait */
	struct takt_launch_client *client;	/* owned; NULL = not connected */
	uint64_t connect_ns;			/* not before */
	uint32_t failures;			/* of the link, since the launcher said something */
	struct takt_err link_err;		/* of the newest of them */
	uint64_t next_seq;
	uint64_t now_ns;		      /* of this pump */
	uint64_t next_due_ns;		      /* no run is due before; UINT64_MAX = none */
	struct takt_map runs;		      /* local_key() -> struct local_run, owned */
	struct takt_map remembered;	      /* action id -> outcome + 1, or 0 while it is open */
	TAKT_VEC(struct takt_action) actions; /* not looked at yet */
	TAKT_VEC(struct local_order) orders;
	TAKT_VEC(struct local_stop) stops;
	TAKT_VEC(struct local_sent) sent;
	TAKT_VEC(struct local_question) questions; /* on their way */
	bool snapshot_wanted;
};

/* A job has one attempt alive at a time, and beside it one aside. */
static inline uint64_t local_key(uint64_t job_id, uint32_t attempt)
{
	return attempt < TAKT_ENGINE_ASIDE ? job_id : job_id | UINT64_C(1) << 62;
}

/* local_engine.c */
void local_outcome(struct local_engine *local, uint64_t action_id, enum takt_outcome outcome,
		   uint64_t job_id, uint32_t attempt, const char *message);
/* FAILED, and what kept it. */
void local_failed(struct local_engine *local, uint64_t action_id, uint64_t job_id, uint32_t attempt,
		  enum takt_refusal refusal, const char *message);
void local_due(struct local_engine *local, struct local_run *run, uint32_t in_ms);
/* How often is looked for what is not there yet: word of a shim, a start on record, an end. */
extern const struct takt_pace local_looks;
void local_due_again(struct local_engine *local, struct local_run *run);

/* local_run.c */
void local_run_begin(struct local_engine *local, const struct takt_action *start);
int local_run_recover(struct local_engine *local, const struct takt_engine_live *live);
void local_run_step(struct local_engine *local, struct local_run *run);
void local_run_ended_shim(struct local_engine *local, struct local_run *run);
void local_run_reply(struct local_engine *local, struct local_run *run,
		     const struct takt_launch_reply *reply);
void local_run_link_lost(struct local_engine *local, struct local_run *run);
/* STOP of one that no shim was asked for: true when that is settled. */
bool local_run_call_off(struct local_engine *local, struct local_run *run);
void local_run_free(struct local_run *run);

/* What an action on the attempt means, into a spec for the caller to fini; *run gets its user. */
int local_run_describe(struct local_engine *local, const struct takt_action *action,
		       struct local_run *run, struct takt_attempt_spec *ret, struct takt_err *err);

/* local_stage.c */
uint32_t local_stage_lease_ms(const struct local_engine *local);
/* Its START has not come. */
bool local_stage_waits(const struct local_run *run);
/* It is alive: what does that mean for its stage? */
void local_stage_notice(struct local_run *run, const struct takt_attempt_status *status);
/* Watched and not PLAIN: do what its stage asks for, and set when to come back. */
void local_stage_step(struct local_engine *local, struct local_run *run);
/* A START came for it. */
void local_stage_turn(struct local_engine *local, struct local_run *run,
		      const struct takt_action *start);

/* local_orders.c */
/* Whether a STOP of the attempt is waiting to be sent. */
bool local_orders_stop(const struct local_engine *local, const struct local_run *run);
void local_order_take(struct local_engine *local, const struct takt_action *action);
void local_orders_send(struct local_engine *local);
/* Has the launcher end what has outlived its grace. */
void local_orders_overdue(struct local_engine *local);
/* Boot time of the next one; UINT64_MAX = none. */
uint64_t local_orders_next_ns(const struct local_engine *local);
void local_orders_reply(struct local_engine *local, const struct takt_launch_reply *reply);
void local_orders_link_lost(struct local_engine *local);
/* The attempt is over: what was ordered for it is settled. */
void local_orders_settle(struct local_engine *local, uint64_t job_id, uint32_t attempt);

/* local_whose.c */
/* True when the reply was to a question. */
bool local_whose_reply(struct local_engine *local, const struct takt_launch_reply *reply);

/* local_link.c */
/* Connect, unless that is so or was tried just now. */
void local_link_keep(struct local_engine *local);
/* Sends for a run (its key) or an order (0). The seq, 0 when it cannot be sent now; then
 * local_link_retry_ms() says when to try again. */
uint64_t local_link_send(struct local_engine *local, struct takt_launch_request request,
			 uint64_t run);
uint32_t local_link_retry_ms(const struct local_engine *local);
void local_link_receive(struct local_engine *local);

#endif
