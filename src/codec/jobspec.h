/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user asks for: the description of one job, and its JSON form. The same form travels from
 * the command line to the API, into the store and into the attempt's directory.
 */
#ifndef TAKT_CODEC_JOBSPEC_H
#define TAKT_CODEC_JOBSPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/policy_text.h"
#include "base/str.h"

enum {
	TAKT_SPEC_MAX_ARGS = 4096,
	TAKT_SPEC_MAX_ENV = 4096,
	TAKT_SPEC_MAX_BYTES = 2 * 1024 * 1024, /* of the JSON form */
	TAKT_SPEC_MAX_NAME = 64,
	TAKT_SPEC_MAX_AFTER = 1000,
	TAKT_SPEC_MAX_JOBS = 1000,   /* of one file */
	TAKT_SPEC_MAX_ARRAY = 10000, /* jobs */
	TAKT_SPEC_MAX_ARRAY_INDEX = 1000000,
	TAKT_SPEC_MAX_RETRIES = 100,
	TAKT_SPEC_MAX_PRIORITY = 1000, /* either side of 0 */
	TAKT_SPEC_MAX_RANKS = 1024,
	TAKT_SPEC_MAX_MIG = 32, /* bytes of text, with the NUL, as those below */
	TAKT_SPEC_MAX_TENANT = 64,
	TAKT_SPEC_MAX_TAGS = 256,
	TAKT_SPEC_MAX_RUNTIME = 16,
	TAKT_SPEC_MAX_CLOCK_POLICY = TAKT_POLICY_TEXT,
	TAKT_SPEC_MAX_SLOWDOWN = 500,	       /* permille */
	TAKT_SPEC_MAX_SLO_US = 1800000000,     /* half an hour */
	TAKT_SPEC_RETRY_BACKOFF_MS = 1000,     /* default */
	TAKT_SPEC_CHECKPOINT_GRACE_MS = 60000, /* default of jobs with a checkpoint signal */
};

enum takt_clock_ask {
	TAKT_CLOCK_ASK_NONE,
	TAKT_CLOCK_ASK_CEILING, /* --clock F: [min, F] */
	TAKT_CLOCK_ASK_LOCK,	/* --clock-lock F: [F, F]; only on GPUs held alone */
};

enum takt_visible {
	TAKT_VISIBLE_INDEX,
	TAKT_VISIBLE_UUID
};

/* A job that this one comes after; accepted before it. */
struct takt_spec_after {
	uint64_t job;
	bool any; /* however that one ends; else only if it is done */
};

struct takt_jobspec {
	char name[TAKT_SPEC_MAX_NAME + 1]; /* [A-Za-z0-9._-]+; default: last path part of argv[0] */
	char **argv;			   /* owned, NULL-terminated, argv[0] non-empty */
	char **env;	      /* owned, "NAME=value", NULL-terminated; the whole environment */
	char *cwd;	      /* owned, absolute */
	uint32_t gpus;	      /* 0..64 */
	uint64_t gpu_indices; /* bit i: GPU i of the machine is among those it may have; 0 = any */
	int32_t priority;     /* -1000..1000; above 0 only for administrators (server's decision) */
	bool held;	      /* waits until released */
	bool requeue;	      /* run again when lost or interrupted */
	bool use_outside;     /* may share GPUs with processes that takt did not start */
	enum takt_clock_ask clock_ask;
	uint32_t clock_mhz;
	uint32_t power_limit_mw; /* of each of its GPUs, at most; 0 = as it is */
	/* Who chooses its clocks while it runs, and what it may lose by that. */
	char clock_policy[TAKT_SPEC_MAX_CLOCK_POLICY]; /* base/policy_text.h; "" = by the rest */
	uint32_t max_slowdown_permille; /* of its whole time, 1..500; 0 = no promise */
	uint32_t slo_latency_us;	/* of a service: to be held at slo_permille; 0 = none */
	uint32_t slo_permille;		/* 500..999: 990 is p99; 0 with no latency */
	enum takt_visible visible;
	uint32_t cpu_milli;   /* thousandths of a CPU, counted while it runs; 0 = none */
	uint64_t mem_mib;     /* of the machine, counted; 0 = none */
	uint32_t gpu_mem_mib; /* that each of its GPUs must have; 0 = any */
	/* Handed in: as many jobs as indices. Each of them has array_id, which is the first one's
	 * id, and its index instead. */
	bool has_array;
	char **grid; /* owned: "NAME=LIST", see grid.h; then the indices count its combinations */
	uint32_t array_first, array_last;
	uint32_t array_limit; /* of them at a time; 0 = no limit */
	uint32_t array_index;
	uint64_t array_id;	/* takt's to set; 0 = not of an array */
	char **params;		/* owned, takt's to set: "NAME=value" of its grid; NULL = none */
	uint64_t time_limit_ms; /* of each attempt; then it is stopped; 0 = none */
	int64_t begin_ms;	/* wall clock: does not start before; 0 = at once */
	uint32_t retries;	/* run again so often when it ends badly by itself */
	uint32_t after_count;
	struct takt_spec_after *after; /* owned */
	char **after_names; /* owned: "NAME", "NAME:any" of jobs handed in with it, before it */
	uint32_t grace_ms;  /* SIGTERM to SIGKILL; default 30,000 */
	uint64_t retry_backoff_ms; /* before the first retry, then doubled; default 1,000 */
	/* Parts of GPUs. */
	uint32_t gpu_milli;	     /* 1..999: this share of each of its GPUs; 0 = whole ones */
	char mig[TAKT_SPEC_MAX_MIG]; /* "1g.10gb": `gpus` instances of it; "" = none */
	/* What may be done to it for others. */
	bool preemptible;		   /* may be ended for others, and is run again */
	bool freezable;			   /* may be stopped for a while, keeping its GPU memory */
	int32_t checkpoint_signal;	   /* first sent when it has to go; 0 = none */
	uint32_t checkpoint_grace_ms;	   /* from that signal to SIGTERM; 0 = no signal */
	char *checkpoint_dir;		   /* owned, absolute; NULL = none */
	int64_t deadline_ms;		   /* wall clock: wanted done by then; 0 = none */
	uint64_t estimate_ms;		   /* how long it runs, by its owner; 0 = not said */
	char tenant[TAKT_SPEC_MAX_TENANT]; /* whose share it counts against, "lab/vision" */
	char tags[TAKT_SPEC_MAX_TAGS];	   /* of its owner's choice, "a,b" */
	/* How it is started. */
	uint32_t ranks;	  /* processes; 0 = one, without ranks */
	bool rank_prefix; /* each line of output begins with "[rank] " */
	bool pty;	  /* on a terminal of its own */
	char *output; /* owned: the file that takes its output, from cwd; %j, %a, %A, %x, %%; NULL
			 = takt keeps it */
	uint64_t idle_release_ms; /* ended when its GPUs did nothing for so long; 0 = never */
	char *container;	  /* owned: the image it runs in; NULL = none */
	char **container_args;	  /* owned: more arguments for the runtime; NULL = none */
	char container_runtime[TAKT_SPEC_MAX_RUNTIME]; /* "" = the first that there is */
	bool stage;	   /* made ready before the job ahead of it ends */
	char **prefetch;   /* owned: command run before it is its turn; NULL = none */
	char *hook;	   /* owned: shell command at the job's events; NULL = none */
	bool wait_outside; /* waits for processes that takt did not start, wherever it could run */
};

/* It asks for a setting of its GPUs itself, so nobody else chooses one for it. */
static inline bool takt_jobspec_sets_gpus(const struct takt_jobspec *spec)
{
	return spec->clock_ask != TAKT_CLOCK_ASK_NONE || spec->power_limit_mw > 0;
}

/* Defaults, nothing owned. */
void takt_jobspec_init(struct takt_jobspec *spec);
void takt_jobspec_fini(struct takt_jobspec *spec);

/* Checks everything that does not depend on the machine; the message names the field and what would
 * be accepted. */
int takt_jobspec_check(const struct takt_jobspec *spec, struct takt_err *err);

/* The arguments as one would type them, quoted where a shell needs it, cut with "..." to fit. For
 * struct takt_job_view.command. */
void takt_jobspec_command(const struct takt_jobspec *spec, char *ret, size_t size);
/* The same of any words; NULL is none. */
void takt_words_text(char *const *words, char *ret, size_t size);

/* Strict: unknown fields, wrong types and out-of-range values are -TAKT_E_USAGE naming the field;
 * what comes out has passed takt_jobspec_check and has a name. *ret must be initialised; untouched
 * on failure. */
int takt_jobspec_from_json(const char *text, size_t len, struct takt_jobspec *ret,
			   struct takt_err *err);

/* Appends; 0 or the sticky failure of `out`. with_env=false leaves the environment out (what others
 * may see never has it). */
int takt_jobspec_to_json(const struct takt_jobspec *spec, bool with_env, struct takt_str *out);

/* The environment alone, as {"env": [...]}: it is kept apart from what others may see. from_json
 * replaces that of *ret; -TAKT_E_USAGE as above. */
int takt_jobspec_env_to_json(const struct takt_jobspec *spec, struct takt_str *out);
int takt_jobspec_env_from_json(const char *text, size_t len, struct takt_jobspec *ret,
			       struct takt_err *err);

/* Whether the kernel can execute it: -TAKT_E_LIMIT names the field and the limit. */
int takt_jobspec_check_exec(const struct takt_jobspec *spec, struct takt_err *err);

/* One job of an array, with its index and, of a grid, its parameters, which are put in the place of
 * {NAME} in arguments, name, checkpoint directory, prefetch, hook and output. *ret must be
 * initialised; untouched on failure. */
int takt_jobspec_element(const struct takt_jobspec *array, uint64_t array_id, uint32_t index,
			 struct takt_jobspec *ret, struct takt_err *err);

/* As one that no job of the array is larger than, in its JSON form. */
int takt_jobspec_largest(const struct takt_jobspec *array, struct takt_jobspec *ret,
			 struct takt_err *err);

/* Several: {"jobs": [...]} of 1 to TAKT_SPEC_MAX_JOBS, each as above; the message names the one,
 * "jobs[2]: ...". *ret is owned by the caller: takt_jobspecs_free. */
struct takt_jobspecs {
	uint32_t count;
	struct takt_jobspec *jobs;
};
int takt_jobspecs_from_json(const char *text, size_t len, struct takt_jobspecs *ret,
			    struct takt_err *err);
void takt_jobspecs_free(struct takt_jobspecs *specs);

/* The output of one job, with what its %s stand for: %j is the job's number, %a its index in its
 * array and %A the number of that (without an array 0 and the job's own), %x its name. *ret is the
 * caller's; NULL without an output. -ENAMETOOLONG, -ENOMEM. */
int takt_jobspec_output(const struct takt_jobspec *spec, uint64_t job_id, char **ret);

/* What may be changed about a job that waits, or said of one that runs; at least one of them. */
struct takt_job_change {
	bool held;
	bool has_held, has_priority;
	bool checkpoint;	 /* runs: what it did until now is safe */
	bool requeue;		 /* runs: it is ended and waits again; nothing else with it */
	bool has_frozen, frozen; /* runs: its processes stand still, go on */
	int32_t priority;	 /* -1000..1000 */
	/* waits or runs: another promise, another governor */
	bool has_max_slowdown, has_clock_policy;
	uint32_t max_slowdown_permille; /* 0 = as its tenant or the daemon has it */
	char clock_policy[TAKT_SPEC_MAX_CLOCK_POLICY];
	bool has_time_limit;	/* waits or runs */
	uint64_t time_limit_ms; /* 0 = none */
};
/* Strict, as above: -TAKT_E_USAGE names the field. *ret untouched on failure. */
int takt_job_change_from_json(const char *text, size_t len, struct takt_job_change *ret,
			      struct takt_err *err);
int takt_job_change_to_json(const struct takt_job_change *change, struct takt_str *out);

#endif
