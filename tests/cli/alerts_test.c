/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts over a status that the test holds in its hand, in time of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/alerts.h"
#include "client/webhook.h"

enum {
	GPUS = 2,
	MINUTE = 60000,
};

static struct takt_alerts alerts;
static struct takt_gpu_view gpus[GPUS];
static struct takt_status_view view;
static uint64_t now_ms;

static int begin(void **state)
{
	memset(&alerts, 0, sizeof(alerts));
	memset(gpus, 0, sizeof(gpus));
	alerts.terms.idle_ms = 60 * MINUTE;
	for (uint32_t i = 0; i < GPUS; i++)
		gpus[i] = (struct takt_gpu_view){
			.index = i,
			.state = "free",
			.uuid = "GPU-x",
			.has = TAKT_VIEW_TEMP | TAKT_VIEW_GPU_UTIL | TAKT_VIEW_THROTTLE,
			.temp_c = 70,
			.gpu_util_pct = 50,
		};
	view = (struct takt_status_view){.hostname = "box1", .gpu_count = GPUS, .gpus = gpus};
	now_ms = 1000;
	return 0;
}

/* Looks every 15 s for so long. */
static void pass(uint64_t ms, bool answers)
{
	for (uint64_t end = now_ms + ms; now_ms <= end; now_ms += 15000)
		takt_alerts_look(&alerts, answers ? &view : NULL, now_ms);
}

/* Tells the next one; false when there is none. */
static bool next(struct takt_alert_news *news)
{
	*news = (struct takt_alert_news){.at = 0};
	if (!takt_alerts_news(&alerts, news, now_ms))
		return false;
	takt_alerts_told(&alerts, news);
	return true;
}

static void check_next(enum takt_alert alert, uint32_t gpu, bool fires)
{
	struct takt_alert_news news;

	assert_true(next(&news));
	assert_int_equal(news.alert, alert);
	assert_int_equal(news.at, gpu);
	assert_int_equal(news.fires, fires);
}

static void check_silence(void)
{
	struct takt_alert_news news;

	assert_false(next(&news));
}

static void a_healthy_day_is_silent(void **state)
{
	gpus[0].gpu_util_pct = 0;
	gpus[1].job_id = 7;
	strcpy(gpus[1].throttle_text, "sw_power_cap");
	strcpy(gpus[0].throttle_text, "gpu_idle");
	pass(24ull * 60 * MINUTE, true);
	check_silence();
}

static void what_stands_long_enough_is_told_once_and_its_end(void **state)
{
	gpus[1].stale = true;
	pass(MINUTE / 2, true);
	check_silence();
	pass(MINUTE, true);
	check_next(TAKT_ALERT_SILENT, 1, true);
	pass(10ull * MINUTE, true);
	check_silence();
	gpus[1].stale = false;
	pass(0, true);
	check_next(TAKT_ALERT_SILENT, 1, false);
	check_silence();
}

/* Looks every 15 s for so long; every attempt to tell fails. How many there were. */
static unsigned tell_in_vain(uint64_t ms)
{
	unsigned tries = 0;

	for (uint64_t end = now_ms + ms; now_ms <= end; now_ms += 15000) {
		struct takt_alert_news news = {.at = 0};

		takt_alerts_look(&alerts, &view, now_ms);
		for (; takt_alerts_news(&alerts, &news, now_ms); news.at++, tries++)
			takt_alerts_untold(&alerts, &news, now_ms);
	}
	return tries;
}

static void a_hook_that_fails_for_hours_is_run_ever_more_seldom(void **state)
{
	gpus[1].lost = true;
	assert_in_range(tell_in_vain(MINUTE - 1), 3, 4);
	assert_in_range(tell_in_vain(6ull * 60 * MINUTE), 5 * 60, 6 * 60 + 1);
	now_ms += MINUTE;
	check_next(TAKT_ALERT_LOST, 1, true);
	check_silence();
	/* From then on it is well, and the next failure is a first one. */
	gpus[1].lost = false;
	assert_in_range(tell_in_vain(MINUTE - 1), 3, 4);
}

static void one_that_cannot_be_told_keeps_no_other_waiting(void **state)
{
	gpus[1].lost = true;
	(void)tell_in_vain(60ull * MINUTE);
	gpus[0].lost = true;
	pass(0, true);
	check_next(TAKT_ALERT_LOST, 0, true);
}

static void each_condition_is_told_by_its_name(void **state)
{
	static const struct {
		enum takt_alert alert;
		const char *gpu_state, *clock_state, *throttle;
		bool lost;
		uint32_t minutes;
	} rows[] = {
		{TAKT_ALERT_LOST, "lost", "clean", "", true, 0},
		{TAKT_ALERT_ASIDE, "quarantined", "clean", "", false, 1},
		{TAKT_ALERT_ASIDE, "fault", "clean", "", false, 1},
		{TAKT_ALERT_DIRTY, "draining", "clean", "", false, 15},
		{TAKT_ALERT_HEAT, "running", "clean", "sw_power_cap,hw_thermal_slowdown", false, 5},
		{TAKT_ALERT_HEAT, "running", "clean", "sw_thermal_slowdown", false, 5},
		{TAKT_ALERT_BRAKE, "running", "clean", "hw_power_brake_slowdown", false, 5},
		{TAKT_ALERT_CHANGED, "free", "changed", "", false, 2},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		begin(NULL);
		takt_strcpy(gpus[1].state, sizeof(gpus[1].state), rows[i].gpu_state);
		takt_strcpy(gpus[1].clock_state, sizeof(gpus[1].clock_state), rows[i].clock_state);
		takt_strcpy(gpus[1].throttle_text, sizeof(gpus[1].throttle_text), rows[i].throttle);
		gpus[1].lost = gpus[1].stale = rows[i].lost;
		if (rows[i].minutes) {
			pass(rows[i].minutes * MINUTE - 15001, true);
			check_silence();
		}
		pass(15000, true);
		check_next(rows[i].alert, 1, true);
		check_silence();
	}
}

static void held_and_idle_is_told_when_it_was_so_all_the_time(void **state)
{
	gpus[0].gpu_util_pct = gpus[1].gpu_util_pct = 0;
	gpus[0].job_id = 7;
	pass(50ull * MINUTE, true);
	gpus[0].gpu_util_pct = 1;
	pass(0, true);
	gpus[0].gpu_util_pct = 0;
	pass(50ull * MINUTE, true);
	check_silence();
	pass(11ull * MINUTE, true);
	check_next(TAKT_ALERT_IDLE, 0, true);
	check_silence();
}

static void a_threshold_of_ones_own_is_kept(void **state)
{
	pass(20ull * MINUTE, true);
	alerts.terms.temp_c = 69;
	pass(6ull * MINUTE, true);
	check_next(TAKT_ALERT_HOT, 0, true);
	check_next(TAKT_ALERT_HOT, 1, true);
	check_silence();
}

/* No reading: neither a new alert nor the end of one. */
static void what_is_not_known_changes_nothing(void **state)
{
	strcpy(gpus[0].throttle_text, "hw_thermal_slowdown");
	pass(6ull * MINUTE, true);
	check_next(TAKT_ALERT_HEAT, 0, true);
	gpus[0].has = 0;
	gpus[0].throttle_text[0] = '\0';
	pass(6ull * MINUTE, true);
	check_silence();
	pass(MINUTE, false);
	check_silence();
	pass(MINUTE, false);
	check_next(TAKT_ALERT_DOWN, 0, true);
	check_silence();
	pass(0, true);
	check_next(TAKT_ALERT_DOWN, 0, false);
	check_silence();
}

/* The same for the network. */
static void pass_net(const struct takt_net_view *net, uint64_t ms)
{
	for (uint64_t end = now_ms + ms; now_ms <= end; now_ms += 15000)
		takt_alerts_look_at_net(&alerts, net, now_ms);
}

static void machines_that_are_silent_or_slow_are_told(void **state)
{
	static struct takt_net_view net = {
		.listen = "x",
		.peer_count = 3,
		.peers = {{.name = "gpu2", .state = "answers", .last_ns = 60000},
			  {.name = "gpu3", .state = "unknown"},
			  {.name = "gpu4", .state = "silent"}},
	};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	struct takt_alert_news news = {TAKT_ALERT_PEER_SILENT, 2, true};

	takt_strcpy(alerts.hostname, sizeof(alerts.hostname), "box1");
	pass_net(&net, MINUTE);
	check_silence();
	pass_net(&net, MINUTE);
	check_next(TAKT_ALERT_PEER_SILENT, 2, true);
	takt_alert_json(&alerts, &news, &text);
	assert_string_equal(
		text.s, "{\"alert\":\"NetPeerSilent\",\"state\":\"firing\",\"severity\":"
			"\"warning\",\"hostname\":\"box1\",\"peer\":\"gpu4\",\"summary\":\"gpu4, "
			"probed by box1, answers no probes\",\"simulated\":false}");
	pass_net(&net, 60 * MINUTE);
	check_silence();
	alerts.terms.rtt_ns = 50000;
	pass_net(&net, 4 * MINUTE);
	net.peers[0].last_ns = 50000; /* one that is not later begins it anew */
	pass_net(&net, 0);
	net.peers[0].last_ns = 50001;
	pass_net(&net, 4 * MINUTE);
	check_silence();
	pass_net(&net, 2 * MINUTE);
	check_next(TAKT_ALERT_PEER_SLOW, 0, true);
	takt_strcpy(net.peers[2].state, sizeof(net.peers[2].state), "answers");
	net.peers[2].last_ns = 1;
	pass_net(&net, 0);
	check_next(TAKT_ALERT_PEER_SILENT, 2, false);
	check_silence();
}

static void another_machine_in_the_place_of_one_begins_anew(void **state)
{
	static struct takt_net_view net = {
		.listen = "x", .peer_count = 1, .peers = {{.name = "gpu2", .state = "silent"}}};

	pass_net(&net, 3 * MINUTE);
	check_next(TAKT_ALERT_PEER_SILENT, 0, true);
	takt_strcpy(net.peers[0].name, sizeof(net.peers[0].name), "gpu3");
	pass_net(&net, MINUTE);
	check_silence();
	pass_net(&net, 2 * MINUTE);
	check_next(TAKT_ALERT_PEER_SILENT, 0, true);
	net.peer_count = 0;
	pass_net(&net, 0);
	check_silence();
}

static void one_look_tells_what_stands_and_guesses_nothing(void **state)
{
	alerts.terms.at_once = true;
	gpus[0].job_id = 7;
	gpus[0].gpu_util_pct = 0;
	strcpy(gpus[0].state, "draining");
	strcpy(gpus[1].clock_state, "changed");
	takt_alerts_look(&alerts, &view, now_ms);
	check_next(TAKT_ALERT_CHANGED, 1, true);
	check_silence();
}

static void an_alert_is_a_sentence_and_json(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	struct takt_alert_news news = {TAKT_ALERT_LOST, 1, true};

	takt_alerts_look(&alerts, &view, now_ms);
	takt_alert_summary(&alerts, &news, &text);
	assert_string_equal(text.s, "GPU 1 of box1 fell off the bus or needs a reset");
	takt_str_reset(&text);
	takt_alert_json(&alerts, &news, &text);
	assert_string_equal(
		text.s, "{\"alert\":\"GpuLost\",\"state\":\"firing\",\"severity\":\"critical\","
			"\"hostname\":\"box1\",\"gpu\":1,\"uuid\":\"GPU-x\",\"summary\":\"GPU 1 of "
			"box1 fell off the bus or needs a reset\",\"simulated\":false}");
	takt_str_reset(&text);
	news = (struct takt_alert_news){TAKT_ALERT_DOWN, 0, false};
	takt_alert_summary(&alerts, &news, &text);
	assert_string_equal(text.s, "takt on box1 does not answer: over");
	takt_str_reset(&text);
	alerts.simulated = true;
	takt_alert_summary(&alerts, &news, &text);
	assert_string_equal(text.s, "takt on box1 does not answer: over (SIMULATED)");
}

static void webhooks_are_http_and_keep_their_secrets(void **state)
{
	static const char *const wrong[] = {
		"", "http://", "ftp://x/", "file:///etc/passwd", "https://a b", "localhost"};
	struct takt_err err;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(wrong); i++)
		assert_int_equal(takt_webhook_check(wrong[i], &err), -TAKT_E_USAGE);
	assert_int_equal(takt_webhook_check("https://x/y", &err), 0);
	/* Nobody listens on port 1. */
	assert_int_equal(takt_webhook_post("http://127.0.0.1:1/services/s3cret", "{}", &err),
			 -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "127.0.0.1:1"));
	assert_null(strstr(err.msg, "s3cret"));
	assert_int_equal(takt_webhook_post("http://me:s3cret@127.0.0.1:1/", "{}", &err),
			 -TAKT_E_UNAVAILABLE);
	assert_null(strstr(err.msg, "s3cret"));
}

#define CASE(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_healthy_day_is_silent),
		CASE(what_stands_long_enough_is_told_once_and_its_end),
		CASE(a_hook_that_fails_for_hours_is_run_ever_more_seldom),
		CASE(one_that_cannot_be_told_keeps_no_other_waiting),
		CASE(each_condition_is_told_by_its_name),
		CASE(held_and_idle_is_told_when_it_was_so_all_the_time),
		CASE(a_threshold_of_ones_own_is_kept),
		CASE(what_is_not_known_changes_nothing),
		CASE(machines_that_are_silent_or_slow_are_told),
		CASE(another_machine_in_the_place_of_one_begins_anew),
		CASE(one_look_tells_what_stands_and_guesses_nothing),
		CASE(an_alert_is_a_sentence_and_json),
		CASE(webhooks_are_http_and_keep_their_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
