/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of all jobs' output together: output_share of the disk, of which one user may have a
 * quarter where takt serves all. A job that starts is given a part of what is left of that; of jobs
 * that are over the oldest logs go once most of it is taken.
 */
#ifndef TAKT_DAEMON_OUTPUT_SHARE_H
#define TAKT_DAEMON_OUTPUT_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct takt_daemon;
struct takt_output_share;

int takt_output_share_new(struct takt_output_share **ret); /* -ENOMEM */
void takt_output_share_free(struct takt_output_share *share);

/* `limit`, or less, for a job of the user's that is to start; counted from here on until it is
 * over. `all` bytes are what output_share comes to; 0 = no end. */
uint64_t takt_output_share_give(struct takt_output_share *share, uint64_t job_id, uid_t uid,
				uint64_t limit, uint64_t all, bool alone);

/* It runs already, with this limit, of which nothing was heard here. */
void takt_output_share_found(struct takt_output_share *share, uint64_t job_id, uid_t uid,
			     uint64_t limit);
bool takt_output_share_knows(const struct takt_output_share *share, uint64_t job_id);

/* Its attempt is over and has so many bytes of output. */
void takt_output_share_over(struct takt_output_share *share, uint64_t job_id, uid_t uid,
			    uint64_t bytes);

/* Looks at some of the attempts that are over: each is held to `limit` bytes (0 = all), and some go
 * where all come to too much. To be called at a pace. */
void takt_output_share_look(struct takt_output_share *share, struct takt_daemon *daemon,
			    uint64_t limit, uint64_t all);

#endif
