/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of takt submit as keys of a job file: they are read by what reads the command line, and
 * what differs from a description without options goes into the entry.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_entry.h"
#include "cli/job_options.h"
#include "codec/json.h"

struct taken {
	struct takt_cli cli;
	cJSON *texts; /* owned: a list of the values */
	struct takt_err *err;
};

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for the jobs");
}

/* Options of submit that say nothing about the job, or that a file has in a form of its own. */
static bool is_own_key(const char *name)
{
	static const char *const own[] = {"file",   "dry-run", "quiet", "env",
					  "no-env", "cwd",     "after", "sbatch"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(own); i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

static const struct takt_option *find_option(const char *key)
{
	const struct takt_option *option = takt_verb_submit.options;
	char name[64];

	if (!takt_strcpy(name, sizeof(name), key))
		return NULL;
	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	while (option->name && strcmp(option->name, name) != 0)
		option++;
	return option->name && !is_own_key(name) ? option : NULL;
}

static bool repeats(const struct takt_option *option)
{
	return strcmp(option->name, "tag") == 0 || strcmp(option->name, "grid") == 0 ||
	       strcmp(option->name, "container-arg") == 0;
}

static int give(struct taken *taken, const struct takt_option *option, const char *text)
{
	struct takt_cli *cli = &taken->cli;
	cJSON *kept = text ? cJSON_CreateString(text) : NULL;

	if (text && (!kept || !cJSON_AddItemToArray(taken->texts, kept))) {
		cJSON_Delete(kept);
		return no_memory(taken->err);
	}
	if (cli->given_count == TAKT_CLI_MAX_GIVEN)
		return takt_err_set(taken->err, -TAKT_E_USAGE, "'%s' stands too often",
				    option->name);
	cli->given[cli->given_count++] =
		(struct takt_given){option, kept ? kept->valuestring : NULL};
	return 0;
}

static int wrong(const struct taken *taken, const char *key, const char *wanted)
{
	return takt_err_set(taken->err, -TAKT_E_USAGE, "'%.60s' must be %s", key, wanted);
}

/* One value. Whether an option may stand without one is said by its table. */
static int take_value(struct taken *taken, const struct takt_option *option, const char *key,
		      const cJSON *value)
{
	bool flag = !option->value || option->value[0] == '[';
	char number[32];

	if (cJSON_IsBool(value) && flag)
		return cJSON_IsTrue(value) ? give(taken, option, NULL) : 0;
	if (!option->value)
		return wrong(taken, key, "true or false");
	if (cJSON_IsString(value))
		return give(taken, option, value->valuestring);
	if (!cJSON_IsNumber(value))
		return wrong(taken, key, "a text or a number");
	snprintf(number, sizeof(number), "%.15g", value->valuedouble);
	return give(taken, option, number);
}

static int take_member(struct taken *taken, const struct takt_option *option, const cJSON *member)
{
	const cJSON *value;
	int rc = 0;

	if (!cJSON_IsArray(member))
		return take_value(taken, option, member->string, member);
	cJSON_ArrayForEach (value, member) {
		if (rc == 0)
			rc = take_value(taken, option, member->string, value);
	}
	return rc;
}

static int take_all(struct taken *taken, cJSON *entry)
{
	cJSON *member = entry->child, *next;
	int rc = 0;

	for (; member && rc == 0; member = next) {
		const struct takt_option *option = find_option(member->string);

		next = member->next;
		/* Lists and tables are fields: 'prefetch' as arguments. */
		if (!option || (cJSON_IsArray(member) && !repeats(option)))
			continue;
		rc = take_member(taken, option, member);
		cJSON_Delete(cJSON_DetachItemViaPointer(entry, member));
	}
	return rc;
}

static int to_json(const struct takt_jobspec *spec, cJSON **ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES);

	if (takt_jobspec_to_json(spec, true, &text) < 0)
		return no_memory(err);
	return takt_json_parse(takt_str_text(&text), text.len, TAKT_SPEC_MAX_BYTES, ret, err);
}

/* Members of `made` that `plain` does not have go to the entry. */
static int merge(cJSON *entry, cJSON *made, const cJSON *plain, struct takt_err *err)
{
	cJSON *member = made->child, *next;

	for (; member; member = next) {
		const cJSON *before = cJSON_GetObjectItemCaseSensitive(plain, member->string);

		next = member->next;
		if (before && cJSON_Compare(before, member, true))
			continue;
		if (cJSON_GetObjectItemCaseSensitive(entry, member->string))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'%s' is also said by another key, in the words of the "
					    "command line",
					    member->string);
		cJSON_DetachItemViaPointer(made, member);
		if (!cJSON_AddItemToObject(entry, member->string, member)) {
			cJSON_Delete(member);
			return no_memory(err);
		}
	}
	return 0;
}

static int put_fields(cJSON *entry, const struct takt_jobspec *spec, struct takt_err *err)
{
	cJSON *made = NULL, *plain = NULL;
	struct takt_jobspec none;
	int rc = to_json(spec, &made, err);

	takt_jobspec_init(&none);
	if (rc == 0)
		rc = to_json(&none, &plain, err);
	if (rc == 0)
		rc = merge(entry, made, plain, err);
	cJSON_Delete(made);
	cJSON_Delete(plain);
	return rc;
}

int takt_job_entry_options(cJSON *entry, struct takt_err *err)
{
	struct taken taken = {.texts = cJSON_CreateArray(), .err = err};
	struct takt_jobspec spec;
	int rc = taken.texts ? take_all(&taken, entry) : no_memory(err);

	takt_jobspec_init(&spec);
	if (rc == 0)
		rc = takt_job_options_apply(&taken.cli, &spec, err);
	if (rc == 0)
		rc = put_fields(entry, &spec, err);
	takt_jobspec_fini(&spec);
	cJSON_Delete(taken.texts);
	return rc;
}
