/* SPDX-License-Identifier: Apache-2.0 */
/* One job of an array: the array's description with its own index and parameters. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/grid.h"
#include "codec/jobspec_impl.h"

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for a job of the array");
}

static int fill_text(char **text, char *const *params)
{
	char *filled = *text ? takt_params_fill(*text, params) : NULL;

	if (*text && !filled)
		return -ENOMEM;
	takt_free(*text);
	*text = filled;
	return 0;
}

static int fill_list(char **list, char *const *params)
{
	int rc = 0;

	for (; list && *list && rc == 0; list++)
		rc = fill_text(list, params);
	return rc;
}

/* What a name may not have becomes '_'; what is too long is cut. */
static int fill_name(struct takt_jobspec *element, char *const *params)
{
	char *name = takt_params_fill(element->name, params);

	if (!name)
		return -ENOMEM;
	takt_strcpy(element->name, sizeof(element->name), name);
	takt_free(name);
	for (char *c = element->name; *c; c++)
		if (!takt_spec_name_char(*c))
			*c = '_';
	return 0;
}

static int copy(const struct takt_jobspec *from, struct takt_jobspec *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SPEC_MAX_BYTES);

	if (takt_jobspec_to_json(from, true, &json) < 0)
		return no_memory(err);
	return takt_jobspec_from_json(json.s, json.len, ret, err);
}

/* Takes the parameters over. */
static int fill(struct takt_jobspec *element, char **params, struct takt_err *err)
{
	int rc;

	element->params = params;
	rc = fill_list(element->argv, params);
	if (rc == 0)
		rc = fill_list(element->prefetch, params);
	if (rc == 0)
		rc = fill_text(&element->checkpoint_dir, params);
	if (rc == 0)
		rc = fill_text(&element->hook, params);
	return rc < 0 ? no_memory(err) : takt_jobspec_check(element, err);
}

static void free_params(char **params)
{
	for (size_t i = 0; params && params[i]; i++)
		takt_free(params[i]);
	takt_free(params);
}

int takt_jobspec_element(const struct takt_jobspec *array, uint64_t array_id, uint32_t index,
			 struct takt_jobspec *ret, struct takt_err *err)
{
	char **params = array->grid ? takt_grid_params(array->grid, index) : NULL;
	struct takt_jobspec element = *array, made;
	int rc = array->grid && !params ? -ENOMEM : 0;

	takt_jobspec_init(&made);
	element.has_array = false;
	element.grid = NULL;
	element.array_first = element.array_last = 0;
	element.array_id = array_id;
	element.array_index = index;
	if (rc == 0 && params)
		rc = fill_name(&element, params);
	rc = rc < 0 ? no_memory(err) : copy(&element, &made, err);
	if (rc < 0) {
		free_params(params);
		return rc;
	}
	if (params)
		rc = fill(&made, params, err);
	if (rc < 0) {
		takt_jobspec_fini(&made);
		return rc;
	}
	takt_jobspec_fini(ret);
	*ret = made;
	return 0;
}
