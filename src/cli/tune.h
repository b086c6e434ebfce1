/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt tune: a command at several clocks and power limits, what it does and uses at each, and which
 * setting costs least within a promised slowdown.
 *
 * Outside a job it hands itself in as one (verb_tune.c), so that a GPU is taken and given back as
 * any job's. Within it the sweep sets the job's own GPUs under a benchmark lease, which ends with
 * the job however that ends.
 */
#ifndef TAKT_CLI_TUNE_H
#define TAKT_CLI_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/verb.h"
#include "sim/sha256.h"
#include "takt/progress.h"

/* "TFLOP" for many, too; "steps" of steps. */
#define TAKT_TUNE_PLURAL(unit) ((unit)[0] >= 'a' ? "s" : "")

enum {
	TAKT_TUNE_MAX_POINTS = 128,
	TAKT_TUNE_MAX_REPEATS = 100,
	TAKT_TUNE_UNIT = 16,
};

/* What a run wrote, see tune_same.c. */
struct takt_tune_written {
	char all[TAKT_SHA256_TEXT]; /* "" = nothing is known */
	uint64_t lines[4];
};

/* One run of the work. NAN: not known. */
struct takt_tune_sample {
	double performance;	   /* of `unit` a second: more is better */
	double power_w;		   /* mean, of all its GPUs */
	double sm_mhz;		   /* mean */
	double energy_j;	   /* of one `unit` */
	char unit[TAKT_TUNE_UNIT]; /* "run", "step", "TFLOP": the same in all samples */
	uint32_t ranks;		   /* that told their progress; 0 = it is not by progress */
	uint32_t slowest_rank;	   /* of two and more, by steps or tokens */
	struct takt_tune_written written;
};

struct takt_tune_value {
	double mean, half95; /* NAN mean: not known; NAN half95: of one sample only */
};

struct takt_tune_point {
	uint32_t sm_mhz;	 /* at most */
	uint32_t power_limit_mw; /* 0 = as it is */
	uint32_t count;
	struct takt_tune_sample samples[TAKT_TUNE_MAX_REPEATS];
	/* Filled by takt_tune_judge. */
	struct takt_tune_value performance, power_w, energy_j, slowdown_pct, saved_pct;
	double measured_sm_mhz;
	bool front;   /* no other is both faster and cheaper */
	bool differs; /* something else came out than at the highest clock: not recommended */
};

/* points[0] is the reference: the highest clock, no power limit. */
struct takt_tune_result {
	uint32_t count;
	struct takt_tune_point points[TAKT_TUNE_MAX_POINTS];
	double max_slowdown_pct;
	int recommended; /* index; -1 = none: nothing measured, or no energy known */
	bool simulated;
	char gpu_name[96];
	uint32_t gpus;
	uint64_t seed;
	uint32_t repeats;
	struct takt_tune_written warm_up; /* of the run before those that count */
	char command[256];
	char advice[240];     /* why clocks were not set; "" = they were */
	char stopped[240];    /* why it ended early; "" = it did not */
	char deaf[240];	      /* why XIDs and ECC errors were not seen; "" = they would have been */
	const char *compared; /* static: "output", "product", "copy"; NULL = nothing was */
	char not_compared[120]; /* why not */
};

/*
 * Means with the half of their 95 % interval (Student's t), slowdown and saving against points[0],
 * the Pareto front of slowdown and energy, and the recommendation: least energy among the points
 * whose slowdown, its error added, is within max_slowdown_pct and that do not differ. Points
 * without samples stay out of all of it; one sample has no error. Pure.
 */
void takt_tune_judge(struct takt_tune_result *result);

/* Which settings: `steps` clocks evenly from max_mhz down to min_mhz, or those listed (each within
 * the range); then each power limit (W) at the highest clock. The reference comes first. */
struct takt_tune_axes {
	const char *clocks; /* "1980,1410"; NULL = steps */
	uint32_t steps;
	const char *power_limits; /* "300,400"; NULL = none */
};
int takt_tune_settings(const struct takt_tune_axes *axes, uint32_t min_mhz, uint32_t max_mhz,
		       struct takt_tune_result *result, struct takt_err *err);

/* tune_meter.c: takt-bench behind pipes. */
struct takt_tune_meter {
	int32_t pid; /* 0 = not running */
	int in_fd, out_fd;
	uint32_t gpus; /* that it reads */
	bool simulated;
	char gpu_name[96];
	char deaf[240];
	char event[96]; /* what went wrong since it was started; "" = nothing */
	char line[512];
	size_t line_len;
};
struct takt_tune_mark {
	uint64_t at_ns;
	bool has_energy;
	unsigned long long energy_mj, power_sum_mw, power_count, sm_sum_mhz, sm_count;
};
int takt_tune_meter_start(const char *program, char *const *uuids, uint32_t count,
			  struct takt_tune_meter *ret, struct takt_err *err);
/* Takes in what it says; -TAKT_E_UNAVAILABLE when it is gone. */
int takt_tune_meter_listen(struct takt_tune_meter *meter, struct takt_err *err);
int takt_tune_meter_mark(struct takt_tune_meter *meter, struct takt_tune_mark *ret,
			 struct takt_err *err);
void takt_tune_meter_stop(struct takt_tune_meter *meter);
/* Power and clock between two marks of so many GPUs: of power their sum. */
void takt_tune_use_marks(const struct takt_tune_mark *a, const struct takt_tune_mark *b,
			 uint32_t gpus, struct takt_tune_sample *ret);

/* tune_told.c: where each rank was when it first told its progress in a run, and last. */
struct takt_tune_rank {
	uint32_t has;
	uint64_t first[3], last[3]; /* steps, tokens, queries */
	uint64_t first_ns, last_ns;
};
struct takt_tune_told {
	struct takt_tune_rank rank[TAKT_PROGRESS_MAX_RANKS];
};
/* What the file says now; NULL and no file say nothing. */
void takt_tune_look(struct takt_tune_told *told, const char *path);
uint32_t takt_tune_ranks(const struct takt_tune_told *told);
/*
 * performance, unit and ranks by the first of steps, tokens and queries that is told: of steps and
 * tokens the slowest rank's, which the others wait for, of queries all ranks' together. False: none
 * is told, or by a rank too seldom to say how fast it is.
 */
bool takt_tune_rate_told(const struct takt_tune_told *told, struct takt_tune_sample *ret);

/*
 * tune_same.c: whether a run wrote what another one wrote. Lines of ranks come in any order, so of
 * several ranks the same lines are the same output: each line's hash is added up.
 */
struct takt_tune_output {
	struct takt_sha256 all, line;
	bool in_line; /* something follows the last end of a line */
	uint64_t lines[4];
};
void takt_tune_output_init(struct takt_tune_output *output);
void takt_tune_output_add(struct takt_tune_output *output, const char *bytes, size_t n);
void takt_tune_output_end(struct takt_tune_output *output, struct takt_tune_written *ret);
bool takt_tune_same(const struct takt_tune_written *a, const struct takt_tune_written *b,
		    bool any_order);
/* After the sweep: which settings' runs differ from the first one at the reference, if those there
 * agree; if they do not, nothing was compared. The warm-up may say what no other run says (that it
 * compiles), so it is asked only where one run alone would have to say what is usual. Pure. */
void takt_tune_note_same(struct takt_tune_result *result);
/* From the first run at the reference. Pure. */
bool takt_tune_warm_up_differs(const struct takt_tune_result *result);

/* tune_run.c: the command, once. */
enum takt_tune_compare {
	TAKT_TUNE_COMPARE_NONE,
	/* A difference is noted: where runs at the reference differ, too, it says nothing. */
	TAKT_TUNE_COMPARE_NOTE,
	TAKT_TUNE_COMPARE_STOP, /* the first difference is an error */
};
enum takt_tune_metric {
	TAKT_TUNE_AUTO, /* progress if the first run tells any, else time */
	TAKT_TUNE_PROGRESS,
	TAKT_TUNE_TIME,
	TAKT_TUNE_SAID, /* takt bench gpu's own word */
};
struct takt_tune_work {
	char **argv; /* borrowed, NULL-terminated */
	enum takt_tune_metric metric;
	uint64_t for_ms;   /* ended after so long; 0 = runs to its end */
	const char *check; /* shell command that must succeed after each run; NULL = none */
	enum takt_tune_compare compare; /* of its output, of the benchmark what it worked out */
	struct takt_tune_written first; /* of the first run; COMPARE_STOP goes by it */
	int owner_fd; /* readable when whoever asked for it is gone; -1 = nobody */
};
int takt_tune_run(struct takt_tune_work *work, struct takt_tune_meter *meter,
		  struct takt_tune_sample *ret, struct takt_err *err);

/* tune_output.c, tune_plot.c */
void takt_tune_print(struct takt_cli *cli, const struct takt_tune_result *result);
void takt_tune_json(const struct takt_tune_result *result, struct takt_str *out);
void takt_tune_csv(const struct takt_tune_result *result, struct takt_str *out);
void takt_tune_plot(const struct takt_tune_result *result, unsigned width, struct takt_str *out);
/* --csv, --svg, --png, --html FILE */
int takt_tune_write_files(const struct takt_cli *cli, const struct takt_tune_result *result,
			  struct takt_err *err);
/* Before anything is measured: whether they can be written, and the chart be drawn. Creates none
 * that is not there. */
int takt_tune_check_files(const struct takt_cli *cli, struct takt_err *err);

/* verb_tune.c: the command as it was understood, its program being `self`; the words are owned.
 * NULL without memory; takt_job_env_free. */
char **takt_tune_words(const struct takt_cli *cli, const char *self);

/* tune_sweep.c: within a job. The exit status. */
int takt_tune_sweep(struct takt_cli *cli, struct takt_err *err);

#endif
