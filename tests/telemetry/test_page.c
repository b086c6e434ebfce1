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

#include "base/mem.h"
#include "prom_check.h"
#include "telemetry/label_words.h"
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
static struct takt_tally tallies[GPUS];
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
	memset(tallies, 0, sizeof(tallies));
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
		gpus[g] = (struct takt_page_gpu){.index = g,
						 .facts = &facts[g],
						 .reading = &readings[g],
						 .label = &labels[g],
						 .tally = &tallies[g]};
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
	for (uint32_t g = 0; g < GPUS; g++)
		takt_page_gpu_fini(&gpus[g]);
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

static void a_gpu_that_sleeps_is_said_to_and_is_not_down(void **state)
{
	const char *text;

	readings[1].asleep = true;
	readings[1].has = 0;
	readings[1].awake_at.ns = readings[1].at.ns;
	text = render();
	has_text(text, "takt_gpu_asleep" LABELS0 " 0\n");
	has_text(text, "takt_gpu_asleep" LABELS1 " 1\n");
	has_text(text, "takt_gpu_lost" LABELS1 " 0\n");
	assert_int_equal(prom_count(text, "takt_gpu_up"), 1);
	assert_int_equal(prom_count(text, "takt_gpu_power_watts"), 1);
	assert_int_equal(prom_count(text, "takt_gpu_reading_age_seconds"), 2);
	/* One that nobody has seen awake has no reading whose age could be told. */
	readings[1].awake_at.ns = 0;
	text = render();
	assert_int_equal(prom_count(text, "takt_gpu_reading_age_seconds"), 1);
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
	labels[0] = (struct takt_page_label){
		.set = true, .job_count = 1, .jobs = {{.id = 3}}, .state = "running"};
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
					     .job_count = 1,
					     .jobs = {{.id = 42, .engine = "takt"}},
					     .state = "running",
					     .actuate = "leased",
					     .health = "suspect",
					     .lease_min_mhz = 210,
					     .lease_max_mhz = 1410};
	text = render();
	assert_int_equal(prom_count(text, "takt_gpu_state"), 1);
	has_text(text, "state=\"running\"} 1\n");
	has_text(text, "takt_gpu_clock_state{gpu=\"1\"");
	assert_int_equal(prom_count(text, "takt_gpu_health"), 1);
	has_text(text, "state=\"suspect\"} 1\n");
	has_text(text, "takt_gpu_job{gpu=\"1\",uuid=\"GPU-1\",model=\"NVIDIA H100\","
		       "takt_job=\"42\",engine=\"takt\"} 1\n");
	has_text(text, "takt_gpu_lease_max_hertz" LABELS1 " 1410000000\n");
}

static void strange_names_are_escaped(void **state)
{
	const char *text;

	strcpy(facts[0].name, "a\"b\\c\nd\te");
	text = render();
	has_text(text, "model=\"a\\\"b\\\\c\\nd?e\"");
}

static void what_is_not_utf8_is_replaced_and_the_rest_kept(void **state)
{
	/* a character of each length; then bytes that begin none, one too short, one too long */
	strcpy(facts[0].name,
	       "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|\xff|\xc3|\xc0\xaf|\x7f|\xed\xa0\x80");
	has_text(render(),
		 "model=\"A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|\xef\xbf\xbd|\xef\xbf\xbd|"
		 "\xef\xbf\xbd\xef\xbf\xbd|?|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* As dcgm-exporter writes it (its rendermetrics template). */
static void dashboards_of_dcgm_exporter_find_their_series(void **state)
{
	const char *text;

	input.dcgm = true;
	input.hostname_label = "Hostname";
	input.hostname = "node \"1\"";
	facts[0].has |= TAKT_FACT_PCI | TAKT_FACT_MINOR;
	strcpy(facts[0].pci_bus_id, "00000000:8D:00.0");
	facts[0].minor = 3;
	readings[0].mem_free_bytes = 80ull << 30;
	text = render();
	has_text(text,
		 "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
		 "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
		 "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"00000000:8D:00.0\","
		 "device=\"nvidia3\",modelName=\"NVIDIA H100\",Hostname=\"node \\\"1\\\"\","
		 "DCGM_FI_DRIVER_VERSION=\"550.54.15\"} -5\n");
	has_text(text, "\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"1\",");
	has_text(text, "} 18446744073709551615\n");
	has_text(text, "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n");
	has_text(text, "} 81920\n");
	assert_int_equal(prom_count(text, "DCGM_FI_DEV_POWER_USAGE"), 2);
	input.hostname_label = "hostname";
	has_text(render(), ",hostname=\"node");
	input.hostname_label = NULL;
	assert_null(strstr(render(), "ostname="));
	input.dcgm = false;
	assert_null(strstr(render(), "DCGM_FI_DEV"));
}

/* Rules and panels take more of its fields than its default list has. */
static void fields_beyond_its_default_list_are_there_too(void **state)
{
	const char *text;

	input.dcgm = true;
	facts[0].has |= TAKT_FACT_MEMORY | TAKT_FACT_THROTTLE_TEMP | TAKT_FACT_POWER_LIMITS |
			TAKT_FACT_PCIE_MAX;
	facts[0].memory_total_bytes = 80ull << 30;
	facts[0].slowdown_temp_c = 87;
	facts[0].power_default_mw = 700000;
	facts[0].pcie_width_max = 16;
	readings[0].has |= TAKT_HAS_MEMORY | TAKT_HAS_POWER_LIMIT | TAKT_HAS_THROTTLE;
	readings[0].mem_used_bytes = 20ull << 30;
	readings[0].mem_free_bytes = 60ull << 30;
	readings[0].has &= ~(uint32_t)TAKT_HAS_PCIE;
	readings[0].power_limit_mw = 650500;
	readings[0].throttle = TAKT_THROTTLE_SW_POWER | TAKT_THROTTLE_IDLE;
	readings[0].vitals = (struct takt_gpu_vitals){.has = TAKT_VITAL_ROWS, .row_pending = true};
	text = render();
#define ROW(name, value)                                                                        \
	"\n" name "{gpu=\"0\",UUID=\"GPU-0\",modelName=\"NVIDIA H100\",DCGM_FI_DRIVER_VERSION=" \
	"\"550.54.15\"} " value "\n"
	has_text(text, ROW("DCGM_FI_DEV_FB_TOTAL", "81920"));
	has_text(text, ROW("DCGM_FI_DEV_FB_USED_PERCENT", "0.250000"));
	has_text(text, ROW("DCGM_FI_DEV_POWER_MGMT_LIMIT", "650.500"));
	has_text(text, ROW("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "700.000"));
	has_text(text, ROW("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "5"));
	has_text(text, ROW("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "5"));
	has_text(text, ROW("DCGM_FI_DEV_SLOWDOWN_TEMP", "87"));
	has_text(text, ROW("DCGM_FI_DEV_ROW_REMAP_PENDING", "1"));
	has_text(text, ROW("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "16"));
#undef ROW
	assert_null(strstr(text, "DCGM_FI_DEV_PCIE_LINK_WIDTH{gpu=\"0\""));
	readings[0].stale = true;
	assert_null(strstr(render(), "DCGM_FI_DEV_FB_USED_PERCENT{gpu=\"0\""));
}

static void jobs_have_the_names_that_are_to_be_shown(void **state)
{
	labels[0] = (struct takt_page_label){
		.set = true,
		.job_count = 2,
		.jobs = {{.id = 5, .user = "J\xc3\xb6rg \"J\"\n", .name = "a\\b"}, {.id = 6}}};
	has_text(render(), "takt_job=\"5\",user=\"J\xc3\xb6rg \\\"J\\\"\\n\",name=\"a\\\\b\"} 1\n");
	has_text(render(), "model=\"NVIDIA H100\",takt_job=\"6\"} 1\n");
	labels[0].set = false;
	assert_int_equal(prom_count(render(), "takt_gpu_job"), 0);
}

/* As dcgm-exporter has it: the last label, a series a job; a GPU without one is there, too. */
static void series_by_their_names_carry_hpc_job_where_asked_for(void **state)
{
	static const char one[] =
		"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-0\",modelName=\"NVIDIA H100\","
		"DCGM_FI_DRIVER_VERSION=\"550.54.15\",hpc_job=\"5\"} 7\n";
	const char *text;

	input.dcgm = true;
	labels[0] = (struct takt_page_label){
		.set = true, .job_count = 2, .jobs = {{.id = 5}, {.id = 6}}};
	assert_null(strstr(render(), "hpc_job"));
	assert_int_equal(prom_count(render(), "DCGM_FI_DEV_GPU_UTIL"), 2);
	input.hpc_job = true;
	takt_tally_xid(&tallies[0], 31, (struct takt_wall){TAKT_NS_PER_S}, input.now);
	text = render();
	has_text(text, one);
	has_text(text, "550.54.15\",err_code=\"31\",hpc_job=\"6\"} 31\n");
	has_text(text, "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-1\",modelName=\"NVIDIA H100\","
		       "DCGM_FI_DRIVER_VERSION=\"550.54.15\"} 7\n");
	assert_int_equal(prom_count(text, "DCGM_FI_DEV_GPU_UTIL"), 3);
	assert_int_equal(prom_count(text, "takt_gpu_utilization_ratio"), 2);
}

static void only_so_many_words_are_labels(void **state)
{
	struct takt_words words = {0};
	struct takt_mono at = {TAKT_NS_PER_S};
	char word[16];

	for (int i = 0; i < TAKT_WORDS_MAX; i++) {
		snprintf(word, sizeof(word), "user%d", i);
		assert_string_equal(takt_words_use(&words, word, at), word);
	}
	assert_string_equal(takt_words_use(&words, "late", at), "other");
	at.ns += 23 * 3600 * TAKT_NS_PER_S;
	assert_string_equal(takt_words_use(&words, "user7", at), "user7");
	at.ns += 2 * 3600 * TAKT_NS_PER_S; /* all but that one were not used for a day */
	assert_string_equal(takt_words_use(&words, "late", at), "late");
	assert_string_equal(takt_words_use(&words, "user7", at), "user7");
	takt_words_fini(&words);

	at.ns = TAKT_NS_PER_S;
	takt_alloc_fail_nth(1, 0);
	assert_string_equal(takt_words_use(&words, "user", at), "other");
	takt_alloc_fail_nth(0, 0);
	takt_words_fini(&words);
}

static void a_long_word_is_cut_between_characters(void **state)
{
	struct takt_words words = {0};
	struct takt_mono at = {TAKT_NS_PER_S};
	char word[100];

	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(strlen(takt_words_use(&words, word, at)), TAKT_WORDS_BYTES);
	memcpy(&word[TAKT_WORDS_BYTES - 1], "\xe2\x82\xac", 3);
	assert_int_equal(strlen(takt_words_use(&words, word, at)), TAKT_WORDS_BYTES - 1);
	assert_string_equal(takt_words_use(&words, "", at), "");
	takt_words_fini(&words);
}

static void a_stale_gpu_has_no_values_by_their_names_either(void **state)
{
	input.dcgm = true;
	readings[1].stale = true;
	assert_int_equal(prom_count(render(), "DCGM_FI_DEV_GPU_UTIL"), 1);
}

/* OpenMetrics 1.0: families without _total, quotes in help escaped, the end marked. */
static void openmetrics_is_another_text_of_the_same(void **state)
{
	struct takt_page_gauge ended = {"takt_ended_total", "Jobs \"ended\"", true, 2};
	const char *text;

	assert_int_equal(takt_vec_push(&gauges.list, ended), 0);
	input.dcgm = true;
	input.format = TAKT_PAGE_OPENMETRICS;
	takt_page_render(&input, &page);
	assert_int_equal(page.rc, 0);
	text = takt_str_text(&page);
	has_text(text, "# TYPE takt_gpu_energy_joules counter\ntakt_gpu_energy_joules_total{");
	has_text(text, "# TYPE takt_gpu_power_watts gauge\n");
	/* The name that dashboards ask for is none that a counter may have there. */
	has_text(
		text,
		"# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER unknown\nDCGM_FI_DEV_PCIE_REPLAY_COUNTER{");
	has_text(text, "# HELP takt_ended Jobs \\\"ended\\\"\n# TYPE takt_ended "
		       "counter\ntakt_ended_total 2\n");
	assert_string_equal(text + page.len - strlen("\n# EOF\n"), "\n# EOF\n");
	input.format = TAKT_PAGE_PLAIN;
	assert_null(strstr(render(), "# EOF"));
}

/* What of the vitals a board tells is there by both names; what it does not is by neither. */
static void vitals_are_there_where_the_board_tells_them(void **state)
{
	struct takt_gpu_vitals *vitals = &readings[0].vitals;
	const char *text;

	input.dcgm = true;
	*vitals = (struct takt_gpu_vitals){
		.has = TAKT_VITAL_ECC | TAKT_VITAL_ROWS | TAKT_VITAL_HELD_POLICIES |
		       TAKT_VITAL_ACTIVE << TAKT_ACTIVE_TENSOR,
		.ecc_corrected = 3,
		.rows_uncorrected = 1,
		.row_pending = true,
		.held_ns[TAKT_HELD_POWER] = 1500000000,
		.active_ppm[TAKT_ACTIVE_TENSOR] = 456789,
	};
	text = render();
	has_text(text,
		 "takt_gpu_memory_errors_total{gpu=\"0\",uuid=\"GPU-0\",model=\"NVIDIA H100\",kind="
		 "\"corrected\"} 3\n");
	assert_int_equal(prom_count(text, "takt_gpu_memory_errors_total"), 2);
	has_text(text, "takt_gpu_row_remap_pending" LABELS0 " 1\n");
	has_text(text, "policy=\"power\"} 1.500000000\n");
	has_text(text, "part=\"tensor\"} 0.456789\n");
	assert_int_equal(prom_count(text, "takt_gpu_activity_ratio"), 1);
	has_text(text, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\"");
	has_text(text, "# TYPE DCGM_FI_DEV_POWER_VIOLATION counter\n");
	has_text(text, "} 1500000000\n");
	assert_null(strstr(text, "DCGM_FI_PROF_DRAM_ACTIVE"));
	assert_null(strstr(text, "takt_gpu_nvlinks"));
	readings[0].stale = true;
	assert_null(strstr(render(), "PIPE_TENSOR_ACTIVE"));
}

static void throttled_time_is_counted_by_reason(void **state)
{
	struct takt_gpu_reading reading = {.has = TAKT_HAS_THROTTLE,
					   .throttle = TAKT_THROTTLE_SW_POWER};

	for (uint64_t ms = 1000; ms <= 1500; ms += 100) {
		reading.at.ns = ms * TAKT_NS_PER_MS;
		takt_tally_feed(&tallies[1], &reading);
	}
	reading.at.ns += 5 * TAKT_NS_PER_S; /* nobody knows what was meanwhile */
	takt_tally_feed(&tallies[1], &reading);
	reading.at.ns += 100 * TAKT_NS_PER_MS;
	reading.throttle = TAKT_THROTTLE_IDLE;
	takt_tally_feed(&tallies[1], &reading);
	has_text(render(),
		 "takt_gpu_throttle_seconds_total{gpu=\"1\",uuid=\"GPU-1\",model=\"NVIDIA H100\","
		 "reason=\"sw_power_cap\"} 0.500000000\n");
	has_text(render(), "reason=\"gpu_idle\"} 0.100000000\n");
	assert_int_equal(prom_count(render(), "takt_gpu_throttle_seconds_total"), 9);
}

static void xids_of_the_last_minutes_are_counted_as_there(void **state)
{
	struct takt_mono at = {1000 * TAKT_NS_PER_S};
	struct takt_wall wall = {TAKT_NS_PER_S};

	input.dcgm = true;
	labels[0].set = labels[1].set = labels[0].hears_xids = true;
	takt_tally_xid(&tallies[0], 31, wall, at);
	takt_tally_xid(&tallies[0], 31, wall, at);
	takt_tally_xid(&tallies[0], 31, wall, (struct takt_mono){at.ns + 100 * TAKT_NS_PER_S});
	takt_tally_xid(&tallies[0], 79, wall, (struct takt_mono){at.ns + 280 * TAKT_NS_PER_S});
	input.now.ns = at.ns + 280 * TAKT_NS_PER_S;
	has_text(render(),
		 "DCGM_EXP_XID_ERRORS_COUNT{gpu=\"0\",UUID=\"GPU-0\",modelName=\"NVIDIA "
		 "H100\",DCGM_FI_DRIVER_VERSION=\"550.54.15\",window_size_in_ms=\"300000\","
		 "xid=\"31\"} 3\n");
	assert_int_equal(prom_count(render(), "DCGM_EXP_XID_ERRORS_COUNT"), 2);
	input.now.ns = at.ns + 305 * TAKT_NS_PER_S;
	has_text(render(), "xid=\"31\"} 1\n");
	input.now.ns = at.ns + 500 * TAKT_NS_PER_S;
	has_text(render(), "xid=\"79\"} 1\n");
	assert_int_equal(prom_count(render(), "DCGM_EXP_XID_ERRORS_COUNT"), 1);
	/* None is said only where they are heard: not of the other GPU. */
	input.now.ns = at.ns + 3600 * TAKT_NS_PER_S;
	has_text(render(), "window_size_in_ms=\"300000\"} 0\n");
	assert_int_equal(prom_count(render(), "DCGM_EXP_XID_ERRORS_COUNT"), 1);
	takt_tally_xid(&tallies[0], 79, wall, input.now);
	has_text(render(), "window_size_in_ms=\"300000\",xid=\"79\"} 1\n");
}

static void traffic_of_nvlinks_is_a_rate_there(void **state)
{
	struct takt_gpu_reading reading = {.at = {10 * TAKT_NS_PER_S},
					   .slow_at = {10 * TAKT_NS_PER_S},
					   .vitals = {.has = TAKT_VITAL_NVLINK_BYTES,
						      .nvlink_sent_bytes = 5000000000,
						      .nvlink_received_bytes = 7}};

	input.dcgm = true;
	takt_tally_feed(&tallies[0], &reading);
	assert_null(strstr(render(), "NVLINK_BANDWIDTH"));
	reading.slow_at.ns += 2 * TAKT_NS_PER_S;
	reading.vitals.nvlink_sent_bytes += 2 * 1024000 * 30;
	reading.vitals.nvlink_received_bytes += 2 * 1024000 * 12;
	takt_tally_feed(&tallies[0], &reading);
	takt_tally_feed(&tallies[0], &reading); /* a tick without vitals */
	assert_int_equal(tallies[0].nvlink_sent_bytes_per_s, 1024000 * 30);
	assert_int_equal(tallies[0].nvlink_received_bytes_per_s, 1024000 * 12);
	has_text(render(), "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter\n"
			   "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{gpu=\"0\",");
	has_text(render(), "550.54.15\"} 42\n");
	assert_int_equal(prom_count(render(), "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"), 1);
	/* Counters of a driver that was loaded anew; then none at all. */
	reading.slow_at.ns += TAKT_NS_PER_S;
	reading.vitals.nvlink_sent_bytes = 0;
	takt_tally_feed(&tallies[0], &reading);
	assert_null(strstr(render(), "NVLINK_BANDWIDTH"));
	reading.slow_at.ns += TAKT_NS_PER_S;
	takt_tally_feed(&tallies[0], &reading);
	has_text(render(), "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{");
	reading.vitals.has = 0;
	takt_tally_feed(&tallies[0], &reading);
	assert_null(strstr(render(), "NVLINK_BANDWIDTH"));
}

static void xids_are_counted_and_there_are_only_so_many_series(void **state)
{
	struct takt_wall at = {1700000000ll * TAKT_NS_PER_S};
	const char *text = render();

	input.dcgm = true;
	assert_int_equal(prom_count(text, "takt_gpu_xid_errors_total"), 0);
	for (uint32_t xid = 1; xid <= 100; xid++)
		takt_tally_xid(&tallies[0], xid, at, input.now);
	at.ns += 1500 * TAKT_NS_PER_MS;
	takt_tally_xid(&tallies[0], 13, at, input.now);
	text = render();
	has_text(text, "xid=\"13\"} 2\n");
	has_text(text, "xid=\"13\"} 1700000001.500\n");
	has_text(text, "xid=\"other\"} 84\n");
	assert_int_equal(prom_count(text, "takt_gpu_xid_errors_total"), TAKT_TALLY_XIDS + 1);
	assert_int_equal(prom_count(text, "DCGM_FI_DEV_XID_ERRORS"), 1);
	has_text(text, "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-0\",modelName=\"NVIDIA H100\","
		       "DCGM_FI_DRIVER_VERSION=\"550.54.15\",err_code=\"13\"} 13\n");
}

static struct takt_net_ports two_ports(void)
{
	return (struct takt_net_ports){
		.count = 2,
		.port = {{.kind = TAKT_NET_INFINIBAND,
			  .device = "mlx5_0",
			  .port = 1,
			  .at = {AT_MS * TAKT_NS_PER_MS},
			  .has = TAKT_NET_SENT | TAKT_NET_RECEIVED | TAKT_NET_UP | TAKT_NET_STATE |
				 TAKT_NET_RATE,
			  .sent_bytes = UINT64_MAX - 3,
			  .received_bytes = 8000,
			  .state = "init",
			  .rate_mbit_s = 400000,
			  .errors_has = 1u << 2,
			  .errors[2] = 9},
			 {.kind = TAKT_NET_ETHERNET,
			  .device = "eth\"0",
			  .at = {AT_MS * TAKT_NS_PER_MS},
			  .has = TAKT_NET_SENT,
			  .sent_bytes = 5}},
	};
}

#define IB_PORT "{kind=\"infiniband\",device=\"mlx5_0\",port=\"1\""

static void round_trips_are_a_histogram(void **state)
{
	static struct takt_trips trips = {
		.peer_count = 1,
		.refused_count = 1,
		.peer = {{.name = "gpu\"2", .lost = 3}},
		.refused = {{"forged", 5}},
	};
	const char *text;

	takt_latency_add(&trips.peer[0].rtt, 15 * TAKT_NS_PER_US);
	takt_latency_add(&trips.peer[0].rtt, 20 * TAKT_NS_PER_US);
	takt_latency_add(&trips.peer[0].rtt, 2 * TAKT_NS_PER_S);
	input.trips = &trips;
	text = render();
	has_text(text, "# TYPE takt_net_rtt_seconds histogram\n");
	has_text(text, "takt_net_rtt_seconds_bucket{peer=\"gpu\\\"2\",le=\"0.000010\"} 0\n");
	has_text(text, "takt_net_rtt_seconds_bucket{peer=\"gpu\\\"2\",le=\"0.000020\"} 2\n");
	has_text(text, "takt_net_rtt_seconds_bucket{peer=\"gpu\\\"2\",le=\"1.000000\"} 2\n");
	has_text(text, "takt_net_rtt_seconds_bucket{peer=\"gpu\\\"2\",le=\"+Inf\"} 3\n");
	has_text(text, "takt_net_rtt_seconds_sum{peer=\"gpu\\\"2\"} 2.000035000\n");
	has_text(text, "takt_net_rtt_seconds_count{peer=\"gpu\\\"2\"} 3\n");
	has_text(text, "takt_net_probes_lost_total{peer=\"gpu\\\"2\"} 3\n");
	has_text(text, "takt_net_probes_refused_total{reason=\"forged\"} 5\n");
	trips.refused_count = 0;
	assert_null(strstr(render(), "takt_net_"));
}

static void operations_of_nccl_are_on_the_page(void **state)
{
	static struct takt_nccl nccl = {
		.count = 2,
		.row = {{"AllReduce", "DP \"0\"", 16, 2, 48.5e9, 0.25},
			{"Send", "0xd1", 4, 1, 1e9, 2}},
	};
	static const char of_series[] =
		"comm=\"DP \\\"0\\\"\",operation=\"AllReduce\",ranks=\"16\","
		"nodes=\"2\"}";
	const char *text = render();

	assert_null(strstr(text, "takt_nccl_"));
	nccl.at = input.now;
	gpus[0].nccl = &nccl;
	text = render();
	has_text(text, of_series);
	has_text(text, "nodes=\"2\"} 48500000000\n");
	has_text(text, "nodes=\"2\"} 0.25\n");
	assert_int_equal(prom_count(text, "takt_nccl_bus_bandwidth_bytes_per_second"), 2);
	assert_int_equal(prom_count(text, "takt_nccl_operation_seconds"), 2);
	assert_int_equal(prom_count(text, "takt_nccl_age_seconds"), 1);
	assert_null(strstr(text, "takt_nccl_rows_left_out"));
	nccl.left_out = 4;
	input.now = takt_mono_add(nccl.at, 301 * TAKT_NS_PER_S);
	text = render();
	assert_int_equal(prom_count(text, "takt_nccl_operation_seconds"), 0);
	assert_int_equal(prom_count(text, "takt_nccl_age_seconds"), 1);
	assert_int_equal(prom_count(text, "takt_nccl_rows_left_out"), 1);
	gpus[0].nccl = NULL;
}

static void ports_of_the_network_are_on_the_page(void **state)
{
	struct takt_net_ports net = two_ports();
	const char *text;

	assert_null(strstr(render(), "takt_net_"));
	input.net = &net;
	text = render();
	has_text(text, "takt_net_sent_bytes_total" IB_PORT "} 18446744073709551612\n");
	has_text(text, "takt_net_received_bytes_total" IB_PORT "} 8000\n");
	has_text(text, "takt_net_up" IB_PORT "} 0\n");
	has_text(text, "takt_net_state" IB_PORT ",state=\"init\"} 1\n");
	has_text(text, "takt_net_rate_bytes_per_second" IB_PORT "} 50000000000\n");
	has_text(text, "takt_net_errors_total" IB_PORT ",error=\"link_downed\"} 9\n");
	has_text(text, "takt_net_reading_age_seconds" IB_PORT "} 0.100\n");
	has_text(text, "takt_net_sent_bytes_total{kind=\"ethernet\",device=\"eth\\\"0\"} 5\n");
	assert_int_equal(prom_count(text, "takt_net_received_bytes_total"), 1);
	assert_null(strstr(text, "left_out"));
	net.left_out = 3;
	text = render();
	has_text(text, "takt_net_ports_left_out 3\n");
	assert_int_equal(prom_count(text, "takt_net_errors_total"), 1);
}

static void of_a_port_not_read_in_time_only_the_age_is_shown(void **state)
{
	struct takt_net_ports net = two_ports();
	const char *text;

	input.net = &net;
	net.port[0].at = (struct takt_mono){TAKT_NS_PER_S};
	input.now.ns = 17 * TAKT_NS_PER_S;
	net.port[1].at = input.now;
	text = render();
	has_text(text, "takt_net_reading_age_seconds" IB_PORT "} 16.000\n");
	assert_int_equal(prom_count(text, "takt_net_sent_bytes_total"), 1);
	assert_null(strstr(text, "takt_net_up"));
	assert_null(strstr(text, "takt_net_errors_total"));
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
		CASE(a_gpu_that_sleeps_is_said_to_and_is_not_down),
		CASE(a_lost_gpu_and_one_never_read_do_not_fail_the_page),
		CASE(a_simulated_machine_says_so_in_every_series_of_a_gpu),
		CASE(throttle_reasons_are_ones_and_zeros),
		CASE(what_the_daemon_says_of_a_gpu_is_on_the_page),
		CASE(strange_names_are_escaped),
		CASE(what_is_not_utf8_is_replaced_and_the_rest_kept),
		CASE(dashboards_of_dcgm_exporter_find_their_series),
		CASE(fields_beyond_its_default_list_are_there_too),
		CASE(jobs_have_the_names_that_are_to_be_shown),
		CASE(series_by_their_names_carry_hpc_job_where_asked_for),
		CASE(only_so_many_words_are_labels),
		CASE(a_long_word_is_cut_between_characters),
		CASE(a_stale_gpu_has_no_values_by_their_names_either),
		CASE(openmetrics_is_another_text_of_the_same),
		CASE(vitals_are_there_where_the_board_tells_them),
		CASE(throttled_time_is_counted_by_reason),
		CASE(xids_of_the_last_minutes_are_counted_as_there),
		CASE(traffic_of_nvlinks_is_a_rate_there),
		CASE(xids_are_counted_and_there_are_only_so_many_series),
		CASE(gauges_of_the_daemon_follow),
		CASE(operations_of_nccl_are_on_the_page),
		CASE(ports_of_the_network_are_on_the_page),
		CASE(round_trips_are_a_histogram),
		CASE(of_a_port_not_read_in_time_only_the_age_is_shown),
		CASE(a_machine_without_gpus_has_a_page),
		CASE(a_page_too_long_is_noticed),
		CASE(the_check_refuses_wrong_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
