/* SPDX-License-Identifier: Apache-2.0 */
/* MIG instances: given out by their UUIDs, each to one job at a time, and cut GPUs to nobody else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "queue_kit.h"

/* GPU 1 of two is cut: as 3g and 2g may lie, the largest not first. */
static const struct takt_queue_instance cut[] = {
	{"MIG-a", "1g.10gb", 1, 1, 9728, 0},
	{"MIG-b", "3g.40gb", 1, 3, 40448, 0},
	{"MIG-c", "1g.10gb", 1, 1, 9728, 0},
	{"MIG-d", "2g.20gb", 1, 2, 19968, 0},
};

static void cut_machine(struct kit *kit)
{
	kit_open(kit);
	kit->gpu_count = 2;
	kit->mig_gpus = 1 << 1;
	kit->instances = cut;
	kit->instance_count = TAKT_ARRAY_LEN(cut);
	kit_restart(kit);
}

static struct takt_jobspec instances(const char *profile, uint32_t count)
{
	struct takt_jobspec spec = kit_spec(count);

	takt_strcpy(spec.mig, sizeof(spec.mig), profile);
	return spec;
}

static uint64_t accept_mig(struct kit *kit, const char *profile, uint32_t count)
{
	return kit_accept_spec(kit, instances(profile, count));
}

static const char *given(const struct kit *kit, uint64_t id)
{
	const struct takt_queue_job *job = takt_queue_find(kit->queue, id);

	return kit_action(kit, TAKT_ACTION_START, id) && job && job->row.mig ? job->row.mig : "";
}

static void clean_all(struct kit *kit)
{
	for (uint32_t gpu = 0; gpu < 2; gpu++)
		(void)takt_queue_gpu_clean(kit->queue, gpu, NULL);
	kit_settle(kit);
}

static void each_instance_is_one_jobs(void **state)
{
	struct kit kit;
	uint64_t a, b, c, large;

	cut_machine(&kit);
	a = accept_mig(&kit, "1g.10gb", 1);
	b = accept_mig(&kit, "1g.10gb", 1);
	c = accept_mig(&kit, "1g.10gb", 1);
	large = accept_mig(&kit, "3g.40gb", 1);
	assert_true(strcmp(given(&kit, a), "MIG-a") == 0 || strcmp(given(&kit, a), "MIG-c") == 0);
	assert_true(strcmp(given(&kit, b), "MIG-a") == 0 || strcmp(given(&kit, b), "MIG-c") == 0);
	assert_string_not_equal(given(&kit, a), given(&kit, b));
	assert_string_equal(given(&kit, c), "");
	assert_string_equal(takt_why_name(takt_queue_why(kit.queue, c, &(uint32_t){0})->why),
			    "mig");
	kit_started(&kit, a);
	kit_ended(&kit, a, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_string_equal(given(&kit, c), ""); /* not clean yet */
	clean_all(&kit);
	assert_string_not_equal(given(&kit, c), "");
	assert_string_equal(given(&kit, large), "MIG-b");
	kit_close(&kit);
}

static void one_job_may_have_several(void **state)
{
	struct kit kit;
	size_t count;

	cut_machine(&kit);
	assert_int_equal(strlen(given(&kit, accept_mig(&kit, "1g.10gb", 2))),
			 strlen("MIG-a,MIG-c"));
	takt_queue_holdings(kit.queue, &count);
	assert_int_equal(count, 2);
	kit_close(&kit);
}

static void whole_gpus_and_shares_are_never_cut_ones(void **state)
{
	struct takt_err err = {0};
	struct takt_jobspec part = kit_spec(1);
	struct kit kit;
	uint64_t whole;

	cut_machine(&kit);
	part.gpu_milli = 500;
	whole = kit_accept(&kit, 1, 0);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, whole)->gpu_mask, 1);
	assert_null(kit_action(&kit, TAKT_ACTION_START, kit_accept(&kit, 1, 0)));
	assert_null(kit_action(&kit, TAKT_ACTION_START, kit_accept_spec(&kit, part)));
	assert_int_equal(kit_submit(&kit, 2, 0, &err), -TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "cut into MIG"));
	kit_close(&kit);
}

static void what_the_machine_does_not_have_is_refused(void **state)
{
	static const char says[] = "this machine has 2 of 1g.10gb, 1 of 3g.40gb, 1 of 2g.20gb";
	struct takt_jobspec spec;
	struct takt_err err = {0};
	struct kit kit;

	cut_machine(&kit);
	spec = instances("1g.10gb", 3);
	assert_int_equal(
		takt_queue_submit(kit.queue, 1000, 1000, &spec, (struct takt_wall){5}, NULL, &err),
		-TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, says));
	takt_jobspec_fini(&spec);
	spec = instances("7g.80gb", 1);
	assert_int_equal(
		takt_queue_submit(kit.queue, 1000, 1000, &spec, (struct takt_wall){5}, NULL, &err),
		-TAKT_E_IMPOSSIBLE);
	takt_jobspec_fini(&spec);
	kit_close(&kit);
}

static void instances_are_kept_over_a_restart(void **state)
{
	struct kit kit;
	uint64_t a, b;
	char was[32];

	cut_machine(&kit);
	a = accept_mig(&kit, "1g.10gb", 1);
	takt_strcpy(was, sizeof(was), given(&kit, a));
	kit_started(&kit, a);
	kit_settle(&kit);
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 1);
	assert_string_equal(takt_queue_find(kit.queue, a)->row.mig, was);
	b = accept_mig(&kit, "1g.10gb", 1);
	assert_string_not_equal(given(&kit, b), was);
	assert_string_equal(given(&kit, accept_mig(&kit, "1g.10gb", 1)), "");
	kit_close(&kit);
}

/* The GPU was cut anew while takt was away: the old instance's job is left alone, nothing is given
 * out beside it, and who asked for what is not there any more waits. */
static void a_gpu_that_was_cut_anew_is_nobodys_while_a_job_is_on_it(void **state)
{
	static const struct takt_queue_instance anew[] = {{"MIG-x", "7g.80gb", 1, 7, 80000, 0}};
	struct kit kit;
	uint64_t old, waits, next;

	cut_machine(&kit);
	old = accept_mig(&kit, "3g.40gb", 1);
	waits = accept_mig(&kit, "3g.40gb", 1);
	kit_started(&kit, old);
	kit_settle(&kit);
	kit.instances = anew;
	kit.instance_count = 1;
	kit_restart(&kit);
	next = accept_mig(&kit, "7g.80gb", 1);
	assert_string_equal(given(&kit, next), "");
	kit_started(&kit, old);
	kit_ended(&kit, old, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_string_equal(given(&kit, next), "MIG-x");
	assert_int_equal(takt_queue_find(kit.queue, waits)->phase, TAKT_PHASE_WAITING);
	kit_close(&kit);
}

/* Another layout of GPU 1, of which one instance stays. */
static const struct takt_queue_instance cut_anew[] = {
	{"MIG-e", "4g.40gb", 1, 4, 40448, 0},
	{"MIG-a", "1g.10gb", 1, 1, 9728, 0},
};
static const struct takt_queue_instance kinds[] = {{"", "4g.40gb", 0, 4, 40448, 0}};

static void cut_machine_with_kinds(struct kit *kit)
{
	cut_machine(kit);
	kit->kinds = kinds;
	kit->kind_count = TAKT_ARRAY_LEN(kinds);
	kit_restart(kit);
}

static void a_gpu_is_cut_anew_while_takt_runs(void **state)
{
	struct takt_err err = {0};
	struct takt_jobspec gone;
	struct kit kit;
	uint64_t large;
	bool held;

	cut_machine_with_kinds(&kit);
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew, 2, &held, &err), 0);
	assert_false(held);
	large = accept_mig(&kit, "4g.40gb", 1);
	assert_string_equal(given(&kit, large), "MIG-e");
	assert_string_equal(given(&kit, accept_mig(&kit, "1g.10gb", 1)), "MIG-a");
	gone = instances("3g.40gb", 1);
	assert_int_equal(
		takt_queue_submit(kit.queue, 1000, 1000, &gone, (struct takt_wall){5}, NULL, &err),
		-TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "this machine has 1 of 1g.10gb, 1 of 4g.40gb"));
	takt_jobspec_fini(&gone);
	assert_int_equal(takt_queue_mig_change(kit.queue, 0, cut_anew, 2, &held, &err), -EINVAL);
	kit_close(&kit);
}

static void a_job_that_waits_gets_an_instance_that_appears(void **state)
{
	struct kit kit;
	uint64_t first, second;
	bool held;

	cut_machine_with_kinds(&kit);
	first = accept_mig(&kit, "3g.40gb", 1);
	second = accept_mig(&kit, "3g.40gb", 1);
	assert_string_equal(given(&kit, first), "MIG-b");
	kit_started(&kit, first);
	kit_settle(&kit);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew, 2, &held, NULL), 0);
	assert_true(held); /* it has left, and is not known to be clean */
	clean_all(&kit);
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew, 2, &held, NULL), 0);
	assert_false(held);
	kit_settle(&kit);
	assert_string_equal(given(&kit, second), "");
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut, 4, &held, NULL), 0);
	kit_settle(&kit);
	assert_string_equal(given(&kit, second), "MIG-b");
	kit_close(&kit);
}

static void an_instance_that_is_gone_stays_its_jobs(void **state)
{
	struct kit kit;
	uint64_t holder;
	size_t count;
	bool held;

	cut_machine_with_kinds(&kit);
	holder = accept_mig(&kit, "3g.40gb", 1);
	assert_string_equal(given(&kit, holder), "MIG-b");
	kit_started(&kit, holder);
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew + 1, 1, &held, NULL), 0);
	assert_true(held);
	(void)takt_queue_holdings(kit.queue, &count);
	assert_int_equal(count, 1);
	assert_string_equal(takt_queue_instance_uuid(
				    kit.queue, takt_queue_holdings(kit.queue, &count)->instance),
			    "MIG-b");
	kit_ended(&kit, holder, TAKT_END_EXITED, 0);
	clean_all(&kit);
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew + 1, 1, &held, NULL), 0);
	assert_false(held);
	kit_close(&kit);
}

static void a_job_that_has_not_begun_waits_again_when_its_instance_is_gone(void **state)
{
	struct kit kit;
	uint64_t first, other;
	bool held;

	cut_machine_with_kinds(&kit);
	other = accept_mig(&kit, "1g.10gb", 1);
	assert_string_equal(given(&kit, other), "MIG-a");
	kit_started(&kit, other);
	kit.hold_prepare = true;
	first = accept_mig(&kit, "3g.40gb", 1);
	assert_string_equal(takt_queue_find(kit.queue, first)->row.mig, "MIG-b");
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew + 1, 1, &held, NULL), 0);
	assert_true(held);
	takt_queue_prepared(kit.queue, first, "");
	kit_settle(&kit);
	assert_null(takt_queue_find(kit.queue, first)->row.mig);
	assert_string_equal(given(&kit, first), "");
	assert_string_equal(given(&kit, other), "MIG-a");
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew + 1, 1, &held, NULL), 0);
	assert_false(held);
	kit.hold_prepare = false;
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut, 4, &held, NULL), 0);
	kit_settle(&kit);
	assert_string_equal(given(&kit, first), "MIG-b");
	kit_close(&kit);
}

static void nothing_is_given_of_a_gpu_that_is_being_cut(void **state)
{
	struct kit kit;
	uint64_t job;

	cut_machine(&kit);
	takt_queue_mig_close(kit.queue, 1u << 1);
	job = accept_mig(&kit, "3g.40gb", 1);
	assert_string_equal(given(&kit, job), "");
	takt_queue_mig_close(kit.queue, 0);
	kit_settle(&kit);
	assert_string_equal(given(&kit, job), "MIG-b");
	kit_close(&kit);
}

static void kinds_that_were_not_told_are_left_out(void **state)
{
	struct kit kit;
	struct takt_err err = {0};
	bool held;

	cut_machine(&kit);
	assert_int_equal(takt_queue_mig_change(kit.queue, 1, cut_anew, 2, &held, &err),
			 -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "4g.40gb"));
	assert_string_equal(given(&kit, accept_mig(&kit, "1g.10gb", 1)), "MIG-a");
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instance_is_one_jobs),
		cmocka_unit_test(one_job_may_have_several),
		cmocka_unit_test(whole_gpus_and_shares_are_never_cut_ones),
		cmocka_unit_test(what_the_machine_does_not_have_is_refused),
		cmocka_unit_test(instances_are_kept_over_a_restart),
		cmocka_unit_test(a_gpu_that_was_cut_anew_is_nobodys_while_a_job_is_on_it),
		cmocka_unit_test(a_gpu_is_cut_anew_while_takt_runs),
		cmocka_unit_test(a_job_that_waits_gets_an_instance_that_appears),
		cmocka_unit_test(an_instance_that_is_gone_stays_its_jobs),
		cmocka_unit_test(a_job_that_has_not_begun_waits_again_when_its_instance_is_gone),
		cmocka_unit_test(nothing_is_given_of_a_gpu_that_is_being_cut),
		cmocka_unit_test(kinds_that_were_not_told_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
