/* SPDX-License-Identifier: Apache-2.0 */
/* The fake engine: a list of events to come, each with its time. */
#include "fake_engine.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/vec.h"
#include "engine/engine_impl.h"

enum {
	MAX_COMING = 1 << 20,
	MAX_ALIVE = 65536,
	EXIT_BY_TERM = 15,
};

struct coming {
	uint64_t due_ns;
	uint64_t order; /* ties: as they were made */
	struct takt_engine_event event;
};

struct alive {
	uint64_t job_id;
	uint32_t attempt;
	uint64_t gpu_mask;
	uint64_t said_ns; /* nothing of it may be said before, unless reorder */
};

struct fake {
	struct takt_engine engine;
	struct fake_engine_config config;
	struct takt_rng rng;
	uint64_t now_ns, next_order;
	TAKT_VEC(struct takt_action) actions;
	TAKT_VEC(struct coming) coming;
	TAKT_VEC(struct alive) alive;
	size_t violations, started;
	bool snapshot_wanted;
	int wakefd;
};

static struct fake *fake_of(const struct takt_engine *engine)
{
	return TAKT_CONTAINER_OF(engine, struct fake, engine);
}

static void must(int rc)
{
	if (rc < 0)
		abort();
}

static bool chance(struct fake *fake, uint32_t permille)
{
	return takt_rng_below(&fake->rng, 1000) < permille;
}

static uint64_t delay(struct fake *fake)
{
	return takt_rng_range(&fake->rng, 0, fake->config.delay_max_ms * TAKT_NS_PER_MS);
}

static void put(struct fake *fake, uint64_t due_ns, struct takt_engine_event event)
{
	struct coming coming = {due_ns, fake->next_order++, event};

	must(takt_vec_push(&fake->coming, coming));
	if (!chance(fake, fake->config.duplicate_permille))
		return;
	coming.due_ns += delay(fake);
	coming.order = fake->next_order++;
	must(takt_vec_push(&fake->coming, coming));
}

/* In the order of the attempt's life, or not. */
static void put_for(struct fake *fake, struct alive *alive, uint64_t from_ns,
		    struct takt_engine_event event)
{
	uint64_t due_ns = from_ns + delay(fake);

	if (!fake->config.reorder && due_ns < alive->said_ns)
		due_ns = alive->said_ns;
	alive->said_ns = due_ns > alive->said_ns ? due_ns : alive->said_ns;
	event.job_id = alive->job_id;
	event.attempt = alive->attempt;
	put(fake, due_ns, event);
}

static void put_outcome(struct fake *fake, const struct takt_action *action,
			enum takt_outcome outcome)
{
	put(fake, fake->now_ns + delay(fake),
	    (struct takt_engine_event){.kind = TAKT_ENGINE_OUTCOME,
				       .action_id = action->id,
				       .outcome = outcome,
				       .job_id = action->job_id,
				       .attempt = action->attempt,
				       .message = "by chance"});
}

static struct alive *find(struct fake *fake, uint64_t job_id)
{
	TAKT_VEC_EACH (alive, &fake->alive)
		if (alive->job_id == job_id)
			return alive;
	return NULL;
}

/* The end is always the last thing said of an attempt. */
static void put_end(struct fake *fake, struct alive *alive, uint64_t from_ns, enum takt_end end,
		    int code)
{
	uint64_t due_ns = from_ns + delay(fake);

	due_ns = due_ns > alive->said_ns ? due_ns : alive->said_ns;
	put(fake, due_ns,
	    (struct takt_engine_event){.kind = TAKT_ENGINE_ENDED,
				       .job_id = alive->job_id,
				       .attempt = alive->attempt,
				       .pid = 1000,
				       .end = end,
				       .code = code,
				       .run_ns = due_ns - fake->now_ns,
				       .at = {(int64_t)due_ns}});
}

static bool clashes(struct fake *fake, const struct takt_action *action)
{
	TAKT_VEC_EACH (alive, &fake->alive)
		if (alive->job_id == action->job_id || (alive->gpu_mask & action->gpu_mask))
			return true;
	return false;
}

static void live(struct fake *fake, struct alive *alive)
{
	uint64_t run_ms;

	if (chance(fake, fake->config.never_ran_permille)) {
		put_end(fake, alive, fake->now_ns, TAKT_END_NEVER_RAN, 0);
		return;
	}
	fake->started++;
	put_for(fake, alive, fake->now_ns,
		(struct takt_engine_event){
			.kind = TAKT_ENGINE_STARTED, .pid = 1000, .at = {(int64_t)fake->now_ns}});
	if (fake->config.run_max_ms == UINT32_MAX)
		return;
	run_ms = takt_rng_range(&fake->rng, fake->config.run_min_ms, fake->config.run_max_ms);
	put_end(fake, alive, fake->now_ns + run_ms * TAKT_NS_PER_MS,
		chance(fake, fake->config.lost_permille) ? TAKT_END_LOST : TAKT_END_EXITED, 0);
}

static void take_start(struct fake *fake, const struct takt_action *action)
{
	struct alive *alive;

	if (clashes(fake, action)) {
		fake->violations++;
		put_outcome(fake, action, TAKT_OUTCOME_CONFLICT);
		return;
	}
	if (chance(fake, fake->config.reject_permille)) {
		put_outcome(fake, action,
			    chance(fake, 500) ? TAKT_OUTCOME_FAILED : TAKT_OUTCOME_CONFLICT);
		return;
	}
	must(takt_vec_push(&fake->alive,
			   (struct alive){action->job_id, action->attempt, action->gpu_mask, 0}));
	alive = takt_vec_last(&fake->alive);
	put_for(fake, alive, fake->now_ns,
		(struct takt_engine_event){.kind = TAKT_ENGINE_OUTCOME,
					   .action_id = action->id,
					   .outcome = TAKT_OUTCOME_ACCEPTED});
	live(fake, alive);
}

static void take(struct fake *fake, const struct takt_action *action)
{
	struct alive *alive;

	if (action->kind == TAKT_ACTION_START) {
		take_start(fake, action);
		return;
	}
	alive = find(fake, action->job_id);
	if (!alive || alive->attempt != action->attempt) {
		put_outcome(fake, action, TAKT_OUTCOME_CONFLICT);
		return;
	}
	put_outcome(fake, action, TAKT_OUTCOME_ACCEPTED);
	if (action->kind == TAKT_ACTION_STOP)
		put_end(fake, alive, fake->now_ns, TAKT_END_SIGNALED, EXIT_BY_TERM);
}

/* Of several ends that were made for an attempt (its own and a STOP's) the first counts; whatever
 * else of it is still to come goes. */
static void bury(struct fake *fake, const struct takt_engine_event *end)
{
	for (size_t i = 0; i < fake->alive.len; i++)
		if (fake->alive.at[i].job_id == end->job_id &&
		    fake->alive.at[i].attempt == end->attempt)
			takt_vec_remove(&fake->alive, i);
	for (size_t i = 0; i < fake->coming.len;) {
		const struct takt_engine_event *event = &fake->coming.at[i].event;

		if (event->job_id == end->job_id && event->attempt == end->attempt &&
		    event->kind != TAKT_ENGINE_OUTCOME)
			takt_vec_remove(&fake->coming, i);
		else
			i++;
	}
}

/* Index of the next event; coming.len when there is none. */
static size_t first(const struct fake *fake)
{
	const struct coming *at = fake->coming.at;
	size_t best = 0;

	for (size_t i = 1; i < fake->coming.len; i++)
		if (at[i].due_ns < at[best].due_ns ||
		    (at[i].due_ns == at[best].due_ns && at[i].order < at[best].order))
			best = i;
	return best;
}

static void tell_snapshot(struct fake *fake)
{
	fake->snapshot_wanted = false;
	takt_engine_emit(&fake->engine, (struct takt_engine_event){.kind = TAKT_ENGINE_SNAPSHOT});
	TAKT_VEC_EACH (alive, &fake->alive)
		takt_engine_emit(&fake->engine,
				 (struct takt_engine_event){.kind = TAKT_ENGINE_ADOPTED,
							    .job_id = alive->job_id,
							    .attempt = alive->attempt,
							    .pid = 1000});
	takt_engine_emit(&fake->engine,
			 (struct takt_engine_event){.kind = TAKT_ENGINE_SNAPSHOT_END});
}

static int pump(struct takt_engine *engine, struct takt_boot now, uint64_t *ret_next_ns,
		struct takt_err *err)
{
	struct fake *fake = fake_of(engine);
	struct takt_engine_event event;
	eventfd_t ignored;
	size_t i;

	fake->now_ns = now.ns;
	(void)eventfd_read(fake->wakefd, &ignored);
	for (i = 0; i < fake->actions.len; i++)
		take(fake, &fake->actions.at[i]);
	takt_vec_clear(&fake->actions);
	if (fake->snapshot_wanted)
		tell_snapshot(fake);
	while ((i = first(fake)) < fake->coming.len && fake->coming.at[i].due_ns <= now.ns) {
		event = fake->coming.at[i].event;
		takt_vec_remove(&fake->coming, i);
		if (event.kind == TAKT_ENGINE_ENDED)
			bury(fake, &event);
		takt_engine_emit(engine, event);
	}
	i = first(fake);
	*ret_next_ns = i < fake->coming.len ? fake->coming.at[i].due_ns : 0;
	return 0;
}

static int apply(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		 struct takt_err *err)
{
	struct fake *fake = fake_of(engine);

	for (size_t i = 0; i < n; i++)
		must(takt_vec_push(&fake->actions, actions[i]));
	must(eventfd_write(fake->wakefd, 1));
	return 0;
}

static int get_fd(const struct takt_engine *engine)
{
	return fake_of(engine)->wakefd;
}

static void want_snapshot(struct takt_engine *engine)
{
	fake_of(engine)->snapshot_wanted = true;
	must(eventfd_write(fake_of(engine)->wakefd, 1));
}

static void free_fake(struct takt_engine *engine)
{
	struct fake *fake = fake_of(engine);

	takt_vec_fini(&fake->actions);
	takt_vec_fini(&fake->coming);
	takt_vec_fini(&fake->alive);
	close(fake->wakefd);
	free(fake);
}

static const struct takt_engine_ops fake_ops = {
	.name = "fake",
	.caps = TAKT_ENGINE_EXACT_GPU | TAKT_ENGINE_SIGNAL | TAKT_ENGINE_EVICT,
	.apply = apply,
	.fd = get_fd,
	.pump = pump,
	.snapshot = want_snapshot,
	.free = free_fake,
};

struct takt_engine *fake_engine_new(const struct fake_engine_config *config)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	if (!fake)
		abort();
	fake->engine = (struct takt_engine){.ops = &fake_ops, .next_seq = 1};
	fake->config = *config;
	takt_rng_init(&fake->rng, config->seed);
	fake->actions.max = fake->coming.max = MAX_COMING;
	fake->alive.max = MAX_ALIVE;
	fake->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	must(fake->wakefd);
	return &fake->engine;
}

bool fake_engine_end(struct takt_engine *engine, uint64_t job_id, enum takt_end end, int code)
{
	struct fake *fake = fake_of(engine);
	struct alive *alive = find(fake, job_id);

	if (!alive)
		return false;
	put_end(fake, alive, fake->now_ns, end, code);
	must(eventfd_write(fake->wakefd, 1));
	return true;
}

size_t fake_engine_alive(const struct takt_engine *engine)
{
	return fake_of(engine)->alive.len;
}

size_t fake_engine_violations(const struct takt_engine *engine)
{
	return fake_of(engine)->violations;
}

size_t fake_engine_started(const struct takt_engine *engine)
{
	return fake_of(engine)->started;
}
