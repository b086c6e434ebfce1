/* SPDX-License-Identifier: Apache-2.0 */
/* From what a job asks to a kind of the cluster's. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sched/sched_update.h"

enum {
	COMPUTE_SLICES = 7,
	REFERENCE = 1000, /* permille */
};

static int profile_of(const struct takt_sched *sched, uint32_t id, uint8_t *ret)
{
	int profile;

	if (id == 0 || id > sched->names[TAKT_SPACE_PROFILE].len)
		return -EINVAL;
	profile =
		takt_cluster_mig_find(sched->cluster, sched->names[TAKT_SPACE_PROFILE].at[id - 1]);
	if (profile < 0)
		return profile;
	*ret = (uint8_t)profile;
	return 0;
}

/* Ids of the teller's become the cluster's. */
static int translate(const struct takt_sched *sched, const struct takt_sched_job *job,
		     struct takt_request *request, struct takt_err *err)
{
	if (request->selector) {
		const union takt_map_value *known =
			takt_map_u64_get(&sched->selector_by_id, request->selector);

		if (!known)
			return takt_err_set(err, -EINVAL,
					    "job.task.selector %" PRIu32 " of job %" PRIu64
					    " was not told before",
					    request->selector, job->id);
		request->selector = (uint32_t)known->u64;
	}
	if (request->mig_profile &&
	    profile_of(sched, request->mig_profile, &request->mig_profile) < 0)
		return takt_err_set(err, -EINVAL,
				    "job.task.mig_profile %u of job %" PRIu64
				    " was not told before",
				    request->mig_profile, job->id);
	return 0;
}

/* Speeds by model; what is not known counts as the reference's. */
static int speeds_of(struct takt_sched *sched, const struct takt_sched_job *job,
		     struct takt_request *request, struct takt_err *err)
{
	const struct takt_sched_workload *workload = takt_sched_workload_find(sched, job->workload);
	uint16_t permille[TAKT_SCHED_MAX_MODELS];
	uint32_t id;
	int rc;

	if (!workload)
		return 0;
	for (uint32_t i = 0; i < TAKT_SCHED_MAX_MODELS; i++) {
		uint32_t told = i < workload->count ? workload->permille[i] : 0;

		permille[i] = (uint16_t)(told == 0	     ? REFERENCE
					 : told < UINT16_MAX ? told
							     : UINT16_MAX);
	}
	rc = takt_cluster_speeds(sched->cluster, permille, TAKT_SCHED_MAX_MODELS, &id, err);
	if (rc == 0)
		request->speeds = (uint16_t)id;
	return rc;
}

/* Accelerators of one task in milli, as tenants are charged. A share of memory counts as that share
 * of the largest accelerator known, an instance as its share of the computing slices. */
static uint32_t milli_of(const struct takt_sched *sched, const struct takt_sched_job *job,
			 const struct takt_request *request)
{
	uint64_t most = 0;

	if (request->mig_profile) {
		const char *name = sched->names[TAKT_SPACE_PROFILE].at[job->task.mig_profile - 1];

		TAKT_VEC_EACH (model, &sched->models)
			for (uint32_t i = 0; i < model->profile_count; i++)
				if (strcmp(model->profiles[i].name, name) == 0)
					return model->profiles[i].slices * TAKT_REQUEST_WHOLE /
					       COMPUTE_SLICES;
		return TAKT_REQUEST_WHOLE;
	}
	if (request->devices == 0 || request->milli)
		return (uint32_t)request->devices * request->milli;
	TAKT_VEC_EACH (model, &sched->models)
		if (model->mem_mib > most)
			most = model->mem_mib;
	if (request->dev_mem_mib >= most)
		return TAKT_REQUEST_WHOLE;
	return (uint32_t)((UINT64_C(1000) * request->dev_mem_mib + most - 1) / most);
}

int takt_sched_kind_of(struct takt_sched *sched, const struct takt_sched_job *job,
		       uint32_t *ret_kind, uint32_t *ret_milli, struct takt_err *err)
{
	struct takt_request request = job->task;
	int rc;

	if (job->gpus > TAKT_SCHED_MAX_NODE_GPUS) {
		*ret_kind = TAKT_SCHED_NO_KIND;
		*ret_milli = 0;
		return 0;
	}
	request.devices = (uint16_t)job->gpus;
	if (job->gpus == 0) { /* of each of none */
		request.milli = 0;
		request.dev_mem_mib = 0;
	}
	if (job->gpus && !request.milli && !request.mig_profile &&
	    (!request.dev_mem_mib || job->gpus > 1))
		request.milli = TAKT_REQUEST_WHOLE;
	if (job->flags & TAKT_JOB_USE_OUTSIDE)
		request.flags |= TAKT_REQUEST_SHARE_OUTSIDE;
	rc = translate(sched, job, &request, err);
	if (rc == 0)
		rc = speeds_of(sched, job, &request, err);
	if (rc == 0)
		rc = takt_cluster_kind(sched->cluster, &request, ret_kind, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "job %" PRIu64, job->id);
	*ret_milli = milli_of(sched, job, &request);
	return 0;
}
