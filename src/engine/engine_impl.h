/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine provides. Callers read engine.h instead. */
#ifndef TAKT_ENGINE_ENGINE_IMPL_H
#define TAKT_ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"

struct takt_engine_ops {
	const char *name; /* "local", "fake", ... */
	uint32_t caps;	  /* enum takt_engine_cap */
	int (*apply)(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		     struct takt_err *err);
	int (*fd)(const struct takt_engine *engine);
	int (*pump)(struct takt_engine *engine, struct takt_boot now, uint64_t *ret_next_ns,
		    struct takt_err *err);
	void (*snapshot)(struct takt_engine *engine); /* required, may only make a note */
	void (*free)(struct takt_engine *engine);
};

/* Embed first; recover with TAKT_CONTAINER_OF. */
struct takt_engine {
	const struct takt_engine_ops *ops;
	uint64_t next_seq; /* of the next event */
	void (*sink)(void *ctx, const struct takt_engine_event *event);
	void *sink_ctx;
};

/* Number the event and hand it to the watcher; SNAPSHOT starts the numbers anew at 1. The watcher
 * may call takt_engine_apply() and takt_engine_snapshot() from there, nothing else. */
void takt_engine_emit(struct takt_engine *engine, struct takt_engine_event event);

#endif
