/* SPDX-License-Identifier: Apache-2.0 */
/* What people type who know other tools: the one table of other names for verbs and options. */
#ifndef TAKT_CLI_SYNONYMS_H
#define TAKT_CLI_SYNONYMS_H

#include "cli/verb.h"

/* Another name of an option, or why takt has none of it. */
struct takt_option_synonym {
	const char *name; /* without dashes */
	char letter;	  /* 0 = none */
	const char *ours; /* of the option that means the same; NULL = there is none */
	const char *instead;
};

/* The synonym of this name or this letter (the other is NULL or 0); NULL when there is none. `len`
 * is that of the name. */
const struct takt_option_synonym *takt_option_synonym(const char *name, size_t len, char letter);

/* Which verb is meant: by its own name, else by another one that means just the same. NULL with
 * -TAKT_E_USAGE: none, and the message names the commands that it could be. */
const struct takt_verb *takt_verb_meant(const char *name, struct takt_err *err);

#endif
