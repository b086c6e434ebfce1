/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in memory, see the header. */
#include "sim/sim_work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sim/trace.h"

enum {
	MAX_TEXT_BYTES = 1024 * 1024 * 1024,
	KIND_KEY = 128,
	MODEL_TEXT = 256,
};

#define HAS(job, field) ((job)->has & 1u << TAKT_TRACE_JOB_##field)

static int no_memory(int rc, struct takt_err *err)
{
	return takt_err_set(err, rc, "no memory for the jobs");
}

/* "A|B" as a mask of the cluster's models; empty parts count for nothing. */
static int spec_mask(struct takt_sim_cluster *cluster, const char *spec, uint64_t *ret,
		     struct takt_err *err)
{
	uint64_t mask = 0;

	while (*spec) {
		size_t len = strcspn(spec, "|");
		char name[MODEL_TEXT];
		uint32_t id;
		int rc;

		if (len >= sizeof(name))
			return takt_err_set(err, -TAKT_E_LIMIT,
					    "model '%.40s...' has over %zu bytes", spec,
					    sizeof(name) - 1);
		memcpy(name, spec, len);
		name[len] = '\0';
		if (len) {
			rc = takt_sim_cluster_model(cluster, name, &id, err);
			if (rc < 0)
				return rc;
			mask |= UINT64_C(1) << id;
		}
		spec += len + (spec[len] == '|');
	}
	*ret = mask;
	return 0;
}

int takt_sim_work_kind(struct takt_sim_work *work, struct takt_sim_cluster *cluster,
		       const struct takt_sim_kind *asked, const char *spec, uint32_t *ret,
		       struct takt_err *err)
{
	struct takt_sim_kind kind = *asked;
	union takt_map_value *known;
	char key[KIND_KEY];
	int rc = takt_sim_names_add(&work->specs, spec, &kind.models);

	if (rc < 0)
		return no_memory(rc, err);
	snprintf(key, sizeof(key), "%d %lld %u %u %u %u", kind.cpu_milli, (long long)kind.mem_mib,
		 kind.gpus, kind.milli, kind.gpu_mem_mib, kind.models);
	known = takt_map_str_get(&work->kind_ids, key);
	if (known) {
		*ret = (uint32_t)known->u64;
		return 0;
	}
	rc = spec_mask(cluster, spec, &kind.model_mask, err);
	if (rc < 0)
		return rc;
	rc = takt_vec_reserve(&work->kinds, 1);
	if (rc == 0)
		rc = takt_vec_reserve(&work->counts, 1);
	if (rc == 0)
		rc = takt_map_str_put(&work->kind_ids, key,
				      (union takt_map_value){.u64 = work->kinds.len});
	if (rc < 0)
		return no_memory(rc, err);
	*ret = (uint32_t)work->kinds.len;
	work->kinds.at[work->kinds.len++] = kind;
	work->counts.at[work->counts.len++] = 0;
	return 0;
}

static int check_request(const struct takt_trace_job *record, struct takt_err *err)
{
	if (record->gpus > 1 && record->gpu_milli > 0 && record->gpu_milli < 1000)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "column 'gpu_milli': a part of a GPU is asked of one GPU, not "
				    "of %lld",
				    (long long)record->gpus);
	if (record->gpus && record->gpu_milli == 0 && record->gpu_memory_mib == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "column 'gpu_milli': 0 of each of %lld GPUs",
				    (long long)record->gpus);
	return 0;
}

/* Its own duration, or what the instants say. */
static int64_t duration_of(const struct takt_trace_job *record, bool *ret_has)
{
	int64_t from = HAS(record, START) ? record->start_ns : record->submit_ns;

	*ret_has = HAS(record, DURATION) || (HAS(record, END) && HAS(record, SUBMIT));
	if (HAS(record, DURATION))
		return record->duration_ns;
	return *ret_has && record->end_ns > from ? record->end_ns - from : 0;
}

static int add_record(struct takt_sim_work *work, struct takt_sim_cluster *cluster,
		      const struct takt_trace_job *record, struct takt_err *err)
{
	struct takt_sim_kind kind = {
		.cpu_milli = (int32_t)record->cpu_milli,
		.mem_mib = record->memory_mib,
		.gpus = (uint32_t)record->gpus,
		.milli = record->gpus ? (uint32_t)record->gpu_milli : 0,
		.gpu_mem_mib = (uint32_t)record->gpu_memory_mib,
	};
	struct takt_sim_job job = {
		.name = "",
		.tasks = (uint32_t)record->tasks,
		.priority = (int32_t)record->priority,
		.has = record->has,
		.submit_ns = record->submit_ns,
		.estimate_ns = record->estimate_ns,
		.deadline_ns = record->deadline_ns,
	};
	bool has_duration;
	int rc = check_request(record, err);

	if (rc == 0)
		rc = takt_sim_work_kind(work, cluster, &kind, record->models, &job.kind, err);
	if (rc < 0)
		return rc;
	job.duration_ns = duration_of(record, &has_duration);
	if (has_duration)
		job.has |= 1u << TAKT_TRACE_JOB_DURATION;
	if (record->name[0])
		job.name = takt_arena_strdup(&work->texts, record->name);
	rc = job.name ? takt_sim_names_add(&work->groups, record->user, &job.user) : -ENOMEM;
	if (rc == 0)
		rc = takt_sim_names_add(&work->groups, record->tenant, &job.tenant);
	if (rc == 0)
		rc = takt_vec_push(&work->jobs, job);
	if (rc < 0)
		return no_memory(rc, err);
	work->counts.at[job.kind]++;
	return 0;
}

int takt_sim_work_init(struct takt_sim_work *ret, struct takt_err *err)
{
	struct takt_sim_work work = {
		.jobs = TAKT_VEC_INIT(TAKT_SIM_MAX_JOBS),
		.kinds = TAKT_VEC_INIT(TAKT_SIM_MAX_KINDS),
		.counts = TAKT_VEC_INIT(TAKT_SIM_MAX_KINDS),
		.kind_ids = TAKT_MAP_STR(TAKT_SIM_MAX_KINDS),
		.specs = TAKT_SIM_NAMES,
		.groups = TAKT_SIM_NAMES,
		.texts = TAKT_ARENA(MAX_TEXT_BYTES),
	};
	uint32_t first;
	int rc = takt_sim_names_add(&work.specs, "", &first);

	if (rc == 0)
		rc = takt_sim_names_add(&work.groups, "", &first);
	if (rc < 0) {
		takt_sim_work_fini(&work);
		return no_memory(rc, err);
	}
	*ret = work;
	return 0;
}

static int read_jobs(struct takt_trace *trace, const char *path, struct takt_sim_cluster *cluster,
		     struct takt_sim_work *work, struct takt_err *err)
{
	struct takt_trace_job record;
	int rc;

	while ((rc = takt_trace_next_job(trace, &record, err)) == 1) {
		rc = add_record(work, cluster, &record, err);
		if (rc < 0)
			return takt_err_wrap(err, rc, "%s:%llu", path,
					     (unsigned long long)takt_trace_line(trace));
	}
	if (rc == 0 && work->jobs.len == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' has no jobs", path);
	return rc;
}

int takt_sim_work_load(const char *path, uint32_t required, struct takt_sim_cluster *cluster,
		       struct takt_sim_work *ret, struct takt_err *err)
{
	struct takt_sim_work work;
	struct takt_trace *trace;
	int rc = takt_trace_open(path, TAKT_TRACE_OF_JOBS, required, &trace, err);

	if (rc < 0)
		return rc;
	rc = takt_sim_work_init(&work, err);
	if (rc == 0) {
		rc = read_jobs(trace, path, cluster, &work, err);
		takt_strcpy(work.hash, sizeof(work.hash), takt_trace_hash(trace));
		if (rc == 0)
			*ret = work;
		else
			takt_sim_work_fini(&work);
	}
	takt_trace_free(trace);
	return rc;
}

void takt_sim_work_fini(struct takt_sim_work *work)
{
	takt_vec_fini(&work->jobs);
	takt_vec_fini(&work->kinds);
	takt_vec_fini(&work->counts);
	takt_map_fini(&work->kind_ids);
	takt_sim_names_fini(&work->specs);
	takt_sim_names_fini(&work->groups);
	takt_arena_fini(&work->texts);
}
