/* SPDX-License-Identifier: Apache-2.0 */
/* What each governor does for a job whose answer to clocks is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/compiler.h"
#include "clock/power_share.h"
#include "governor_kit.h"

static void set_params(struct kit *kit, const struct takt_governor_param *params, size_t count)
{
	kit->setup.params = params;
	kit->setup.param_count = count;
	kit_restart(kit);
}

static void set_power_only(struct kit *kit)
{
	kit->setup.board = (struct takt_governor_board){
		.can = TAKT_ACTUATE_POWER,
		.power_min_mw = 100000,
		.power_default_mw = 300000,
		.power_max_mw = 350000,
	};
	kit_restart(kit);
}

static uint32_t at_load(struct kit *kit, uint32_t busy_permille)
{
	kit->gpu_util_permille = busy_permille;
	kit_epoch(kit);
	return kit->wish.cap.max_mhz;
}

static void utilisation_boosts_when_busy_and_drops_when_quiet(void **state)
{
	struct kit kit;

	kit_begin(&kit, "utilisation");
	kit.setup.board.has_base_mhz = true;
	kit.setup.board.base_mhz = 1065;
	assert_int_equal(at_load(&kit, 950), 1410);
	assert_int_equal(at_load(&kit, 900), 1065);
	assert_int_equal(at_load(&kit, 300), 1065);
	assert_int_equal(at_load(&kit, 299), 840); /* 0.8 of 1065 is 852: down to a listed one */
	assert_int_equal(at_load(&kit, 1000), 1410);
	kit.hide |= TAKT_OBSERVED_GPU_UTIL;
	kit_epoch(&kit);
	assert_int_equal(kit.wish.cap.sets, 0);
}

static void utilisation_can_be_told_the_base_clock(void **state)
{
	static const struct takt_governor_param base = {"base_mhz", 1000};
	struct kit kit;

	kit_begin(&kit, "utilisation");
	assert_int_equal(at_load(&kit, 500), 1410);
	set_params(&kit, &base, 1);
	assert_int_equal(at_load(&kit, 500), 990);
	assert_int_equal(at_load(&kit, 100), 795);
}

static void idle_drop_waits_drops_and_lets_go(void **state)
{
	static const struct takt_governor_param half = {"sm_permille", 500};
	struct kit kit;

	kit_begin(&kit, "idle-drop");
	kit_run(&kit, 5);
	assert_int_equal(kit.wish.cap.sets, 0);
	kit.gpu_util_permille = 0;
	kit_run(&kit, 4); /* of 2 s */
	assert_int_equal(kit.wish.cap.sets, 0);
	kit_epoch(&kit);
	assert_int_equal(kit.wish.cap.max_mhz, 210);
	kit.gpu_util_permille = 1;
	kit_epoch(&kit);
	assert_int_equal(kit.wish.cap.sets, 0);
	kit.gpu_util_permille = 0;
	set_params(&kit, &half, 1);
	kit_run(&kit, 5);
	assert_int_equal(kit.wish.cap.max_mhz, 705);
}

/* At 5 % and a sensitivity of 0.5 the lowest good clock is 1/1.1 of the highest. */
static void ladder_stays_within_a_step_of_the_promise(void **state)
{
	struct kit kit;

	kit_begin(&kit, "ladder");
	kit_run(&kit, 200);
	assert_true(kit_slowdown(&kit) <= 0.05);
	assert_true(kit_saved(&kit) > 0.08);
	assert_true(kit.worst < 0.05 + 0.03); /* one step too far, once between references */
}

static void ladder_comes_back_when_the_job_changes(void **state)
{
	struct kit kit;

	kit_begin(&kit, "ladder");
	kit.sensitivity = 0;
	kit_restart(&kit);
	kit_run(&kit, 60);
	assert_true(kit_share(&kit) < 0.55);
	kit.sensitivity = 1;
	kit_run(&kit, 120);
	assert_true(kit_share(&kit) > 0.95);
}

static void ladder_steps_power_limits_where_clocks_cannot_be_set(void **state)
{
	struct kit kit;

	kit_begin(&kit, "ladder");
	set_power_only(&kit);
	kit_run(&kit, 40); /* the job here does not mind limits */
	assert_int_equal(kit.wish.cap.sets, TAKT_ACTUATE_POWER);
	assert_int_equal(kit.wish.cap.power_mw, 150000);
}

static void memory_bound_lowers_a_job_that_waits_for_memory(void **state)
{
	struct kit kit;

	kit_begin(&kit, "memory-bound");
	kit.sensitivity = 0;
	kit.noise = 0.02;
	kit_restart(&kit);
	kit_run(&kit, 400);
	assert_int_equal(kit.wish.reason, TAKT_REASON_MEMORY_BOUND);
	assert_true(kit_share(&kit) <= 0.75);
	assert_true(kit_slowdown(&kit) < 0.001);
	assert_true(kit_saved(&kit) > 0.3);
}

/* Activity comes with some epochs only, where these are shorter than the windows of its counters:
 * what comes late is not another job. */
static void memory_bound_stays_down_when_activity_is_told_late(void **state)
{
	struct kit kit;

	kit_begin(&kit, "memory-bound");
	kit.sensitivity = 0;
	kit.dram_active_permille = 900;
	kit.hide |= TAKT_OBSERVED_DRAM;
	kit_restart(&kit);
	for (uint32_t i = 0; i < 200 && kit.wish.reason != TAKT_REASON_MEMORY_BOUND; i++)
		kit_epoch(&kit);
	kit_run(&kit, 5);
	kit.hide &= ~(uint32_t)TAKT_OBSERVED_DRAM;
	for (uint32_t i = 0; i < 20; i++) {
		kit_epoch(&kit);
		assert_int_equal(kit.wish.reason, TAKT_REASON_MEMORY_BOUND);
	}
	kit.dram_active_permille = 500; /* this is */
	kit_epoch(&kit);
	assert_int_equal(kit.wish.reason, TAKT_REASON_REFERENCE);
}

static void memory_bound_leaves_a_job_that_computes_alone(void **state)
{
	struct kit kit;

	kit_begin(&kit, "memory-bound");
	kit.sensitivity = 0.8;
	kit.noise = 0.02;
	kit_restart(&kit);
	kit_run(&kit, 400);
	assert_int_equal(kit.wish.reason, TAKT_REASON_MAXIMUM);
	assert_true(kit_slowdown(&kit) < 0.005);
	kit.hide &= ~(uint32_t)TAKT_OBSERVED_DRAM;
	kit.dram_active_permille = 100; /* says so by itself: nothing is tried */
	kit_restart(&kit);
	kit_run(&kit, 100);
	assert_true(kit.worst == 0);
}

static void geepafs_saves_on_memory_bound_work_and_little_else(void **state)
{
	struct kit kit;
	double flat;

	kit_begin(&kit, "geepafs");
	kit.sensitivity = 0.05;
	kit.hide |= TAKT_OBSERVED_GPU_UTIL;
	kit_restart(&kit);
	kit_run(&kit, 8);
	assert_int_equal(kit.wish.reason, TAKT_REASON_LEARNED);
	flat = kit_share(&kit);
	kit.sensitivity = 1;
	kit.fixed_w = 250; /* most of the power does not depend on the clock: f_eff is the top */
	kit.rising_w = 50;
	kit_restart(&kit);
	kit_run(&kit, 8);
	assert_true(flat < 0.66);
	assert_true(kit_share(&kit) > 0.93);
}

static void geepafs_probes_four_clocks_up_and_down_and_again_later(void **state)
{
	static const uint32_t wanted[] = {885, 1065, 1245, 1410, 1410, 1245, 1065, 885};
	struct kit kit;

	kit_begin(&kit, "geepafs");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(wanted); i++) {
		assert_int_equal(kit.wish.cap.max_mhz, wanted[i]);
		assert_true(kit.wish.probe);
		kit_epoch(&kit);
	}
	for (uint32_t i = 0; i < 75; i++) {
		assert_false(kit.wish.probe);
		kit_epoch(&kit);
	}
	assert_int_equal(kit.wish.cap.max_mhz, 885);
	assert_true(kit.wish.probe);
}

/* By hand: u = 50 % at each clock, p = 1/1.05, so f_cap is largest at the highest probe:
 * 1410 / (p' (1 + 2 - 1) + 1) with p' = 1 - p = 0.0476; 1287.4, up to 1290. */
static void geepafs_without_a_performance_signal_goes_by_utilisation(void **state)
{
	struct kit kit;

	kit_begin(&kit, "geepafs");
	kit.hide |= TAKT_OBSERVED_WORK;
	kit.gpu_util_permille = 500;
	kit_run(&kit, 8);
	assert_int_equal(kit.wish.cap.max_mhz, 1290);
}

static double cost(double eta, double share)
{
	double power = 100 + 200 * share * share * share;

	return (eta * power + (1 - eta) * 300) * (1 + 0.5 * (1 / share - 1));
}

static void expect_cheapest(int64_t eta_permille)
{
	struct takt_governor_param eta = {"eta_permille", eta_permille};
	double best = 1e9, found;
	struct kit kit;

	kit_begin(&kit, "zeus-cost");
	set_params(&kit, &eta, 1);
	kit_run(&kit, 60);
	assert_int_equal(kit.wish.reason, TAKT_REASON_LEARNED);
	found = cost((double)eta_permille / 1000, kit_share(&kit));
	for (size_t i = 0; i < KIT_CLOCKS; i++)
		if (kit_clocks[i] >= 705 &&
		    cost((double)eta_permille / 1000, kit_clocks[i] / 1410.0) < best)
			best = cost((double)eta_permille / 1000, kit_clocks[i] / 1410.0);
	assert_true(found < best * 1.005); /* one of 13 settings, the neighbour at worst */
}

static void zeus_cost_finds_the_least_cost_for_each_eta(void **state)
{
	static const struct takt_governor_param wrong = {"eta_permille", 1001};
	struct kit kit;

	expect_cheapest(0);
	expect_cheapest(500);
	expect_cheapest(1000);
	kit_begin(&kit, "zeus-cost");
	kit.setup.params = &wrong;
	kit.setup.param_count = 1;
	assert_true(takt_governor_init(kit.governor, kit.state.bytes, &kit.setup, NULL) < 0);
}

static void zeus_cost_goes_through_power_limits_in_steps_of_25_w(void **state)
{
	struct kit kit;

	kit_begin(&kit, "zeus-cost");
	set_power_only(&kit);
	for (uint32_t mw = 300000; mw >= 100000; mw -= 25000) {
		assert_int_equal(kit.wish.cap.power_mw, mw);
		kit_run(&kit, 3);
	}
}

static void qlearning_saves_and_keeps_the_promise_as_a_whole(void **state)
{
	double saved = 0;
	uint32_t over = 0;

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct kit kit;

		kit_begin(&kit, "qlearning");
		kit.noise = 0.02;
		kit.setup.seed = seed;
		kit.sensitivity = 0.2 + 0.03 * (double)seed;
		kit_restart(&kit);
		kit_run(&kit, 400);
		assert_true(kit_slowdown(&kit) <= 0.05);
		assert_true(kit.worst < 0.12); /* the lowest step would be up to 0.77 */
		saved += kit_saved(&kit) / 20;
		over += kit.over;
	}
	assert_true(saved > 0.02);
	assert_true(over < 20 * 400 / 40); /* without a fence it is every ninth epoch */
}

/* A server of many requests at once: latency grows without bound as load comes to what it can do.
 */
struct server {
	struct kit kit;
	double load; /* requests a second; 1000 are what the highest clock can do */
	uint32_t missed;
};

static void serve(struct server *server, uint32_t epochs)
{
	for (uint32_t i = 0; i < epochs; i++) {
		double can = 1000 * kit_share(&server->kit);
		double free = can - server->load > 1 ? can - server->load : 1;
		double latency_us = 4e6 / free;
		struct takt_governor_observation seen = {
			.has = TAKT_OBSERVED_LATENCY | TAKT_OBSERVED_LOAD,
			.epoch_ns = 2000000000,
			.cap = server->kit.wish.cap,
			.latency_us = (uint32_t)latency_us,
			.load = server->load,
		};

		server->missed += latency_us > 50000;
		kit_tell(&server->kit, &seen);
	}
}

static void begin_server(struct server *server, double load)
{
	*server = (struct server){.load = load};
	kit_begin(&server->kit, "slo");
	server->kit.setup.job.has_latency = true;
	server->kit.setup.job.latency_target_us = 50000;
	server->kit.setup.job.latency_permille = 990;
	kit_restart(&server->kit);
}

/* 50 ms need 80 requests a second to spare: the least clock is (load + 80) / 1000 of the highest.
 */
static void slo_finds_a_clock_near_the_least_that_holds_the_latency(void **state)
{
	for (double load = 300; load <= 900; load += 100) {
		struct server server;
		double least = (load + 80) / 1000;

		begin_server(&server, load);
		serve(&server, 200);
		server.missed = 0;
		serve(&server, 1000);
		assert_in_range(server.missed, 0, 10); /* under 1 % once settled */
		assert_true(kit_share(&server.kit) < least + 0.15);
	}
}

static void slo_rises_at_once_with_load_and_when_the_target_is_missed(void **state)
{
	struct server server;

	begin_server(&server, 300);
	serve(&server, 200);
	assert_true(kit_share(&server.kit) < 0.6);
	server.load = 800;
	serve(&server, 1);
	assert_true(kit_share(&server.kit) == 1);
	server.missed = 0;
	serve(&server, 200);
	assert_in_range(server.missed, 0, 2);
	server.kit.setup.job.has_latency = false;
	serve(&server, 1);
	assert_int_equal(server.kit.wish.reason, TAKT_REASON_NO_PROMISE);
	assert_true(kit_share(&server.kit) == 1);
}

/* Load in requests a second; 1000 keep the highest clock wholly busy. */
static void expect_load(struct kit *kit, double load, double ahead)
{
	struct takt_governor_observation seen = {
		.has = TAKT_OBSERVED_GPU_UTIL | TAKT_OBSERVED_SM_CLOCK | TAKT_OBSERVED_LOAD |
		       TAKT_OBSERVED_LOAD_AHEAD,
		.epoch_ns = 2000000000,
		.cap = kit->wish.cap,
		.load = load,
		.load_ahead = ahead,
	};
	double busy = load / 1000 / kit_share(kit);

	seen.sm_mhz = (uint32_t)(kit_share(kit) * 1410);
	seen.gpu_util_permille = busy < 1 ? (uint32_t)(busy * 1000) : 1000;
	kit_tell(kit, &seen);
}

static void forecast_is_there_before_the_load(void **state)
{
	struct kit kit;

	kit_begin(&kit, "forecast");
	for (int i = 0; i < 20; i++)
		expect_load(&kit, 200, 200);
	assert_in_range(kit.wish.cap.max_mhz, 340, 370); /* 0.25 of 1410 */
	expect_load(&kit, 200, 600);
	assert_int_equal(kit.wish.reason, TAKT_REASON_FORECAST);
	assert_in_range(kit.wish.cap.max_mhz, 1020, 1080); /* 0.75 */
	for (int i = 0; i < 4; i++) {
		expect_load(&kit, 200, 200);
		assert_in_range(kit.wish.cap.max_mhz, 1020, 1080); /* not down at once */
	}
	expect_load(&kit, 200, 200);
	assert_in_range(kit.wish.cap.max_mhz, 340, 370);
}

static void forecast_goes_by_the_load_of_now_where_none_is_forecast(void **state)
{
	struct kit kit;

	kit_begin(&kit, "forecast");
	kit.gpu_util_permille = 1000;
	kit_run(&kit, 20);
	assert_int_equal(kit.wish.cap.max_mhz, 1410);
	kit.gpu_util_permille = 100;
	kit_run(&kit, 100);
	assert_int_equal(kit.wish.cap.max_mhz, 210);
	kit.hide |= TAKT_OBSERVED_GPU_UTIL;
	kit_epoch(&kit);
	assert_int_equal(kit.wish.cap.max_mhz, 1410);
}

static void power_budget_finds_the_highest_clock_within_its_share(void **state)
{
	for (uint32_t watts = 130; watts <= 310; watts += 20) {
		struct kit kit;
		double share;

		kit_begin(&kit, "power-budget");
		kit.hide &= ~(uint32_t)TAKT_OBSERVED_BUDGET;
		kit.budget_mw = watts * 1000;
		kit_restart(&kit);
		for (int i = 0; i < 40; i++) {
			kit_epoch(&kit);
			assert_true(kit_power_w(&kit) <= watts); /* climbing, too */
		}
		share = kit_share(&kit) + 1.0 / 15; /* the next step up would be too much */
		assert_true(share > 1 || 100 + 200 * share * share * share > watts);
	}
}

/* Power at a clock of the board's list. */
static double listed_w(const struct kit *kit, size_t at)
{
	double r = kit_clocks[at] / 1410.0;

	return kit->fixed_w + kit->rising_w * r * r * r;
}

/* A board whose power can be limited, too. */
static void begin_limited(struct kit *kit)
{
	kit_begin(kit, "power-budget");
	kit->setup.board.can = TAKT_ACTUATE_CLOCKS | TAKT_ACTUATE_POWER;
	kit->setup.board.power_min_mw = 100000;
	kit->setup.board.power_default_mw = 300000;
	kit->setup.board.power_max_mw = 350000;
	kit_restart(kit);
}

/* An epoch on a board that keeps its limit by going below the ceiling, and says so. What it says
 * of its clock is a mean, a little below the one that it was set to. */
static void limited_epoch(struct kit *kit, uint32_t budget_mw)
{
	const struct takt_governor_cap *cap = &kit->wish.cap;
	struct takt_governor_observation seen = {
		.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER | TAKT_OBSERVED_SM_CLOCK |
		       TAKT_OBSERVED_THROTTLE | TAKT_OBSERVED_BUDGET,
		.epoch_ns = 2000000000,
		.cap = *cap,
		.signal = TAKT_SIGNAL_JOB,
		.budget_mw = budget_mw,
	};
	size_t at = KIT_CLOCKS - 1;

	while (at > 0 && kit_clocks[at] > cap->max_mhz)
		at--;
	while (at > 0 && listed_w(kit, at) * 1000 > cap->power_mw) {
		seen.throttle = 0x4; /* SW power cap */
		at--;
	}
	seen.work = 2000 / (1 + kit->sensitivity * (1410.0 / kit_clocks[at] - 1));
	seen.power_mw = (uint32_t)(listed_w(kit, at) * 1000);
	seen.sm_mhz = kit_clocks[at] - 5;
	kit_tell(kit, &seen);
}

/* Where limits can be set beside clocks it begins at the highest clock, held down by its share:
 * what is drawn there is not what the highest clock needs, and no share may be made of that. */
static void power_budget_tells_a_clock_that_its_limit_held_down_from_the_ceiling(void **state)
{
	struct takt_governor_observation first = {.has = TAKT_OBSERVED_BUDGET, .budget_mw = 160000};
	struct takt_power_point points[16];
	struct kit kit;
	size_t n;

	(void)state;
	begin_limited(&kit);
	kit_tell(&kit, &first);
	assert_int_equal(kit.wish.cap.max_mhz, 1410);
	assert_int_equal(kit.wish.cap.power_mw, 160000);

	limited_epoch(&kit, 160000); /* which is enough for 930 MHz */
	assert_false(takt_power_budget_complete(kit.state.bytes));
	assert_in_range(kit.wish.cap.max_mhz, 840, 930);
	for (int i = 0; i < 20; i++) {
		limited_epoch(&kit, 220000); /* for 1185 */
		assert_false(takt_power_budget_complete(kit.state.bytes));
	}
	assert_in_range(kit.wish.cap.max_mhz, 1095, 1185);
	assert_true(takt_power_budget_curve(kit.state.bytes, points) > 1);
	assert_true(kit.wish.bid > 0);

	for (int i = 0; i < 20; i++)
		limited_epoch(&kit, 310000); /* for all: now what is drawn is the ceiling's own */
	assert_int_equal(kit.wish.cap.max_mhz, 1410);
	assert_true(takt_power_budget_complete(kit.state.bytes));
	n = takt_power_budget_curve(kit.state.bytes, points);
	assert_in_range(points[n - 1].mw, 299000, 301000);
}

/* In its first epoch a job loads its data: it draws little at the highest clock, and does little.
 * Taken for what that clock brings, it would keep the job from more power for ever. */
static void power_budget_forgets_how_a_job_began(void **state)
{
	struct takt_governor_observation first = {.has = TAKT_OBSERVED_BUDGET, .budget_mw = 160000};
	struct kit kit;

	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct takt_governor_observation loading = {
			.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER | TAKT_OBSERVED_SM_CLOCK |
			       TAKT_OBSERVED_THROTTLE | TAKT_OBSERVED_BUDGET,
			.epoch_ns = 2000000000,
			.signal = TAKT_SIGNAL_JOB,
			.work = slow ? 300 : 2000, /* whichever of the two tells it apart */
			.power_mw = slow ? 290000 : 120000,
			.sm_mhz = 1410,
			.budget_mw = 160000,
		};

		begin_limited(&kit);
		kit_tell(&kit, &first);
		loading.cap = kit.wish.cap;
		kit_tell(&kit, &loading);
		assert_true(takt_power_budget_complete(kit.state.bytes));
		for (int i = 0; i < 20; i++) {
			limited_epoch(&kit, 160000); /* which is enough for 930 MHz */
			assert_false(takt_power_budget_complete(kit.state.bytes));
		}
		assert_in_range(kit.wish.cap.max_mhz, 840, 930);
	}
}

/* Somebody else's clock is left to him; how much the board may draw is not his to say. */
static void power_budget_keeps_its_limit_under_a_foreign_clock(void **state)
{
	struct takt_governor_observation seen = {
		.foreign = true, .has = TAKT_OBSERVED_BUDGET, .budget_mw = 170000};
	struct takt_governor_observation first = {.has = TAKT_OBSERVED_BUDGET, .budget_mw = 220000};
	struct takt_governor_cap before;
	struct kit kit;

	(void)state;
	begin_limited(&kit);
	kit_tell(&kit, &first);
	for (int i = 0; i < 10; i++)
		limited_epoch(&kit, 220000);
	/* Between epochs, while nobody knows whose clock it is. */
	before = first.cap = kit.wish.cap;
	first.budget_mw = 180000;
	kit_tell(&kit, &first);
	assert_int_equal(kit.wish.cap.sets, before.sets);
	assert_int_equal(kit.wish.cap.max_mhz, before.max_mhz);
	assert_int_equal(kit.wish.cap.power_mw, 180000);
	kit_tell(&kit, &seen);
	assert_int_equal(kit.wish.reason, TAKT_REASON_FOREIGN);
	assert_int_equal(kit.wish.cap.sets, TAKT_ACTUATE_POWER);
	assert_int_equal(kit.wish.cap.power_mw, 170000);
	/* He had it low, and the board had no need of its limit: that is nothing of the top. */
	seen = (struct takt_governor_observation){.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER |
							 TAKT_OBSERVED_BUDGET,
						  .epoch_ns = 2000000000,
						  .cap = kit.wish.cap,
						  .work = 1000,
						  .power_mw = 120000,
						  .budget_mw = 170000};
	kit_tell(&kit, &seen);
	assert_false(takt_power_budget_complete(kit.state.bytes));
	seen.foreign = true;
	seen.has = 0; /* without a budget there is nothing to keep */
	kit_tell(&kit, &seen);
	assert_int_equal(kit.wish.cap.sets, 0);
}

/* Four boards, a budget for three: the jobs whose clocks bring most get most, and it is kept. */
static void a_machine_keeps_its_budget_and_gives_to_who_gains_most(void **state)
{
	static struct kit kits[4];
	double drawn = 0;
	uint32_t mw[4] = {200000, 200000, 200000, 200000};

	for (size_t i = 0; i < 4; i++) {
		kit_begin(&kits[i], "power-budget");
		kits[i].hide &= ~(uint32_t)TAKT_OBSERVED_BUDGET;
		kits[i].sensitivity = 0.1 + 0.3 * (double)i;
		kit_restart(&kits[i]);
	}
	for (uint32_t epoch = 0; epoch < 60; epoch++) {
		struct takt_power_point points[4][16];
		struct takt_power_bidder bidders[4];

		for (size_t i = 0; i < 4; i++) {
			kits[i].budget_mw = mw[i];
			kit_epoch(&kits[i]);
			bidders[i] = (struct takt_power_bidder){110000, 300000, 1, points[i], 0};
			bidders[i].count = takt_power_budget_curve(kits[i].state.bytes, points[i]);
		}
		if (epoch > 20)
			assert_int_equal(takt_power_share_out(800000, bidders, 4, mw, NULL), 0);
	}
	for (size_t i = 0; i < 4; i++)
		drawn += kit_power_w(&kits[i]);
	assert_true(drawn <= 800);
	assert_true(kit_share(&kits[3]) > kit_share(&kits[0]));
	assert_true(kits[3].wish.bid > 0);
}

/* Boards of today take both: a governor that knows one way goes by clocks there, and asks for no
 * limit below the default. */
static void where_both_can_be_set_clocks_are(void **state)
{
	(void)state;
	for (size_t i = 0; takt_governor_all[i]; i++) {
		const char *name = takt_governor_all[i]->name;
		struct kit clocks, both;

		/* `fixed` has no choice, and a share of power is the limit behind the clock. */
		if (strcmp(name, "fixed") == 0 || strcmp(name, "power-budget") == 0)
			continue;
		kit_begin(&clocks, name);
		kit_begin(&both, name);
		both.setup.board.can = TAKT_ACTUATE_CLOCKS | TAKT_ACTUATE_POWER;
		both.setup.board.power_min_mw = 100000;
		both.setup.board.power_default_mw = 300000;
		both.setup.board.power_max_mw = 350000;
		kit_restart(&both);
		for (int epoch = 0; epoch < 80; epoch++) {
			const struct takt_governor_cap *a = &clocks.wish.cap, *b = &both.wish.cap;

			kit_epoch(&clocks);
			kit_epoch(&both);
			assert_int_equal(a->min_mhz, b->min_mhz);
			assert_int_equal(a->max_mhz, b->max_mhz);
			assert_true(b->power_mw == 0 || b->power_mw == 300000);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utilisation_boosts_when_busy_and_drops_when_quiet),
		cmocka_unit_test(utilisation_can_be_told_the_base_clock),
		cmocka_unit_test(idle_drop_waits_drops_and_lets_go),
		cmocka_unit_test(ladder_stays_within_a_step_of_the_promise),
		cmocka_unit_test(ladder_comes_back_when_the_job_changes),
		cmocka_unit_test(ladder_steps_power_limits_where_clocks_cannot_be_set),
		cmocka_unit_test(memory_bound_lowers_a_job_that_waits_for_memory),
		cmocka_unit_test(memory_bound_stays_down_when_activity_is_told_late),
		cmocka_unit_test(memory_bound_leaves_a_job_that_computes_alone),
		cmocka_unit_test(geepafs_saves_on_memory_bound_work_and_little_else),
		cmocka_unit_test(geepafs_probes_four_clocks_up_and_down_and_again_later),
		cmocka_unit_test(geepafs_without_a_performance_signal_goes_by_utilisation),
		cmocka_unit_test(zeus_cost_finds_the_least_cost_for_each_eta),
		cmocka_unit_test(zeus_cost_goes_through_power_limits_in_steps_of_25_w),
		cmocka_unit_test(qlearning_saves_and_keeps_the_promise_as_a_whole),
		cmocka_unit_test(slo_finds_a_clock_near_the_least_that_holds_the_latency),
		cmocka_unit_test(slo_rises_at_once_with_load_and_when_the_target_is_missed),
		cmocka_unit_test(forecast_is_there_before_the_load),
		cmocka_unit_test(forecast_goes_by_the_load_of_now_where_none_is_forecast),
		cmocka_unit_test(power_budget_finds_the_highest_clock_within_its_share),
		cmocka_unit_test(
			power_budget_tells_a_clock_that_its_limit_held_down_from_the_ceiling),
		cmocka_unit_test(power_budget_forgets_how_a_job_began),
		cmocka_unit_test(power_budget_keeps_its_limit_under_a_foreign_clock),
		cmocka_unit_test(a_machine_keeps_its_budget_and_gives_to_who_gains_most),
		cmocka_unit_test(where_both_can_be_set_clocks_are),
	};

	return cmocka_run_group_tests_name("governor kinds", tests, NULL, NULL);
}
