/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of a governed job: what is told comes out as it went in, and what any GPU or the job
 * did not tell is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/timetypes.h"
#include "daemon/govern_epoch.h"

static const uint64_t begun_ns = 100 * TAKT_NS_PER_S;
static const uint64_t end_ns = 102 * TAKT_NS_PER_S;

static const struct takt_gpu_facts board; /* lists nothing */

static struct takt_gpu_reading reading(uint64_t seq, uint64_t ms, uint32_t has)
{
	return (struct takt_gpu_reading){
		.seq = seq,
		.at = {begun_ns + ms * TAKT_NS_PER_MS},
		.has = has,
		.sm_mhz = 1000,
		.mem_mhz = 2000,
		.power_mw = 300000,
		.gpu_util_pct = 80,
		.mem_util_pct = 30,
		.energy_mj = 5000000 + ms * 200, /* 200 W */
		.energy_at = {begun_ns + ms * TAKT_NS_PER_MS},
		.throttle = 0x4,
		.temp_c = 50 + (int32_t)seq,
	};
}

static const uint32_t all = TAKT_HAS_SM_CLOCK | TAKT_HAS_MEM_CLOCK | TAKT_HAS_POWER |
			    TAKT_HAS_GPU_UTIL | TAKT_HAS_MEM_UTIL | TAKT_HAS_ENERGY |
			    TAKT_HAS_THROTTLE | TAKT_HAS_TEMP;

/* Two GPUs, ten samples each over 1.8 s; the second has only so much. */
static void fill(struct takt_epoch *epoch, uint32_t second_has)
{
	memset(epoch, 0, sizeof(*epoch));
	takt_epoch_begin(epoch, 2, begun_ns);
	for (uint64_t i = 1; i <= 10; i++) {
		struct takt_gpu_reading one = reading(i, 200 * (i - 1), all);
		struct takt_gpu_reading two = reading(i, 200 * (i - 1), second_has);

		two.sm_mhz = 900;
		two.throttle = 0x20;
		takt_epoch_sample(epoch, 0, &board, &one);
		takt_epoch_sample(epoch, 0, &board, &one); /* the same one does not count twice */
		takt_epoch_sample(epoch, 1, &board, &two);
	}
}

static void say_of(struct takt_epoch *epoch, uint32_t rank, uint64_t ms, uint64_t steps)
{
	struct takt_progress_said said = {.count = rank + 1};

	for (uint32_t i = 0; i < rank; i++)
		said.rank[i] = epoch->rank[i].last; /* what they said before */
	said.rank[rank] =
		(struct takt_progress_file){.has = TAKT_PROGRESS_STEPS | TAKT_PROGRESS_LATENCY,
					    .steps = steps,
					    .latency_us = 700 + 100 * rank,
					    .at_ns = begun_ns + ms * TAKT_NS_PER_MS};
	takt_epoch_progress(epoch, &said);
}

static void say(struct takt_epoch *epoch, uint64_t ms, uint64_t steps)
{
	say_of(epoch, 0, ms, steps);
}

static struct takt_governor_observation observe_by(const struct takt_epoch *epoch,
						   struct takt_epoch_basis basis)
{
	struct takt_governor_observation seen;

	takt_epoch_observe(epoch, &basis, begun_ns + 2 * TAKT_NS_PER_S, &seen);
	return seen;
}

static struct takt_governor_observation observe(const struct takt_epoch *epoch, uint32_t unit)
{
	return observe_by(epoch, (struct takt_epoch_basis){.signal = unit ? TAKT_SIGNAL_JOB
									  : TAKT_SIGNAL_UTILISATION,
							   .unit = unit,
							   .highest_mhz = 2000});
}

static void all_that_is_told_comes_out(void **state)
{
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;

	fill(&epoch, all);
	say(&epoch, 100, 50);
	say(&epoch, 1900, 86);
	assert_true(takt_epoch_has_rate(&epoch, TAKT_PROGRESS_STEPS, begun_ns + 2000000000));
	seen = observe(&epoch, TAKT_PROGRESS_STEPS);
	assert_int_equal(seen.epoch_ns, 2 * TAKT_NS_PER_S);
	assert_int_equal(seen.has, TAKT_OBSERVED_WORK | TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER |
					   TAKT_OBSERVED_SM_CLOCK | TAKT_OBSERVED_MEM_CLOCK |
					   TAKT_OBSERVED_GPU_UTIL | TAKT_OBSERVED_MEM_UTIL |
					   TAKT_OBSERVED_TEMP | TAKT_OBSERVED_THROTTLE |
					   TAKT_OBSERVED_LATENCY);
	assert_int_equal(seen.signal, TAKT_SIGNAL_JOB);
	assert_true(seen.work > 39.99 && seen.work < 40.01); /* 20 a second */
	assert_int_equal(seen.power_mw, 200000);	     /* as counted, not as sampled */
	assert_int_equal(seen.energy_mj, 400000);
	assert_int_equal(seen.sm_mhz, 950);
	assert_int_equal(seen.gpu_util_permille, 800);
	assert_int_equal(seen.mem_util_permille, 300);
	assert_int_equal(seen.throttle, 0x24);
	assert_int_equal(seen.temp_c, 60);
	assert_int_equal(seen.latency_us, 700);
	assert_false(seen.idle);
}

/* A counter that was read once a second only, the first time before the epoch. */
static void energy_is_counted_between_two_readings_of_the_counter(void **state)
{
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;

	memset(&epoch, 0, sizeof(epoch));
	takt_epoch_begin(&epoch, 1, begun_ns);
	for (uint64_t i = 1; i <= 20; i++) {
		struct takt_gpu_reading one = reading(i, 100 * (i - 1), all);
		uint64_t read_ms = i < 4 ? 0 : i < 14 ? 300 : 1300;

		one.energy_at.ns = i < 4 ? begun_ns - 1 : begun_ns + read_ms * TAKT_NS_PER_MS;
		one.energy_mj =
			5000000 + (i < 14 ? read_ms * 1000 : 300000 + (read_ms - 300) * 150);
		takt_epoch_sample(&epoch, 0, &board, &one);
	}
	seen = observe(&epoch, 0);
	assert_true(seen.has & TAKT_OBSERVED_ENERGY);
	assert_int_equal(seen.power_mw, 150000); /* of the second that it says something of */
	assert_int_equal(seen.energy_mj, 300000);
}

static void what_one_gpu_does_not_tell_is_left_out(void **state)
{
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;

	fill(&epoch, TAKT_HAS_POWER | TAKT_HAS_SM_CLOCK);
	seen = observe(&epoch, 0);
	assert_int_equal(seen.has, TAKT_OBSERVED_POWER | TAKT_OBSERVED_SM_CLOCK);
	assert_int_equal(seen.power_mw, 300000);
	assert_int_equal(seen.energy_mj, 0);
	assert_int_equal(seen.gpu_util_permille, 0);
	assert_false(seen.idle); /* nobody says so */
	fill(&epoch, 0);
	assert_int_equal(observe(&epoch, 0).has, 0);
	takt_epoch_begin(&epoch, 2, begun_ns);
	assert_int_equal(observe(&epoch, 0).has, 0);
}

static void one_without_words_is_judged_by_utilisation(void **state)
{
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;

	fill(&epoch, all);
	seen = observe(&epoch, 0);
	assert_int_equal(seen.signal, TAKT_SIGNAL_UTILISATION);
	/* 80 % busy at 1000 and 900 of 2000 MHz for 2 s */
	assert_true(seen.work > 0.759 && seen.work < 0.761);
	seen = observe_by(&epoch, (struct takt_epoch_basis){.signal = TAKT_SIGNAL_UTILISATION});
	assert_false(seen.has & TAKT_OBSERVED_WORK);
	seen = observe_by(&epoch, (struct takt_epoch_basis){.highest_mhz = 2000, .shared = true});
	assert_false(seen.has & TAKT_OBSERVED_WORK);
}

#define PART(name) (1u << TAKT_ACTIVE_##name)

static const uint32_t told = PART(SM) | PART(DRAM) | PART(TENSOR) | PART(FP32);

/* A board at that clock whose slow part is read every 400 ms, from 100 ms before the epoch on, and
 * tells `parts`: the first window is of before. */
static void count(struct takt_epoch *epoch, uint32_t gpu, uint32_t parts, uint32_t sm_mhz,
		  const uint32_t *ppm)
{
	for (uint64_t i = 1; i <= 11; i++) {
		struct takt_gpu_reading one = reading(i, 200 * (i - 1), all);

		one.sm_mhz = sm_mhz;
		one.slow_at.ns =
			begun_ns + (i - 1) / 2 * 400 * TAKT_NS_PER_MS - 100 * TAKT_NS_PER_MS;
		one.vitals.has = parts * TAKT_VITAL_ACTIVE;
		memcpy(one.vitals.active_ppm, ppm, sizeof(one.vitals.active_ppm));
		if (i <= 4) /* of before the epoch, in part: nothing of it may be seen */
			one.vitals.active_ppm[TAKT_ACTIVE_DRAM] = 1000000;
		takt_epoch_sample(epoch, gpu, &board, &one);
	}
}

static void begin(struct takt_epoch *epoch, uint32_t gpus)
{
	memset(epoch, 0, sizeof(*epoch));
	takt_epoch_begin(epoch, gpus, begun_ns);
}

static struct takt_governor_observation counted(const struct takt_epoch *epoch, uint32_t parts)
{
	return observe_by(epoch, (struct takt_epoch_basis){.signal = TAKT_SIGNAL_COUNTERS,
							   .parts = parts,
							   .highest_mhz = 2000});
}

static void counters_say_what_work_was_done(void **state)
{
	static const uint32_t ppm[TAKT_ACTIVE_COUNT] = {[TAKT_ACTIVE_SM] = 990000,
							[TAKT_ACTIVE_DRAM] = 600000,
							[TAKT_ACTIVE_TENSOR] = 100000,
							[TAKT_ACTIVE_FP32] = 50000};
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;
	uint32_t parts;

	begin(&epoch, 1);
	assert_false(takt_epoch_has_counters(&epoch));
	count(&epoch, 0, told, 1000, ppm);
	assert_true(takt_epoch_has_counters(&epoch));
	parts = takt_epoch_parts(&epoch, end_ns);
	assert_int_equal(parts, told & ~PART(SM)); /* warps that are there do no work yet */
	assert_true(takt_epoch_parts_work(&epoch, parts));
	seen = counted(&epoch, parts);
	assert_int_equal(seen.signal, TAKT_SIGNAL_COUNTERS);
	/* 0.6 + 8 * 0.15 at half of the highest clock, for 2 s */
	assert_true(seen.work > 2.399 && seen.work < 2.401);
	assert_int_equal(seen.dram_active_permille, 600);
	assert_int_equal(seen.sm_active_permille, 990);
	assert_int_equal(seen.tensor_active_permille, 100);
}

/* A job that waits for memory moves as many bytes at a lower clock, in pipes that work longer; one
 * that computes has its pipes as busy, and they do less. */
static void counters_tell_memory_from_computing(void **state)
{
	static const uint32_t copies[TAKT_ACTIVE_COUNT] = {[TAKT_ACTIVE_SM] = 1000000,
							   [TAKT_ACTIVE_DRAM] = 900000,
							   [TAKT_ACTIVE_FP32] = 20000};
	static const uint32_t copies_low[TAKT_ACTIVE_COUNT] = {[TAKT_ACTIVE_SM] = 1000000,
							       [TAKT_ACTIVE_DRAM] = 900000,
							       [TAKT_ACTIVE_FP32] = 40000};
	static const uint32_t sums[TAKT_ACTIVE_COUNT] = {
		[TAKT_ACTIVE_SM] = 1000000, [TAKT_ACTIVE_TENSOR] = 900000};
	static const struct {
		const uint32_t *high, *low;
		double slower;
	} rows[] = {{copies, copies_low, 1}, {sums, sums, 2}};
	static struct takt_epoch epoch;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		double high, low;

		begin(&epoch, 1);
		count(&epoch, 0, told, 2000, rows[i].high);
		high = counted(&epoch, told & ~PART(SM)).work;
		begin(&epoch, 1);
		count(&epoch, 0, told, 1000, rows[i].low);
		low = counted(&epoch, told & ~PART(SM)).work;
		assert_true(high / low > 0.999 * rows[i].slower);
		assert_true(high / low < 1.001 * rows[i].slower);
	}
}

static void what_counters_do_not_tell_is_left_out(void **state)
{
	static const uint32_t ppm[TAKT_ACTIVE_COUNT] = {[TAKT_ACTIVE_DRAM] = 600000};
	static const uint32_t still[TAKT_ACTIVE_COUNT] = {
		[TAKT_ACTIVE_SM] = 990000, [TAKT_ACTIVE_DRAM] = 4000};
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;

	/* The second GPU has none: nothing of both. */
	begin(&epoch, 2);
	count(&epoch, 0, told, 1000, ppm);
	count(&epoch, 1, 0, 1000, ppm);
	assert_false(takt_epoch_has_counters(&epoch));
	assert_int_equal(takt_epoch_parts(&epoch, end_ns), 0);
	seen = counted(&epoch, told & ~PART(SM));
	assert_false(seen.has & (TAKT_OBSERVED_WORK | TAKT_OBSERVED_DRAM | TAKT_OBSERVED_SM));
	/* One part of the sum is gone: another sum would be another unit. */
	begin(&epoch, 1);
	count(&epoch, 0, told & ~PART(FP32), 1000, ppm);
	seen = counted(&epoch, told & ~PART(SM));
	assert_false(seen.has & TAKT_OBSERVED_WORK);
	assert_true(seen.has & TAKT_OBSERVED_DRAM);
	/* Memory alone says too little. */
	begin(&epoch, 1);
	count(&epoch, 0, PART(DRAM), 1000, ppm);
	assert_int_equal(takt_epoch_parts(&epoch, end_ns), 0);
	/* Windows over less than half of the epoch are none of it. */
	begin(&epoch, 1);
	count(&epoch, 0, told, 1000, ppm);
	assert_true(takt_epoch_parts(&epoch, end_ns) != 0);
	assert_int_equal(takt_epoch_parts(&epoch, end_ns + 2 * TAKT_NS_PER_S), 0);
	/* Warps that wait: hardly anything that could be measured. */
	begin(&epoch, 1);
	count(&epoch, 0, told, 1000, still);
	assert_false(takt_epoch_parts_work(&epoch, takt_epoch_parts(&epoch, end_ns)));
	/* On a GPU of which others use a part they are not the job's. */
	begin(&epoch, 1);
	count(&epoch, 0, told, 1000, ppm);
	seen = observe_by(&epoch, (struct takt_epoch_basis){.highest_mhz = 2000, .shared = true});
	assert_false(seen.has & (TAKT_OBSERVED_WORK | TAKT_OBSERVED_DRAM));
}

static void windows_of_before_stay_before(void **state)
{
	static const uint32_t ppm[TAKT_ACTIVE_COUNT] = {[TAKT_ACTIVE_DRAM] = 600000};
	static struct takt_epoch epoch;

	begin(&epoch, 1);
	count(&epoch, 0, told, 1000, ppm);
	/* The next epoch knows that there are counters, and has none of its own yet. */
	takt_epoch_begin(&epoch, 1, begun_ns + 3 * TAKT_NS_PER_S);
	assert_true(takt_epoch_has_counters(&epoch));
	assert_int_equal(takt_epoch_parts(&epoch, begun_ns + 4 * TAKT_NS_PER_S), 0);
}

static void words_of_before_and_of_another_run_do_not_count(void **state)
{
	static struct takt_epoch epoch;

	fill(&epoch, all);
	takt_epoch_progress(&epoch,
			    &(struct takt_progress_said){.count = 1,
							 .rank[0] = {.has = TAKT_PROGRESS_STEPS,
								     .steps = 10,
								     .at_ns = begun_ns - 1}});
	assert_false(takt_epoch_is_told(&epoch));
	say(&epoch, 100, 50);
	assert_false(takt_epoch_has_rate(&epoch, TAKT_PROGRESS_STEPS, begun_ns + 2000000000));
	assert_false(observe(&epoch, TAKT_PROGRESS_STEPS).has & TAKT_OBSERVED_WORK);
	say(&epoch, 200, 3); /* a checkpoint was loaded */
	say(&epoch, 1800, 35);
	assert_true(observe(&epoch, TAKT_PROGRESS_STEPS).work > 39.9);
	/* A rate over a small part of the epoch is none of the epoch. */
	assert_false(takt_epoch_has_rate(&epoch, TAKT_PROGRESS_STEPS, begun_ns + 9000000000));
}

static void the_slowest_rank_rules(void **state)
{
	static struct takt_epoch epoch;
	struct takt_governor_observation seen;

	fill(&epoch, all);
	say_of(&epoch, 0, 100, 50);
	assert_true(takt_epoch_is_told(&epoch));
	say_of(&epoch, 0, 1900, 86);
	say_of(&epoch, 1, 200, 30);
	/* A slow one that has not come to its next step is waited for. */
	assert_false(takt_epoch_has_rate(&epoch, TAKT_PROGRESS_STEPS, end_ns));
	assert_false(observe(&epoch, TAKT_PROGRESS_STEPS).has & TAKT_OBSERVED_WORK);
	say_of(&epoch, 1, 1800, 46);
	seen = observe(&epoch, TAKT_PROGRESS_STEPS);
	assert_true(seen.work > 19.99 && seen.work < 20.01); /* 10 a second, not 20 */
	assert_int_equal(seen.latency_us, 800);
	/* One that has ended rules no more. */
	takt_epoch_progress(
		&epoch, &(struct takt_progress_said){.count = 2, .rank[0] = epoch.rank[0].last});
	seen = observe(&epoch, TAKT_PROGRESS_STEPS);
	assert_true(seen.work > 39.99 && seen.work < 40.01);
	assert_int_equal(seen.latency_us, 700);
}

static void ranks_of_a_service_answer_together(void **state)
{
	static struct takt_epoch epoch;
	struct takt_progress_said said = {.count = 3};

	fill(&epoch, all);
	for (uint64_t ms = 0; ms <= 2000; ms += 2000) {
		for (uint32_t i = 0; i < 2; i++)
			said.rank[i] = (struct takt_progress_file){.has = TAKT_PROGRESS_QUERIES,
								   .queries = ms * (i + 1) / 10,
								   .at_ns = begun_ns +
									    ms * TAKT_NS_PER_MS};
		takt_epoch_progress(&epoch, &said);
	}
	assert_true(observe(&epoch, TAKT_PROGRESS_QUERIES).load > 299.9);
	assert_true(observe(&epoch, TAKT_PROGRESS_QUERIES).work < 200.1);
}

static void old_samples_do_not_count(void **state)
{
	static struct takt_epoch epoch;
	struct takt_gpu_reading one = reading(1, 500, all);

	memset(&epoch, 0, sizeof(epoch));
	takt_epoch_begin(&epoch, 1, begun_ns + TAKT_NS_PER_S);
	takt_epoch_sample(&epoch, 0, &board, &one);
	one = reading(2, 1500, all);
	one.stale = true;
	takt_epoch_sample(&epoch, 0, &board, &one);
	assert_int_equal(epoch.gpu[0].samples, 0);
	one = reading(3, 1500, all);
	takt_epoch_sample(&epoch, 0, &board, &one);
	assert_int_equal(epoch.gpu[0].samples, 1);
	/* One sample counts no energy. */
	assert_int_equal(observe(&epoch, 0).power_mw, 300000);
	assert_false(observe(&epoch, 0).has & TAKT_OBSERVED_ENERGY);
}

static void one_that_does_nothing_is_idle(void **state)
{
	static struct takt_epoch epoch;
	struct takt_gpu_reading one = reading(1, 500, all);

	memset(&epoch, 0, sizeof(epoch));
	takt_epoch_begin(&epoch, 1, begun_ns);
	one.gpu_util_pct = 0;
	takt_epoch_sample(&epoch, 0, &board, &one);
	assert_true(observe(&epoch, 0).idle);
}

static void counters_of_an_idle_board_are_no_work(void **state)
{
	static const uint32_t ppm[TAKT_ACTIVE_COUNT] = {[TAKT_ACTIVE_DRAM] = 2000};
	static struct takt_epoch epoch;

	begin(&epoch, 1);
	count(&epoch, 0, told, 1000, ppm);
	assert_false(counted(&epoch, told & ~PART(SM)).idle);
	epoch.gpu[0].gpu_util_pct = 0;
	assert_true(counted(&epoch, told & ~PART(SM)).idle);
}

/* An epoch of two GPUs under load over 3 s; what the second one's samples are from
 * `from_ms` on. */
static void fill_busy(struct takt_epoch *epoch, uint64_t from_ms, uint32_t mhz, uint64_t throttle)
{
	memset(epoch, 0, sizeof(*epoch));
	takt_epoch_begin(epoch, 2, begun_ns);
	for (uint64_t i = 1; i <= 16; i++) {
		uint64_t ms = 200 * (i - 1);
		struct takt_gpu_reading one = reading(i, ms, all), two = one;

		one.throttle = two.throttle = 0;
		one.sm_mhz = two.sm_mhz = ms < 400 ? 1980 : 1410; /* on its way down at first */
		if (ms >= from_ms) {
			two.sm_mhz = mhz;
			two.throttle = throttle;
		}
		takt_epoch_sample(epoch, 0, &board, &one);
		takt_epoch_sample(epoch, 1, &board, &two);
	}
}

static bool keeps(const struct takt_epoch *epoch, uint32_t max_mhz, uint32_t reach[])
{
	uint32_t which = 99, mhz;
	bool keeps = takt_epoch_keeps_to(epoch, max_mhz, reach, &which, &mhz);

	assert_int_equal(which, keeps ? 99 : 1);
	return keeps;
}

static void an_epoch_at_another_clock_is_not_of_its_setting(void **state)
{
	static struct takt_epoch epoch;
	uint32_t reach[TAKT_DEVICE_MAX_GPUS] = {0};

	fill_busy(&epoch, 0, 1410, 0);
	assert_true(keeps(&epoch, 1410, reach));
	assert_int_equal(reach[1], 1410);
	fill_busy(&epoch, 0, 705, 0);
	assert_false(keeps(&epoch, 1410, reach));
	fill_busy(&epoch, 1800, 705, 0); /* it came while the epoch went by */
	assert_false(keeps(&epoch, 1410, reach));
	fill_busy(&epoch, 0, 1980, 0); /* a lock that was lifted */
	assert_false(keeps(&epoch, 1410, reach));
	assert_int_equal(reach[1], 1410); /* is no measure of the board */
}

static void what_explains_a_clock_is_no_sign_of_anybody(void **state)
{
	static struct takt_epoch epoch;
	uint32_t reach[TAKT_DEVICE_MAX_GPUS] = {0};

	fill_busy(&epoch, 0, 1410, 0);
	assert_true(keeps(&epoch, 1410, reach));
	fill_busy(&epoch, 0, 705, TAKT_THROTTLE_SW_POWER);
	assert_true(keeps(&epoch, 1410, reach));
	fill_busy(&epoch, 0, 705, TAKT_THROTTLE_IDLE);
	assert_true(keeps(&epoch, 1410, reach));
	reach[1] = 0; /* a list that goes on above what the board does */
	fill_busy(&epoch, 0, 1600, 0);
	assert_true(keeps(&epoch, 1800, reach));
}

static void steps_go_before_tokens(void **state)
{
	struct takt_progress_file said = {.has = TAKT_PROGRESS_TOKENS | TAKT_PROGRESS_QUERIES};

	assert_int_equal(takt_epoch_unit(&said), TAKT_PROGRESS_TOKENS);
	said.has |= TAKT_PROGRESS_STEPS;
	assert_int_equal(takt_epoch_unit(&said), TAKT_PROGRESS_STEPS);
	said.has = TAKT_PROGRESS_LATENCY;
	assert_int_equal(takt_epoch_unit(&said), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_told_comes_out),
		cmocka_unit_test(energy_is_counted_between_two_readings_of_the_counter),
		cmocka_unit_test(what_one_gpu_does_not_tell_is_left_out),
		cmocka_unit_test(one_without_words_is_judged_by_utilisation),
		cmocka_unit_test(counters_say_what_work_was_done),
		cmocka_unit_test(counters_tell_memory_from_computing),
		cmocka_unit_test(what_counters_do_not_tell_is_left_out),
		cmocka_unit_test(windows_of_before_stay_before),
		cmocka_unit_test(words_of_before_and_of_another_run_do_not_count),
		cmocka_unit_test(the_slowest_rank_rules),
		cmocka_unit_test(ranks_of_a_service_answer_together),
		cmocka_unit_test(old_samples_do_not_count),
		cmocka_unit_test(one_that_does_nothing_is_idle),
		cmocka_unit_test(counters_of_an_idle_board_are_no_work),
		cmocka_unit_test(an_epoch_at_another_clock_is_not_of_its_setting),
		cmocka_unit_test(what_explains_a_clock_is_no_sign_of_anybody),
		cmocka_unit_test(steps_go_before_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
