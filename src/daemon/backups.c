/* SPDX-License-Identifier: Apache-2.0 */
/* Which backups there are. Their names say when they were made, so that a copied folder does. */
#include "daemon/backups.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/sort.h"

enum {
	MAX_BACKUPS = 10000
};

static const char form[] = "takt-%Y%m%d-%H%M%S.db";

void takt_backup_name(int64_t at_s, char ret[TAKT_BACKUP_NAME])
{
	time_t at = (time_t)at_s;
	struct tm parts;

	ret[0] = '\0';
	if (gmtime_r(&at, &parts))
		(void)strftime(ret, TAKT_BACKUP_NAME, form, &parts);
}

/* As it is written and no other way. */
static bool parse_name(const char *name, struct takt_backup *ret)
{
	struct tm parts = {.tm_isdst = 0};
	const char *end = strptime(name, form, &parts);

	if (!end || *end)
		return false;
	ret->at_s = timegm(&parts);
	takt_backup_name(ret->at_s, ret->name);
	return strcmp(ret->name, name) == 0;
}

static int newest_first(const void *a, const void *b, void *ctx)
{
	const struct takt_backup *x = a, *y = b;

	return (x->at_s < y->at_s) - (x->at_s > y->at_s);
}

int takt_backups_read(const char *state_dir, struct takt_backups *ret, struct takt_err *err)
{
	struct takt_backup found;
	struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;
	int rc = 0;

	*ret = (struct takt_backups){.list = TAKT_VEC_INIT(MAX_BACKUPS)};
	if (snprintf(path, sizeof(path), "%s/backups", state_dir) >= PATH_MAX)
		return takt_err_set(err, -ENAMETOOLONG, "'%.80s...'", state_dir);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : takt_err_set(err, -errno, "read '%s'", path);
	while (rc == 0 && (entry = readdir(dir)))
		if (parse_name(entry->d_name, &found) && takt_vec_push(&ret->list, found) < 0)
			rc = takt_err_set(err, -ENOMEM, "no memory for the backups");
	closedir(dir);
	if (rc == 0 &&
	    takt_sort(ret->list.at, ret->list.len, sizeof(*ret->list.at), newest_first, NULL) < 0)
		rc = takt_err_set(err, -ENOMEM, "no memory for the backups");
	if (rc < 0)
		takt_backups_fini(ret);
	return rc;
}

void takt_backups_fini(struct takt_backups *backups)
{
	takt_vec_fini(&backups->list);
}
