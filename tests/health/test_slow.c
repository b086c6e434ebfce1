/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job is slow, on written-down facts: each cause is named where it is the one, nothing is
 * named on a job that its GPUs alone limit, and what cannot be told apart is UNKNOWN. Figures are
 * plausible for an H100, not measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "health/slow_gather.h"

static struct takt_slow_facts facts;
static struct takt_slow_verdict verdict;

/* Two GPUs that compute all the time; one thread each drives them. */
static int make_well(void **state)
{
	facts = (struct takt_slow_facts){.window_ns = 5 * TAKT_NS_PER_S,
					 .gpu_count = 2,
					 .host_known = true,
					 .processes = 2,
					 .threads = 40,
					 .cpu_milli = 2000,
					 .lead_milli = 1990};
	for (uint32_t i = 0; i < 2; i++)
		facts.gpu[i] = (struct takt_slow_gpu){
			.index = i,
			.has = TAKT_SLOW_UTIL | TAKT_SLOW_MEM_UTIL | TAKT_SLOW_SM_CLOCK |
			       TAKT_SLOW_SM_MAX | TAKT_SLOW_POWER | TAKT_SLOW_POWER_LIMIT |
			       TAKT_SLOW_POWER_DEFAULT | TAKT_SLOW_THROTTLE |
			       TAKT_SLOW_HELD_POLICIES | TAKT_SLOW_HELD_REASONS | TAKT_SLOW_NVLINK |
			       TAKT_SLOW_ACTIVE << TAKT_ACTIVE_GRAPHICS |
			       TAKT_SLOW_ACTIVE << TAKT_ACTIVE_SM |
			       TAKT_SLOW_ACTIVE << TAKT_ACTIVE_DRAM,
			.util = 1000,
			.mem_util = 350,
			.sm_mhz = 1900,
			.sm_max_mhz = 1980,
			.power_mw = 650000,
			.power_limit_mw = 700000,
			.power_default_mw = 700000,
			.active = {[TAKT_ACTIVE_GRAPHICS] = 990,
				   [TAKT_ACTIVE_SM] = 930,
				   [TAKT_ACTIVE_DRAM] = 280},
			.nvlink = 60,
		};
	return 0;
}

#define EACH(member, value)                                       \
	do {                                                      \
		for (uint32_t i_ = 0; i_ < facts.gpu_count; i_++) \
			facts.gpu[i_].member = (value);           \
	} while (0)

static void lack(uint32_t bits)
{
	for (uint32_t i = 0; i < facts.gpu_count; i++)
		facts.gpu[i].has &= ~bits;
}

static void explain(void)
{
	for (uint32_t i = 0; i < TAKT_SLOW_CAUSES; i++)
		print_message("# %s %s: %s\n", takt_slow_answers[verdict.row[i].answer],
			      takt_slow_causes[i], verdict.row[i].evidence);
}

static void expect(enum takt_slow_cause cause)
{
	takt_slow_judge(&facts, &verdict);
	if (!verdict.found || verdict.bottleneck != cause) {
		explain();
		fail_msg("not %s", takt_slow_causes[cause]);
	}
}

static void expect_answer(enum takt_slow_cause cause, enum takt_slow_answer answer)
{
	takt_slow_judge(&facts, &verdict);
	if (verdict.row[cause].answer != answer) {
		explain();
		fail_msg("%s is not %s", takt_slow_causes[cause], takt_slow_answers[answer]);
	}
}

static void expect_unknown(void)
{
	takt_slow_judge(&facts, &verdict);
	if (verdict.found) {
		explain();
		fail_msg("found %s", takt_slow_causes[verdict.bottleneck]);
	}
	assert_int_equal(takt_slow_exit(&verdict), 3);
}

/* Work for so much of the time. */
static void starve(uint32_t permille)
{
	EACH(util, permille);
	EACH(active[TAKT_ACTIVE_GRAPHICS], permille);
	EACH(active[TAKT_ACTIVE_SM], permille * 9 / 10);
	EACH(power_mw, 300000);
}

static void a_job_that_computes_is_limited_by_its_gpus_alone(void **state)
{
	expect(TAKT_SLOW_COMPUTE);
	assert_int_equal(takt_slow_exit(&verdict), 0);
	for (uint32_t i = 0; i < TAKT_SLOW_COMPUTE; i++)
		assert_int_equal(verdict.row[i].answer, TAKT_SLOW_NO);
	/* A board without counters of its own: by its power; where that is low nobody knows. */
	lack(TAKT_SLOW_ACTIVE << TAKT_ACTIVE_GRAPHICS | TAKT_SLOW_ACTIVE << TAKT_ACTIVE_SM |
	     TAKT_SLOW_ACTIVE << TAKT_ACTIVE_DRAM | TAKT_SLOW_HELD_REASONS);
	expect(TAKT_SLOW_COMPUTE);
	EACH(power_mw, 250000);
	expect_unknown();
	assert_int_not_equal(verdict.row[TAKT_SLOW_COMPUTE].next[0], '\0');
}

static void memory_is_told_by_its_bandwidth(void **state)
{
	EACH(active[TAKT_ACTIVE_DRAM], 850);
	expect(TAKT_SLOW_MEMORY);
	assert_int_equal(takt_slow_exit(&verdict), 0);
	EACH(active[TAKT_ACTIVE_DRAM], 450);
	expect(TAKT_SLOW_COMPUTE);
	assert_int_equal(verdict.row[TAKT_SLOW_MEMORY].answer, TAKT_SLOW_PART);
	lack(TAKT_SLOW_ACTIVE << TAKT_ACTIVE_DRAM);
	EACH(mem_util, 900);
	expect(TAKT_SLOW_MEMORY);
	lack(TAKT_SLOW_MEM_UTIL);
	expect_answer(TAKT_SLOW_MEMORY, TAKT_SLOW_UNKNOWN);
}

static void gaps_are_of_the_loaders_when_these_are_seen_at_work(void **state)
{
	starve(350);
	facts.cpu_milli = 9000;
	expect(TAKT_SLOW_DATA);
	assert_int_equal(takt_slow_exit(&verdict), 1);
	facts.cpu_milli = 2000;
	facts.io_milli = 1500;
	expect(TAKT_SLOW_DATA);
	assert_non_null(strstr(verdict.row[TAKT_SLOW_DATA].evidence, "disk"));
	/* Loaders that work while the GPUs are busy hold nothing up. */
	make_well(state);
	facts.cpu_milli = 9000;
	facts.io_milli = 1500;
	expect(TAKT_SLOW_COMPUTE);
}

/* As many threads more in the processes that drive GPUs may be those of a communication library. */
static void busy_threads_beside_the_driving_ones(void **state)
{
	starve(350);
	facts.cpu_milli = 4000;
	facts.within_milli = 2000;
	expect_unknown();
	assert_non_null(strstr(verdict.row[TAKT_SLOW_DATA].evidence, "2.0 more threads"));
	facts.gpu_count = 1; /* nobody to talk to */
	expect(TAKT_SLOW_DATA);
	facts.gpu_count = 2;
	facts.within_milli = 100;
	expect(TAKT_SLOW_DATA);
}

static void gaps_with_a_busy_driving_thread_are_launches_when_kernels_are_small(void **state)
{
	starve(550);
	EACH(active[TAKT_ACTIVE_SM], 150);
	expect(TAKT_SLOW_LAUNCH);
	EACH(active[TAKT_ACTIVE_SM], 500); /* kernels fill it: input in the main loop? */
	expect_unknown();
	assert_int_equal(verdict.row[TAKT_SLOW_DATA].answer, TAKT_SLOW_UNKNOWN);
	assert_int_equal(verdict.row[TAKT_SLOW_LAUNCH].answer, TAKT_SLOW_UNKNOWN);
	lack(TAKT_SLOW_ACTIVE << TAKT_ACTIVE_SM);
	expect_unknown();
}

static void gaps_that_nothing_on_the_machine_explains_are_unknown(void **state)
{
	starve(350);
	facts.cpu_milli = facts.lead_milli = 100;
	expect_unknown();
	assert_int_equal(verdict.row[TAKT_SLOW_LAUNCH].answer, TAKT_SLOW_NO);
	assert_non_null(strstr(verdict.row[TAKT_SLOW_DATA].evidence, "network"));
	facts.host_known = false;
	facts.cpu_milli = 9000; /* no meaning without the bit */
	expect_unknown();
}

static void small_kernels_without_gaps(void **state)
{
	facts.gpu_count = 1;
	EACH(active[TAKT_ACTIVE_SM], 250);
	expect(TAKT_SLOW_LAUNCH);
	make_well(state); /* of several: they may wait for each other */
	EACH(active[TAKT_ACTIVE_SM], 250);
	EACH(nvlink, 0);
	expect_unknown();
}

static void links_that_are_full_and_kernels_that_wait_for_them(void **state)
{
	EACH(nvlink, 550);
	expect(TAKT_SLOW_COMMUNICATION);
	EACH(nvlink, 120);
	EACH(active[TAKT_ACTIVE_SM], 250);
	expect(TAKT_SLOW_COMMUNICATION);
	EACH(active[TAKT_ACTIVE_SM], 900);
	expect(TAKT_SLOW_COMPUTE);
	assert_int_equal(verdict.row[TAKT_SLOW_COMMUNICATION].answer, TAKT_SLOW_PART);
	lack(TAKT_SLOW_NVLINK);
	expect_answer(TAKT_SLOW_COMMUNICATION, TAKT_SLOW_UNKNOWN);
	facts.gpu_count = 1;
	expect_answer(TAKT_SLOW_COMMUNICATION, TAKT_SLOW_NO);
}

static void what_nccl_says_is_cited_and_decides_nothing(void **state)
{
	struct takt_slow_row before;

	takt_slow_judge(&facts, &verdict);
	before = verdict.row[TAKT_SLOW_COMMUNICATION];
	assert_null(strstr(before.evidence, "NCCL:"));
	facts.nccl = (struct takt_slow_nccl){.known = true,
					     .operation = "AllReduce",
					     .gpu = 1,
					     .ranks = 16,
					     .nodes = 2,
					     .bus_bytes_s = 48590000000,
					     .operation_us = 9042};
	takt_slow_judge(&facts, &verdict);
	assert_int_equal(verdict.row[TAKT_SLOW_COMMUNICATION].answer, before.answer);
	assert_memory_equal(verdict.row[TAKT_SLOW_COMMUNICATION].evidence, before.evidence,
			    strlen(before.evidence));
	assert_non_null(strstr(verdict.row[TAKT_SLOW_COMMUNICATION].evidence,
			       "; NCCL: AllReduce of 16 ranks on 2 nodes at 48.5 GB/s bus "
			       "bandwidth, 9.042 ms each (GPU 1)"));
	/* However long it is. */
	memset(facts.nccl.operation, 'x', sizeof(facts.nccl.operation) - 1);
	facts.nccl.bus_bytes_s = facts.nccl.operation_us = UINT64_MAX;
	takt_slow_judge(&facts, &verdict);
	assert_true(strlen(verdict.row[TAKT_SLOW_COMMUNICATION].evidence) < TAKT_SLOW_TEXT);
}

static void what_holds_clocks_back_comes_first(void **state)
{
	facts.gpu[1].held[TAKT_HELD_SW_THERMAL] = 400;
	facts.gpu[1].sm_mhz = 1200;
	expect(TAKT_SLOW_THROTTLING);
	assert_int_equal(verdict.row[TAKT_SLOW_THROTTLING].gpus, 2);
	facts.gpu[1].held[TAKT_HELD_SW_THERMAL] = 50;
	facts.gpu[1].sm_mhz = 1900;
	expect(TAKT_SLOW_COMPUTE);
	assert_int_equal(verdict.row[TAKT_SLOW_THROTTLING].answer, TAKT_SLOW_PART);
	facts.gpu[1].held[TAKT_HELD_SW_THERMAL] = 0;
	facts.gpu[1].held[TAKT_HELD_POWER_BRAKE] = 900;
	expect(TAKT_SLOW_THROTTLING);
	lack(TAKT_SLOW_HELD_REASONS); /* a counter without its bit has no meaning */
	expect(TAKT_SLOW_COMPUTE);
	facts.gpu[1].heat = 800; /* older drivers: the readings' reasons */
	expect(TAKT_SLOW_THROTTLING);
	lack(TAKT_SLOW_THROTTLE | TAKT_SLOW_HELD_POLICIES);
	expect_answer(TAKT_SLOW_THROTTLING, TAKT_SLOW_UNKNOWN);
}

static void a_power_limit_counts_when_somebody_lowered_it(void **state)
{
	EACH(sm_mhz, 1400);
	EACH(at_limit, 1000);
	expect(TAKT_SLOW_COMPUTE); /* at its own limit, as boards are */
	EACH(power_limit_mw, 400000);
	EACH(power_mw, 399000);
	expect(TAKT_SLOW_THROTTLING);
	EACH(at_limit, 0);
	expect(TAKT_SLOW_COMPUTE);
	assert_int_equal(verdict.row[TAKT_SLOW_THROTTLING].answer, TAKT_SLOW_PART);
	assert_null(strstr(verdict.row[TAKT_SLOW_THROTTLING].evidence, "takt"));
	EACH(held_by_takt, true);
	takt_slow_judge(&facts, &verdict);
	assert_non_null(strstr(verdict.row[TAKT_SLOW_THROTTLING].evidence, "through takt"));
}

static void gpus_that_differ(void **state)
{
	facts.gpu[1].active[TAKT_ACTIVE_GRAPHICS] = 400;
	expect(TAKT_SLOW_IMBALANCE);
	assert_int_equal(verdict.row[TAKT_SLOW_IMBALANCE].gpus, 2);
	make_well(state);
	facts.gpu[0].sm_mhz = 1200;
	expect(TAKT_SLOW_IMBALANCE);
	assert_int_equal(verdict.row[TAKT_SLOW_IMBALANCE].gpus, 1);
	make_well(state);
	facts.gpu[1].power_mw = 400000; /* busy, but waiting: for GPU 0 */
	expect(TAKT_SLOW_IMBALANCE);
	assert_int_equal(verdict.row[TAKT_SLOW_IMBALANCE].gpus, 1);
	facts.gpu_count = 1;
	expect(TAKT_SLOW_COMPUTE);
}

static void nothing_is_said_of_a_share_or_without_readings(void **state)
{
	facts.gpu[0].shared = true;
	expect_unknown();
	facts.gpu[0].held[TAKT_HELD_HW_THERMAL] = 900;
	expect(TAKT_SLOW_THROTTLING); /* heat is everybody's */
	make_well(state);
	lack(UINT32_MAX);
	expect_unknown();
	for (uint32_t i = 0; i < TAKT_SLOW_CAUSES; i++)
		assert_int_equal(verdict.row[i].answer, TAKT_SLOW_UNKNOWN);
}

static void readings_become_means_and_counters_rates(void **state)
{
	static const struct takt_gpu_facts board = {.has = TAKT_FACT_SM_MAX, .sm_max_mhz = 1980};
	static struct takt_slow_watch watch;
	struct takt_gpu_reading r = {
		.has = TAKT_HAS_GPU_UTIL | TAKT_HAS_SM_CLOCK | TAKT_HAS_THROTTLE,
		.slow_at = {TAKT_NS_PER_S},
		.gpu_util_pct = 100,
		.sm_mhz = 1000,
		.throttle = TAKT_THROTTLE_SW_THERMAL,
		.vitals = {.has = TAKT_VITAL_HELD_REASONS | TAKT_VITAL_NVLINKS |
				  TAKT_VITAL_NVLINK_BYTES | TAKT_VITAL_ACTIVE << TAKT_ACTIVE_SM,
			   .nvlinks_up = 4,
			   .active_ppm = {[TAKT_ACTIVE_SM] = 1}},
	};
	struct takt_slow_gpu gpu = {0};

	takt_slow_see(&watch, &r);
	r.gpu_util_pct = 0; /* at rest its clock says nothing */
	r.sm_mhz = 345;
	r.throttle = 0;
	takt_slow_see(&watch, &r);
	r.slow_at.ns += 2 * TAKT_NS_PER_S;
	r.vitals.held_ns[TAKT_HELD_SW_THERMAL] = TAKT_NS_PER_S / 2;
	r.vitals.nvlink_received_bytes = 50000000000; /* 25 GB/s of 100 */
	r.vitals.active_ppm[TAKT_ACTIVE_SM] = 600000;
	takt_slow_see(&watch, &r);
	takt_slow_see(&watch, &r);
	takt_slow_sum_up(&watch, &board, &gpu);
	assert_int_equal(gpu.util, 250);
	assert_int_equal(gpu.sm_mhz, 1000);
	assert_int_equal(gpu.heat, 1000);
	assert_int_equal(gpu.held[TAKT_HELD_SW_THERMAL], 250);
	assert_int_equal(gpu.nvlink, 250);
	assert_int_equal(gpu.active[TAKT_ACTIVE_SM], 600);
	assert_int_equal(gpu.has & (TAKT_SLOW_HELD_POLICIES | TAKT_SLOW_POWER | TAKT_SLOW_MEM_UTIL),
			 0);
	assert_true(gpu.has & TAKT_SLOW_HELD_REASONS && gpu.has & TAKT_SLOW_NVLINK);
}

/* A child that never rests below one that sleeps. */
static void threads_are_seen_at_work(void **state)
{
	struct takt_slow_threads threads = {0};
	struct takt_slow_facts seen = {.gpu_count = 1};
	int32_t root = fork();

	if (root == 0) {
		if (fork() == 0)
			for (volatile uint64_t i = 0; getppid() != 1; i++)
				;
		pause();
		_exit(0);
	}
	while (threads.pids.len < 2)
		assert_int_equal(takt_slow_threads_find(&threads, &root, 1), 0);
	while (threads.ran == 0 || threads.looks < 20)
		assert_int_equal(takt_slow_threads_look(&threads), 0);
	assert_int_equal(takt_slow_threads_sum_up(&threads, &seen), 0);
	assert_true(seen.host_known);
	assert_int_equal(seen.processes, 2);
	assert_true(seen.cpu_milli >= seen.lead_milli && seen.lead_milli > 0);
	kill(threads.pids.at[1], SIGKILL);
	kill(root, SIGKILL);
	waitpid(root, NULL, 0);
	takt_slow_threads_fini(&threads);
}

static void processes_that_are_gone_are_not_known(void **state)
{
	struct takt_slow_threads threads = {0};
	struct takt_slow_facts seen = {.gpu_count = 1};
	int32_t gone = fork();

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(takt_slow_threads_find(&threads, &gone, 1), 0);
	assert_int_equal(takt_slow_threads_look(&threads), 0);
	assert_int_equal(takt_slow_threads_sum_up(&threads, &seen), 0);
	assert_false(seen.host_known);
	takt_slow_threads_fini(&threads);
}

static bool read_full(void *ctx, struct takt_gpu_reading *ret)
{
	*ret = (struct takt_gpu_reading){.has = TAKT_HAS_GPU_UTIL, .gpu_util_pct = 100};
	++*(uint32_t *)ctx;
	return true;
}

/* Where there is no driver the caller's readings are taken; where there is no memory it says so. */
static void without_a_driver_or_memory(void **state)
{
	uint32_t reads = 0;
	char uuid[1][96] = {"GPU-1"}, why[TAKT_ERR_MSG];
	struct takt_slow_ask ask = {.nvml_path = "/nowhere/libnvidia-ml.so.1",
				    .interval_ms = 1,
				    .window_ns = 5 * TAKT_NS_PER_MS,
				    .gpu_count = 1,
				    .uuid = uuid,
				    .root_count = 1,
				    .roots = {getpid()},
				    .read = read_full,
				    .ctx = &reads};

	assert_int_equal(takt_slow_gather(&ask, &facts, why), 0);
	assert_true(reads > 0 && why[0]);
	assert_true(facts.host_known && facts.gpu_count == 1);
	assert_int_equal(facts.gpu[0].has, TAKT_SLOW_UTIL);
	assert_int_equal(facts.gpu[0].util, 1000);
	for (unsigned long nth = 1; nth < 20; nth++) {
		int rc;

		takt_alloc_fail_nth(nth, 0);
		rc = takt_slow_gather(&ask, &facts, why);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == -ENOMEM || (rc == 0 && nth > 2));
	}
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup(f, make_well)
	const struct CMUnitTest tests[] = {
		CASE(a_job_that_computes_is_limited_by_its_gpus_alone),
		CASE(memory_is_told_by_its_bandwidth),
		CASE(gaps_are_of_the_loaders_when_these_are_seen_at_work),
		CASE(busy_threads_beside_the_driving_ones),
		CASE(gaps_with_a_busy_driving_thread_are_launches_when_kernels_are_small),
		CASE(gaps_that_nothing_on_the_machine_explains_are_unknown),
		CASE(small_kernels_without_gaps),
		CASE(links_that_are_full_and_kernels_that_wait_for_them),
		CASE(what_nccl_says_is_cited_and_decides_nothing),
		CASE(what_holds_clocks_back_comes_first),
		CASE(a_power_limit_counts_when_somebody_lowered_it),
		CASE(gpus_that_differ),
		CASE(nothing_is_said_of_a_share_or_without_readings),
		CASE(readings_become_means_and_counters_rates),
		CASE(threads_are_seen_at_work),
		CASE(processes_that_are_gone_are_not_known),
		CASE(without_a_driver_or_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
