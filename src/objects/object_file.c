/* SPDX-License-Identifier: Apache-2.0 */
/* Opening shared objects: see the header. */
#include "objects/object_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"

bool takt_object_file_is(const char *name)
{
	size_t len = strlen(name);

	return strchr(name, '/') || (len > 3 && strcmp(name + len - 3, ".so") == 0);
}

int takt_object_file_open(const char *path, size_t size,
			  int (*adopt)(const char *path, void *object, struct takt_err *err),
			  void *ret, struct takt_err *err)
{
	struct takt_object_file *object = takt_zalloc(size);
	int rc;

	if (!object)
		return takt_err_set(err, -ENOMEM, "no memory for '%s'", path);
	object->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (object->handle)
		rc = adopt(path, object, err);
	else
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED, "%s", dlerror());
	if (rc < 0)
		takt_object_file_close(object);
	else
		memcpy(ret, &object, sizeof(object));
	return rc;
}

void takt_object_file_close(void *object)
{
	struct takt_object_file *file = object;

	if (!file)
		return;
	if (file->handle)
		dlclose(file->handle);
	takt_free(file);
}
