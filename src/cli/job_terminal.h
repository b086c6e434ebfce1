/* SPDX-License-Identifier: Apache-2.0 */
/* Sitting at the terminal of a job: this terminal becomes it until the job is over or one leaves.
 */
#ifndef TAKT_CLI_JOB_TERMINAL_H
#define TAKT_CLI_JOB_TERMINAL_H

#include "cli/verb.h"

/* Entries of an option table. */
#define TAKT_TERMINAL_OPTIONS                                                                 \
	{                                                                                     \
		"detach-key", 0, "KEY", "leaves the terminal: ^A to ^_ (default ^]), or none" \
	}

enum takt_terminal_end {
	TAKT_TERMINAL_ENDED,	  /* no process of the job is left */
	TAKT_TERMINAL_DETACHED,	  /* the key was pressed, or we were told to end; the job goes on */
	TAKT_TERMINAL_TAKEN_OVER, /* somebody else has come; the job goes on */
	TAKT_TERMINAL_LOST,	  /* the other end has gone without a word */
};

/* The byte of a key such as "^]"; -1 for "none". -TAKT_E_USAGE says what would be accepted. */
int takt_terminal_key(const char *text, int *ret, struct takt_err *err);

/* Standard input and output must be a terminal. */
int takt_terminal_check(struct takt_err *err);

/*
 * Sits down at the terminal whose socket is `path`, which must be that user's: a link put in its
 * place does not get a word. `key` leaves. Negative: -ENOENT or -ECONNREFUSED when there is none
 * (yet, or any more), ... *ret says how it ended.
 */
int takt_terminal_sit(const char *path, uint32_t uid, int key, enum takt_terminal_end *ret,
		      struct takt_err *err);

/* From here on Ctrl-C takes the job out of the queue that is attended, until its turn has come. */
void takt_terminal_interrupt_cancels(void);

/* Waits for the job's turn and sits down, again where it is run again. Returns the exit status. */
int takt_terminal_attend(struct takt_cli *cli, uint64_t job_id, struct takt_err *err);

#endif
