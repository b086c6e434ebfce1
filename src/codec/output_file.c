/* SPDX-License-Identifier: Apache-2.0 */
/* The file that takes what a job prints. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/jobspec_impl.h"
#include "codec/json.h"

int takt_spec_check_output(const struct takt_jobspec *spec, struct takt_err *err)
{
	const char *output = spec->output;

	if (!output)
		return 0;
	if (!output[0] || strlen(output) > SPEC_MAX_PATH || !takt_utf8_valid(output))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'output' must be a file of at most %d bytes in UTF-8",
				    SPEC_MAX_PATH);
	for (const char *at = strchr(output, '%'); at; at = strchr(at + 2, '%'))
		if (!at[1] || !strchr("jaAx%", at[1]))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "field 'output': '%.2s' stands for nothing; there are "
					    "%%j (job), %%a (index in its array), %%A (array), %%x "
					    "(name) and %%%%",
					    at);
	if (spec->pty || spec->rank_prefix)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "fields 'output' and '%s' exclude each other",
				    spec->pty ? "pty" : "rank_prefix");
	return 0;
}

static void add_stand_in(struct takt_str *path, char letter, const struct takt_jobspec *spec,
			 uint64_t job_id)
{
	if (letter == 'j')
		takt_str_addf(path, "%llu", (unsigned long long)job_id);
	else if (letter == 'A')
		takt_str_addf(path, "%llu",
			      (unsigned long long)(spec->array_id ? spec->array_id : job_id));
	else if (letter == 'a')
		takt_str_addf(path, "%u", spec->array_index);
	else if (letter == 'x')
		takt_str_add(path, spec->name);
	else
		takt_str_add(path, "%");
}

int takt_jobspec_output(const struct takt_jobspec *spec, uint64_t job_id, char **ret)
{
	TAKT_CLEANUP(strp) struct takt_str path = TAKT_STR(SPEC_MAX_PATH + 1);
	char *made;

	*ret = NULL;
	if (!spec->output)
		return 0;
	for (const char *at = spec->output; *at; at++)
		if (*at == '%' && at[1])
			add_stand_in(&path, *++at, spec, job_id);
		else
			takt_str_addf(&path, "%c", *at);
	if (path.rc < 0)
		return path.rc == -ENOMEM ? -ENOMEM : -ENAMETOOLONG;
	made = takt_strdup(path.s);
	if (!made)
		return -ENOMEM;
	*ret = made;
	return 0;
}
