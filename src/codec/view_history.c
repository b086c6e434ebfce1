/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's history as JSON: the points by hand, the rest by its table. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "codec/history_view.h"
#include "codec/view_tables.h"

#define HISTORY struct takt_history_view
static const struct takt_field fields[] = {
	MUST_BOOL(HISTORY, simulated), U32(HISTORY, gpu, MUST),	     TEXT(HISTORY, uuid),
	TEXT(HISTORY, metric),	       TEXT(HISTORY, unit),	     U64(HISTORY, step_ms, MUST),
	I64(HISTORY, from_ms, MUST),   I64(HISTORY, until_ms, MUST), U64(HISTORY, lost, NONE(0)),
};
static const struct takt_shape shape = TAKT_SHAPE(HISTORY, "a GPU's history", fields);

void takt_history_view_fini(struct takt_history_view *view)
{
	takt_free(view->points);
	view->points = NULL;
	view->point_count = 0;
}

int takt_history_view_to_json(const struct takt_history_view *view, struct takt_str *out)
{
	int rc = takt_shape_encode(&shape, view, out);

	if (rc < 0)
		return rc;
	out->len--; /* the object goes on */
	takt_json_add_name(out, "points", false);
	takt_str_add(out, "[");
	for (uint32_t i = 0; i < view->point_count; i++) {
		const struct takt_history_view_point *at = &view->points[i];

		takt_str_addf(out, "%s[%" PRId64 ",%.7g,%.7g,%.7g]", i ? "," : "", at->at_ms,
			      at->min, at->mean, at->max);
	}
	return takt_str_add(out, "]}");
}

static bool read_point(const cJSON *item, struct takt_history_view_point *ret)
{
	double values[4];
	const cJSON *each;
	size_t n = 0;

	if (!cJSON_IsArray(item))
		return false;
	cJSON_ArrayForEach (each, item) {
		if (n == TAKT_ARRAY_LEN(values) || !cJSON_IsNumber(each) ||
		    !isfinite(each->valuedouble))
			return false;
		values[n++] = each->valuedouble;
	}
	if (n != TAKT_ARRAY_LEN(values) || fabs(values[0]) > (double)TAKT_JSON_MAX_INT)
		return false;
	*ret = (struct takt_history_view_point){(int64_t)values[0], values[1], values[2],
						values[3]};
	return true;
}

static int read_points(const cJSON *list, struct takt_history_view *view, struct takt_err *err)
{
	int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;
	const cJSON *item;

	if (count < 0 || count > TAKT_HISTORY_VIEW_MAX)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "field 'points' must be a list of at most %d",
				    TAKT_HISTORY_VIEW_MAX);
	view->points = takt_calloc((size_t)count + 1, sizeof(*view->points));
	if (!view->points)
		return takt_err_set(err, -ENOMEM, "no memory for a GPU's history");
	cJSON_ArrayForEach (item, list) {
		if (!read_point(item, &view->points[view->point_count]))
			return takt_err_set(
				err, -TAKT_E_CORRUPT,
				"field 'points' must have [at_ms, min, mean, max] each");
		view->point_count++;
	}
	return 0;
}

int takt_history_view_from_json(const char *text, size_t len, struct takt_history_view *ret,
				struct takt_err *err)
{
	struct takt_history_view view;
	cJSON *json = NULL;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = takt_shape_decode(&shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT, &view,
			       err);
	if (rc == 0)
		rc = takt_json_parse(text, len, TAKT_VIEW_MAX_BYTES, &json, err);
	if (rc == 0)
		rc = read_points(cJSON_GetObjectItemCaseSensitive(json, "points"), &view, err);
	cJSON_Delete(json);
	if (rc < 0)
		takt_history_view_fini(&view);
	else
		*ret = view;
	return rc;
}
