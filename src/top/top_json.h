/* SPDX-License-Identifier: Apache-2.0 */
/* A look as one line of JSON: what `takt top --json` prints and what another takt top reads. */
#ifndef TAKT_TOP_JSON_H
#define TAKT_TOP_JSON_H

#include "base/str.h"
#include "top/top_model.h"

struct cJSON;

/* Names of series in "past". */
extern const char *const takt_top_past_names[TAKT_TOP_SERIES];

enum {
	TAKT_TOP_MAX_LOOK = 16 * 1024 * 1024, /* bytes that are read */
};

int takt_top_to_json(const struct takt_top_snapshot *snapshot, struct takt_str *out);

/* *ret needs no init and is untouched on failure; the caller finis it. -TAKT_E_LIMIT,
 * -TAKT_E_CORRUPT, -ENOMEM. */
int takt_top_from_json(const char *text, size_t len, struct takt_top_snapshot *ret,
		       struct takt_err *err);

/* top_parse_past.c: "past" and "log", where they are; -TAKT_E_CORRUPT, -ENOMEM. */
int takt_top_read_past(const struct cJSON *root, struct takt_top_snapshot *ret,
		       struct takt_err *err);
int takt_top_read_log(const struct cJSON *root, struct takt_top_snapshot *ret,
		      struct takt_err *err);

/* Members of an object. A whole number of at most `max`; false when it is not there or none. */
bool takt_top_read_number(const struct cJSON *object, const char *name, uint64_t max,
			  uint64_t *ret);
void takt_top_read_text(const struct cJSON *object, const char *name, char *ret, size_t size);
/* "boot_id"; false, and "", when it is none. */
bool takt_top_read_boot_id(const struct cJSON *object, char ret[40]);

#endif
