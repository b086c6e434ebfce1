/* SPDX-License-Identifier: Apache-2.0 */
/* takt init, in parts: where it acts (init_place.c), what it says (init_text.c), and the service
 * manager, jobs and state of a machine that runs (init_system.c). */
#ifndef TAKT_CLI_INIT_H
#define TAKT_CLI_INIT_H

#include <limits.h>

#include "cli/verb.h"
#include "config/config.h"
#include "setup/setup.h"

enum {
	TAKT_INIT_COMMANDS = 16,
	TAKT_INIT_COMMAND = 160,
	TAKT_INIT_LEFT = 1, /* the exit status of a removal that has left something */
};

struct takt_init {
	struct takt_cli *cli;
	struct takt_setup_place place; /* of the strings below */
	char root[PATH_MAX], config_home[TAKT_SETUP_PATH], state_home[TAKT_SETUP_PATH],
		runtime_dir[TAKT_SETUP_PATH], bindir[TAKT_SETUP_PATH], libexecdir[TAKT_SETUP_PATH];
	struct takt_setup_machine machine;
	struct takt_setup_answers answers;
	struct takt_config
		config; /* the one that is there, else as takt serve has it without one */
	bool config_there;
	struct takt_setup_plan plan;
	bool live;		   /* this machine itself, not a folder */
	bool dry_run;		   /* nothing is written nor run */
	bool asks;		   /* somebody is there to answer */
	uint32_t running, waiting; /* jobs, before a removal */
	char commands[TAKT_INIT_COMMANDS][TAKT_INIT_COMMAND]; /* that were run, or would be */
	size_t command_count;
};

extern const struct takt_verb takt_verb_init;

/* init_place.c */
/* From the options, and the environment of a user. `who` may be changed later on. */
int takt_init_find_place(struct takt_init *init, enum takt_setup_who who, struct takt_err *err);
/* Root acts as the user who called sudo, from here on and for ever. */
int takt_init_become_caller(struct takt_init *init, struct takt_err *err);
/* The configuration that is there, for what is proposed. */
int takt_init_read_config(struct takt_init *init, struct takt_err *err);
/* Whether the programs that a unit of root's would start are such that root may. */
int takt_init_check_programs(const struct takt_init *init, struct takt_err *err);

/* init_text.c */
void takt_init_print_machine(const struct takt_init *init, struct takt_str *out);
void takt_init_print_done(const struct takt_init *init, struct takt_str *out);
void takt_init_print_removed(const struct takt_init *init, const char *purged,
			     struct takt_str *out);
void takt_init_print_json(const struct takt_init *init, const char *purged, struct takt_str *out);
/* Of a removal: an item that was changed since, or a folder that others have put something into. */
bool takt_init_is_left(const struct takt_setup_item *item);

/* init_system.c */
/* Runs what was set up and waits until takt answers. */
int takt_init_start(struct takt_init *init, struct takt_err *err);
/* Behind a failure, when the files are as they were. */
void takt_init_start_undone(struct takt_init *init);
int takt_init_stop(struct takt_init *init, struct takt_err *err);
/* When the files are gone. */
void takt_init_stopped(struct takt_init *init);
/* Fills running and waiting; 0 each where no daemon answers. */
int takt_init_count_jobs(struct takt_init *init, struct takt_err *err);
/* State and history are deleted, and the account that was made. *ret_what names them. */
int takt_init_purge(struct takt_init *init, struct takt_str *ret_what, struct takt_err *err);

#endif
