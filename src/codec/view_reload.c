/* SPDX-License-Identifier: Apache-2.0 */
/* What came of reading the configuration again, as JSON. */
#include <string.h>

#include "codec/view_tables.h"
#include "codec/views.h"

#define RELOAD struct takt_reload_view
static const struct takt_field fields[] = {TEXT(RELOAD, changed), TEXT(RELOAD, need_restart)};
static const struct takt_shape shape = TAKT_SHAPE(RELOAD, "a configuration read again", fields);

int takt_reload_view_to_json(const struct takt_reload_view *view, struct takt_str *out)
{
	return takt_shape_encode(&shape, view, out);
}

int takt_reload_view_from_json(const char *text, size_t len, struct takt_reload_view *ret,
			       struct takt_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return takt_shape_decode(&shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT, ret,
				 err);
}
