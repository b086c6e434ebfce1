/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: a command of the owner's, run at events of his job. The engine starts it as an attempt
 * beside the job's (TAKT_ENGINE_ASIDE): as the job's user, in its directory, with its environment
 * and what is told of the event laid over that, without GPUs, for a while at most. Nothing of the
 * job waits for it or depends on how it ends.
 *
 * At most once: the queue says an event once, and what was to be run is in memory only. The
 * directory of a hook goes when it is over; what a daemon before this one left is cleared up.
 */
#ifndef TAKT_DAEMON_EVENT_HOOKS_H
#define TAKT_DAEMON_EVENT_HOOKS_H

#include "engine/local/local_engine.h"
#include "queue/queue.h"

enum {
	TAKT_HOOKS_AT_ONCE = 16, /* of all jobs; of one job it is one */
};

struct takt_daemon;
struct takt_event_hooks;

/* The daemon is borrowed until free. */
int takt_event_hooks_new(struct takt_daemon *daemon, struct takt_event_hooks **ret);
void takt_event_hooks_free(struct takt_event_hooks *hooks); /* takes NULL */

/* Once, before the engine recovers: clears up what an earlier daemon left and lists in ret[at most
 * max] what may be alive, for the engine; how many. */
size_t takt_event_hooks_adopt(struct takt_event_hooks *hooks, struct takt_engine_live *ret,
			      size_t max);

/* As the queue's callbacks of these names. */
void takt_event_hooks_event(struct takt_event_hooks *hooks, const struct takt_queue_job *job,
			    enum takt_job_event event);
void takt_event_hooks_aside(struct takt_event_hooks *hooks, const struct takt_engine_event *event);

/* What the engine is to start, see struct takt_engine_local_config. */
int takt_event_hooks_describe(struct takt_event_hooks *hooks, const struct takt_action *start,
			      const char *attempt_id, struct takt_attempt_spec *ret_spec,
			      uid_t *ret_uid, gid_t *ret_gid, struct takt_err *err);

#endif
