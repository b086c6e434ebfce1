/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs say of themselves: written with the installed header and read with suspicion, whatever
 * lies there instead; rates, silence, counters that go back, and a writer that is caught writing.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/mem.h"
#include "telemetry/progress_ranks.h"

static char folder[] = "/tmp/takt-progress-XXXXXX";
static int dirfd_;
static char path[64];

static int set_up(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	dirfd_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/progress", folder);
	return dirfd_ < 0 || setenv("TAKT_PROGRESS", path, 1) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	close(dirfd_);
	return rmdir(folder);
}

static int clean(void **state)
{
	(void)chmod(path, 0600);
	(void)unlink(path);
	return 0;
}

static int read_as(const char *name, uid_t owner, struct takt_progress_file *ret)
{
	struct takt_progress_said said;
	int rc = takt_progress_read(dirfd_, name, owner, &said);

	if (rc == 0)
		*ret = said.rank[0];
	return rc;
}

static int read_it(struct takt_progress_file *ret)
{
	return read_as("progress", geteuid(), ret);
}

static void test_what_is_told_is_read(void **state)
{
	struct takt_progress progress;
	struct takt_progress_file sample;
	struct stat st;
	uint64_t before = takt_progress_now_ns();

	umask(077);
	assert_int_equal(read_it(&sample), -ENOENT);
	assert_int_equal(takt_progress_open(&progress), 0);
	assert_int_equal(read_it(&sample), 0);
	assert_int_equal(sample.has, 0);
	takt_progress_add(&progress, 3, 0, 0);
	takt_progress_add(&progress, 1, 200, 0);
	takt_progress_latency(&progress, 1500);
	assert_int_equal(read_it(&sample), 0);
	assert_int_equal(sample.has,
			 TAKT_PROGRESS_STEPS | TAKT_PROGRESS_TOKENS | TAKT_PROGRESS_LATENCY);
	assert_int_equal(sample.steps, 4);
	assert_int_equal(sample.tokens, 200);
	assert_int_equal(sample.latency_us, 1500);
	assert_true(sample.at_ns >= before && sample.at_ns <= takt_progress_now_ns());
	/* The daemon reads it as the folder's group. */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	takt_progress_close(&progress);
	/* Another process of the job goes on from there. */
	assert_int_equal(takt_progress_open(&progress), 0);
	takt_progress_add(&progress, 1, 0, 0);
	takt_progress_close(&progress);
	assert_int_equal(read_it(&sample), 0);
	assert_int_equal(sample.steps, 5);
}

static void test_nobody_asks(void **state)
{
	struct takt_progress progress;

	unsetenv("TAKT_PROGRESS");
	assert_int_equal(takt_progress_open(&progress), -ENOENT);
	takt_progress_add(&progress, 1, 1, 1);
	takt_progress_latency(&progress, 1);
	takt_progress_close(&progress);
	setenv("TAKT_PROGRESS", path, 1);
}

static void put(const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

static struct takt_progress_file sound(uint64_t at_ns, uint64_t steps)
{
	struct takt_progress_file file = {
		.has = TAKT_PROGRESS_STEPS, .steps = steps, .at_ns = at_ns};

	memcpy(file.magic, TAKT_PROGRESS_MAGIC, sizeof(file.magic));
	return file;
}

static void test_what_is_no_such_file_is_refused(void **state)
{
	struct takt_progress_file file = sound(1, 1), sample;
	char longer[sizeof(file) + 1] = {0};

	put(&file, sizeof(file));
	assert_int_equal(read_it(&sample), 0);
	assert_int_equal(read_as("progress", geteuid() + 1, &sample), -TAKT_E_CORRUPT);
	put(&file, sizeof(file) - 1);
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	put("", 0);
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	put(longer, sizeof(longer));
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	file.magic[7] = '2';
	put(&file, sizeof(file));
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
}

/* A pipe that nobody writes to would wait for ever; a link may lead anywhere. */
static void test_no_pipe_no_link_no_folder(void **state)
{
	struct takt_progress_file sample;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(read_as("../etc/passwd", geteuid(), &sample), -TAKT_E_CORRUPT);
}

/* The owner holds a lease: opening would wait for him. */
static void test_a_lease_does_not_hold_us_up(void **state)
{
	struct takt_progress_file file = sound(1, 1), sample;
	int fd;

	put(&file, sizeof(file));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
		close(fd);
		return; /* not every file system has leases: nothing to be held up by */
	}
	(void)signal(SIGIO, SIG_IGN);
	assert_int_equal(read_it(&sample), -TAKT_E_CORRUPT);
	close(fd);
}

static void test_half_written_is_not_taken(void **state)
{
	struct takt_progress_file file = sound(1, 1), sample;

	file.sequence = 7;
	put(&file, sizeof(file));
	assert_int_equal(read_it(&sample), -EAGAIN);
}

static void write_without_end(struct takt_progress *progress)
{
	for (uint64_t i = 1;; i++) {
		takt_progress_add(progress, 1, 1, 1);
		if (i % 64 == 0)
			usleep(10);
	}
}

/* A writer in full flight: what is read is never half of one and half of the next. */
static void test_a_reader_sees_no_mixture(void **state)
{
	struct takt_progress_file sample;
	struct takt_progress progress;
	int status, taken = 0;
	pid_t writer;

	assert_int_equal(takt_progress_open(&progress), 0);
	writer = fork();
	if (writer == 0)
		write_without_end(&progress);
	for (int i = 0; i < 20000 && taken < 200; i++) {
		if (read_it(&sample) < 0)
			continue;
		taken++;
		assert_int_equal(sample.steps, sample.tokens);
		assert_int_equal(sample.steps, sample.queries);
	}
	assert_int_equal(kill(writer, SIGKILL), 0);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_true(taken > 0);
	takt_progress_close(&progress);
}

#define S TAKT_NS_PER_S

static struct takt_mono at(uint64_t s)
{
	return (struct takt_mono){s * S};
}

static void feed(struct takt_progress_track *track, uint64_t s, uint64_t steps)
{
	struct takt_progress_file file = sound(s * S, steps);

	assert_true(takt_progress_feed(track, &file, at(s)));
}

static void test_rates(void **state)
{
	struct takt_progress_track track = {.count = 0};
	struct takt_progress_rates rates;

	assert_false(takt_progress_rates(&track, at(1), &rates));
	feed(&track, 100, 10);
	assert_true(takt_progress_rates(&track, at(100), &rates));
	assert_int_equal(rates.steps, 10);
	assert_int_equal(rates.rated, 0); /* one word is no rate */
	for (uint64_t s = 1; s <= 200; s++) {
		feed(&track, 100 + s, 10 + 5 * s);
		assert_true(takt_progress_rates(&track, at(100 + s), &rates));
		assert_int_equal(rates.rated, TAKT_PROGRESS_STEPS);
		assert_int_equal(rates.steps_milli_s, 5000);
	}
	assert_int_equal(rates.samples, TAKT_PROGRESS_KEPT);
	/* Told again and again without news: the rate stays that of the last word. */
	feed(&track, 300, 10 + 5 * 200);
	assert_true(takt_progress_rates(&track, at(310), &rates));
	assert_int_equal(rates.steps_milli_s, 5000);
	assert_int_equal(rates.age_ms, 10000);
}

static void test_silence_has_no_rate(void **state)
{
	struct takt_progress_track track = {.count = 0};
	struct takt_progress_rates rates;

	feed(&track, 10, 1);
	feed(&track, 11, 2);
	assert_true(takt_progress_rates(&track, at(71), &rates));
	assert_int_equal(rates.rated, TAKT_PROGRESS_STEPS);
	assert_true(takt_progress_rates(&track, at(72), &rates));
	assert_int_equal(rates.rated, 0);
	assert_int_equal(rates.steps, 2);
}

static void test_going_back_begins_anew(void **state)
{
	struct takt_progress_track track = {.count = 0};
	struct takt_progress_rates rates;

	feed(&track, 10, 100);
	feed(&track, 20, 200);
	feed(&track, 30, 0);
	assert_true(takt_progress_rates(&track, at(30), &rates));
	assert_int_equal(rates.rated, 0);
	feed(&track, 40, 20);
	assert_true(takt_progress_rates(&track, at(40), &rates));
	assert_int_equal(rates.steps_milli_s, 2000);
}

static void test_lies_do_no_harm(void **state)
{
	struct takt_progress_file file = sound(1000 * S, 5);
	struct takt_progress_track track = {.count = 0};
	struct takt_progress_rates rates;

	assert_false(takt_progress_feed(&track, &file, at(10))); /* from the future */
	file.has = 0;
	assert_false(takt_progress_feed(&track, &file, at(2000)));
	feed(&track, 10, 0);
	file = sound(10 * S + 1, UINT64_MAX);
	file.has = UINT32_MAX;
	assert_true(takt_progress_feed(&track, &file, at(11)));
	assert_true(takt_progress_rates(&track, at(11), &rates));
	assert_int_equal(rates.steps_milli_s, UINT64_MAX);
	assert_int_equal(rates.has, 15);
	assert_int_equal(rates.rated, TAKT_PROGRESS_STEPS);
}

static void tell_as(const char *rank, uint64_t steps)
{
	struct takt_progress progress;

	assert_int_equal(setenv("RANK", rank, 1), 0);
	assert_int_equal(takt_progress_open(&progress), 0);
	takt_progress_add(&progress, steps, 0, 0);
	takt_progress_close(&progress);
	assert_int_equal(unsetenv("RANK"), 0);
}

static int read_all(struct takt_progress_said *ret)
{
	return takt_progress_read(dirfd_, "progress", geteuid(), ret);
}

/* In any order: none cuts off another. */
static void test_each_rank_has_a_place(void **state)
{
	struct takt_progress progress;
	struct takt_progress_said said;

	tell_as("3", 30);
	tell_as("0", 10);
	tell_as("1", 20);
	tell_as("0", 1);
	assert_int_equal(read_all(&said), 0);
	assert_int_equal(said.count, 4);
	assert_int_equal(said.rank[0].steps, 11);
	assert_int_equal(said.rank[1].steps, 20);
	assert_int_equal(said.rank[2].has, 0);
	assert_int_equal(said.rank[3].steps, 30);
	/* On this machine it is the local one that counts. */
	assert_int_equal(setenv("LOCAL_RANK", "1", 1), 0);
	tell_as("9", 5);
	assert_int_equal(unsetenv("LOCAL_RANK"), 0);
	assert_int_equal(read_all(&said), 0);
	assert_int_equal(said.rank[1].steps, 25);
	tell_as("63", 1);
	assert_int_equal(read_all(&said), 0);
	assert_int_equal(said.count, TAKT_PROGRESS_MAX_RANKS);
	assert_int_equal(setenv("RANK", "64", 1), 0);
	assert_int_equal(takt_progress_open(&progress), -ERANGE);
	takt_progress_add(&progress, 1, 0, 0);
	assert_int_equal(setenv("RANK", "-1", 1), 0);
	assert_int_equal(takt_progress_open(&progress), -ERANGE);
	assert_int_equal(unsetenv("RANK"), 0);
}

static void test_one_rank_spoils_only_its_own(void **state)
{
	struct takt_progress_file files[3] = {sound(1, 10), sound(1, 20), sound(1, 30)};
	struct takt_progress_said said;

	files[0].sequence = 1;
	files[1].magic[0] = 'x';
	put(files, sizeof(files));
	assert_int_equal(read_all(&said), 0);
	assert_int_equal(said.rank[0].has, 0);
	assert_int_equal(said.rank[1].has, 0);
	assert_int_equal(said.rank[2].steps, 30);
	files[2].sequence = 1;
	put(files, sizeof(files));
	assert_int_equal(read_all(&said), -EAGAIN);
	files[0].sequence = files[2].sequence = 2;
	files[0].magic[0] = files[2].magic[0] = 'x';
	put(files, sizeof(files));
	assert_int_equal(read_all(&said), -TAKT_E_CORRUPT);
}

/* Three ranks: 10, 8 and 9 steps a second. */
static struct takt_progress_said of_three(uint64_t s, uint64_t latency_us)
{
	struct takt_progress_said said = {
		.count = 3,
		.rank = {sound(s * S, 10 * s), sound(s * S, 8 * s), sound(s * S, 9 * s)}};

	for (uint32_t i = 0; i < 3 && latency_us; i++) {
		said.rank[i].has |= TAKT_PROGRESS_LATENCY;
		said.rank[i].latency_us = latency_us * (i + 2);
	}
	return said;
}

static void test_a_job_is_as_fast_as_its_slowest_rank(void **state)
{
	struct takt_progress_ranks ranks = {.count = 0};
	struct takt_progress_rates rates;

	assert_false(takt_progress_ranks_rates(&ranks, at(1), &rates));
	for (uint64_t s = 10; s <= 30; s++) {
		struct takt_progress_said said = of_three(s, 0);

		assert_true(takt_progress_ranks_feed(&ranks, &said, at(s)));
		assert_true(takt_progress_ranks_rates(&ranks, at(s), &rates));
		assert_int_equal(rates.steps, 8 * s);
		assert_int_equal(rates.skewed, s > 10);
	}
	assert_int_equal(rates.rated, TAKT_PROGRESS_STEPS);
	assert_int_equal(rates.steps_milli_s, 8000);
	assert_int_equal(rates.ranks, 3);
	assert_int_equal(rates.slowest, 1);
	assert_int_equal(rates.skew_permille, 200);
	takt_progress_ranks_fini(&ranks);
}

/* Ranks that wait for each other say what their own part of a step takes. */
static void test_latencies_tell_the_skew(void **state)
{
	struct takt_progress_ranks ranks = {.count = 0};
	struct takt_progress_said said = of_three(10, 1000);
	struct takt_progress_rates rates;

	assert_true(takt_progress_ranks_feed(&ranks, &said, at(10)));
	assert_true(takt_progress_ranks_rates(&ranks, at(10), &rates));
	assert_true(rates.skewed);
	assert_int_equal(rates.slowest, 2);
	assert_int_equal(rates.skew_permille, 500); /* 2 ms and 4 ms */
	assert_int_equal(rates.latency_us, 4000);
	takt_progress_ranks_fini(&ranks);
}

static void test_a_rank_that_has_ended_rules_no_more(void **state)
{
	struct takt_progress_said said = of_three(10, 0);
	struct takt_progress_ranks ranks = {.count = 0};
	struct takt_progress_file slowest;
	struct takt_progress_rates rates;

	assert_true(takt_progress_ranks_feed(&ranks, &said, at(10)));
	said.rank[0] = sound(70 * S, 700);
	said.rank[2] = sound(70 * S, 630);
	assert_true(takt_progress_ranks_feed(&ranks, &said, at(70)));
	assert_true(takt_progress_ranks_rates(&ranks, at(70), &rates));
	assert_int_equal(rates.steps, 80);
	said.rank[0] = sound(71 * S, 710);
	assert_true(takt_progress_ranks_feed(&ranks, &said, at(71)));
	assert_true(takt_progress_ranks_rates(&ranks, at(71), &rates));
	assert_int_equal(rates.steps, 630);
	assert_int_equal(rates.ranks, 2);
	said.rank[2].at_ns = 100 * S; /* it lies: that is yet to come */
	takt_progress_living(&said, at(71));
	assert_true(takt_progress_slowest(&said, &slowest));
	assert_int_equal(slowest.steps, 710);
	assert_int_equal(slowest.at_ns, 71 * S);
	takt_progress_ranks_fini(&ranks);
}

static void test_no_memory_takes_nothing(void **state)
{
	struct takt_progress_ranks ranks = {.count = 0};
	struct takt_progress_said said = of_three(10, 0);
	struct takt_progress_rates rates;

	takt_alloc_fail_nth(1, 0);
	assert_false(takt_progress_ranks_feed(&ranks, &said, at(10)));
	takt_alloc_fail_nth(0, 0);
	assert_false(takt_progress_ranks_rates(&ranks, at(10), &rates));
	assert_true(takt_progress_ranks_feed(&ranks, &said, at(10)));
	takt_progress_ranks_fini(&ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_what_is_told_is_read, clean),
		cmocka_unit_test(test_nobody_asks),
		cmocka_unit_test_teardown(test_what_is_no_such_file_is_refused, clean),
		cmocka_unit_test_teardown(test_no_pipe_no_link_no_folder, clean),
		cmocka_unit_test_teardown(test_a_lease_does_not_hold_us_up, clean),
		cmocka_unit_test_teardown(test_half_written_is_not_taken, clean),
		cmocka_unit_test_teardown(test_a_reader_sees_no_mixture, clean),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_silence_has_no_rate),
		cmocka_unit_test(test_going_back_begins_anew),
		cmocka_unit_test(test_lies_do_no_harm),
		cmocka_unit_test_teardown(test_each_rank_has_a_place, clean),
		cmocka_unit_test_teardown(test_one_rank_spoils_only_its_own, clean),
		cmocka_unit_test(test_a_job_is_as_fast_as_its_slowest_rank),
		cmocka_unit_test(test_latencies_tell_the_skew),
		cmocka_unit_test(test_a_rank_that_has_ended_rules_no_more),
		cmocka_unit_test(test_no_memory_takes_nothing),
	};

	return cmocka_run_group_tests_name("progress", tests, set_up, tear_down);
}
