/* SPDX-License-Identifier: Apache-2.0 */
/* The user's environment with ours laid over it. */
#include "engine/local/jobenv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum {
	MAX_ENV = 8192,	       /* variables */
	MAX_TEXT = 128 * 1024, /* one of ours */
	WHOLE_MILLI = 1000,
};

struct builder {
	TAKT_VEC(char *) env; /* strings owned */
	int rc;		      /* sticky */
};

/* Length of the name before '='; 0 when there is none. */
static size_t name_len(const char *assignment)
{
	const char *equals = strchr(assignment, '=');

	return equals ? (size_t)(equals - assignment) : 0;
}

static char **find(struct builder *builder, const char *assignment, size_t len)
{
	TAKT_VEC_EACH (env, &builder->env)
		if (strncmp(*env, assignment, len + 1) == 0)
			return env;
	return NULL;
}

/* Sets or replaces; takes ownership of a copy that may be NULL for want of memory. */
static void set_owned(struct builder *builder, char *assignment)
{
	char **place;

	if (!assignment) {
		builder->rc = builder->rc < 0 ? builder->rc : -ENOMEM;
		return;
	}
	place = find(builder, assignment, name_len(assignment));
	if (place) {
		takt_free(*place);
		*place = assignment;
		return;
	}
	if (builder->rc == 0)
		builder->rc = takt_vec_push(&builder->env, assignment);
	if (builder->rc < 0)
		takt_free(assignment);
}

static void set(struct builder *builder, const char *name, const char *value)
{
	struct takt_str text = TAKT_STR(MAX_TEXT);

	(void)takt_str_addf(&text, "%s=%s", name, value);
	set_owned(builder, takt_str_take(&text));
	takt_str_fini(&text);
}

static void set_number(struct builder *builder, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	set(builder, name, text);
}

static void set_param(struct builder *builder, const char *param)
{
	struct takt_str text = TAKT_STR(MAX_TEXT);

	(void)takt_str_addf(&text, "TAKT_PARAM_%s", param);
	set_owned(builder, takt_str_take(&text));
	takt_str_fini(&text);
}

/* "0,3" or "GPU-...,GPU-..." */
static void set_list(struct builder *builder, const char *name, const struct takt_jobenv *in,
		     bool by_uuid)
{
	struct takt_str list = TAKT_STR(MAX_TEXT);
	const char *comma = "";

	for (size_t i = 0; i < in->gpu_count; i++, comma = ",") {
		if (by_uuid)
			(void)takt_str_addf(&list, "%s%s", comma, in->gpus[i].uuid);
		else
			(void)takt_str_addf(&list, "%s%" PRIu32, comma, in->gpus[i].index);
	}
	if (list.rc < 0 && builder->rc == 0)
		builder->rc = list.rc;
	set(builder, name, takt_str_text(&list));
	takt_str_fini(&list);
}

static void copy_user(struct builder *builder, char *const *user_env)
{
	for (; user_env && *user_env && builder->rc == 0; user_env++)
		if (name_len(*user_env) > 0)
			set_owned(builder, takt_strdup(*user_env));
}

/* "0=4096M,1=4096M", by the job's own numbers of its GPUs. */
static void limit_memory(struct builder *builder, const struct takt_jobenv *in)
{
	struct takt_str list = TAKT_STR(MAX_TEXT);

	for (size_t i = 0; i < in->gpu_count; i++)
		(void)takt_str_addf(&list, "%s%zu=%" PRIu32 "M", i ? "," : "", i, in->gpu_mem_mib);
	if (list.rc < 0 && builder->rc == 0)
		builder->rc = list.rc;
	set(builder, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", takt_str_text(&list));
	takt_str_fini(&list);
}

static void add_share(struct builder *builder, const struct takt_jobenv *in)
{
	if (in->gpu_milli == 0 || in->gpu_milli == WHOLE_MILLI)
		return;
	set_number(builder, "TAKT_GPU_MILLI", in->gpu_milli);
	if (in->gpu_mem_mib == 0)
		return;
	set_number(builder, "TAKT_GPU_MEM_MIB", in->gpu_mem_mib);
	if (in->mps)
		limit_memory(builder, in);
}

static void add_ours(struct builder *builder, const struct takt_jobenv *in)
{
	static const char omp[] = "OMP_NUM_THREADS=";
	uint64_t processes = in->processes ? in->processes : in->gpu_count;
	uint64_t threads = processes ? in->cpu_count / processes : in->cpu_count;

	if (in->gpu_count > 0)
		set(builder, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	set_list(builder, "CUDA_VISIBLE_DEVICES", in, in->by_uuid);
	if (in->cpu_count > 0 && !find(builder, omp, name_len(omp)))
		set_number(builder, "OMP_NUM_THREADS", threads > 0 ? threads : 1);
	set_number(builder, "TAKT_JOB_ID", in->job_id);
	set_list(builder, "TAKT_GPUS", in, false);
	add_share(builder, in);
	set(builder, "TAKT_ATTEMPT", in->attempt_id);
	set_number(builder, "TAKT_RESTART", in->restarts);
	if (in->checkpoint_dir)
		set(builder, "TAKT_CHECKPOINT_DIR", in->checkpoint_dir);
	if (in->progress)
		set(builder, "TAKT_PROGRESS", in->progress);
	if (in->array_id) {
		set_number(builder, "TAKT_ARRAY_ID", in->array_id);
		set_number(builder, "TAKT_ARRAY_INDEX", in->array_index);
	}
	for (size_t i = 0; in->params && in->params[i]; i++)
		set_param(builder, in->params[i]);
	for (size_t i = 0; in->more && in->more[i]; i++)
		set_owned(builder, takt_strdup(in->more[i]));
	if (builder->rc == 0)
		builder->rc = takt_vec_push(&builder->env, NULL);
}

int takt_jobenv_build(const struct takt_jobenv *in, char ***ret, struct takt_err *err)
{
	struct builder builder = {.env = TAKT_VEC_INIT(MAX_ENV)};

	for (size_t i = 0; in->by_uuid && i < in->gpu_count; i++)
		if (!in->gpus[i].uuid || !in->gpus[i].uuid[0])
			return takt_err_set(err, -EINVAL,
					    "GPU %" PRIu32 " has no UUID to show it by",
					    in->gpus[i].index);
	copy_user(&builder, in->user_env);
	add_ours(&builder, in);
	if (builder.rc < 0) {
		TAKT_VEC_EACH (env, &builder.env)
			takt_free(*env);
		takt_vec_fini(&builder.env);
		return takt_err_set(err, builder.rc, "environment of job %" PRIu64, in->job_id);
	}
	*ret = builder.env.at;
	return 0;
}

void takt_jobenv_free(char **env)
{
	for (char **one = env; one && *one; one++)
		takt_free(*one);
	takt_free(env);
}
