/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of real boards, as `tests/hw/run` made them (without UUIDs, serial numbers and process
 * ids): they replay, and what takt takes for granted of readings is true of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/device_set.h"
#include "device/recording.h"

static const char *folder;

static struct takt_recording *recording_of(const char *name)
{
	struct takt_recording *recording = NULL;
	struct takt_err err = {0};
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (takt_recording_read(path, &recording, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	return recording;
}

static struct takt_gpu_reading reading_of(const struct takt_recording *recording, size_t i)
{
	struct takt_gpu_reading reading;

	takt_recording_sample(recording, 0, i, &reading);
	return reading;
}

/* What the energy counter says of the power between two samples, in mW. */
static double counted_mw(const struct takt_recording *recording, size_t from, size_t to)
{
	const struct takt_recorded_sample *at = recording->samples[0].list.at;
	uint64_t mj = reading_of(recording, to).energy_mj - reading_of(recording, from).energy_mj;

	return (double)mj * 1e6 / (double)(at[to].at_us - at[from].at_us);
}

/* The mean of the power readings from there to the last. */
static double read_mw(const struct takt_recording *recording, size_t from)
{
	size_t n = recording->samples[0].list.len;
	double sum = 0;

	for (size_t i = from; i < n; i++)
		sum += reading_of(recording, i).power_mw;
	return sum / (double)(n - from);
}

static void close_to(double is, double wanted, double permille)
{
	if (is < wanted * (1 - permille / 1000) || is > wanted * (1 + permille / 1000))
		fail_msg("%g is not within %g permille of %g", is, permille, wanted);
}

static void an_h200_has_its_facts(void **state)
{
	struct takt_recording *recording = recording_of("h200-idle");
	const struct takt_gpu_facts *facts = recording->facts;

	assert_int_equal(recording->gpu_count, 1);
	assert_false(recording->info.simulated);
	assert_string_equal(facts->name, "NVIDIA H200");
	assert_int_equal(facts->memory_total_bytes >> 20, 143771);
	assert_int_equal(facts->sm_clock_count, 110);
	for (uint32_t i = 0; i < facts->sm_clock_count; i++)
		assert_int_equal(facts->sm_clocks_mhz[i], 345 + 15 * i);
	assert_int_equal(facts->mem_clock_count, 2);
	assert_int_equal(facts->mem_clocks_mhz[1], 3201);
	assert_int_equal(facts->power_default_mw, 700000);
	assert_int_equal(facts->temp_max_c, 87);
	takt_recording_free(recording);
}

static void an_h200_tells_all_but_a_fan(void **state)
{
	struct takt_recording *recording = recording_of("h200-idle");
	const uint32_t all = (TAKT_HAS_PERSISTENCE << 1) - 1;

	for (size_t i = 0; i < recording->samples[0].list.len; i++)
		assert_int_equal(reading_of(recording, i).has,
				 all & ~(uint32_t)(TAKT_HAS_FAN | TAKT_HAS_ECC));
	takt_recording_free(recording);
}

static void counter_and_reading_agree_where_power_is_steady(void **state)
{
	struct takt_recording *idle = recording_of("h200-idle");
	struct takt_recording *context = recording_of("h200-context");

	close_to(counted_mw(idle, 0, idle->samples[0].list.len - 1), read_mw(idle, 0), 2);
	close_to(counted_mw(context, 15, context->samples[0].list.len - 1), read_mw(context, 15),
		 2);
	takt_recording_free(context);
	takt_recording_free(idle);
}

/* A process had opened a context moments before, and did nothing with it. */
static void a_power_reading_is_the_mean_of_a_second(void **state)
{
	struct takt_recording *recording = recording_of("h200-context");

	close_to(counted_mw(recording, 0, 3), 125500, 10);
	close_to(reading_of(recording, 0).power_mw, 107000, 10);
	close_to(reading_of(recording, 3).power_mw, 120100, 10);
	close_to(reading_of(recording, 10).power_mw, 125500, 10);
	assert_int_equal(reading_of(recording, 0).sm_mhz, 1980);
	takt_recording_free(recording);
}

static void a_recorded_board_cannot_be_changed(void **state)
{
	struct takt_set_call call = {.op = TAKT_SET_UNLOCK_SM};
	struct takt_machine *replay = NULL;
	struct takt_err err = {0};
	char path[4096];

	snprintf(path, sizeof(path), "%s/h200-idle", folder);
	assert_int_equal(
		takt_machine_open(&(struct takt_machine_config){.source = TAKT_SOURCE_REPLAY,
								.replay_path = path},
				  &replay, &err),
		0);
	assert_false(takt_machine_info(replay)->simulated);
	assert_int_equal(takt_machine_set_post(replay, 0, &call, &err), -TAKT_E_UNSUPPORTED);
	takt_machine_close(replay);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_h200_has_its_facts),
		cmocka_unit_test(an_h200_tells_all_but_a_fan),
		cmocka_unit_test(counter_and_reading_agree_where_power_is_steady),
		cmocka_unit_test(a_power_reading_is_the_mean_of_a_second),
		cmocka_unit_test(a_recorded_board_cannot_be_changed),
	};

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
