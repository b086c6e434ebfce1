/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture of the local engine's tests. */
#include "engine_fixture.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

enum {
	PATIENCE_MS = 120000
};

static int describe(void *ctx, const struct takt_action *start, const char *attempt_id,
		    struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
		    struct takt_err *err)
{
	struct engine_fixture *ef = ctx;
	const char *line = start->job_id < EF_MAX_JOBS ? ef->lines[start->job_id] : NULL;
	struct takt_attempt_spec spec;
	struct takt_str assignment = TAKT_STR(4096);

	if (ef->describe_rc < 0)
		return takt_err_set(err, ef->describe_rc, "no such job");
	spec = spec_sh(ef->launch, start->job_id, start->attempt, line ? line : "true");
	assert_int_equal(takt_str_addf(&assignment, "TAKT_ATTEMPT=%s", attempt_id), 0);
	for (char **env = spec.env; env && *env; env++)
		if (strncmp(*env, "TAKT_ATTEMPT=", 13) == 0) {
			takt_free(*env);
			*env = takt_strdup(takt_str_text(&assignment));
		}
	takt_str_fini(&assignment);
	spec.grace_ms = ef->grace_ms;
	if (start->kind == TAKT_ACTION_STAGE && ef->prefetch) {
		spec.prefetch = takt_calloc(4, sizeof(*spec.prefetch));
		spec.prefetch[0] = takt_strdup("sh");
		spec.prefetch[1] = takt_strdup("-c");
		spec.prefetch[2] = takt_strdup(ef->prefetch);
		spec.prefetch_limit_ms = 60000;
	}
	if (spec.env && start->kind == TAKT_ACTION_START) /* what only a START can say */
		spec_add_env(&spec, "GIVEN=gpus");
	*ret_spec = spec;
	*ret_uid = getuid();
	*ret_gid = getgid();
	return 0;
}

static void note(void *ctx, const struct takt_engine_event *event)
{
	struct engine_fixture *ef = ctx;

	assert_true(ef->event_count < EF_MAX_EVENTS);
	ef->events[ef->event_count++] = *event;
}

void ef_engine_new(struct engine_fixture *ef)
{
	struct takt_engine_local_config config = {
		.sys = ef->launch->sys,
		.jobs_dir = ef->launch->jobs,
		.launch_socket = ef->launch->socket,
		.describe = describe,
		.ctx = ef,
		.patience_ms = ef->patience_ms,
		.stage_lease_ms = ef->stage_lease_ms,
	};

	assert_int_equal(takt_engine_local_new(&config, &ef->engine, NULL), 0);
	takt_engine_watch(ef->engine, note, ef);
}

void ef_engine_free(struct engine_fixture *ef)
{
	takt_engine_free(ef->engine);
	ef->engine = NULL;
}

int ef_up(void **state)
{
	struct engine_fixture *ef = calloc(1, sizeof(*ef));
	void *launch;

	assert_non_null(ef);
	fixture_up(&launch);
	ef->launch = launch;
	ef->grace_ms = 2000;
	launcher_start(ef->launch, NULL, NULL);
	/* The launcher serves one client, and that is the engine. */
	takt_launch_client_free(ef->launch->client);
	ef->launch->client = NULL;
	ef_engine_new(ef);
	*state = ef;
	return 0;
}

int ef_down(void **state)
{
	struct engine_fixture *ef = *state;
	void *launch = ef->launch;

	ef_engine_free(ef);
	fixture_down(&launch);
	free(ef);
	return 0;
}

static uint64_t apply(struct engine_fixture *ef, struct takt_action action)
{
	action.id = ++ef->next_action;
	assert_int_equal(takt_engine_apply(ef->engine, &action, 1, NULL), 0);
	return action.id;
}

uint64_t ef_start(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt)
{
	return apply(ef, (struct takt_action){
				 .kind = TAKT_ACTION_START, .job_id = job_id, .attempt = attempt});
}

uint64_t ef_start_staged(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt)
{
	return apply(ef, (struct takt_action){.kind = TAKT_ACTION_START,
					      .job_id = job_id,
					      .attempt = attempt,
					      .staged = true});
}

uint64_t ef_stage(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt)
{
	return apply(ef, (struct takt_action){
				 .kind = TAKT_ACTION_STAGE, .job_id = job_id, .attempt = attempt});
}

uint64_t ef_stop(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt)
{
	return apply(ef, (struct takt_action){
				 .kind = TAKT_ACTION_STOP, .job_id = job_id, .attempt = attempt});
}

uint64_t ef_signal(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt, int sig)
{
	return apply(ef, (struct takt_action){.kind = TAKT_ACTION_SIGNAL,
					      .job_id = job_id,
					      .attempt = attempt,
					      .signal = sig});
}

void ef_recover(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt)
{
	struct takt_engine_live live = {job_id, attempt, getuid(), getgid(), false, 1};

	assert_int_equal(takt_engine_local_recover(ef->engine, &live, 1, NULL), 0);
}

void ef_recover_staged(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt)
{
	struct takt_engine_live live = {job_id, attempt, getuid(), getgid(), true, 0};

	assert_int_equal(takt_engine_local_recover(ef->engine, &live, 1, NULL), 0);
}

/* Waits as a daemon does: for the descriptor or the time that the last pump asked for. */
static void wait_and_pump(struct engine_fixture *ef, int max_ms)
{
	struct pollfd fd = {.fd = takt_engine_fd(ef->engine), .events = POLLIN};
	uint64_t next = 0, now;
	int ms = max_ms;

	assert_int_equal(takt_engine_pump(ef->engine, takt_boot_now(ef->launch->sys), &next, NULL),
			 0);
	now = takt_boot_now(ef->launch->sys).ns;
	if (next != 0 && next <= now + (uint64_t)max_ms * TAKT_NS_PER_MS)
		ms = next > now ? (int)((next - now) / TAKT_NS_PER_MS) : 0;
	(void)poll(&fd, 1, ms);
}

void ef_pump(struct engine_fixture *ef)
{
	wait_and_pump(ef, 0);
}

void ef_pump_ms(struct engine_fixture *ef, int ms)
{
	uint64_t until = takt_boot_now(ef->launch->sys).ns + (uint64_t)ms * TAKT_NS_PER_MS;

	while (takt_boot_now(ef->launch->sys).ns < until)
		wait_and_pump(ef, 10);
}

static bool matches(const struct takt_engine_event *event, enum takt_engine_event_kind kind,
		    uint64_t id)
{
	return event->kind == kind &&
	       (kind == TAKT_ENGINE_OUTCOME ? event->action_id : event->job_id) == id;
}

size_t ef_count(const struct engine_fixture *ef, enum takt_engine_event_kind kind, uint64_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < ef->event_count; i++)
		n += matches(&ef->events[i], kind, id);
	return n;
}

const struct takt_engine_event *ef_wait(struct engine_fixture *ef, enum takt_engine_event_kind kind,
					uint64_t id)
{
	uint64_t until = takt_boot_now(ef->launch->sys).ns + PATIENCE_MS * TAKT_NS_PER_MS;

	for (;;) {
		for (size_t i = 0; i < ef->event_count; i++)
			if (matches(&ef->events[i], kind, id))
				return &ef->events[i];
		if (takt_boot_now(ef->launch->sys).ns >= until)
			fail_msg("no event of kind %d for %llu", (int)kind, (unsigned long long)id);
		wait_and_pump(ef, 100);
	}
}
