/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: a replayed machine answers as the recorded one did and cannot be changed; a recording
 * that is not as it should be is refused with its line. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/device_set.h"
#include "device/recording.h"
#include "fake_machine.h"

static char path[] = "/tmp/takt-recording-XXXXXX";

static struct takt_machine *replay_of(const char *file)
{
	struct takt_machine_config config = {.source = TAKT_SOURCE_REPLAY, .replay_path = file};

	return open_with(config);
}

/* Records the fake machine, as it is now, into `path`. */
static void record(struct takt_machine *machine, struct takt_record_options options)
{
	FILE *out = fopen(path, "w");
	struct takt_err err = {0};

	assert_non_null(out);
	assert_int_equal(takt_machine_record(machine, &options, out, &err), 0);
	fclose(out);
}

static char *read_back(void)
{
	struct takt_err err;
	char *text = NULL;
	size_t len;

	assert_int_equal(
		takt_file_read(takt_sys_real(), AT_FDCWD, path, 1 << 24, &text, &len, &err), 0);
	return text;
}

static int begin(void **state)
{
	int fd;

	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	fd = mkstemp(path);
	fake_reset();
	return fd < 0 || close(fd) < 0;
}

static int end(void **state)
{
	return unlink(path);
}

static void same_facts_and_links(struct takt_machine *a, struct takt_machine *b)
{
	const struct takt_machine_info *x = takt_machine_info(a), *y = takt_machine_info(b);

	assert_int_equal(x->gpu_count, y->gpu_count);
	assert_string_equal(x->driver_version, y->driver_version);
	assert_string_equal(x->nvml_version, y->nvml_version);
	assert_int_equal(x->cuda_version, y->cuda_version);
	assert_int_equal(x->simulated, y->simulated);
	for (uint32_t g = 0; g < x->gpu_count; g++) {
		assert_memory_equal(takt_machine_facts(a, g), takt_machine_facts(b, g),
				    sizeof(struct takt_gpu_facts));
		for (uint32_t o = 0; o < x->gpu_count; o++) {
			struct takt_gpu_link l = takt_machine_link(a, g, o);
			struct takt_gpu_link k = takt_machine_link(b, g, o);

			assert_memory_equal(&l, &k, sizeof(l));
		}
	}
}

static void same_reading(struct takt_gpu_reading x, struct takt_gpu_reading y)
{
	/* Times and numbers of samples are the replay's own. */
	x.at = y.at;
	x.slow_at = y.slow_at;
	x.energy_at = y.energy_at;
	x.energy_took_ns = y.energy_took_ns;
	x.seq = y.seq;
	assert_memory_equal(&x, &y, sizeof(x));
}

static void a_replayed_machine_answers_as_the_recorded_one(void **state)
{
	static const uint8_t links[FAKE_GPUS][FAKE_GPUS] = {
		{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}};
	struct takt_machine *machine, *replay;

	fake_links(links, 3);
	fake_procs(1, 2);
	fake_call_it_a_twin();
	machine = open_fake();
	record(machine, (struct takt_record_options){0});
	replay = replay_of(path);
	assert_string_equal(takt_machine_info(replay)->source, "replay");
	assert_true(takt_machine_info(replay)->simulated);
	same_facts_and_links(machine, replay);
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		same_reading(sample_of(machine, g), sample_of(replay, g));
	takt_machine_close(replay);
	takt_machine_close(machine);
}

static void a_replayed_machine_cannot_be_changed(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_set_call call = {.op = TAKT_SET_UNLOCK_SM};
	struct takt_machine *replay;
	struct takt_err err;

	record(machine, (struct takt_record_options){0});
	replay = replay_of(path);
	assert_false(takt_machine_info(replay)->can_set);
	assert_int_equal(takt_machine_set_post(replay, 0, &call, &err), -TAKT_E_UNSUPPORTED);
	assert_false(takt_machine_set_finished(replay, 0, &err));
	takt_machine_close(replay);
	takt_machine_close(machine);
}

static void absence_and_loss_are_recorded(void **state)
{
	struct takt_machine *machine, *replay;
	struct takt_gpu_reading r;

	fake_answer("nvmlDeviceGetFanSpeed", NVML_ERROR_NOT_SUPPORTED);
	machine = open_fake();
	fake_lose(1, true);
	record(machine, (struct takt_record_options){0});
	replay = replay_of(path);
	r = sample_of(replay, 0);
	assert_true(r.lost);
	assert_int_equal(r.last_rc, -ENODEV);
	assert_int_equal(r.has, 0);
	r = sample_of(replay, 1);
	assert_false(r.has & TAKT_HAS_FAN);
	assert_true(r.has & TAKT_HAS_POWER);
	takt_machine_close(replay);
	takt_machine_close(machine);
}

static void an_anonymous_recording_names_nobody(void **state)
{
	struct takt_machine *machine, *replay;
	char *text;

	fake_procs(1, 2);
	fake_call_it_a_twin();
	machine = open_fake();
	record(machine, (struct takt_record_options){.anonymous = true});
	text = read_back();
	assert_null(strstr(text, takt_machine_facts(machine, 3)->uuid));
	assert_null(strstr(text, "TWIN0001"));
	assert_null(strstr(text, "proc=1000:"));
	takt_free(text);
	replay = replay_of(path);
	assert_true(takt_machine_info(replay)->simulated);
	assert_int_equal(sample_of(replay, 0).proc_count, 3);
	assert_string_equal(takt_machine_facts(replay, 1)->uuid,
			    "GPU-00000000-0000-0000-0000-000000000001");
	takt_machine_close(replay);
	takt_machine_close(machine);
}

/* Parsed alone: the nth sample of GPU 0. */
static struct takt_gpu_reading parsed(const char *text, size_t i)
{
	struct takt_recording *recording = NULL;
	struct takt_gpu_reading r = {0};
	struct takt_err err = {0};

	if (takt_recording_parse("test", text, strlen(text), &recording, &err) < 0)
		fail_msg("%s", err.msg);
	takt_recording_sample(recording, 0, i, &r);
	takt_recording_free(recording);
	return r;
}

static void samples_come_in_their_recorded_time(void **state)
{
	static const char text[] = "takt-recording 1\ngpus 1\n"
				   "sample 0 0 sm_mhz=100\n"
				   "sample 0 1500000 sm_mhz=200\n";
	FILE *out = fopen(path, "w");
	struct takt_machine *replay;
	struct takt_mono begin;

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	begin = takt_mono_now(takt_sys_real());
	replay = replay_of(path);
	for (int i = 0; i < 12000 && sample_of(replay, 0).sm_mhz == 100; i++)
		usleep(10000);
	assert_int_equal(sample_of(replay, 0).sm_mhz, 200);
	assert_true(takt_mono_elapsed_ns(takt_mono_now(takt_sys_real()), begin) >=
		    1500 * TAKT_NS_PER_MS);
	takt_machine_close(replay);
	assert_int_equal(parsed(text, 1).sm_mhz, 200);
}

static void a_gpu_without_samples_reads_as_nothing(void **state)
{
	FILE *out = fopen(path, "w");
	struct takt_machine *replay;

	assert_non_null(out);
	fputs("takt-recording 1\ngpus 1\nfact 0 name X\n", out);
	fclose(out);
	replay = replay_of(path);
	assert_int_equal(sample_of(replay, 0).has, 0);
	takt_machine_close(replay);
}

static void a_wrong_recording_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		const char *line; /* as the message names it */
		const char *says;
	} cases[] = {
		{"", "line 0", "gpus"},
		{"takt-recording 2\n", "line 1", "takt-recording 1"},
		{"takt-recording 1\n", "line 1", "gpus"},
		{"takt-recording 1\ngpus 1", "line 2", "cut off"},
		{"takt-recording 1\ngpus 65\n", "line 2", "0 to 64"},
		{"takt-recording 1\ngpus 1\ngpus 1\n", "line 3", "twice"},
		{"takt-recording 1\n\ngpus 1\n", "line 2", "expected"},
		{"takt-recording 1\nfact 0 name X\n", "line 2", "GPU"},
		{"takt-recording 1\ngpus 1\nfact 1 name X\n", "line 3", "GPU"},
		{"takt-recording 1\ngpus 1\nfact 0 name\n", "line 3", "value"},
		{"takt-recording 1\ngpus 1\nfact 0 colour red\n", "line 3", "colour"},
		{"takt-recording 1\ngpus 1\nfact 0 minor 0\nfact 0 minor 0\n", "line 4", "twice"},
		{"takt-recording 1\ngpus 1\nfact 0 minor -1\n", "line 3", "minor"},
		{"takt-recording 1\ngpus 1\nfact 0 cpus 5-3\n", "line 3", "cpus"},
		{"takt-recording 1\ngpus 1\nfact 0 sm_clocks_mhz 300 200\n", "line 3", "clocks"},
		{"takt-recording 1\ngpus 1\nfact 0 power_min_mw 1\n", "line 3", "power_max_mw"},
		{"takt-recording 1\ngpus 2\nlink 0 0 1 1\n", "line 3", "link"},
		{"takt-recording 1\ngpus 2\nlink 0 1 7 1\n", "line 3", "link"},
		{"takt-recording 1\ngpus 2\nlink 0 1 1 1\nlink 1 0 1 1\n", "line 4", "twice"},
		{"takt-recording 1\ngpus 1\nsample 0 5\nsample 0 5\n", "line 4", "rise"},
		{"takt-recording 1\ngpus 1\nsample 0 5 sm_mhz\n", "line 3", "KEY=VALUE"},
		{"takt-recording 1\ngpus 1\nsample 0 5 sm_mhz=1 sm_mhz=1\n", "line 3", "twice"},
		{"takt-recording 1\ngpus 1\nsample 0 5 sm_mhz=4294967296\n", "line 3", "sm_mhz"},
		{"takt-recording 1\ngpus 1\nsample 0 5  sm_mhz=1\n", "line 3", "space"},
		{"takt-recording 1\ngpus 1\nsample 0 5 sm_mhz=1 \n", "line 3", "space"},
		{"takt-recording 1\ngpus 1\nsample 0 5 pcie_gen=1\n", "line 3", "pcie_width"},
		{"takt-recording 1\ngpus 1\nsample 0 5 proc=1:1:x\n", "line 3", "proc="},
		{"takt-recording 1\ngpus 1\nsample 0 5 proc=2:1:c proc=1:1:c\n", "line 3",
		 "rising"},
		{"takt-recording 1\ngpus 1\nsample 0 5 proc=2:1:c noprocs=1\n", "line 3",
		 "noprocs"},
		{"takt-recording 1\ninfo cuda x\ngpus 1\n", "line 2", "info"},
		{"takt-recording 1\ninfo simulated 1\ninfo simulated 1\ngpus 1\n", "line 3",
		 "twice"},
		{"takt-recording 1\ngpus 1\nfact 0 name a\tb\n", "line 3", "control"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		struct takt_recording *recording = NULL;
		struct takt_err err = {0};
		int rc = takt_recording_parse("test", cases[i].text, strlen(cases[i].text),
					      &recording, &err);

		if (rc != -TAKT_E_CORRUPT || recording || !strstr(err.msg, cases[i].line) ||
		    !strstr(err.msg, cases[i].says))
			fail_msg("case %zu: %d '%s'", i, rc, err.msg);
	}
}

static void a_missing_recording_is_an_error(void **state)
{
	struct takt_machine_config config = {.source = TAKT_SOURCE_REPLAY,
					     .replay_path = "/nonexistent/machine"};
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	assert_int_equal(takt_machine_open(&config, &machine, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/machine"));
	config.replay_path = NULL;
	assert_int_equal(takt_machine_open(&config, &machine, &err), -EINVAL);
}

static void every_allocation_of_the_reader_may_fail(void **state)
{
	static const char text[] = "takt-recording 1\ngpus 2\nfact 0 name X\nlink 0 1 5 18\n"
				   "sample 0 5 sm_mhz=1\nsample 1 5 sm_mhz=1\n";
	int rc = -ENOMEM;
	unsigned long nth;

	for (nth = 1; rc < 0; nth++) {
		struct takt_recording *recording = NULL;
		struct takt_err err = {0};

		takt_alloc_fail_nth(nth, 0);
		rc = takt_recording_parse("test", text, strlen(text), &recording, &err);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0)
			assert_int_equal(rc, -ENOMEM);
		takt_recording_free(recording);
	}
	assert_true(nth > 5);
}

static void a_full_disk_is_an_error(void **state)
{
	struct takt_record_options options = {0};
	struct takt_machine *machine = open_fake();
	FILE *out = fopen("/dev/full", "w");
	struct takt_err err = {0};

	assert_non_null(out);
	assert_int_equal(takt_machine_record(machine, &options, out, &err), -EIO);
	fclose(out);
	takt_machine_close(machine);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_replayed_machine_answers_as_the_recorded_one),
		CASE(a_replayed_machine_cannot_be_changed),
		CASE(absence_and_loss_are_recorded),
		CASE(an_anonymous_recording_names_nobody),
		CASE(samples_come_in_their_recorded_time),
		CASE(a_gpu_without_samples_reads_as_nothing),
		CASE(a_wrong_recording_is_refused_with_its_line),
		CASE(a_missing_recording_is_an_error),
		CASE(every_allocation_of_the_reader_may_fail),
		CASE(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
