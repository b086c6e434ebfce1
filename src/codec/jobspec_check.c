/* SPDX-License-Identifier: Apache-2.0 */
/* What a job description may say: everything that does not depend on the machine. */
#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "codec/grid.h"
#include "codec/jobspec_impl.h"
#include "codec/json.h"

static const int64_t max_time_ms = (int64_t)SPEC_MAX_TIME_DAYS * SPEC_MAX_DAY_MS;

bool takt_spec_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static int check_name(const struct takt_jobspec *spec, struct takt_err *err)
{
	/* A grid's {NAME} goes before the name is a job's. */
	for (const char *c = spec->name; *c; c++)
		if (!takt_spec_name_char(*c) && !(spec->grid && (*c == '{' || *c == '}')))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'name' may have letters, digits, '.', '_' and "
					    "'-', not as in '%s'",
					    spec->name);
	return 0;
}

int takt_spec_check_texts(const char *field, char *const *texts, struct takt_err *err)
{
	for (size_t i = 0; texts && texts[i]; i++)
		if (!takt_utf8_valid(texts[i]))
			return takt_err_set(err, -TAKT_E_USAGE, "field '%s[%zu]' must be UTF-8",
					    field, i);
	return 0;
}

static size_t count_texts(char *const *texts)
{
	size_t n = 0;

	while (texts && texts[n])
		n++;
	return n;
}

static int check_command(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'argv' must have the command as its first entry");
	if (count_texts(spec->argv) > TAKT_SPEC_MAX_ARGS)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'argv' must have at most %d entries",
				    TAKT_SPEC_MAX_ARGS);
	return takt_spec_check_texts("argv", spec->argv, err);
}

static int check_env(const struct takt_jobspec *spec, struct takt_err *err)
{
	for (size_t i = 0; spec->env && spec->env[i]; i++) {
		if (!strchr(spec->env[i], '=') || spec->env[i][0] == '=')
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'env[%zu]' must be NAME=value, not '%.60s'", i,
					    spec->env[i]);
	}
	if (count_texts(spec->env) > TAKT_SPEC_MAX_ENV)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'env' must have at most %d entries",
				    TAKT_SPEC_MAX_ENV);
	return takt_spec_check_texts("env", spec->env, err);
}

static int check_cwd(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->cwd || spec->cwd[0] != '/' || strlen(spec->cwd) > SPEC_MAX_PATH)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'cwd' must be an absolute path of at most %d bytes, not "
				    "'%.80s'",
				    SPEC_MAX_PATH, spec->cwd ? spec->cwd : "");
	if (!takt_utf8_valid(spec->cwd))
		return takt_err_set(err, -TAKT_E_USAGE, "field 'cwd' must be UTF-8");
	return 0;
}

int takt_spec_check_time(const char *field, uint64_t ms, struct takt_err *err)
{
	if (ms <= (uint64_t)max_time_ms)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "field '%s' must be at most %lld (%d days), not %llu", field,
			    (long long)max_time_ms, SPEC_MAX_TIME_DAYS, (unsigned long long)ms);
}

static int check_numbers(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->gpus > SPEC_MAX_GPUS)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'gpus' must be 0 to %d, not %u",
				    SPEC_MAX_GPUS, spec->gpus);
	if (spec->priority < -TAKT_SPEC_MAX_PRIORITY || spec->priority > TAKT_SPEC_MAX_PRIORITY)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'priority' must be -%d to %d, not %d",
				    TAKT_SPEC_MAX_PRIORITY, TAKT_SPEC_MAX_PRIORITY, spec->priority);
	if (spec->gpu_mem_mib && spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'gpu_mem_mib' needs at least one GPU in 'gpus'");
	if (spec->begin_ms < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'begin_ms' must be milliseconds since 1970, not %lld",
				    (long long)spec->begin_ms);
	if (spec->grace_ms > SPEC_MAX_GRACE_MS)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'grace_ms' must be 0 to %d (a day), not %u",
				    SPEC_MAX_GRACE_MS, spec->grace_ms);
	return takt_spec_check_time("time_limit_ms", spec->time_limit_ms, err);
}

static int check_grid(const struct takt_jobspec *spec, struct takt_err *err)
{
	uint32_t jobs = 0;
	int rc = spec->grid ? takt_spec_check_texts("grid", spec->grid, err) : 0;

	if (rc == 0)
		rc = takt_spec_check_texts("params", spec->params, err);
	if (rc == 0)
		rc = takt_spec_check_texts("after_names", spec->after_names, err);
	if (rc == 0 && spec->grid)
		rc = takt_grid_check(spec->grid, &jobs, err);
	if (rc < 0 || !spec->grid || !spec->has_array)
		return rc;
	if (spec->array_first != 0 || spec->array_last != jobs - 1)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'grid' counts its %u jobs itself, from 0: drop "
				    "'array_first' and 'array_last'",
				    jobs);
	return 0;
}

static int check_array(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->has_array)
		return spec->array_limit == 0 || spec->array_id || spec->grid
			       ? 0
			       : takt_err_set(err, -TAKT_E_USAGE,
					      "field 'array_limit' needs 'array_first' and "
					      "'array_last', or 'grid'");
	if (spec->array_id)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"field 'array_id' is set by takt, not by who hands in an array");
	if (spec->array_last < spec->array_first ||
	    spec->array_last - spec->array_first >= TAKT_SPEC_MAX_ARRAY)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'array_last' must be %u ('array_first') to %u, not %u",
				    spec->array_first, spec->array_first + TAKT_SPEC_MAX_ARRAY - 1,
				    spec->array_last);
	return 0;
}

static int check_clock(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->clock_ask == TAKT_CLOCK_ASK_NONE)
		return spec->clock_mhz == 0
			       ? 0
			       : takt_err_set(
					 err, -TAKT_E_USAGE,
					 "field 'clock_mhz' needs 'clock_ask' to be 'ceiling' or "
					 "'lock'");
	if (spec->clock_mhz < 1 || spec->clock_mhz > SPEC_MAX_CLOCK_MHZ)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'clock_mhz' must be 1 to %d, not %u",
				    SPEC_MAX_CLOCK_MHZ, spec->clock_mhz);
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'clock_ask' needs at least one GPU in 'gpus'");
	if (spec->clock_ask == TAKT_CLOCK_ASK_LOCK && spec->use_outside)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'clock_ask': 'lock' needs GPUs held alone, "
				    "'use_outside' may share them");
	return 0;
}

static int check_power_limit(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->power_limit_mw)
		return 0;
	if (spec->power_limit_mw < SPEC_MIN_POWER_MW || spec->power_limit_mw > SPEC_MAX_POWER_MW)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'power_limit_mw' must be %d to %d (milliwatts), not %u",
				    SPEC_MIN_POWER_MW, SPEC_MAX_POWER_MW, spec->power_limit_mw);
	return spec->gpus ? 0
			  : takt_err_set(err, -TAKT_E_USAGE,
					 "field 'power_limit_mw' needs at least one GPU in 'gpus'");
}

int takt_jobspec_check(const struct takt_jobspec *spec, struct takt_err *err)
{
	static int (*const checks[])(const struct takt_jobspec *, struct takt_err *) = {
		check_name, check_command, check_env,	check_cwd,	   check_numbers,
		check_grid, check_array,   check_clock, check_power_limit, takt_spec_check_terms,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(checks) && rc == 0; i++)
		rc = checks[i](spec, err);
	return rc;
}
