/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML's tables. How a table came to be decides who may add to it: one from a [header] is complete
 * with the keys below it, one from dotted keys ("a.b = 1") grows by such keys only, one from {...}
 * not at all. That is noted, with its line, in the cJSON value itself: objects and lists leave
 * `valueint` unused.
 */
#include "codec/toml.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "codec/json.h"
#include "codec/toml_impl.h"

enum origin {
	IMPLICIT, /* named on the way to another one */
	HEADER,
	DOTTED,
	CLOSED, /* {...}; a list [...] */
	TABLES, /* a list of [[header]] */
};

enum {
	ORIGIN_BITS = 3,
	MAX_KEY = 256, /* bytes */
};

int takt_toml_fail(const struct toml *toml, const char *message)
{
	return takt_err_set(toml->err, -TAKT_E_CORRUPT, "line %u: %s", toml->line, message);
}

int takt_toml_starved(const struct toml *toml)
{
	return takt_err_set(toml->err, -ENOMEM, "no memory to read TOML");
}

static enum origin origin_of(const cJSON *table)
{
	return (enum origin)(table->valueint & ((1 << ORIGIN_BITS) - 1));
}

static void set_origin(const struct toml *toml, cJSON *table, enum origin origin)
{
	table->valueint = (int)(toml->line << ORIGIN_BITS | origin);
}

unsigned takt_toml_line(const struct cJSON *table)
{
	return cJSON_IsObject(table) ? (unsigned)table->valueint >> ORIGIN_BITS : 0;
}

static void skip_space(struct toml *toml)
{
	toml->at += strspn(toml->at, " \t");
}

/* A comment and the end of the line, or of the text. */
static int end_line(struct toml *toml)
{
	skip_space(toml);
	if (*toml->at == '#')
		toml->at += strcspn(toml->at, "\n");
	toml->at += toml->at[0] == '\r' && toml->at[1] == '\n';
	if (*toml->at && *toml->at != '\n')
		return takt_toml_fail(toml, "nothing may follow on this line");
	if (*toml->at) {
		toml->at++;
		toml->line++;
	}
	return 0;
}

/* Space, comments and ends of lines. */
static int skip_lines(struct toml *toml)
{
	int rc = 0;

	for (skip_space(toml); rc == 0 && *toml->at && strchr("#\r\n", *toml->at); skip_space(toml))
		rc = end_line(toml);
	return rc;
}

/* One part of a dotted key. */
static int read_part(struct toml *toml, char ret[MAX_KEY])
{
	static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_-";
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TOML_MAX_TEXT);
	size_t n = strspn(toml->at, bare);
	int rc = 0;

	if (*toml->at == '"' || *toml->at == '\'') {
		rc = takt_toml_text(toml, true, &text);
	} else {
		if (n == 0)
			return takt_toml_fail(toml, "a key is missing");
		rc = takt_str_addn(&text, toml->at, n) < 0 ? takt_toml_starved(toml) : 0;
		toml->at += n;
	}
	if (rc == 0 && !takt_strcpy(ret, MAX_KEY, takt_str_text(&text)))
		rc = takt_toml_fail(toml, "a key is too long");
	skip_space(toml);
	return rc;
}

static int add(const struct toml *toml, cJSON *table, const char *key, cJSON *value)
{
	if (value && cJSON_AddItemToObject(table, key, value))
		return 0;
	cJSON_Delete(value);
	return takt_toml_starved(toml);
}

static int add_table(const struct toml *toml, cJSON *table, const char *key, enum origin origin,
		     cJSON **ret)
{
	cJSON *child = cJSON_CreateObject();
	int rc = add(toml, table, key, child);

	if (rc < 0)
		return rc;
	set_origin(toml, child, origin);
	*ret = child;
	return 0;
}

static int twice(const struct toml *toml, const char *key)
{
	return takt_err_set(toml->err, -TAKT_E_CORRUPT, "line %u: '%.60s' stands twice", toml->line,
			    key);
}

/* The table `key` on the way to another one. */
static int step(const struct toml *toml, cJSON *table, const char *key, bool dotted, cJSON **ret)
{
	cJSON *child = cJSON_GetObjectItemCaseSensitive(table, key);

	if (!child)
		return add_table(toml, table, key, dotted ? DOTTED : IMPLICIT, ret);
	if (!dotted && cJSON_IsArray(child) && origin_of(child) == TABLES)
		child = child->child->prev; /* the last */
	if (!cJSON_IsObject(child) || origin_of(child) == CLOSED ||
	    (dotted && origin_of(child) == HEADER))
		return twice(toml, key);
	*ret = child;
	return 0;
}

/* "a.b.c": the table of its last part, which is *ret_key. */
static int read_path(struct toml *toml, bool dotted, cJSON *table, cJSON **ret_table,
		     char ret_key[MAX_KEY])
{
	int rc = read_part(toml, ret_key);

	for (int parts = 1; rc == 0 && *toml->at == '.'; parts++) {
		if (parts == TAKT_JSON_MAX_DEPTH)
			return takt_toml_fail(toml, "nested too deep");
		rc = step(toml, table, ret_key, dotted, &table);
		toml->at++;
		skip_space(toml);
		if (rc == 0)
			rc = read_part(toml, ret_key);
	}
	*ret_table = table;
	return rc;
}

static int read_value(struct toml *toml, cJSON **ret);

/* a.b = value */
static int read_pair(struct toml *toml, cJSON *table)
{
	cJSON *value = NULL;
	char key[MAX_KEY];
	int rc = read_path(toml, true, table, &table, key);

	if (rc < 0)
		return rc;
	if (*toml->at != '=')
		return takt_toml_fail(toml, "'=' and a value must follow the key");
	toml->at++;
	skip_space(toml);
	if (cJSON_GetObjectItemCaseSensitive(table, key))
		return twice(toml, key);
	rc = read_value(toml, &value);
	return rc < 0 ? rc : add(toml, table, key, value);
}

/* Behind the '['. */
static int read_list(struct toml *toml, cJSON *list)
{
	int rc = skip_lines(toml);

	while (rc == 0 && *toml->at != ']') {
		cJSON *value = NULL;

		rc = read_value(toml, &value);
		if (rc == 0 && !cJSON_AddItemToArray(list, value)) {
			cJSON_Delete(value);
			return takt_toml_starved(toml);
		}
		if (rc == 0)
			rc = skip_lines(toml);
		if (rc == 0 && *toml->at != ',' && *toml->at != ']')
			return takt_toml_fail(toml, "',' or ']' must follow in a list");
		if (rc == 0 && *toml->at == ',') {
			toml->at++;
			rc = skip_lines(toml);
		}
	}
	toml->at += rc == 0;
	return rc;
}

/* Behind the '{'. */
static int read_inline(struct toml *toml, cJSON *table)
{
	int rc = 0;

	skip_space(toml);
	if (*toml->at == '}') {
		toml->at++;
		return 0;
	}
	for (;;) {
		rc = read_pair(toml, table);
		if (rc < 0)
			return rc;
		skip_space(toml);
		if (*toml->at == '}')
			break;
		if (*toml->at != ',')
			return takt_toml_fail(toml, "',' or '}' must follow in a table");
		toml->at++;
		skip_space(toml);
	}
	toml->at++;
	return 0;
}

static int read_nested(struct toml *toml, cJSON **ret)
{
	bool is_list = *toml->at == '[';
	cJSON *value = is_list ? cJSON_CreateArray() : cJSON_CreateObject();
	int rc;

	if (!value)
		return takt_toml_starved(toml);
	set_origin(toml, value, CLOSED);
	toml->at++;
	rc = ++toml->depth > TAKT_JSON_MAX_DEPTH ? takt_toml_fail(toml, "nested too deep")
	     : is_list				 ? read_list(toml, value)
						 : read_inline(toml, value);
	toml->depth--;
	if (rc < 0)
		cJSON_Delete(value);
	else
		*ret = value;
	return rc;
}

static int read_value(struct toml *toml, cJSON **ret)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TOML_MAX_TEXT);
	int rc;

	if (*toml->at == '[' || *toml->at == '{')
		return read_nested(toml, ret);
	if (*toml->at != '"' && *toml->at != '\'')
		return takt_toml_word(toml, ret);
	rc = takt_toml_text(toml, false, &text);
	if (rc < 0)
		return rc;
	*ret = cJSON_CreateString(takt_str_text(&text));
	return *ret ? 0 : takt_toml_starved(toml);
}

/* [key]: the table is new, or was only named on the way to another one. */
static int open_table(struct toml *toml, cJSON *parent, const char *key, cJSON **ret)
{
	cJSON *child = cJSON_GetObjectItemCaseSensitive(parent, key);

	if (!child)
		return add_table(toml, parent, key, HEADER, ret);
	if (!cJSON_IsObject(child) || origin_of(child) != IMPLICIT)
		return twice(toml, key);
	set_origin(toml, child, HEADER);
	*ret = child;
	return 0;
}

/* [[key]]: one more table in a list of them. */
static int open_next(struct toml *toml, cJSON *parent, const char *key, cJSON **ret)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(parent, key), *table;
	int rc = 0;

	if (!list) {
		list = cJSON_CreateArray();
		rc = add(toml, parent, key, list);
		if (rc == 0)
			set_origin(toml, list, TABLES);
	}
	if (rc < 0)
		return rc;
	if (!cJSON_IsArray(list) || origin_of(list) != TABLES)
		return twice(toml, key);
	table = cJSON_CreateObject();
	if (!table || !cJSON_AddItemToArray(list, table)) {
		cJSON_Delete(table);
		return takt_toml_starved(toml);
	}
	set_origin(toml, table, HEADER);
	*ret = table;
	return 0;
}

/* At the '['. *ret: the table that the keys below are for. */
static int read_header(struct toml *toml, cJSON *root, cJSON **ret)
{
	bool is_list = toml->at[1] == '[';
	cJSON *table = NULL;
	char key[MAX_KEY];
	int rc;

	toml->at += is_list ? 2 : 1;
	skip_space(toml);
	rc = read_path(toml, false, root, &table, key);
	if (rc == 0 && strncmp(toml->at, is_list ? "]]" : "]", is_list ? 2 : 1) != 0)
		rc = takt_toml_fail(toml, "']' must follow the name of the table");
	if (rc < 0)
		return rc;
	toml->at += is_list ? 2 : 1;
	return is_list ? open_next(toml, table, key, ret) : open_table(toml, table, key, ret);
}

/* What may not stand anywhere. */
static int check_bytes(struct toml *toml)
{
	for (const char *c = toml->at; *c; c++) {
		toml->line += *c == '\n';
		if (((unsigned char)*c < 0x20 && !strchr("\t\r\n", *c)) || *c == 0x7f ||
		    (*c == '\r' && c[1] != '\n'))
			return takt_toml_fail(toml, "control character");
	}
	toml->line = 1;
	return takt_utf8_valid(toml->at) ? 0 : takt_toml_fail(toml, "the text is not UTF-8");
}

static int read_all(struct toml *toml, cJSON *root)
{
	cJSON *table = root;
	int rc = check_bytes(toml);

	if (rc == 0)
		rc = skip_lines(toml);
	while (rc == 0 && *toml->at) {
		rc = *toml->at == '[' ? read_header(toml, root, &table) : read_pair(toml, table);
		if (rc == 0)
			rc = end_line(toml);
		if (rc == 0)
			rc = skip_lines(toml);
	}
	return rc;
}

int takt_toml_parse(const char *text, struct cJSON **ret, struct takt_err *err)
{
	static const char mark[] = "\xef\xbb\xbf"; /* some editors begin with it */
	struct toml toml = {.at = text, .line = 1, .err = err};
	cJSON *root = cJSON_CreateObject();
	int rc;

	if (!root)
		return takt_toml_starved(&toml);
	set_origin(&toml, root, HEADER);
	toml.at += strncmp(text, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
	rc = read_all(&toml, root);
	if (rc < 0)
		cJSON_Delete(root);
	else
		*ret = root;
	return rc;
}
