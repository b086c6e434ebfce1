/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that come after others of the same file, which have no numbers yet: names become the numbers
 * that the jobs will have. A job names those before it only, so there is no circle; one that names
 * an array comes after all jobs of it.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

/* "prep", "prep:ok", "prep:any" */
static bool read_name(const char *text, char ret_name[TAKT_SPEC_MAX_NAME + 1], bool *ret_any)
{
	size_t len = strcspn(text, ":");

	*ret_any = strcmp(text + len, ":any") == 0;
	if (len == 0 || len > TAKT_SPEC_MAX_NAME ||
	    (text[len] && !*ret_any && strcmp(text + len, ":ok") != 0))
		return false;
	memcpy(ret_name, text, len);
	ret_name[len] = '\0';
	return true;
}

/* A file, and where in it the jobs before this one are, by their names. A description may name a
 * hundred thousand: each is looked up, not looked for. */
struct file {
	const struct takt_jobspecs *specs;
	struct takt_map before; /* name -> index, or SEVERAL */
	const uint64_t *first_id;
};

static const uint64_t SEVERAL = UINT64_MAX;

static bool stands_later(const struct file *file, const char *name, uint32_t from)
{
	for (uint32_t i = from; i < file->specs->count; i++)
		if (strcmp(file->specs->jobs[i].name, name) == 0)
			return true;
	return false;
}

/* Which of the jobs before `upto` is meant. */
static int find(const struct file *file, const char *name, uint32_t upto, uint32_t *ret,
		struct takt_err *err)
{
	const union takt_map_value *known = takt_map_str_get(&file->before, name);

	if (known && known->u64 != SEVERAL) {
		*ret = (uint32_t)known->u64;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_USAGE, "comes after '%s', %s", name,
			    known			     ? "but several jobs are called so"
			    : stands_later(file, name, upto) ? "which must stand before it"
							     : "but no job handed in with it is "
							       "called so");
}

static int note_name(struct file *file, uint32_t index)
{
	const char *name = file->specs->jobs[index].name;
	bool known = takt_map_str_get(&file->before, name) != NULL;

	return takt_map_str_put(&file->before, name,
				(union takt_map_value){.u64 = known ? SEVERAL : index});
}

struct resolved {
	struct takt_spec_after *after; /* room for TAKT_SPEC_MAX_AFTER */
	uint32_t count;
};

static int add(struct resolved *resolved, uint64_t job, bool any, struct takt_err *err)
{
	if (resolved->count == TAKT_SPEC_MAX_AFTER)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "comes after more than %d jobs, those of arrays counted",
				    TAKT_SPEC_MAX_AFTER);
	resolved->after[resolved->count++] = (struct takt_spec_after){.job = job, .any = any};
	return 0;
}

static int add_named(struct resolved *resolved, const struct file *file, const char *text,
		     uint32_t upto, struct takt_err *err)
{
	char name[TAKT_SPEC_MAX_NAME + 1];
	uint32_t which = 0;
	bool any;
	int rc;

	if (!read_name(text, name, &any))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'after_names' must have names of jobs, with :ok or :any "
				    "or neither, not '%.80s'",
				    text);
	rc = find(file, name, upto, &which, err);
	for (uint64_t id = file->first_id[which]; rc == 0 && id < file->first_id[which + 1]; id++)
		rc = add(resolved, id, any, err);
	return rc;
}

static int collect(struct resolved *resolved, const struct file *file, uint32_t index,
		   struct takt_err *err)
{
	const struct takt_jobspec *spec = &file->specs->jobs[index];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < spec->after_count; i++)
		rc = add(resolved, spec->after[i].job, spec->after[i].any, err);
	for (char **name = spec->after_names; rc == 0 && *name; name++)
		rc = add_named(resolved, file, *name, index, err);
	return rc;
}

static void free_names(struct takt_jobspec *spec)
{
	for (char **name = spec->after_names; *name; name++)
		takt_free(*name);
	takt_free(spec->after_names);
	spec->after_names = NULL;
}

static int resolve_one(const struct file *file, uint32_t index, struct takt_err *err)
{
	struct takt_jobspec *spec = &file->specs->jobs[index];
	struct resolved resolved = {.count = 0};
	struct takt_spec_after *fitting;
	int rc;

	if (!spec->after_names)
		return 0;
	resolved.after = takt_calloc(TAKT_SPEC_MAX_AFTER, sizeof(*resolved.after));
	if (!resolved.after)
		return takt_err_set(err, -ENOMEM, "no memory for what a job comes after");
	rc = collect(&resolved, file, index, err);
	if (rc < 0) {
		takt_free(resolved.after);
		return rc;
	}
	fitting = takt_reallocarray(resolved.after, resolved.count + 1, sizeof(*fitting));
	takt_free(spec->after);
	spec->after = fitting ? fitting : resolved.after;
	spec->after_count = resolved.count;
	free_names(spec);
	return 0;
}

int takt_queue_refuse_names(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->after_names)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "field 'after_names': a job by itself comes after numbers of jobs, in "
			    "'after'");
}

static int resolve_all(struct file *file, struct takt_err *err)
{
	uint32_t count = file->specs->count;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		rc = resolve_one(file, i, err);
		if (rc < 0)
			return count > 1 ? takt_err_wrap(err, rc, "jobs[%u]", i) : rc;
		rc = note_name(file, i);
	}
	return rc < 0 ? takt_err_set(err, rc, "no memory for names of jobs") : 0;
}

int takt_queue_resolve_names(struct takt_jobspecs *specs, uint64_t next_id, struct takt_err *err)
{
	uint64_t *first_id = takt_calloc(specs->count + 1, sizeof(*first_id));
	struct file file = {
		.specs = specs, .before = TAKT_MAP_STR(specs->count), .first_id = first_id};
	int rc;

	if (!first_id)
		return takt_err_set(err, -ENOMEM, "no memory for what jobs come after");
	for (uint32_t i = 0; i < specs->count; i++) {
		first_id[i] = next_id;
		next_id += takt_queue_jobs_of(&specs->jobs[i]);
	}
	first_id[specs->count] = next_id;
	rc = resolve_all(&file, err);
	takt_map_fini(&file.before);
	takt_free(first_id);
	return rc;
}
