/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of `takt serve`: every key of the table, and three of their own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

enum {
	MAX_KEY = 64
};

static const char default_file[] = "/etc/takt/takt.conf";

/* One argument: its name and its value, which may stand behind '=' or in the next argument. */
struct flag {
	char name[MAX_KEY]; /* without dashes in front, '_' for '-' */
	const char *value;  /* NULL = none */
};

/* What a flag without a value means; NULL: it needs one. */
static const char *word_alone(const char *name)
{
	if (strcmp(name, "manage") == 0)
		return "always";
	return strcmp(name, "assume_unlocked") == 0 || strcmp(name, "allow_weak_isolation") == 0 ||
			       strcmp(name, "allow_system_users") == 0
		       ? "yes"
		       : NULL;
}

static int read_flag(int argc, char **argv, int *at, struct flag *ret, struct takt_err *err)
{
	const char *text = argv[*at], *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);

	if (strncmp(text, "--", 2) != 0 || len <= 2 || len - 2 >= sizeof(ret->name))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.60s' is not a flag of takt serve; see takt serve --help",
				    text);
	memcpy(ret->name, text + 2, len - 2);
	ret->name[len - 2] = '\0';
	for (char *c = ret->name; *c; c++)
		if (*c == '-')
			*c = '_';
	ret->value = equals ? equals + 1 : NULL;
	if (strcmp(ret->name, "help") == 0 || strcmp(ret->name, "print_config") == 0)
		return equals ? takt_err_set(err, -TAKT_E_USAGE, "%.60s takes no value", text) : 0;
	if (!equals && word_alone(ret->name) &&
	    (*at + 1 == argc || strncmp(argv[*at + 1], "--", 2) == 0)) {
		ret->value = word_alone(ret->name);
		return 0;
	}
	if (!equals && *at + 1 == argc)
		return takt_err_set(err, -TAKT_E_USAGE, "%.60s needs a value", text);
	if (!equals)
		ret->value = argv[++*at];
	return 0;
}

/* What the file says comes first, wherever --config stands. */
static int load_file(struct takt_config *config, int argc, char **argv, struct takt_err *err)
{
	const char *path = NULL;
	struct flag flag;
	int rc;

	for (int i = 1; i < argc; i++) {
		rc = read_flag(argc, argv, &i, &flag, err);
		if (rc < 0)
			return rc;
		if (strcmp(flag.name, "config") == 0)
			path = flag.value;
	}
	rc = takt_config_load(config, path ? path : default_file, err);
	return rc == -ENOENT && !path ? 0 : rc;
}

static int take_flag(struct takt_config *config, const struct flag *flag,
		     enum takt_config_action *action, struct takt_err *err)
{
	char where[MAX_KEY + 2];

	if (strcmp(flag->name, "config") == 0)
		return 0;
	if (!flag->value) {
		*action = flag->name[0] == 'h' ? TAKT_CONFIG_HELP : TAKT_CONFIG_PRINT;
		return 0;
	}
	snprintf(where, sizeof(where), "--%s", flag->name);
	for (char *c = where + 2; *c; c++)
		if (*c == '_')
			*c = '-';
	return takt_config_set(config, flag->name, flag->value, where, err);
}

int takt_config_from_args(struct takt_config *config, int argc, char **argv,
			  enum takt_config_action *ret_action, struct takt_err *err)
{
	enum takt_config_action action = TAKT_CONFIG_RUN;
	struct takt_config next;
	struct flag flag;
	int rc;

	takt_config_init(&next);
	rc = load_file(&next, argc, argv, err);
	for (int i = 1; i < argc && rc == 0; i++) {
		rc = read_flag(argc, argv, &i, &flag, err);
		if (rc == 0)
			rc = take_flag(&next, &flag, &action, err);
	}
	if (rc < 0)
		return rc;
	*config = next;
	*ret_action = action;
	return 0;
}
