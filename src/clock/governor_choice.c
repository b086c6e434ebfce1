/* SPDX-License-Identifier: Apache-2.0 */
/* Governors by name, see the header. */
#include "clock/governor_choice.h"

#include <string.h>

enum {
	NAMES = 4096 /* bytes of a list of them */
};

const struct takt_governor *takt_governors_find(const struct takt_governors *all, const char *name)
{
	const struct takt_governor *own = takt_governor_find(name);

	for (size_t i = 0; !own && all && all->more[i]; i++)
		if (strcmp(all->more[i]->name, name) == 0)
			own = all->more[i];
	return own;
}

static void add_names(const struct takt_governor *const *list, struct takt_str *out)
{
	for (size_t i = 0; list[i]; i++)
		takt_str_addf(out, "%s%s", out->len ? ", " : "", list[i]->name);
}

void takt_governors_names(const struct takt_governors *all, struct takt_str *out)
{
	if (all)
		add_names(all->more, out);
	add_names(takt_governor_all, out);
}

static int unknown(const struct takt_governors *all, const char *name, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str names = TAKT_STR(NAMES);

	takt_governors_names(all, &names);
	return takt_err_set(err, -TAKT_E_USAGE, "there is no governor '%s'; there are %s", name,
			    takt_str_text(&names));
}

static int check_param(const struct takt_governor *governor, const struct takt_policy_text *said,
		       size_t at, struct takt_err *err)
{
	const struct takt_governor_param param = {said->params[at].name, said->params[at].value};
	int rc = takt_governor_check_param(governor, &param, err);

	for (size_t i = 0; i < at && rc == 0; i++)
		if (strcmp(said->params[i].name, param.name) == 0)
			rc = takt_err_set(err, -TAKT_E_USAGE,
					  "parameter '%s' of governor '%s' stands twice",
					  param.name, governor->name);
	return rc;
}

int takt_governors_choose(const struct takt_governors *all, const char *text,
			  const struct takt_governor **ret, struct takt_policy_text *ret_said,
			  struct takt_err *err)
{
	const struct takt_governor *governor;
	struct takt_policy_text said;
	int rc = 0;

	if (takt_policy_text_parse(text, &said) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "a policy is " TAKT_POLICY_FORM ", not '%.60s'", text);
	governor = takt_governors_find(all, said.name);
	if (!governor)
		return unknown(all, said.name, err);
	for (size_t i = 0; i < said.param_count && rc == 0; i++)
		rc = check_param(governor, &said, i, err);
	if (rc < 0)
		return rc;
	*ret = governor;
	*ret_said = said;
	return 0;
}

size_t takt_policy_params(const struct takt_policy_text *said,
			  struct takt_governor_param ret[TAKT_POLICY_MAX_PARAMS])
{
	for (size_t i = 0; i < said->param_count; i++)
		ret[i] = (struct takt_governor_param){said->params[i].name, said->params[i].value};
	return said->param_count;
}
