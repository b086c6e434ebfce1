/* SPDX-License-Identifier: Apache-2.0 */
/* From options to the description of a job. */
#include "cli/job_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/profiles.h"
#include "cli/when.h"
#include "codec/json.h"

extern char **environ;

enum {
	MAX_PATH = 4096,
	MAX_CPU_MILLI = 4096 * 1000,
	MAX_MEM_MIB = 64 * 1024 * 1024,
	MAX_GRACE_MS = 24 * 60 * 60 * 1000,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for the job's description");
}

static int read_numbers(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	int64_t priority, retries;
	uint64_t grace_ms;
	int rc = takt_cli_number(cli, "priority", -1000, 1000, 0, &priority, err);

	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "grace", MAX_GRACE_MS, spec->grace_ms, &grace_ms,
					  err);
	if (rc == 0)
		rc = takt_cli_time_limit_ms(cli, &spec->time_limit_ms, err);
	if (rc == 0)
		rc = takt_cli_number(cli, "retries", 0, TAKT_SPEC_MAX_RETRIES, 0, &retries, err);
	if (rc < 0)
		return rc;
	spec->retries = (uint32_t)retries;
	spec->priority = (int32_t)priority;
	spec->grace_ms = (uint32_t)grace_ms;
	return 0;
}

/* "12", "12:ok", "12:any" */
int takt_job_after_parse(const char *text, struct takt_spec_after *ret, struct takt_err *err)
{
	size_t len = strcspn(text, ":");
	unsigned long long id;
	char digits[24] = "";

	if (len < sizeof(digits))
		memcpy(digits, text, len);
	if (takt_parse_u64(digits, 1, INT64_MAX, &id) < 0 ||
	    (text[len] && strcmp(text + len, ":ok") != 0 && strcmp(text + len, ":any") != 0))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--after' must be the number of a job, with :ok or :any or "
				    "neither, not '%.40s'",
				    text);
	*ret = (struct takt_spec_after){.job = id, .any = strcmp(text + len, ":any") == 0};
	return 0;
}

static int read_after(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	if (!takt_cli_has(cli, "after"))
		return 0;
	spec->after = takt_calloc(TAKT_CLI_MAX_GIVEN, sizeof(*spec->after));
	if (!spec->after)
		return no_memory(err);
	for (size_t i = 0; i < cli->given_count; i++) {
		int rc;

		if (strcmp(cli->given[i].option->name, "after") != 0)
			continue;
		rc = takt_job_after_parse(cli->given[i].value, &spec->after[spec->after_count],
					  err);
		if (rc < 0)
			return rc;
		spec->after_count++;
	}
	return 0;
}

static int read_room(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	uint64_t gpu_mem_mib = 0;
	int rc = takt_cli_milli(cli, "cpus", MAX_CPU_MILLI, 0, &spec->cpu_milli, err);

	if (rc == 0)
		rc = takt_cli_size_mib(cli, "mem", MAX_MEM_MIB, &spec->mem_mib, err);
	if (rc == 0)
		rc = takt_cli_size_mib(cli, "gpu-mem", MAX_MEM_MIB, &gpu_mem_mib, err);
	spec->gpu_mem_mib = (uint32_t)gpu_mem_mib;
	return rc;
}

static int read_grid(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	size_t n = 0;

	if (!takt_cli_has(cli, "grid"))
		return 0;
	spec->grid = takt_calloc(TAKT_CLI_MAX_GIVEN + 1, sizeof(*spec->grid));
	for (size_t i = 0; spec->grid && i < cli->given_count; i++) {
		if (strcmp(cli->given[i].option->name, "grid") != 0)
			continue;
		spec->grid[n] = takt_strdup(cli->given[i].value);
		if (!spec->grid[n++])
			return no_memory(err);
	}
	return spec->grid ? 0 : no_memory(err);
}

/* "%2": of a grid, which has its jobs already. */
static bool read_limit(const char *text, const struct takt_jobspec *spec, uint32_t *ret)
{
	unsigned long long limit;

	if (!spec->grid || text[0] != '%' || takt_parse_u64(text + 1, 1, 9999999, &limit) < 0)
		return false;
	*ret = (uint32_t)limit;
	return true;
}

/* "0-9", "0-9%2" */
static int read_array(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "array");
	int end = -1;

	if (!text || read_limit(text, spec, &spec->array_limit))
		return 0;
	spec->has_array = true;
	if (strlen(text) > 30 || text[0] == '-' ||
	    (sscanf(text, "%7u-%7u%%%7u%n", &spec->array_first, &spec->array_last,
		    &spec->array_limit, &end) != 3 &&
	     sscanf(text, "%7u-%7u%n", &spec->array_first, &spec->array_last, &end) != 2) ||
	    end < 0 || text[end] || strpbrk(text, "+ "))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--array' must be such as 0-9, or 0-9%%2 for two at a time, "
				    "or with '--grid' %%2, not '%.40s'",
				    text);
	return 0;
}

static int read_begin(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "begin");

	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return text ? takt_when_parse(text, now.tv_sec * 1000 + now.tv_nsec / 1000000,
				      &spec->begin_ms, err)
		    : 0;
}

/* --clock profile: what takt tune has found for jobs of this name. */
static int read_profile(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *name = takt_cli_value(cli, "name");
	const char *slash = cli->operand_count ? strrchr(cli->operands[0], '/') : NULL;
	struct takt_profile profile;
	int rc;

	if (!name)
		name = slash ? slash + 1 : cli->operand_count ? cli->operands[0] : "";
	rc = takt_profiles_find(takt_sys_real(), name, &profile, err);
	if (rc < 0)
		return rc;
	spec->clock_ask = TAKT_CLOCK_ASK_CEILING;
	spec->clock_mhz = profile.sm_mhz;
	if (!spec->power_limit_mw) /* one that was typed goes first */
		spec->power_limit_mw = profile.power_limit_mw;
	return 0;
}

static int read_clock(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *ceiling = takt_cli_value(cli, "clock");
	const char *lock = takt_cli_value(cli, "clock-lock");
	const char *limit = takt_cli_value(cli, "power-limit");

	int rc = limit ? takt_cli_watts(limit, "'--power-limit'", &spec->power_limit_mw, err) : 0;

	if (rc < 0)
		return rc;
	if (ceiling && lock)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--clock' and '--clock-lock' exclude each other");
	if (!ceiling && !lock)
		return 0;
	if (ceiling && strcmp(ceiling, "profile") == 0)
		return read_profile(cli, spec, err);
	spec->clock_ask = lock ? TAKT_CLOCK_ASK_LOCK : TAKT_CLOCK_ASK_CEILING;
	return takt_cli_mhz(lock ? lock : ceiling, lock ? "'--clock-lock'" : "'--clock'",
			    &spec->clock_mhz, err);
}

static int read_choices(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *name = takt_cli_value(cli, "name"), *visible = takt_cli_value(cli, "visible");

	if (name && (!name[0] || !takt_strcpy(spec->name, sizeof(spec->name), name)))
		return takt_err_set(err, -TAKT_E_USAGE, "'--name' must have 1 to %d bytes",
				    TAKT_SPEC_MAX_NAME);
	if (visible && strcmp(visible, "index") != 0 && strcmp(visible, "uuid") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--visible' must be index or uuid, not '%.40s'", visible);
	spec->visible = visible && visible[0] == 'u' ? TAKT_VISIBLE_UUID : TAKT_VISIBLE_INDEX;
	spec->held = takt_cli_has(cli, "hold");
	spec->requeue = takt_cli_has(cli, "requeue");
	spec->use_outside = takt_cli_has(cli, "use-outside");
	return 0;
}

static int read_command(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	spec->argv = takt_calloc((size_t)cli->operand_count + 1, sizeof(*spec->argv));
	if (!spec->argv)
		return no_memory(err);
	for (int i = 0; i < cli->operand_count; i++) {
		spec->argv[i] = takt_strdup(cli->operands[i]);
		if (!spec->argv[i])
			return no_memory(err);
	}
	return 0;
}

int takt_job_path(const char *wanted, char **ret, struct takt_err *err)
{
	char path[MAX_PATH];
	bool fits = true;
	size_t len;

	/* $PWD keeps the name under which the user knows the directory; realpath would not. */
	if (wanted && wanted[0] == '/')
		fits = takt_strcpy(path, sizeof(path), wanted);
	else if (!getcwd(path, sizeof(path)))
		return takt_err_set(err, -errno, "find out where this is");
	else if (wanted) {
		len = strlen(path);
		fits = snprintf(path + len, sizeof(path) - len, "/%s", wanted) <
		       (int)(sizeof(path) - len);
	}
	if (!fits)
		return takt_err_set(err, -ENAMETOOLONG, "directory '%.120s'", wanted);
	*ret = takt_strdup(path);
	return *ret ? 0 : no_memory(err);
}

static int read_cwd(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *wanted = takt_cli_value(cli, "cwd");
	int rc = takt_job_path(wanted, &spec->cwd, err);

	if (rc == 0 && wanted && access(spec->cwd, X_OK) < 0)
		return takt_err_set(err, -errno, "directory '%.120s'", wanted);
	return rc;
}

static bool same_name(const char *entry, const char *other)
{
	size_t len = strcspn(other, "=");

	return strncmp(entry, other, len) == 0 && entry[len] == '=';
}

/* Puts the entry in the place of one of the same name, else at the end. */
static int put_env(char **env, size_t *n, const char *entry)
{
	size_t i = 0;
	char *copy = takt_strdup(entry);

	if (!copy)
		return -ENOMEM;
	while (i < *n && !same_name(env[i], entry))
		i++;
	takt_free(env[i]);
	env[i] = copy;
	*n += i == *n;
	return 0;
}

/* Names that JSON cannot carry (not UTF-8) stay behind, and it is said. */
static int inherit_env(char **env, size_t *n)
{
	for (char **entry = environ; *entry; entry++) {
		if (!strchr(*entry, '=') || **entry == '=')
			continue;
		if (!takt_utf8_valid(*entry)) {
			fprintf(stderr, "takt: $%.*s is not UTF-8 and stays behind\n",
				(int)strcspn(*entry, "="), *entry);
			continue;
		}
		if (put_env(env, n, *entry) < 0)
			return -ENOMEM;
	}
	return 0;
}

void takt_job_env_free(char **env)
{
	for (size_t i = 0; env && env[i]; i++)
		takt_free(env[i]);
	takt_free(env);
}

int takt_job_env(const char *const *more, size_t count, bool inherit, char ***ret,
		 struct takt_err *err)
{
	size_t n = 0, room = count + 1;
	char **env;
	int rc;

	for (char **entry = environ; *entry; entry++)
		room++;
	env = takt_calloc(room, sizeof(*env));
	rc = env ? 0 : -ENOMEM;
	if (rc == 0 && inherit)
		rc = inherit_env(env, &n);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = put_env(env, &n, more[i]);
	if (rc < 0) {
		takt_job_env_free(env);
		return no_memory(err);
	}
	*ret = env;
	return 0;
}

int takt_job_env_read(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *more[TAKT_CLI_MAX_GIVEN];
	size_t n = 0;

	for (size_t i = 0; i < cli->given_count; i++) {
		const char *value = cli->given[i].value;

		if (strcmp(cli->given[i].option->name, "env") != 0)
			continue;
		if (!strchr(value, '=') || value[0] == '=')
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--env' must be NAME=VALUE, not '%.60s'", value);
		more[n++] = value;
	}
	return takt_job_env(more, n, !takt_cli_has(cli, "no-env"), &spec->env, err);
}

int takt_job_options_apply(const struct takt_cli *cli, struct takt_jobspec *spec,
			   struct takt_err *err)
{
	static int (*const steps[])(const struct takt_cli *, struct takt_jobspec *,
				    struct takt_err *) = {
		read_numbers, takt_job_terms_read, read_grid,  read_array,   read_room,
		read_after,   read_begin,	   read_clock, read_choices,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(steps) && rc == 0; i++)
		rc = steps[i](cli, spec, err);
	return rc;
}

int takt_job_options_read(const struct takt_cli *cli, struct takt_jobspec *ret,
			  struct takt_err *err)
{
	int rc;

	takt_jobspec_init(ret);
	rc = takt_job_options_apply(cli, ret, err);
	if (rc == 0)
		rc = read_command(cli, ret, err);
	if (rc == 0)
		rc = read_cwd(cli, ret, err);
	if (rc == 0)
		rc = takt_job_env_read(cli, ret, err);
	return rc == 0 ? takt_jobspec_check(ret, err) : rc;
}

static const char *env_value(const struct takt_jobspec *spec, const char *name)
{
	for (size_t i = 0; spec->env && spec->env[i]; i++)
		if (same_name(spec->env[i], name))
			return spec->env[i] + strlen(name) + 1;
	return NULL;
}

/* 0, 126 or 127. */
static int try_file(int dirfd, const char *path)
{
	struct stat st;

	if (fstatat(dirfd, path, &st, 0) < 0)
		return errno == EACCES ? EXIT_NOT_EXECUTABLE : EXIT_NOT_FOUND;
	return S_ISREG(st.st_mode) && faccessat(dirfd, path, X_OK, AT_EACCESS) == 0
		       ? 0
		       : EXIT_NOT_EXECUTABLE;
}

static int search_path(int dirfd, const char *command, const char *path)
{
	int worst = EXIT_NOT_FOUND, found;
	char file[MAX_PATH];

	for (;;) {
		size_t len = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s%s%s", (int)len, path, len ? "/" : "", command);
		found = try_file(dirfd, file);
		if (found == 0)
			return 0;
		worst = found == EXIT_NOT_EXECUTABLE ? found : worst;
		if (!path[len])
			return worst;
		path += len + 1;
	}
}

int takt_job_options_find_command(const struct takt_jobspec *spec, struct takt_err *err)
{
	const char *command = spec->argv[0], *path = env_value(spec, "PATH");
	int dirfd = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC), found;

	if (dirfd < 0)
		return 0;
	if (spec->container) { /* the command is the image's to have */
		close(dirfd);
		return 0;
	}
	if (strchr(command, '/'))
		found = try_file(dirfd, command);
	else
		found = search_path(dirfd, command, path ? path : "/usr/local/bin:/usr/bin:/bin");
	close(dirfd);
	if (found == EXIT_NOT_FOUND)
		takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no command '%.120s'%s", command,
			     strchr(command, '/') ? "" : " in $PATH");
	if (found == EXIT_NOT_EXECUTABLE)
		takt_err_set(err, -TAKT_E_NOT_FOUND, "command '%.120s' cannot be executed",
			     command);
	return found;
}
