/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs a verb is about: the options that choose among those that run, wait and have ended. */
#ifndef TAKT_CLI_JOB_FILTER_H
#define TAKT_CLI_JOB_FILTER_H

#include "cli/verb.h"

enum {
	TAKT_FILTER_MOST = 10000, /* jobs that are kept at once */
};

struct takt_job_filter {
	const char *user, *state, *name, *tag; /* NULL = any; state is a list with commas */
	int64_t gpu;			       /* -1 = any */
	uint64_t before;		       /* lower numbers only; 0 = all */
	int64_t since_ms, until_ms;	       /* wall clock; 0 = no bound */
};

/* Options of the verb that are named as below; those that it does not have are as not given. */
#define TAKT_FILTER_OPTIONS                                                                     \
	{"user", 'u', "USER", "of this user, by name or number"},                               \
		{"name", 0, "PATTERN", "whose name matches, such as 'train-*'"},                \
		{"tag", 0, "TAG", "with this tag"},                                             \
		{"since", 0, "TIME",                                                            \
		 "that ended, or else began, after: 2h ago as '2h', 18:00, yesterday, a date"}, \
	{                                                                                       \
		"until", 0, "TIME", "the same, before"                                          \
	}
int takt_job_filter_read(const struct takt_cli *cli, struct takt_job_filter *ret,
			 struct takt_err *err);
bool takt_job_filter_takes(const struct takt_job_filter *filter, const struct takt_job_view *job);
/* Leaves in the list those that it takes. */
void takt_job_filter_keep(const struct takt_job_filter *filter, struct takt_queue_view *view);
/* "2h" and "3d" ago; "18:00", the last such time; else as takt_when_parse. */
int takt_past_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct takt_err *err);

/* All live and ended jobs that the filter takes, a part at a time so that history may be as long as
 * it likes: `take` is handed each part, borrowed, first the live ones (unless `ended_only`), then
 * the ended from the highest number down, `page` (1..10,000) looked at at a time. It ends the walk
 * by returning 1. */
int takt_job_filter_walk(struct takt_cli *cli, const struct takt_job_filter *filter,
			 bool ended_only, uint32_t page,
			 int (*take)(void *ctx, const struct takt_queue_view *part,
				     struct takt_err *err),
			 void *ctx, struct takt_err *err);

/* A cell of CSV, quoted where it has to be. */
void takt_csv_add(struct takt_str *out, const char *text, bool last);

#endif
