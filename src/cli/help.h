/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made of the table of verbs. */
#ifndef TAKT_CLI_HELP_H
#define TAKT_CLI_HELP_H

#include "cli/verb.h"

/* A line or more of a help: what, and beside it what it means. */
void takt_help_pair(struct takt_str *out, const char *left, const char *right);
void takt_help_verb(const struct takt_verb *verb, struct takt_str *out);
/* takt.1 in roff's man macros. */
void takt_help_man(struct takt_str *out);
void takt_help_bash(struct takt_str *out);
void takt_help_zsh(struct takt_str *out);
void takt_help_fish(struct takt_str *out);

/* Exit statuses that any verb may end with. */
extern const struct takt_text_pair takt_common_exits[];

#endif
