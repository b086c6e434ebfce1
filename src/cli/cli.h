/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Each verb has a file of its own with one initialiser that holds everything
 * about it; help, completion and the man page come from there (verb.h).
 */
#ifndef TAKT_CLI_CLI_H
#define TAKT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct takt_clock_view;
struct takt_config;
struct takt_declaration;
struct takt_err;
struct takt_verb;

/* A finding of `takt admin`: what it is about ("clocks"), what was found, and what to do about it,
 * "" when there is nothing to do. Texts are borrowed for the call. */
struct takt_admin_line {
	const char *about, *found, *todo;
	bool wrong; /* a promise is broken, or was not kept up yet */
};
typedef void takt_admin_say(void *ctx, const struct takt_admin_line *line);

/* Verbs whose work is done elsewhere. argv[0] is the verb; the return value is the exit status. */
struct takt_cli_extra {
	int (*serve)(int argc, char **argv);
	int (*record)(int argc, char **argv);
	int (*top)(int argc, char **argv); /* its arguments: top/top_main.h */
	/* The inputs of decisions that a daemon's database keeps, and the plans that came of them,
	 * newest first; texts are borrowed for the call. Ends with the first negative return. */
	int (*decisions)(const char *path, uint32_t limit,
			 int (*each)(void *ctx, uint64_t version, const char *snapshot,
				     const char *plan),
			 void *ctx, struct takt_err *err);
	/* Power (W) or else utilisation (%) of a GPU in a recording, a call a sample, NAN where it
	 * was not read. Ends with the first negative return. */
	int (*recorded)(const char *path, uint32_t gpu, bool power,
			int (*each)(void *ctx, int64_t at_us, double value), void *ctx,
			bool *ret_simulated, struct takt_err *err);
	/* The path of a program that takt starts and nobody calls by hand. */
	void (*helper)(const char *name, char *ret, size_t size);
	/* The GPUs' clocks, and declaring how they stand (NULL: no more), where no daemon answers.
	 * *view is what the first has shown, and is brought up to date. */
	int (*look_at_clocks)(const struct takt_config *config, struct takt_clock_view *ret,
			      struct takt_err *err);
	int (*declare_clocks)(const struct takt_config *config,
			      const struct takt_declaration *declaration,
			      struct takt_clock_view *view, struct takt_err *err);
	/* backup, restore, check or report of the daemon's files. */
	int (*admin)(const char *action, const struct takt_config *config, const char *file,
		     takt_admin_say *say, void *ctx, struct takt_err *err);
};

/* The whole program: returns its exit status. */
int takt_cli_main(int argc, char **argv, const struct takt_cli_extra *extra);

/* One verb, without the table of all; argv[0] is its name. */
int takt_cli_run(const struct takt_verb *verb, int argc, char **argv,
		 const struct takt_cli_extra *extra);

#endif
