/* SPDX-License-Identifier: Apache-2.0 */
/* When a GPU that a job has left is handed on, and when it is set aside: a real queue, and a driver
 * that says what the test wants. */
#include "fake_machine.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/daemon.h"
#include "queue_kit.h"

enum {
	DRAIN_LIMIT_MS = 30
};

struct rig {
	struct kit kit;
	struct takt_daemon *daemon; /* the parts that the watch uses */
};

static void rig_open(struct rig *rig)
{
	struct takt_telemetry_config config = {.rate_hz = 10};
	struct takt_daemon *daemon = takt_zalloc(sizeof(*daemon));

	assert_non_null(daemon);
	kit_open(&rig->kit);
	daemon->sys = takt_sys_real();
	daemon->config.drain_limit_ms = DRAIN_LIMIT_MS;
	daemon->machine = open_fake();
	daemon->gpu_count = FAKE_GPUS;
	daemon->queue = rig->kit.queue;
	assert_int_equal(takt_telemetry_new(&config, daemon->machine, &daemon->telemetry, NULL), 0);
	assert_int_equal(takt_proc_cache_new("/nowhere", NULL, &daemon->procs), 0);
	rig->daemon = daemon;
}

static void rig_close(struct rig *rig)
{
	takt_telemetry_free(rig->daemon->telemetry);
	takt_machine_close(rig->daemon->machine);
	takt_proc_cache_free(rig->daemon->procs);
	takt_free(rig->daemon);
	kit_close(&rig->kit);
}

/* A fresh sample of every GPU is looked at, and what follows is done. */
static void look(struct rig *rig)
{
	struct takt_daemon *daemon = rig->daemon;

	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++)
		(void)sample_of(daemon->machine, gpu);
	(void)takt_telemetry_collect(daemon->telemetry, takt_mono_now(daemon->sys));
	takt_watch_tick(daemon, takt_mono_now(daemon->sys), takt_boot_now(daemon->sys));
	kit_settle(&rig->kit);
}

static enum takt_gpu_state gpu_state(const struct rig *rig, uint32_t gpu)
{
	uint64_t job;

	return takt_queue_gpu(rig->kit.queue, gpu, &job);
}

/* A job on all GPUs, begun and over. */
static void run_job(struct rig *rig)
{
	uint64_t id = kit_accept(&rig->kit, KIT_GPUS, 0);

	takt_watch_job_placed(rig->daemon, takt_queue_find(rig->kit.queue, id));
	kit_started(&rig->kit, id);
	takt_watch_job_over(rig->daemon, takt_queue_find(rig->kit.queue, id));
	kit_ended(&rig->kit, id, TAKT_END_EXITED, 0);
	kit_settle(&rig->kit);
}

static void clean_gpus_are_handed_on(void **state)
{
	struct rig rig;

	fake_reset();
	rig_open(&rig);
	look(&rig);
	run_job(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_DRAINING);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);
	rig_close(&rig);
}

static void a_free_gpu_with_a_process_on_it_is_not_given_out(void **state)
{
	struct rig rig;
	uint64_t id;

	fake_reset();
	rig_open(&rig);
	fake_procs(fake_at_driver[2], 1); /* whether the kernel knows that pid or not */
	look(&rig);
	id = kit_accept(&rig.kit, KIT_GPUS, 0);
	assert_null(kit_action(&rig.kit, TAKT_ACTION_START, id));
	fake_procs(fake_at_driver[2], 0);
	look(&rig);
	assert_non_null(kit_action(&rig.kit, TAKT_ACTION_START, id));
	rig_close(&rig);
}

/* Nobody can say that it is clean, so it is set aside and says why. */
static void without_a_list_of_processes_a_used_gpu_is_set_aside(void **state)
{
	struct rig rig;

	fake_reset();
	fake_hide("nvmlDeviceGetComputeRunningProcesses_v3");
	fake_hide("nvmlDeviceGetComputeRunningProcesses_v2");
	fake_hide("nvmlDeviceGetComputeRunningProcesses");
	rig_open(&rig);
	look(&rig);
	run_job(&rig);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_DRAINING);
	usleep(2 * DRAIN_LIMIT_MS * 1000);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_QUARANTINED);
	assert_non_null(strstr(takt_watch_note(rig.daemon, 0), "does not list"));
	rig_close(&rig);
}

static void trouble_that_is_over_leaves_the_other_one_said(void **state)
{
	struct rig rig;

	fake_reset();
	rig_open(&rig);
	look(&rig);
	fake_procs(fake_at_driver[1], 1);
	run_job(&rig);
	look(&rig);
	usleep(2 * DRAIN_LIMIT_MS * 1000);
	look(&rig);
	fake_lose(fake_at_driver[0], true);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_LOST);
	assert_non_null(strstr(takt_watch_note(rig.daemon, 0), "lost"));
	fake_lose(fake_at_driver[0], false);
	look(&rig);
	assert_string_equal(takt_watch_note(rig.daemon, 0), "");
	rig_close(&rig);
}

static uint64_t accept_half(struct rig *rig)
{
	struct takt_jobspec spec = kit_spec(1);

	spec.gpu_milli = 500;
	return kit_accept_spec(&rig->kit, spec);
}

/* Others go on there, so its memory says nothing: no process of the job that has left does. */
static void a_share_is_handed_on_while_others_use_the_gpu(void **state)
{
	struct rig rig;
	uint64_t stays, leaves, next, on;

	fake_reset();
	rig_open(&rig);
	rig.kit.gpu_count = 1;
	kit_restart(&rig.kit);
	rig.daemon->queue = rig.kit.queue;
	rig.daemon->gpu_count = 1;
	look(&rig);
	stays = accept_half(&rig);
	leaves = accept_half(&rig);
	next = accept_half(&rig);
	takt_watch_job_placed(rig.daemon, takt_queue_find(rig.kit.queue, stays));
	kit_started(&rig.kit, stays);
	kit_started(&rig.kit, leaves);
	takt_watch_job_over(rig.daemon, takt_queue_find(rig.kit.queue, leaves));
	kit_ended(&rig.kit, leaves, TAKT_END_EXITED, 0);
	kit_settle(&rig.kit);
	assert_null(kit_action(&rig.kit, TAKT_ACTION_START, next));
	fake_procs(fake_at_driver[0], 1); /* may be what is left of it */
	look(&rig);
	assert_null(kit_action(&rig.kit, TAKT_ACTION_START, next));
	fake_procs(fake_at_driver[0], 0);
	look(&rig);
	assert_non_null(kit_action(&rig.kit, TAKT_ACTION_START, next));
	assert_int_equal(takt_queue_gpu(rig.kit.queue, 0, &on), TAKT_GPU_RUNNING);
	assert_int_equal(on, stays);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_gpus_are_handed_on),
		cmocka_unit_test(a_free_gpu_with_a_process_on_it_is_not_given_out),
		cmocka_unit_test(without_a_list_of_processes_a_used_gpu_is_set_aside),
		cmocka_unit_test(a_share_is_handed_on_while_others_use_the_gpu),
		cmocka_unit_test(trouble_that_is_over_leaves_the_other_one_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
