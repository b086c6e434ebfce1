/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that come by themselves, and what they do to a GPU and to what runs on it, in invented
 * time; and the machine's clock. No test here waits for a fault: who looks works it out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "abi/nvml.h"
#include "twin_board_file.h"
#include "twin_clock.h"
#include "twin_physics.h"
#include "twin_trouble.h"

static const uint64_t T0 = 1000 * TWIN_CELL_NS + 12345678, SECOND = 1000000000,
		      FOREVER = 1ull << 62;

static const struct twin_profile gemm = {
	.name = "gemm",
	.phase_count = 1,
	.phases = {{TWIN_PHASE_COMPUTE, 1000, 1000, 110, 1000, 950}}};

static const struct twin_board *board(const char *id)
{
	static struct twin_board found;
	struct takt_err err = {0};

	if (twin_board_load(id, NULL, &found, &err) < 0)
		fail_msg("%s", err.msg);
	return &found;
}

/* A board at work. */
static void burn(struct twin_gpu *gpu, const struct twin_board *type)
{
	twin_physics_init(gpu, type, T0);
	gpu->load_count = 1;
	gpu->loads[0] = (struct twin_load){
		.pid = 1,
		.lease_until_ns = FOREVER,
		.step_ns = 100000000,
		.pace_permille = 1000,
		.link_permille = 1000,
		.memory_bytes = 1 << 30,
		.profile = gemm,
	};
	twin_physics_settle(gpu, type);
}

static void plan(struct twin_gpu *gpu, uint64_t at_ns, enum twin_trouble trouble, uint64_t value)
{
	const struct twin_planned planned = {.at_ns = at_ns, .value = value, .trouble = trouble};

	assert_int_equal(twin_trouble_plan(gpu, &planned), 0);
}

static uint64_t last_xid(const struct twin_gpu *gpu)
{
	const struct twin_event *event = &gpu->events[(gpu->event_count - 1) % TWIN_EVENTS];

	return gpu->event_count && event->type == NVML_EVENT_XID_CRITICAL ? event->data : 0;
}

static void a_planned_fault_comes_at_its_moment(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	struct twin_gpu gpu;

	burn(&gpu, type);
	plan(&gpu, T0 + 5 * SECOND + 7, TWIN_TROUBLE_XID, 63);
	plan(&gpu, T0 + 2 * SECOND, TWIN_TROUBLE_POWER_BRAKE, 0);
	plan(&gpu, T0 + 4 * SECOND, TWIN_TROUBLE_NONE, 0);
	twin_physics_advance(&gpu, type, T0 + 2 * SECOND - 1);
	assert_int_equal(gpu.power_brake, 0);
	twin_physics_advance(&gpu, type, T0 + 3 * SECOND);
	assert_int_equal(gpu.now_mhz, 990);
	twin_physics_advance(&gpu, type, T0 + 100 * SECOND);
	assert_int_equal(gpu.now_mhz, 1980);
	assert_int_equal(gpu.power_brake_ns, 2 * SECOND);
	assert_int_equal(last_xid(&gpu), 63);
	assert_int_equal(gpu.events[0].at_ns, T0 + 5 * SECOND + 7);
	assert_int_equal(gpu.plan_count, 0);
	/* two seconds at half the clock: t = 1 + 0.95 */
	assert_in_range(gpu.loads[0].work_ns / 1000000, 99000, 99060);
}

static void a_plan_has_an_end_and_can_be_forgotten(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	const struct twin_planned one_more = {.at_ns = T0 + 1, .trouble = TWIN_TROUBLE_LOST};
	struct twin_gpu gpu, before;

	burn(&gpu, type);
	for (unsigned i = 0; i < TWIN_PLANNED; i++)
		plan(&gpu, T0 + SECOND, TWIN_TROUBLE_ECC_CORRECTED, 1);
	before = gpu;
	assert_int_equal(twin_trouble_plan(&gpu, &one_more), -ENOSPC);
	assert_memory_equal(&gpu, &before, sizeof(gpu));
	twin_trouble_happen(&gpu, type, TWIN_TROUBLE_FORGET, 0);
	twin_physics_advance(&gpu, type, T0 + 10 * SECOND);
	assert_int_equal(gpu.ecc_cor_volatile, 0);
	/* what is past comes about at once */
	plan(&gpu, T0, TWIN_TROUBLE_ECC_CORRECTED, 3);
	twin_physics_advance(&gpu, type, T0 + 11 * SECOND);
	assert_int_equal(gpu.ecc_cor_volatile, 3);
}

/* Neither a reload nor a mended board makes what is to come forget to come. */
static void a_plan_outlives_what_it_brings(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	struct twin_gpu gpu;

	burn(&gpu, type);
	plan(&gpu, T0 + SECOND, TWIN_TROUBLE_RELOAD, 0);
	plan(&gpu, T0 + 2 * SECOND, TWIN_TROUBLE_OVERHEATED, 0);
	plan(&gpu, T0 + 3 * SECOND, TWIN_TROUBLE_NONE, 0);
	plan(&gpu, T0 + 4 * SECOND, TWIN_TROUBLE_ECC_CORRECTED, 5);
	twin_physics_advance(&gpu, type, T0 + 2 * SECOND + 1);
	assert_int_equal(gpu.off, 1);
	twin_physics_advance(&gpu, type, T0 + 10 * SECOND);
	assert_int_equal(gpu.reloads, 1);
	assert_int_equal(gpu.ecc_cor_volatile, 5);
	assert_int_equal(gpu.plan_count, 0);
}

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

static uint64_t value_for(const struct twin_board *type, enum twin_trouble trouble, uint64_t *seed)
{
	switch (trouble) {
	case TWIN_TROUBLE_PCIE_WIDTH:
		return 1ull << draw(seed) % 4;
	case TWIN_TROUBLE_PCIE_GEN:
		return 1 + draw(seed) % (type->pcie_gen - 1);
	case TWIN_TROUBLE_LINK_DOWN:
		return draw(seed) % type->nvlinks;
	case TWIN_TROUBLE_AIR:
		return 1 + draw(seed) % 100;
	default:
		return 1 + draw(seed) % 20;
	}
}

/* However often anybody looks, all come to the same state, to the bit. */
static void looking_does_not_change_what_comes(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	uint64_t seed = 11;

	for (unsigned round = 0; round < 40; round++) {
		uint64_t end = T0 + 200 * SECOND + draw(&seed) % (200 * SECOND);
		struct twin_gpu once, often;

		memset(&once, 0, sizeof(once));
		burn(&once, type);
		for (unsigned i = 0; i < 30; i++) {
			enum twin_trouble trouble = draw(&seed) % TWIN_TROUBLE_COUNT;
			if (twin_trouble_check(type, trouble, value_for(type, trouble, &seed)) == 0)
				plan(&once, T0 + draw(&seed) % (200 * SECOND), trouble,
				     value_for(type, trouble, &seed));
		}
		often = once;
		twin_physics_advance(&once, type, end);
		while (often.at_ns < end) {
			uint64_t next =
				often.at_ns + draw(&seed) % (round % 2 ? SECOND : SECOND / 9);
			twin_physics_settle(&often, type);
			twin_physics_advance(&often, type, next + 1 < end ? next + 1 : end);
		}
		assert_memory_equal(&once, &often, sizeof(once));
	}
}

/* Without coolant even the least clock is too warm: throttled, halved, then off. */
static void a_board_without_cooling_switches_itself_off(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	uint64_t energy_nj, work_ns;
	struct twin_gpu gpu;

	burn(&gpu, type);
	twin_physics_advance(&gpu, type, T0 + 300 * SECOND);
	gpu.lock_min_mhz = gpu.lock_max_mhz = 1500;
	twin_trouble_happen(&gpu, type, TWIN_TROUBLE_AIR, 1);
	twin_physics_settle(&gpu, type);
	while (!gpu.sw_thermal_ns)
		twin_physics_advance(&gpu, type, gpu.at_ns + SECOND);
	assert_int_equal(gpu.faults, 0);
	twin_physics_advance(&gpu, type, gpu.at_ns + 600 * SECOND);
	assert_true(gpu.hw_thermal_ns > 0);
	assert_int_equal(gpu.faults, TWIN_FAULT_LOST);
	assert_int_equal(last_xid(&gpu), 79);
	assert_int_equal(gpu.load_count, 0);
	assert_int_equal(gpu.now_uw, 0);
	energy_nj = gpu.energy_nj;
	twin_physics_advance(&gpu, type, gpu.at_ns + 100000 * SECOND);
	assert_int_equal(gpu.energy_nj, energy_nj);
	assert_in_range(gpu.temp_uc / 1000000, type->ambient_c - 1, type->ambient_c + 1);
	/* mended it is a board at rest that forgot its settings */
	twin_trouble_happen(&gpu, type, TWIN_TROUBLE_NONE, 0);
	twin_physics_settle(&gpu, type);
	assert_int_equal(gpu.faults | gpu.off | gpu.lock_max_mhz, 0);
	burn(&gpu, type);
	work_ns = gpu.loads[0].work_ns;
	twin_physics_advance(&gpu, type, gpu.at_ns + 600 * SECOND);
	assert_true(gpu.loads[0].work_ns > work_ns + 599 * SECOND);
}

/* At rest it stays below: nothing is lost but cooling. */
static void half_the_cooling_is_enough_at_rest(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	struct twin_gpu gpu;

	twin_physics_init(&gpu, type, T0);
	twin_trouble_happen(&gpu, type, TWIN_TROUBLE_AIR, 10);
	twin_physics_advance(&gpu, type, T0 + 36000 * SECOND);
	assert_int_equal(gpu.faults, 0);
	assert_in_range(gpu.temp_uc / 1000000, 60, 80);
}

static void a_stuck_fan_is_read_as_that_and_slows_the_board(void **state)
{
	const struct twin_board *type = board("rtx-4090");
	uint64_t all, hot;
	struct twin_gpu gpu;

	burn(&gpu, type);
	twin_physics_advance(&gpu, type, T0 + 600 * SECOND);
	assert_true(gpu.now_fan_percent > 20);
	all = twin_physics_speed(&gpu, type, &gpu.loads[0]);
	twin_trouble_happen(&gpu, type, TWIN_TROUBLE_FAN_STUCK, 0);
	twin_physics_settle(&gpu, type);
	assert_int_equal(gpu.now_fan_percent, 0);
	twin_physics_advance(&gpu, type, T0 + 1800 * SECOND);
	assert_true(gpu.sw_thermal_ns > 0);
	hot = twin_physics_speed(&gpu, type, &gpu.loads[0]);
	assert_true(hot < all * 9 / 10);
	twin_trouble_happen(&gpu, type, TWIN_TROUBLE_NONE, 0);
	twin_physics_advance(&gpu, type, T0 + 3600 * SECOND);
	assert_int_equal(gpu.now_reasons & ~(uint64_t)NVML_REASON_SW_POWER_CAP, 0);
	assert_true(gpu.now_fan_percent > 20);
	assert_int_equal(twin_trouble_check(board("h100-sxm"), TWIN_TROUBLE_FAN_STUCK, 0),
			 -ENOTSUP);
}

/* Where less heat is carried away, a board warms at first as fast as before, and for longer. */
static void less_air_does_not_warm_faster_at_first(void **state)
{
	const struct twin_board *type = board("h100-sxm");
	int64_t rise[2];

	for (unsigned i = 0; i < 2; i++) {
		struct twin_gpu gpu;
		int64_t before;
		burn(&gpu, type);
		gpu.airflow_permille = i ? 100 : 1000;
		before = gpu.temp_uc;
		twin_physics_advance(&gpu, type, T0 + 2 * SECOND);
		rise[i] = gpu.temp_uc - before;
	}
	assert_in_range(rise[1], rise[0], rise[0] * 12 / 10);
}

static void time_passes_as_fast_as_it_is_told(void **state)
{
	struct twin_clock clock = {0};
	uint64_t boot_ns = (twin_now_ns() / SECOND - 10) * SECOND, begin_ns;

	twin_clock_init(&clock, boot_ns, 60);
	assert_int_equal(twin_clock_at(&clock, boot_ns), boot_ns);
	assert_int_equal(twin_clock_at(&clock, boot_ns + SECOND), boot_ns + 60 * SECOND);
	assert_int_equal(twin_clock_boot(&clock, boot_ns + 60 * SECOND, boot_ns + 2 * SECOND),
			 boot_ns + SECOND);
	assert_true(twin_clock_announce(&clock, 0, 5 * SECOND));
	assert_false(twin_clock_announce(&clock, 7, 0)); /* that one has not begun */
	assert_int_equal(twin_clock_speed(&clock), 0);
	begin_ns = clock.stretch[2].boot_ns;
	assert_int_equal(twin_clock_at(&clock, begin_ns - 1),
			 boot_ns + (begin_ns - 1 - boot_ns) * 60);
	assert_int_equal(twin_clock_at(&clock, begin_ns),
			 boot_ns + (begin_ns - boot_ns) * 60 + 5 * SECOND);
	assert_int_equal(twin_clock_at(&clock, begin_ns + SECOND), twin_clock_at(&clock, begin_ns));
	/* what was jumped over, and what is since, was when it jumped */
	assert_int_equal(
		twin_clock_boot(&clock, twin_clock_at(&clock, begin_ns) - 1, begin_ns + SECOND),
		begin_ns);
	assert_int_equal(
		twin_clock_boot(&clock, twin_clock_at(&clock, begin_ns), begin_ns + SECOND),
		begin_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_planned_fault_comes_at_its_moment),
		cmocka_unit_test(a_plan_has_an_end_and_can_be_forgotten),
		cmocka_unit_test(a_plan_outlives_what_it_brings),
		cmocka_unit_test(looking_does_not_change_what_comes),
		cmocka_unit_test(a_board_without_cooling_switches_itself_off),
		cmocka_unit_test(half_the_cooling_is_enough_at_rest),
		cmocka_unit_test(a_stuck_fan_is_read_as_that_and_slows_the_board),
		cmocka_unit_test(less_air_does_not_warm_faster_at_first),
		cmocka_unit_test(time_passes_as_fast_as_it_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
