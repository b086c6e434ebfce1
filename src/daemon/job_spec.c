/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine starts for a job: the user's words plus the GPUs, CPUs and names that takt gives
 * it. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/event_hooks.h"
#include "daemon/job_memory.h"
#include "device/mig_caps.h"
#include "engine/local/container.h"
#include "engine/local/jobenv.h"
#include "launch/attempt.h"

/* NULL is a list of nothing: a description may leave out its environment. */
static char **copy_list(char *const *list)
{
	size_t n = 0;
	char **copy;

	while (list && list[n])
		n++;
	copy = takt_calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = takt_strdup(list[i]);
		if (!copy[i]) {
			takt_jobenv_free(copy);
			return NULL;
		}
	}
	return copy;
}

/* CPUs that this process may use at all, which is what its jobs may use. */
static void usable_cpus(uint64_t ret[TAKT_ATTEMPT_CPU_WORDS])
{
	cpu_set_t set;

	memset(ret, 0, TAKT_ATTEMPT_CPU_WORDS * sizeof(*ret));
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE && cpu < TAKT_ATTEMPT_CPU_WORDS * 64; cpu++)
		if (CPU_ISSET(cpu, &set))
			ret[cpu / 64] |= 1ull << (cpu % 64);
}

int32_t takt_daemon_cpu_milli(void)
{
	uint64_t usable[TAKT_ATTEMPT_CPU_WORDS];
	int32_t count = 0;

	usable_cpus(usable);
	for (size_t w = 0; w < TAKT_ATTEMPT_CPU_WORDS; w++)
		count += __builtin_popcountll(usable[w]);
	return count * 1000;
}

/* The usable CPUs near the job's GPUs: the union of their affinities. Their number; 0 = leave the
 * job alone, because one affinity is not known or none of those CPUs is there (a simulated machine
 * has more than this one). */
static uint32_t near_cpus(const struct takt_daemon *daemon, uint64_t gpu_mask,
			  uint64_t ret_cpus[TAKT_ATTEMPT_CPU_WORDS])
{
	uint64_t usable[TAKT_ATTEMPT_CPU_WORDS];
	uint32_t count = 0;

	memset(ret_cpus, 0, TAKT_ATTEMPT_CPU_WORDS * sizeof(*ret_cpus));
	usable_cpus(usable);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (!(facts->has & TAKT_FACT_CPUS))
			return 0;
		for (size_t w = 0; w < TAKT_ATTEMPT_CPU_WORDS; w++)
			ret_cpus[w] |= facts->cpus[w] & usable[w];
	}
	for (size_t w = 0; w < TAKT_ATTEMPT_CPU_WORDS; w++)
		count += (uint32_t)__builtin_popcountll(ret_cpus[w]);
	return count;
}

/*
 * On a simulated machine a job has to see the same simulated driver as takt does, whoever submitted
 * it from whatever terminal: these of the daemon's own variables are the driver there.
 */
/* Where the simulated driver's library lies: where it was named, else where the loader was told. */
static const char *twin_variable(const struct takt_daemon *daemon, const char *name,
				 char dir[PATH_MAX])
{
	char *slash;

	if (strcmp(name, "LD_LIBRARY_PATH") != 0 || !daemon->config.nvml_path[0])
		return getenv(name);
	takt_strcpy(dir, PATH_MAX, daemon->config.nvml_path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return dir;
}

static int add_twin_env(const struct takt_daemon *daemon, char *const *user_env, char ***ret)
{
	static const char *const names[] = {"TAKT_TWIN", "TAKT_TWIN_PROGRAM", "LD_LIBRARY_PATH"};
	size_t n = 0, extra = 0;
	char **env = copy_list(user_env);

	if (!env)
		return -ENOMEM;
	*ret = env;
	if (!takt_machine_info(daemon->machine)->simulated)
		return 0;
	while (env[n])
		n++;
	env = takt_reallocarray(env, n + TAKT_ARRAY_LEN(names) + 1, sizeof(*env));
	if (!env)
		return -ENOMEM;
	*ret = env;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		char dir[PATH_MAX];
		const char *value = twin_variable(daemon, names[i], dir);
		struct takt_str text = TAKT_STR(64 * 1024);

		if (!value)
			continue;
		takt_str_addf(&text, "%s=%s", names[i], value);
		env[n + extra] = takt_str_take(&text);
		if (!env[n + extra])
			return -ENOMEM;
		env[n + ++extra] = NULL;
	}
	return 0;
}

/* The devices of the job: its GPUs in their order, or its MIG instances. */
static uint32_t list_devices(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			     uint64_t gpu_mask, struct takt_jobenv_gpu ret[TAKT_DEVICE_MAX_GPUS])
{
	size_t held;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &held);
	uint32_t count = 0;

	for (uint32_t gpu = 0; !job->spec.mig[0] && gpu < daemon->gpu_count; gpu++)
		if (gpu_mask >> gpu & 1)
			ret[count++] = (struct takt_jobenv_gpu){
				gpu, takt_machine_facts(daemon->machine, gpu)->uuid};
	for (size_t i = 0; job->spec.mig[0] && i < held && count < TAKT_DEVICE_MAX_GPUS; i++)
		if (holdings[i].job_id == job->row.id && !holdings[i].left)
			ret[count++] = (struct takt_jobenv_gpu){
				holdings[i].gpu,
				takt_queue_instance_uuid(daemon->queue, holdings[i].instance)};
	return count;
}

/* "" = it runs in none. Where none is installed the start fails, which says so. */
static const char *runtime_of(const struct takt_queue_job *job)
{
	const char *first;

	if (!job->spec.container || job->spec.container_runtime[0])
		return job->spec.container_runtime;
	first = takt_container_first();
	return first ? first : "podman";
}

/* Where the job may say how far it is; NULL where that cannot be mounted into its container. */
static const char *progress_path(const struct takt_daemon *daemon, const struct takt_queue_job *job,
				 uint32_t attempt, char ret[PATH_MAX])
{
	char file[TAKT_PROGRESS_PATH];

	takt_job_progress_path(job->row.id, attempt, file);
	if (snprintf(ret, PATH_MAX, "%s/jobs/%s", daemon->config.state_dir, file) >= PATH_MAX ||
	    (job->spec.container && !takt_container_mounts(runtime_of(job), ret)))
		return NULL;
	return ret;
}

static int build_env(struct takt_daemon *daemon, const struct takt_queue_job *job,
		     const struct takt_action *start, const char *attempt_id,
		     struct takt_attempt_spec *spec, struct takt_err *err)
{
	char progress[PATH_MAX];
	struct takt_jobenv_gpu gpus[TAKT_DEVICE_MAX_GPUS];
	struct takt_jobenv in = {
		.gpus = gpus,
		.by_uuid = job->spec.visible == TAKT_VISIBLE_UUID || job->spec.mig[0],
		.cpu_count =
			job->spec.cpu_milli ? (job->spec.cpu_milli + 999) / 1000 : spec->cpu_count,
		.job_id = job->row.id,
		.processes = job->spec.ranks,
		.restarts = job->row.restarts,
		.array_id = job->spec.array_id,
		.array_index = job->spec.array_index,
		.checkpoint_dir = job->spec.checkpoint_dir,
		.progress = progress_path(daemon, job, start->attempt, progress),
		.params = job->spec.params,
		.attempt_id = attempt_id,
		.gpu_milli = job->row.share_milli,
		.gpu_mem_mib = job->row.mem_held_mib,
	};
	char **with_twin = NULL;
	int rc = add_twin_env(daemon, job->spec.env, &with_twin);

	in.gpu_count = list_devices(daemon, job, start->gpu_mask, gpus);
	in.user_env = with_twin;
	in.mps = in.gpu_mem_mib && takt_mps_runs(daemon->config.mps_dir, with_twin);
	if (in.mps)
		takt_queue_memory_limited(daemon->queue, job->row.id);
	if (rc == 0)
		rc = takt_jobenv_build(&in, &spec->env, err);
	takt_jobenv_free(with_twin);
	return rc;
}

static const struct takt_gpu_instance *instance_of(const struct takt_gpu_facts *facts,
						   const char *uuid)
{
	for (uint32_t i = 0; i < facts->instance_count; i++)
		if (strcmp(facts->instances[i].uuid, uuid) == 0)
			return &facts->instances[i];
	return NULL;
}

/* The nodes of an instance that the job holds, besides its GPU's. */
static int add_caps(const struct takt_daemon *daemon, const struct takt_queue_holding *holding,
		    struct takt_job_limits *limits)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, holding->gpu);
	const struct takt_gpu_instance *instance =
		instance_of(facts, takt_queue_instance_uuid(daemon->queue, holding->instance));
	int rc;

	if (!instance || limits->cap_count + TAKT_MIG_CAPS_EACH > TAKT_LIMITS_MAX_CAPS)
		return -TAKT_E_NOT_FOUND;
	rc = takt_mig_caps(TAKT_MIG_CAPS_DIR, facts->minor, instance,
			   &limits->cap_minor[limits->cap_count], NULL);
	if (rc == 0)
		limits->cap_count += TAKT_MIG_CAPS_EACH;
	return rc;
}

static void fill_caps(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		      struct takt_job_limits *limits)
{
	size_t held;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &held);

	for (size_t i = 0; i < held; i++)
		if (holdings[i].job_id == job->row.id && holdings[i].instance >= 0 &&
		    !holdings[i].left && add_caps(daemon, &holdings[i], limits) < 0)
			limits->any_device = true;
}

/* What the launcher holds the job to. The node of a GPU bears the number that the driver gave it.
 */
static void fill_limits(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			uint64_t gpu_mask, struct takt_attempt_spec *spec)
{
	struct takt_job_limits *limits = &spec->limits;

	limits->cpu_milli = job->spec.cpu_milli;
	limits->mem_mib = job->spec.mem_mib;
	limits->processes = daemon->config.job_processes;
	limits->cpu_count = spec->cpu_count;
	memcpy(limits->cpus, spec->cpus, sizeof(limits->cpus));
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (facts->has & TAKT_FACT_MINOR)
			limits->gpu_minor[limits->gpu_count++] = (uint16_t)facts->minor;
		else
			limits->any_device = true;
	}
	if (job->spec.mig[0])
		fill_caps(daemon, job, limits);
}

/* The port where ranks meet is found when their turn has come; what is staged has the first one in
 * its place. */
static int describe_processes(struct takt_daemon *daemon, const struct takt_queue_job *job,
			      bool stage, const char *attempt_id, struct takt_attempt_spec *spec,
			      struct takt_err *err)
{
	spec->ranks = job->spec.ranks;
	spec->rank_prefix = job->spec.rank_prefix;
	spec->pty = job->spec.pty;
	spec->master_port = spec->ranks ? daemon->config.rank_port_first : 0;
	if (stage)
		return 0;
	return takt_attempts_begin(daemon->attempts, job, attempt_id, &spec->master_port, err);
}

static int add_prefetch(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			struct takt_attempt_spec *spec, struct takt_err *err)
{
	if (!job->spec.prefetch)
		return 0;
	spec->prefetch = copy_list(job->spec.prefetch);
	spec->prefetch_limit_ms = daemon->config.prefetch_limit_ms;
	return spec->prefetch ? 0
			      : takt_err_set(err, -ENOMEM, "the prefetch of job %llu",
					     (unsigned long long)job->row.id);
}

/* The command becomes the runtime's. Where there is none its exec fails, which says so. */
static int describe_container(struct takt_daemon *daemon, const struct takt_queue_job *job,
			      const struct takt_action *start, const char *attempt_id,
			      struct takt_attempt_spec *spec, struct takt_err *err)
{
	const char *uuids[TAKT_DEVICE_MAX_GPUS];
	char progress[PATH_MAX];
	struct takt_jobenv_gpu gpus[TAKT_DEVICE_MAX_GPUS];
	struct takt_container in = {
		.runtime = runtime_of(job),
		.image = job->spec.container,
		.args = job->spec.container_args,
		.argv = job->spec.argv,
		.cwd = job->spec.cwd,
		.gpus = uuids,
		.gpu_count = list_devices(daemon, job, start->gpu_mask, gpus),
		.progress = progress_path(daemon, job, start->attempt, progress),
		.uid = job->row.uid,
		.gid = job->row.gid,
		.job_id = job->row.id,
		.attempt_id = attempt_id,
		.pty = job->spec.pty,
		.ranks = job->spec.ranks > 0,
	};
	char **argv;
	int rc;

	if (!in.image)
		return 0;
	spec->progress = in.progress != NULL;
	for (size_t i = 0; i < in.gpu_count; i++)
		uuids[i] = gpus[i].uuid;
	rc = takt_container_env(&in, &spec->env, err);
	if (rc == 0)
		rc = takt_container_argv(&in, spec->env, &argv, err);
	if (rc < 0)
		return rc;
	takt_jobenv_free(spec->argv);
	spec->argv = argv;
	return takt_container_cleanup(&in, &spec->cleanup, err);
}

int takt_daemon_describe_job(void *ctx, const struct takt_action *start, const char *attempt_id,
			     struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
			     struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, start->job_id);
	int rc;

	if (start->attempt >= TAKT_ENGINE_ASIDE)
		return takt_event_hooks_describe(daemon->hooks, start, attempt_id, ret_spec,
						 ret_uid, ret_gid, err);
	if (!job)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "job %llu",
				    (unsigned long long)start->job_id);
	ret_spec->output_limit = takt_job_output_give(daemon, job->row.id, job->row.uid);
	ret_spec->grace_ms = job->spec.grace_ms < daemon->config.max_grace_ms
				     ? job->spec.grace_ms
				     : daemon->config.max_grace_ms;
	ret_spec->cpu_count = near_cpus(daemon, start->gpu_mask, ret_spec->cpus);
	fill_limits(daemon, job, start->gpu_mask, ret_spec);
	ret_spec->argv = copy_list(job->spec.argv);
	ret_spec->cwd = takt_strdup(job->spec.cwd);
	rc = ret_spec->argv && ret_spec->cwd
		     ? build_env(daemon, job, start, attempt_id, ret_spec, err)
		     : -ENOMEM;
	if (rc == 0)
		rc = takt_jobspec_output(&job->spec, job->row.id, &ret_spec->output);
	if (rc == 0)
		rc = describe_processes(daemon, job, start->kind == TAKT_ACTION_STAGE, attempt_id,
					ret_spec, err);
	if (rc == 0)
		rc = describe_container(daemon, job, start, attempt_id, ret_spec, err);
	if (rc == -ENOMEM)
		return takt_err_set(err, rc, "what to start for job %llu",
				    (unsigned long long)start->job_id);
	if (rc < 0)
		return takt_err_wrap(err, rc, "what to start for job %llu",
				     (unsigned long long)start->job_id);
	*ret_uid = job->row.uid;
	*ret_gid = job->row.gid;
	return start->kind == TAKT_ACTION_STAGE ? add_prefetch(daemon, job, ret_spec, err) : 0;
}
