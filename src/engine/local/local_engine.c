/* SPDX-License-Identifier: Apache-2.0 */
/* The local engine's frame: what it owns, what it takes in, what a pump does. */
#include "engine/local/local_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/local/local_private.h"

enum {
	DEFAULT_MAX_ATTEMPTS = 16384,
	EVENTS_A_PUMP = 64,
	WAKE_KEY = 0, /* of epoll; UINT64_MAX is the launcher, anything else a run's */
};

const struct takt_pace local_looks = {2 * TAKT_NS_PER_MS, TAKT_NS_PER_S};

static struct local_engine *local_of(const struct takt_engine *engine)
{
	return TAKT_CONTAINER_OF(engine, struct local_engine, engine);
}

/* Makes room by forgetting the oldest outcomes; open actions are never forgotten. */
static void trim_memory(struct local_engine *local)
{
	struct takt_map_entry *entry = takt_map_next(&local->remembered, NULL);

	while (entry && local->remembered.len >= LOCAL_MAX_REMEMBERED) {
		if (entry->value.u64 != 0)
			(void)takt_map_u64_remove(&local->remembered, entry->key);
		entry = takt_map_next(&local->remembered, entry);
	}
}

static void tell_outcome(struct local_engine *local, struct takt_engine_event event,
			 const char *message)
{
	union takt_map_value *known = takt_map_u64_get(&local->remembered, event.action_id);

	if (known)
		known->u64 = (uint64_t)event.outcome + 1;
	event.kind = TAKT_ENGINE_OUTCOME;
	takt_strcpy(event.message, sizeof(event.message), message);
	takt_engine_emit(&local->engine, event);
}

void local_outcome(struct local_engine *local, uint64_t action_id, enum takt_outcome outcome,
		   uint64_t job_id, uint32_t attempt, const char *message)
{
	tell_outcome(local,
		     (struct takt_engine_event){.action_id = action_id,
						.outcome = outcome,
						.job_id = job_id,
						.attempt = attempt},
		     message);
}

void local_failed(struct local_engine *local, uint64_t action_id, uint64_t job_id, uint32_t attempt,
		  enum takt_refusal refusal, const char *message)
{
	tell_outcome(local,
		     (struct takt_engine_event){.action_id = action_id,
						.outcome = TAKT_OUTCOME_FAILED,
						.refusal = refusal,
						.job_id = job_id,
						.attempt = attempt},
		     message);
}

static void due_in(struct local_engine *local, struct local_run *run, uint64_t ns)
{
	run->due_ns = local->now_ns + ns;
	if (run->due_ns < local->next_due_ns)
		local->next_due_ns = run->due_ns;
}

void local_due(struct local_engine *local, struct local_run *run, uint32_t in_ms)
{
	due_in(local, run, in_ms * TAKT_NS_PER_MS);
}

void local_due_again(struct local_engine *local, struct local_run *run)
{
	due_in(local, run, takt_pace_ns(&local_looks, run->looks++));
}

static void wake(struct local_engine *local)
{
	(void)eventfd_write(local->wakefd, 1); /* full means that it is readable already */
}

static int apply(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		 struct takt_err *err)
{
	struct local_engine *local = local_of(engine);
	int rc = takt_vec_reserve(&local->actions, n);

	if (rc < 0)
		return takt_err_set(err, rc, "%zu actions beside %zu that wait", n,
				    local->actions.len);
	for (size_t i = 0; i < n; i++)
		(void)takt_vec_push(&local->actions, actions[i]);
	wake(local);
	return 0;
}

/* True when the action is new. A known one has its outcome said again, once it has one. */
static bool remember(struct local_engine *local, const struct takt_action *action)
{
	const union takt_map_value *known = takt_map_u64_get(&local->remembered, action->id);

	if (known && known->u64 != 0)
		local_outcome(local, action->id, (enum takt_outcome)(known->u64 - 1),
			      action->job_id, action->attempt, "taken before");
	if (known)
		return false;
	trim_memory(local);
	if (takt_map_u64_put(&local->remembered, action->id, (union takt_map_value){.u64 = 0}) <
	    0) {
		local_outcome(local, action->id, TAKT_OUTCOME_FAILED, action->job_id,
			      action->attempt, "out of memory");
		return false;
	}
	return true;
}

static void take_action(struct local_engine *local, const struct takt_action *action)
{
	if (!remember(local, action))
		return;
	if (action->kind == TAKT_ACTION_START || action->kind == TAKT_ACTION_STAGE)
		local_run_begin(local, action);
	else
		local_order_take(local, action);
}

/* The watcher may apply more meanwhile, which moves the array: each action is copied out. */
static void take_actions(struct local_engine *local)
{
	size_t n = local->actions.len < LOCAL_ACTIONS_A_PUMP ? local->actions.len
							     : LOCAL_ACTIONS_A_PUMP;
	struct takt_action action;

	for (size_t i = 0; i < n; i++) {
		action = local->actions.at[i];
		take_action(local, &action);
	}
	local->actions.len -= n;
	if (local->actions.len > 0) {
		memmove(local->actions.at, local->actions.at + n,
			local->actions.len * sizeof(*local->actions.at));
		wake(local);
	}
}

static void take_event(struct local_engine *local, uint64_t key)
{
	struct local_run *run;
	eventfd_t ignored;

	if (key == WAKE_KEY) {
		(void)eventfd_read(local->wakefd, &ignored);
	} else if (key == UINT64_MAX) {
		local_link_receive(local);
	} else {
		run = takt_map_u64_ptr(&local->runs, key);
		if (run && run->pidfd >= 0)
			local_run_ended_shim(local, run);
	}
}

static int take_events(struct local_engine *local, struct takt_err *err)
{
	struct epoll_event events[EVENTS_A_PUMP];
	int n;

	do {
		n = epoll_wait(local->epollfd, events, EVENTS_A_PUMP, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return takt_err_set(err, -errno, "wait for shims");
	for (int i = 0; i < n; i++)
		take_event(local, events[i].data.u64);
	return 0;
}

/* Steps add and remove runs; the map's order of insertion survives both. */
static void take_steps(struct local_engine *local)
{
	struct takt_map_entry *entry;
	struct local_run *run;
	int steps = 0;

	if (local->next_due_ns > local->now_ns)
		return;
	local->next_due_ns = UINT64_MAX;
	for (entry = takt_map_next(&local->runs, NULL); entry;
	     entry = takt_map_next(&local->runs, entry)) {
		run = entry->value.ptr;
		if (run->due_ns == 0)
			continue;
		if (run->due_ns <= local->now_ns && steps < LOCAL_STEPS_A_PUMP) {
			steps++;
			local_run_step(local, run);
		} else if (run->due_ns < local->next_due_ns) {
			local->next_due_ns = run->due_ns;
		}
	}
}

static void tell_snapshot(struct local_engine *local)
{
	struct local_run *run;

	if (!local->snapshot_wanted)
		return;
	local->snapshot_wanted = false;
	takt_engine_emit(&local->engine, (struct takt_engine_event){.kind = TAKT_ENGINE_SNAPSHOT});
	TAKT_MAP_EACH(entry, &local->runs)
	{
		run = entry->value.ptr;
		if (run->state == LOCAL_WATCHED)
			takt_engine_emit(&local->engine, (struct takt_engine_event){
								 .kind = TAKT_ENGINE_ADOPTED,
								 .job_id = run->job_id,
								 .attempt = run->attempt,
								 .pid = run->job_pid,
								 .staged = local_stage_waits(run)});
	}
	takt_engine_emit(&local->engine,
			 (struct takt_engine_event){.kind = TAKT_ENGINE_SNAPSHOT_END});
}

/* Orders that could not be sent, and the connection, have no time of their own. */
static uint64_t next_time(const struct local_engine *local)
{
	uint64_t next = local->next_due_ns, retry = local_orders_next_ns(local);

	next = retry < next ? retry : next;

	if (!local->client && local->connect_ns < next)
		next = local->connect_ns;
	TAKT_VEC_EACH (order, &local->orders) {
		const struct takt_action *action = &order->action;
		const struct local_run *run =
			takt_map_u64_ptr(&local->runs, local_key(action->job_id, action->attempt));

		if (order->seq != 0 || !run || run->state != LOCAL_WATCHED)
			continue;
		retry = local->now_ns + local_link_retry_ms(local) * TAKT_NS_PER_MS;
		next = retry < next ? retry : next;
		break;
	}
	return next == UINT64_MAX ? 0 : next;
}

static int pump(struct takt_engine *engine, struct takt_boot now, uint64_t *ret_next_ns,
		struct takt_err *err)
{
	struct local_engine *local = local_of(engine);
	int rc;

	local->now_ns = now.ns;
	rc = take_events(local, err);
	if (rc < 0)
		return rc;
	local_link_keep(local);
	take_actions(local);
	take_steps(local);
	local_orders_send(local);
	local_orders_overdue(local);
	tell_snapshot(local);
	*ret_next_ns = next_time(local);
	return 0;
}

static int get_fd(const struct takt_engine *engine)
{
	return local_of(engine)->epollfd;
}

static void want_snapshot(struct takt_engine *engine)
{
	local_of(engine)->snapshot_wanted = true;
	wake(local_of(engine));
}

static void free_local(struct takt_engine *engine)
{
	struct local_engine *local = local_of(engine);

	TAKT_MAP_EACH(entry, &local->runs)
	local_run_free(entry->value.ptr);
	takt_map_fini(&local->runs);
	takt_map_fini(&local->remembered);
	takt_vec_fini(&local->actions);
	takt_vec_fini(&local->orders);
	takt_vec_fini(&local->stops);
	takt_vec_fini(&local->sent);
	takt_vec_fini(&local->questions);
	takt_launch_client_free(local->client);
	takt_free(local->launch_socket);
	if (local->wakefd >= 0)
		close(local->wakefd);
	if (local->epollfd >= 0)
		close(local->epollfd);
	if (local->jobs_dirfd >= 0)
		(void)local->config.sys->close(local->config.sys, local->jobs_dirfd);
	takt_free(local);
}

static const struct takt_engine_ops local_ops = {
	.name = "local",
	.caps = TAKT_ENGINE_EXACT_GPU | TAKT_ENGINE_SIGNAL | TAKT_ENGINE_EVICT | TAKT_ENGINE_STAGE,
	.apply = apply,
	.fd = get_fd,
	.pump = pump,
	.snapshot = want_snapshot,
	.free = free_local,
};

static int open_all(struct local_engine *local, const struct takt_engine_local_config *config,
		    struct takt_err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE_KEY};

	local->launch_socket = takt_strdup(config->launch_socket);
	if (!local->launch_socket)
		return takt_err_set(err, -ENOMEM, "local engine");
	local->jobs_dirfd = config->sys->openat(config->sys, AT_FDCWD, config->jobs_dir,
						O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (local->jobs_dirfd < 0)
		return takt_err_set(err, local->jobs_dirfd, "open '%s'", config->jobs_dir);
	local->epollfd = epoll_create1(EPOLL_CLOEXEC);
	local->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (local->epollfd < 0 || local->wakefd < 0 ||
	    epoll_ctl(local->epollfd, EPOLL_CTL_ADD, local->wakefd, &event) < 0)
		return takt_err_set(err, -errno, "local engine");
	return 0;
}

int takt_engine_local_new(const struct takt_engine_local_config *config, struct takt_engine **ret,
			  struct takt_err *err)
{
	struct local_engine *local = takt_zalloc(sizeof(*local));
	size_t max = config->max_attempts ? config->max_attempts : DEFAULT_MAX_ATTEMPTS;
	int rc;

	if (!local)
		return takt_err_set(err, -ENOMEM, "local engine");
	local->engine = (struct takt_engine){.ops = &local_ops, .next_seq = 1};
	local->config = *config;
	local->jobs_dirfd = local->epollfd = local->wakefd = -1;
	local->next_seq = 1;
	local->now_ns = config->sys->boot_ns(config->sys);
	local->next_due_ns = UINT64_MAX;
	local->runs = TAKT_MAP_U64(max);
	local->remembered = TAKT_MAP_U64(LOCAL_MAX_REMEMBERED + LOCAL_MAX_ACTIONS);
	local->actions.max = LOCAL_MAX_ACTIONS;
	local->orders.max = LOCAL_MAX_ORDERS;
	local->stops.max = LOCAL_MAX_ACTIONS;
	local->sent.max = LOCAL_MAX_SENT;
	local->questions.max = LOCAL_MAX_SENT;
	rc = open_all(local, config, err);
	if (rc < 0) {
		free_local(&local->engine);
		return rc;
	}
	*ret = &local->engine;
	return 0;
}

int takt_engine_local_recover(struct takt_engine *engine, const struct takt_engine_live *live,
			      size_t n, struct takt_err *err)
{
	struct local_engine *local = local_of(engine);
	struct local_run *run;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (takt_map_u64_get(&local->runs, local_key(live[i].job_id, live[i].attempt)))
			rc = -EINVAL;
		else
			rc = local_run_recover(local, &live[i]);
		if (rc == 0)
			continue;
		while (i-- > 0) {
			uint64_t key = local_key(live[i].job_id, live[i].attempt);

			run = takt_map_u64_ptr(&local->runs, key);
			(void)takt_map_u64_remove(&local->runs, key);
			local_run_free(run);
		}
		return takt_err_set(err, rc, "recover %zu attempts", n);
	}
	wake(local);
	return 0;
}

size_t takt_engine_local_count(const struct takt_engine *engine)
{
	return local_of(engine)->runs.len;
}
