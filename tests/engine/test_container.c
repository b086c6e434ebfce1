/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of container runtimes, as one would type them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/local/container.h"
#include "engine/local/jobenv.h"

static const char *const gpus[] = {"GPU-aaaa", "GPU-dddd"};
static char *command[] = {(char[]){"python3"}, (char[]){"train.py"}, NULL};
static char *more[] = {(char[]){"--shm-size=8g"}, NULL};
static char *env[] = {(char[]){"PATH=/usr/bin"},
		      (char[]){"SECRET=hunter2"},
		      (char[]){"LD_LIBRARY_PATH=/host"},
		      (char[]){"XDG_RUNTIME_DIR=/run/user/1000"},
		      (char[]){"CUDA_VISIBLE_DEVICES=0,3"},
		      (char[]){"TAKT_ATTEMPT=12.1.ab"},
		      NULL};

static struct takt_container sample(const char *runtime)
{
	return (struct takt_container){.runtime = runtime,
				       .image = "lab/torch:2",
				       .argv = command,
				       .cwd = "/home/ann/run 1",
				       .gpus = gpus,
				       .gpu_count = 2,
				       .uid = 1000,
				       .gid = 100,
				       .job_id = 12,
				       .attempt_id = "12.1.ab"};
}

static void expect(const struct takt_container *in, const char *want)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(65536);
	char **argv = NULL;

	assert_int_equal(takt_container_argv(in, env, &argv, NULL), 0);
	for (char **word = argv; *word; word++)
		takt_str_addf(&text, "%s\n", *word);
	assert_string_equal(takt_str_text(&text), want);
	takt_jobenv_free(argv);
}

static void test_podman(void **state)
{
	struct takt_container in = sample("podman");

	in.args = more;
	in.progress = "/var/takt/jobs/12.1/progress";
	expect(&in, "podman\nrun\n--rm\n--name=takt-12.1.ab\n--label=takt.attempt=12.1.ab\n"
		    "--label=takt.job=12\n--network=host\n--ipc=host\n--user=1000:100\n"
		    "--mount=type=bind,source=/home/ann/run 1,target=/home/ann/run 1\n"
		    "--mount=type=bind,source=/var/takt/jobs/12.1/progress,"
		    "target=/var/takt/jobs/12.1/progress\n"
		    "--workdir=/home/ann/run 1\n--cgroups=disabled\n--userns=keep-id\n"
		    "--device\nnvidia.com/gpu=GPU-aaaa\n--device\nnvidia.com/gpu=GPU-dddd\n"
		    "--env=SECRET\n--env=CUDA_VISIBLE_DEVICES\n--env=TAKT_ATTEMPT\n"
		    "--shm-size=8g\nlab/torch:2\npython3\ntrain.py\n");
}

/* podman refuses keep-id for root, who is himself inside. */
static void test_podman_of_root_keeps_no_id(void **state)
{
	struct takt_container in = sample("podman");
	char **argv = NULL;

	in.uid = in.gid = 0;
	assert_int_equal(takt_container_argv(&in, env, &argv, NULL), 0);
	for (char **word = argv; *word; word++)
		assert_null(strstr(*word, "keep-id"));
	takt_jobenv_free(argv);
}

static void test_docker_on_a_terminal(void **state)
{
	struct takt_container in = sample("docker");

	in.pty = true;
	expect(&in, "docker\nrun\n--rm\n--name=takt-12.1.ab\n--label=takt.attempt=12.1.ab\n"
		    "--label=takt.job=12\n--interactive\n--tty\n--network=host\n--ipc=host\n"
		    "--user=1000:100\n"
		    "--mount=type=bind,source=/home/ann/run 1,target=/home/ann/run 1\n"
		    "--workdir=/home/ann/run 1\n--gpus\n\"device=GPU-aaaa,GPU-dddd\"\n"
		    "--env=SECRET\n--env=CUDA_VISIBLE_DEVICES\n--env=TAKT_ATTEMPT\n"
		    "lab/torch:2\npython3\ntrain.py\n");
}

static void test_docker_with_ranks_and_without_gpus(void **state)
{
	struct takt_container in = sample("docker");

	in.ranks = true; /* a container each: they cannot have one name */
	in.gpu_count = 0;
	expect(&in, "docker\nrun\n--rm\n--label=takt.attempt=12.1.ab\n"
		    "--label=takt.job=12\n--network=host\n--ipc=host\n--user=1000:100\n"
		    "--mount=type=bind,source=/home/ann/run 1,target=/home/ann/run 1\n"
		    "--workdir=/home/ann/run 1\n--env=SECRET\n--env=CUDA_VISIBLE_DEVICES\n"
		    "--env=TAKT_ATTEMPT\n--env=RANK\n--env=LOCAL_RANK\n--env=WORLD_SIZE\n"
		    "--env=LOCAL_WORLD_SIZE\n--env=MASTER_ADDR\n--env=MASTER_PORT\n"
		    "lab/torch:2\npython3\ntrain.py\n");
}

static void test_apptainer(void **state)
{
	struct takt_container in = sample("apptainer");
	char **cleanup = command;

	in.progress = "/var/takt/jobs/12.1/progress";
	expect(&in, "apptainer\nexec\n--nv\n--bind=/home/ann/run 1\n"
		    "--bind=/var/takt/jobs/12.1/progress\n--pwd=/home/ann/run 1\n"
		    "lab/torch:2\npython3\ntrain.py\n");
	assert_int_equal(takt_container_cleanup(&in, &cleanup, NULL), 0);
	assert_null(cleanup);
}

static char **copy_env(void)
{
	char **copy = takt_calloc(TAKT_ARRAY_LEN(env), sizeof(*copy));

	for (size_t i = 0; env[i]; i++)
		copy[i] = takt_strdup(env[i]);
	return copy;
}

/* Inside there are no other GPUs than the job's, so that they are counted from 0. */
static void test_gpus_are_counted_anew_inside(void **state)
{
	struct takt_container in = sample("docker");
	char **inside = copy_env();

	assert_int_equal(takt_container_env(&in, &inside, NULL), 0);
	assert_string_equal(inside[4], "CUDA_VISIBLE_DEVICES=0,1");
	in.gpu_count = 0;
	assert_int_equal(takt_container_env(&in, &inside, NULL), 0);
	assert_string_equal(inside[6], "NVIDIA_VISIBLE_DEVICES=void");
	assert_null(inside[7]);
	takt_jobenv_free(inside);

	inside = copy_env();
	in = sample("apptainer"); /* hides none */
	assert_int_equal(takt_container_env(&in, &inside, NULL), 0);
	assert_string_equal(inside[4], "CUDA_VISIBLE_DEVICES=0,3");
	takt_jobenv_free(inside);
}

static void test_a_directory_that_would_be_taken_for_options_is_refused(void **state)
{
	struct takt_container in = sample("podman");
	char **argv = NULL;

	in.cwd = "/a,readonly";
	assert_int_equal(takt_container_argv(&in, env, &argv, NULL), -EINVAL);
	in = sample("apptainer");
	in.cwd = "/a:/etc";
	assert_int_equal(takt_container_argv(&in, env, &argv, NULL), -EINVAL);
	assert_false(takt_container_mounts("apptainer", "/a:/etc"));
	assert_true(takt_container_mounts("docker", "/a:/etc"));
	assert_false(takt_container_mounts("docker", "/a,b"));
}

static void test_every_allocation_may_fail(void **state)
{
	struct takt_container in = sample("docker");
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc < 0; nth++) {
		char **argv = NULL, **cleanup = NULL, **inside = copy_env();

		takt_alloc_fail_nth(nth, 0);
		rc = takt_container_argv(&in, env, &argv, NULL);
		if (rc == 0)
			rc = takt_container_cleanup(&in, &cleanup, NULL);
		if (rc == 0)
			rc = takt_container_env(&in, &inside, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		takt_jobenv_free(argv);
		takt_jobenv_free(cleanup);
		takt_jobenv_free(inside);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_podman),
		cmocka_unit_test(test_podman_of_root_keeps_no_id),
		cmocka_unit_test(test_docker_on_a_terminal),
		cmocka_unit_test(test_docker_with_ranks_and_without_gpus),
		cmocka_unit_test(test_apptainer),
		cmocka_unit_test(test_gpus_are_counted_anew_inside),
		cmocka_unit_test(test_a_directory_that_would_be_taken_for_options_is_refused),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
