/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics page, from snapshots made up here, as Prometheus would read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prom_check.h"
#include "telemetry/page.h"

enum {
	GPUS = 2,
	NOW_MS = 5000,
	AT_MS = 4900,
};

static struct takt_machine_info info;
static struct takt_gpu_facts facts[GPUS];
static struct takt_gpu_reading readings[GPUS];
static struct takt_page_label labels[GPUS];
static struct takt_page_gpu gpus[GPUS];
static struct takt_page_gauges gauges;
static struct takt_page_input input;
static struct takt_str page;

static int begin(void **state)
{
	memset(&info, 0, sizeof(info));
	strcpy(info.source, "nvml");
	strcpy(info.driver_version, "550.54.15");
	info.cuda_version = 12040;
	memset(labels, 0, sizeof(labels));
	gauges.list.max = 10;
	for (uint32_t g = 0; g < GPUS; g++) {
		facts[g] = (struct takt_gpu_facts){
			.has = TAKT_FACT_NAME | TAKT_FACT_UUID | TAKT_FACT_MEMORY,
			.memory_total_bytes = 85520809984ull,
		};
		strcpy(facts[g].name, "NVIDIA H100");
		snprintf(facts[g].uuid, sizeof(facts[g].uuid), "GPU-%u", g);
		readings[g] = (struct takt_gpu_reading){
			.at = {AT_MS * TAKT_NS_PER_MS},
			.seq = 1,
			.has = UINT32_MAX,
			.sm_mhz = 1410,
			.power_mw = 123456,
			.temp_c = -5,
			.gpu_util_pct = 7,
			.energy_mj = 18446744073709551615ull,
			.throttle = TAKT_THROTTLE_SW_POWER,
			.mem_used_bytes = 12345,
		};
		gpus[g] = (struct takt_page_gpu){g, &facts[g], &readings[g], &labels[g]};
	}
	input = (struct takt_page_input){
		.info = &info,
		.now = {NOW_MS * TAKT_NS_PER_MS},
		.gpus = gpus,
		.gpu_count = GPUS,
		.gauges = &gauges,
	};
	page = TAKT_STR(1 << 20);
	return 0;
}

static int end(void **state)
{
	takt_str_fini(&page);
	takt_vec_fini(&gauges.list);
	return 0;
}

static const char *render(void)
{
	const char *wrong;
	size_t line;

	takt_page_render(&input, &page);
	assert_int_equal(page.rc, 0);
	wrong = prom_check(takt_str_text(&page), page.len, &line);
	if (wrong)
		fail_msg("line %zu: %s\n%s", line, wrong, takt_str_text(&page));
	return takt_str_text(&page);
}

static void has_text(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("'%s' is not in\n%s", line, text);
}

#define LABELS0 "{gpu=\"0\",uuid=\"GPU-0\",model=\"NVIDIA H100\"}"
#define LABELS1 "{gpu=\"1\",uuid=\"GPU-1\",model=\"NVIDIA H100\"}"

static void values_are_in_base_units_to_the_last_digit(void **state)
{
	const char *text = render();

	has_text(text, "takt_simulated 0\n");
	has_text(text, "takt_machine_info{source=\"nvml\",driver=\"550.54.15\",cuda=\"12.4\"} 1\n");
	has_text(text, "takt_gpu_sm_clock_hertz" LABELS0 " 1410000000\n");
	has_text(text, "takt_gpu_power_watts" LABELS1 " 123.456\n");
	has_text(text, "takt_gpu_temperature_celsius" LABELS0 " -5\n");
	has_text(text, "takt_gpu_utilization_ratio" LABELS0 " 0.07\n");
	has_text(text, "takt_gpu_energy_joules_total" LABELS0 " 18446744073709551.615\n");
	has_text(text, "takt_gpu_memory_bytes" LABELS0 " 85520809984\n");
	has_text(text, "takt_gpu_reading_age_seconds" LABELS0 " 0.100\n");
	has_text(text, "takt_gpu_up" LABELS0 " 1\n");
}

static void what_is_absent_is_left_out(void **state)
{
	const char *text;

	readings[0].has = TAKT_HAS_POWER;
	readings[1].has = TAKT_HAS_SM_CLOCK;
	text = render();
	assert_int_equal(prom_count(text, "takt_gpu_power_watts"), 1);
	assert_int_equal(prom_count(text, "takt_gpu_sm_clock_hertz"), 1);
	assert_int_equal(prom_count(text, "takt_gpu_temperature_celsius"), 0);
	assert_null(strstr(text, "takt_gpu_temperature_celsius"));
	assert_int_equal(prom_count(text, "takt_gpu_throttle"), 0);
}

static void a_stale_gpu_shows_no_old_values(void **state)
{
	const char *text;

	readings[1].stale = true;
	text = render();
	has_text(text, "takt_gpu_up" LABELS1 " 0\n");
	has_text(text, "takt_gpu_lost" LABELS1 " 0\n");
	assert_int_equal(prom_count(text, "takt_gpu_power_watts"), 1);
	has_text(text, "takt_gpu_reading_age_seconds" LABELS1);
	has_text(text, "takt_gpu_memory_bytes" LABELS1); /* a fact stays one */
}

static void a_lost_gpu_and_one_never_read_do_not_fail_the_page(void **state)
{
	const char *text;

	readings[0].lost = true;
	gpus[1].reading = NULL;
	text = render();
	has_text(text, "takt_gpu_up" LABELS0 " 0\n");
	has_text(text, "takt_gpu_lost" LABELS0 " 1\n");
	has_text(text, "takt_gpu_up" LABELS1 " 0\n");
	assert_int_equal(prom_count(text, "takt_gpu_power_watts"), 0);
	assert_int_equal(prom_count(text, "takt_gpu_reading_age_seconds"), 1);
}

static void a_simulated_machine_says_so_in_every_series_of_a_gpu(void **state)
{
	const char *text;

	input.simulated = true;
	labels[0] = (struct takt_page_label){.set = true, .job_id = 3, .state = "running"};
	text = render();
	has_text(text, "takt_simulated 1\n");
	for (; *text; text += strcspn(text, "\n") + 1) {
		char line[512];

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		if (strstr(line, "{gpu="))
			assert_non_null(strstr(line, "simulated=\"true\""));
	}
}

static void throttle_reasons_are_ones_and_zeros(void **state)
{
	double value;
	const char *text = render();

	assert_true(prom_value(text,
			       "takt_gpu_throttle{gpu=\"0\",uuid=\"GPU-0\",model=\"NVIDIA H100\","
			       "reason=\"sw_power_cap\"}",
			       &value));
	assert_true(value == 1);
	assert_true(prom_value(text,
			       "takt_gpu_throttle{gpu=\"0\",uuid=\"GPU-0\",model=\"NVIDIA H100\","
			       "reason=\"hw_slowdown\"}",
			       &value));
	assert_true(value == 0);
}

static void what_the_daemon_says_of_a_gpu_is_on_the_page(void **state)
{
	const char *text;

	labels[1] = (struct takt_page_label){.set = true,
					     .job_id = 42,
					     .state = "running",
					     .actuate = "leased",
					     .lease_min_mhz = 210,
					     .lease_max_mhz = 1410};
	text = render();
	assert_int_equal(prom_count(text, "takt_gpu_state"), 1);
	has_text(text, "state=\"running\"} 1\n");
	has_text(text, "takt_gpu_clock_state{gpu=\"1\"");
	has_text(text, "job=\"42\"} 1\n");
	has_text(text, "takt_gpu_lease_max_hertz" LABELS1 " 1410000000\n");
}

static void strange_names_are_escaped(void **state)
{
	const char *text;

	strcpy(facts[0].name, "a\"b\\c\nd\te");
	text = render();
	has_text(text, "model=\"a\\\"b\\\\c\\nd?e\"");
}

static void gauges_of_the_daemon_follow(void **state)
{
	struct takt_page_gauge waiting = {"takt_jobs_waiting", "Jobs that wait", false, 3};
	struct takt_page_gauge started = {"takt_jobs_started_total", "Jobs started\nso far", true,
					  1e15};
	const char *text;

	assert_int_equal(takt_vec_push(&gauges.list, waiting), 0);
	assert_int_equal(takt_vec_push(&gauges.list, started), 0);
	text = render();
	has_text(text, "# TYPE takt_jobs_waiting gauge\ntakt_jobs_waiting 3\n");
	has_text(text, "# TYPE takt_jobs_started_total counter\ntakt_jobs_started_total "
		       "1000000000000000\n");
}

static void a_machine_without_gpus_has_a_page(void **state)
{
	input.gpu_count = 0;
	has_text(render(), "takt_gpus 0\n");
}

static void a_page_too_long_is_noticed(void **state)
{
	takt_str_fini(&page);
	page = TAKT_STR(2000);
	takt_page_render(&input, &page);
	assert_int_equal(page.rc, -TAKT_E_LIMIT);
}

/* The judge must be able to say no. */
static void the_check_refuses_wrong_pages(void **state)
{
	static const char *const pages[] = {
		"",
		"x 1\n",
		"# HELP x t\n# TYPE x gauge\nx 1",
		"# HELP x t\n# TYPE x gauge\ny 1\n",
		"# HELP x t\n# TYPE x counter\nx 1\n",
		"# HELP x t\n# TYPE x gauge\nx{a=\"b} 1\n",
		"# HELP x t\n# TYPE x gauge\nx{a=\"\\t\"} 1\n",
		"# HELP x t\n# TYPE x gauge\nx{a=\"b\",} 1\n",
		"# HELP x t\n# TYPE x gauge\nx one\n",
		"# HELP x t\n# TYPE x gauge\nx 1\nx 2\n",
		"# HELP x t\n# TYPE x gauge\nx 1\n# HELP x t\n# TYPE x gauge\n",
	};
	size_t line;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(pages); i++)
		if (!prom_check(pages[i], strlen(pages[i]), &line))
			fail_msg("page %zu was taken", i);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(values_are_in_base_units_to_the_last_digit),
		CASE(what_is_absent_is_left_out),
		CASE(a_stale_gpu_shows_no_old_values),
		CASE(a_lost_gpu_and_one_never_read_do_not_fail_the_page),
		CASE(a_simulated_machine_says_so_in_every_series_of_a_gpu),
		CASE(throttle_reasons_are_ones_and_zeros),
		CASE(what_the_daemon_says_of_a_gpu_is_on_the_page),
		CASE(strange_names_are_escaped),
		CASE(gauges_of_the_daemon_follow),
		CASE(a_machine_without_gpus_has_a_page),
		CASE(a_page_too_long_is_noticed),
		CASE(the_check_refuses_wrong_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
