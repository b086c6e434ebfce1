/* SPDX-License-Identifier: Apache-2.0 */
/* Who may have how much: shares, limits and quotas of users and tenants, and that what was used
 * outlives takt. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "queue_kit.h"

static void set_rules(struct kit *kit, const char *text)
{
	struct takt_share_rules rules;

	assert_int_equal(takt_share_rules_parse(text, strlen(text), "rules", &rules, NULL), 0);
	assert_int_equal(takt_queue_set_rules(kit->queue, &rules, NULL), 0);
}

static int submit_as(struct kit *kit, uid_t uid, uint32_t gpus, const char *tenant,
		     struct takt_err *err)
{
	struct takt_jobspec spec = kit_spec(gpus);
	int rc;

	strcpy(spec.tenant, tenant);
	rc = takt_queue_submit(kit->queue, uid, uid, &spec, (struct takt_wall){5}, kit, err);
	takt_jobspec_fini(&spec);
	if (rc == 0)
		kit_settle(kit);
	return rc;
}

static uint64_t accept_as(struct kit *kit, uid_t uid, uint32_t gpus)
{
	assert_int_equal(submit_as(kit, uid, gpus, "", NULL), 0);
	return kit->accepted_id;
}

/* Runs for an hour. */
static void run_through(struct kit *kit, uint64_t id)
{
	uint64_t mask = kit_action(kit, TAKT_ACTION_START, id)->gpu_mask;

	kit_started(kit, id);
	kit->boot_ns += 3600 * TAKT_NS_PER_S;
	kit_settle(kit);
	kit_ended(kit, id, TAKT_END_EXITED, 0);
	kit_settle(kit);
	kit_clean(kit, mask);
}

static void open_fair(struct kit *kit)
{
	kit_open_with(kit, (struct takt_sched_settings){.order = "fair_share"}, TAKT_FAILURE_KEEP);
}

static bool starts(struct kit *kit, uint64_t id)
{
	return kit_action(kit, TAKT_ACTION_START, id) != NULL;
}

static void who_has_used_less_goes_first(void **state)
{
	struct kit kit;
	uint64_t first, heavy, light;

	open_fair(&kit);
	first = accept_as(&kit, 1000, 8);
	heavy = accept_as(&kit, 1000, 8);
	light = accept_as(&kit, 1001, 8);
	run_through(&kit, first);
	kit_settle(&kit);
	assert_true(starts(&kit, light));
	assert_false(starts(&kit, heavy));
	kit_close(&kit);
}

/* 1000 has used twice as much as 1001, and may use a hundred times as much. */
static void weights_count(void **state)
{
	struct kit kit;
	uint64_t second, light, heavy;

	open_fair(&kit);
	set_rules(&kit, "[user 1000]\nweight = 100\n");
	run_through(&kit, accept_as(&kit, 1000, 8));
	run_through(&kit, accept_as(&kit, 1000, 8));
	second = accept_as(&kit, 1001, 8);
	light = accept_as(&kit, 1001, 8);
	heavy = accept_as(&kit, 1000, 8);
	run_through(&kit, second);
	kit_settle(&kit);
	assert_true(starts(&kit, heavy));
	assert_false(starts(&kit, light));
	kit_close(&kit);
}

static void what_was_used_outlives_takt(void **state)
{
	struct kit kit;
	struct takt_queue_share share;
	uint64_t gate, heavy;

	open_fair(&kit);
	run_through(&kit, accept_as(&kit, 1000, 8));
	kit.boot_ns += 61 * TAKT_NS_PER_S;
	kit_settle(&kit);
	kit_restart(&kit);
	gate = accept_as(&kit, 1001, 8);
	heavy = accept_as(&kit, 1000, 8);
	kit_settle(&kit);
	assert_true(starts(&kit, gate));
	assert_true(takt_queue_share(kit.queue, takt_queue_find(kit.queue, heavy), &share));
	assert_in_range(share.used_gpu_s, 8 * 3500, 8 * 3600);
	assert_int_equal(share.of, 2);
	assert_int_equal(share.place, 2);
	kit_close(&kit);
}

static void a_limit_holds_and_the_reason_is_told(void **state)
{
	struct kit kit;
	uint64_t first, second;
	uint32_t ahead;

	kit_open(&kit);
	set_rules(&kit, "[user *]\nlimit = 2\n");
	first = accept_as(&kit, 1000, 2);
	second = accept_as(&kit, 1000, 1);
	kit_settle(&kit);
	assert_true(starts(&kit, first));
	assert_false(starts(&kit, second));
	assert_int_equal(takt_queue_why(kit.queue, second, &ahead)->why, TAKT_WHY_QUOTA);
	set_rules(&kit, "[user *]\nlimit = 3\n");
	kit_settle(&kit);
	assert_true(starts(&kit, second));
	kit_close(&kit);
}

static void so_many_may_wait(void **state)
{
	struct kit kit;
	struct takt_err err = {0};

	kit_open(&kit);
	set_rules(&kit, "[user 1000]\nmax_queued = 1\n");
	accept_as(&kit, 1001, 8);
	accept_as(&kit, 1000, 8);
	assert_int_equal(submit_as(&kit, 1000, 8, "", &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "the limit is 1"));
	accept_as(&kit, 1001, 8);
	kit_close(&kit);
}

static void tenants_admit_whom_they_name(void **state)
{
	struct kit kit;
	struct takt_err err = {0};

	kit_open(&kit);
	set_rules(&kit, "[tenant lab]\nlimit = 4\n[tenant lab/vision]\nusers = 1000\nlimit = 2\n");
	assert_int_equal(submit_as(&kit, 1000, 1, "lab/vision", NULL), 0);
	assert_int_equal(submit_as(&kit, 1001, 1, "lab", NULL), 0);
	assert_int_equal(submit_as(&kit, 1001, 1, "lab/vision", &err), -EPERM);
	assert_int_equal(submit_as(&kit, 1000, 1, "lap", &err), -TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "no tenant 'lap'"));
	kit_restart(&kit); /* without rules: nobody is lost */
	assert_non_null(takt_queue_find(kit.queue, 1));
	kit_close(&kit);
}

static void a_new_half_life_loses_nothing(void **state)
{
	struct kit kit;
	uint64_t runs, waits;

	open_fair(&kit);
	runs = accept_as(&kit, 1000, 8);
	waits = accept_as(&kit, 1001, 8);
	kit_started(&kit, runs);
	kit_settle(&kit);
	set_rules(&kit, "half_life = 1d\n");
	kit_settle(&kit);
	assert_false(starts(&kit, waits));
	kit_ended(&kit, runs, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_true(starts(&kit, waits));
	kit_close(&kit);
}

static int share_fairly(struct kit *kit)
{
	const struct takt_queue_terms terms = {.settings = {.order = "fair_share"},
					       .max_jobs = 100};

	return takt_queue_set_terms(kit->queue, &terms, NULL);
}

static void another_order_counts_for_who_waits(void **state)
{
	struct kit kit;
	uint64_t runs, his, hers;
	int failed = 0;

	kit_open(&kit);
	runs = accept_as(&kit, 1000, 8);
	his = accept_as(&kit, 1000, 8);
	hers = accept_as(&kit, 1001, 8);
	kit_started(&kit, runs);
	kit_settle(&kit);
	/* As before while memory fails; then all of it. */
	for (unsigned long nth = 1;; nth++) {
		takt_alloc_fail_nth(nth, 0);
		if (share_fairly(&kit) == 0)
			break;
		failed++;
	}
	takt_alloc_fail_nth(0, 0);
	assert_true(failed > 3);
	kit.boot_ns += 3600 * TAKT_NS_PER_S;
	kit_settle(&kit);
	kit_ended(&kit, runs, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_true(starts(&kit, hers));
	assert_false(starts(&kit, his));
	kit_close(&kit);
}

static void terms_that_do_not_go_together_are_refused(void **state)
{
	const struct takt_queue_terms terms = {
		.settings = {.order = "fifo", .backfill = TAKT_BACKFILL_GREEDY, .preempt = true}};
	struct takt_err err = {0};
	struct kit kit;

	kit_open(&kit);
	assert_int_equal(takt_queue_set_terms(kit.queue, &terms, &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "preempt cannot go with backfill greedy"));
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_used_less_goes_first),
		cmocka_unit_test(weights_count),
		cmocka_unit_test(what_was_used_outlives_takt),
		cmocka_unit_test(a_limit_holds_and_the_reason_is_told),
		cmocka_unit_test(so_many_may_wait),
		cmocka_unit_test(tenants_admit_whom_they_name),
		cmocka_unit_test(a_new_half_life_loses_nothing),
		cmocka_unit_test(another_order_counts_for_who_waits),
		cmocka_unit_test(terms_that_do_not_go_together_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
