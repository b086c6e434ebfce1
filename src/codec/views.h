/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API shows: plain structs and their JSON, both directions, so that the daemon fills what
 * the command line prints and the two cannot disagree. Field names in JSON are the field names here
 * (docs/api.md lists them). A value without its valid bit, empty text and a number whose comment
 * says "= none" or "= not known" are left out of the JSON, never written as 0. Masks of GPUs travel
 * as lists of indices. Text that is not UTF-8 (names of processes may be anything) is repaired with
 * U+FFFD. Whoever reads ignores fields that he does not know, so that an older command line works
 * with a newer daemon; a known field of the wrong type or range, or given twice, is an error that
 * names it.
 *
 * to_json: appends; 0 or the sticky failure of `out`. from_json: *ret is untouched on failure and
 * need not be initialised; -TAKT_E_CORRUPT when the text is not such a view.
 */
#ifndef TAKT_CODEC_VIEWS_H
#define TAKT_CODEC_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/policy_text.h"
#include "base/str.h"

struct takt_jobspec;

enum {
	TAKT_VIEW_MAX_GPUS = 64,
	TAKT_VIEW_MAX_PROCS = 128, /* of a GPU, as many as are sampled */
	TAKT_VIEW_MAX_BYTES = 64 * 1024 * 1024
};

/* Valid bits of struct takt_gpu_view. */
enum takt_view_has {
	TAKT_VIEW_SM = 1u << 0,
	TAKT_VIEW_MEM_CLOCK = 1u << 1,
	TAKT_VIEW_POWER = 1u << 2,
	TAKT_VIEW_POWER_LIMIT = 1u << 3,
	TAKT_VIEW_TEMP = 1u << 4,
	TAKT_VIEW_GPU_UTIL = 1u << 5,
	TAKT_VIEW_MEM_UTIL = 1u << 6,
	TAKT_VIEW_MEMORY = 1u << 7,
	TAKT_VIEW_ENERGY = 1u << 8,
	TAKT_VIEW_THROTTLE = 1u << 9,
	TAKT_VIEW_SM_MAX = 1u << 10,
	TAKT_VIEW_NUMA = 1u << 11,
	TAKT_VIEW_PROCS = 1u << 12,
	TAKT_VIEW_FAN = 1u << 13,
	TAKT_VIEW_PSTATE = 1u << 14,
	TAKT_VIEW_HANDOVER = 1u << 15,
	TAKT_VIEW_SHARES = 1u << 16, /* jobs have shares of it */
	TAKT_VIEW_MARGIN = 1u << 17,
	TAKT_VIEW_MEM_TEMP = 1u << 18,
	TAKT_VIEW_NVLINKS = 1u << 19,
	TAKT_VIEW_PCIE = 1u << 20,
	TAKT_VIEW_PCIE_RATES = 1u << 21,
	TAKT_VIEW_NVLINK_RATES = 1u << 22,
};

struct takt_proc_view {
	int32_t pid;
	uint32_t uid;	  /* UINT32_MAX = not known */
	char user[33];	  /* "" = not known */
	char command[65]; /* first word of the command line; "" = not yours to see */
	uint64_t job_id;  /* 0 = not takt's */
	bool memory_known;
	uint64_t memory_bytes;
	/* Its own part of the GPU's time, and of the memory's, of late. */
	bool util_known;
	uint32_t sm_util_pct, mem_util_pct;
};

/* A job that has a share of a GPU, or one of its MIG instances. */
struct takt_gpu_share_view {
	uint64_t job_id;
	char name[65], user[33]; /* "" = not known, not yours to see */
	uint32_t milli;		 /* of the GPU; 0 = a MIG instance */
	uint32_t mem_mib;	 /* reserved; 0 = not counted */
	char mig_uuid[96];
	bool left; /* it is over; what it leaves is not known to be clean */
};

struct takt_gpu_view {
	uint32_t index, has;
	char uuid[96], name[96], pci_bus_id[32];
	char state[16];	       /* "free", "running", ... of the scheduler */
	char note[240];	       /* why nobody, or not everybody, gets it; "" = nothing to say */
	char clock_state[16];  /* as takt_actuate_gpu_state_name has them */
	char clock_note[160];  /* why CHANGED or what takt advises; "" = nothing to say */
	char health[16];       /* "healthy", "suspect", "quarantined", "lost", of docs/doctor.md */
	char health_note[240]; /* the gravest that was found; "" = nothing to act on */
	char severity[12];     /* of what ails it: "none", "info", "warning", "critical" */
	bool stale, lost;
	bool asleep;	 /* suspended to save power, and left so: there are no readings */
	uint64_t age_ms; /* of its newest reading; asleep: of the last before, 0 = there was none */
	uint32_t sm_mhz, mem_mhz, sm_max_mhz;
	uint32_t lease_min_mhz, lease_max_mhz; /* max 0 = no lease */
	uint32_t power_mw, power_limit_mw;
	int32_t temp_c, numa_node;
	int32_t margin_c; /* to the highest temperature that it is to work at */
	int32_t mem_temp_c;
	uint32_t nvlinks, nvlinks_up;
	uint32_t pcie_gen, pcie_width; /* as they run now */
	uint64_t pcie_sent_bytes_per_s, pcie_received_bytes_per_s;
	uint64_t nvlink_sent_bytes_per_s, nvlink_received_bytes_per_s; /* over all of them */
	uint32_t gpu_util_pct, mem_util_pct, fan_pct, pstate;
	uint32_t power_cap_mw; /* a facility's; 0 = none */
	uint64_t mem_used_bytes, mem_total_bytes, energy_mj;
	uint64_t throttle;	/* device.h enum takt_throttle */
	char throttle_text[96]; /* "sw_power_cap,hw_thermal"; "" = none */
	uint64_t job_id;	/* 0 = none of takt's */
	uint64_t kept_for_job;	/* free, and kept free for this job that waits; 0 = it is not */
	char job_name[65];
	char job_user[33];
	/* HANDOVER: of the newest job that waited for this GPU to become clean, see the report. */
	uint64_t gap_job_id, gap_driver_us, gap_scheduler_us, gap_start_us;
	uint32_t proc_count;
	struct takt_proc_view procs[TAKT_VIEW_MAX_PROCS]; /* proc_count may be larger: the
							      rest is not shown */
	uint32_t share_count;
	struct takt_gpu_share_view shares[16]; /* as procs */
};

struct takt_status_view {
	char hostname[65], driver_version[80], source[16], takt_version[32];
	char cuda_version[16]; /* "12.4", the newest that the driver runs; "" = not known */
	bool simulated;
	bool manages;	       /* false: observe-only */
	char observe_why[240]; /* why it only observes; "" when it manages */
	int32_t pid;
	uint64_t uptime_ms;
	uint32_t waiting, running;
	char state_dir[512];	    /* said to administrators; "" = not said */
	char notes[10][320];	    /* things an administrator should see; "" = none */
	char note_severity[10][12]; /* beside notes: "info", "warning", "critical" */
	uint32_t gpu_count;
	struct takt_gpu_view *gpus; /* owned */
};
void takt_status_view_fini(struct takt_status_view *view);
int takt_status_view_to_json(const struct takt_status_view *view, struct takt_str *out);
int takt_status_view_from_json(const char *text, size_t len, struct takt_status_view *ret,
			       struct takt_err *err);

struct takt_topo_view {
	bool simulated;
	uint32_t gpu_count;
	char name[TAKT_VIEW_MAX_GPUS][96];
	int32_t numa_node[TAKT_VIEW_MAX_GPUS];		      /* -1 = not known */
	char cpu_list[TAKT_VIEW_MAX_GPUS][128];		      /* "0-31,64-95"; "" = not known */
	char link[TAKT_VIEW_MAX_GPUS][TAKT_VIEW_MAX_GPUS][8]; /* "X", "NV18", "PIX", ... "?" */
	int32_t score[TAKT_VIEW_MAX_GPUS][TAKT_VIEW_MAX_GPUS];
	uint64_t best2_mask, best4_mask; /* over all GPUs; 0 = fewer GPUs */
	int64_t best2_sum, best4_sum;
	uint64_t free_best2_mask, free_best4_mask; /* over the free ones */
};
int takt_topo_view_to_json(const struct takt_topo_view *view, struct takt_str *out);
int takt_topo_view_from_json(const char *text, size_t len, struct takt_topo_view *ret,
			     struct takt_err *err);

/* Valid bits of struct takt_report_view. */
enum takt_report_view_has {
	TAKT_RV_WALL = 1u << 0,
	TAKT_RV_ENERGY = 1u << 1,
	TAKT_RV_MEAN_SM = 1u << 2,
	TAKT_RV_THROTTLED = 1u << 3,
	TAKT_RV_PEAK_MEMORY = 1u << 4,
	TAKT_RV_UTIL = 1u << 5,
	TAKT_RV_HANDOVER = 1u << 6,
	TAKT_RV_SAVED = 1u << 7,
	TAKT_RV_SM_SPREAD = 1u << 8,
};
struct takt_report_view {
	uint32_t has;
	bool simulated;
	uint64_t wall_ms, energy_mj, throttled_ms, peak_memory_bytes;
	uint64_t idle_ms; /* UTIL: summed over its GPUs, held and nothing ran */
	uint32_t mean_sm_mhz, mean_util_permille;
	uint32_t sm_spread_mhz; /* of several GPUs: how far their mean clocks were apart */
	/* HANDOVER, of a job that waited for a GPU to become clean: from the end of the job before
	 * it until the driver showed it clean, from there until it was given to the engine, and
	 * until it ran. */
	uint64_t gap_driver_us, gap_scheduler_us, gap_start_us;
	char energy_why_not[64];
	char throttle_text[96];
	char governor[32]; /* that chose its clocks; "" = none did */
	/* SAVED: by it, over the epochs that tell. highest: modelled, the same work at the highest
	 * clock, with its standard error; that of the signal is in it. */
	uint64_t governed_mj, highest_mj;
	uint32_t highest_error_permille, slowdown_error_permille;
	int32_t slowdown_permille;
	char work_signal[16]; /* what that rests on: "job", "counters", "utilisation" */
};

/* A running job's governor; state "" = it has none. */
struct takt_governed_view {
	char state[12];	 /* "asking", "holds", "advises", "rests", "over" */
	char note[200];	 /* why its wish is not in force */
	char reason[24]; /* stable name of why it wishes so */
	char text[240];	 /* the same in a sentence with figures */
	/* How it knows the job's speed: "job", "counters", "utilisation"; "" = it does not. Its
	 * error of its own, as far as known: clock/savings.h; 0 = none. */
	char signal[16];
	uint32_t signal_error_permille;
	char ahead[200]; /* who forecasts its load, or why nobody does; "" = it does not look */
	uint32_t max_slowdown_permille; /* that it keeps to, a default too; 0 = none */
	uint32_t min_mhz, max_mhz;	/* wished for; 0 = the default */
	uint32_t power_limit_mw;	/* the same */
	uint32_t epochs;
	uint64_t first_applied_us; /* from the job's start until the first wish was read back */
};

/* What a job says of how far it is (include/takt/progress.h). Bits: told by the job; and, shifted
 * by TAKT_PV_RATE_SHIFT, a rate is known: over the last minute, or after its end over its run. */
enum takt_progress_view_has {
	TAKT_PV_STEPS = 1u << 0,
	TAKT_PV_TOKENS = 1u << 1,
	TAKT_PV_QUERIES = 1u << 2,
	TAKT_PV_LATENCY = 1u << 3,
	TAKT_PV_RATE_SHIFT = 4,
	TAKT_PV_STEPS_RATE = 1u << 4,
	TAKT_PV_TOKENS_RATE = 1u << 5,
	TAKT_PV_QUERIES_RATE = 1u << 6,
	TAKT_PV_SKEW = 1u << 7, /* several ranks tell: the three of them */
};
struct takt_progress_view {
	uint32_t has;
	uint64_t steps, tokens, queries, latency_us;
	uint64_t steps_milli_s, tokens_milli_s, queries_milli_s; /* thousandths a second */
	uint64_t age_ms;			     /* since it said so; 0 after its end */
	uint32_t ranks, slowest_rank, skew_permille; /* how far that is behind the fastest */
};

/* When a job that waits starts, by the wall clock; 0 = not known, of each. */
struct takt_start_view {
	int64_t starts_ms;		       /* as planned; never in the past */
	int64_t starts_low_ms, starts_high_ms; /* eight in ten start between these */
	int64_t starts_overdue_ms;	       /* what was predicted first, and has gone by */
};

struct takt_job_view {
	bool simulated;
	uint64_t id;
	char name[65], user[33], state[16];
	uint32_t uid;
	uint32_t gpus;
	int32_t priority;
	bool mine; /* the asker's own: command, directory and message are filled only then (or for
		      root) */
	char command[256]; /* arguments joined for people */
	char cwd[256];
	uint32_t attempt;
	uint32_t gpu_list_count;
	uint32_t gpu_list[TAKT_VIEW_MAX_GPUS];	    /* of the latest attempt */
	char gpu_uuid[TAKT_VIEW_MAX_GPUS][96];	    /* beside gpu_list; "" = not on record */
	int64_t submitted_ms, started_ms, ended_ms; /* wall clock; 0 = not yet */
	bool has_exit_code;
	int32_t exit_code, exit_signal; /* signal 0 = none */
	int32_t pid;			/* 0 = not running */
	/* Why it is being ended or has ended; of one that waits again, why its attempt did. A
	 * stable name, "gpu_lost" (docs/job.md), "" = nothing is known but how it exited; and a
	 * sentence. */
	char cause[16], cause_text[96];
	bool has_cause_gpu;
	uint32_t cause_gpu;  /* of gpu_*: which, where that is known */
	uint32_t cause_xid;  /* 0 = none was heard */
	int64_t cause_at_ms; /* wall clock, when takt saw it; 0 = not known */
	char message[200];
	uint64_t array_id; /* the first of its array; 0 = of none */
	uint32_t array_index, array_limit;
	uint32_t cpu_milli, gpu_mem_mib; /* asked for; 0 = not */
	uint64_t mem_mib;
	uint64_t time_limit_ms;		      /* 0 = none */
	int64_t begin_ms, retry_at_ms;	      /* wall clock: not before; 0 = no such wait */
	uint32_t retries, failures, restarts; /* allowed; attempts that failed; times run again */
	char after[128];		      /* "12 13:any ..."; "" = none */
	/* The terms, as in the description; texts only when it is `mine`. */
	uint32_t gpu_milli;   /* 0 = whole GPUs */
	uint64_t gpu_indices; /* among which its GPUs are; 0 = any */
	char mig[32];	      /* "" = no instances */
	bool preemptible, freezable, pty, stage, wait_outside;
	int32_t checkpoint_signal; /* 0 = none, as of those below */
	uint32_t checkpoint_grace_ms, ranks;
	uint64_t estimate_ms, idle_release_ms;
	char clock_policy[TAKT_POLICY_TEXT];			      /* "" = by the rest */
	uint32_t max_slowdown_permille, slo_latency_us, slo_permille; /* 0 = none */
	uint64_t retry_backoff_ms;				      /* 0 = no retries */
	int64_t deadline_ms;
	char tenant[64], tags[256], container[256], container_runtime[16], checkpoint_dir[256];
	char prefetch[256], hook[256], output[256]; /* as typed */
	char params[256];			    /* of its grid: "lr=0.1 seed=3" */
	char health_note[280];	  /* running: the first of its GPUs that is not healthy; else "" */
	char health_severity[12]; /* of the gravest of its GPUs, as in the status view; "" = none */
	char stray_note[320]; /* running: what it does on GPUs that were not given to it; else "" */
	char terminal[600];   /* running, with one: path of its socket (base/terminal.h); else "" */
	/* How long it is thought to run, and where that is known from: "owner", "history", "limit",
	 * "outlived"; 0 = not known. Errors: by how much such predictions were off on average. */
	uint64_t run_ms, run_error_ms;
	bool has_run_error;
	char run_from[12];
	struct takt_start_view start;
	uint64_t starts_gpus; /* waiting: a mask, where the plan means it to start */
	uint32_t preemptions; /* times it was ended for others */
	uint64_t room_for;    /* the job that it makes, or made, room for; 0 = none */
	/* Its user's place among those who share, 1 is served first; 0 = nothing is shared. */
	uint32_t share_place, share_of;
	uint64_t share_used_gpu_s; /* GPU time that counts still, decayed */
	bool frozen;		   /* running: all its processes stand still */
	int64_t checkpoint_ms;	   /* its last, of this run; 0 = none */
	char held[8];		   /* waiting: "owner" or "admin" holds it; else "" */
	char why[24];		   /* waiting: stable name of the reason; else "" */
	char why_text[480];	   /* a sentence, and who stands in the way */
	char why_words[64];	   /* the same in a few words, for a table; "" = there are none */
	/* Its last start was refused: a stable name of what kept it ("isolation", docs/queue.md),
	 * "" = it was not; by which program; a sentence; how often in a row, since when. It is
	 * tried again at retry_at_ms. */
	char refused[16], refused_by[16], refused_text[320];
	uint32_t refused_tries;
	int64_t refused_since_ms;
	uint32_t clock_min_mhz, clock_max_mhz; /* 0 = no clock asked for */
	uint32_t power_limit_mw;	       /* asked for of each GPU; 0 = none */
	char clock_note[200]; /* "applied [210,1410] MHz", "advice only: no permission", "gap of 1.2
				 s while ..." */
	char isolation[12];   /* "devices": it can open its GPUs alone and its limits hold; or
				 "advisory"; "" = not known, or no attempt yet */
	char isolation_note[160]; /* why it is advisory */
	uint64_t last_peak_bytes; /* of one GPU, the last job of its owner's and name; 0 = not known
				   */
	char memory_hint[160];	  /* that was more than this one asks for; "" = it was not */
	uint32_t gpu_mem_held_mib; /* reserved on each GPU, of a share; 0 = not counted */
	char memory[24]; /* "enforced by MIG", "enforced by MPS", "watched", "whole GPU" */
	/* Of one job that is `mine`, where it printed more than this many bytes are kept of (0 = it
	 * did not): bytes of its log that are not there, until 0 = from there on, again and again.
	 */
	uint64_t output_kept, output_cut_from, output_cut_to;
	struct takt_report_view report;
	struct takt_governed_view governed;
	struct takt_progress_view progress; /* of one job that is `mine`; lists go without */
};
/* Fills in the terms out of the description; the texts only when they are the asker's `own`. */
void takt_job_view_terms(const struct takt_jobspec *spec, bool own, struct takt_job_view *ret);
int takt_job_view_to_json(const struct takt_job_view *view, struct takt_str *out);
int takt_job_view_from_json(const char *text, size_t len, struct takt_job_view *ret,
			    struct takt_err *err);

/*
 * The queue as the command line reads it. The daemon never holds one (a job view is 9 KB): it
 * writes the same JSON job by job with the three functions below.
 */
struct takt_queue_view {
	bool simulated;
	uint64_t total; /* jobs there are; more than count = the list was cut */
	uint64_t next;	/* of ended ones: there may be more below this number; 0 = there are none */
	size_t count;
	struct takt_job_view *jobs; /* owned; running first, then waiting in queue order */
};
void takt_queue_view_fini(struct takt_queue_view *view);
int takt_queue_view_from_json(const char *text, size_t len, struct takt_queue_view *ret,
			      struct takt_err *err);
int takt_queue_json_begin(struct takt_str *out, bool simulated);
int takt_queue_json_job(struct takt_str *out, const struct takt_job_view *view);
int takt_queue_json_end(struct takt_str *out, uint64_t total, uint64_t next);

enum {
	TAKT_VIEW_MAX_RUNS = 8
};
/* Jobs of an array of which the same is to be expected. */
struct takt_try_run_view {
	uint32_t first, last; /* indices */
	bool starts;
	uint64_t gpu_list;	 /* a mask; of those that start, together */
	char why[24], text[320]; /* else */
	struct takt_start_view start;
};
/* A job that was not handed in: where and when it would start; of an array its first job, and its
 * jobs in runs. */
struct takt_try_view {
	bool simulated;
	bool starts; /* at once, on these GPUs */
	uint32_t gpu_list_count;
	uint32_t gpu_list[TAKT_VIEW_MAX_GPUS];
	char why[24], text[320];      /* else: why it waits */
	uint32_t ahead;		      /* waiting jobs that go first */
	struct takt_start_view start; /* these as in the view of a job */
	uint64_t run_ms;
	char run_from[12];
	uint32_t array_count; /* runs; 0 = no array */
	struct takt_try_run_view array[TAKT_VIEW_MAX_RUNS];
	uint32_t more; /* jobs of it after those */
};
int takt_try_view_to_json(const struct takt_try_view *view, struct takt_str *out);
/* {"jobs": [...]} of so many. */
int takt_try_views_to_json(const struct takt_try_view *views, uint32_t count, struct takt_str *out);
int takt_try_views_from_json(const char *text, size_t len, uint32_t count,
			     struct takt_try_view *ret, struct takt_err *err);
int takt_try_view_from_json(const char *text, size_t len, struct takt_try_view *ret,
			    struct takt_err *err);

/* explain: the plan's word on one waiting job, with the numbers behind it. */
struct takt_explain_view {
	bool simulated;
	uint64_t id;
	char state[16], why[24], text[480];
	bool counted; /* a plan has seen it wait: the numbers are the plan's; else they are left out
		       */
	uint32_t need, total, free, running, draining, outside, unhealthy, promised, kept, must_end;
	uint64_t behind_job;
	uint32_t ahead; /* waiting jobs of higher rank */
	/* These as in the view of a job. */
	int64_t retry_at_ms, refused_since_ms;
	uint32_t refused_tries;
	struct takt_start_view start;
	uint64_t run_ms;
	char run_from[12];
};
int takt_explain_view_to_json(const struct takt_explain_view *view, struct takt_str *out);
int takt_explain_view_from_json(const char *text, size_t len, struct takt_explain_view *ret,
				struct takt_err *err);

/* What came of reading the configuration again: names of settings, commas between them. */
struct takt_reload_view {
	char changed[600];	/* that count from now on */
	char need_restart[600]; /* that differ from what is in force, until takt starts again */
};
int takt_reload_view_to_json(const struct takt_reload_view *view, struct takt_str *out);
int takt_reload_view_from_json(const char *text, size_t len, struct takt_reload_view *ret,
			       struct takt_err *err);

/* {"error": {"name": "IMPOSSIBLE", "message": "..."}} */
int takt_error_to_json(const struct takt_err *error, struct takt_str *out);
/* Fills *ret_error from such a body. */
int takt_error_from_json(const char *text, size_t len, struct takt_err *ret_error);

/* What is asked of the clocks of GPUs; it holds until it is reset or the job ends. */
struct takt_clock_order {
	uint32_t max_mhz;	 /* SM clock at most so high; 0 = no such wish */
	uint32_t mem_mhz;	 /* the same of the memory clock */
	bool lock;		 /* exactly so high */
	uint32_t power_limit_mw; /* 0 = as it is; never above that */
	bool benchmark; /* on GPUs that a job of the asker's holds alone: outranks all others */
	bool assume_unlocked; /* an administrator's word: nobody else has locked the SM clock */
};

/* The ceiling of this machine's CPUs. */
struct takt_cpu_clock {
	uint32_t max_mhz; /* 0 = takt limits none */
	bool changed;	  /* they should be as they were found and are not */
	char note[160];	  /* why */
};

/* What all GPUs may draw together (power_budget_w). */
struct takt_budget_view {
	uint32_t watts; /* 0 = there is no budget */
	bool has_drawn; /* the power of every GPU is known */
	uint32_t drawn_mw;
	char note[200]; /* why it is not kept; "" = it is */
};

/* Clocks, one entry a GPU, as in the status view; only these fields travel. */
struct takt_clock_view {
	bool simulated;
	struct takt_cpu_clock cpu;
	struct takt_budget_view budget;
	uint32_t gpu_count;
	struct takt_clock_gpu {
		uint32_t index;
		char uuid[96], name[96], clock_state[16], note[160];
		char severity[12]; /* as in the status view */
		bool has_sm;
		uint32_t sm_mhz, list_min_mhz, list_max_mhz, lease_min_mhz, lease_max_mhz;
		bool has_mem;
		uint32_t mem_mhz, lease_mem_min_mhz, lease_mem_max_mhz; /* max 0 = no lease */
		bool persistence_off; /* known to be: settings go with the last program */
		uint64_t lease_job;   /* 0 = an administrator's or none */
		/* Of power limits; 0 = not known, or there is none. */
		uint32_t power_limit_mw, power_min_mw, power_max_mw, lease_power_mw, cap_power_mw;
		char cap_why[160]; /* "root: the rack's fuse"; "" = nobody said */
		/* Declared as the baseline; 0 = the driver's own, what was found. */
		uint32_t base_min_mhz, base_max_mhz, base_power_mw;
		char base_mig[80]; /* declared to be cut so; "" = as it was found */
		bool has_draw;
		uint32_t draw_mw; /* measured */
		/* Of the machine's budget: its job's share of it ("job 7"), or what it counts with
		 * for want of one: its "limit", what was "drawn", nothing ("unknown"); "" = there
		 * is no budget. */
		uint32_t budget_mw;
		char budget_for[32];
	} gpu[TAKT_VIEW_MAX_GPUS];
};
int takt_clock_view_to_json(const struct takt_clock_view *view, struct takt_str *out);
int takt_clock_view_from_json(const char *text, size_t len, struct takt_clock_view *ret,
			      struct takt_err *err);

#endif
