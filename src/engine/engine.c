/* SPDX-License-Identifier: Apache-2.0 */
/* What every engine does alike: calls through its table, numbers its events. */
#include "engine/engine_impl.h"

uint32_t takt_engine_caps(const struct takt_engine *engine)
{
	return engine->ops->caps;
}

void takt_engine_watch(struct takt_engine *engine,
		       void (*sink)(void *ctx, const struct takt_engine_event *event), void *ctx)
{
	engine->sink = sink;
	engine->sink_ctx = ctx;
}

int takt_engine_apply(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		      struct takt_err *err)
{
	return engine->ops->apply(engine, actions, n, err);
}

void takt_engine_snapshot(struct takt_engine *engine)
{
	engine->ops->snapshot(engine);
}

int takt_engine_fd(const struct takt_engine *engine)
{
	return engine->ops->fd(engine);
}

int takt_engine_pump(struct takt_engine *engine, struct takt_boot now, uint64_t *ret_next_ns,
		     struct takt_err *err)
{
	return engine->ops->pump(engine, now, ret_next_ns, err);
}

void takt_engine_free(struct takt_engine *engine)
{
	if (engine)
		engine->ops->free(engine);
}

void takt_engine_emit(struct takt_engine *engine, struct takt_engine_event event)
{
	if (event.kind == TAKT_ENGINE_SNAPSHOT)
		engine->next_seq = 1;
	event.seq = engine->next_seq++;
	if (engine->sink)
		engine->sink(engine->sink_ctx, &event);
}
