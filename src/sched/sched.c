/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler as an object: its life, and the questions that change nothing. */
#include "sched/sched.h"

#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "sched/sched_state.h"

enum {
	MAX_JOBS_DEFAULT = 1000000,
	MAX_NODES_DEFAULT = 100000,
};

int takt_sched_new(const struct takt_sched_config *config, struct takt_sched **ret,
		   struct takt_err *err)
{
	struct takt_sched *sched = takt_zalloc(sizeof(*sched));
	size_t max_jobs = config->max_jobs ? config->max_jobs : MAX_JOBS_DEFAULT;

	if (!sched)
		return takt_err_set(err, -ENOMEM, "scheduler");
	sched->hosts.max = config->max_nodes ? config->max_nodes : MAX_NODES_DEFAULT;
	sched->jobs.max = max_jobs;
	sched->queue.max = max_jobs;
	sched->by_id = TAKT_MAP_U64(max_jobs);
	*ret = sched;
	return 0;
}

void takt_sched_free(struct takt_sched *sched)
{
	if (!sched)
		return;
	TAKT_VEC_EACH (host, &sched->hosts)
		takt_sched_host_free(*host);
	TAKT_VEC_EACH (entry, &sched->jobs)
		takt_free(*entry);
	takt_vec_fini(&sched->hosts);
	takt_vec_fini(&sched->jobs);
	takt_vec_fini(&sched->queue);
	takt_map_fini(&sched->by_id);
	takt_free(sched);
}

uint64_t takt_sched_version(const struct takt_sched *sched)
{
	return sched->version;
}

int takt_sched_possible(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_err *err)
{
	const struct takt_sched_host *largest = takt_sched_nearest(sched, job, TAKT_WHY_IMPOSSIBLE);

	if (!largest)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE, "no machine is known to run it on");
	if (job->gpus <= largest->gpu_count)
		return 0;
	return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
			    "asks for %" PRIu32 " GPU%s, the largest node has %" PRIu32, job->gpus,
			    job->gpus == 1 ? "" : "s", largest->gpu_count);
}

int takt_sched_gpu(const struct takt_sched *sched, uint32_t node_id, uint32_t gpu,
		   enum takt_gpu_state *ret_state, bool *ret_outside, uint64_t *ret_job_id)
{
	const struct takt_sched_host *host = takt_sched_host_find(sched, node_id);

	if (!host || host->removed || gpu >= host->gpu_count)
		return -ENOENT;
	if (ret_state)
		*ret_state = takt_sched_host_gpu_state(host, gpu);
	if (ret_outside)
		*ret_outside = host->outside >> gpu & 1;
	if (ret_job_id)
		*ret_job_id = host->gpu_job[gpu];
	return 0;
}
