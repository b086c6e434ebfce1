/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of governors, see the header. */
#include "sim/sim_governors.h"

#include <string.h>

#include "clock/governor_choice.h"
#include "objects/object_file.h"

static int unknown(const char *name, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str all = TAKT_STR(4096);

	takt_governors_names(NULL, &all);
	return takt_err_set(err, -TAKT_E_USAGE, "there is no governor '%.40s'; there are %s", name,
			    takt_str_text(&all));
}

/* A governor by name, or of a shared object, which is then this list's to close. */
static int open_one(struct takt_sim_governors *governors, const char *name,
		    const struct takt_governor **ret, struct takt_err *err)
{
	struct takt_governor_object **object = &governors->objects[governors->count];
	int rc;

	if (!takt_object_file_is(name)) {
		*ret = takt_governor_find(name);
		return *ret ? 0 : unknown(name, err);
	}
	rc = takt_governor_object_open(name, object, err);
	if (rc == 0)
		*ret = governors->more[governors->more_count++] =
			takt_governor_object_governor(*object);
	return rc;
}

static int add_one(struct takt_sim_governors *governors, const char *name, struct takt_err *err)
{
	const struct takt_governor *governor;
	int rc;

	if (governors->count == TAKT_SCORE_MAX_GOVERNORS)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d governors",
				    TAKT_SCORE_MAX_GOVERNORS);
	rc = open_one(governors, name, &governor, err);
	if (rc < 0)
		return rc;
	governors->at[governors->count++].governor = governor;
	for (size_t i = 0; i + 1 < governors->count; i++)
		if (strcmp(governors->at[i].governor->name, governor->name) == 0)
			return takt_err_set(err, -TAKT_E_USAGE, "governor '%s' is there twice",
					    governor->name);
	return 0;
}

int takt_sim_governors(const char *list, struct takt_sim_governors *ret, struct takt_err *err)
{
	int rc = 0;

	while (list && rc == 0) {
		size_t len = strcspn(list, ",");
		char name[256];

		if (len == 0 || len >= sizeof(name))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--governor' must be names separated by commas");
		memcpy(name, list, len);
		name[len] = '\0';
		rc = add_one(ret, name, err);
		list = list[len] ? list + len + 1 : NULL;
	}
	return rc;
}

void takt_sim_governors_fini(struct takt_sim_governors *governors)
{
	for (size_t i = 0; i < governors->count; i++)
		takt_governor_object_close(governors->objects[i]);
	governors->count = 0;
}

static int give(struct takt_sim_governors *governors, size_t i, const char *name, int64_t value,
		struct takt_err *err)
{
	struct takt_score_governor *one = &governors->at[i];

	if (one->param_count == TAKT_GOVERNOR_MAX_PARAMS)
		return takt_err_set(err, -TAKT_E_USAGE, "more than %d parameters for '%s'",
				    TAKT_GOVERNOR_MAX_PARAMS, one->governor->name);
	governors->params[i][one->param_count++] = (struct takt_governor_param){name, value};
	one->params = governors->params[i];
	return 0;
}

/* What is behind "GOVERNOR." of this one, the whole name without a dot, else NULL. */
static const char *own_name(const struct takt_governor *governor, const char *name)
{
	size_t len = strlen(governor->name);

	if (!strchr(name, '.'))
		return name;
	return strncmp(name, governor->name, len) == 0 && name[len] == '.' ? name + len + 1 : NULL;
}

int takt_sim_governors_param(struct takt_sim_governors *governors, const char *name, int64_t value,
			     struct takt_err *err)
{
	bool taken = false;
	int rc = 0;

	for (size_t i = 0; i < governors->count && rc == 0; i++) {
		const char *own = own_name(governors->at[i].governor, name);

		if (!own || !takt_governor_takes(governors->at[i].governor, own))
			continue;
		taken = true;
		rc = give(governors, i, own, value, err);
	}
	if (rc == 0 && !taken)
		rc = takt_err_set(err, -TAKT_E_USAGE, "no governor here has a parameter '%.60s'",
				  name);
	return rc;
}

static int train_one(struct takt_sim_governors *governors, const char *name, size_t len,
		     struct takt_err *err)
{
	for (size_t i = 0; i < governors->count; i++) {
		const char *own = governors->at[i].governor->name;

		if (strlen(own) == len && memcmp(own, name, len) == 0) {
			governors->at[i].train = true;
			return 0;
		}
	}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'--train' takes governors of '--governor', not '%.*s'",
			    (int)(len < 40 ? len : 40), name);
}

int takt_sim_governors_train(struct takt_sim_governors *governors, const char *list,
			     struct takt_err *err)
{
	int rc = 0;

	while (list && rc == 0) {
		size_t len = strcspn(list, ",");

		rc = train_one(governors, list, len, err);
		list = list[len] ? list + len + 1 : NULL;
	}
	return rc;
}

void takt_sim_governors_text(struct takt_str *out)
{
	for (size_t i = 0; takt_governor_all[i]; i++) {
		const struct takt_governor *governor = takt_governor_all[i];

		takt_str_addf(out, "%-16s %s\n", governor->name, governor->summary);
		if (governor->params)
			takt_str_addf(out, "%-16s parameters: %s\n", "", governor->params);
	}
}
