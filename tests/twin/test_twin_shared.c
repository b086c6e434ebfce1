/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many processes on one machine file, killed at random: no reader sees half a change, no writer
 * waits for a dead one, and a fork in the midst of a call harms nobody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "twin_fixture.h"
#include "twin_physics.h"
#include "twin_trouble.h"

enum {
	WRITERS = 8,
	READERS = 6,
	MOVERS = 2, /* change the machine's time, and plan faults */
	PROCESSES = WRITERS + READERS + MOVERS,
	KILLS = 200,
	ROUNDS = 2000
};

/* What the processes report back. */
struct tally {
	_Atomic uint64_t changes, readings, torn, backwards, failures, moves;
};

static struct tally *shared_tally(void)
{
	struct tally *tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(tally, MAP_FAILED);
	return tally;
}

/* A record's checksum for one place: what stands there depends on the number and on the place. */
static uint64_t checksum(uint64_t number, uint64_t place)
{
	uint64_t x = number * 0x9e3779b97f4a7c15ull + place * 0xbf58476d1ce4e5b9ull;

	return x ^ x >> 29;
}

/* The next record: its number, and checksums all over the state. */
static int write_record(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint64_t number = ++gpu->setter_calls;

	gpu->ecc_cor_volatile = checksum(number, TWIN_MAX_LOADS);
	gpu->load_count = TWIN_MAX_LOADS;
	for (unsigned i = 0; i < TWIN_MAX_LOADS; i++) {
		gpu->loads[i].pid = 1; /* of another namespace: nobody finds it dead */
		gpu->loads[i].memory_bytes = number;
		gpu->loads[i].work_ns = checksum(number, i);
	}
	return 0;
}

static bool whole(const struct twin_gpu *gpu)
{
	uint64_t number = gpu->setter_calls;

	if (number == 0)
		return true; /* nobody has written yet */
	for (uint64_t i = 0; i < TWIN_MAX_LOADS; i++) {
		if (i >= gpu->load_count || gpu->loads[i].memory_bytes != number ||
		    gpu->loads[i].work_ns != checksum(number, i))
			return false;
	}
	return gpu->ecc_cor_volatile == checksum(number, TWIN_MAX_LOADS);
}

static void write_once(struct tally *tally)
{
	if (twin_change(twin_fixture_map(), 0, write_record, NULL) == 0)
		tally->changes++;
	else
		tally->failures++;
}

/* What a reader saw last. */
struct seen {
	uint64_t number, energy, events, now_ns;
};

/* Records, energy, events and time never go back. */
static void read_once(struct tally *tally, struct seen *seen)
{
	struct twin_map *map = twin_fixture_map();
	struct twin_gpu gpu;
	struct seen now = {.now_ns = twin_map_now_ns(map)};

	twin_read(map, 0, &gpu);
	tally->readings++;
	tally->torn += !whole(&gpu);
	now.number = gpu.setter_calls;
	now.energy = gpu.counter_nj;
	now.events = gpu.event_count;
	tally->backwards += now.number < seen->number || now.energy < seen->energy ||
			    now.events < seen->events || now.now_ns < seen->now_ns;
	*seen = now;
}

static int plan_xid(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct twin_planned planned = {
		.at_ns = gpu->at_ns + 3000000, .value = 63, .trouble = TWIN_TROUBLE_XID};

	return twin_trouble_plan(gpu, &planned);
}

static void move_once(struct tally *tally, unsigned *seed)
{
	uint64_t speed = (uint64_t)rand_r(seed) % 30, skip_ns = (uint64_t)rand_r(seed) % 1000000000;

	twin_change(twin_fixture_map(), 0, plan_xid, NULL);
	if (twin_map_set_time(twin_fixture_map(), speed, skip_ns) == 0)
		tally->moves++;
	else
		tally->failures++;
}

enum role {
	WRITER,
	READER,
	MOVER
};

static enum role role_of(unsigned process)
{
	return process < WRITERS ? WRITER : process < WRITERS + READERS ? READER : MOVER;
}

static void work_for_ever(struct tally *tally, enum role role)
{
	unsigned seed = (unsigned)getpid();
	struct seen seen = {0};

	for (;;) {
		if (role == WRITER)
			write_once(tally);
		else if (role == READER)
			read_once(tally, &seen);
		else
			move_once(tally, &seed);
	}
}

static pid_t start(struct tally *tally, enum role role)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		work_for_ever(tally, role);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void nap_us(unsigned us)
{
	struct timespec ts = {.tv_nsec = us * 1000l};

	nanosleep(&ts, NULL);
}

static void killed_writers_leave_nothing_torn_and_nobody_stuck(void **state)
{
	struct tally *tally = shared_tally();
	pid_t pids[PROCESSES];
	unsigned seed = 12345;
	struct twin_gpu gpu;
	uint64_t before;

	for (unsigned i = 0; i < PROCESSES; i++)
		pids[i] = start(tally, role_of(i));
	for (unsigned kills = 0; kills < KILLS; kills++) {
		unsigned victim = (unsigned)rand_r(&seed) % PROCESSES;
		nap_us((unsigned)rand_r(&seed) % 5000);
		end(pids[victim]);
		pids[victim] = start(tally, role_of(victim));
	}
	before = tally->changes;
	for (unsigned i = 0; i < 2000 && tally->changes == before; i++)
		nap_us(5000);
	before = tally->changes - before;
	for (unsigned i = 0; i < PROCESSES; i++)
		end(pids[i]);
	assert_true(before > 0);
	assert_true(tally->readings > 0);
	assert_true(tally->moves > 0);
	assert_int_equal(tally->torn, 0);
	assert_int_equal(tally->backwards, 0);
	assert_int_equal(tally->failures, 0);
	/* every change that was told is there; who was killed may not have told of his last */
	twin_read(twin_fixture_map(), 0, &gpu);
	assert_in_range(gpu.setter_calls, tally->changes, tally->changes + KILLS + PROCESSES);
}

struct worker {
	pthread_t thread;
	struct tally *tally;
	bool writer;
};

static void *work_a_while(void *arg)
{
	const struct worker *worker = arg;
	struct seen seen = {0};

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (worker->writer)
			write_once(worker->tally);
		else
			read_once(worker->tally, &seen);
	}
	return NULL;
}

/* The same by threads of one process. check_threads.py looks whether the library's calls race. */
static void threads_write_and_read_as_processes_do(void **state)
{
	struct worker workers[WRITERS + READERS];
	struct tally tally = {0};
	struct twin_gpu gpu;

	for (unsigned i = 0; i < WRITERS + READERS; i++) {
		workers[i] = (struct worker){.tally = &tally, .writer = i < WRITERS};
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, work_a_while, &workers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS + READERS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_int_equal(tally.torn + tally.backwards + tally.failures, 0);
	twin_read(twin_fixture_map(), 0, &gpu);
	assert_int_equal(gpu.setter_calls, WRITERS * ROUNDS);
}

static int die_half_way(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	gpu->limit_mw = 1;
	raise(SIGKILL);
	return 0;
}

static void a_writer_that_dies_inside_changes_nothing(void **state)
{
	struct twin_gpu gpu;
	pid_t pid = fork();

	if (pid == 0)
		twin_change(twin_fixture_map(), 0, die_half_way, NULL);
	waitpid(pid, NULL, 0);
	twin_read(twin_fixture_map(), 0, &gpu);
	assert_int_equal(gpu.limit_mw, 700000);
	assert_int_equal(twin_change(twin_fixture_map(), 0, write_record, NULL), 0);
}

static int stop_half_way(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	raise(SIGSTOP);
	return 0;
}

/* A stopped writer holds its lock: others are told so in bounded time, and readers do not notice.
 */
static void a_stopped_writer_blocks_no_reader(void **state)
{
	struct twin_gpu gpu;
	int same, other;
	pid_t pid = fork();

	if (pid == 0)
		twin_change(twin_fixture_map(), 0, stop_half_way, NULL);
	waitpid(pid, NULL, WUNTRACED);
	twin_read(twin_fixture_map(), 0, &gpu);
	same = twin_change(twin_fixture_map(), 0, write_record, NULL);
	other = twin_change(twin_fixture_map(), 1, write_record, NULL);
	end(pid);
	assert_int_equal(gpu.limit_mw, 700000);
	assert_int_equal(same, -ETIMEDOUT);
	assert_int_equal(other, 0);
}

static void a_map_without_memory_is_an_error_and_no_leak(void **state)
{
	struct twin_map *map = NULL;
	struct takt_err err = {0};

	for (unsigned long nth = 1;; nth++) {
		takt_alloc_fail_nth(nth, 0);
		if (twin_map_open(getenv("TAKT_TWIN"), &map, &err) == 0)
			break;
		assert_true(err.rc < 0);
		assert_null(map);
		assert_true(nth < 10);
	}
	takt_alloc_fail_nth(0, 0);
	twin_map_close(map);
}

enum {
	THREADS = 8,
	SETS = 300
};

static void *set_and_read(void *arg)
{
	struct nvml_device *device = twin_gpu_handle(0);
	uintptr_t failures = 0;
	uint32_t value;

	for (unsigned i = 0; i < SETS; i++) {
		failures += NVML(nvmlDeviceSetGpuLockedClocks)(device, 345, 990) != NVML_SUCCESS;
		failures +=
			NVML(nvmlDeviceGetClockInfo)(device, NVML_CLOCK_SM, &value) != NVML_SUCCESS;
	}
	return (void *)failures;
}

/* Threads exclude each other as processes do: not one change is lost. */
static void threads_lose_no_change(void **state)
{
	pthread_t threads[THREADS];
	uintptr_t failures = 0;
	struct twin_gpu gpu;
	void *result;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, set_and_read, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		failures += (uintptr_t)result;
	}
	assert_int_equal(failures, 0);
	twin_read(twin_fixture_map(), 0, &gpu);
	assert_int_equal(gpu.setter_calls, THREADS * SETS);
}

static atomic_bool enough;

static void *read_until_enough(void *arg)
{
	struct nvml_device *device = arg;
	uint32_t value;

	while (!enough)
		NVML(nvmlDeviceGetPowerUsage)(device, &value);
	return NULL;
}

static int use_everything(void)
{
	uint32_t value;

	for (uint32_t i = 0; i < 8; i++) {
		struct nvml_device *device = twin_gpu_handle(i);
		if (NVML(nvmlDeviceGetPowerUsage)(device, &value) != NVML_SUCCESS ||
		    NVML(nvmlDeviceSetGpuLockedClocks)(device, 345, 990) != NVML_SUCCESS ||
		    NVML(nvmlDeviceResetGpuLockedClocks)(device) != NVML_SUCCESS)
			return 1;
	}
	return 0;
}

static void a_fork_amid_calls_leaves_the_child_working(void **state)
{
	pthread_t threads[2];
	int status;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	enough = false;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, read_until_enough, twin_gpu_handle(i)),
			0);
	for (unsigned i = 0; i < 40; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			alarm(120);
			_exit(use_everything());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	enough = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* A child goes on with the library that it was forked with: calls, event sets, samples; what it
 * starts in its place finds nothing of it open, and what it shuts down stays open for its parent.
 */
static int go_on_and_exec(struct nvml_event_set *set)
{
	struct nvml_gpm_sample *sample;
	struct nvml_event_data data;

	if (use_everything() != 0 || twin_run("fault 1 xid=31") != 0)
		return 2;
	if (NVML(nvmlEventSetWait_v2)(set, &data, 120000) != NVML_SUCCESS || data.event_data != 31)
		return 3;
	if (NVML(nvmlGpmSampleAlloc)(&sample) != NVML_SUCCESS ||
	    NVML(nvmlGpmSampleGet)(twin_gpu_handle(0), sample) != NVML_SUCCESS ||
	    NVML(nvmlGpmSampleFree)(sample) != NVML_SUCCESS)
		return 4;
	if (NVML(nvmlShutdown)() != NVML_SUCCESS)
		return 5;
	execl("/bin/sh", "sh", "-c",
	      "readlink /proc/self/fd/* | grep -qF \"$TAKT_TWIN\" && exit 6; "
	      "exec \"$TAKT_TWIN_BIN\" state >/dev/null",
	      (char *)NULL);
	return 7;
}

static void a_forked_child_goes_on_and_execs(void **state)
{
	struct nvml_event_set *set;
	struct nvml_event_data data;
	int status;
	pid_t pid;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
	assert_int_equal(
		NVML(nvmlDeviceRegisterEvents)(twin_gpu_handle(1), NVML_EVENT_XID_CRITICAL, set),
		NVML_SUCCESS);
	pid = fork();
	if (pid == 0) {
		alarm(120);
		_exit(go_on_and_exec(set));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* the parent has its own place in the events, and its library is open */
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 120000), NVML_SUCCESS);
	assert_int_equal(data.event_data, 31);
	assert_int_equal(NVML(nvmlEventSetFree)(set), NVML_SUCCESS);
}

/* Programs that become daemons close every descriptor they have. */
static void closing_all_descriptors_does_no_harm(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (NVML(nvmlInit_v2)() != NVML_SUCCESS)
			_exit(2);
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		_exit(use_everything());
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_replaced_machine_is_taken_up_at_the_next_init(void **state)
{
	char arguments[256];
	uint32_t mhz;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	snprintf(arguments, sizeof(arguments), "create dgx1-v100 --replace --path %s",
		 getenv("TAKT_TWIN"));
	assert_int_equal(twin_run(arguments), 0);
	assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	NVML(nvmlDeviceGetMaxClockInfo)(twin_gpu_handle(0), NVML_CLOCK_SM, &mhz);
	assert_int_equal(mhz, 1530);
}

#define ON_H100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_h100, twin_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_H100(killed_writers_leave_nothing_torn_and_nobody_stuck),
		ON_H100(threads_write_and_read_as_processes_do),
		ON_H100(a_writer_that_dies_inside_changes_nothing),
		ON_H100(a_stopped_writer_blocks_no_reader),
		ON_H100(threads_lose_no_change),
		ON_H100(a_map_without_memory_is_an_error_and_no_leak),
		ON_H100(a_fork_amid_calls_leaves_the_child_working),
		ON_H100(a_forked_child_goes_on_and_execs),
		ON_H100(closing_all_descriptors_does_no_harm),
		ON_H100(a_replaced_machine_is_taken_up_at_the_next_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
