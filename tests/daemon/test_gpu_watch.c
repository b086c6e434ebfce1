/* SPDX-License-Identifier: Apache-2.0 */
/* When a GPU that a job has left is handed on, and when it is set aside: a real queue, and a driver
 * that says what the test wants. */
#include "fake_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/daemon.h"
#include "daemon/gpu_mig.h"
#include "daemon/gpu_watch.h"
#include "queue_kit.h"

enum {
	DRAIN_LIMIT_MS = 3600000 /* no test takes that long: it passes when a test says so */
};

struct rig {
	struct kit kit;
	struct takt_daemon *daemon; /* the parts that the watch uses */
	uint64_t later_ns;	    /* what has passed besides the real time */
};

static void rig_open_on(struct rig *rig, struct takt_machine_config machine)
{
	struct takt_telemetry_config config = {.rate_hz = 10};
	struct takt_daemon *daemon = takt_zalloc(sizeof(*daemon));

	assert_non_null(daemon);
	rig->later_ns = 0;
	kit_open(&rig->kit);
	daemon->sys = takt_sys_real();
	daemon->config.drain_limit_ms = DRAIN_LIMIT_MS;
	daemon->machine = open_with(machine);
	daemon->gpu_count = FAKE_GPUS;
	daemon->queue = rig->kit.queue;
	daemon->store = rig->kit.store;
	assert_int_equal(takt_telemetry_new(&config, daemon->machine, &daemon->telemetry, NULL), 0);
	assert_int_equal(takt_proc_cache_new("/nowhere", -1, NULL, &daemon->procs), 0);
	assert_int_equal(takt_mig_new(daemon, &daemon->mig, NULL), 0);
	assert_int_equal(takt_leases_new(daemon, &daemon->leases, NULL), 0);
	rig->daemon = daemon;
}

static void rig_open(struct rig *rig)
{
	rig_open_on(rig, fake_config());
}

static void rig_close(struct rig *rig)
{
	takt_telemetry_free(rig->daemon->telemetry);
	takt_machine_close(rig->daemon->machine);
	takt_proc_cache_free(rig->daemon->procs);
	takt_mig_free(rig->daemon->mig);
	takt_leases_free(rig->daemon->leases);
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
	takt_watch_tick(daemon, takt_mono_now(daemon->sys),
			takt_boot_add(takt_boot_now(daemon->sys), rig->later_ns));
	kit_settle(&rig->kit);
}

static void let_drain_limit_pass(struct rig *rig)
{
	rig->later_ns += 2 * DRAIN_LIMIT_MS * TAKT_NS_PER_MS;
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
	let_drain_limit_pass(&rig);
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
	let_drain_limit_pass(&rig);
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

/* The machine's GPU 0, by a copy of the kernel's sysfs. */
static void put_on_bus(const char *root, const char *status)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "d='%s/bus/pci/devices/0000:07:00.0/power'; mkdir -p $d && echo %s "
		 ">$d/runtime_status",
		 root, status);
	assert_int_equal(system(text), 0);
}

static struct takt_mono read_at(const struct rig *rig, uint32_t gpu)
{
	const struct takt_gpu_reading *reading;

	assert_int_equal(takt_telemetry_latest(rig->daemon->telemetry, gpu, in_ms(0), &reading), 0);
	return reading->at;
}

/* No reading has come since, of one that sleeps and of one that does not. */
static void a_gpu_that_wakes_is_not_lost_as_soon_as_another(void **state)
{
	char root[] = "/tmp/takt-asleep-XXXXXX", text[64];
	struct takt_machine_config machine = fake_config();
	struct takt_boot boot;
	struct rig rig;

	fake_reset();
	assert_non_null(mkdtemp(root));
	put_on_bus(root, "suspended");
	machine.sysfs_root = root;
	machine.leaves_asleep = true;
	machine.call_deadline_ns = 60 * TAKT_NS_PER_S;
	machine.wake_deadline_ns = 600 * TAKT_NS_PER_S;
	rig_open_on(&rig, machine);
	look(&rig);
	boot = takt_boot_now(rig.daemon->sys);
	takt_watch_tick(rig.daemon, takt_mono_add(read_at(&rig, 1), 300 * TAKT_NS_PER_S), boot);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);
	assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_LOST);
	takt_watch_tick(rig.daemon, takt_mono_add(read_at(&rig, 0), 700 * TAKT_NS_PER_S), boot);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_LOST);
	rig_close(&rig);
	snprintf(text, sizeof(text), "rm -r '%s'", root);
	assert_int_equal(system(text), 0);
}

/* It is free for jobs, and is looked at while one has it or has not left it clean. */
static void a_gpu_that_sleeps_is_looked_at_for_jobs_alone(void **state)
{
	char root[] = "/tmp/takt-asleep-XXXXXX", text[64];
	struct takt_machine_config machine = fake_config();
	struct rig rig;
	unsigned calls;
	uint64_t id;

	fake_reset();
	assert_non_null(mkdtemp(root));
	put_on_bus(root, "suspended");
	machine.sysfs_root = root;
	machine.leaves_asleep = true;
	rig_open_on(&rig, machine);
	look(&rig);
	calls = fake_calls_about(fake_at_driver[0]);
	for (int i = 0; i < 10; i++)
		look(&rig);
	assert_int_equal(fake_calls_about(fake_at_driver[0]), calls);
	assert_true(takt_watch_asleep(rig.daemon, 0));
	assert_false(takt_watch_asleep(rig.daemon, 1));
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);

	rig.daemon->watch[0].ill = true; /* nothing but readings would make it well again */
	look(&rig);
	look(&rig);
	assert_false(takt_watch_asleep(rig.daemon, 0));
	rig.daemon->watch[0].ill = false;
	look(&rig);
	look(&rig);
	assert_true(takt_watch_asleep(rig.daemon, 0));

	id = kit_accept(&rig.kit, KIT_GPUS, 0);
	takt_watch_job_placed(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_started(&rig.kit, id);
	look(&rig);
	assert_false(takt_watch_asleep(rig.daemon, 0));
	look(&rig);
	assert_false(takt_watch_asleep(rig.daemon, 0));
	takt_watch_job_over(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_ended(&rig.kit, id, TAKT_END_EXITED, 0);
	kit_settle(&rig.kit);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_DRAINING);
	/* What was used before it came is not known: its memory has to stand still for a while. */
	for (int i = 0; i < 6000 && gpu_state(&rig, 0) != TAKT_GPU_FREE; i++) {
		usleep(20000);
		look(&rig);
		assert_false(takt_watch_asleep(rig.daemon, 0));
	}
	look(&rig);
	look(&rig);
	assert_true(takt_watch_asleep(rig.daemon, 0));
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);
	rig_close(&rig);
	snprintf(text, sizeof(text), "rm -r '%s'", root);
	assert_int_equal(system(text), 0);
}

/* The daemon dies and comes back, with what it has on disk. */
static void restart(struct rig *rig)
{
	kit_restart(&rig->kit);
	rig->daemon->queue = rig->kit.queue;
	rig->daemon->store = rig->kit.store;
	memset(rig->daemon->watch, 0, sizeof(rig->daemon->watch));
	assert_int_equal(takt_drain_load(rig->daemon, NULL), 0);
}

/* A job that is over and whose memory is not back is waited for by the next daemon, too, by what
 * was used before it came and not until it stands still; once it is back that is forgotten. */
static void a_drain_goes_on_over_a_restart(void **state)
{
	struct rig rig;
	uint64_t id;

	fake_reset();
	rig_open(&rig);
	look(&rig);
	id = kit_accept(&rig.kit, KIT_GPUS, 0);
	takt_watch_job_placed(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_started(&rig.kit, id);
	fake_more_used(fake_at_driver[1], 1ull << 30);
	takt_watch_job_over(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_ended(&rig.kit, id, TAKT_END_EXITED, 0);
	kit_settle(&rig.kit);
	restart(&rig);
	assert_null(takt_queue_find(rig.kit.queue, id));
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_DRAINING);
	for (int i = 0; i < 3; i++) {
		usleep(600000); /* it does not move */
		look(&rig);
		assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);
		assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_DRAINING);
	}
	fake_more_used(fake_at_driver[1], 0);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_FREE);
	look(&rig);
	restart(&rig);
	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++)
		assert_int_equal(gpu_state(&rig, gpu), TAKT_GPU_FREE);
	rig_close(&rig);
}

/* One that runs on over a restart has its baseline still. */
static void what_was_used_before_a_job_came_outlives_the_daemon(void **state)
{
	struct rig rig;
	uint64_t id;

	fake_reset();
	rig_open(&rig);
	look(&rig);
	id = kit_accept(&rig.kit, KIT_GPUS, 0);
	takt_watch_job_placed(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_started(&rig.kit, id);
	kit_settle(&rig.kit);
	restart(&rig);
	kit_adopted(&rig.kit, id);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_RUNNING);
	fake_more_used(fake_at_driver[0], 1ull << 30);
	takt_watch_job_over(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_ended(&rig.kit, id, TAKT_END_EXITED, 0);
	look(&rig);
	usleep(1200000);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_DRAINING);
	fake_more_used(fake_at_driver[0], 0);
	look(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);
	rig_close(&rig);
}

/* Nothing of that boot is in the GPU any more, whatever is used of it now. */
static void a_drain_of_an_earlier_boot_is_over(void **state)
{
	struct rig rig;
	char key[128];

	fake_reset();
	rig_open(&rig);
	snprintf(key, sizeof(key), "drain/%s", takt_machine_facts(rig.daemon->machine, 0)->uuid);
	assert_true(takt_store_keep(rig.kit.store, key, "other-boot 7 1 0", 0, NULL) > 0);
	kit_settle(&rig.kit);
	restart(&rig);
	assert_int_equal(gpu_state(&rig, 0), TAKT_GPU_FREE);
	rig_close(&rig);
}

/* The GPUs' watcher dies with the daemon. */
static void restart_blank(struct rig *rig)
{
	struct takt_telemetry_config config = {0};

	takt_telemetry_free(rig->daemon->telemetry);
	assert_int_equal(
		takt_telemetry_new(&config, rig->daemon->machine, &rig->daemon->telemetry, NULL),
		0);
	look(rig);
	restart(rig);
	assert_int_equal(takt_accounts_load(rig->daemon, NULL), 0);
}

static const struct takt_queue_job *a_job_with_an_account(struct rig *rig)
{
	uint64_t id = kit_accept(&rig->kit, 2, 0);
	const struct takt_queue_job *job = takt_queue_find(rig->kit.queue, id);

	kit_started(&rig->kit, id);
	kit_settle(&rig->kit);
	assert_int_equal(
		takt_telemetry_account_open(rig->daemon->telemetry, id, job->row.gpu_mask, NULL),
		0);
	return job;
}

static void tick_at(struct rig *rig, uint64_t ms)
{
	takt_accounts_tick(rig->daemon, in_ms(ms));
	kit_settle(&rig->kit);
}

/* Not before, and no longer than the attempt. */
static void an_account_is_kept_once_a_minute(void **state)
{
	const struct takt_queue_job *job;
	struct takt_account account;
	struct rig rig;
	uint64_t id;

	fake_reset();
	rig_open(&rig);
	look(&rig);
	tick_at(&rig, 0);
	(void)a_job_with_an_account(&rig);
	tick_at(&rig, 50000);
	restart_blank(&rig);
	assert_int_equal(takt_telemetry_account_at(rig.daemon->telemetry, 0), 0);
	job = a_job_with_an_account(&rig);
	id = job->row.id;
	tick_at(&rig, 120000);
	restart_blank(&rig);
	assert_int_equal(takt_telemetry_account_at(rig.daemon->telemetry, 0), id);
	assert_int_equal(takt_telemetry_account_close(rig.daemon->telemetry, id, &account), 0);
	assert_true(account.written);
	takt_account_forget(rig.daemon, takt_queue_find(rig.kit.queue, id));
	kit_settle(&rig.kit);
	restart_blank(&rig);
	assert_int_equal(takt_telemetry_account_at(rig.daemon->telemetry, 0), 0);
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
		cmocka_unit_test(a_gpu_that_sleeps_is_looked_at_for_jobs_alone),
		cmocka_unit_test(a_gpu_that_wakes_is_not_lost_as_soon_as_another),
		cmocka_unit_test(a_share_is_handed_on_while_others_use_the_gpu),
		cmocka_unit_test(a_drain_goes_on_over_a_restart),
		cmocka_unit_test(what_was_used_before_a_job_came_outlives_the_daemon),
		cmocka_unit_test(a_drain_of_an_earlier_boot_is_over),
		cmocka_unit_test(an_account_is_kept_once_a_minute),
		cmocka_unit_test(trouble_that_is_over_leaves_the_other_one_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
