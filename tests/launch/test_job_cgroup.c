/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in cgroups of their own, made by a real launcher: needs root and a cgroup v2 directory that
 * may be written, of a hybrid machine too. Controllers and other users are tested in a guest. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/proc_stat.h"
#include "launch/device_rules.h"
#include "launch_fixture.h"

enum {
	NVIDIA = 195
};

static char root[256];

static bool is_cgroup2(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Makes the directory in which the launcher of this case makes those of its jobs. */
static void need_cgroup(void)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(mounts) && geteuid() == 0; i++) {
		snprintf(root, sizeof(root), "%s/takt-test-%d", mounts[i], getpid());
		if (is_cgroup2(mounts[i]) && (mkdir(root, 0755) == 0 || errno == EEXIST))
			return;
	}
	print_message("# skipped: needs root and a cgroup v2 that may be written\n");
	skip();
}

static void start_launcher(struct fixture *fixture)
{
	const char *const args[] = {"--cgroup", root, NULL};

	need_cgroup();
	launcher_start(fixture, NULL, args);
}

static struct takt_launch_reply start(struct fixture *fixture, uint64_t job_id, const char *line,
				      const struct takt_job_limits *limits)
{
	create_sh(fixture, job_id, 1, 50, line);
	return ask(fixture, (struct takt_launch_request){.op = TAKT_LAUNCH_START,
							 .job_id = job_id,
							 .attempt = 1,
							 .uid = getuid(),
							 .gid = getgid(),
							 .limits = *limits});
}

static void expect_why(const struct fixture *fixture, uint64_t job_id, const char *word)
{
	char why[TAKT_ATTEMPT_MESSAGE] = "";

	assert_int_equal(takt_attempt_isolation(fixture->sys, fixture->jobs_dirfd, job_id, 1, why),
			 0);
	if (word[0])
		assert_non_null(strstr(why, word));
	else
		assert_string_equal(why, "");
}

/* A launcher sweeps at its start of a job and at its end. */
static void expect_nothing_left(struct fixture *fixture)
{
	struct takt_job_cgroups cgroups;

	launcher_kill(fixture, SIGTERM);
	takt_job_cgroups_open(&cgroups, root, fixture->jobs_dirfd);
	for (int i = 0; i < 1000 && rmdir(root) < 0; i++) {
		takt_job_cgroups_sweep(&cgroups); /* of processes that had not quite gone */
		sleep_ms(10);
	}
	assert_int_equal(access(root, F_OK), -1);
}

static void test_job_and_shim_have_leaves_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	const struct takt_job_limits none = {0};
	struct takt_launch_reply reply;
	char *text, path[64], line[512];

	start_launcher(fixture);
	reply = start(fixture, 1,
		      "cat /proc/self/cgroup > cgroup; (setsid sh -c 'trap \"\" TERM;"
		      " echo x > ready; while :; do sleep 1; done' &) ; sleep 60",
		      &none);
	assert_int_equal(reply.rc, 0);
	wait_file(fixture, "ready");
	text = slurp(fixture, "cgroup");
	assert_non_null(strstr(text, "-1.1/job\n"));
	takt_free(text);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", reply.shim.pid);
	snprintf(line, sizeof(line), "grep -q -e '-1.1/shim$' %s", path);
	assert_int_equal(system(line), 0);
	expect_why(fixture, 1, "");
	kill(reply.shim.pid, SIGTERM); /* what ignores SIGTERM is killed through the cgroup */
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	expect_nothing_left(fixture);
}

/* With its environment cleared a survivor is still found by the cgroup. */
static void test_survivor_without_environment_is_reaped_by_cgroup(void **state)
{
	struct fixture *fixture = *state;
	const struct takt_job_limits none = {0};
	struct takt_launch_request reap = {
		.op = TAKT_LAUNCH_REAP, .job_id = 1, .attempt = 1, .uid = getuid()};
	struct takt_launch_reply reply;
	int left = 1;

	start_launcher(fixture);
	reply = start(fixture, 1, "env -i setsid sh -c 'echo x > ready; sleep 60' & sleep 60",
		      &none);
	wait_file(fixture, "ready");
	kill(reply.shim.pid, SIGKILL);
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_ORPHANED);
	for (int i = 0; i < 1000 && left > 0; i++) {
		left = ask(fixture, reap).rc;
		sleep_ms(10);
	}
	assert_int_equal(left, 0);
	expect_nothing_left(fixture);
}

/* Nodes without a driver: one that may be opened has no device, one that may not is refused. */
static void test_job_opens_its_gpus_and_no_others(void **state)
{
	static const char try_all[] =
		"for n in 0 1 2 3 255; do e=$( (: < gpu$n) 2>&1 ); echo $n: ${e##*: }; done > out;"
		" head -c1 /dev/urandom > /dev/null && echo ordinary >> out; echo x > ready";
	const struct takt_job_limits limits = {.gpu_count = 2, .gpu_minor = {1, 3}};
	struct fixture *fixture = *state;
	const unsigned int minors[] = {0, 1, 2, 3, 255};
	char path[128], *out;

	start_launcher(fixture);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(minors); i++) {
		snprintf(path, sizeof(path), "%s/gpu%u", fixture->dir, minors[i]);
		assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(NVIDIA, minors[i])), 0);
	}
	assert_int_equal(start(fixture, 1, try_all, &limits).rc, 0);
	wait_file(fixture, "ready");
	out = slurp(fixture, "out");
	assert_string_equal(out, "0: Operation not permitted\n1: No such device or address\n"
				 "2: Operation not permitted\n3: No such device or address\n"
				 "255: No such device or address\nordinary\n");
	takt_free(out);
	expect_why(fixture, 1, "");
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	expect_nothing_left(fixture);
}

/* A staged job has no GPU before its turn; a prefetch of his is in the leaf of the shim, and there
 * is no other leaf yet, which systemd might remove meanwhile since it is empty. */
static void test_a_staged_job_opens_nothing_before_its_turn(void **state)
{
	struct fixture *fixture = *state;
	struct takt_job_limits limits = {.staged = true, .gpu_count = 1, .gpu_minor = {1}};
	struct takt_job_cgroups cgroups;
	struct takt_job_place place;
	char path[128];
	pid_t pid;

	need_cgroup();
	takt_job_cgroups_open(&cgroups, root, fixture->jobs_dirfd);
	snprintf(path, sizeof(path), "%s/gpu1", fixture->dir);
	assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(NVIDIA, 1)), 0);
	pid = fork();
	if (pid == 0) {
		int failed = takt_job_cgroup_make(&cgroups, 1, 1, &limits, &place, NULL);
		bool closed = open(path, O_RDONLY) < 0 && errno == EPERM;

		_exit(failed || !closed || access(place.job, F_OK) == 0);
	}
	assert_int_equal(wait_pid(pid), 0);
	limits.staged = false;
	assert_int_equal(takt_job_cgroup_admit(&cgroups, 1, 1, &limits, NULL), 0);
	assert_int_equal(takt_job_cgroup_admit(&cgroups, 1, 1, &limits, NULL), 0);
	takt_job_cgroup_leaf(&cgroups, 1, 1, place.job);
	pid = fork();
	if (pid == 0)
		_exit(takt_cgroup_enter(place.job, 0, NULL) < 0 || open(path, O_RDONLY) >= 0 ||
		      errno != ENXIO);
	assert_int_equal(wait_pid(pid), 0);
	expect_nothing_left(fixture);
}

/* A shim has entered its leaf and has not put its job into the other yet; a next job starts. */
static void test_the_leaf_of_a_job_that_has_yet_to_begin_stays(void **state)
{
	struct fixture *fixture = *state;
	const struct takt_job_limits limits = {.any_device = true};
	struct takt_job_cgroups cgroups;
	struct takt_job_place place;
	int ends[2];
	pid_t pid;
	char byte;

	need_cgroup();
	takt_job_cgroups_open(&cgroups, root, fixture->jobs_dirfd);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		int rc = takt_job_cgroup_make(&cgroups, 1, 1, &limits, &place, NULL);

		if (rc == 0 && write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	takt_job_cgroups_sweep(&cgroups);
	takt_job_cgroup_leaf(&cgroups, 1, 1, place.job);
	assert_int_equal(access(place.job, F_OK), 0);
	kill(pid, SIGKILL);
	wait_pid(pid);
	expect_nothing_left(fixture);
}

static _Noreturn void make_one(const struct takt_job_cgroups *cgroups, uint32_t attempt)
{
	const struct takt_job_limits limits = {.any_device = true};
	struct takt_job_place place;
	int rc = takt_job_cgroup_make(cgroups, 1, attempt, &limits, &place, NULL);

	_exit(rc < 0 || access(place.job, F_OK) < 0);
}

/* While one launcher takes over from another, either may start a job while the other sweeps. */
static void test_what_another_launcher_makes_is_not_swept(void **state)
{
	struct fixture *fixture = *state;
	struct takt_job_cgroups cgroups;
	int status = 0;

	need_cgroup();
	takt_job_cgroups_open(&cgroups, root, fixture->jobs_dirfd);
	for (uint32_t attempt = 1; attempt <= 400 && status == 0; attempt++) {
		pid_t pid = fork();

		if (pid == 0)
			make_one(&cgroups, attempt);
		while (waitpid(pid, &status, WNOHANG) == 0)
			takt_job_cgroups_sweep(&cgroups);
	}
	assert_int_equal(status, 0);
	expect_nothing_left(fixture);
}

static struct takt_proc_stat stat_of(pid_t pid)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	struct takt_proc_stat stat;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	assert_int_equal(takt_file_read(takt_sys_real(), AT_FDCWD, path, 4096, &text, &len, NULL),
			 0);
	assert_int_equal(takt_proc_stat_parse(text, &stat), 0);
	return stat;
}

/* systemd removes the cgroup of a unit in which nothing is left, and makes it anew as it starts the
 * unit again. */
static void test_a_root_that_is_made_anew_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	struct takt_job_cgroups cgroups;
	char state_of_it;
	pid_t pid;

	need_cgroup();
	takt_job_cgroups_open(&cgroups, root, fixture->jobs_dirfd);
	assert_int_equal(rmdir(root), 0);
	pid = fork();
	if (pid == 0)
		make_one(&cgroups, 1);
	do {
		sleep_ms(1);
		state_of_it = stat_of(pid).state;
	} while (state_of_it != 'S' && state_of_it != 'Z');
	need_cgroup();
	assert_int_equal(wait_pid(pid), 0);
	expect_nothing_left(fixture);
}

static int count(void *ctx, int32_t pid)
{
	(void)pid;
	(*(size_t *)ctx)++;
	return 0;
}

/* It has a process of the unit's in it, which is moved to where it is in nobody's way. */
static void test_a_root_that_was_made_anew_is_cleared_out(void **state)
{
	struct fixture *fixture = *state;
	struct takt_job_cgroups cgroups;
	char own[TAKT_CGROUP_PATH];
	size_t found = 0;
	pid_t keeper, pid;

	need_cgroup();
	takt_job_cgroups_open(&cgroups, root, fixture->jobs_dirfd);
	keeper = fork();
	if (keeper == 0) {
		(void)takt_cgroup_enter(root, 0, NULL);
		pause();
	}
	while (found == 0) {
		sleep_ms(1);
		assert_int_equal(takt_cgroup_each(root, count, &found), 0);
	}
	pid = fork();
	if (pid == 0)
		make_one(&cgroups, 1);
	assert_int_equal(wait_pid(pid), 0);
	snprintf(own, sizeof(own), "%s/own", root);
	assert_int_equal(takt_cgroup_each(root, count, &found), 0);
	assert_int_equal(found, 1);
	assert_int_equal(takt_cgroup_each(own, count, &found), 0);
	assert_int_equal(found, 2);
	kill(keeper, SIGKILL);
	wait_pid(keeper);
	assert_int_equal(rmdir(own), 0);
	expect_nothing_left(fixture);
}

static void test_a_limit_that_cannot_be_set_is_told(void **state)
{
	struct fixture *fixture = *state;
	const struct takt_job_limits limits = {.mem_mib = 64};
	char control[300];

	start_launcher(fixture);
	snprintf(control, sizeof(control), "%s/memory.max", root);
	assert_int_equal(start(fixture, 1, "echo x > ready", &limits).rc, 0);
	wait_file(fixture, "ready");
	if (access(control, F_OK) < 0)
		expect_why(fixture, 1, "its memory is not limited: that controller is not");
	else
		expect_why(fixture, 1, "");
	wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED);
	expect_nothing_left(fixture);
}

static void test_without_a_cgroup_isolation_is_advisory(void **state)
{
	const char *const args[] = {"--cgroup", "/nowhere", NULL};
	const struct takt_job_limits none = {0};
	struct fixture *fixture = *state;

	launcher_start(fixture, NULL, args);
	assert_int_equal(start(fixture, 1, "exit 3", &none).rc, 0);
	assert_int_equal(wait_state(fixture, 1, 1, TAKT_ATTEMPT_EXITED).exit_code, 3);
	expect_why(fixture, 1, "no cgroup v2 at '/nowhere'");
}

static bool has_rule(const takt_device_rules *rules, uint32_t major, uint32_t minor)
{
	TAKT_VEC_EACH (rule, rules)
		if (rule->major == major && rule->minor == minor)
			return true;
	return false;
}

/* Numbers are those of the nodes that are there; the driver's own where none is. */
static void test_rules_follow_the_nodes(void **state)
{
	struct fixture *fixture = *state;
	takt_device_rules rules = TAKT_VEC_INIT(TAKT_DEVICE_RULES_MAX);
	struct takt_job_limits limits = {.gpu_count = 2, .gpu_minor = {0, 5}};
	int dev = open(fixture->dir, O_RDONLY | O_DIRECTORY);
	bool nodes = mknodat(dev, "nvidia0", S_IFCHR, makedev(240, 7)) == 0 &&
		     mknodat(dev, "nvidia-uvm", S_IFCHR, makedev(511, 0)) == 0;

	assert_int_equal(takt_device_rules_add(dev, &limits, &rules, NULL), 0);
	assert_true(has_rule(&rules, 1, 3));
	assert_true(has_rule(&rules, NVIDIA, 5));
	assert_true(has_rule(&rules, NVIDIA, 255));
	assert_int_equal(has_rule(&rules, 240, 7), nodes);
	assert_int_equal(has_rule(&rules, 511, 0), nodes);
	assert_int_equal(has_rule(&rules, NVIDIA, 0), !nodes);
	rules.len = 0;
	limits.gpu_count = 0;
	assert_int_equal(takt_device_rules_add(dev, &limits, &rules, NULL), 0);
	assert_false(has_rule(&rules, NVIDIA, 255));
	assert_false(has_rule(&rules, 511, 0));
	takt_vec_fini(&rules);
	close(dev);
}

/* What asks for more than GPUs under a GPU's name is refused. */
static void test_only_gpus_can_be_asked_for(void **state)
{
	struct fixture *fixture = *state;
	takt_device_rules rules = TAKT_VEC_INIT(TAKT_DEVICE_RULES_MAX);
	struct takt_job_limits limits = {.gpu_count = 1, .gpu_minor = {254}};
	int dev = open(fixture->dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(takt_device_rules_add(dev, &limits, &rules, NULL), -EINVAL);
	limits = (struct takt_job_limits){.gpu_count = TAKT_LIMITS_MAX_GPUS + 1};
	assert_int_equal(takt_device_rules_add(dev, &limits, &rules, NULL), -TAKT_E_LIMIT);
	takt_vec_fini(&rules);
	close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_up, fixture_down)
		CASE(test_job_and_shim_have_leaves_of_their_own),
		CASE(test_survivor_without_environment_is_reaped_by_cgroup),
		CASE(test_job_opens_its_gpus_and_no_others),
		CASE(test_a_staged_job_opens_nothing_before_its_turn),
		CASE(test_the_leaf_of_a_job_that_has_yet_to_begin_stays),
		CASE(test_what_another_launcher_makes_is_not_swept),
		CASE(test_a_root_that_is_made_anew_is_waited_for),
		CASE(test_a_root_that_was_made_anew_is_cleared_out),
		CASE(test_a_limit_that_cannot_be_set_is_told),
		CASE(test_without_a_cgroup_isolation_is_advisory),
		CASE(test_rules_follow_the_nodes),
		CASE(test_only_gpus_can_be_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
