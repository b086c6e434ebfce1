/* SPDX-License-Identifier: Apache-2.0 */
/* What a verb is, and what it is given to work with. */
#ifndef TAKT_CLI_VERB_H
#define TAKT_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/client.h"

enum {
	TAKT_CLI_MAX_GIVEN = 256,	     /* options in one command */
	TAKT_CLI_MAX_OUT = 64 * 1024 * 1024, /* of text printed at once */
	TAKT_EXIT_USAGE = 64,
	TAKT_EXIT_IO = 74,
};

struct takt_option {
	const char *name;  /* without dashes; NULL ends the list */
	char letter;	   /* 0 = none */
	const char *value; /* "GPUS"; NULL = takes none; "[=N]" may have one, after '=' */
	const char *help;
	const char *group; /* title of the group that begins with it; NULL = the last one goes on */
};

struct takt_text_pair {
	const char *left; /* NULL ends the list */
	const char *right;
};

/* What its operands are, for completion. */
enum takt_operands {
	TAKT_OPERANDS_NONE,
	TAKT_OPERANDS_JOBS,
	TAKT_OPERANDS_COMMAND,
	TAKT_OPERANDS_WORDS, /* verb->words */
	TAKT_OPERANDS_VERBS,
	TAKT_OPERANDS_FILE,
};

struct takt_cli;

struct takt_verb {
	const char *name;
	const char *summary;		   /* half a line */
	const char *usage;		   /* "[-f] JOB" */
	const char *about;		   /* paragraphs, with newlines between them */
	const struct takt_option *options; /* NULL = none of its own */
	const struct takt_text_pair *examples;
	const struct takt_text_pair *exits; /* beyond those of every verb */
	enum takt_operands operands;
	const char *const *words;
	int min_operands, max_operands; /* max -1 = any */
	bool command_follows;		/* the first operand ends the options */
	bool own_arguments;		/* parses argv itself */
	bool offline;			/* asks no daemon */
	/* To its help, in place of the options of all verbs; NULL = those. */
	int (*add_options)(struct takt_str *out);
	/* The exit status, or a negative error of *err. Prints by appending to cli->out. */
	int (*run)(struct takt_cli *cli, struct takt_err *err);
};

struct takt_given {
	const struct takt_option *option;
	const char *value;
};

struct takt_cli {
	const struct takt_verb *verb;
	const struct takt_cli_extra *extra;
	int argc; /* of the verb: argv[0] is its name */
	char **argv;
	struct takt_given given[TAKT_CLI_MAX_GIVEN];
	size_t given_count;
	char **operands;
	int operand_count;
	bool json;
	const char *socket; /* NULL = find it */
	bool help;
	bool terminal; /* standard output is one */
	bool colour;
	unsigned width;		    /* of the terminal; 0 = no limit */
	struct takt_str out;	    /* printed when the verb is done */
	struct takt_client *client; /* owned; NULL until takt_cli_connect */
};

/* verbs.c: the table, in the order of the help. NULL beyond the last. *ret_group, where that is
 * asked for: the title of the group that begins with it, NULL = the last one goes on. */
const struct takt_verb *takt_verb_at(size_t i, const char **ret_group);
const struct takt_verb *takt_verb_find(const char *name);

/* arguments.c */
/* The options that every verb that asks a daemon has, and those of a verb: they or the ones of a
 * verb that asks none. Ended by a NULL name. */
extern const struct takt_option takt_common_options[];
const struct takt_option *takt_verb_common(const struct takt_verb *verb);
int takt_cli_parse(struct takt_cli *cli, struct takt_err *err);
bool takt_cli_has(const struct takt_cli *cli, const char *option);
const char *takt_cli_value(const struct takt_cli *cli, const char *option); /* last; NULL = none */
int takt_cli_number(const struct takt_cli *cli, const char *option, int64_t min, int64_t max,
		    int64_t absent, int64_t *ret, struct takt_err *err);
int takt_cli_duration_ms(const struct takt_cli *cli, const char *option, uint64_t max_ms,
			 uint64_t absent_ms, uint64_t *ret, struct takt_err *err);
/* --time-limit, 0 when it is not given: a bare number is minutes, as for Slurm's option. */
int takt_cli_time_limit_ms(const struct takt_cli *cli, uint64_t *ret, struct takt_err *err);
/* "512M", "16G", "16GiB", whole MiB rounded up; 0 when the option is not given. */
int takt_cli_size_mib(const struct takt_cli *cli, const char *option, uint64_t max_mib,
		      uint64_t *ret, struct takt_err *err);
/* "2", "0.5", "1.125" as thousandths; `absent` when the option is not given. */
int takt_cli_milli(const struct takt_cli *cli, const char *option, uint32_t max_milli,
		   uint32_t absent, uint32_t *ret, struct takt_err *err);
/* Such a number in a text; false when it is none. */
bool takt_cli_parse_milli(const char *text, uint64_t *ret);
/* "1410" or "1410MHz". */
int takt_cli_mhz(const char *text, const char *where, uint32_t *ret, struct takt_err *err);
/* "300" or "300W". */
int takt_cli_watts(const char *text, const char *where, uint32_t *ret_mw, struct takt_err *err);
/* The command that repeats this one: its operands and options as they were understood. */
void takt_cli_command_text(const struct takt_cli *cli, struct takt_str *out);
int takt_cli_job_id(const char *text, uint64_t *ret, struct takt_err *err);

/* one_verb.c */
int takt_cli_connect(struct takt_cli *cli, struct takt_err *err);
/* Appends the JSON of the last answer; true if that is what was asked for. */
bool takt_cli_print_json(struct takt_cli *cli);
/* "takt: ..." to standard error. */
void takt_cli_complain(const struct takt_err *err);
/* Writes it all to standard output. */
int takt_cli_write(const void *bytes, size_t len, struct takt_err *err);
/* To the file that this option names, if it is given. */
int takt_cli_write_file(const struct takt_cli *cli, const char *option, const struct takt_str *text,
			struct takt_err *err);

extern const struct takt_verb takt_verb_status, takt_verb_topo, takt_verb_submit, takt_verb_run,
	takt_verb_attach, takt_verb_queue, takt_verb_show, takt_verb_explain, takt_verb_logs,
	takt_verb_cancel, takt_verb_wait, takt_verb_clock, takt_verb_record, takt_verb_serve,
	takt_verb_version, takt_verb_hold, takt_verb_release, takt_verb_update, takt_verb_freeze,
	takt_verb_requeue, takt_verb_again, takt_verb_thaw, takt_verb_checkpoint, takt_verb_help,
	takt_verb_completion, takt_verb_man, takt_verb_simulate, takt_verb_replay_clocks,
	takt_verb_bench, takt_verb_forecast, takt_verb_progress, takt_verb_tune, takt_verb_health,
	takt_verb_doctor;
/* Administration and history. */
extern const struct takt_verb takt_verb_gpu, takt_verb_jobs, takt_verb_report, takt_verb_config,
	takt_verb_admin, takt_verb_history, takt_verb_alerts, takt_verb_token, takt_verb_net,
	takt_verb_top, takt_verb_web;

#endif
