/* SPDX-License-Identifier: Apache-2.0 */
/* Governors of an administrator's, see the header. */
#include "objects/governor_objects.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "objects/governor_object.h"
#include "objects/trusted_file.h"

struct takt_governor_objects {
	struct takt_governor_object *objects[TAKT_GOVERNOR_OBJECTS];
	const struct takt_governor *list[TAKT_GOVERNOR_OBJECTS + 1]; /* ends in NULL */
	size_t count;
	struct takt_governors all; /* of `list` */
};

static int add(struct takt_governor_objects *objects, const char *path, struct takt_err *err)
{
	struct takt_governor_object **object = &objects->objects[objects->count];
	const struct takt_governor *governor;
	char real[PATH_MAX];
	int rc = takt_trusted_file(path, real, err);

	if (rc == 0)
		rc = takt_governor_object_open(real, object, err);
	if (rc < 0)
		return rc;
	governor = takt_governor_object_governor(*object);
	if (takt_governors_find(&objects->all, governor->name)) {
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED,
				  "'%s': another file has a governor named '%s', too", path,
				  governor->name);
		takt_governor_object_close(*object);
		return rc;
	}
	objects->list[objects->count++] = governor;
	return 0;
}

/* The next path of the list, without the blanks around it; "" at its end. */
static int next_path(const char **at, char ret[PATH_MAX], struct takt_err *err)
{
	const char *text = *at + strspn(*at, ", \t");
	size_t len = strcspn(text, ",");

	*at = text + len;
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (len >= PATH_MAX)
		return takt_err_set(err, -ENAMETOOLONG, "'%.80s...'", text);
	memcpy(ret, text, len);
	ret[len] = '\0';
	return 0;
}

int takt_governor_objects_open(const char *paths, struct takt_governor_objects **ret,
			       struct takt_err *err)
{
	struct takt_governor_objects *objects = takt_zalloc(sizeof(*objects));
	char path[PATH_MAX];
	int rc = objects ? next_path(&paths, path, err)
			 : takt_err_set(err, -ENOMEM, "no memory for governors");

	if (objects)
		objects->all.more = objects->list;
	while (rc == 0 && path[0]) {
		rc = objects->count < TAKT_GOVERNOR_OBJECTS
			     ? add(objects, path, err)
			     : takt_err_set(err, -TAKT_E_USAGE, "more than %d files",
					    TAKT_GOVERNOR_OBJECTS);
		if (rc == 0)
			rc = next_path(&paths, path, err);
	}
	if (rc < 0)
		takt_governor_objects_close(objects);
	else
		*ret = objects;
	return rc;
}

void takt_governor_objects_close(struct takt_governor_objects *objects)
{
	if (!objects)
		return;
	for (size_t i = 0; i < objects->count; i++)
		takt_governor_object_close(objects->objects[i]);
	takt_free(objects);
}

const struct takt_governors *takt_governor_objects_all(const struct takt_governor_objects *objects)
{
	return objects ? &objects->all : NULL;
}
