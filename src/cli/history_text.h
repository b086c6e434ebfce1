/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did, as text: a line of characters a metric, a table, comma-separated values. */
#ifndef TAKT_CLI_HISTORY_TEXT_H
#define TAKT_CLI_HISTORY_TEXT_H

#include "base/vec.h"
#include "cli/verb.h"

enum {
	TAKT_HISTORY_MAX_SERIES = 1024
};

struct takt_history_list {
	TAKT_VEC(struct takt_history_view) views; /* owned, each to be finished */
};

/* Each series in one line: least, mean, highest, and its course. */
int takt_history_lines(struct takt_cli *cli, const struct takt_history_list *list);
/* A row a step. */
int takt_history_table(struct takt_cli *cli, const struct takt_history_list *list);
/* The same for programs; times in UTC. */
void takt_history_csv(struct takt_str *out, const struct takt_history_list *list);

/* The course of a series in so many characters, a blank where nothing was measured. */
void takt_history_spark(const struct takt_history_view *view, unsigned columns, bool unicode,
			struct takt_str *out);
/* Whether the terminal shows more than ASCII, as its environment says. */
bool takt_history_unicode(void);

#endif
