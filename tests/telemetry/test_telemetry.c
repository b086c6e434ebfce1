/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry over a machine: ticks become samples, samples become history, accounts and pages. */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "fake_machine.h"
#include "prom_check.h"
#include "telemetry/telemetry.h"

static const uint64_t all = (1u << FAKE_GPUS) - 1;

static struct takt_telemetry *telemetry_of(struct takt_machine *machine,
					   struct takt_telemetry_config config)
{
	struct takt_telemetry *telemetry = NULL;
	struct takt_err err = {0};

	if (takt_telemetry_new(&config, machine, &telemetry, &err) < 0)
		fail_msg("%s", err.msg);
	return telemetry;
}

static struct takt_mono now(void)
{
	return takt_mono_now(takt_sys_real());
}

/* Ticks as a daemon would until every GPU has a new sample. */
static void round_of_samples(struct takt_machine *machine, struct takt_telemetry *telemetry)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd event = {.fd = fd, .events = POLLIN};
	uint64_t fresh = 0;

	takt_machine_notify(machine, fd);
	while (fresh != all) {
		struct takt_mono due = takt_telemetry_tick(telemetry, now());
		uint64_t count;

		assert_true(due.ns > now().ns - TAKT_NS_PER_S);
		poll(&event, 1, 20);
		(void)!read(fd, &count, sizeof(count));
		fresh |= takt_telemetry_collect(telemetry, now());
	}
	takt_machine_notify(machine, -1);
	close(fd);
}

static void samples_become_latest_and_history(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry =
		telemetry_of(machine, (struct takt_telemetry_config){.rate_hz = 100});
	const struct takt_gpu_reading *reading = NULL;
	struct takt_sample_point points[8];

	assert_int_equal(takt_telemetry_latest(telemetry, 0, now(), &reading), -EAGAIN);
	for (int i = 0; i < 3; i++)
		round_of_samples(machine, telemetry);
	assert_int_equal(takt_telemetry_latest(telemetry, 0, now(), &reading), 0);
	assert_int_equal(reading->power_mw, FAKE_POWER_MW + 1);
	assert_false(reading->stale);
	assert_true(takt_telemetry_history(telemetry, 0, points, 8) >= 3);
	assert_int_equal(takt_telemetry_history(telemetry, 0, points, 2), 2);
	assert_true(points[0].at.ns > points[1].at.ns);
	assert_true(points[0].at.ns == reading->at.ns);
	assert_int_equal(points[0].sm_mhz, FAKE_SM_MHZ + 1);

	assert_int_equal(takt_telemetry_latest(telemetry, 0, in_ms(60000), &reading), 0);
	assert_true(reading->stale);
	assert_int_equal(takt_telemetry_latest(telemetry, FAKE_GPUS, now(), &reading), -EINVAL);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

static void the_ring_keeps_its_seconds_and_no_more(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry = telemetry_of(
		machine, (struct takt_telemetry_config){.rate_hz = 5, .ring_seconds = 1});
	struct takt_sample_point points[16];

	for (int i = 0; i < 8; i++) {
		takt_machine_sample(machine, 0);
		while (takt_machine_wait(machine, 0, (uint64_t)i, in_ms(120000)) < 0)
			;
		takt_telemetry_collect(telemetry, now());
	}
	assert_int_equal(takt_telemetry_history(telemetry, 0, points, 16), 5);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

static void ticks_come_at_their_rate(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry =
		telemetry_of(machine, (struct takt_telemetry_config){.rate_hz = 10});
	struct takt_mono at = {50 * TAKT_NS_PER_S};
	struct takt_mono due = takt_telemetry_tick(telemetry, at);

	assert_true(due.ns == at.ns + 100 * TAKT_NS_PER_MS);
	/* Early: nothing happens. Late by little: the beat is kept. Late by much: a new beat. */
	assert_true(takt_telemetry_tick(telemetry, at).ns == due.ns);
	assert_true(takt_telemetry_tick(telemetry, takt_mono_add(due, 1000)).ns ==
		    due.ns + 100 * TAKT_NS_PER_MS);
	at.ns += 10 * TAKT_NS_PER_S;
	assert_true(takt_telemetry_tick(telemetry, at).ns == at.ns + 100 * TAKT_NS_PER_MS);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

static char *text_of_page(struct takt_telemetry *telemetry, struct takt_mono at)
{
	const struct takt_page *page = takt_telemetry_page(telemetry, TAKT_PAGE_PLAIN, at);
	const char *wrong;
	size_t line;
	char *copy;

	assert_non_null(page);
	wrong = prom_check(page->text, page->len, &line);
	if (wrong)
		fail_msg("line %zu: %s", line, wrong);
	copy = strdup(page->text);
	takt_page_unref(page);
	return copy;
}

static void the_page_follows_at_its_own_pace(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry = telemetry_of(
		machine, (struct takt_telemetry_config){.page_ms = 3600000, .simulated = true});
	char *text = text_of_page(telemetry, now());

	/* Complete from the start, though nothing was read yet. */
	assert_int_equal(prom_count(text, "takt_gpu_up"), FAKE_GPUS);
	assert_int_equal(prom_count(text, "takt_gpu_power_watts"), 0);
	assert_non_null(strstr(text, "takt_simulated 1\n"));
	free(text);

	takt_telemetry_gauge(telemetry, "takt_jobs_waiting", "Jobs that wait", false, 1);
	takt_telemetry_gauge(telemetry, "takt_jobs_waiting", "Jobs that wait", false, 2);
	round_of_samples(machine, telemetry);
	text = text_of_page(telemetry, in_ms(3000000));
	assert_null(strstr(text, "takt_jobs_waiting"));
	free(text);
	text = text_of_page(telemetry, in_ms(7200001));
	assert_non_null(strstr(text, "takt_jobs_waiting 2\n"));
	free(text);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

/* A scrape hands out what is there already; who has stopped asking costs nothing. */
static void a_page_that_is_asked_for_is_rendered_between_scrapes(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry =
		telemetry_of(machine, (struct takt_telemetry_config){.page_ms = 1000});
	const struct takt_page *first, *again, *later, *other;
	struct takt_mono start = now();

	assert_false(takt_telemetry_page_is_due(telemetry, start));
	first = takt_telemetry_page(telemetry, TAKT_PAGE_PLAIN, start);
	again = takt_telemetry_page(telemetry, TAKT_PAGE_PLAIN,
				    takt_mono_add(start, 1500 * TAKT_NS_PER_MS));
	assert_ptr_equal(again, first);
	assert_true(
		takt_telemetry_page_is_due(telemetry, takt_mono_add(start, 1500 * TAKT_NS_PER_MS)));
	takt_telemetry_page_refresh(telemetry, takt_mono_add(start, 1600 * TAKT_NS_PER_MS));
	assert_false(
		takt_telemetry_page_is_due(telemetry, takt_mono_add(start, 1700 * TAKT_NS_PER_MS)));
	later = takt_telemetry_page(telemetry, TAKT_PAGE_PLAIN,
				    takt_mono_add(start, 3500 * TAKT_NS_PER_MS));
	assert_ptr_not_equal(later, first);
	other = takt_telemetry_page(telemetry, TAKT_PAGE_OPENMETRICS,
				    takt_mono_add(start, 3500 * TAKT_NS_PER_MS));
	assert_non_null(strstr(other->text, "# EOF"));
	assert_false(
		takt_telemetry_page_is_due(telemetry, takt_mono_add(start, 600 * TAKT_NS_PER_S)));
	takt_page_unref(first);
	takt_page_unref(again);
	takt_page_unref(later);
	takt_page_unref(other);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

static void a_machine_whose_gpus_all_hang_has_a_page_that_says_so(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;
	struct takt_telemetry *telemetry;
	char *text;

	config.call_deadline_ns = 100 * TAKT_NS_PER_MS;
	machine = open_with(config);
	telemetry = telemetry_of(machine, (struct takt_telemetry_config){.page_ms = 1});
	round_of_samples(machine, telemetry);
	text = text_of_page(telemetry, in_ms(500));
	assert_int_equal(prom_count(text, "takt_gpu_up"), FAKE_GPUS);
	assert_non_null(strstr(text, "} 0\n"));
	assert_int_equal(prom_count(text, "takt_gpu_power_watts"), 0);
	free(text);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

static void a_page_outlives_later_ones_and_telemetry(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry =
		telemetry_of(machine, (struct takt_telemetry_config){.page_ms = 1});
	const struct takt_page *kept = takt_telemetry_page(telemetry, TAKT_PAGE_PLAIN, now());
	const struct takt_page *later = takt_telemetry_page(telemetry, TAKT_PAGE_PLAIN, in_ms(10));

	assert_ptr_not_equal(kept, later);
	takt_page_unref(later);
	takt_telemetry_free(telemetry);
	assert_true(kept->text[kept->len - 1] == '\n');
	takt_page_unref(kept);
	takt_machine_close(machine);
}

static void a_job_is_told_what_it_used(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry *telemetry =
		telemetry_of(machine, (struct takt_telemetry_config){.rate_hz = 100});
	struct takt_account account;
	struct takt_err err = {0};

	round_of_samples(machine, telemetry);
	assert_int_equal(takt_telemetry_account_open(telemetry, 9, 1ull << FAKE_GPUS, &err),
			 -EINVAL);
	assert_int_equal(takt_telemetry_account_open(telemetry, 9, 3, &err), 0);
	round_of_samples(machine, telemetry);
	assert_int_equal(takt_telemetry_account_peek(telemetry, 9, &account), 0);
	assert_int_equal(account.mean_sm_mhz, FAKE_SM_MHZ + 1);
	assert_true(account.peak_memory_bytes == FAKE_USED_BYTES);
	assert_non_null(strstr(account.energy_why_not, "shorter than 20 periods"));
	takt_telemetry_account_shared(telemetry, 9);
	assert_int_equal(takt_telemetry_account_close(telemetry, 9, &account), 0);
	assert_non_null(strstr(account.energy_why_not, "shared"));
	assert_int_equal(takt_telemetry_account_close(telemetry, 9, &account), -TAKT_E_NOT_FOUND);
	assert_int_equal(takt_telemetry_account_peek(telemetry, 9, &account), -TAKT_E_NOT_FOUND);
	takt_telemetry_free(telemetry);
	takt_machine_close(machine);
}

static void a_rate_out_of_range_is_refused(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_telemetry_config config = {.rate_hz = 101};
	struct takt_telemetry *telemetry = NULL;
	struct takt_err err = {0};

	assert_int_equal(takt_telemetry_new(&config, machine, &telemetry, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "101"));
	takt_machine_close(machine);
}

static void every_allocation_may_fail(void **state)
{
	struct takt_machine *machine = open_fake();
	int rc = -ENOMEM;
	unsigned long nth;

	for (nth = 1; rc < 0; nth++) {
		struct takt_telemetry_config config = {0};
		struct takt_telemetry *telemetry = NULL;
		struct takt_err err = {0};

		takt_alloc_fail_nth(nth, 0);
		rc = takt_telemetry_new(&config, machine, &telemetry, &err);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0)
			assert_int_equal(rc, -ENOMEM);
		takt_telemetry_free(telemetry);
	}
	assert_true(nth > 5);
	takt_machine_close(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(samples_become_latest_and_history, reset_fake),
		cmocka_unit_test_setup(the_ring_keeps_its_seconds_and_no_more, reset_fake),
		cmocka_unit_test_setup(ticks_come_at_their_rate, reset_fake),
		cmocka_unit_test_setup(the_page_follows_at_its_own_pace, reset_fake),
		cmocka_unit_test_setup(a_page_that_is_asked_for_is_rendered_between_scrapes,
				       reset_fake),
		cmocka_unit_test_setup(a_machine_whose_gpus_all_hang_has_a_page_that_says_so,
				       reset_fake),
		cmocka_unit_test_setup(a_page_outlives_later_ones_and_telemetry, reset_fake),
		cmocka_unit_test_setup(a_job_is_told_what_it_used, reset_fake),
		cmocka_unit_test_setup(a_rate_out_of_range_is_refused, reset_fake),
		cmocka_unit_test_setup(every_allocation_may_fail, reset_fake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
