/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, see the header. Two who keep one at once take turns by a lock on the folder. */
#include "cli/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/view_tables.h"

enum {
	MAX_BYTES = 1024 * 1024
};

static const char file_name[] = "profiles.json";

#define PROFILE struct takt_profile
static const struct takt_field profile_fields[] = {
	TEXT(PROFILE, name),
	TEXT(PROFILE, gpu_name),
	U32(PROFILE, sm_mhz, MUST, .min = 1),
	U32(PROFILE, power_limit_mw, NONE(0)),
	I32(PROFILE, slowdown_permille),
	I32(PROFILE, slowdown_error_permille, NONE(0)),
	I32(PROFILE, saved_permille),
	I32(PROFILE, saved_error_permille, NONE(0)),
	I64(PROFILE, at_ms, MUST),
	BOOL(PROFILE, simulated),
};
static const struct takt_shape profile_shape = TAKT_SHAPE(PROFILE, "a profile", profile_fields);

#define PROFILES struct takt_profiles
static const struct takt_field fields[] = {
	{.name = "profiles",
	 .kind = TAKT_FIELD_OBJECT,
	 .offset = offsetof(PROFILES, at),
	 .many = TAKT_MANY_OWNED,
	 .required = true,
	 .counts = true,
	 .size = sizeof(PROFILE),
	 COUNT(PROFILES, count),
	 .room = TAKT_PROFILES_MAX,
	 .shape = &profile_shape},
};
static const struct takt_shape shape = TAKT_SHAPE(PROFILES, "a list of profiles", fields);

static int folder(char ret[PATH_MAX], struct takt_err *err)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (xdg && xdg[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/takt", xdg);
	else if (home && home[0] == '/')
		n = snprintf(ret, PATH_MAX, "%s/.local/state/takt", home);
	else
		return takt_err_set(err, -TAKT_E_USAGE,
				    "no place for profiles: set $XDG_STATE_HOME or $HOME");
	return n < PATH_MAX ? 0 : takt_err_set(err, -ENAMETOOLONG, "$XDG_STATE_HOME or $HOME");
}

static int open_folder(const struct takt_sys *sys, const char *path, bool make,
		       struct takt_err *err)
{
	int fd, rc = make ? takt_mkdirs_durable(sys, path, 0700, err) : 0;

	if (rc < 0)
		return rc;
	fd = sys->openat(sys, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? takt_err_set(err, fd, "open '%.150s'", path) : fd;
}

static int read_in(const struct takt_sys *sys, int dirfd, const char *path,
		   struct takt_profiles *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	struct takt_profiles read = {0};
	size_t len;
	int rc = takt_file_read(sys, dirfd, file_name, MAX_BYTES, &text, &len, err);

	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		rc = takt_shape_decode(&shape, text, len, MAX_BYTES, TAKT_SHAPE_TOLERANT, &read,
				       err);
	if (rc < 0) {
		takt_shape_release(&shape, &read);
		return takt_err_wrap(err, rc, "'%.100s/%s'", path, file_name);
	}
	*ret = read;
	return 0;
}

int takt_profiles_read(const struct takt_sys *sys, struct takt_profiles *ret, struct takt_err *err)
{
	char path[PATH_MAX];
	struct takt_err why;
	int dirfd, rc = folder(path, err);

	*ret = (struct takt_profiles){0};
	if (rc < 0)
		return rc;
	dirfd = open_folder(sys, path, false, &why);
	if (dirfd == -ENOENT)
		return 0;
	if (dirfd < 0)
		return takt_err_set(err, dirfd, "%s", why.msg);
	rc = read_in(sys, dirfd, path, ret, err);
	(void)sys->close(sys, dirfd);
	return rc;
}

void takt_profiles_fini(struct takt_profiles *profiles)
{
	takt_free(profiles->at);
	*profiles = (struct takt_profiles){0};
}

static struct takt_profile *find(const struct takt_profiles *profiles, const char *name)
{
	for (uint32_t i = 0; i < profiles->count; i++)
		if (strcmp(profiles->at[i].name, name) == 0)
			return &profiles->at[i];
	return NULL;
}

static int put(struct takt_profiles *profiles, const struct takt_profile *profile,
	       struct takt_err *err)
{
	struct takt_profile *place = find(profiles, profile->name), *more;

	if (!place && profiles->count == TAKT_PROFILES_MAX)
		return takt_err_set(err, -TAKT_E_LIMIT, "there are %d profiles already",
				    TAKT_PROFILES_MAX);
	if (!place) {
		more = takt_reallocarray(profiles->at, profiles->count + 1, sizeof(*more));
		if (!more)
			return takt_err_set(err, -ENOMEM, "the profiles");
		profiles->at = more;
		place = &more[profiles->count++];
	}
	*place = *profile;
	return 0;
}

static int keep_in(const struct takt_sys *sys, int dirfd, const char *path,
		   const struct takt_profile *profile, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_BYTES);
	struct takt_profiles profiles = {0};
	int rc = read_in(sys, dirfd, path, &profiles, err);

	if (rc == 0)
		rc = put(&profiles, profile, err);
	if (rc == 0 &&
	    (takt_shape_encode(&shape, &profiles, &text) < 0 || takt_str_add(&text, "\n") < 0))
		rc = takt_err_set(err, text.rc, "the profiles");
	if (rc == 0)
		rc = takt_file_write_durable(sys, dirfd, file_name, text.s, text.len, 0600, err);
	takt_profiles_fini(&profiles);
	return rc;
}

int takt_profiles_keep(const struct takt_sys *sys, const struct takt_profile *profile,
		       struct takt_err *err)
{
	char path[PATH_MAX];
	int dirfd, rc = folder(path, err);

	if (rc < 0)
		return rc;
	dirfd = open_folder(sys, path, true, err);
	if (dirfd < 0)
		return dirfd;
	rc = sys->flock(sys, dirfd, LOCK_EX);
	rc = rc < 0 ? takt_err_set(err, rc, "lock '%.150s'", path)
		    : keep_in(sys, dirfd, path, profile, err);
	(void)sys->close(sys, dirfd);
	return rc;
}

int takt_profiles_find(const struct takt_sys *sys, const char *name, struct takt_profile *ret,
		       struct takt_err *err)
{
	struct takt_profiles profiles;
	const struct takt_profile *found;
	int rc = takt_profiles_read(sys, &profiles, err);

	if (rc < 0)
		return rc;
	found = find(&profiles, name);
	if (found)
		*ret = *found;
	takt_profiles_fini(&profiles);
	return found ? 0
		     : takt_err_set(err, -TAKT_E_NOT_FOUND,
				    "no profile of a job named '%.64s'; 'takt tune --save %.64s -- "
				    "COMMAND' makes one",
				    name, name);
}
