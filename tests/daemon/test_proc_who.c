/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a process is, from what the kernel shows of it. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/daemon.h"

struct family {
	char dir[64];
	int dirfd;   /* of it */
	pid_t shim;  /* a shell that calls itself takt-shim */
	pid_t child; /* of it */
};

/* As its shim does it. */
static void put_on_record(const struct family *family, const struct takt_proc_id *shim)
{
	int fd = takt_attempt_open(takt_sys_real(), family->dirfd, 7, 1, NULL);

	assert_true(fd >= 0);
	assert_int_equal(takt_attempt_record_shim(takt_sys_real(), fd, shim, NULL), 0);
	close(fd);
}

/* "takt-shim 7.1 DIR" with one child, which has written its pid when this returns; on record as
 * what it says. */
static void start_family(struct family *family)
{
	struct takt_proc_id self;
	char path[96];
	FILE *file;
	int pid = 0;

	snprintf(family->dir, sizeof(family->dir), "/tmp/takt-who-XXXXXX");
	assert_non_null(mkdtemp(family->dir));
	family->dirfd = open(family->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(family->dirfd, "7.1", 0700), 0);
	assert_int_equal(mkdirat(family->dirfd, "run", 0700), 0);
	snprintf(path, sizeof(path), "%s/run/7.1", family->dir); /* the script that is run */
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "sleep 60 & echo $! > pid.new; mv pid.new ../pid; wait\n");
	assert_int_equal(fclose(file), 0);
	family->shim = fork();
	if (family->shim == 0) {
		if (fchdir(family->dirfd) == 0 && chdir("run") == 0)
			execl("/bin/sh", "takt-shim", "7.1", family->dir, (char *)NULL);
		_exit(127);
	}
	snprintf(path, sizeof(path), "%s/pid", family->dir);
	for (int i = 0; i < 1000 && pid == 0; i++) {
		file = fopen(path, "r");
		if (file && fscanf(file, "%d", &pid) != 1)
			pid = 0;
		if (file)
			fclose(file);
		usleep(10000);
	}
	assert_true(pid > 0);
	family->child = pid;
	assert_int_equal(takt_proc_identify(family->shim, &self, NULL), 0);
	put_on_record(family, &self);
}

static void end_family(struct family *family)
{
	char command[96];

	kill(family->child, SIGKILL);
	waitpid(family->shim, NULL, 0);
	close(family->dirfd);
	snprintf(command, sizeof(command), "rm -rf '%s'", family->dir);
	assert_int_equal(system(command), 0);
}

static void what_is_below_a_shim_is_the_jobs(void **state)
{
	struct takt_proc_cache *ours, *others;
	struct family family;

	start_family(&family);
	assert_int_equal(takt_proc_cache_new(family.dir, family.dirfd, NULL, &ours), 0);
	assert_int_equal(takt_proc_cache_new("/elsewhere", family.dirfd, NULL, &others), 0);
	assert_int_equal(takt_proc_who(ours, family.child, (struct takt_mono){1})->job_id, 7);
	assert_string_equal(takt_proc_who(ours, family.child, (struct takt_mono){1})->command,
			    "sleep");
	assert_int_equal(takt_proc_who(ours, family.child, (struct takt_mono){1})->uid, getuid());
	assert_int_equal(takt_proc_who(ours, getpid(), (struct takt_mono){1})->job_id, 0);
	/* The shim of another takt is nobody of ours. */
	assert_int_equal(takt_proc_who(others, family.child, (struct takt_mono){1})->job_id, 0);
	takt_proc_cache_free(ours);
	takt_proc_cache_free(others);
	end_family(&family);
}

static uint64_t job_of(const struct family *family, int32_t pid)
{
	struct takt_proc_cache *cache;
	uint64_t job;

	assert_int_equal(takt_proc_cache_new(family->dir, family->dirfd, NULL, &cache), 0);
	job = takt_proc_who(cache, pid, (struct takt_mono){1})->job_id;
	takt_proc_cache_free(cache);
	return job;
}

/* What a command line says is not enough: the attempt's record and its directory's owner decide. */
static void who_only_calls_itself_a_shim_is_nobodys(void **state)
{
	struct takt_proc_id self, other;
	struct family family;

	start_family(&family);
	assert_int_equal(takt_proc_identify(family.shim, &self, NULL), 0);
	assert_int_equal(job_of(&family, family.child), 7);
	other = self;
	other.pid++;
	put_on_record(&family, &other);
	assert_int_equal(job_of(&family, family.child), 0);
	other = self;
	other.start_ticks++; /* the pid was somebody's before */
	put_on_record(&family, &other);
	assert_int_equal(job_of(&family, family.child), 0);
	put_on_record(&family, &self);
	if (getuid() == 0) {
		assert_int_equal(fchownat(family.dirfd, "7.1", 4242, (gid_t)-1, 0), 0);
		assert_int_equal(job_of(&family, family.child), 0);
		assert_int_equal(fchownat(family.dirfd, "7.1", 0, (gid_t)-1, 0), 0);
	}
	assert_int_equal(job_of(&family, family.child), 7);
	assert_int_equal(unlinkat(family.dirfd, "7.1/shim", 0), 0);
	assert_int_equal(job_of(&family, family.child), 0);
	end_family(&family);
}

static void what_was_a_jobs_stays_the_jobs_when_it_is_gone(void **state)
{
	const struct takt_proc_who *who;
	struct takt_proc_cache *cache;
	struct family family;
	pid_t child;

	start_family(&family);
	child = family.child;
	assert_int_equal(takt_proc_cache_new(family.dir, family.dirfd, NULL, &cache), 0);
	assert_int_equal(takt_proc_who(cache, child, (struct takt_mono){1})->job_id, 7);
	end_family(&family);
	who = takt_proc_who(cache, child, (struct takt_mono){10 * TAKT_NS_PER_S});
	assert_true(who->gone);
	assert_int_equal(who->job_id, 7);
	takt_proc_cache_free(cache);
}

/* Without a descriptor nothing is seen, which must not look like "nobody is there". */
static void what_cannot_be_looked_at_is_not_gone(void **state)
{
	struct rlimit before, none;
	struct takt_proc_cache *cache;
	bool gone_unseen, gone_seen;
	struct family family;
	uint64_t job;

	start_family(&family);
	assert_int_equal(takt_proc_cache_new(family.dir, family.dirfd, NULL, &cache), 0);
	assert_int_equal(takt_proc_who(cache, family.child, (struct takt_mono){1})->job_id, 7);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	gone_unseen = takt_proc_who(cache, getpid(), (struct takt_mono){1})->gone;
	gone_seen =
		takt_proc_who(cache, family.child, (struct takt_mono){10 * TAKT_NS_PER_S})->gone;
	job = takt_proc_who(cache, family.child, (struct takt_mono){10 * TAKT_NS_PER_S})->job_id;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(gone_unseen);
	assert_false(gone_seen);
	assert_int_equal(job, 7);
	/* It is looked at again as soon as that is possible. */
	assert_int_equal(
		takt_proc_who(cache, getpid(), (struct takt_mono){20 * TAKT_NS_PER_S})->uid,
		getuid());
	takt_proc_cache_free(cache);
	end_family(&family);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_below_a_shim_is_the_jobs),
		cmocka_unit_test(who_only_calls_itself_a_shim_is_nobodys),
		cmocka_unit_test(what_was_a_jobs_stays_the_jobs_when_it_is_gone),
		cmocka_unit_test(what_cannot_be_looked_at_is_not_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
