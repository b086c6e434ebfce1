/* SPDX-License-Identifier: Apache-2.0 */
/* Errors over the wire: the name is for programs, the message for people. */
#include <errno.h>
#include <string.h>

#include "codec/view_tables.h"
#include "codec/views.h"

#define ERROR struct error_body
struct error_body {
	char name[40];
	char message[TAKT_ERR_MSG];
	int32_t vendor;
};
struct error_view {
	struct error_body error;
};

static const struct takt_field body_fields[] = {
	TEXT(ERROR, name),
	TEXT(ERROR, message),
	I32(ERROR, vendor, NONE(0)),
};
static const struct takt_shape body_shape = TAKT_SHAPE(ERROR, "an error", body_fields);
static const struct takt_field fields[] = {
	{TAKT_FIELD_AT(struct error_view, error, TAKT_FIELD_OBJECT), .required = true,
	 .shape = &body_shape},
};
static const struct takt_shape shape = TAKT_SHAPE(struct error_view, "an error", fields);

/* Codes that travel by name: our own and the errno values of Linux. */
static int code_of(const char *name)
{
	for (int rc = -1; rc > -134; rc--)
		if (strcmp(takt_err_name(rc), name) == 0)
			return rc;
	for (int rc = -4096; rc > -4196; rc--)
		if (strcmp(takt_err_name(rc), name) == 0)
			return rc;
	return -EPROTO;
}

int takt_error_to_json(const struct takt_err *error, struct takt_str *out)
{
	struct error_view view = {.error = {.vendor = error->vendor}};

	takt_strcpy(view.error.name, sizeof(view.error.name), takt_err_name(error->rc));
	takt_strcpy(view.error.message, sizeof(view.error.message), error->msg);
	return takt_shape_encode(&shape, &view, out);
}

int takt_error_from_json(const char *text, size_t len, struct takt_err *ret_error)
{
	struct error_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = takt_shape_decode(&shape, text, len, 64 * 1024, TAKT_SHAPE_TOLERANT, &view, NULL);
	if (rc < 0)
		return rc;
	*ret_error = (struct takt_err){.rc = code_of(view.error.name), .vendor = view.error.vendor};
	takt_strcpy(ret_error->msg, sizeof(ret_error->msg), view.error.message);
	return 0;
}
