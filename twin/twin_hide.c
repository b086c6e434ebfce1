/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_hide.h. The names are looked for as text between zeros, which is how ELF keeps them. */
#include "twin_hide.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	MAX_LIBRARY = 16 * 1024 * 1024
};

/* The loader finds a name by its hash; one that no longer matches its hash is not found. */
static bool spoil(char *image, size_t size, const char *name, size_t n)
{
	for (size_t at = 1; at + n < size; at++) {
		if (image[at] != name[0] || image[at - 1] != '\0' || image[at + n] != '\0' ||
		    memcmp(image + at, name, n) != 0)
			continue;
		image[at] = 'X';
		return true;
	}
	return false;
}

static int spoil_all(char *image, size_t size, const char *names, struct takt_err *err)
{
	while (*names) {
		size_t n = strcspn(names, ",");
		if (n == 0 || !spoil(image, size, names, n))
			return takt_err_set(err, -TAKT_E_NOT_FOUND,
					    "the library has no function '%.*s'", (int)n, names);
		names += n + (names[n] == ',');
	}
	return 0;
}

static int read_all(const char *path, char **ret, size_t *ret_size, struct takt_err *err)
{
	FILE *file = fopen(path, "re");
	char *image = takt_zalloc(MAX_LIBRARY);

	if (!file || !image) {
		int rc = takt_err_set(err, file ? -ENOMEM : -errno, "read '%s'", path);
		if (file)
			fclose(file);
		takt_free(image);
		return rc;
	}
	*ret_size = fread(image, 1, MAX_LIBRARY, file);
	*ret = image;
	fclose(file);
	return 0;
}

/* Whole before it has its name. */
static int write_all(const char *path, const char *image, size_t size, struct takt_err *err)
{
	char temporary[PATH_MAX + 16];
	FILE *file;
	bool good;
	int fd;

	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file)
		return takt_err_set(err, -errno, "write '%s'", path);
	good = fwrite(image, 1, size, file) == size && fchmod(fd, 0644) == 0;
	good = fclose(file) == 0 && good && rename(temporary, path) == 0;
	if (good)
		return 0;
	unlink(temporary);
	return takt_err_set(err, -EIO, "write '%s'", path);
}

/* FNV-1a: a folder for each list of names. */
static unsigned hash(const char *text)
{
	unsigned h = 2166136261u;

	while (*text)
		h = (h ^ (unsigned char)*text++) * 16777619u;
	return h;
}

int twin_hide(const char *machine, const char *library, const char *names, char *ret, size_t size,
	      struct takt_err *err)
{
	char path[PATH_MAX], folder[PATH_MAX - 32], *image = NULL;
	size_t length = 0;
	int rc;

	if ((size_t)snprintf(folder, sizeof(folder), "%s.without", machine) >= sizeof(folder) - 16)
		return takt_err_set(err, -ENAMETOOLONG, "name a folder beside '%s'", machine);
	rc = read_all(library, &image, &length, err);
	if (rc == 0)
		rc = spoil_all(image, length, names, err);
	if (rc == 0 && mkdir(folder, 0755) != 0 && errno != EEXIST)
		rc = takt_err_set(err, -errno, "make '%s'", folder);
	snprintf(ret, size, "%s/%08x", folder, hash(names));
	if (rc == 0 && mkdir(ret, 0755) != 0 && errno != EEXIST)
		rc = takt_err_set(err, -errno, "make '%s'", ret);
	snprintf(path, sizeof(path), "%.*s/libnvidia-ml.so.1", PATH_MAX - 32, ret);
	if (rc == 0)
		rc = write_all(path, image, length, err);
	takt_free(image);
	return rc;
}

void twin_hide_clear(const char *machine)
{
	char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 32];
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s.without", machine);
	dir = opendir(folder);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s/libnvidia-ml.so.1", folder, entry->d_name);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		rmdir(path);
	}
	closedir(dir);
	rmdir(folder);
}
