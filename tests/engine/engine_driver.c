/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A very small daemon around the local engine, to be killed: it runs a number of jobs on a number
 * of GPUs and keeps what it must not forget in an append-only file, synced before it acts on it.
 *
 *	engine-driver DIR JOBS GPUS [stage]
 *
 * With `stage` jobs are staged while others have the GPUs.
 * Each job writes to DIR/witness; that, and not DIR/state, is what the test judges by. Ends with 0
 * once all jobs have exited, with 3 on anything that must not happen.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "engine/local/jobenv.h"
#include "engine/local/local_engine.h"

enum {
	MAX_JOBS = 64,
	MAX_GPUS = 8,
	PATH_LEN = 256,
	BROKEN = 3,
};

enum job_state {
	JOB_WAITING = 'w',
	JOB_STAGED = 's',
	JOB_LIVE = 'l',
	JOB_DONE = 'd'
};

struct job {
	int state; /* enum job_state */
	uint32_t attempt;
	unsigned int gpu;
};

static struct job jobs[MAX_JOBS + 1]; /* by id, from 1 */
static unsigned int job_count, gpu_count;
static const char *dir;
static int state_fd;
static struct takt_engine *engine;
static uint64_t next_action;
static bool stages;

static _Noreturn void broken(const char *what, uint64_t job_id)
{
	fprintf(stderr, "engine-driver: %s: job %" PRIu64 "\n", what, job_id);
	_exit(BROKEN);
}

static void write_down(unsigned int id)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%u %c %u %u\n", id, jobs[id].state, jobs[id].attempt,
			 jobs[id].gpu);

	if (write(state_fd, line, (size_t)n) != n || fdatasync(state_fd) < 0)
		broken("state file", id);
}

static void read_state(void)
{
	char path[PATH_LEN];
	unsigned int id, attempt, gpu;
	char state;
	FILE *file;

	for (id = 1; id <= job_count; id++)
		jobs[id] = (struct job){.state = JOB_WAITING, .attempt = 1};
	snprintf(path, sizeof(path), "%s/state", dir);
	file = fopen(path, "r");
	while (file && fscanf(file, "%u %c %u %u\n", &id, &state, &attempt, &gpu) == 4)
		jobs[id] = (struct job){state, attempt, gpu};
	if (file)
		fclose(file);
	state_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static char **copy(const char *const *strings)
{
	size_t n = 0;
	char **ret;

	while (strings[n])
		n++;
	ret = takt_calloc(n + 1, sizeof(*ret));
	for (size_t i = 0; i < n; i++)
		ret[i] = takt_strdup(strings[i]);
	return ret;
}

/* Holds a lock for its GPU and one for its job while it runs: never two at once of either. */
static int describe(void *ctx, const struct takt_action *start, const char *attempt_id,
		    struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
		    struct takt_err *err)
{
	static const char script[] =
		"exec 8>gpu$TAKT_GPUS 9>job$TAKT_JOB_ID;"
		"flock -n 8 && flock -n 9 || echo \"clash $TAKT_ATTEMPT\" >> witness;"
		"echo \"start $TAKT_JOB_ID $TAKT_ATTEMPT\" >> witness; sleep 0.02;"
		"echo \"end $TAKT_JOB_ID\" >> witness";
	const struct takt_jobenv_gpu gpu = {.index = jobs[start->job_id].gpu};
	char path[PATH_LEN * 8];
	char *user_env[] = {path, NULL};
	const struct takt_jobenv in = {.user_env = user_env,
				       .gpus = &gpu,
				       .gpu_count = start->kind == TAKT_ACTION_START,
				       .job_id = start->job_id,
				       .attempt_id = attempt_id};

	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	ret_spec->argv = copy((const char *const[]){"sh", "-c", script, NULL});
	ret_spec->cwd = takt_strdup(dir);
	if (start->kind == TAKT_ACTION_STAGE) {
		ret_spec->prefetch = copy((const char *const[]){"sleep", "0.01", NULL});
		ret_spec->prefetch_limit_ms = 1000;
	}
	ret_spec->grace_ms = 1000;
	*ret_uid = getuid();
	*ret_gid = getgid();
	return takt_jobenv_build(&in, &ret_spec->env, err);
}

static void requeue(struct job *job, unsigned int id)
{
	job->state = JOB_WAITING;
	job->attempt++;
	write_down(id);
}

static void hear(void *ctx, const struct takt_engine_event *event)
{
	unsigned int id = (unsigned int)event->job_id;
	struct job *job = &jobs[id];

	/* A START that was on its way when the staged attempt came to nothing. */
	if (event->kind == TAKT_ENGINE_OUTCOME && event->attempt != job->attempt)
		return;
	if (event->kind == TAKT_ENGINE_OUTCOME && event->outcome == TAKT_OUTCOME_FAILED) {
		requeue(job, id);
	} else if (event->kind == TAKT_ENGINE_STARTED && job->state != JOB_LIVE) {
		broken("started before its turn", id);
	} else if (event->kind == TAKT_ENGINE_OUTCOME && event->outcome != TAKT_OUTCOME_ACCEPTED) {
		broken(event->message, id);
	} else if (event->kind == TAKT_ENGINE_ENDED) {
		if ((job->state != JOB_LIVE && job->state != JOB_STAGED) ||
		    job->attempt != event->attempt)
			broken("ended twice or never begun", id);
		if (event->end == TAKT_END_EXITED && event->code == 0) {
			job->state = JOB_DONE;
			write_down(id);
		} else if (event->end == TAKT_END_NEVER_RAN || event->end == TAKT_END_LOST) {
			requeue(job, id);
		} else {
			broken("ended in an unexpected way", id);
		}
	}
}

static bool gpu_is_free(unsigned int gpu)
{
	for (unsigned int id = 1; id <= job_count; id++)
		if (jobs[id].state == JOB_LIVE && jobs[id].gpu == gpu)
			return false;
	return true;
}

/* On disk before it is handed over. */
static void start_job(unsigned int id, unsigned int gpu)
{
	struct takt_action action = {.id = ++next_action,
				     .kind = TAKT_ACTION_START,
				     .job_id = id,
				     .attempt = jobs[id].attempt,
				     .gpu_mask = 1ull << gpu,
				     .staged = jobs[id].state == JOB_STAGED};

	jobs[id].state = JOB_LIVE;
	jobs[id].gpu = gpu;
	write_down(id);
	if (takt_engine_apply(engine, &action, 1, NULL) < 0)
		broken("apply", id);
}

static void stage_job(unsigned int id)
{
	struct takt_action action = {.id = ++next_action,
				     .kind = TAKT_ACTION_STAGE,
				     .job_id = id,
				     .attempt = jobs[id].attempt};

	jobs[id].state = JOB_STAGED;
	write_down(id);
	if (takt_engine_apply(engine, &action, 1, NULL) < 0)
		broken("apply", id);
}

static void stage(void)
{
	unsigned int staged = 0;

	for (unsigned int id = 1; id <= job_count; id++)
		staged += jobs[id].state == JOB_STAGED;
	for (unsigned int id = 1; id <= job_count && staged < gpu_count; id++)
		if (jobs[id].state == JOB_WAITING) {
			stage_job(id);
			staged++;
		}
}

static void place(void)
{
	for (unsigned int gpu = 0; gpu < gpu_count; gpu++)
		for (unsigned int id = 1; id <= job_count && gpu_is_free(gpu); id++)
			if (jobs[id].state == JOB_WAITING || jobs[id].state == JOB_STAGED)
				start_job(id, gpu);
	if (stages)
		stage();
}

static void recover(void)
{
	struct takt_engine_live live;

	for (unsigned int id = 1; id <= job_count; id++) {
		live = (struct takt_engine_live){id,
						 jobs[id].attempt,
						 getuid(),
						 getgid(),
						 jobs[id].state == JOB_STAGED,
						 1ull << jobs[id].gpu};
		if ((jobs[id].state == JOB_LIVE || jobs[id].state == JOB_STAGED) &&
		    takt_engine_local_recover(engine, &live, 1, NULL) < 0)
			broken("recover", id);
	}
}

static bool all_done(void)
{
	for (unsigned int id = 1; id <= job_count; id++)
		if (jobs[id].state != JOB_DONE)
			return false;
	return true;
}

static void run(void)
{
	struct pollfd fd = {.fd = takt_engine_fd(engine), .events = POLLIN};
	uint64_t next_ns, now_ns;
	int ms;

	while (!all_done()) {
		place();
		if (takt_engine_pump(engine, takt_boot_now(takt_sys_real()), &next_ns, NULL) < 0)
			broken("pump", 0);
		now_ns = takt_boot_now(takt_sys_real()).ns;
		ms = 100;
		if (next_ns != 0 && next_ns < now_ns + 100 * TAKT_NS_PER_MS)
			ms = next_ns > now_ns ? (int)((next_ns - now_ns) / TAKT_NS_PER_MS) : 0;
		(void)poll(&fd, 1, ms);
	}
}

int main(int argc, char **argv)
{
	char jobs_dir[PATH_LEN], launch_socket[PATH_LEN];
	struct takt_engine_local_config config = {.sys = takt_sys_real(),
						  .jobs_dir = jobs_dir,
						  .launch_socket = launch_socket,
						  .describe = describe};
	unsigned long long n = 0, gpus = 0;

	stages = argc == 5 && strcmp(argv[4], "stage") == 0;
	if (argc != (stages ? 5 : 4) || takt_parse_u64(argv[2], 1, MAX_JOBS, &n) < 0 ||
	    takt_parse_u64(argv[3], 1, MAX_GPUS, &gpus) < 0)
		broken("usage", 0);
	dir = argv[1];
	job_count = (unsigned int)n;
	gpu_count = (unsigned int)gpus;
	snprintf(jobs_dir, sizeof(jobs_dir), "%s/jobs", dir);
	snprintf(launch_socket, sizeof(launch_socket), "%s/launch.sock", dir);
	read_state();
	if (takt_engine_local_new(&config, &engine, NULL) < 0)
		broken("engine", 0);
	takt_engine_watch(engine, hear, NULL);
	recover();
	run();
	takt_engine_free(engine);
	return 0;
}
