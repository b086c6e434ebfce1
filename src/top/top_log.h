/* SPDX-License-Identifier: Apache-2.0 */
/* A job's log as it is shown: its end, followed. */
#ifndef TAKT_TOP_TOP_LOG_H
#define TAKT_TOP_TOP_LOG_H

#include "client/client.h"
#include "top/top_model.h"

enum {
	TAKT_TOP_LOG_BYTES = 256 * 1024, /* of its end that are kept */
	TAKT_TOP_LOG_LINE = 4096,	 /* bytes of a line that are shown */
};

/* Reads on in the log of `log->job_id`; why not is in it afterwards. */
void takt_top_log_follow(struct takt_client *client, struct takt_top_log *log,
			 struct takt_log_place *place);
/* The same of bytes: what is too old is dropped, whole lines at a time. */
void takt_top_log_add(struct takt_top_log *log, const char *bytes, size_t len);

int takt_top_log_copy(const struct takt_top_log *from, struct takt_top_log *ret);
void takt_top_log_fini(struct takt_top_log *log);

/* Lines that are kept. */
size_t takt_top_log_lines(const struct takt_top_log *log);
/* Where a line begins, and its length without its end. */
const char *takt_top_log_line(const struct takt_top_log *log, size_t line, size_t *ret_len);
/* As a terminal would leave it: what a carriage return has overwritten, and colours, are gone; tabs
 * are blanks. */
void takt_top_log_plain(const char *line, size_t len, char ret[TAKT_TOP_LOG_LINE]);

#endif
