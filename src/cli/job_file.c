/* SPDX-License-Identifier: Apache-2.0 */
/* See job_file.h. */
#include "cli/job_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_entry.h"
#include "cli/sbatch.h"
#include "codec/jobspec.h"
#include "codec/json.h"
#include "codec/toml.h"

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for the jobs");
}

static int read_text(const char *path, struct takt_str *ret, struct takt_err *err)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "re");
	char part[4096];
	size_t n;
	int rc = 0;

	if (!file)
		return takt_err_set(err, -errno, "open it");
	while (rc == 0 && (n = fread(part, 1, sizeof(part), file)) > 0)
		rc = takt_str_addn(ret, part, n);
	if (rc == 0 && ferror(file))
		rc = -EIO;
	if (!standard)
		fclose(file);
	return rc < 0 ? takt_err_set(err, rc, "read it") : 0;
}

static bool ends_in(const char *path, const char *ending)
{
	size_t len = strlen(path), n = strlen(ending);

	return len > n && strcmp(path + len - n, ending) == 0;
}

/* By the name, else by how it begins: a list in TOML is "[[job]]", in JSON "[{". */
static bool is_json(const char *path, const char *text)
{
	if (ends_in(path, ".json") || ends_in(path, ".toml"))
		return ends_in(path, ".json");
	text += strspn(text, " \t\r\n");
	if (*text != '[')
		return *text == '{';
	text += 1 + strspn(text + 1, " \t\r\n");
	return *text == '{' || *text == ']';
}

static int parse(const char *path, const struct takt_str *text, cJSON **ret, struct takt_err *err)
{
	const char *foreign;
	int rc;

	if (is_json(path, takt_str_text(text)))
		return takt_json_parse(text->s, text->len, TAKT_SPEC_MAX_BYTES, ret, err);
	if (strlen(takt_str_text(text)) < text->len)
		return takt_err_set(err, -TAKT_E_CORRUPT, "it has a NUL byte");
	rc = takt_toml_parse(takt_str_text(text), ret, err);
	foreign = rc < 0 ? takt_foreign_job(takt_str_text(text)) : NULL;
	if (foreign)
		return takt_err_set(err, rc,
				    "it is neither TOML nor JSON; it looks like %s; 'takt help "
				    "submit' has what a job file holds",
				    foreign);
	return rc;
}

/* One job by itself as a list, too. */
static cJSON *single(cJSON *job)
{
	cJSON *list = cJSON_CreateArray();

	if (list && cJSON_AddItemToArray(list, job))
		return list;
	cJSON_Delete(list);
	cJSON_Delete(job);
	return NULL;
}

/* Members that a job does not have itself. */
static int add_defaults(const cJSON *defaults, cJSON *job, struct takt_err *err)
{
	const cJSON *member;

	cJSON_ArrayForEach (member, defaults) {
		cJSON *copy;

		if (cJSON_GetObjectItemCaseSensitive(job, member->string))
			continue;
		copy = cJSON_Duplicate(member, true);
		if (!copy || !cJSON_AddItemToObject(job, member->string, copy)) {
			cJSON_Delete(copy);
			return no_memory(err);
		}
	}
	return 0;
}

static int check_jobs(const cJSON *list, struct takt_err *err)
{
	const cJSON *job;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1 ||
	    cJSON_GetArraySize(list) > TAKT_SPEC_MAX_JOBS)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "there must be a list of 1 to %d jobs, 'job' or 'jobs'",
				    TAKT_SPEC_MAX_JOBS);
	cJSON_ArrayForEach (job, list) {
		if (!cJSON_IsObject(job))
			return takt_err_set(err, -TAKT_E_USAGE, "each job must be an object");
	}
	return 0;
}

static int check_rest(const cJSON *top, struct takt_err *err)
{
	if (!top->child)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'%.60s' is not known beside the list of jobs; what is for all of them "
			    "belongs into 'defaults'",
			    top->child->string);
}

/* The list out of an object that has one; what else it has may only be `defaults`. */
static int take_list(cJSON *top, cJSON *list, struct takt_err *err)
{
	cJSON *defaults = cJSON_DetachItemFromObjectCaseSensitive(top, "defaults"), *job;
	int rc = check_rest(top, err);

	if (rc == 0 && defaults && !cJSON_IsObject(defaults))
		rc = takt_err_set(err, -TAKT_E_USAGE, "'defaults' must be an object");
	if (rc == 0)
		rc = check_jobs(list, err);
	if (rc == 0)
		cJSON_ArrayForEach (job, list) {
			if (rc == 0)
				rc = add_defaults(defaults, job, err);
		}
	cJSON_Delete(defaults);
	return rc;
}

/* Takes the file's value; *ret: the list of its jobs. */
static int list_of(cJSON *top, cJSON **ret, struct takt_err *err)
{
	cJSON *list = NULL;
	int rc;

	if (cJSON_IsObject(top)) {
		list = cJSON_DetachItemFromObjectCaseSensitive(top, "jobs");
		if (!list)
			list = cJSON_DetachItemFromObjectCaseSensitive(top, "job");
	}
	if (list) {
		rc = take_list(top, list, err);
		cJSON_Delete(top);
	} else {
		list = cJSON_IsArray(top) ? top : single(top);
		rc = list ? check_jobs(list, err) : no_memory(err);
	}
	if (rc < 0)
		cJSON_Delete(list);
	else
		*ret = list;
	return rc;
}

/* The description as the daemon will read it. */
static int check_job(const cJSON *job, struct takt_job_file_entry *ret, struct takt_err *err)
{
	char *text = cJSON_PrintUnformatted(job);
	struct takt_jobspec spec;
	int rc;

	takt_jobspec_init(&spec);
	rc = text ? takt_jobspec_from_json(text, strlen(text), &spec, err) : no_memory(err);
	cJSON_free(text);
	if (rc == 0) {
		takt_strcpy(ret->name, sizeof(ret->name), spec.name);
		ret->jobs = spec.has_array ? spec.array_last - spec.array_first + 1 : 1;
		ret->gpus = spec.gpus;
	}
	takt_jobspec_fini(&spec);
	return rc;
}

/* "jobs[1] (train, line 12): ..." */
static int name_job(const cJSON *job, uint32_t index, unsigned line, int rc, struct takt_err *err)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(job, "name");
	char where[32] = "";

	if (line > 0)
		snprintf(where, sizeof(where), " (line %u)", line);
	if (cJSON_IsString(name))
		return takt_err_wrap(err, rc, "jobs[%u] '%.64s'%s", index, name->valuestring,
				     where);
	return takt_err_wrap(err, rc, "jobs[%u]%s", index, where);
}

static int convert_all(cJSON *list, struct takt_job_file *file, struct takt_err *err)
{
	cJSON *job;

	file->entries = takt_calloc((size_t)cJSON_GetArraySize(list), sizeof(*file->entries));
	if (!file->entries)
		return no_memory(err);
	cJSON_ArrayForEach (job, list) {
		unsigned line = takt_toml_line(job);
		int rc = takt_job_entry_convert(job, err);

		if (rc == 0)
			rc = check_job(job, &file->entries[file->count], err);
		if (rc < 0)
			return name_job(job, file->count, line, rc, err);
		file->count++;
	}
	return 0;
}

static int print_body(const cJSON *list, struct takt_str *body, struct takt_err *err)
{
	char *text = cJSON_PrintUnformatted(list);
	int rc = text ? takt_str_addf(body, "{\"jobs\":%s}", text) : -ENOMEM;

	cJSON_free(text);
	if (rc < 0)
		return takt_err_set(err, rc, "the jobs with their environments are over %d bytes",
				    TAKT_SPEC_MAX_BYTES);
	return 0;
}

static int read_jobs(const char *path, struct takt_job_file *file, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	cJSON *top = NULL, *list = NULL;
	int rc = read_text(path, &text, err);

	if (rc == 0)
		rc = parse(path, &text, &top, err);
	if (rc == 0)
		rc = list_of(top, &list, err);
	if (rc < 0)
		return rc;
	rc = convert_all(list, file, err);
	if (rc == 0)
		rc = takt_job_file_order(file, list, err);
	if (rc == 0)
		rc = print_body(list, &file->body, err);
	cJSON_Delete(list);
	return rc;
}

int takt_job_file_read(const char *path, struct takt_job_file *ret, struct takt_err *err)
{
	int rc;

	*ret = (struct takt_job_file){.body = TAKT_STR(TAKT_SPEC_MAX_BYTES)};
	rc = read_jobs(path, ret, err);
	return rc < 0 ? takt_err_wrap(err, rc, "job file '%.200s'", path) : 0;
}

void takt_job_file_fini(struct takt_job_file *file)
{
	takt_free(file->entries);
	takt_str_fini(&file->body);
	*file = (struct takt_job_file){.count = 0};
}
