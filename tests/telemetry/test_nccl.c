/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of NCCL's inspector: both ways in which its releases name things, several message sizes,
 * too many communicators, half a file, and whatever else may lie there under that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "telemetry/nccl_read.h"

#define UUID	  "GPU-1"
#define FILE_NAME "nccl_inspector_metrics_" UUID ".prom"

static char folder[] = "/tmp/takt-nccl-XXXXXX";
static int dirfd_;
static char path[128];

static int set_up(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	dirfd_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/" FILE_NAME, folder);
	return dirfd_ < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	close(dirfd_);
	return rmdir(folder);
}

static int clean(void **state)
{
	(void)unlink(path);
	return 0;
}

static struct takt_nccl parse(const char *text)
{
	struct takt_nccl nccl;

	takt_nccl_parse(text, strlen(text), &nccl);
	return nccl;
}

/* One operation, as the plugin writes it now. */
#define NAMED(COMM, OP, SIZE, GBS, US)                                                    \
	"nccl_bus_bandwidth_gbs{version=\"v5.1\",comm_name=\"" COMM "\",n_nodes=\"2\","   \
	"nranks=\"16\",collective=\"" OP "\",message_size=\"" SIZE "\"} " GBS "\n"        \
	"nccl_collective_exec_time_microseconds{version=\"v5.1\",comm_name=\"" COMM "\"," \
	"n_nodes=\"2\",nranks=\"16\",collective=\"" OP "\",message_size=\"" SIZE "\"} " US "\n"

static void assert_row(const struct takt_nccl_row *row, const char *operation, const char *comm,
		       double bus_bytes_s, double seconds)
{
	assert_string_equal(row->operation, operation);
	assert_string_equal(row->comm, comm);
	assert_float_equal(row->bus_bytes_s / bus_bytes_s, 1, 1e-6);
	assert_float_equal(row->seconds / seconds, 1, 1e-6);
}

static void test_both_ways_of_naming(void **state)
{
	struct takt_nccl nccl = parse(NAMED("DP Group 0", "AllReduce", "4-5GB", "678.263", "9498"));
	static const char by_id[] =
		"# TYPE nccl_bus_bandwidth_gbs gauge\n"
		"nccl_algorithm_bandwidth_gbs{comm_id=\"0xd1\",n_ranks=\"8\",n_nodes=\"1\","
		"p2p_operation=\"Send\"} 277\n"
		"nccl_p2p_bus_bandwidth_gbs{comm_id=\"0xd1\",n_ranks=\"8\",n_nodes=\"1\","
		"p2p_operation=\"Send\"} 48.5\n"
		"nccl_p2p_exec_time_microseconds{comm_id=\"0xd1\",n_ranks=\"8\",n_nodes=\"1\","
		"p2p_operation=\"Send\"} 1.2e+06\n";

	assert_int_equal(nccl.count, 1);
	assert_row(&nccl.row[0], "AllReduce", "DP Group 0", 678.263e9, 0.009498);
	assert_int_equal(nccl.row[0].ranks, 16);
	assert_int_equal(nccl.row[0].nodes, 2);
	nccl = parse(by_id);
	assert_int_equal(nccl.count, 1);
	assert_row(&nccl.row[0], "Send", "0xd1", 48.5e9, 1.2);
	assert_int_equal(nccl.row[0].ranks, 8);
}

static void test_the_slowest_size_stands_for_its_operation(void **state)
{
	struct takt_nccl nccl = parse(NAMED("c", "AllReduce", "1-2KB", "0.5",
					    "12") NAMED("c", "AllReduce", "4-5GB", "90", "9000")
					      NAMED("c", "AllReduce", "1-2MB", "40", "90")
						      NAMED("c", "AllGather", "1B", "1", "5"));

	assert_int_equal(nccl.count, 2);
	assert_row(&nccl.row[0], "AllReduce", "c", 90e9, 0.009);
	assert_row(&nccl.row[1], "AllGather", "c", 1e9, 5e-6);
}

static void test_too_many_are_counted(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_NCCL_MAX_BYTES);
	struct takt_nccl nccl;

	for (int i = 0; i < TAKT_NCCL_MAX_ROWS + 3; i++) {
		char one[128];

		snprintf(one, sizeof(one),
			 "comm_id=\"%d\",n_nodes=\"1\",nranks=\"2\",collective=\"AllGather\"", i);
		takt_str_addf(&text, "nccl_bus_bandwidth_gbs{%s} 1\n", one);
		takt_str_addf(&text, "nccl_collective_exec_time_microseconds{%s} 5\n", one);
	}
	nccl = parse(takt_str_text(&text));
	assert_int_equal(nccl.count, TAKT_NCCL_MAX_ROWS);
	assert_int_equal(nccl.left_out, 3);
}

static void test_what_is_no_such_line_is_passed_over(void **state)
{
	static const char *const bad[] = {
		"",
		"nonsense\n}{\n{}\n\n",
		/* its name has a quote, which the plugin does not escape */
		NAMED("a\"b", "AllReduce", "1B", "1", "5"),
		NAMED("", "AllReduce", "1B", "1", "5"),
		NAMED("c", "AllReduce", "1B", "inf", "5"),
		NAMED("c", "AllReduce", "1B", "1", "-5"),
		NAMED("c", "AllReduce", "1B", "1", "5 6"),
		NAMED("c", "AllReduce", "1B", "0", "5"),
		"nccl_collective_exec_time_microseconds{comm_name=\"c\",n_nodes=\"1\",nranks=\"2\","
		"collective=\"AllReduce\"} 5\n",
		"nccl_bus_bandwidth_gbs{comm_name=\"c\",n_nodes=\"1\",nranks=\"0\",collective="
		"\"X\"} "
		"1\nnccl_collective_exec_time_microseconds{comm_name=\"c\",n_nodes=\"1\","
		"nranks=\"0\",collective=\"X\"} 5\n",
	};
	char half[] = NAMED("c", "AllReduce", "1B", "1", "55");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i]).count, 0);
	assert_int_equal(parse(half).count, 1);
	half[strlen(half) - 1] = '\0'; /* 55, or 5 of 550? */
	assert_int_equal(parse(half).count, 0);
}

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_a_file_is_read_of_its_owner_alone(void **state)
{
	struct takt_nccl nccl = {.count = 7};

	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), -ENOENT);
	put("");
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), -EAGAIN);
	put(NAMED("c", "AllReduce", "1B", "1", "5"));
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid() + 1, &nccl), -TAKT_E_CORRUPT);
	assert_int_equal(nccl.count, 7);
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), 0);
	assert_int_equal(nccl.count, 1);
	assert_true(nccl.written.ns > 0);
	assert_int_equal(takt_nccl_read(dirfd_, "GPU-2", geteuid(), &nccl), -ENOENT);
	assert_int_equal(takt_nccl_read(dirfd_, "../" UUID, geteuid(), &nccl), -ENOENT);
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), -EAGAIN);
	takt_alloc_fail_nth(0, 0);
}

static void test_links_and_pipes_are_left_alone(void **state)
{
	struct takt_nccl nccl;
	char elsewhere[160];

	snprintf(elsewhere, sizeof(elsewhere), "%s.else", path);
	put(NAMED("c", "AllReduce", "1B", "1", "5"));
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), -TAKT_E_CORRUPT);
	(void)unlink(elsewhere);
	(void)unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), -TAKT_E_CORRUPT);
}

static void test_of_a_file_too_large_the_beginning_is_read(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(3 * TAKT_NCCL_MAX_BYTES);
	struct takt_nccl nccl;

	while (text.len < 2 * TAKT_NCCL_MAX_BYTES)
		takt_str_add(&text, NAMED("c", "AllReduce", "1B", "1", "5"));
	takt_str_add(&text, NAMED("end", "AllReduce", "1B", "1", "5"));
	put(takt_str_text(&text));
	assert_int_equal(takt_nccl_read(dirfd_, UUID, geteuid(), &nccl), 0);
	assert_int_equal(nccl.count, 1);
	assert_string_equal(nccl.row[0].comm, "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways_of_naming),
		cmocka_unit_test(test_the_slowest_size_stands_for_its_operation),
		cmocka_unit_test(test_too_many_are_counted),
		cmocka_unit_test(test_what_is_no_such_line_is_passed_over),
		cmocka_unit_test_teardown(test_a_file_is_read_of_its_owner_alone, clean),
		cmocka_unit_test_teardown(test_links_and_pipes_are_left_alone, clean),
		cmocka_unit_test_teardown(test_of_a_file_too_large_the_beginning_is_read, clean),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
