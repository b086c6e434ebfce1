/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `takt simulate` that all protocols have. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/simulate.h"
#include "takt_build.h"

enum {
	MAX_COMMAND = 65536,
	MAX_SEEDS = 100000,
	MAX_LOAD = 1000,
};

static int take_param(struct takt_simulate *simulate, const char *text, struct takt_err *err)
{
	struct takt_policy_param param;

	if (takt_policy_param_parse(text, strlen(text), &param) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--param' must read NAME=NUMBER, not '%.60s'", text);
	if (simulate->param_count == TAKT_SIMULATE_MAX_PARAMS)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d '--param'",
				    TAKT_SIMULATE_MAX_PARAMS);
	simulate->params[simulate->param_count++] = param;
	takt_simulate_note(simulate, "param", "%s", text);
	return 0;
}

static int take_params(struct takt_simulate *simulate, struct takt_err *err)
{
	const struct takt_cli *cli = simulate->cli;
	int rc = 0;

	for (size_t i = 0; i < cli->given_count && rc == 0; i++)
		if (strcmp(cli->given[i].option->name, "param") == 0)
			rc = take_param(simulate, cli->given[i].value, err);
	return rc;
}

int takt_simulate_begin(struct takt_cli *cli, struct takt_simulate *ret, struct takt_err *err)
{
	struct takt_simulate simulate = {
		.cli = cli,
		.cluster = takt_cli_value(cli, "cluster"),
		.trace = takt_cli_value(cli, "trace"),
		.command = TAKT_STR(MAX_COMMAND),
	};
	int64_t threads;
	int rc = takt_cli_number(cli, "threads", 1, 256, 0, &threads, err);

	if (rc < 0)
		return rc;
	simulate.threads = (unsigned)threads;
	simulate.begun_ns = takt_mono_now(takt_sys_real()).ns;
	takt_cli_command_text(cli, &simulate.command);
	rc = take_params(&simulate, err);
	if (rc < 0)
		takt_simulate_fini(&simulate);
	else
		*ret = simulate;
	return rc;
}

int takt_simulate_init(struct takt_cli *cli, struct takt_simulate *ret, struct takt_err *err)
{
	if (!takt_cli_value(cli, "cluster") || !takt_cli_value(cli, "trace"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--cluster' and '--trace' say what is simulated; see 'takt "
				    "help simulate'");
	return takt_simulate_begin(cli, ret, err);
}

void takt_simulate_fini(struct takt_simulate *simulate)
{
	takt_str_fini(&simulate->command);
}

int takt_simulate_seeds(struct takt_simulate *simulate, uint64_t first, uint64_t last,
			struct takt_err *err)
{
	const char *text = takt_cli_value(simulate->cli, "seeds");
	unsigned long long from = first, to = last;
	char begin[32];
	const char *dots;

	if (text) {
		dots = strstr(text, "..");
		if (!takt_strcpy(begin, sizeof(begin), text))
			begin[0] = '\0';
		if (dots && (size_t)(dots - text) < sizeof(begin))
			begin[dots - text] = '\0';
		if (takt_parse_u64(begin, 0, INT64_MAX, &from) < 0 ||
		    takt_parse_u64(dots ? dots + 2 : begin, from, from + MAX_SEEDS - 1, &to) < 0)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--seeds' must be a number or FIRST..LAST, at most %d "
					    "of them, not '%.40s'",
					    MAX_SEEDS, text);
	}
	simulate->first_seed = from;
	simulate->last_seed = to;
	takt_simulate_note(simulate, "seeds", "%llu..%llu", from, to);
	return 0;
}

int takt_simulate_loads(struct takt_simulate *simulate, const char *absent, struct takt_err *err)
{
	const char *text = takt_cli_value(simulate->cli, "load");
	const char *at = text ? text : absent;

	while (at) {
		size_t len = strcspn(at, ",");
		unsigned long long load;
		char number[16];

		if (len < sizeof(number)) {
			memcpy(number, at, len);
			number[len] = '\0';
		}
		if (len >= sizeof(number) || takt_parse_u64(number, 1, MAX_LOAD, &load) < 0 ||
		    (simulate->load_count && load <= simulate->loads[simulate->load_count - 1]) ||
		    simulate->load_count == TAKT_SIMULATE_MAX_LOADS)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--load' must be percents in ascending order, such as "
					    "70,85,95, not '%.60s'",
					    text);
		simulate->loads[simulate->load_count++] = (uint32_t)load;
		at = at[len] ? at + len + 1 : NULL;
	}
	return 0;
}

void takt_simulate_note(struct takt_simulate *simulate, const char *name, const char *fmt, ...)
{
	size_t i = simulate->note_count;
	va_list ap;

	if (i + 2 > TAKT_SIMULATE_NOTES)
		return;
	takt_strcpy(simulate->notes[i], TAKT_SIMULATE_NOTE, name);
	va_start(ap, fmt);
	vsnprintf(simulate->notes[i + 1], TAKT_SIMULATE_NOTE, fmt, ap);
	va_end(ap);
	simulate->note_count += 2;
}

const char *takt_simulate_behind(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 && text[len] == ':' ? text + len + 1 : text;
}

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

/* Beside takt itself, in the build tree, or where it was installed. */
static bool find_bound(char path[PATH_MAX])
{
	char self[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = n > 0 ? strrchr(self, '/') : NULL;

	if (slash) {
		*slash = '\0';
		if (snprintf(path, PATH_MAX, "%s/takt-bound", self) < PATH_MAX && is_program(path))
			return true;
		if (snprintf(path, PATH_MAX, "%s/../../tools/takt-bound", self) < PATH_MAX &&
		    is_program(path))
			return true;
	}
	takt_strcpy(path, PATH_MAX, TAKT_LIBEXECDIR "/takt-bound");
	return is_program(path);
}

static const char *cache_dir(char cache[PATH_MAX])
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	if (base && base[0] == '/')
		n = snprintf(cache, PATH_MAX, "%s/takt/bound", base);
	else if (home && home[0] == '/')
		n = snprintf(cache, PATH_MAX, "%s/.cache/takt/bound", home);
	else
		return NULL;
	return n < PATH_MAX ? cache : NULL;
}

bool takt_simulate_bound(struct takt_simulate *simulate, char path[PATH_MAX], char cache[PATH_MAX],
			 struct takt_bound_program *ret)
{
	const char *given = takt_cli_value(simulate->cli, "bound");

	if (given && strcmp(given, "off") == 0)
		return false;
	if (given && strcmp(given, "auto") != 0)
		takt_strcpy(path, PATH_MAX, given);
	else
		find_bound(path);
	*ret = (struct takt_bound_program){.path = path, .cache = cache_dir(cache)};
	return true;
}
