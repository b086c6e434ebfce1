/* SPDX-License-Identifier: Apache-2.0 */
/* See job_entry.h. */
#include "cli/job_entry.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_options.h"
#include "codec/grid.h"
#include "codec/json.h"

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for the jobs");
}

static int wrong(const char *key, const char *wanted, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_USAGE, "'%.60s' must be %s", key, wanted);
}

static int put(cJSON *entry, const char *key, cJSON *value, struct takt_err *err)
{
	if (value && cJSON_AddItemToObject(entry, key, value))
		return 0;
	cJSON_Delete(value);
	return no_memory(err);
}

static cJSON *get(const cJSON *entry, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(entry, key);
}

/* A number as text, or a text that fits; false for anything else. */
static bool scalar_text(const cJSON *value, char *ret_text, size_t size)
{
	if (cJSON_IsString(value))
		return takt_strcpy(ret_text, size, value->valuestring);
	if (!cJSON_IsNumber(value))
		return false;
	snprintf(ret_text, size, "%.15g", value->valuedouble);
	return true;
}

/* command = "make data | tee log" */
static int convert_command(cJSON *entry, struct takt_err *err)
{
	cJSON *command = get(entry, "command");
	const char *words[] = {"/bin/sh", "-c", NULL};

	if (!command)
		return 0;
	if (!cJSON_IsString(command) || get(entry, "argv"))
		return wrong("command", "a text for the shell, without 'argv' beside it", err);
	words[2] = command->valuestring;
	command = cJSON_CreateStringArray(words, TAKT_ARRAY_LEN(words));
	cJSON_DeleteItemFromObjectCaseSensitive(entry, "command");
	return put(entry, "argv", command, err);
}

static int convert_cwd(cJSON *entry, struct takt_err *err)
{
	const cJSON *given = get(entry, "cwd");
	char *path = NULL;
	cJSON *cwd;
	int rc;

	if (given && !cJSON_IsString(given))
		return wrong("cwd", "a directory", err);
	rc = takt_job_path(given ? given->valuestring : NULL, &path, err);
	if (rc < 0)
		return rc;
	cwd = cJSON_CreateString(path);
	takt_free(path);
	cJSON_DeleteItemFromObjectCaseSensitive(entry, "cwd");
	return put(entry, "cwd", cwd, err);
}

/* env = {NAME = "value", ...}: as a list of NAME=value. */
static int list_env(const cJSON *table, cJSON *list, struct takt_err *err)
{
	const cJSON *variable;

	cJSON_ArrayForEach (variable, table) {
		TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES);
		char number[32];
		cJSON *item;

		if (cJSON_IsString(variable))
			takt_str_addf(&text, "%s=%s", variable->string, variable->valuestring);
		else if (scalar_text(variable, number, sizeof(number)))
			takt_str_addf(&text, "%s=%s", variable->string, number);
		else
			return wrong("env", "a table of texts and numbers", err);
		item = cJSON_CreateString(takt_str_text(&text));
		if (text.rc < 0 || !item || !cJSON_AddItemToArray(list, item)) {
			cJSON_Delete(item);
			return no_memory(err);
		}
	}
	return 0;
}

/* This process's environment with what the list has. */
static int merge_env(const cJSON *given, bool alone, cJSON **ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep)
	const char **more = takt_calloc((size_t)cJSON_GetArraySize(given) + 1, sizeof(*more));
	const cJSON *item;
	char **env = NULL;
	size_t n = 0;
	int rc;

	if (!more)
		return no_memory(err);
	cJSON_ArrayForEach (item, given) {
		if (!cJSON_IsString(item) || !strchr(item->valuestring, '='))
			return wrong("env", "a table, or a list of NAME=value", err);
		more[n++] = item->valuestring;
	}
	rc = takt_job_env(more, n, !alone, &env, err);
	if (rc < 0)
		return rc;
	for (n = 0; env[n]; n++)
		;
	*ret = cJSON_CreateStringArray((const char *const *)env, (int)n);
	takt_job_env_free(env);
	return *ret ? 0 : no_memory(err);
}

static bool take_flag(cJSON *entry, const char *key)
{
	bool is_set = cJSON_IsTrue(get(entry, key));

	if (cJSON_IsBool(get(entry, key)))
		cJSON_DeleteItemFromObjectCaseSensitive(entry, key);
	return is_set;
}

static int convert_env(cJSON *entry, struct takt_err *err)
{
	cJSON *given = cJSON_DetachItemFromObjectCaseSensitive(entry, "env");
	cJSON *list = cJSON_IsArray(given) ? given : cJSON_CreateArray(), *env = NULL;
	bool alone = take_flag(entry, "no-env") || take_flag(entry, "no_env");
	int rc = list ? 0 : no_memory(err);

	if (rc == 0 && given && given != list)
		rc = cJSON_IsObject(given) ? list_env(given, list, err)
					   : wrong("env", "a table, or a list of NAME=value", err);
	if (rc == 0)
		rc = merge_env(list, alone, &env, err);
	if (list != given)
		cJSON_Delete(list);
	cJSON_Delete(given);
	return rc < 0 ? rc : put(entry, "env", env, err);
}

/* 12, "12:any", "prep", "prep:any", {"job": 12, "any": true} */
static int add_after(const cJSON *item, cJSON *jobs, cJSON *names, struct takt_err *err)
{
	char text[TAKT_SPEC_MAX_NAME + 16];
	struct takt_spec_after after;
	cJSON *job;

	if (cJSON_IsObject(item)) {
		job = cJSON_Duplicate(item, true);
		return job && cJSON_AddItemToArray(jobs, job) ? 0 : no_memory(err);
	}
	if (!scalar_text(item, text, sizeof(text)))
		return wrong("after", "numbers and names of jobs, with :ok or :any or neither",
			     err);
	if (takt_job_after_parse(text, &after, NULL) < 0) {
		job = cJSON_CreateString(text);
		return job && cJSON_AddItemToArray(names, job) ? 0 : no_memory(err);
	}
	job = cJSON_CreateObject();
	if (!job || !cJSON_AddItemToArray(jobs, job) ||
	    !cJSON_AddNumberToObject(job, "job", (double)after.job) ||
	    !cJSON_AddBoolToObject(job, "any", after.any))
		return no_memory(err);
	return 0;
}

static int convert_after(cJSON *entry, struct takt_err *err)
{
	cJSON *given = cJSON_DetachItemFromObjectCaseSensitive(entry, "after"), *item;
	cJSON *jobs = cJSON_CreateArray(), *names = cJSON_CreateArray();
	int rc = jobs && names ? 0 : no_memory(err);

	if (given && !cJSON_IsArray(given) && rc == 0)
		rc = add_after(given, jobs, names, err);
	if (cJSON_IsArray(given))
		cJSON_ArrayForEach (item, given) {
			if (rc == 0)
				rc = add_after(item, jobs, names, err);
		}
	cJSON_Delete(given);
	if (rc == 0 && cJSON_GetArraySize(jobs) > 0)
		rc = put(entry, "after", jobs, err);
	else
		cJSON_Delete(jobs);
	if (rc == 0 && cJSON_GetArraySize(names) > 0)
		return put(entry, "after_names", names, err);
	cJSON_Delete(names);
	return rc;
}

/* A list's values stand for themselves; a text is a list as on the command line. */
static int grid_text(const cJSON *values, struct takt_str *out, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str list = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	char text[TAKT_GRID_MAX_VALUE + 1];
	const cJSON *value;

	takt_str_addf(out, "%s=", values->string);
	if (!cJSON_IsArray(values)) {
		if (cJSON_IsString(values))
			return takt_str_add(out, values->valuestring);
		if (!scalar_text(values, text, sizeof(text)))
			return wrong(values->string, "a list of values, or a text such as 0-4",
				     err);
		return takt_str_add(out, text);
	}
	cJSON_ArrayForEach (value, values) {
		if (cJSON_IsBool(value))
			takt_strcpy(text, sizeof(text), cJSON_IsTrue(value) ? "true" : "false");
		else if (!scalar_text(value, text, sizeof(text)))
			return wrong(values->string, "a list of texts, numbers, true and false",
				     err);
		takt_grid_add_value(&list, text);
	}
	return takt_str_add(out, takt_str_text(&list));
}

/* array = {lr = [0.1, 0.01], seed = "0-4"}; a text is read as --array. */
static int convert_grid(cJSON *entry, struct takt_err *err)
{
	cJSON *given, *grid, *values;
	int rc = 0;

	if (!cJSON_IsObject(get(entry, "array")))
		return 0;
	given = cJSON_DetachItemFromObjectCaseSensitive(entry, "array");
	grid = cJSON_CreateArray();
	cJSON_ArrayForEach (values, given) {
		TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES);
		cJSON *item;

		if (rc == 0)
			rc = grid_text(values, &text, err);
		item = rc == 0 ? cJSON_CreateString(takt_str_text(&text)) : NULL;
		if (rc == 0 && (!item || text.rc < 0 || !cJSON_AddItemToArray(grid, item)))
			rc = no_memory(err);
	}
	cJSON_Delete(given);
	if (rc == 0)
		return put(entry, "grid", grid, err);
	cJSON_Delete(grid);
	return rc;
}

int takt_job_entry_convert(cJSON *entry, struct takt_err *err)
{
	static int (*const steps[])(cJSON *, struct takt_err *) = {
		convert_command, convert_cwd,  convert_env,
		convert_after,	 convert_grid, takt_job_entry_options,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(steps) && rc == 0; i++)
		rc = steps[i](entry, err);
	return rc;
}
