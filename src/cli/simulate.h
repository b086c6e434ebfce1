/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `takt simulate` share. */
#ifndef TAKT_CLI_SIMULATE_H
#define TAKT_CLI_SIMULATE_H

#include <limits.h>

#include "base/policy_text.h"
#include "cli/verb.h"
#include "sim/bound_run.h"
#include "sim/sim_meta.h"
#include "sim/sim_policies.h"
#include "sim/sim_table.h"

enum {
	TAKT_SIMULATE_MAX_LOADS = 64,
	TAKT_SIMULATE_MAX_PARAMS = TAKT_SIM_MAX_PARAMS,
	TAKT_SIMULATE_NOTES = 24, /* options that a result states */
	TAKT_SIMULATE_NOTE = 128,
};

/* The command's options, checked as far as they are alike for all protocols. */
struct takt_simulate {
	struct takt_cli *cli;
	const char *cluster, *trace;
	uint64_t first_seed, last_seed;
	uint32_t loads[TAKT_SIMULATE_MAX_LOADS];
	size_t load_count;
	unsigned threads;
	struct takt_policy_param params[TAKT_SIMULATE_MAX_PARAMS];
	size_t param_count;
	struct takt_str command; /* owned: what repeats it */
	char notes[TAKT_SIMULATE_NOTES][TAKT_SIMULATE_NOTE];
	const char *note_list[TAKT_SIMULATE_NOTES + 1];
	size_t note_count;
	uint64_t begun_ns, shown_ns; /* of the progress bar */
};

/* simulate_options.c. begin: what every experiment has; init: cluster and trace as well. *ret is
 * overwritten; nothing to release on failure. */
int takt_simulate_begin(struct takt_cli *cli, struct takt_simulate *ret, struct takt_err *err);
int takt_simulate_init(struct takt_cli *cli, struct takt_simulate *ret, struct takt_err *err);
void takt_simulate_fini(struct takt_simulate *simulate);
/* Seeds that count when none are given. */
int takt_simulate_seeds(struct takt_simulate *simulate, uint64_t first, uint64_t last,
			struct takt_err *err);
int takt_simulate_loads(struct takt_simulate *simulate, const char *absent, struct takt_err *err);
/* A result states that option and its value. */
void takt_simulate_note(struct takt_simulate *simulate, const char *name, const char *fmt, ...)
	TAKT_PRINTF(3, 4);
/* What is behind "PREFIX:" where the text begins so, else the text. */
const char *takt_simulate_behind(const char *text, const char *prefix);
/* takt-bound by --bound; false: not wanted. Both buffers are the caller's. */
bool takt_simulate_bound(struct takt_simulate *simulate, char path[PATH_MAX], char cache[PATH_MAX],
			 struct takt_bound_program *ret);

/* simulate_output.c */
/* A bar on standard error, on a terminal and once it has taken two seconds. */
int takt_simulate_progress(void *simulate, size_t done, size_t count);
void takt_simulate_progress_end(struct takt_simulate *simulate);
struct takt_sim_meta takt_simulate_meta(const struct takt_simulate *simulate, const char *protocol);
/* JSON, CSV and the page to where the options want them; with --json the first to standard output
 * too. */
int takt_simulate_results(struct takt_simulate *simulate, const struct takt_sim_table *table,
			  const struct takt_sim_meta *meta, size_t baseline, struct takt_err *err);
/* One load, for people: means, then differences with their intervals. */
void takt_simulate_print_table(struct takt_cli *cli, const struct takt_sim_table *table,
			       size_t load, size_t baseline);
/* Writes a result to the file of that option, if it was given. */
int takt_simulate_write(const struct takt_simulate *simulate, const char *option,
			const struct takt_str *text, struct takt_err *err);

/* One file each: the exit status, or negative. */
int takt_simulate_fgd(struct takt_simulate *simulate, struct takt_err *err);
int takt_simulate_timed(struct takt_simulate *simulate, struct takt_err *err);
int takt_simulate_queue(struct takt_simulate *simulate, struct takt_err *err);
int takt_simulate_replay(struct takt_cli *cli, struct takt_err *err);

#endif
