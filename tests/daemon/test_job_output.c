/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a job's output is kept on which disk, and what is said of a disk that gets full. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "daemon/daemon.h"

#define MIB UINT64_C(1048576)

enum {
	FRAGMENT = 4096,
	NOTE = 5,
	JOBS = 2,
};

static uint64_t disk_mib, free_mib;

int __wrap_fstatvfs(int fd, struct statvfs *ret);
int __wrap_fstatvfs64(int fd, struct statvfs *ret); /* by which of the names is the C library's */

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
	*ret = (struct statvfs){.f_frsize = FRAGMENT,
				.f_blocks = disk_mib * MIB / FRAGMENT,
				.f_bavail = free_mib * MIB / FRAGMENT};
	return disk_mib ? 0 : -1;
}

int __wrap_fstatvfs64(int fd, struct statvfs *ret)
{
	return __wrap_fstatvfs(fd, ret);
}

static char folder[] = "/tmp/takt-output-XXXXXX";
static struct takt_daemon *daemon_;

/* Each with a log of as many MiB as its number. */
static void write_log(uint64_t job_id)
{
	static char bytes[1 << 20];
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "%llu.1", (unsigned long long)job_id);
	assert_int_equal(mkdirat(daemon_->jobs_dirfd, path, 0700), 0);
	snprintf(path, sizeof(path), "%llu.1/log", (unsigned long long)job_id);
	fd = openat(daemon_->jobs_dirfd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	memset(bytes, 'x', sizeof(bytes));
	for (uint64_t i = 0; i < job_id; i++)
		assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
}

static struct takt_queue_job job(uint64_t id, enum takt_queue_phase phase)
{
	return (struct takt_queue_job){.row = {.id = id, .attempt = 1}, .phase = phase};
}

static int setup(void **state)
{
	daemon_ = takt_zalloc(sizeof(*daemon_));
	assert_non_null(daemon_);
	daemon_->sys = takt_sys_real();
	assert_non_null(mkdtemp(folder));
	daemon_->jobs_dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(daemon_->jobs_dirfd >= 0);
	assert_int_equal(takt_job_output_new(&daemon_->output), 0);
	for (uint64_t id = 1; id <= JOBS; id++) {
		struct takt_queue_job runs = job(id, TAKT_PHASE_RUNNING);

		write_log(id);
		takt_job_output_watch(daemon_->output, &runs);
	}
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	takt_job_output_free(daemon_->output);
	close(daemon_->jobs_dirfd);
	takt_free(daemon_);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static uint64_t limit_mib(uint64_t setting, uint64_t left)
{
	daemon_->config.output_limit_mib = (uint32_t)setting;
	free_mib = left;
	return takt_job_output_limit(daemon_) / MIB;
}

static void a_log_may_take_a_hundredth_of_what_is_free(void **state)
{
	disk_mib = 1 << 20;
	assert_int_equal(limit_mib(1024, 1 << 20), 1024);
	assert_int_equal(limit_mib(1024, 102400), 1024);
	assert_int_equal(limit_mib(1024, 51200), 512);
	assert_int_equal(limit_mib(1024, 0), 1);
	assert_int_equal(limit_mib(0, 51200), 0); /* all is kept */
	disk_mib = 0;				  /* not known */
	assert_int_equal(limit_mib(1024, 51200), 1024);
}

static uint64_t give_kib(uint64_t job_id, uid_t uid)
{
	return takt_job_output_give(daemon_, job_id, uid) / 1024;
}

/* Whatever of them a user's jobs print, it comes to no more than his part, and a job has a little
 * in any case. */
static void all_logs_of_a_user_come_to_his_part(void **state)
{
	uint64_t sum = 0, last = 1 << 20;

	disk_mib = free_mib = 102400;
	daemon_->config.output_limit_mib = 1024;
	daemon_->config.output_share_permille = 100;
	daemon_->config.users = TAKT_USERS_ALL;
	for (uint64_t id = 100; id < 400; id++) {
		uint64_t given = give_kib(id, 4242);

		assert_true(given <= last && given >= 64);
		last = given;
		sum += given;
	}
	assert_true(give_kib(100, 4242) > 64); /* asked again: what it had is left for it */
	assert_true(sum <= (10240 / 4) * UINT64_C(1024) + UINT64_C(300) * 64);
	assert_true(give_kib(500, 4343) > 100 * 1024); /* another's is his own */
	daemon_->config.output_share_permille = 0;
	assert_int_equal(give_kib(501, 4242), 1024 * 1024);
	daemon_->config.output_share_permille = 100;
	daemon_->config.output_limit_mib = 0;
	assert_int_equal(give_kib(502, 4242), 0); /* all is kept */
}

static off_t blocks_of(uint64_t job_id)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "%llu.1/log", (unsigned long long)job_id);
	assert_int_equal(fstatat(daemon_->jobs_dirfd, path, &st, 0), 0);
	return st.st_blocks;
}

static void look_on(int looks)
{
	static uint64_t now_ns = TAKT_NS_PER_S * 1000000;

	while (looks-- > 0) {
		now_ns += 3600 * TAKT_NS_PER_S;
		takt_job_output_tick(daemon_, (struct takt_mono){now_ns});
	}
}

/* Of five with 1 to 5 MiB, where all may come to 15, and are brought to three quarters of that. */
static void the_oldest_logs_go_where_all_are_too_much(void **state)
{
	struct takt_output_cut cut;

	for (uint64_t id = 3; id <= 5; id++)
		write_log(id);
	disk_mib = free_mib = 100;
	daemon_->config.output_limit_mib = 64;
	daemon_->config.output_share_permille = 0;
	daemon_->config.users = TAKT_USERS_OWN;
	look_on(4);
	assert_true(blocks_of(3) > 0);
	daemon_->config.output_share_permille = 150;
	look_on(8);
	for (uint64_t id = 1; id <= 5; id++)
		assert_int_equal(blocks_of(id) > 0, id > 3);
	assert_int_equal(takt_attempt_cut(daemon_->sys, daemon_->jobs_dirfd, 2, 1, &cut), 0);
	assert_true(cut.from == 0 && cut.to == 2 * MIB && cut.limit == 1);
}

static const char *note_after(uint64_t left)
{
	static uint64_t now_ns = TAKT_NS_PER_S;

	free_mib = left;
	now_ns += 3600 * TAKT_NS_PER_S;
	takt_job_output_tick(daemon_, (struct takt_mono){now_ns});
	return daemon_->notes[NOTE];
}

static void a_disk_that_gets_full_is_said_with_the_largest_log(void **state)
{
	struct takt_queue_job largest = job(JOBS, TAKT_PHASE_RUNNING);

	disk_mib = 1 << 20;
	assert_string_equal(note_after(1500), "");
	assert_non_null(strstr(note_after(812), "the disk of state_dir has 812 MiB left"));
	assert_non_null(strstr(note_after(812), "job 2 has the largest log, 2 MiB"));
	takt_job_output_over(daemon_, &largest);
	assert_non_null(strstr(note_after(811), "job 1 has the largest log, 1 MiB"));
	assert_non_null(strstr(note_after(1500), "1500 MiB left")); /* it does not come and go */
	assert_string_equal(note_after(2048), "");
	disk_mib = 2000; /* a small disk is not full with half of it left */
	assert_string_equal(note_after(500), "");
	assert_non_null(strstr(note_after(99), "99 MiB left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_logs_of_a_user_come_to_his_part),
		cmocka_unit_test(a_log_may_take_a_hundredth_of_what_is_free),
		cmocka_unit_test(a_disk_that_gets_full_is_said_with_the_largest_log),
		cmocka_unit_test(the_oldest_logs_go_where_all_are_too_much),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
