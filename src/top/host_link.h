/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at another machine: `takt top --json --each-line` there, over ssh. One look is on its way
 * at a time, so that a slow line makes looks rarer and never older; when this end goes away the
 * other reads the end of its input and ends. ssh must come in without asking (keys, an agent): it
 * has no terminal to ask at.
 */
#ifndef TAKT_TOP_HOST_LINK_H
#define TAKT_TOP_HOST_LINK_H

#include "top/top_model.h"

struct takt_host_link;

/* `host`: what ssh takes, checked; borrowed until free. Nothing is started yet. NULL = no memory.
 */
struct takt_host_link *takt_host_link_new(const char *host, bool driver_only);
void takt_host_link_free(struct takt_host_link *link); /* NULL is fine */

/* Waits for a look; starts ssh when none runs, some seconds after it failed last. What GPUs did
 * before (steps of so long, 0 = nothing) is asked for once a start. On failure *ret is empty but
 * for why_not. */
void takt_host_link_look(struct takt_host_link *link, uint32_t past_step_ms, uint64_t log_job,
			 struct takt_top_snapshot *ret);

/* Instead of looks, once in a link's life: a line of its own for takt there (deed_line.h), which
 * with `allow_foreign` may touch others' processes. Waits for nothing. */
int takt_host_link_tell(struct takt_host_link *link, const char *line, bool allow_foreign,
			struct takt_err *err);
/* Readable when there is something to hear. */
int takt_host_link_fd(const struct takt_host_link *link);
/* Whether the answer is there: 1, *ret is the link's and ended by a newline; 0 = not yet; else why
 * there will be none. */
int takt_host_link_hear(struct takt_host_link *link, const char **ret, struct takt_err *err);

#endif
