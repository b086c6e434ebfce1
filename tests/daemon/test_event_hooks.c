/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of jobs where memory is short: one is run whole or not at all, and the next one is run. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "daemon/daemon.h"
#include "daemon/event_hooks.h"
#include "queue_kit.h"

static struct kit kit;
static struct takt_daemon *daemon_;

static int setup(void **state)
{
	kit_open(&kit);
	daemon_ = takt_zalloc(sizeof(*daemon_));
	assert_non_null(daemon_);
	daemon_->sys = takt_sys_real();
	daemon_->engine = &kit.engine.base;
	daemon_->jobs_dirfd = -1;
	daemon_->config.hook_limit_ms = 60000;
	return 0;
}

static int teardown(void **state)
{
	takt_alloc_fail_nth(0, 0);
	takt_free(daemon_);
	kit_close(&kit);
	return 0;
}

static char path[] = "PATH=/bin", who[] = "WHO=ann", command[] = "notify", folder[] = "/tmp";
static char *env[] = {path, who, NULL};

static struct takt_queue_job job_with_hook(void)
{
	struct takt_queue_job job = {.row = {.id = 7, .attempt = 1, .uid = 4242, .gid = 4242}};

	job.spec.hook = command;
	job.spec.cwd = folder;
	job.spec.env = env;
	return job;
}

static const char *entry(char *const *list, const char *name)
{
	size_t len = strlen(name);

	for (; list && *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return *list + len + 1;
	return NULL;
}

static void expect_whole(const struct takt_attempt_spec *spec)
{
	assert_string_equal(spec->argv[0], "/bin/sh");
	assert_string_equal(spec->argv[1], "-c");
	assert_string_equal(spec->argv[2], "notify");
	assert_string_equal(spec->cwd, "/tmp");
	assert_string_equal(entry(spec->env, "WHO"), "ann");
	assert_string_equal(entry(spec->env, "TAKT_EVENT"), "started");
	assert_string_equal(entry(spec->env, "TAKT_ATTEMPT"), "7.9.ab");
	assert_int_equal(spec->hook_log, 1);
}

/* 0: it was started and described whole. -ENOMEM: it is not run, and nothing of it stays. */
static int run_hook(struct takt_event_hooks *hooks, const struct takt_queue_job *job)
{
	struct takt_attempt_spec spec = {0};
	struct takt_engine_event over = {.kind = TAKT_ENGINE_ENDED, .job_id = 7};
	size_t before = kit.engine.count;
	struct takt_err err;
	uid_t uid = 0;
	gid_t gid;
	int rc;

	takt_event_hooks_event(hooks, job, TAKT_EVENT_STARTED);
	if (kit.engine.count == before)
		return -ENOMEM;
	over.attempt = kit.engine.actions[before].attempt;
	assert_true(over.attempt >= TAKT_ENGINE_ASIDE);
	rc = takt_event_hooks_describe(hooks, &kit.engine.actions[before], "7.9.ab", &spec, &uid,
				       &gid, &err);
	if (rc == 0) {
		expect_whole(&spec);
		assert_int_equal(uid, 4242);
	}
	takt_attempt_spec_fini(&spec);
	takt_event_hooks_aside(hooks, &over);
	return rc;
}

static void any_allocation_may_fail(void **state)
{
	struct takt_queue_job job = job_with_hook();
	struct takt_event_hooks *hooks = NULL;
	unsigned long failed = 0;
	int rc = -ENOMEM;

	assert_int_equal(takt_event_hooks_new(daemon_, &hooks), 0);
	for (unsigned long nth = 1; rc < 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = run_hook(hooks, &job);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		failed += rc < 0;
		assert_int_equal(run_hook(hooks, &job), 0);
	}
	assert_true(failed > 10);
	takt_event_hooks_free(hooks);
}

/* Who still waits for his turn goes with the daemon. */
static void what_waits_is_freed(void **state)
{
	struct takt_queue_job job = job_with_hook();
	struct takt_event_hooks *hooks = NULL;

	assert_int_equal(takt_event_hooks_new(daemon_, &hooks), 0);
	for (int i = 0; i < 3; i++)
		takt_event_hooks_event(hooks, &job, TAKT_EVENT_STARTED);
	assert_int_equal(kit.engine.count, 1); /* one at a time of a job */
	takt_event_hooks_free(hooks);
}

/* Beyond the number that may wait they are left out, and told so in the log. */
static void too_many_are_left_out(void **state)
{
	struct takt_queue_job job = job_with_hook();
	struct takt_event_hooks *hooks = NULL;

	assert_int_equal(takt_event_hooks_new(daemon_, &hooks), 0);
	for (int i = 0; i < 4100; i++)
		takt_event_hooks_event(hooks, &job, TAKT_EVENT_STARTED);
	assert_int_equal(kit.engine.count, 1);
	takt_event_hooks_free(hooks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(any_allocation_may_fail),
		CASE(what_waits_is_freed),
		CASE(too_many_are_left_out),
	};

	return cmocka_run_group_tests_name("event_hooks", tests, NULL, NULL);
}
