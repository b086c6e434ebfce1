/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of findings: they do not flap, they end with their evidence, they are told once, and
 * the same calls give the same verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rules_rig.h"

#define LINE(code, words) "NVRM: Xid (PCI:0000:18:00): " #code ", pid=7, name=train, " words

static struct rig rig;

static struct takt_rules_verdict verdict(void)
{
	struct takt_rules_verdict ret;

	takt_rules_verdict(&rig.gpu, &ret);
	return ret;
}

static void is(enum takt_health health)
{
	assert_string_equal(takt_health_name(rig.gpu.health), takt_health_name(health));
}

static void reset_gpu(void)
{
	takt_rules_event(&rig.gpu,
			 &(struct takt_rules_event){.at = rig.sample.at, .kind = TAKT_RULES_RESET});
}

static const struct takt_incident_xid *only_xid(uint32_t code)
{
	struct takt_rules_verdict now = verdict();
	const struct takt_incident *incident = NULL;

	for (uint32_t i = 0; i < now.count; i++)
		if (now.finding[i].kind == TAKT_FINDING_XID) {
			assert_null(incident);
			incident = now.finding[i].incident;
		}
	assert_non_null(incident);
	assert_int_equal(takt_incident_cause(incident)->code, code);
	return takt_incident_cause(incident);
}

static void heat_ends_some_time_after_it_is_over(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig.sample.temp_c = 91;
	rig_steps(&rig, 9);
	is(TAKT_HEALTH_HEALTHY);
	rig_steps(&rig, 5);
	is(TAKT_HEALTH_QUARANTINED);
	rig.sample.temp_c = 70;
	rig_steps(&rig, 290);
	is(TAKT_HEALTH_QUARANTINED);
	rig_steps(&rig, 20);
	is(TAKT_HEALTH_HEALTHY);
}

static void what_goes_to_and_fro_does_not_flap(void **state)
{
	rig_begin(&rig);
	for (uint32_t i = 0; i < 3600; i++) {
		rig.sample.temp_c = i / 70 % 2 ? 86 : 83;
		rig_step(&rig);
	}
	assert_int_equal(rig.gpu.changes, 1);
	is(TAKT_HEALTH_SUSPECT);
}

static void slowness_is_forgotten_after_its_window(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig.sample.slow_ns[TAKT_SLOW_HW_THERMAL] += 10 * TAKT_NS_PER_S;
	rig_step(&rig);
	is(TAKT_HEALTH_HEALTHY); /* a second cannot hold more than a second of it */
	for (uint32_t i = 0; i < 10; i++) {
		rig.sample.slow_ns[TAKT_SLOW_HW_THERMAL] += TAKT_NS_PER_S;
		rig_step(&rig);
	}
	is(TAKT_HEALTH_QUARANTINED);
	rig_steps(&rig, 500);
	is(TAKT_HEALTH_QUARANTINED);
	rig_steps(&rig, 200);
	is(TAKT_HEALTH_HEALTHY);
}

static void counters_that_begin_anew_are_no_fault(void **state)
{
	rig_begin(&rig);
	rig.sample.pcie_replays = 1000000;
	rig.sample.nvlink_errors = 50;
	rig.sample.slow_ns[TAKT_SLOW_POWER_BRAKE] = 3600 * TAKT_NS_PER_S;
	rig_steps(&rig, 100);
	rig.sample.pcie_replays = 3;
	rig.sample.nvlink_errors = 0;
	rig.sample.slow_ns[TAKT_SLOW_POWER_BRAKE] = 0;
	rig_steps(&rig, 100);
	assert_int_equal(rig.gpu.changes, 0);
}

static void a_lost_gpu_that_answers_is_back(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig.sample.lost = true;
	rig_step(&rig);
	is(TAKT_HEALTH_LOST);
	rig.sample.lost = false;
	rig_steps(&rig, 5);
	is(TAKT_HEALTH_LOST);
	rig_steps(&rig, 1);
	is(TAKT_HEALTH_HEALTHY);
	assert_int_equal(rig.gpu.changes, 2);
	assert_int_equal(rig.gpu.history[0].to, TAKT_HEALTH_LOST);
	assert_int_equal(rig.gpu.history[0].why, TAKT_FINDING_GPU_LOST);
	assert_int_equal(rig.gpu.history[1].from, TAKT_HEALTH_LOST);
}

static void xid_79_holds_until_a_reset_however_long_it_answers(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 79);
	rig_steps(&rig, 50);
	is(TAKT_HEALTH_LOST);
	assert_false(takt_rules_waits_for_reset(&rig.gpu)); /* it may yet be gone */
	while (!takt_rules_waits_for_reset(&rig.gpu) && rig.second < 1000)
		rig_step(&rig);
	is(TAKT_HEALTH_QUARANTINED); /* and the reason that is kept is the right one */
	assert_int_equal(verdict().finding[0].kind, TAKT_FINDING_OFF_THE_BUS);
	rig_steps(&rig, 100000);
	is(TAKT_HEALTH_QUARANTINED);
	reset_gpu();
	is(TAKT_HEALTH_HEALTHY);
	assert_false(takt_rules_waits_for_reset(&rig.gpu));
	rig_nvml(&rig, 79);
	is(TAKT_HEALTH_LOST);
	reset_gpu();
	is(TAKT_HEALTH_HEALTHY);
}

static void xid_79_told_again_and_again_does_not_begin_anew(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	for (int i = 0; i < 10; i++) {
		rig_nvml(&rig, 79);
		rig_steps(&rig, 10);
	}
	assert_true(takt_rules_waits_for_reset(&rig.gpu));
	rig_steps(&rig, 100);
	is(TAKT_HEALTH_QUARANTINED);
	rig.sample.lost = true;
	rig_steps(&rig, 10);
	is(TAKT_HEALTH_LOST);
	rig.sample.lost = false;
	rig_steps(&rig, 10);
	is(TAKT_HEALTH_QUARANTINED);
}

static void one_that_was_gone_and_answers_is_back_whatever_was_said(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 79);
	rig.sample.lost = true;
	rig_steps(&rig, 20);
	is(TAKT_HEALTH_LOST);
	rig.sample.lost = false;
	rig_steps(&rig, 10);
	is(TAKT_HEALTH_HEALTHY);
}

static void an_xid_79_that_is_heard_late_tells_of_the_loss_that_is_over(void **state)
{
	struct takt_rules_blow blow;
	struct takt_mono since;

	rig_begin(&rig);
	rig_steps(&rig, 10);
	since = rig.gpu.now;
	rig.sample.lost = true;
	rig_steps(&rig, 2);
	rig.sample.lost = false;
	rig_steps(&rig, 3);
	rig_nvml(&rig, 79);
	assert_true(takt_rules_befell(&rig.gpu, since, &blow));
	assert_true(blow.lost);
	assert_int_equal(blow.xid, 79);
	rig_steps(&rig, 10);
	is(TAKT_HEALTH_HEALTHY);
	rig_steps(&rig, 100);
	rig_nvml(&rig, 79); /* another one */
	is(TAKT_HEALTH_LOST);
}

static void some_incidents_wait_for_somebody_who_has_looked(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	assert_false(takt_rules_waits_for_reset(&rig.gpu));
	rig_nvml(&rig, 119);
	assert_false(takt_rules_waits_for_reset(&rig.gpu)); /* the driver will say */
	rig_nvml(&rig, 64);
	assert_true(takt_rules_waits_for_reset(&rig.gpu));
	reset_gpu();
	assert_false(takt_rules_waits_for_reset(&rig.gpu));
	rig.sample.has &= ~(uint32_t)TAKT_SEEN_RECOVERY;
	rig_steps(&rig, 10);
	rig_nvml(&rig, 94);
	assert_false(takt_rules_waits_for_reset(&rig.gpu));
	rig_nvml(&rig, 119);
	assert_true(takt_rules_waits_for_reset(&rig.gpu));
}

static void one_event_told_three_times_is_one(void **state)
{
	const struct takt_incident_xid *xid;

	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 48);
	rig_line(&rig, LINE(48, "DBE (Double Bit Error) ECC Error"));
	rig_step(&rig);
	rig_line(&rig, LINE(48, "DBE at FBPA 3"));
	xid = only_xid(48);
	assert_int_equal(xid->count, 1);
	assert_int_equal(xid->sources, TAKT_INCIDENT_NVML | TAKT_INCIDENT_KERNEL_LOG);
	assert_string_equal(xid->name, "train");
	rig_steps(&rig, 10);
	rig_nvml(&rig, 48);
	assert_int_equal(only_xid(48)->count, 2);
}

static void a_burst_is_one_incident_and_its_cause_leads(void **state)
{
	struct takt_rules_verdict now;
	char text[200];

	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 45);
	rig_step(&rig);
	rig_nvml(&rig, 63);
	rig_steps(&rig, 100);
	rig_nvml(&rig, 48);
	rig_steps(&rig, 150);
	rig_nvml(&rig, 13);
	only_xid(48);
	now = verdict();
	takt_rules_text(&now.finding[0], true, text, sizeof(text));
	assert_string_equal(text, "XID 48: Double Bit ECC Error, with 45, with 63, with 13");
	rig_steps(&rig, 200);
	rig_nvml(&rig, 62);
	now = verdict();
	assert_int_equal(now.count, 2);
	assert_int_equal(takt_incident_cause(now.finding[0].incident)->code, 48);
	assert_int_equal(takt_incident_cause(now.finding[1].incident)->code, 62);
	assert_int_equal(now.action_count, 1);
}

static void the_driver_names_a_cause_that_nobody_told(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_line(&rig, LINE(45, "Ch 00000001 caused by previous Xid 149"));
	only_xid(149);
	is(TAKT_HEALTH_SUSPECT);
}

static void a_line_knows_better_than_a_number(void **state)
{
	static const char line[] =
		"NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
		"(0x0409a0c2 0x00000008 0x00000001 0x00000000)";

	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 145);
	is(TAKT_HEALTH_SUSPECT);
	rig_line(&rig, line);
	is(TAKT_HEALTH_HEALTHY);
	rig_nvml(&rig, 145);
	is(TAKT_HEALTH_HEALTHY);
	assert_int_equal(only_xid(145)->count, 1);
}

static void a_critical_xid_ends_with_the_drivers_word_or_a_reset(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 119);
	rig_steps(&rig, 590);
	is(TAKT_HEALTH_QUARANTINED);
	rig_steps(&rig, 20);
	is(TAKT_HEALTH_HEALTHY);

	/* A board whose driver recommends nothing, ever. */
	rig_begin(&rig);
	rig.sample.has &= ~(uint32_t)TAKT_SEEN_RECOVERY;
	rig_steps(&rig, 10);
	rig_nvml(&rig, 119);
	rig_steps(&rig, 3 * 86400);
	is(TAKT_HEALTH_QUARANTINED);
	reset_gpu();
	is(TAKT_HEALTH_HEALTHY);
}

static void the_driver_says_how_to_recover(void **state)
{
	struct takt_rules_verdict now;

	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_nvml(&rig, 48);
	assert_int_equal(verdict().action[0], TAKT_REMEDY_RESET_GPU);
	rig.sample.recovery = 2;
	rig_step(&rig);
	now = verdict();
	assert_int_equal(now.finding[0].kind, TAKT_FINDING_XID);
	assert_int_equal(now.action_count, 1);
	assert_int_equal(now.action[0], TAKT_REMEDY_REBOOT);
}

static void faults_of_programs_are_forgotten_after_a_day(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig_line(&rig, LINE(31, "MMU Fault"));
	rig_line(&rig, LINE(31, "MMU Fault"));
	is(TAKT_HEALTH_HEALTHY);
	rig_steps(&rig, 10);
	rig_line(&rig, "NVRM: Xid (PCI:0000:18:00): 31, pid=9, name=serve, MMU Fault");
	is(TAKT_HEALTH_SUSPECT);
	rig_steps(&rig, 86399);
	is(TAKT_HEALTH_SUSPECT);
	rig_steps(&rig, 10);
	is(TAKT_HEALTH_HEALTHY);
}

static void silence_of_a_gpu_that_nobody_asks_says_nothing(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	takt_rules_tick(&rig.gpu, takt_mono_add(rig.gpu.now, 3600 * TAKT_NS_PER_S), false);
	is(TAKT_HEALTH_HEALTHY);
	takt_rules_tick(&rig.gpu, takt_mono_add(rig.gpu.now, TAKT_NS_PER_S), true);
	is(TAKT_HEALTH_HEALTHY);
	takt_rules_tick(&rig.gpu, takt_mono_add(rig.gpu.now, 11 * TAKT_NS_PER_S), true);
	is(TAKT_HEALTH_SUSPECT);
	takt_rules_tick(&rig.gpu, takt_mono_add(rig.gpu.now, 60 * TAKT_NS_PER_S), true);
	is(TAKT_HEALTH_QUARANTINED);
}

static void a_finding_does_not_ripen_in_a_sleep(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig.sample.temp_c = 91; /* found after ten seconds */
	rig_steps(&rig, 6);
	rig_sleep(&rig, 3600);
	rig_steps(&rig, 4);
	is(TAKT_HEALTH_HEALTHY);
	rig_steps(&rig, 6);
	is(TAKT_HEALTH_QUARANTINED);
}

static void a_finding_is_not_over_by_a_sleep(void **state)
{
	rig_begin(&rig);
	rig.sample.temp_c = 91;
	rig_steps(&rig, 15);
	rig.sample.temp_c = 70; /* over after five minutes */
	rig_steps(&rig, 200);
	rig_sleep(&rig, 3600);
	rig_steps(&rig, 90);
	is(TAKT_HEALTH_QUARANTINED);
	rig_steps(&rig, 15);
	is(TAKT_HEALTH_HEALTHY);
}

static void what_was_counted_is_not_forgotten_in_a_sleep(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	for (uint32_t i = 0; i < 10; i++) {
		rig.sample.slow_ns[TAKT_SLOW_HW_THERMAL] += TAKT_NS_PER_S;
		rig_step(&rig);
	}
	rig_sleep(&rig, 3600);
	rig_steps(&rig, 500);
	is(TAKT_HEALTH_QUARANTINED);
	rig_steps(&rig, 200);
	is(TAKT_HEALTH_HEALTHY);
}

/* A sampled reason counts since the sample before, and the GPU was not slow in its sleep. */
static void what_is_seen_on_waking_does_not_count_for_the_sleep(void **state)
{
	rig_begin(&rig);
	rig.sample.has &= ~(uint32_t)(TAKT_SEEN_SLOW << TAKT_SLOW_HW_THERMAL);
	rig_steps(&rig, 10);
	for (uint32_t nap = 0; nap < 5; nap++) {
		rig_sleep(&rig, 60);
		rig.sample.reasons |= 0x40;
		rig_step(&rig);
		rig.sample.reasons &= ~UINT64_C(0x40);
		rig_steps(&rig, 5);
	}
	is(TAKT_HEALTH_HEALTHY);
}

static void what_is_not_read_neither_raises_nor_ends(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig.sample.row_failed = true;
	rig_step(&rig);
	is(TAKT_HEALTH_QUARANTINED);
	rig.sample.has = 0;
	rig.sample.row_failed = false;
	rig.sample.ecc_uncorrected = 5;
	rig_steps(&rig, 1000);
	assert_int_equal(verdict().count, 1);
	is(TAKT_HEALTH_QUARANTINED);
	rig.sample.has = TAKT_SEEN_ROWS;
	rig_steps(&rig, 100);
	is(TAKT_HEALTH_HEALTHY);
}

static void more_incidents_than_are_kept_lose_the_least(void **state)
{
	rig_begin(&rig);
	rig_nvml(&rig, 64);
	for (uint32_t i = 0; i < 20; i++) {
		rig.second += 200;
		rig_nvml(&rig, 92);
	}
	assert_int_equal(verdict().count, TAKT_INCIDENTS);
	assert_int_equal(takt_incident_cause(verdict().finding[0].incident)->code, 64);
	is(TAKT_HEALTH_QUARANTINED);
}

static void more_codes_than_are_kept_lose_the_least(void **state)
{
	static const uint32_t codes[] = {13, 31, 43, 45, 63, 92, 94, 32, 48, 79, 62, 8, 11};

	rig_begin(&rig);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		rig_nvml(&rig, codes[i]);
	only_xid(48);
	is(TAKT_HEALTH_LOST);
}

static void history_keeps_the_newest(void **state)
{
	rig_begin(&rig);
	for (uint32_t i = 0; i < 40; i++) {
		rig.sample.lost = i % 2 == 0;
		rig_steps(&rig, 100);
	}
	assert_int_equal(rig.gpu.changes, 40);
	assert_int_equal(rig.gpu.history[39 % TAKT_RULES_HISTORY].to, TAKT_HEALTH_HEALTHY);
	assert_int_equal(rig.gpu.history[38 % TAKT_RULES_HISTORY].to, TAKT_HEALTH_LOST);
}

/* Plain data: half a run, copied, goes on as the original does. */
static void the_same_calls_give_the_same_verdict(void **state)
{
	struct rig other;

	rig_begin(&rig);
	rig.sample.temp_c = 88;
	rig_steps(&rig, 100);
	rig_nvml(&rig, 94);
	other = rig;
	rig_steps(&rig, 500);
	rig_steps(&other, 500);
	assert_memory_equal(&rig.gpu, &other.gpu, sizeof(rig.gpu));
}

static void what_comes_late_is_taken_as_of_now(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 100);
	rig.second = 3;
	rig_nvml(&rig, 48);
	only_xid(48);
	assert_true(verdict().finding[0].since.ns == rig.gpu.now.ns);
}

/* Their rate is one of real time, whoever looks when. */
static void errors_before_a_sleep_are_not_of_the_minute_after_it(void **state)
{
	rig_begin(&rig);
	rig_steps(&rig, 10);
	rig.sample.ecc_corrected += 6; /* ten in a minute are too many */
	rig_step(&rig);
	rig_sleep(&rig, 3600);
	rig.sample.ecc_corrected += 6;
	rig_step(&rig);
	is(TAKT_HEALTH_HEALTHY);
	rig.sample.ecc_corrected += 6;
	rig_step(&rig);
	is(TAKT_HEALTH_SUSPECT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heat_ends_some_time_after_it_is_over),
		cmocka_unit_test(what_goes_to_and_fro_does_not_flap),
		cmocka_unit_test(slowness_is_forgotten_after_its_window),
		cmocka_unit_test(counters_that_begin_anew_are_no_fault),
		cmocka_unit_test(a_lost_gpu_that_answers_is_back),
		cmocka_unit_test(xid_79_holds_until_a_reset_however_long_it_answers),
		cmocka_unit_test(an_xid_79_that_is_heard_late_tells_of_the_loss_that_is_over),
		cmocka_unit_test(xid_79_told_again_and_again_does_not_begin_anew),
		cmocka_unit_test(one_that_was_gone_and_answers_is_back_whatever_was_said),
		cmocka_unit_test(some_incidents_wait_for_somebody_who_has_looked),
		cmocka_unit_test(one_event_told_three_times_is_one),
		cmocka_unit_test(a_burst_is_one_incident_and_its_cause_leads),
		cmocka_unit_test(the_driver_names_a_cause_that_nobody_told),
		cmocka_unit_test(a_line_knows_better_than_a_number),
		cmocka_unit_test(a_critical_xid_ends_with_the_drivers_word_or_a_reset),
		cmocka_unit_test(the_driver_says_how_to_recover),
		cmocka_unit_test(faults_of_programs_are_forgotten_after_a_day),
		cmocka_unit_test(silence_of_a_gpu_that_nobody_asks_says_nothing),
		cmocka_unit_test(a_finding_does_not_ripen_in_a_sleep),
		cmocka_unit_test(a_finding_is_not_over_by_a_sleep),
		cmocka_unit_test(what_was_counted_is_not_forgotten_in_a_sleep),
		cmocka_unit_test(what_is_seen_on_waking_does_not_count_for_the_sleep),
		cmocka_unit_test(errors_before_a_sleep_are_not_of_the_minute_after_it),
		cmocka_unit_test(what_is_not_read_neither_raises_nor_ends),
		cmocka_unit_test(more_incidents_than_are_kept_lose_the_least),
		cmocka_unit_test(more_codes_than_are_kept_lose_the_least),
		cmocka_unit_test(history_keeps_the_newest),
		cmocka_unit_test(the_same_calls_give_the_same_verdict),
		cmocka_unit_test(what_comes_late_is_taken_as_of_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
