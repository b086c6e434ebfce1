/* SPDX-License-Identifier: Apache-2.0 */
/* Several descriptions in one text. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/jobspec.h"
#include "codec/json.h"

void takt_jobspecs_free(struct takt_jobspecs *specs)
{
	for (uint32_t i = 0; i < specs->count; i++)
		takt_jobspec_fini(&specs->jobs[i]);
	takt_free(specs->jobs);
	*specs = (struct takt_jobspecs){0};
}

static int read_one(const cJSON *json, uint32_t index, struct takt_jobspec *ret,
		    struct takt_err *err)
{
	char *text = cJSON_PrintUnformatted(json);
	int rc = text ? takt_jobspec_from_json(text, strlen(text), ret, err)
		      : takt_err_set(err, -ENOMEM, "no memory");

	cJSON_free(text);
	return rc < 0 ? takt_err_wrap(err, rc, "jobs[%u]", index) : 0;
}

static const cJSON *list_of(const cJSON *json, struct takt_err *err)
{
	const cJSON *list = cJSON_IsObject(json) ? json->child : NULL;

	if (!list || list->next || strcmp(list->string, "jobs") != 0 || !cJSON_IsArray(list) ||
	    cJSON_GetArraySize(list) < 1 || cJSON_GetArraySize(list) > TAKT_SPEC_MAX_JOBS) {
		takt_err_set(err, -TAKT_E_USAGE,
			     "there must be one field, 'jobs': a list of 1 to %d job descriptions",
			     TAKT_SPEC_MAX_JOBS);
		return NULL;
	}
	return list;
}

static int read_list(const cJSON *list, struct takt_jobspecs *specs, struct takt_err *err)
{
	const cJSON *entry;
	int rc;

	specs->jobs = takt_calloc((size_t)cJSON_GetArraySize(list), sizeof(*specs->jobs));
	if (!specs->jobs)
		return takt_err_set(err, -ENOMEM, "no memory for the jobs");
	cJSON_ArrayForEach (entry, list) {
		takt_jobspec_init(&specs->jobs[specs->count]);
		rc = read_one(entry, specs->count, &specs->jobs[specs->count], err);
		if (rc < 0)
			return rc;
		specs->count++;
	}
	return 0;
}

int takt_jobspecs_from_json(const char *text, size_t len, struct takt_jobspecs *ret,
			    struct takt_err *err)
{
	struct takt_jobspecs specs = {0};
	cJSON *json = NULL;
	const cJSON *list;
	int rc = takt_json_parse(text, len, TAKT_SPEC_MAX_BYTES, &json, err);

	if (rc == -TAKT_E_CORRUPT) {
		rc = -TAKT_E_USAGE;
		if (err)
			err->rc = rc;
	}
	if (rc < 0)
		return rc;
	list = list_of(json, err);
	rc = list ? read_list(list, &specs, err) : -TAKT_E_USAGE;
	cJSON_Delete(json);
	if (rc < 0) {
		takt_jobspecs_free(&specs);
		return rc;
	}
	*ret = specs;
	return 0;
}
