/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a copy of the text; strings are ended in place. */
#include "twin_toml.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	MAX_DEPTH = 4
};

struct twin_toml {
	char *file, *text;
	struct twin_toml_value *values; /* TWIN_TOML_MAX_VALUES */
	uint32_t value_count, key_count;
	struct twin_toml_key keys[TWIN_TOML_MAX_KEYS];
	/* while reading */
	char *at;
	unsigned line;
	const char *section;
	struct takt_err *err;
};

int twin_toml_error(const struct twin_toml *toml, unsigned line, const char *section,
		    const char *key, struct takt_err *err, const char *fmt, ...)
{
	char text[TAKT_ERR_MSG];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	return takt_err_set(err, -TAKT_E_CORRUPT, "%s:%u: %s%s%s%s%s", toml->file, line,
			    section ? section : "", section && *section ? "." : "", key ? key : "",
			    key ? " " : "", text);
}

static int wrong(struct twin_toml *toml, const char *text)
{
	return twin_toml_error(toml, toml->line, NULL, NULL, toml->err, "%s", text);
}

static void skip_blanks(struct twin_toml *toml)
{
	while (*toml->at == ' ' || *toml->at == '\t' || *toml->at == '\r')
		toml->at++;
	if (*toml->at == '#')
		toml->at += strcspn(toml->at, "\n");
}

/* Blanks, comments and line ends. */
static void skip_lines(struct twin_toml *toml)
{
	for (skip_blanks(toml); *toml->at == '\n'; skip_blanks(toml)) {
		toml->line++;
		toml->at++;
	}
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A bare name. It is ended by whoever has looked at the character after it. */
static char *read_name(struct twin_toml *toml, char **ret_end)
{
	char *name = toml->at;

	while (is_name(*toml->at))
		toml->at++;
	*ret_end = toml->at;
	return toml->at > name ? name : NULL;
}

static int read_value(struct twin_toml *toml, unsigned depth, struct twin_toml_value **ret);

static int read_string(struct twin_toml *toml, struct twin_toml_value *value)
{
	char *end = toml->at + 1 + strcspn(toml->at + 1, "\"\\\n");

	if (*end != '"')
		return wrong(toml, "a string ends in \" on its line and has no \\ in it");
	value->kind = TWIN_TOML_STRING;
	value->text = toml->at + 1;
	*end = '\0';
	toml->at = end + 1;
	return 0;
}

static int read_integer(struct twin_toml *toml, struct twin_toml_value *value)
{
	char digits[32], *end;
	size_t n = 0;

	while (is_name(*toml->at) || *toml->at == '+' || *toml->at == '.') {
		if (*toml->at != '_' && n + 1 < sizeof(digits))
			digits[n++] = *toml->at;
		toml->at++;
	}
	digits[n] = '\0';
	errno = 0;
	value->kind = TWIN_TOML_INTEGER;
	value->number = strtoll(digits, &end, strncmp(digits, "0x", 2) == 0 ? 16 : 10);
	if (n == 0 || *end || errno)
		return wrong(toml, "a value is \"text\", a whole number, true, false or [ ... ]");
	return 0;
}

static int read_array(struct twin_toml *toml, unsigned depth, struct twin_toml_value *array)
{
	const struct twin_toml_value **end = &array->first;

	if (depth >= MAX_DEPTH)
		return wrong(toml, "arrays are nested too deep");
	array->kind = TWIN_TOML_ARRAY;
	toml->at++;
	for (skip_lines(toml); *toml->at != ']'; skip_lines(toml)) {
		struct twin_toml_value *item;
		int rc = read_value(toml, depth + 1, &item);
		if (rc < 0)
			return rc;
		*end = item;
		end = &item->next;
		array->count++;
		skip_lines(toml);
		if (*toml->at != ',' && *toml->at != ']')
			return wrong(toml, "in an array, values are parted by commas and end in ]");
		toml->at += *toml->at == ',';
	}
	toml->at++;
	return 0;
}

static bool read_word(struct twin_toml *toml, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(toml->at, word, n) != 0 || is_name(toml->at[n]))
		return false;
	toml->at += n;
	return true;
}

static int read_value(struct twin_toml *toml, unsigned depth, struct twin_toml_value **ret)
{
	struct twin_toml_value *value = &toml->values[toml->value_count];

	if (toml->value_count == TWIN_TOML_MAX_VALUES)
		return wrong(toml, "the file has more than 4096 values");
	toml->value_count++;
	value->line = toml->line;
	*ret = value;
	if (*toml->at == '"')
		return read_string(toml, value);
	if (*toml->at == '[')
		return read_array(toml, depth, value);
	value->kind = TWIN_TOML_BOOLEAN;
	if (read_word(toml, "false"))
		return 0;
	value->number = 1;
	return read_word(toml, "true") ? 0 : read_integer(toml, value);
}

static int read_section(struct twin_toml *toml)
{
	char *end;

	toml->at++;
	skip_blanks(toml);
	toml->section = read_name(toml, &end);
	skip_blanks(toml);
	if (!toml->section || *toml->at != ']')
		return wrong(toml, "a section is [name]");
	toml->at++;
	*end = '\0';
	return 0;
}

static int add_key(struct twin_toml *toml, const char *name, const struct twin_toml_value *value)
{
	for (uint32_t i = 0; i < toml->key_count; i++) {
		if (strcmp(toml->keys[i].section, toml->section) == 0 &&
		    strcmp(toml->keys[i].name, name) == 0)
			return twin_toml_error(toml, value->line, toml->section, name, toml->err,
					       "is there twice, first on line %u",
					       toml->keys[i].value->line);
	}
	if (toml->key_count == TWIN_TOML_MAX_KEYS)
		return wrong(toml, "the file has more than 128 keys");
	toml->keys[toml->key_count++] =
		(struct twin_toml_key){.section = toml->section, .name = name, .value = value};
	return 0;
}

static int read_key(struct twin_toml *toml)
{
	struct twin_toml_value *value;
	char *end, *name = read_name(toml, &end);
	int rc;

	skip_blanks(toml);
	if (!name || *toml->at != '=')
		return wrong(toml, "a line is key = value, [section] or a comment");
	toml->at++;
	*end = '\0';
	skip_blanks(toml);
	rc = read_value(toml, 0, &value);
	return rc < 0 ? rc : add_key(toml, name, value);
}

static int read_all(struct twin_toml *toml)
{
	for (skip_lines(toml); *toml->at; skip_lines(toml)) {
		int rc = *toml->at == '[' ? read_section(toml) : read_key(toml);
		if (rc < 0)
			return rc;
		skip_blanks(toml);
		if (*toml->at && *toml->at != '\n')
			return wrong(toml, "there is more on the line than one value");
	}
	return 0;
}

int twin_toml_parse(const char *file, const char *text, struct twin_toml **ret,
		    struct takt_err *err)
{
	TAKT_CLEANUP(twin_tomlp) struct twin_toml *toml = NULL;
	int rc;

	if (strlen(text) > TWIN_TOML_MAX_BYTES)
		return takt_err_set(err, -TAKT_E_LIMIT, "%s: more than %d bytes", file,
				    TWIN_TOML_MAX_BYTES);
	toml = takt_zalloc(sizeof(*toml));
	if (!toml || !(toml->file = takt_strdup(file)) || !(toml->text = takt_strdup(text)) ||
	    !(toml->values = takt_calloc(TWIN_TOML_MAX_VALUES, sizeof(*toml->values))))
		return takt_err_set(err, -ENOMEM, "read %s", file);
	toml->at = toml->text;
	toml->line = 1;
	toml->section = "";
	toml->err = err;
	rc = read_all(toml);
	if (rc < 0)
		return rc;
	*ret = toml;
	toml = NULL;
	return 0;
}

static ssize_t read_whole(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	while (used < size && (n = read(fd, buf + used, size - used)) > 0)
		used += (size_t)n;
	n = n < 0 ? -errno : (ssize_t)used;
	close(fd);
	return n;
}

int twin_toml_read(const char *path, struct twin_toml **ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = takt_zalloc(TWIN_TOML_MAX_BYTES + 2);
	ssize_t n = text ? read_whole(path, text, TWIN_TOML_MAX_BYTES + 1) : -ENOMEM;

	if (n < 0)
		return takt_err_set(err, (int)n, "read '%s'", path);
	if (memchr(text, '\0', (size_t)n))
		return takt_err_set(err, -TAKT_E_CORRUPT, "%s: is not text", path);
	return twin_toml_parse(path, text, ret, err);
}

void twin_toml_free(struct twin_toml *toml)
{
	if (!toml)
		return;
	takt_free(toml->file);
	takt_free(toml->text);
	takt_free(toml->values);
	takt_free(toml);
}

const char *twin_toml_file(const struct twin_toml *toml)
{
	return toml->file;
}

const struct twin_toml_value *twin_toml_find(struct twin_toml *toml, const char *section,
					     const char *key)
{
	for (uint32_t i = 0; i < toml->key_count; i++) {
		if (strcmp(toml->keys[i].name, key) == 0 &&
		    strcmp(toml->keys[i].section, section) == 0) {
			toml->keys[i].known = true;
			return toml->keys[i].value;
		}
	}
	return NULL;
}

const struct twin_toml_key *twin_toml_unknown(const struct twin_toml *toml)
{
	for (uint32_t i = 0; i < toml->key_count; i++) {
		if (!toml->keys[i].known)
			return &toml->keys[i];
	}
	return NULL;
}

const struct twin_toml_key *twin_toml_key_at(const struct twin_toml *toml, unsigned index)
{
	return index < toml->key_count ? &toml->keys[index] : NULL;
}
