/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a job: defaults, checks, JSON. */
#include "codec/jobspec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/view_tables.h"

enum {
	MAX_GPUS = 64,
	MAX_CLOCK_MHZ = 10000,
	MAX_CPU_MILLI = 4096 * 1000,
	MAX_MEM_MIB = 64 * 1024 * 1024,
	MAX_TIME_DAYS = 366,
	MAX_GRACE_MS = 24 * 60 * 60 * 1000,
	DEFAULT_GRACE_MS = 30000,
	MAX_CWD = 4095,
};

static const char *const clock_asks[] = {"none", "ceiling", "lock", NULL};
static const char *const visibles[] = {"index", "uuid", NULL};

static const int64_t max_time_ms = (int64_t)MAX_TIME_DAYS * 24 * 60 * 60 * 1000;

#define AFTER struct takt_spec_after
static const struct takt_field after_fields[] = {
	U64(AFTER, job, MUST, .min = 1),
	BOOL(AFTER, any),
};
static const struct takt_shape after_shape = TAKT_SHAPE(AFTER, "a dependency", after_fields);

#define SPEC struct takt_jobspec
static const struct takt_field fields[] = {
	TEXT(SPEC, name),
	{TAKT_FIELD_AT(SPEC, argv, TAKT_FIELD_TEXTS), .required = true, .room = TAKT_SPEC_MAX_ARGS},
	{TAKT_FIELD_AT(SPEC, cwd, TAKT_FIELD_OWNED_TEXT), .required = true},
	{TAKT_FIELD_AT(SPEC, gpus, TAKT_FIELD_U32), .max = MAX_GPUS},
	{TAKT_FIELD_AT(SPEC, priority, TAKT_FIELD_I32), .min = -TAKT_SPEC_MAX_PRIORITY,
	 .max = TAKT_SPEC_MAX_PRIORITY},
	{TAKT_FIELD_AT(SPEC, cpu_milli, TAKT_FIELD_U32), .max = MAX_CPU_MILLI, NONE(0)},
	{TAKT_FIELD_AT(SPEC, mem_mib, TAKT_FIELD_U64), .max = MAX_MEM_MIB, NONE(0)},
	{TAKT_FIELD_AT(SPEC, gpu_mem_mib, TAKT_FIELD_U32), .max = MAX_MEM_MIB, NONE(0)},
	{TAKT_FIELD_AT(SPEC, array_first, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_ARRAY_INDEX,
	 .flag_offset = offsetof(SPEC, has_array)},
	{TAKT_FIELD_AT(SPEC, array_last, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_ARRAY_INDEX,
	 .flag_offset = offsetof(SPEC, has_array)},
	U32(SPEC, array_limit, NONE(0)),
	U32(SPEC, array_index, NONE(0)),
	U64(SPEC, array_id, NONE(0)),
	BOOL(SPEC, held),
	BOOL(SPEC, requeue),
	{TAKT_FIELD_AT(SPEC, retries, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_RETRIES, NONE(0)},
	U64(SPEC, time_limit_ms, NONE(0)),
	I64(SPEC, begin_ms, NONE(0)),
	{TAKT_FIELD_AT(SPEC, after, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED, .counts = true,
	 .size = sizeof(AFTER), COUNT(SPEC, after_count), .room = TAKT_SPEC_MAX_AFTER,
	 .shape = &after_shape},
	BOOL(SPEC, use_outside),
	{TAKT_FIELD_AT(SPEC, clock_ask, TAKT_FIELD_ENUM), .names = clock_asks},
	{TAKT_FIELD_AT(SPEC, clock_mhz, TAKT_FIELD_U32), .max = MAX_CLOCK_MHZ, NONE(0)},
	{TAKT_FIELD_AT(SPEC, visible, TAKT_FIELD_ENUM), .names = visibles},
	{TAKT_FIELD_AT(SPEC, grace_ms, TAKT_FIELD_U32), .max = MAX_GRACE_MS, .optional = true,
	 .absent = DEFAULT_GRACE_MS},
	{TAKT_FIELD_AT(SPEC, env, TAKT_FIELD_TEXTS), .room = TAKT_SPEC_MAX_ENV},
};
static const struct takt_shape shape = TAKT_SHAPE(SPEC, "a job description", fields);

void takt_jobspec_init(struct takt_jobspec *spec)
{
	*spec = (struct takt_jobspec){.gpus = 1, .grace_ms = DEFAULT_GRACE_MS};
}

void takt_jobspec_fini(struct takt_jobspec *spec)
{
	takt_shape_release(&shape, spec);
	takt_jobspec_init(spec);
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

/* "./train.sh" is called train.sh; what a name may not have becomes '_'. */
static void default_name(struct takt_jobspec *spec)
{
	const char *slash, *from;

	if (spec->name[0] || !spec->argv || !spec->argv[0])
		return;
	slash = strrchr(spec->argv[0], '/');
	from = slash && slash[1] ? slash + 1 : spec->argv[0];
	takt_strcpy(spec->name, sizeof(spec->name), *from ? from : "job");
	for (char *c = spec->name; *c; c++)
		if (!name_char(*c))
			*c = '_';
}

static int check_name(const struct takt_jobspec *spec, struct takt_err *err)
{
	for (const char *c = spec->name; *c; c++)
		if (!name_char(*c))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'name' may have letters, digits, '.', '_' and "
					    "'-', not as in '%s'",
					    spec->name);
	return 0;
}

static int check_texts(const char *field, char *const *texts, struct takt_err *err)
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
	return check_texts("argv", spec->argv, err);
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
	return check_texts("env", spec->env, err);
}

static int check_cwd(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->cwd || spec->cwd[0] != '/' || strlen(spec->cwd) > MAX_CWD)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'cwd' must be an absolute path of at most %d bytes, not "
				    "'%.80s'",
				    MAX_CWD, spec->cwd ? spec->cwd : "");
	if (!takt_utf8_valid(spec->cwd))
		return takt_err_set(err, -TAKT_E_USAGE, "field 'cwd' must be UTF-8");
	return 0;
}

static int check_numbers(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->gpus > MAX_GPUS)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'gpus' must be 0 to %d, not %u",
				    MAX_GPUS, spec->gpus);
	if (spec->priority < -TAKT_SPEC_MAX_PRIORITY || spec->priority > TAKT_SPEC_MAX_PRIORITY)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'priority' must be -%d to %d, not %d",
				    TAKT_SPEC_MAX_PRIORITY, TAKT_SPEC_MAX_PRIORITY, spec->priority);
	if (spec->time_limit_ms > (uint64_t)max_time_ms)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'time_limit_ms' must be at most %lld (%d days), not "
				    "%llu",
				    (long long)max_time_ms, MAX_TIME_DAYS,
				    (unsigned long long)spec->time_limit_ms);
	if (spec->gpu_mem_mib && spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'gpu_mem_mib' needs at least one GPU in 'gpus'");
	if (spec->begin_ms < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'begin_ms' must be milliseconds since 1970, not %lld",
				    (long long)spec->begin_ms);
	if (spec->grace_ms > MAX_GRACE_MS)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'grace_ms' must be 0 to %d (a day), not %u",
				    MAX_GRACE_MS, spec->grace_ms);
	return 0;
}

static int check_array(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->has_array)
		return spec->array_limit == 0 || spec->array_id
			       ? 0
			       : takt_err_set(err, -TAKT_E_USAGE,
					      "field 'array_limit' needs 'array_first' and "
					      "'array_last'");
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
	if (spec->clock_mhz < 1 || spec->clock_mhz > MAX_CLOCK_MHZ)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'clock_mhz' must be 1 to %d, not %u",
				    MAX_CLOCK_MHZ, spec->clock_mhz);
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'clock_ask' needs at least one GPU in 'gpus'");
	if (spec->clock_ask == TAKT_CLOCK_ASK_LOCK && spec->use_outside)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'clock_ask': 'lock' needs GPUs held alone, "
				    "'use_outside' may share them");
	return 0;
}

int takt_jobspec_check(const struct takt_jobspec *spec, struct takt_err *err)
{
	static int (*const checks[])(const struct takt_jobspec *, struct takt_err *) = {
		check_name,    check_command, check_env,   check_cwd,
		check_numbers, check_array,   check_clock,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(checks) && rc == 0; i++)
		rc = checks[i](spec, err);
	return rc;
}

static bool needs_quotes(const char *text)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789-_./=:,@%+^";

	return !*text || text[strspn(text, harmless)];
}

static void add_word(struct takt_str *out, const char *word)
{
	if (!needs_quotes(word)) {
		takt_str_add(out, word);
		return;
	}
	takt_str_add(out, "'");
	for (; *word; word++) {
		if (*word == '\'')
			takt_str_add(out, "'\\''");
		else
			takt_str_addn(out, word, 1);
	}
	takt_str_add(out, "'");
}

/* The last place at or before `at` where a character begins. */
static size_t cut_place(const char *text, size_t at)
{
	while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

void takt_jobspec_command(const struct takt_jobspec *spec, char *ret, size_t size)
{
	TAKT_CLEANUP(strp) struct takt_str out = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	const char *text;

	/* Words beyond the room are not worth quoting. */
	for (size_t i = 0; spec->argv && spec->argv[i] && out.len < size; i++) {
		takt_str_add(&out, i ? " " : "");
		add_word(&out, spec->argv[i]);
	}
	text = takt_str_text(&out);
	if (!takt_strcpy(ret, size, text) && size > 4)
		takt_strcpy(ret + cut_place(text, size - 4), 4, "...");
}

int takt_jobspec_from_json(const char *text, size_t len, struct takt_jobspec *ret,
			   struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc;

	memset(&spec, 0, sizeof(spec));
	spec.gpus = 1;
	rc = takt_shape_decode(&shape, text, len, TAKT_SPEC_MAX_BYTES, TAKT_SHAPE_STRICT, &spec,
			       err);
	if (rc == -TAKT_E_CORRUPT) {
		rc = -TAKT_E_USAGE;
		if (err)
			err->rc = rc;
	}
	if (rc == 0)
		rc = takt_jobspec_check(&spec, err);
	if (rc < 0) {
		takt_jobspec_fini(&spec);
		return rc;
	}
	default_name(&spec);
	takt_jobspec_fini(ret);
	*ret = spec;
	return 0;
}

int takt_jobspec_to_json(const struct takt_jobspec *spec, bool with_env, struct takt_str *out)
{
	struct takt_jobspec shown = *spec;

	if (!with_env)
		shown.env = NULL;
	return takt_shape_encode(&shape, &shown, out);
}
