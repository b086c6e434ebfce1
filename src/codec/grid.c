/* SPDX-License-Identifier: Apache-2.0 */
/* See grid.h. */
#include "codec/grid.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "codec/jobspec.h"

/* A value, or numbers in a row. */
struct item {
	bool range;
	unsigned long long first, last;
	char text[TAKT_GRID_MAX_VALUE + 1];
};

/* "0-4", which no backslash has touched. */
static bool read_range(const char *text, struct item *ret)
{
	const char *dash = strchr(text, '-');
	char first[12] = "";

	if (!dash || (size_t)(dash - text) >= sizeof(first))
		return false;
	memcpy(first, text, (size_t)(dash - text));
	return takt_parse_u64(first, 0, UINT32_MAX, &ret->first) == 0 &&
	       takt_parse_u64(dash + 1, ret->first, UINT32_MAX, &ret->last) == 0;
}

/* The item at *at, which goes behind it and its ','. False: it is empty or too long. */
static bool read_item(const char **at, struct item *ret)
{
	const char *c = *at;
	bool plain = true;
	size_t len = 0;

	for (; *c && *c != ','; c++) {
		if (*c == '\\' && c[1]) {
			plain = false;
			c++;
		}
		if (len == TAKT_GRID_MAX_VALUE)
			return false;
		ret->text[len++] = *c;
	}
	ret->text[len] = '\0';
	ret->range = plain && read_range(ret->text, ret);
	*at = *c ? c + 1 : NULL;
	return len > 0;
}

static uint64_t item_count(const struct item *item)
{
	return item->range ? item->last - item->first + 1 : 1;
}

/* Of one parameter; 0 = its list is not one. */
static uint64_t value_count(const char *list)
{
	uint64_t count = 0;
	struct item item;

	while (list && count <= TAKT_SPEC_MAX_ARRAY) {
		if (!read_item(&list, &item))
			return 0;
		count += item_count(&item);
	}
	return count;
}

static size_t name_len(const char *entry)
{
	size_t len = strspn(entry, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_");

	return len <= TAKT_GRID_MAX_NAME && !isdigit((unsigned char)entry[0]) && entry[len] == '='
		       ? len
		       : 0;
}

static bool is_named_before(char *const *grid, size_t i)
{
	for (size_t before = 0; before < i; before++)
		if (strncmp(grid[before], grid[i], name_len(grid[i]) + 1) == 0)
			return true;
	return false;
}

int takt_grid_check(char *const *grid, uint32_t *ret_count, struct takt_err *err)
{
	uint64_t count = 1;
	size_t i;

	for (i = 0; grid[i]; i++) {
		size_t len = name_len(grid[i]);
		uint64_t values = len ? value_count(grid[i] + len + 1) : 0;

		if (values == 0)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'grid[%zu]' must be such as lr=0.1,0.01 or "
					    "seed=0-4, not '%.60s'",
					    i, grid[i]);
		if (is_named_before(grid, i))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'grid[%zu]': parameter '%.*s' is there already",
					    i, (int)len, grid[i]);
		count *= values;
		if (count > TAKT_SPEC_MAX_ARRAY)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'grid' has over %d combinations",
					    TAKT_SPEC_MAX_ARRAY);
	}
	if (i == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'grid' must have a parameter");
	*ret_count = (uint32_t)count;
	return 0;
}

int takt_grid_add_value(struct takt_str *list, const char *value)
{
	if (list->len > 0)
		takt_str_add(list, ",");
	for (; *value; value++) {
		if (strchr(",-\\", *value))
			takt_str_add(list, "\\");
		takt_str_addn(list, value, 1);
	}
	return list->rc;
}

/* "NAME=value" of the index-th value. */
static char *param_at(const char *entry, uint64_t index)
{
	struct takt_str text = TAKT_STR(TAKT_GRID_MAX_NAME + TAKT_GRID_MAX_VALUE + 32);
	size_t len = name_len(entry);
	const char *list = entry + len + 1;
	struct item item;
	char *param;

	while (list && read_item(&list, &item) && index >= item_count(&item))
		index -= item_count(&item);
	takt_str_addn(&text, entry, len + 1);
	if (item.range)
		takt_str_addf(&text, "%llu", item.first + index);
	else
		takt_str_add(&text, item.text);
	param = takt_str_take(&text);
	takt_str_fini(&text);
	return param;
}

static char **new_params(char *const *grid, size_t *ret_count)
{
	size_t n = 0;

	while (grid[n])
		n++;
	*ret_count = n;
	return takt_calloc(n + 1, sizeof(char *));
}

/* As they are, or NULL and nothing where one of them could not be made. */
static char **whole_params(char **params, size_t n)
{
	size_t made = 0;

	for (size_t i = 0; i < n; i++)
		made += params[i] != NULL;
	if (made == n)
		return params;
	for (size_t i = 0; i < n; i++)
		takt_free(params[i]);
	takt_free(params);
	return NULL;
}

char **takt_grid_params(char *const *grid, uint32_t index)
{
	size_t n;
	char **params = new_params(grid, &n);

	for (size_t i = n; params && i-- > 0;) {
		uint64_t values = value_count(strchr(grid[i], '=') + 1);

		params[i] = param_at(grid[i], index % values);
		index = (uint32_t)(index / values);
	}
	return params ? whole_params(params, n) : NULL;
}

/* The place of the longest value in a list; of a range the last number is. */
static uint64_t longest_of(const char *list)
{
	uint64_t before = 0, longest = 0;
	size_t most = 0;
	struct item item;

	while (list && read_item(&list, &item)) {
		char number[24];
		size_t len = item.range
				     ? (size_t)snprintf(number, sizeof(number), "%llu", item.last)
				     : strlen(item.text);

		before += item_count(&item);
		longest = len > most ? before - 1 : longest;
		most = len > most ? len : most;
	}
	return longest;
}

char **takt_grid_longest(char *const *grid)
{
	size_t n;
	char **params = new_params(grid, &n);

	for (size_t i = 0; params && i < n; i++)
		params[i] = param_at(grid[i], longest_of(strchr(grid[i], '=') + 1));
	return params ? whole_params(params, n) : NULL;
}

/* The value of the parameter that "NAME}..." begins with, or NULL. */
static const char *value_of(const char *text, char *const *params)
{
	size_t len = strcspn(text, "}");

	for (size_t i = 0; text[len] && params[i]; i++)
		if (strncmp(params[i], text, len) == 0 && params[i][len] == '=')
			return params[i] + len + 1;
	return NULL;
}

int takt_params_fill(const char *text, char *const *params, size_t max, char **ret)
{
	TAKT_CLEANUP(strp) struct takt_str filled = TAKT_STR(max);

	takt_str_add(&filled, "");
	while (*text && filled.rc == 0) {
		const char *value = *text == '{' ? value_of(text + 1, params) : NULL;

		if (value)
			takt_str_add(&filled, value);
		else
			takt_str_addn(&filled, text, 1);
		text += value ? strcspn(text, "}") + 1 : 1;
	}
	if (filled.rc < 0)
		return filled.rc;
	*ret = takt_str_take(&filled);
	return *ret ? 0 : -ENOMEM;
}
