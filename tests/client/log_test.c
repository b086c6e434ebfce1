/* SPDX-License-Identifier: Apache-2.0 */
/* What a client gets of a log of which not all is there. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/client.h"
#include "fake_backend.h"

enum {
	GRAIN = 64 * 1024,
	GRAINS = 5,
	FROM = 2 * GRAIN, /* these two were given back */
	TO = 4 * GRAIN,
};

#define WORD(text) ((char[]){text})

static struct fake fake;
static struct takt_client *client;
static uint64_t job_id;

static int set_up(void **state)
{
	static struct takt_job_view job;
	char *argv[] = {WORD("hang"), NULL};
	struct takt_jobspec spec;

	fake_start(&fake, true, false);
	fake_run(&fake);
	takt_jobspec_init(&spec);
	spec.argv = argv;
	spec.cwd = WORD("/");
	if (takt_client_connect(fake.socket, &client, NULL) < 0 ||
	    takt_client_submit(client, &spec, &job, NULL) < 0)
		return -1;
	job_id = job.id;
	return 0;
}

static int tear_down(void **state)
{
	takt_client_free(client);
	fake_halt(&fake);
	fake_stop(&fake);
	return 0;
}

static const char *log_path(void)
{
	return fake.jobs[job_id - 1].log_path;
}

/* No line ends before the hole. */
static void write_log(void)
{
	static char bytes[GRAINS * GRAIN];
	int fd;

	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes + FROM - 4, "head", 4);
	memcpy(bytes + TO, "tail", 4);
	fake_log(&fake, job_id, bytes, sizeof(bytes));
	fd = open(log_path(), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FROM, TO - FROM),
			 0);
	close(fd);
}

/* What an answer from there on has, and where it is to go on. */
static uint64_t expect(uint64_t offset, const char *begins, size_t begin_len, const char *ends,
		       size_t len_wanted)
{
	struct takt_log_place place = {.offset = offset, .attempt = offset ? 1 : 0};
	const char *bytes;
	size_t len;

	assert_int_equal(takt_client_log(client, job_id, 0, &place, &bytes, &len, NULL), 0);
	assert_int_equal(len, len_wanted);
	assert_memory_equal(bytes, begins, begin_len);
	assert_memory_equal(bytes + len - strlen(ends), ends, strlen(ends));
	return place.offset;
}

static void what_is_not_kept_is_one_line(void **state)
{
	static const char note[] = "\ntakt: bytes 131072 to 262144 of this output are not kept: "
				   "there is more than output_limit allows\n";
	static const char missed[] = "\ntakt: bytes 200704 to 262144 of this output are not kept: "
				     "there is more than output_limit allows\n";

	write_log();
	assert_int_equal(expect(0, "aaaa", 4, note, FROM + strlen(note)), TO);
	assert_int_equal(expect(FROM - 4, "head\ntakt: ", 11, note, 4 + strlen(note)), TO);
	assert_int_equal(expect(FROM, note, strlen(note), "", strlen(note)), TO);
	/* Who has read so far is told what he misses. */
	assert_int_equal(expect(200704, missed, strlen(missed), "", strlen(missed)), TO);
	assert_int_equal(expect(TO, "tailaaaa", 8, "aaaa", GRAIN), GRAINS * GRAIN);
}

/* Its end alone, and from there on as ever; a shorter one whole. */
static void the_end_of_a_log_is_read_alone(void **state)
{
	struct takt_log_place place = {.tail = 5};
	const char *bytes;
	size_t len;

	fake_log(&fake, job_id, "one\ntwo\n", 8);
	assert_int_equal(takt_client_log(client, job_id, 0, &place, &bytes, &len, NULL), 0);
	assert_int_equal(len, 5);
	assert_memory_equal(bytes, "\ntwo\n", 5);
	assert_int_equal(place.offset, 8);
	assert_int_equal(takt_client_log(client, job_id, 0, &place, &bytes, &len, NULL), 0);
	assert_int_equal(len, 0);
	assert_int_equal(place.tail, 5);
	place = (struct takt_log_place){.tail = 500};
	assert_int_equal(takt_client_log(client, job_id, 0, &place, &bytes, &len, NULL), 0);
	assert_int_equal(len, 8);
}

static void zeros_that_a_job_prints_are_its_own(void **state)
{
	fake_log(&fake, job_id, "a\0\0b", 4);
	assert_int_equal(expect(0, "a\0\0b", 4, "b", 4), 4);
}

static void a_log_that_got_shorter_is_read_from_its_beginning(void **state)
{
	fake_log(&fake, job_id, "one\ntwo\n", 8);
	assert_int_equal(truncate(log_path(), 4), 0);
	assert_int_equal(expect(8, "one\n", 4, "one\n", 4), 4);
	assert_int_equal(expect(4, "", 0, "", 0), 4);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_not_kept_is_one_line),
		CASE(the_end_of_a_log_is_read_alone),
		CASE(zeros_that_a_job_prints_are_its_own),
		CASE(a_log_that_got_shorter_is_read_from_its_beginning),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
