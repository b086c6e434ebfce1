/* SPDX-License-Identifier: Apache-2.0 */
/* One job of an array: the array's description with its own index and parameters. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/grid.h"
#include "codec/jobspec_impl.h"
#include "codec/json.h"

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for a job of the array");
}

/* Within what is left of *room. */
static int fill_text(char **text, char *const *params, size_t *room)
{
	char *filled = NULL;
	int rc = *text ? takt_params_fill(*text, params, *room, &filled) : 0;

	if (rc < 0 || !*text)
		return rc;
	*room -= strlen(filled);
	takt_free(*text);
	*text = filled;
	return 0;
}

static int fill_list(char **list, char *const *params, size_t *room)
{
	int rc = 0;

	for (; list && *list && rc == 0; list++)
		rc = fill_text(list, params, room);
	return rc;
}

/* What a name may not have becomes '_'; what is too long is cut. */
static int fill_name(struct takt_jobspec *element, char *const *params)
{
	char *name = NULL;
	int rc = takt_params_fill(element->name, params, TAKT_SPEC_MAX_BYTES, &name);

	if (rc < 0)
		return rc;
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
	size_t room = TAKT_SPEC_MAX_BYTES;
	int rc;

	element->params = params;
	rc = fill_list(element->argv, params, &room);
	if (rc == 0)
		rc = fill_list(element->prefetch, params, &room);
	if (rc == 0)
		rc = fill_text(&element->checkpoint_dir, params, &room);
	if (rc == 0)
		rc = fill_text(&element->hook, params, &room);
	if (rc == 0)
		rc = fill_text(&element->output, params, &room);
	if (rc == -TAKT_E_LIMIT)
		return takt_err_set(err, rc,
				    "with the values of 'grid' in it the description is over %d "
				    "bytes",
				    TAKT_SPEC_MAX_BYTES);
	return rc < 0 ? no_memory(err) : takt_jobspec_check(element, err);
}

static void free_params(char **params)
{
	for (size_t i = 0; params && params[i]; i++)
		takt_free(params[i]);
	takt_free(params);
}

/* Takes the parameters over; NULL with a grid: there was no memory for them. */
static int make(const struct takt_jobspec *array, uint64_t array_id, uint32_t index, char **params,
		struct takt_jobspec *ret, struct takt_err *err)
{
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

int takt_jobspec_element(const struct takt_jobspec *array, uint64_t array_id, uint32_t index,
			 struct takt_jobspec *ret, struct takt_err *err)
{
	return make(array, array_id, index,
		    array->grid ? takt_grid_params(array->grid, index) : NULL, ret, err);
}

int takt_jobspec_largest(const struct takt_jobspec *array, struct takt_jobspec *ret,
			 struct takt_err *err)
{
	return make(array, TAKT_JSON_MAX_INT, array->array_last,
		    array->grid ? takt_grid_longest(array->grid) : NULL, ret, err);
}
