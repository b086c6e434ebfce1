/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Each verb has a file of its own with one initialiser that holds everything
 * about it; help, completion and the man page come from there (verb.h).
 */
#ifndef TAKT_CLI_CLI_H
#define TAKT_CLI_CLI_H

/* Verbs whose work is done elsewhere. argv[0] is the verb; the return value is the exit status. */
struct takt_cli_extra {
	int (*serve)(int argc, char **argv);
	int (*record)(int argc, char **argv);
};

/* The whole program: returns its exit status. */
int takt_cli_main(int argc, char **argv, const struct takt_cli_extra *extra);

#endif
