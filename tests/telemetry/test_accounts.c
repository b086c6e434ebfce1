/* SPDX-License-Identifier: Apache-2.0 */
/* What a job is told at its end, from readings made up here: above all, when energy is not told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "telemetry/accounts.h"

enum {
	JOB = 7,
	STALE_MS = 2000,
};

static struct takt_accounts accounts;

static int begin(void **state)
{
	takt_accounts_init(&accounts, STALE_MS * TAKT_NS_PER_MS);
	return 0;
}

static int end(void **state)
{
	takt_accounts_fini(&accounts);
	return 0;
}

static struct takt_gpu_reading reading_at(uint64_t ms)
{
	return (struct takt_gpu_reading){
		.at = {ms * TAKT_NS_PER_MS},
		.has = TAKT_HAS_SM_CLOCK | TAKT_HAS_ENERGY | TAKT_HAS_THROTTLE | TAKT_HAS_MEMORY,
		.sm_mhz = 1000,
		.energy_mj = 1000000 + ms * 200, /* 200 W */
		.energy_at = {ms * TAKT_NS_PER_MS},
		.throttle = TAKT_THROTTLE_IDLE,
		.mem_used_bytes = 1000,
	};
}

static void feed(uint32_t gpu, struct takt_gpu_reading reading)
{
	takt_accounts_feed(&accounts, gpu, &reading);
}

/* Readings every 100 ms, both ends included. */
static void feed_span(uint32_t gpu, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t ms = from_ms; ms <= to_ms; ms += 100)
		feed(gpu, reading_at(ms));
}

static struct takt_account sum(void)
{
	struct takt_account account;

	takt_account_sum(&accounts, takt_accounts_find(&accounts, JOB), &account);
	return account;
}

static void open_job(uint64_t mask)
{
	assert_int_equal(takt_accounts_open(&accounts, JOB, mask, NULL), 0);
}

static void energy_is_the_difference_of_the_counter(void **state)
{
	struct takt_account a;

	open_job(1);
	feed_span(0, 1000, 4000);
	a = sum();
	assert_true(a.has & TAKT_ACCOUNT_ENERGY);
	assert_int_equal(a.energy_mj, 3000 * 200);
	assert_string_equal(a.energy_why_not, "");
}

static void energy_of_several_gpus_is_added(void **state)
{
	open_job(0x5);
	feed_span(0, 1000, 4000);
	feed_span(1, 1000, 4000); /* not the job's */
	feed_span(2, 1000, 4000);
	assert_int_equal(sum().energy_mj, 2 * 3000 * 200);
}

static void energy_begins_at_the_last_reading_before_the_job(void **state)
{
	struct takt_gpu_reading before = reading_at(900);

	open_job(1);
	takt_account_begin(takt_accounts_find(&accounts, JOB), 0, &before);
	feed_span(0, 1000, 3000);
	assert_int_equal(sum().energy_mj, 2100 * 200);
}

static void not_told(const char *why)
{
	struct takt_account a = sum();

	assert_false(a.has & TAKT_ACCOUNT_ENERGY);
	assert_int_equal(a.energy_mj, 0);
	if (!strstr(a.energy_why_not, why))
		fail_msg("'%s' is not about '%s'", a.energy_why_not, why);
}

static void nineteen_periods_are_too_few_and_twenty_enough(void **state)
{
	open_job(1);
	feed_span(0, 1000, 2900);
	not_told("shorter than 20 periods");
	feed_span(0, 3000, 3000);
	assert_true(sum().has & TAKT_ACCOUNT_ENERGY);
}

/* A counter that is dear to read: what is older is fed again and again. */
static void feed_dear(uint64_t from_ms, uint64_t to_ms, uint64_t every_ms)
{
	struct takt_gpu_reading r, read = reading_at(from_ms);

	for (uint64_t ms = from_ms; ms <= to_ms; ms += 100) {
		if (ms * TAKT_NS_PER_MS >= read.at.ns + every_ms * TAKT_NS_PER_MS)
			read = reading_at(ms);
		r = reading_at(ms);
		r.energy_mj = read.energy_mj;
		r.energy_at = read.energy_at;
		feed(0, r);
	}
}

static void a_counter_that_is_read_seldom_ticks_as_it_did_when_it_was_read_often(void **state)
{
	feed_span(0, 1000, 3000);
	feed_dear(3100, 60000, 1000);
	assert_int_equal(takt_energy_clock_period_ns(&accounts.clocks[0]), 100 * TAKT_NS_PER_MS);
	open_job(1);
	feed_span(0, 60100, 62000);
	not_told("shorter than 20 periods");
	feed_dear(62100, 140000, 1000);
	assert_int_equal(sum().energy_mj,
			 (139100 - 60100) * 200); /* up to the last that was read */
}

static void a_job_does_not_begin_with_what_the_counter_said_before(void **state)
{
	struct takt_gpu_reading old = reading_at(9900);

	feed_span(0, 1000, 10000);
	open_job(1);
	old.energy_at = reading_at(5000).energy_at;
	old.energy_mj = reading_at(5000).energy_mj;
	takt_account_begin(takt_accounts_find(&accounts, JOB), 0, &old);
	not_told("ended before the energy counter was read");
	feed_span(0, 10100, 13100);
	assert_int_equal(sum().energy_mj, 3000 * 200);
}

static uint64_t every_ms(void)
{
	return takt_accounts_energy_every_ns(&accounts, 0) / TAKT_NS_PER_MS;
}

static void the_counter_is_wanted_less_often_the_longer_a_job_runs(void **state)
{
	feed_span(0, 1000, 1000);
	assert_int_equal(every_ms(), 5000);
	open_job(1);
	assert_int_equal(every_ms(), 0);
	feed_span(0, 1100, 5000);
	assert_int_equal(every_ms(), 100); /* a fortieth of 4 s */
	feed_span(0, 5100, 100000);
	assert_int_equal(every_ms(), 1000);
	assert_int_equal(takt_accounts_open(&accounts, JOB + 1, 1, NULL),
			 0); /* a share beside it */
	assert_int_equal(every_ms(), 0);
}

/* Up to one reading is missing at an end: of twenty that is a tenth at most. */
static void a_counter_that_is_read_once_a_second_needs_twenty_seconds(void **state)
{
	open_job(1);
	for (uint64_t ms = 1000; ms <= 20000; ms += 1000)
		feed(0, reading_at(ms));
	not_told("shorter than 20 periods of the counter (20000 ms)");
	feed(0, reading_at(21000));
	assert_int_equal(sum().energy_mj, 20000 * 200);
}

/* It took a second to answer, once, and had been read a second before. */
static void a_late_answer_is_one(void **state)
{
	open_job(1);
	feed_span(0, 1000, 2000);
	feed_dear(2100, 60000, 1000);
	accounts.now.ns = (60000 + STALE_MS) * TAKT_NS_PER_MS;
	assert_true(sum().has & TAKT_ACCOUNT_ENERGY);
	accounts.now.ns = (61100 + STALE_MS) * TAKT_NS_PER_MS;
	not_told("stopped answering");
}

static void a_slow_counter_needs_longer(void **state)
{
	open_job(1);
	for (uint64_t ms = 1000; ms <= 9000; ms += 100) {
		struct takt_gpu_reading r = reading_at(ms);

		r.energy_mj = reading_at(ms - ms % 500).energy_mj; /* ticks twice a second */
		feed(0, r);
	}
	assert_int_equal(takt_energy_clock_period_ns(&accounts.clocks[0]), 500 * TAKT_NS_PER_MS);
	not_told("10000 ms");
}

static void a_counter_that_ticks_faster_still_counts_as_100_ms(void **state)
{
	open_job(1);
	for (uint64_t ms = 1000; ms <= 2500; ms += 10)
		feed(0, reading_at(ms));
	assert_int_equal(takt_energy_clock_period_ns(&accounts.clocks[0]), 100 * TAKT_NS_PER_MS);
	not_told("2000 ms");
}

static void a_shared_gpu_has_no_attributable_energy(void **state)
{
	open_job(1);
	feed_span(0, 1000, 4000);
	takt_accounts_find(&accounts, JOB)->shared = true;
	not_told("shared GPU");
}

static void a_counter_that_goes_back_was_reset(void **state)
{
	struct takt_gpu_reading r = reading_at(2000);

	open_job(1);
	feed_span(0, 1000, 1900);
	r.energy_mj = 5;
	feed(0, r);
	feed_span(0, 2100, 6000);
	not_told("reset");
}

static void one_gpu_without_a_counter_spoils_the_sum(void **state)
{
	open_job(3);
	feed_span(0, 1000, 4000);
	for (uint64_t ms = 1000; ms <= 4000; ms += 100) {
		struct takt_gpu_reading r = reading_at(ms);

		r.has &= ~(uint32_t)TAKT_HAS_ENERGY;
		feed(1, r);
	}
	not_told("no energy counter");
}

static void a_gpu_that_stopped_answering_spoils_the_sum(void **state)
{
	open_job(3);
	feed_span(0, 1000, 8000);
	feed_span(1, 1000, 5000);
	not_told("stopped answering");
}

static void clock_is_the_mean_of_the_gpus_means(void **state)
{
	open_job(3);
	for (uint64_t ms = 1000; ms <= 1900; ms += 100) {
		struct takt_gpu_reading r = reading_at(ms);

		r.sm_mhz = ms < 1500 ? 1000 : 2000;
		feed(0, r);
	}
	feed_span(1, 1000, 1000); /* once, at 1000 MHz */
	assert_int_equal(sum().mean_sm_mhz, (1500 + 1000) / 2);
	assert_true(sum().has & TAKT_ACCOUNT_SM_SPREAD);
	assert_int_equal(sum().sm_spread_mhz, 500);
}

static void how_far_clocks_are_apart_is_told_of_several_all_measured(void **state)
{
	open_job(3);
	feed_span(0, 1000, 2000);
	assert_true(sum().has & TAKT_ACCOUNT_MEAN_SM);
	assert_false(sum().has & TAKT_ACCOUNT_SM_SPREAD); /* nothing of the other */
	feed_span(1, 1000, 2000);
	assert_true(sum().has & TAKT_ACCOUNT_SM_SPREAD);
	assert_int_equal(sum().sm_spread_mhz, 0);
}

static void throttled_time_is_summed_and_idle_is_not_throttling(void **state)
{
	struct takt_account a;

	open_job(1);
	for (uint64_t ms = 1000; ms <= 2000; ms += 100) {
		struct takt_gpu_reading r = reading_at(ms);

		if (ms > 1300 && ms <= 1700)
			r.throttle = TAKT_THROTTLE_SW_POWER | TAKT_THROTTLE_APP_CLOCKS;
		feed(0, r);
	}
	a = sum();
	assert_true(a.has & TAKT_ACCOUNT_THROTTLED);
	assert_int_equal(a.throttled_ns, 400 * TAKT_NS_PER_MS);
	assert_int_equal(a.throttle_reasons, TAKT_THROTTLE_SW_POWER);
}

static void a_gap_in_the_samples_is_not_throttled_time(void **state)
{
	struct takt_gpu_reading r = reading_at(5000);

	open_job(1);
	feed_span(0, 1000, 1000);
	r.throttle = TAKT_THROTTLE_HW_THERMAL;
	feed(0, r);
	assert_int_equal(sum().throttled_ns, 0);
	assert_int_equal(sum().throttle_reasons, TAKT_THROTTLE_HW_THERMAL);
}

static void peak_memory_is_of_one_gpu(void **state)
{
	struct takt_gpu_reading r = reading_at(1000);

	open_job(3);
	r.mem_used_bytes = 5000;
	feed(0, r);
	r.mem_used_bytes = 7000;
	feed(1, r);
	r.at.ns++;
	r.mem_used_bytes = 100;
	feed(1, r);
	assert_int_equal(sum().peak_memory_bytes, 7000);
}

/* Half of the time at 80 %, then idle; the second GPU always idle. */
/* What a share's GPU uses is everybody's: told is what the job's own processes did. */
static void peak_memory_of_a_share_is_its_own(void **state)
{
	open_job(1);
	takt_accounts_find(&accounts, JOB)->share = true;
	feed_span(0, 0, 1000);
	assert_false(sum().has & TAKT_ACCOUNT_PEAK_MEMORY);
	takt_accounts_find(&accounts, JOB)->own_seen = true;
	takt_accounts_find(&accounts, JOB)->own_peak_bytes = 17;
	assert_true(sum().has & TAKT_ACCOUNT_PEAK_MEMORY);
	assert_int_equal(sum().peak_memory_bytes, 17);
}

static void utilisation_is_over_time_and_idle_is_added(void **state)
{
	struct takt_account a;

	open_job(3);
	for (uint64_t ms = 1000; ms <= 3000; ms += 100) {
		struct takt_gpu_reading reading = reading_at(ms);

		reading.has |= TAKT_HAS_GPU_UTIL;
		feed(1, reading);
		reading.gpu_util_pct = ms <= 2000 ? 80 : 0;
		feed(0, reading);
	}
	a = sum();
	assert_true(a.has & TAKT_ACCOUNT_UTIL);
	assert_int_equal(a.mean_util_permille, (400 + 0) / 2);
	assert_int_equal(a.idle_ns, 3000 * TAKT_NS_PER_MS);
}

static void utilisation_of_a_gpu_that_was_not_measured_or_is_shared_is_not_told(void **state)
{
	struct takt_gpu_reading reading;

	open_job(3);
	feed_span(1, 1000, 2000);
	for (uint64_t ms = 1000; ms <= 2000; ms += 100) {
		reading = reading_at(ms);
		reading.has |= TAKT_HAS_GPU_UTIL;
		feed(0, reading);
	}
	assert_false(sum().has & TAKT_ACCOUNT_UTIL);
	reading.at.ns += 100 * TAKT_NS_PER_MS;
	feed(1, reading);
	assert_true(sum().has & TAKT_ACCOUNT_UTIL);
	takt_accounts_find(&accounts, JOB)->shared = true;
	assert_false(sum().has & TAKT_ACCOUNT_UTIL);
}

static void nothing_read_is_nothing_told(void **state)
{
	open_job(1);
	assert_int_equal(sum().has, 0);
	not_told("no energy counter");
}

static void a_job_has_one_account(void **state)
{
	struct takt_err err = {0};

	open_job(1);
	assert_int_equal(takt_accounts_open(&accounts, JOB, 1, &err), -EEXIST);
	takt_accounts_close(&accounts, takt_accounts_find(&accounts, JOB));
	assert_null(takt_accounts_find(&accounts, JOB));
	open_job(1);
}

static const char *const uuids[TAKT_DEVICE_MAX_GPUS] = {"GPU-a", "GPU-b", "GPU-c"};

static void write_down(struct takt_str *ret)
{
	*ret = TAKT_STR(65536);
	assert_int_equal(
		takt_account_to_text(&accounts, takt_accounts_find(&accounts, JOB), uuids, ret), 0);
}

/* Another process, which has looked at its GPUs once. */
static void start_anew(uint64_t mask, uint64_t ms)
{
	struct takt_gpu_reading reading = reading_at(ms);

	end(NULL);
	begin(NULL);
	feed(0, reading);
	open_job(mask);
}

static int go_on(const char *const names[], const char *text)
{
	return takt_account_from_text(&accounts, text, names, takt_accounts_find(&accounts, JOB));
}

/* GPUs 0 and 2; the one that was 0 is 1 to the next process. */
static void an_account_goes_on_where_it_was(void **state)
{
	static const char *const moved[TAKT_DEVICE_MAX_GPUS] = {"GPU-c", "GPU-a", "GPU-b"};
	struct takt_gpu_reading most = reading_at(3000);
	struct takt_str text;
	struct takt_account a;

	open_job(5);
	feed_span(0, 0, 20000);
	feed_span(2, 0, 20000);
	most.mem_used_bytes = 5000;
	most.throttle = TAKT_THROTTLE_SW_POWER;
	most.at.ns = 20100 * TAKT_NS_PER_MS;
	most.energy_mj = reading_at(20100).energy_mj;
	feed(2, most);
	write_down(&text);
	start_anew(3, 21000);
	assert_int_equal(go_on(moved, text.s), 0);
	feed_span(0, 21000, 40000);
	feed_span(1, 21000, 40000);
	a = sum();
	assert_true(a.written);
	assert_true(a.has & TAKT_ACCOUNT_ENERGY);
	assert_int_equal(a.energy_mj, 2 * 40000 * 200);
	assert_int_equal(a.peak_memory_bytes, 5000);
	assert_int_equal(a.throttled_ns, 100 * TAKT_NS_PER_MS);
	assert_int_equal(a.throttle_reasons, TAKT_THROTTLE_SW_POWER);
	assert_int_equal(a.mean_sm_mhz, 1000);
	takt_str_fini(&text);
}

static void what_was_not_seen_for_more_than_a_twentieth_is_not_told(void **state)
{
	struct takt_str text;

	open_job(1);
	feed_span(0, 0, 10000);
	write_down(&text);
	start_anew(1, 12000);
	assert_int_equal(go_on(uuids, text.s), 0);
	feed_span(0, 12000, 39900);
	assert_int_equal(sum().has, 0);
	not_told("takt was away for 2 of 40 s");
	feed(0, reading_at(40000));
	assert_int_equal(sum().energy_mj, 40000 * 200);
	takt_str_fini(&text);
}

/* A second restart is added to the first; who shared stays known. */
static void what_is_known_of_it_outlives_every_restart(void **state)
{
	struct takt_str text;

	open_job(1);
	feed_span(0, 0, 10000);
	for (uint64_t ms = 10000; ms <= 30000; ms += 10000) {
		takt_accounts_find(&accounts, JOB)->shared |= ms == 20000;
		write_down(&text);
		start_anew(1, ms + 1000);
		assert_int_equal(go_on(uuids, text.s), 0);
		takt_str_fini(&text);
		feed_span(0, ms + 1000, ms + 10000);
	}
	assert_int_equal(sum().has, 0);
	not_told("takt was away for 3 of 40 s");
	feed(0, reading_at(70000));
	not_told("shared GPU");
}

static void refused(const char *const names[], const char *text)
{
	assert_int_equal(go_on(names, text), -TAKT_E_CORRUPT);
	assert_false(takt_accounts_find(&accounts, JOB)->written);
	not_told("energy counter");
}

static void what_is_no_such_text_is_refused_whole(void **state)
{
	static const char *const others[TAKT_DEVICE_MAX_GPUS] = {"GPU-a", "GPU-x"};
	struct takt_str text;
	size_t len;

	open_job(3);
	feed_span(0, 0, 10000);
	feed_span(1, 0, 10000);
	write_down(&text);
	len = text.len;
	start_anew(3, 9000);
	refused(uuids, text.s); /* it is later than now */
	start_anew(3, 11000);
	refused(others, text.s);
	refused(uuids, "");
	for (size_t i = 0; i < len; i++) {
		char was = text.s[i];

		text.s[i] = 'x';
		refused(uuids, text.s);
		text.s[i] = '\0';
		refused(uuids, text.s);
		text.s[i] = was;
	}
	start_anew(1, 11000);
	refused(uuids, text.s); /* a line too many */
	takt_str_fini(&text);
}

static void an_account_is_written_whole_or_said_not_to_be(void **state)
{
	struct takt_str text = TAKT_STR(100);

	open_job(1);
	feed_span(0, 0, 1000);
	assert_int_equal(
		takt_account_to_text(&accounts, takt_accounts_find(&accounts, JOB), uuids, &text),
		-TAKT_E_LIMIT);
	takt_str_fini(&text);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(energy_is_the_difference_of_the_counter),
		CASE(energy_of_several_gpus_is_added),
		CASE(energy_begins_at_the_last_reading_before_the_job),
		CASE(nineteen_periods_are_too_few_and_twenty_enough),
		CASE(a_counter_that_is_read_seldom_ticks_as_it_did_when_it_was_read_often),
		CASE(a_job_does_not_begin_with_what_the_counter_said_before),
		CASE(the_counter_is_wanted_less_often_the_longer_a_job_runs),
		CASE(a_counter_that_is_read_once_a_second_needs_twenty_seconds),
		CASE(a_late_answer_is_one),
		CASE(a_slow_counter_needs_longer),
		CASE(a_counter_that_ticks_faster_still_counts_as_100_ms),
		CASE(a_shared_gpu_has_no_attributable_energy),
		CASE(a_counter_that_goes_back_was_reset),
		CASE(one_gpu_without_a_counter_spoils_the_sum),
		CASE(a_gpu_that_stopped_answering_spoils_the_sum),
		CASE(clock_is_the_mean_of_the_gpus_means),
		CASE(how_far_clocks_are_apart_is_told_of_several_all_measured),
		CASE(throttled_time_is_summed_and_idle_is_not_throttling),
		CASE(a_gap_in_the_samples_is_not_throttled_time),
		CASE(peak_memory_is_of_one_gpu),
		CASE(peak_memory_of_a_share_is_its_own),
		CASE(utilisation_is_over_time_and_idle_is_added),
		CASE(utilisation_of_a_gpu_that_was_not_measured_or_is_shared_is_not_told),
		CASE(nothing_read_is_nothing_told),
		CASE(a_job_has_one_account),
		CASE(an_account_goes_on_where_it_was),
		CASE(what_was_not_seen_for_more_than_a_twentieth_is_not_told),
		CASE(what_is_known_of_it_outlives_every_restart),
		CASE(what_is_no_such_text_is_refused_whole),
		CASE(an_account_is_written_whole_or_said_not_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
