/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the two formats of the metrics page a client wants, by its Accept header: OpenMetrics
 * where it is named and liked no less than plain text.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/server_impl.h"

enum {
	MAX_ITEM = 128, /* longer ones are not understood */
};

/* "type/sub;name=value": the value of a parameter, cut out of the item; NULL = not there. */
static char *parameter(char *item, const char *name)
{
	size_t n = strlen(name);

	for (char *at = strchr(item, ';'); at; at = strchr(at, ';')) {
		at += 1 + strspn(at + 1, " \t");
		if (strncasecmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	}
	return NULL;
}

static bool has_version(char *item, const char *const *versions)
{
	const char *value = parameter(item, "version");
	size_t len = value ? strcspn(value, "; \t") : 0;

	if (!value)
		return true;
	for (; *versions; versions++)
		if (strlen(*versions) == len && strncmp(*versions, value, len) == 0)
			return true;
	return false;
}

/* How much is liked, in thousandths: 1000 where nothing is said. */
static int quality(char *item)
{
	const char *value = parameter(item, "q");
	double q = value ? strtod(value, NULL) : 1;

	return q >= 1 ? 1000 : q > 0 ? (int)(q * 1000) : 0;
}

static bool is_type(const char *item, const char *type)
{
	size_t len = strcspn(item, "; \t");

	return strlen(type) == len && strncasecmp(type, item, len) == 0;
}

static void look_at(char *item, int *openmetrics, int *plain)
{
	static const char *const open_versions[] = {"1.0.0", "0.0.1", NULL};
	static const char *const plain_versions[] = {"0.0.4", NULL};
	bool is_open =
		is_type(item, "application/openmetrics-text") && has_version(item, open_versions);
	bool is_plain = is_type(item, "*/*") || is_type(item, "text/*") ||
			(is_type(item, "text/plain") && has_version(item, plain_versions));
	int liked = quality(item);

	if (is_open && liked > *openmetrics)
		*openmetrics = liked;
	if (is_plain && liked > *plain)
		*plain = liked;
}

bool takt_server_wants_openmetrics(const char *accept)
{
	int openmetrics = 0, plain = 0;

	while (accept && *accept) {
		size_t len;
		char item[MAX_ITEM];

		accept += strspn(accept, ", \t");
		len = strcspn(accept, ",");
		if (len > 0 && len < sizeof(item)) {
			memcpy(item, accept, len);
			item[len] = '\0';
			look_at(item, &openmetrics, &plain);
		}
		accept += len;
	}
	return openmetrics > 0 && openmetrics >= plain;
}
