/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Each verb has a file of its own with one initialiser that holds everything
 * about it; help, completion and the man page come from there (verb.h).
 */
#ifndef TAKT_CLI_CLI_H
#define TAKT_CLI_CLI_H

#include <stdint.h>

struct takt_config;
struct takt_err;

/* Verbs whose work is done elsewhere. argv[0] is the verb; the return value is the exit status. */
struct takt_cli_extra {
	int (*serve)(int argc, char **argv);
	int (*record)(int argc, char **argv);
	/* The inputs of decisions that a daemon's database keeps, and the plans that came of them,
	 * newest first; texts are borrowed for the call. Ends with the first negative return. */
	int (*decisions)(const char *path, uint32_t limit,
			 int (*each)(void *ctx, uint64_t version, const char *snapshot,
				     const char *plan),
			 void *ctx, struct takt_err *err);
	/* backup, restore, check or report of the daemon's files; `say` gets a line each. */
	int (*admin)(const char *action, const struct takt_config *config, const char *file,
		     void (*say)(void *ctx, const char *text), void *ctx, struct takt_err *err);
};

/* The whole program: returns its exit status. */
int takt_cli_main(int argc, char **argv, const struct takt_cli_extra *extra);

#endif
