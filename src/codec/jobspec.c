/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a job: defaults, checks, JSON. */
#include "codec/jobspec.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/grid.h"
#include "codec/jobspec_impl.h"
#include "codec/json.h"
#include "codec/view_tables.h"

static const char *const clock_asks[] = {"none", "ceiling", "lock", NULL};
static const char *const visibles[] = {"index", "uuid", NULL};

#define AFTER struct takt_spec_after
static const struct takt_field after_fields[] = {
	U64(AFTER, job, MUST, .min = 1),
	BOOL(AFTER, any),
};
static const struct takt_shape after_shape = TAKT_SHAPE(AFTER, "a dependency", after_fields);

#define SPEC struct takt_jobspec
#define OWNED(type, member)                                        \
	{                                                          \
		TAKT_FIELD_AT(type, member, TAKT_FIELD_OWNED_TEXT) \
	}
#define ENV                                                                           \
	{                                                                             \
		TAKT_FIELD_AT(SPEC, env, TAKT_FIELD_TEXTS), .room = TAKT_SPEC_MAX_ENV \
	}
static const struct takt_field fields[] = {
	TEXT(SPEC, name),
	{TAKT_FIELD_AT(SPEC, argv, TAKT_FIELD_TEXTS), .required = true, .room = TAKT_SPEC_MAX_ARGS},
	{TAKT_FIELD_AT(SPEC, cwd, TAKT_FIELD_OWNED_TEXT), .required = true},
	{TAKT_FIELD_AT(SPEC, gpus, TAKT_FIELD_U32), .max = SPEC_MAX_GPUS},
	{TAKT_FIELD_AT(SPEC, gpu_indices, TAKT_FIELD_MASK), .optional = true},
	{TAKT_FIELD_AT(SPEC, priority, TAKT_FIELD_I32), .min = -TAKT_SPEC_MAX_PRIORITY,
	 .max = TAKT_SPEC_MAX_PRIORITY},
	{TAKT_FIELD_AT(SPEC, cpu_milli, TAKT_FIELD_U32), .max = SPEC_MAX_CPU_MILLI, NONE(0)},
	{TAKT_FIELD_AT(SPEC, mem_mib, TAKT_FIELD_U64), .max = SPEC_MAX_MEM_MIB, NONE(0)},
	{TAKT_FIELD_AT(SPEC, gpu_mem_mib, TAKT_FIELD_U32), .max = SPEC_MAX_MEM_MIB, NONE(0)},
	{TAKT_FIELD_AT(SPEC, array_first, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_ARRAY_INDEX,
	 .flag_offset = offsetof(SPEC, has_array)},
	{TAKT_FIELD_AT(SPEC, array_last, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_ARRAY_INDEX,
	 .flag_offset = offsetof(SPEC, has_array)},
	{TAKT_FIELD_AT(SPEC, grid, TAKT_FIELD_TEXTS), .room = TAKT_GRID_MAX_PARAMS},
	U32(SPEC, array_limit, NONE(0)),
	U32(SPEC, array_index, NONE(0)),
	U64(SPEC, array_id, NONE(0)),
	{TAKT_FIELD_AT(SPEC, params, TAKT_FIELD_TEXTS), .room = TAKT_GRID_MAX_PARAMS},
	BOOL(SPEC, held),
	BOOL(SPEC, requeue),
	{TAKT_FIELD_AT(SPEC, retries, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_RETRIES, NONE(0)},
	U64(SPEC, time_limit_ms, NONE(0)),
	I64(SPEC, begin_ms, NONE(0)),
	{TAKT_FIELD_AT(SPEC, after, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED, .counts = true,
	 .size = sizeof(AFTER), COUNT(SPEC, after_count), .room = TAKT_SPEC_MAX_AFTER,
	 .shape = &after_shape},
	{TAKT_FIELD_AT(SPEC, after_names, TAKT_FIELD_TEXTS), .room = TAKT_SPEC_MAX_AFTER},
	BOOL(SPEC, use_outside),
	{TAKT_FIELD_AT(SPEC, clock_ask, TAKT_FIELD_ENUM), .names = clock_asks},
	{TAKT_FIELD_AT(SPEC, clock_mhz, TAKT_FIELD_U32), .max = SPEC_MAX_CLOCK_MHZ, NONE(0)},
	{TAKT_FIELD_AT(SPEC, power_limit_mw, TAKT_FIELD_U32), .max = SPEC_MAX_POWER_MW, NONE(0)},
	TEXT(SPEC, clock_policy),
	{TAKT_FIELD_AT(SPEC, max_slowdown_permille, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_SLOWDOWN,
	 NONE(0)},
	{TAKT_FIELD_AT(SPEC, slo_latency_us, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_SLO_US, NONE(0)},
	{TAKT_FIELD_AT(SPEC, slo_permille, TAKT_FIELD_U32), .max = SPEC_MAX_SLO_PERMILLE, NONE(0)},
	{TAKT_FIELD_AT(SPEC, visible, TAKT_FIELD_ENUM), .names = visibles},
	{TAKT_FIELD_AT(SPEC, grace_ms, TAKT_FIELD_U32), .max = SPEC_MAX_GRACE_MS, .optional = true,
	 .absent = SPEC_DEFAULT_GRACE_MS},
	{TAKT_FIELD_AT(SPEC, retry_backoff_ms, TAKT_FIELD_U64), .min = 1, .max = SPEC_MAX_DAY_MS,
	 .optional = true, .absent = TAKT_SPEC_RETRY_BACKOFF_MS},
	{TAKT_FIELD_AT(SPEC, gpu_milli, TAKT_FIELD_U32), .min = 1, .max = SPEC_WHOLE_GPU, NONE(0)},
	TEXT(SPEC, mig),
	BOOL(SPEC, preemptible),
	BOOL(SPEC, freezable),
	{TAKT_FIELD_AT(SPEC, checkpoint_signal, TAKT_FIELD_I32), .max = SPEC_MAX_SIGNAL, NONE(0)},
	{TAKT_FIELD_AT(SPEC, checkpoint_grace_ms, TAKT_FIELD_U32), .max = SPEC_MAX_DAY_MS, NONE(0)},
	OWNED(SPEC, checkpoint_dir),
	I64(SPEC, deadline_ms, NONE(0)),
	U64(SPEC, estimate_ms, NONE(0)),
	TEXT(SPEC, tenant),
	TEXT(SPEC, tags),
	{TAKT_FIELD_AT(SPEC, ranks, TAKT_FIELD_U32), .max = TAKT_SPEC_MAX_RANKS, NONE(0)},
	BOOL(SPEC, rank_prefix),
	BOOL(SPEC, pty),
	OWNED(SPEC, output),
	U64(SPEC, idle_release_ms, NONE(0)),
	OWNED(SPEC, container),
	{TAKT_FIELD_AT(SPEC, container_args, TAKT_FIELD_TEXTS), .room = TAKT_SPEC_MAX_ARGS},
	TEXT(SPEC, container_runtime),
	BOOL(SPEC, stage),
	{TAKT_FIELD_AT(SPEC, prefetch, TAKT_FIELD_TEXTS), .room = TAKT_SPEC_MAX_ARGS},
	OWNED(SPEC, hook),
	BOOL(SPEC, wait_outside),
	ENV,
};
static const struct takt_shape shape = TAKT_SHAPE(SPEC, "a job description", fields);

static const struct takt_field env_fields[] = {ENV};
static const struct takt_shape env_shape = TAKT_SHAPE(SPEC, "an environment", env_fields);

void takt_jobspec_init(struct takt_jobspec *spec)
{
	*spec = (struct takt_jobspec){.gpus = 1,
				      .grace_ms = SPEC_DEFAULT_GRACE_MS,
				      .retry_backoff_ms = TAKT_SPEC_RETRY_BACKOFF_MS};
}

void takt_jobspec_fini(struct takt_jobspec *spec)
{
	takt_shape_release(&shape, spec);
	takt_jobspec_init(spec);
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
		if (!takt_spec_name_char(*c))
			*c = '_';
}

/* What follows from the rest. */
static void complete(struct takt_jobspec *spec)
{
	uint32_t jobs;

	default_name(spec);
	if (spec->gpu_milli == SPEC_WHOLE_GPU)
		spec->gpu_milli = 0;
	if (spec->grid && !spec->has_array && takt_grid_check(spec->grid, &jobs, NULL) == 0) {
		spec->has_array = true;
		spec->array_last = jobs - 1;
	}
	if (spec->checkpoint_signal && !spec->checkpoint_grace_ms)
		spec->checkpoint_grace_ms = TAKT_SPEC_CHECKPOINT_GRACE_MS;
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

void takt_words_text(char *const *words, char *ret, size_t size)
{
	TAKT_CLEANUP(strp) struct takt_str out = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	const char *text;

	/* Words beyond the room are not worth quoting. */
	for (size_t i = 0; words && words[i] && out.len < size; i++) {
		takt_str_add(&out, i ? " " : "");
		add_word(&out, words[i]);
	}
	text = takt_str_text(&out);
	if (!takt_strcpy(ret, size, text) && size > 4)
		takt_strcpy(ret + cut_place(text, size - 4), 4, "...");
}

void takt_jobspec_command(const struct takt_jobspec *spec, char *ret, size_t size)
{
	takt_words_text(spec->argv, ret, size);
}

/* What somebody wrote is wrong use of ours, not damage. */
static int decode(const struct takt_shape *of, const char *text, size_t len,
		  struct takt_jobspec *ret, struct takt_err *err)
{
	int rc = takt_shape_decode(of, text, len, TAKT_SPEC_MAX_BYTES, TAKT_SHAPE_STRICT, ret, err);

	if (rc != -TAKT_E_CORRUPT)
		return rc;
	if (err)
		err->rc = -TAKT_E_USAGE;
	return -TAKT_E_USAGE;
}

int takt_jobspec_from_json(const char *text, size_t len, struct takt_jobspec *ret,
			   struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc;

	memset(&spec, 0, sizeof(spec));
	spec.gpus = 1;
	rc = decode(&shape, text, len, &spec, err);
	if (rc == 0)
		rc = takt_jobspec_check(&spec, err);
	if (rc < 0) {
		takt_jobspec_fini(&spec);
		return rc;
	}
	complete(&spec);
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

int takt_jobspec_env_to_json(const struct takt_jobspec *spec, struct takt_str *out)
{
	return takt_shape_encode(&env_shape, spec, out);
}

int takt_jobspec_env_from_json(const char *text, size_t len, struct takt_jobspec *ret,
			       struct takt_err *err)
{
	struct takt_jobspec read = {0}, old = {.env = ret->env};
	int rc = decode(&env_shape, text, len, &read, err);

	if (rc < 0) {
		takt_shape_release(&env_shape, &read);
		return rc;
	}
	takt_shape_release(&env_shape, &old);
	ret->env = read.env;
	return 0;
}
