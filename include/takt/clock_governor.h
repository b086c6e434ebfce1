/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Governors: what was observed of one GPU in, a wish for its clocks out.
 *
 * A governor touches nothing. It is told once what board and job it is for, then, at the end of
 * each epoch (a few seconds), what the epoch was like, and answers with the range of clocks that it
 * would like from now on. Whoever called it clamps, journals, applies and reads back the wish, or
 * only shows it. The same governors run in the daemon, in `takt replay-clocks` on measured tables,
 * and in tests.
 *
 * Pure: a step is a function of the setup, the state and the observation. No clock, file, variable
 * of its own or allocation; instants and a seed are arguments. The state is plain bytes without
 * pointers, owned by the caller: it may be copied, stored and brought back in another process with
 * an equal setup, and the governor goes on as if nothing had been.
 *
 * A governor of your own, in a shared object:
 *
 *	cc -shared -fPIC -o mine.so mine.c
 *	takt replay-clocks --points POINTS.csv --governor assured,./mine.so
 *	governors = /usr/local/lib/takt/mine.so		(takt.conf: live, for all jobs to name)
 *
 *	const struct takt_governor takt_governor_entry = {
 *		.abi = TAKT_GOVERNOR_ABI, .name = "mine", .state_bytes = sizeof(struct mine),
 *		.init = init, .step = step,
 *	};
 *
 * It is called from several threads at a time, each with a state of its own.
 */
#ifndef TAKT_GOVERNOR_H
#define TAKT_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when what is below changes; an object for another number is refused. */
#define TAKT_GOVERNOR_ABI 1u

enum {
	TAKT_GOVERNOR_MAX_CLOCKS = 512,
	TAKT_GOVERNOR_MAX_PARAMS = 32,
	TAKT_GOVERNOR_MAX_PROFILE = 64,
};

/* What turns the board, from the driver's lists and constraints and nowhere else. */
enum takt_governor_actuator {
	TAKT_ACTUATE_CLOCKS = 1u << 0,
	TAKT_ACTUATE_POWER = 1u << 1,
};

struct takt_governor_board {
	uint32_t can; /* enum takt_governor_actuator */
	/* With CLOCKS: settable SM clocks, strictly ascending, at most TAKT_GOVERNOR_MAX_CLOCKS. */
	const uint32_t *sm_mhz;
	size_t sm_count;
	bool has_base_mhz; /* the clock that the board holds at its power limit, if it says so */
	uint32_t base_mhz;
	/* With POWER: the limits' range, and the value that stands without us. */
	uint32_t power_min_mw, power_max_mw, power_default_mw;
	uint32_t power_step_mw; /* finest step that makes sense; 0 = any */
};

/* One setting of a job's profile (`takt tune`, or earlier runs): relative to the highest clock. */
struct takt_governor_point {
	uint32_t sm_mhz;
	double time;   /* for the same work; 1 at the highest clock */
	double energy; /* for the same work; 1 at the highest clock */
	double error;  /* relative standard error of both; 0 = not known */
};

struct takt_governor_job {
	bool has_promise;
	uint32_t max_slowdown_permille; /* of the job's whole time, 50 = 5 % */
	bool has_latency;
	uint32_t latency_target_us; /* of a serving job, at latency_permille (990 = p99) */
	uint32_t latency_permille;
	const char *name;      /* NULL = none */
	const char *signature; /* equal for runs that are expected to behave alike; NULL = none */
	const struct takt_governor_point *profile; /* ascending in sm_mhz */
	size_t profile_count;
};

struct takt_governor_param {
	const char *name; /* says its unit: "sm_mhz", "eta_permille" */
	int64_t value;
};

/* Borrowed, and the same in every call for one state. */
struct takt_governor_setup {
	struct takt_governor_board board;
	struct takt_governor_job job;
	const struct takt_governor_param *params;
	size_t param_count;
	uint64_t seed; /* for governors that draw */
};

/* Whose word the performance signal is, the better the larger. */
enum takt_governor_signal {
	TAKT_SIGNAL_NONE,
	TAKT_SIGNAL_UTILISATION, /* driver's utilisation times clock */
	TAKT_SIGNAL_COUNTERS,	 /* activity counters */
	TAKT_SIGNAL_JOB,	 /* the job's own steps, tokens, queries */
};

/* Which fields of an observation mean something. */
enum takt_governor_has {
	TAKT_OBSERVED_WORK = 1u << 0,	   /* work, signal, work_error */
	TAKT_OBSERVED_ENERGY = 1u << 1,	   /* energy_mj */
	TAKT_OBSERVED_POWER = 1u << 2,	   /* power_mw */
	TAKT_OBSERVED_SM_CLOCK = 1u << 3,  /* sm_mhz */
	TAKT_OBSERVED_MEM_CLOCK = 1u << 4, /* mem_mhz */
	TAKT_OBSERVED_GPU_UTIL = 1u << 5,
	TAKT_OBSERVED_MEM_UTIL = 1u << 6,
	TAKT_OBSERVED_DRAM = 1u << 7,
	TAKT_OBSERVED_SM = 1u << 8,
	TAKT_OBSERVED_TENSOR = 1u << 9,
	TAKT_OBSERVED_TEMP = 1u << 10,
	TAKT_OBSERVED_THROTTLE = 1u << 11,
	TAKT_OBSERVED_REMAINING = 1u << 12,
	TAKT_OBSERVED_LATENCY = 1u << 13,
	TAKT_OBSERVED_LOAD = 1u << 14,
	TAKT_OBSERVED_LOAD_AHEAD = 1u << 15,
	TAKT_OBSERVED_BUDGET = 1u << 16,
};

/* A setting of the actuator; a field holds only with its bit in `sets`. */
struct takt_governor_cap {
	uint32_t sets; /* enum takt_governor_actuator; 0 = nothing is held */
	uint32_t min_mhz, max_mhz;
	uint32_t power_mw;
};

/* One epoch: from the moment the setting in force was there until now. */
struct takt_governor_observation {
	uint32_t has;	   /* enum takt_governor_has */
	uint64_t now_ns;   /* monotonic */
	uint64_t epoch_ns; /* what the sums and means below cover */
	/* Since the epoch before it, while a change took effect: not covered below, but spent. */
	uint64_t gap_ns;
	struct takt_governor_cap cap; /* in force throughout */
	bool foreign;		      /* somebody else sets this board's clocks */
	bool idle;		      /* nothing ran on it */

	/* Progress in any unit that stays the same for the job; a rate is work / epoch_ns. */
	double work;
	enum takt_governor_signal signal;
	double work_error; /* relative standard error of `work`; 0 = not known */

	uint64_t energy_mj;
	uint32_t power_mw; /* mean */
	uint32_t sm_mhz;   /* mean */
	uint32_t mem_mhz;
	uint32_t gpu_util_permille, mem_util_permille;
	uint32_t dram_active_permille, sm_active_permille, tensor_active_permille;
	int32_t temp_c;
	uint64_t throttle;     /* bits as the driver numbers them, any moment of the epoch */
	uint64_t remaining_ns; /* of the job, as expected at the highest clock */
	uint32_t latency_us;   /* at the job's latency_permille, in the epoch */
	double load;	       /* of a serving job: requests a second; ahead: as forecast */
	double load_ahead;
	uint32_t budget_mw; /* this board's share of a machine's power */
};

/* Why, for people and for statistics: enum name, name for machines, sentence. */
#define TAKT_GOVERNOR_REASONS(X)                                                                 \
	X(OBSERVE, "observe", "changes nothing")                                                 \
	X(FIXED, "fixed", "the range that was asked for")                                        \
	X(MAXIMUM, "maximum", "the highest clock")                                               \
	X(NO_SIGNAL, "no_signal", "nothing says how fast the job is")                            \
	X(NO_PROMISE, "no_promise", "no slowdown was promised")                                  \
	X(SHORT_JOB, "short_job", "the job is too short to settle")                              \
	X(IDLE, "idle", "nothing runs")                                                          \
	X(FOREIGN, "foreign", "somebody else sets these clocks")                                 \
	X(THROTTLED, "throttled", "the board slows itself down")                                 \
	X(REFERENCE, "reference", "measures the highest clock")                                  \
	X(PROBE, "probe", "measures a setting to learn from it")                                 \
	X(SETTLING, "settling", "as low as what is known so far allows")                         \
	X(HOLD, "hold", "least energy within the promise")                                       \
	X(BUDGET_SPENT, "budget_spent", "the promised slowdown is used up; earns it back")       \
	X(PHASE_CHANGE, "phase_change", "the job behaves otherwise than before; measures again") \
	X(UTILISATION, "utilisation", "by utilisation")                                          \
	X(STEP_DOWN, "step_down", "a step down")                                                 \
	X(STEP_UP, "step_up", "a step up")                                                       \
	X(MEMORY_BOUND, "memory_bound", "memory is the limit")                                   \
	X(EXPLORE, "explore", "tries a setting")                                                 \
	X(LEARNED, "learned", "best of what was tried")                                          \
	X(POWER_SHARE, "power_share", "its share of the machine's power")                        \
	X(LATENCY, "latency", "lowest that holds the latency")                                   \
	X(FORECAST, "forecast", "load is expected to rise")

enum takt_governor_reason {
#define X(reason, name, text) TAKT_REASON_##reason,
	TAKT_GOVERNOR_REASONS(X)
#undef X
	TAKT_REASONS,
};

/* What the governor would like. `cap.sets` 0: the board as it is without us. */
struct takt_governor_wish {
	struct takt_governor_cap cap; /* min_mhz 0 = the board's lowest, which is what to ask for */
	uint64_t ttl_ns; /* void when not renewed until then; 0 = the caller's choice */
	enum takt_governor_reason reason;
	bool probe; /* held to learn, not because it is thought best */
	/* For sharing out a machine's power: relative performance gained a watt; 0 = no bid. */
	double bid;
};

struct takt_governor {
	uint32_t abi;		/* TAKT_GOVERNOR_ABI */
	const char *name;	/* a-z, 0-9 and '-', shorter than 32 */
	const char *summary;	/* one line for help texts */
	const char *params;	/* names it takes, separated by blanks; NULL = none */
	size_t state_bytes;	/* aligned as for malloc; may be 0 */
	uint32_t state_version; /* of the bytes; stored states of another are not brought back */
	/* Fills the state, from any bytes; optional: zeros. Negative refuses: message says why. */
	int (*init)(void *state, const struct takt_governor_setup *setup, char *message,
		    size_t message_size);
	/*
	 * One epoch. *ret is all 0 before. The first call is before the first epoch: its
	 * observation has no bits and epoch_ns 0.
	 */
	void (*step)(void *state, const struct takt_governor_setup *setup,
		     const struct takt_governor_observation *seen, struct takt_governor_wish *ret);
	/* Optional: what is behind the last wish, in one sentence with its figures. */
	void (*explain)(const void *state, const struct takt_governor_setup *setup, char *text,
			size_t text_size);
};

/* What the object defines; found by name however it is compiled. */
extern const struct takt_governor takt_governor_entry __attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif

#endif
