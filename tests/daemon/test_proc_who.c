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
	pid_t shim;  /* a shell that calls itself takt-shim */
	pid_t child; /* of it */
};

/* "takt-shim 7.1 DIR" with one child, which has written its pid when this returns. */
static void start_family(struct family *family)
{
	char path[96];
	FILE *file;
	int pid = 0;

	snprintf(family->dir, sizeof(family->dir), "/tmp/takt-who-XXXXXX");
	assert_non_null(mkdtemp(family->dir));
	snprintf(path, sizeof(path), "%s/7.1", family->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "sleep 60 & echo $! > pid.new; mv pid.new pid; wait\n");
	assert_int_equal(fclose(file), 0);
	family->shim = fork();
	if (family->shim == 0) {
		if (chdir(family->dir) == 0)
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
}

static void end_family(struct family *family)
{
	char command[96];

	kill(family->child, SIGKILL);
	waitpid(family->shim, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", family->dir);
	assert_int_equal(system(command), 0);
}

static void what_is_below_a_shim_is_the_jobs(void **state)
{
	struct takt_proc_cache *ours, *others;
	struct family family;

	start_family(&family);
	assert_int_equal(takt_proc_cache_new(family.dir, NULL, &ours), 0);
	assert_int_equal(takt_proc_cache_new("/elsewhere", NULL, &others), 0);
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

static void what_was_a_jobs_stays_the_jobs_when_it_is_gone(void **state)
{
	const struct takt_proc_who *who;
	struct takt_proc_cache *cache;
	struct family family;
	pid_t child;

	start_family(&family);
	child = family.child;
	assert_int_equal(takt_proc_cache_new(family.dir, NULL, &cache), 0);
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
	assert_int_equal(takt_proc_cache_new(family.dir, NULL, &cache), 0);
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
		cmocka_unit_test(what_was_a_jobs_stays_the_jobs_when_it_is_gone),
		cmocka_unit_test(what_cannot_be_looked_at_is_not_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
