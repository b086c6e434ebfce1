/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the power-loss campaign: a launcher and the shims it starts, inside the test and
 * one small step at a time, so that power can go between any two of them. They do on the fake disk
 * what takt-launch and takt-shim do on a real one, through the same functions of launch/attempt.h
 * and in the same order; "exec" is a word to the witness.
 *
 * The local engine finds them where it looks for real ones: this file defines takt_launch_connect()
 * and its kin, takt_proc_open(), takt_proc_identify() and takt_boot_id(), and the linker takes them
 * in place of the libraries'. So the engine that is tested is the one that ships. One such world at
 * a time.
 */
#ifndef TAKT_TESTS_LOSS_PROCS_H
#define TAKT_TESTS_LOSS_PROCS_H

#include "base/rng.h"
#include "fake_sys.h"
#include "launch/launch.h"
#include "loss_witness.h"

enum {
	LOSS_MAX_SHIMS = 64,
	LOSS_MAX_MESSAGES = 256,
};

/* Mistakes that a launcher or a shim could make; the campaign must notice each. */
enum loss_mistakes {
	LOSS_NO_JOBS_SYNC = 1u << 0, /* attempts' names are not synced before the shim starts */
	LOSS_LATE_STARTED = 1u << 1, /* `started` is written after exec */
	LOSS_NO_LOCK = 1u << 2,	     /* the shim lets go of its lock when the job runs */
	LOSS_NO_TURN = 1u << 3,	     /* a staged shim does not wait for its turn */
	LOSS_CARELESS = 1u << 3,     /* the job runs though `started` could not be written */
};

enum shim_step {
	SHIM_FORKED, /* by the launcher; attempts' names are to be synced */
	SHIM_EXECED, /* a shim now; to lock its attempt and look whether it is unused */
	SHIM_LOCKED, /* to record the start, or that it waits */
	SHIM_WAITS,  /* staged: until it is told to look and finds `go` */
	SHIM_TURN,   /* to record the start */
	SHIM_RECORDED,
	SHIM_RUNS,
	SHIM_ENDS, /* its last process is gone; the end is to be recorded */
};

struct loss_shim {
	enum shim_step step;
	struct takt_launch_reply reply; /* owed until it is EXECED */
	uint64_t client;		/* whom to */
	uint64_t job_id;
	uint32_t attempt;
	struct takt_proc_id self;
	int ended_fd;	   /* owned; readable when it has ended */
	int dirfd, lockfd; /* on the fake disk; -1 = none */
	uint32_t serial;   /* of the job, from its arguments */
	uint64_t gpus;	   /* from its arguments */
	uint32_t run;	   /* of the witness, once it RUNS */
	uint32_t left;	   /* turns until the job ends by itself */
	int code;	   /* it will exit with */
	bool started;	   /* on record */
	bool stop;
	bool staged, look;
};

/* What a killed shim's job has left running. */
struct loss_orphan {
	uint64_t job_id;
	uint32_t attempt, run;
	bool dying; /* SIGKILL was sent */
};

struct loss_procs {
	struct fake_sys *world;	    /* borrowed */
	const struct takt_sys *sys; /* its table */
	struct witness *witness;    /* borrowed */
	struct takt_rng *rng;	    /* borrowed */
	const char *jobs_dir;	    /* borrowed */
	unsigned mistakes;
	unsigned kill_one_in;	  /* chance of a shim to be killed, a turn; 0 = never */
	unsigned launcher_one_in; /* of the launcher to end, and be started again later */
	unsigned away;		  /* turns until the launcher is there again */
	unsigned boots;
	int32_t last_pid;
	uint64_t clients;
	int client_fd; /* of the client that is connected; -1 = none */
	struct takt_launch_request inbox[LOSS_MAX_MESSAGES];
	uint64_t inbox_client[LOSS_MAX_MESSAGES];
	size_t nr_inbox;
	struct takt_launch_reply outbox[LOSS_MAX_MESSAGES];
	size_t nr_outbox;
	struct loss_shim shims[LOSS_MAX_SHIMS];
	size_t nr_shims;
	struct loss_orphan orphans[LOSS_MAX_SHIMS];
	size_t nr_orphans;
};

void loss_procs_init(struct loss_procs *procs, struct fake_sys *world, struct witness *witness,
		     struct takt_rng *rng, const char *jobs_dir);
void loss_procs_fini(struct loss_procs *procs);

/* The launcher and each shim do one step, or none by chance; nothing once the power is off. */
void loss_procs_turn(struct loss_procs *procs);
bool loss_procs_idle(const struct loss_procs *procs);

/* Power goes and comes back: another boot, nobody is left. */
void loss_procs_power_loss(struct loss_procs *procs, uint64_t seed);
/* Only the daemon is killed: launcher and shims keep their locks and go on. */
void loss_procs_daemon_death(struct loss_procs *procs);

#endif
