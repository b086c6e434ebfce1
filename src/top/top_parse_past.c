/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of what only machines that are watched from elsewhere send: what was before, and
 * logs. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "codec/json.h"
#include "top/graph.h"
#include "top/top_json.h"
#include "top/top_log.h"

enum {
	FULL = 1000,
	MAX_STEP_MS = 60 * 1000,
};

const char *const takt_top_past_names[TAKT_TOP_SERIES] = {
	[TAKT_TOP_UTIL] = "util", [TAKT_TOP_MEMORY] = "memory", [TAKT_TOP_POWER] = "power",
	[TAKT_TOP_TEMP] = "temp", [TAKT_TOP_CLOCK] = "clock",
};

static int bad(struct takt_err *err, const char *where)
{
	return takt_err_set(err, -TAKT_E_CORRUPT, "%s: not as takt top writes it", where);
}

static bool read_row(const cJSON *gpu, const char *name, uint16_t row[TAKT_TOP_HISTORY])
{
	const cJSON *item;
	int n = 0;

	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(gpu, name)) {
		if (n == TAKT_TOP_HISTORY || !cJSON_IsNumber(item) ||
		    !(item->valuedouble >= -1 && item->valuedouble <= FULL))
			return false;
		row[n++] = item->valuedouble < 0 ? TAKT_NO_VALUE : (uint16_t)item->valuedouble;
	}
	while (n < TAKT_TOP_HISTORY)
		row[n++] = TAKT_NO_VALUE;
	return true;
}

static bool read_gpu(const cJSON *item, struct takt_top_past_gpu *ret)
{
	bool ok = true;

	takt_top_read_text(item, "uuid", ret->uuid, sizeof(ret->uuid));
	for (int s = 0; s < TAKT_TOP_SERIES; s++)
		ok = ok && read_row(item, takt_top_past_names[s], ret->permille[s]);
	return ok;
}

int takt_top_read_past(const cJSON *root, struct takt_top_snapshot *ret, struct takt_err *err)
{
	const cJSON *past = cJSON_GetObjectItemCaseSensitive(root, "past"), *gpus, *item;
	uint64_t step_ms;
	uint32_t n = 0;

	if (!past)
		return 0;
	gpus = cJSON_GetObjectItemCaseSensitive(past, "gpus");
	if (!cJSON_IsArray(gpus) || cJSON_GetArraySize(gpus) > TAKT_VIEW_MAX_GPUS ||
	    !takt_top_read_number(past, "step_ms", MAX_STEP_MS, &step_ms))
		return bad(err, "past");
	ret->past = takt_top_past_new((uint32_t)cJSON_GetArraySize(gpus), (uint32_t)step_ms);
	if (!ret->past)
		return takt_err_set(err, -ENOMEM, "past");
	cJSON_ArrayForEach (item, gpus)
		if (!read_gpu(item, &ret->past->gpus[n++]))
			return bad(err, "past");
	return 0;
}

int takt_top_read_log(const cJSON *root, struct takt_top_snapshot *ret, struct takt_err *err)
{
	const cJSON *log = cJSON_GetObjectItemCaseSensitive(root, "log");
	const char *text;
	uint64_t attempt;

	if (!log)
		return 0;
	if (!takt_top_read_number(log, "job_id", TAKT_JSON_MAX_INT, &ret->log.job_id) ||
	    !takt_top_read_number(log, "attempt", UINT32_MAX, &attempt) ||
	    !takt_top_read_number(log, "dropped_lines", TAKT_JSON_MAX_INT, &ret->log.dropped_lines))
		return bad(err, "log");
	ret->log.attempt = (uint32_t)attempt;
	ret->log.over = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(log, "over"));
	takt_top_read_text(log, "why_not", ret->log.why_not, sizeof(ret->log.why_not));
	text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(log, "text"));
	if (text)
		takt_top_log_add(&ret->log, text, strlen(text));
	return ret->log.text.rc < 0 ? takt_err_set(err, ret->log.text.rc, "log") : 0;
}
