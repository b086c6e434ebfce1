/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of jobs, see the header. */
#include "sim/sim_class.h"

#include <stdio.h>

#include "base/sort.h"
#include "base/str.h"

enum {
	WHOLE = 1000
};

/* cpu 0, fractions by milli below 1000, memory 1000, whole ones above. */
static uint64_t order_of(const struct takt_sim_kind *kind)
{
	if (kind->gpus == 0)
		return 0;
	if (kind->milli == WHOLE)
		return WHOLE + kind->gpus;
	return kind->milli ? kind->milli : WHOLE;
}

static void name_class(struct takt_sim_class *class)
{
	char *name = class->name;

	if (class->order == 0)
		takt_strcpy(name, TAKT_SIM_CLASS_NAME, "cpu");
	else if (class->order == WHOLE)
		takt_strcpy(name, TAKT_SIM_CLASS_NAME, "memory");
	else if (class->order > WHOLE)
		snprintf(name, TAKT_SIM_CLASS_NAME, "%u", (unsigned)(class->order - WHOLE));
	else
		snprintf(name, TAKT_SIM_CLASS_NAME, class->order % 10 ? "0.%03u" : "0.%02u",
			 (unsigned)(class->order % 10 ? class->order : class->order / 10));
}

static int by_order(const void *a, const void *b, void *ctx)
{
	const struct takt_sim_class *x = a, *y = b;

	(void)ctx;
	return (x->order > y->order) - (x->order < y->order);
}

static uint32_t find(const struct takt_sim_classes *classes, uint64_t order)
{
	uint32_t i = 0;

	while (i < classes->classes.len && classes->classes.at[i].order != order)
		i++;
	return i;
}

static int collect(const struct takt_sim_work *work, struct takt_sim_classes *classes)
{
	TAKT_VEC_EACH (kind, &work->kinds) {
		struct takt_sim_class class = {.order = order_of(kind)};
		int rc = 0;

		name_class(&class);
		if (find(classes, class.order) == classes->classes.len)
			rc = takt_vec_push(&classes->classes, class);
		if (rc < 0)
			return rc;
	}
	return takt_sort(classes->classes.at, classes->classes.len, sizeof(classes->classes.at[0]),
			 by_order, NULL);
}

int takt_sim_classes(const struct takt_sim_work *work, struct takt_sim_classes *ret,
		     struct takt_err *err)
{
	struct takt_sim_classes classes = {
		.classes = TAKT_VEC_INIT(TAKT_SIM_MAX_CLASSES),
		.of_kind = TAKT_VEC_INIT(TAKT_SIM_MAX_KINDS),
	};
	int rc = collect(work, &classes);

	if (rc == 0)
		rc = takt_vec_reserve(&classes.of_kind, work->kinds.len);
	if (rc < 0) {
		takt_sim_classes_fini(&classes);
		return takt_err_set(err, rc, "sort jobs into classes");
	}
	TAKT_VEC_EACH (kind, &work->kinds)
		classes.of_kind.at[classes.of_kind.len++] = find(&classes, order_of(kind));
	*ret = classes;
	return 0;
}

void takt_sim_classes_fini(struct takt_sim_classes *classes)
{
	takt_vec_fini(&classes->classes);
	takt_vec_fini(&classes->of_kind);
}
