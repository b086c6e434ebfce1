/* SPDX-License-Identifier: Apache-2.0 */
/* See job_file.h. */
#include "cli/job_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/job_options.h"
#include "codec/json.h"

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for the jobs");
}

static int read_file(const char *path, struct takt_str *ret, struct takt_err *err)
{
	FILE *file = fopen(path, "re");
	char part[4096];
	size_t n;
	int rc = 0;

	if (!file)
		return takt_err_set(err, -errno, "job file '%.200s'", path);
	while (rc == 0 && (n = fread(part, 1, sizeof(part), file)) > 0)
		rc = takt_str_addn(ret, part, n);
	if (rc == 0 && ferror(file))
		rc = -EIO;
	fclose(file);
	return rc < 0 ? takt_err_set(err, rc, "job file '%.200s'", path) : 0;
}

/* The list of jobs, taken out of the file's value, which goes. */
static cJSON *list_of(cJSON *json)
{
	cJSON *list =
		cJSON_IsObject(json) ? cJSON_DetachItemFromObjectCaseSensitive(json, "jobs") : NULL;

	if (list) {
		cJSON_Delete(json);
		return list;
	}
	if (!cJSON_IsObject(json))
		return json;
	list = cJSON_CreateArray();
	if (!list || !cJSON_AddItemToArray(list, json))
		cJSON_Delete(json);
	return list;
}

static int add_cwd(cJSON *job, struct takt_err *err)
{
	char path[PATH_MAX];

	if (cJSON_GetObjectItemCaseSensitive(job, "cwd"))
		return 0;
	if (!getcwd(path, sizeof(path)))
		return takt_err_set(err, -errno, "find out where this is");
	return cJSON_AddStringToObject(job, "cwd", path) ? 0 : no_memory(err);
}

/* Entries that are no text are left for the daemon to name: then the list stays as it is. */
static int add_env(cJSON *job, struct takt_err *err)
{
	cJSON *given = cJSON_GetObjectItemCaseSensitive(job, "env"), *entry, *list;
	const char *more[TAKT_SPEC_MAX_ENV];
	char **env = NULL;
	size_t n = 0;
	int rc;

	cJSON_ArrayForEach (entry, given) {
		if (!cJSON_IsString(entry) || n == TAKT_SPEC_MAX_ENV)
			return 0;
		more[n++] = entry->valuestring;
	}
	rc = takt_job_env(more, n, &env, err);
	if (rc < 0)
		return rc;
	n = 0;
	while (env[n])
		n++;
	list = cJSON_CreateStringArray((const char *const *)env, (int)n);
	for (size_t i = 0; i < n; i++)
		takt_free(env[i]);
	takt_free(env);
	cJSON_DeleteItemFromObjectCaseSensitive(job, "env");
	return list && cJSON_AddItemToObject(job, "env", list) ? 0 : no_memory(err);
}

static int fill_in(cJSON *list, struct takt_err *err)
{
	cJSON *job;
	int rc = 0;

	cJSON_ArrayForEach (job, list) {
		if (!cJSON_IsObject(job))
			return takt_err_set(err, -TAKT_E_USAGE, "each job must be an object");
		rc = add_cwd(job, err);
		if (rc == 0)
			rc = add_env(job, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int send_list(struct takt_cli *cli, const cJSON *list, struct takt_job_view *ret,
		     struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	char *text = cJSON_PrintUnformatted(list);
	int rc;

	if (!text)
		return no_memory(err);
	rc = takt_str_addf(&body, "{\"jobs\":%s}", text);
	cJSON_free(text);
	if (rc < 0)
		return takt_err_set(err, rc, "the jobs with their environments are over %d bytes",
				    TAKT_SPEC_MAX_BYTES);
	return takt_client_submit_many(cli->client, body.s, ret, err);
}

int takt_job_file_submit(struct takt_cli *cli, const char *path, struct takt_job_view *ret,
			 uint32_t *ret_count, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	cJSON *json = NULL, *list;
	int rc = read_file(path, &text, err);

	if (rc < 0)
		return rc;
	rc = takt_json_parse(takt_str_text(&text), text.len, TAKT_SPEC_MAX_BYTES, &json, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "job file '%.200s'", path);
	list = list_of(json);
	rc = list ? fill_in(list, err) : no_memory(err);
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = send_list(cli, list, ret, err);
	if (rc == 0)
		*ret_count = (uint32_t)cJSON_GetArraySize(list);
	cJSON_Delete(list);
	return rc < 0 ? takt_err_wrap(err, rc, "job file '%.200s'", path) : 0;
}
