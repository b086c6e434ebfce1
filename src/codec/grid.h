/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter grids: one job for each combination of values. A grid is a list of texts "NAME=LIST"; a
 * list is values with ',' between them, of which "0-4" is the numbers from 0 to 4. A backslash
 * makes the character after it stand for itself. The last parameter changes fastest.
 */
#ifndef TAKT_CODEC_GRID_H
#define TAKT_CODEC_GRID_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
	TAKT_GRID_MAX_PARAMS = 16,
	TAKT_GRID_MAX_NAME = 64,   /* bytes */
	TAKT_GRID_MAX_VALUE = 256, /* bytes */
};

/* -TAKT_E_USAGE names the entry. *ret_count: combinations, 1 to TAKT_SPEC_MAX_ARRAY. */
int takt_grid_check(char *const *grid, uint32_t *ret_count, struct takt_err *err);

/* Appends the value to a list, so that it is read back as it is. */
int takt_grid_add_value(struct takt_str *list, const char *value);

/* The parameters of one combination, "NAME=value", NULL-terminated and owned by the caller, entries
 * too. The grid has passed the check, index is below its count. NULL: no memory. */
char **takt_grid_params(char *const *grid, uint32_t index);

/* The same with the longest value of each, whatever combination they are of. */
char **takt_grid_longest(char *const *grid);

/* A copy of the text with the values in the place of {NAME}; braces around anything else stay. *ret
 * is owned by the caller. -TAKT_E_LIMIT: it would be over max bytes. */
int takt_params_fill(const char *text, char *const *params, size_t max, char **ret);

#endif
