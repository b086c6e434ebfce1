/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects as governors, see the header. */
#include "objects/governor_object.h"

#include <dlfcn.h>

#include "objects/object_file.h"

struct takt_governor_object {
	struct takt_object_file file; /* stays first */
	const struct takt_governor *governor;
};

static int adopt(const char *path, void *opened, struct takt_err *err)
{
	struct takt_governor_object *object = opened;
	struct takt_err why = {0};

	object->governor = dlsym(object->file.handle, "takt_governor_entry");
	if (!object->governor)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'%s' has no takt_governor_entry; see takt/clock_governor.h",
				    path);
	if (takt_governor_check(object->governor, &why) < 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "'%s': %s", path, why.msg);
	if (takt_governor_find(object->governor->name))
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'%s': takt has a governor named '%s' itself", path,
				    object->governor->name);
	return 0;
}

int takt_governor_object_open(const char *path, struct takt_governor_object **ret,
			      struct takt_err *err)
{
	return takt_object_file_open(path, sizeof(**ret), adopt, ret, err);
}

void takt_governor_object_close(struct takt_governor_object *object)
{
	takt_object_file_close(object);
}

const struct takt_governor *takt_governor_object_governor(const struct takt_governor_object *object)
{
	return object->governor;
}
