/* SPDX-License-Identifier: Apache-2.0 */
/* Job scripts of Slurm: what their #SBATCH lines ask for, in options of takt submit. */
#ifndef TAKT_CLI_SBATCH_H
#define TAKT_CLI_SBATCH_H

#include "cli/verb.h"

/* The entry of an option table. */
#define TAKT_SBATCH_OPTION                                                             \
	{                                                                              \
		"sbatch", 0, NULL, "take what the #SBATCH lines of the script ask for" \
	}

enum {
	TAKT_SBATCH_MAX = 64
}; /* options in one script */

struct takt_sbatch {
	size_t count;
	struct {
		const char *name; /* of takt's option */
		char value[256];  /* "" = it takes none */
	} options[TAKT_SBATCH_MAX];
	struct takt_str rest; /* "line 3: --partition=gpu", a line each: what is not taken */
};

/*
 * The #SBATCH lines of a script's text, which end, as for Slurm, before its first command. What
 * takt has no option for, or takes only in part, is named in `rest`. -TAKT_E_USAGE names the line
 * of a value that Slurm would not take either. Ends in takt_sbatch_fini either way.
 */
int takt_sbatch_read(const char *text, struct takt_sbatch *ret, struct takt_err *err);
void takt_sbatch_fini(struct takt_sbatch *sbatch);

/*
 * Of a command's line: with --sbatch, what the script (its first operand) asks for goes before the
 * options that are typed, so that these count; `kept` holds the values and must live as long as
 * *cli. Without, a script that has such lines is named on standard error. Ends in takt_sbatch_fini
 * either way.
 */
int takt_sbatch_take(struct takt_cli *cli, struct takt_sbatch *kept, struct takt_err *err);

/* What a job file that is neither TOML nor JSON seems to be ("a job script of Slurm"); NULL when
 * nothing known. */
const char *takt_foreign_job(const char *text);

#endif
