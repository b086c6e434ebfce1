/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's power among governed jobs: what is set aside for others, who has a share, and that
 * a share grows only by what others have let go of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "clock/governor.h"
#include "daemon/govern_impl.h"

enum {
	GPUS = 4,
	LEAST_MW = 200000,
	MOST_MW = 700000,
};

/* The machine as the daemon sees it. */
static struct world {
	struct takt_gpu_facts facts[GPUS];
	struct takt_gpu_reading reading[GPUS];
	enum takt_gpu_state state[GPUS];
	uint64_t job[GPUS];
	uint32_t cap_mw[GPUS];
	struct takt_daemon daemon;
	struct takt_govern govern;
	struct takt_governed jobs[GPUS];
	size_t job_count;
	uint64_t now_ns;
} * world;

const struct takt_gpu_facts *__wrap_takt_machine_facts(const struct takt_machine *machine,
						       uint32_t gpu);
const struct takt_gpu_facts *__wrap_takt_machine_facts(const struct takt_machine *machine,
						       uint32_t gpu)
{
	(void)machine;
	return &world->facts[gpu];
}

int __wrap_takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu,
				 struct takt_mono now, const struct takt_gpu_reading **ret);
int __wrap_takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu,
				 struct takt_mono now, const struct takt_gpu_reading **ret)
{
	(void)telemetry;
	(void)now;
	*ret = &world->reading[gpu];
	return 0;
}

void __wrap_takt_leases_state(const struct takt_lease_keeper *leases, uint32_t gpu,
			      struct takt_lease_state *ret);
void __wrap_takt_leases_state(const struct takt_lease_keeper *leases, uint32_t gpu,
			      struct takt_lease_state *ret)
{
	(void)leases;
	*ret = (struct takt_lease_state){.cap_power_mw = world->cap_mw[gpu]};
}

enum takt_gpu_state __wrap_takt_queue_gpu(const struct takt_queue *queue, uint32_t gpu,
					  uint64_t *ret_job_id);
enum takt_gpu_state __wrap_takt_queue_gpu(const struct takt_queue *queue, uint32_t gpu,
					  uint64_t *ret_job_id)
{
	(void)queue;
	*ret_job_id = world->job[gpu];
	return world->state[gpu];
}

int __wrap_takt_queue_each(const struct takt_queue *queue, uint64_t after,
			   int (*each)(void *ctx, const struct takt_queue_job *job), void *ctx);
int __wrap_takt_queue_each(const struct takt_queue *queue, uint64_t after,
			   int (*each)(void *ctx, const struct takt_queue_job *job), void *ctx)
{
	(void)queue;
	(void)after;
	(void)each;
	(void)ctx;
	return 0; /* none of them gets another governor */
}

bool __wrap_takt_watch_asleep(const struct takt_daemon *daemon, uint32_t gpu);
bool __wrap_takt_watch_asleep(const struct takt_daemon *daemon, uint32_t gpu)
{
	(void)daemon;
	return world->reading[gpu].asleep;
}

static int set_up(void **state)
{
	world = takt_zalloc(sizeof(*world));
	assert_non_null(world);
	world->daemon.sys = takt_sys_real();
	world->daemon.gpu_count = GPUS;
	world->daemon.manages = true;
	world->govern.daemon = &world->daemon;
	world->govern.jobs = TAKT_MAP_U64(GPUS);
	world->now_ns = 100 * TAKT_NS_PER_S;
	for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
		world->facts[gpu] = (struct takt_gpu_facts){.has = TAKT_FACT_POWER_LIMITS,
							    .power_min_mw = LEAST_MW,
							    .power_max_mw = MOST_MW,
							    .power_default_mw = MOST_MW};
		world->reading[gpu] =
			(struct takt_gpu_reading){.has = TAKT_HAS_POWER | TAKT_HAS_POWER_ENFORCED,
						  .power_mw = 71000,
						  .power_enforced_mw = MOST_MW};
	}
	return 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i < world->job_count; i++)
		takt_free(world->jobs[i].state);
	takt_map_fini(&world->govern.jobs);
	takt_free(world);
	return 0;
}

static void set_budget(uint32_t watts)
{
	world->govern.budget.watts = world->daemon.config.power_budget_w = watts;
}

static void tick(void)
{
	world->now_ns += 2 * TAKT_NS_PER_S;
	takt_budget_tick(&world->govern, (struct takt_mono){world->now_ns});
}

/* A job that power-budget governs, on so many GPUs from there on; it measures an epoch. */
static struct takt_governed *add_job(uint32_t gpu, uint32_t gpus)
{
	struct takt_governed *one = &world->jobs[world->job_count++];

	one->job_id = world->job_count;
	one->governor = &takt_governor_power_budget;
	one->phase = TAKT_GOVERNED_MEASURING;
	one->wish.cap.sets = TAKT_ACTUATE_POWER;
	one->state = takt_zalloc(one->governor->state_bytes);
	assert_non_null(one->state);
	for (uint32_t i = 0; i < gpus; i++) {
		one->gpu[one->gpu_count++] = gpu + i;
		world->job[gpu + i] = one->job_id;
		world->state[gpu + i] = TAKT_GPU_RUNNING;
	}
	takt_budget_describe(&world->govern, one);
	assert_int_equal(takt_map_u64_put_ptr(&world->govern.jobs, one->job_id, one), 0);
	return one;
}

/* What its governor is told; 0 = nothing. */
static uint32_t told(struct takt_governed *one)
{
	struct takt_governor_observation seen = {.now_ns = world->now_ns};

	takt_budget_observe(&world->govern, one, &seen);
	one->asked_ns = world->now_ns;
	return seen.has & TAKT_OBSERVED_BUDGET ? seen.budget_mw : 0;
}

static void what_others_may_draw_is_set_aside(void **state)
{
	struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	struct takt_governed *one;

	assert_non_null(view);
	set_budget(1700);
	one = add_job(0, 1);
	world->state[1] = TAKT_GPU_RUNNING; /* somebody else's */
	world->job[1] = 99;
	world->reading[1].power_enforced_mw = 450000;
	world->daemon.watch[2].outside = true;
	tick();
	/* 450 W and 700 W are limits, 75 W is what the idle one draws. */
	assert_int_equal(told(one), 1700000 - 450000 - 700000 - 75000);
	view->gpu_count = GPUS;
	takt_govern_fill_budget(&world->govern, view);
	assert_int_equal(view->budget.watts, 1700);
	assert_string_equal(view->gpu[0].budget_for, "job 1");
	assert_int_equal(view->gpu[0].budget_mw, 475000);
	assert_string_equal(view->gpu[1].budget_for, "limit");
	assert_string_equal(view->gpu[2].budget_for, "limit");
	assert_string_equal(view->gpu[3].budget_for, "drawn");
	assert_int_equal(view->gpu[3].budget_mw, 75000);
	takt_free(view);
}

static void what_is_not_known_is_said(void **state)
{
	set_budget(2000);
	world->facts[3].has = 0;
	world->reading[3].has = 0;
	tick();
	assert_non_null(strstr(takt_govern_budget_note(&world->govern), "without GPU 3"));
	world->reading[3].has = TAKT_HAS_POWER;
	tick();
	assert_string_equal(takt_govern_budget_note(&world->govern), "");
}

static void a_sleeping_gpu_draws_nothing(void **state)
{
	set_budget(650);
	for (uint32_t gpu = 1; gpu < GPUS; gpu++)
		world->reading[gpu].asleep = true;
	tick();
	assert_int_equal(told(add_job(0, 1)), 650000);
}

static void a_share_grows_only_by_what_others_let_go_of(void **state)
{
	struct takt_governed *one, *other;
	uint32_t its;

	set_budget(900); /* 750 W beside two that idle, 675 W beside three */
	one = add_job(0, 1);
	assert_int_equal(told(one), 675000);
	other = add_job(1, 1);
	tick();
	/* The first holds 675 W still: no more than the least is there for the second. */
	assert_int_equal(told(other), LEAST_MW);
	assert_true(takt_budget_hurries(&world->govern, one));
	its = told(one);
	assert_in_range(its, LEAST_MW, 500000);
	assert_false(takt_budget_hurries(&world->govern, one));
	one->phase = TAKT_GOVERNED_ASKING; /* not in force yet */
	assert_int_equal(told(other), LEAST_MW);
	one->phase = TAKT_GOVERNED_MEASURING;
	assert_in_range(told(other), 300000, 750000 - its);
}

static void a_share_counts_only_when_it_is_in_force(void **state)
{
	struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	struct takt_governed *one, *other;
	char note[200];
	uint32_t before, its;

	assert_non_null(view);
	view->gpu_count = GPUS;
	set_budget(1150); /* 1000 W beside two that idle */
	one = add_job(0, 1);
	other = add_job(1, 1);
	its = told(one);
	(void)told(other);
	tick();
	before = told(other);
	assert_true(its + before <= 1000000 && its > LEAST_MW);
	one->phase = TAKT_GOVERNED_ASKING; /* nobody answers, or a benchmark is before it */
	one->out_ns = world->now_ns;
	takt_budget_job_note(&world->govern, one, note, sizeof(note));
	assert_string_equal(note, "");
	tick();
	assert_int_equal(told(other), before); /* it may take a moment */
	tick();
	assert_true(takt_budget_hurries(&world->govern, other));
	assert_int_equal(told(other), 1000000 - MOST_MW);
	takt_budget_job_note(&world->govern, one, note, sizeof(note));
	assert_non_null(strstr(note, "is not in force"));
	takt_govern_fill_budget(&world->govern, view);
	assert_string_equal(view->gpu[0].budget_for, "limit");
	assert_int_equal(view->gpu[0].budget_mw, MOST_MW);
	assert_string_equal(view->gpu[1].budget_for, "job 2");
	/* Lower than what it was told, it may be that any time. */
	world->reading[0].power_enforced_mw = LEAST_MW;
	tick();
	assert_int_equal(told(other), 1000000 - its);
	world->reading[0].power_enforced_mw = MOST_MW;
	one->phase = TAKT_GOVERNED_MEASURING;
	one->out_ns = 0;
	tick();
	assert_in_range(told(other), before, 1000000 - its);
	one->wish.cap.sets = 0; /* it holds, and is nothing */
	tick();
	assert_int_equal(told(other), 300000);
	takt_free(view);
}

static void who_has_no_share_is_told_nothing(void **state)
{
	struct takt_governed *one, *part, *over;
	char note[200];

	set_budget(2000);
	one = add_job(0, 1);
	part = add_job(1, 1);
	over = add_job(2, 1);
	part->shared = true;
	over->phase = TAKT_GOVERNED_OVER;
	tick();
	assert_int_equal(told(one), 2000000 - 2 * MOST_MW - 75000);
	assert_int_equal(told(part), 0);
	assert_int_equal(told(over), 0);
	takt_budget_job_note(&world->govern, part, note, sizeof(note));
	assert_non_null(strstr(note, "others use its GPUs too"));
	one->governor = &takt_governor_assured;
	assert_int_equal(told(one), 0);
}

static void all_gpus_of_a_job_have_the_same(void **state)
{
	struct takt_governed *one;

	set_budget(1275);
	one = add_job(0, 3);
	tick();
	assert_int_equal(told(one), 400000);
}

static void a_facilitys_cap_is_the_most(void **state)
{
	struct takt_governed *one;

	set_budget(3000);
	world->cap_mw[0] = 350000;
	one = add_job(0, 1);
	tick();
	assert_int_equal(told(one), 350000);
	world->cap_mw[0] = 0; /* lifted while it runs, */
	tick();
	assert_int_equal(told(one), MOST_MW);
	world->cap_mw[0] = 300000; /* and another one */
	tick();
	assert_true(takt_budget_hurries(&world->govern, one));
	assert_int_equal(told(one), 300000);
}

static void what_cannot_be_kept_is_said(void **state)
{
	struct takt_governed *one;
	char note[200];

	set_budget(1100);
	world->state[1] = TAKT_GPU_RUNNING;
	world->job[1] = 99;
	one = add_job(0, 1);
	one->setup.job.has_promise = true;
	one->setup.job.max_slowdown_permille = 30;
	tick();
	assert_string_equal(takt_govern_budget_note(&world->govern), "");
	takt_budget_job_note(&world->govern, one, note, sizeof(note));
	assert_non_null(strstr(note, "too small for what was promised"));
	world->state[2] = TAKT_GPU_RUNNING;
	world->job[2] = 99;
	tick();
	assert_non_null(strstr(takt_govern_budget_note(&world->govern), "1100 W is not kept"));
	assert_int_equal(told(one), LEAST_MW);
	set_budget(700);
	tick();
	assert_non_null(strstr(takt_govern_budget_note(&world->govern), "are 800 W"));
}

/* That a job asks for power-budget it may do without a budget, too: it runs at its limit when one
 * is set, and says its speed once a minute, perhaps. */
static void who_runs_when_a_budget_is_set_is_told_soon(void **state)
{
	struct takt_governed *one = add_job(0, 1);

	assert_int_equal(told(one), 0);
	world->daemon.config.power_budget_w = 700;
	tick();
	assert_true(takt_budget_hurries(&world->govern, one));
	assert_int_equal(told(one), 475000);
	assert_false(takt_budget_hurries(&world->govern, one));
	world->daemon.config.power_budget_w = 0;
	tick();
	assert_false(takt_budget_hurries(&world->govern, one));
	assert_int_equal(told(one), 0);
	world->daemon.config.power_budget_w = 700;
	tick();
	assert_true(takt_budget_hurries(&world->govern, one));
}

static void small_changes_are_none(void **state)
{
	struct takt_governed *one, *other;

	set_budget(725);
	one = add_job(0, 1);
	assert_int_equal(told(one), 500000);
	set_budget(730);
	tick();
	assert_int_equal(told(one), 500000);
	/* Its share falls to 490 W: by more than a fiftieth of that, near all the same. */
	world->facts[1].power_min_mw = world->facts[1].power_default_mw = 90000;
	other = add_job(1, 1);
	tick();
	assert_false(takt_budget_hurries(&world->govern, one));
	assert_int_equal(told(one), 500000);
	assert_int_equal(told(other), 90000);
	assert_int_equal(told(one), 490000); /* it must not draw more than the other leaves */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_others_may_draw_is_set_aside, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_known_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_sleeping_gpu_draws_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_share_grows_only_by_what_others_let_go_of, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_share_counts_only_when_it_is_in_force, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_has_no_share_is_told_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(all_gpus_of_a_job_have_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_facilitys_cap_is_the_most, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_kept_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_runs_when_a_budget_is_set_is_told_soon, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(small_changes_are_none, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
