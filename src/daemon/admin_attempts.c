/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of attempts, read for whoever compares them with a database. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/str.h"
#include "daemon/admin.h"
#include "engine/engine.h"

enum {
	MAX_ATTEMPTS = 20000000
};

/* "12.1", as it is written and no other way. */
static bool parse_name(const char *name, struct takt_admin_attempt *ret)
{
	char again[48];

	*ret = (struct takt_admin_attempt){.known = false};
	if (sscanf(name, "%20" SCNu64 ".%10" SCNu32, &ret->job_id, &ret->attempt) != 2)
		return false;
	snprintf(again, sizeof(again), "%" PRIu64 ".%" PRIu32, ret->job_id, ret->attempt);
	return strcmp(again, name) == 0;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct takt_admin_attempt *x = a, *y = b;

	if (x->job_id != y->job_id)
		return x->job_id < y->job_id ? -1 : 1;
	return (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

static int read_entries(DIR *dir, struct takt_admin_attempts *ret, struct takt_err *err)
{
	struct takt_admin_attempt found;
	struct dirent *entry;
	int rc = 0;

	while (rc == 0 && (entry = readdir(dir))) {
		/* Hooks are nobody's attempts, and go at the next start at the latest. */
		if (!parse_name(entry->d_name, &found) || found.attempt >= TAKT_ENGINE_ASIDE)
			continue;
		rc = takt_attempt_status(takt_sys_real(), dirfd(dir), found.job_id, found.attempt,
					 &found.status, err);
		if (rc == 0 && takt_vec_push(&ret->list, found) < 0)
			rc = takt_err_set(err, -ENOMEM, "no memory for the attempts");
	}
	return rc;
}

int takt_admin_attempts_read(const char *jobs_dir, struct takt_admin_attempts *ret,
			     struct takt_err *err)
{
	DIR *dir = opendir(jobs_dir);
	int rc;

	*ret = (struct takt_admin_attempts){.list = TAKT_VEC_INIT(MAX_ATTEMPTS)};
	if (!dir)
		return errno == ENOENT ? 0 : takt_err_set(err, -errno, "read '%s'", jobs_dir);
	rc = read_entries(dir, ret, err);
	closedir(dir);
	if (rc == 0 &&
	    takt_sort(ret->list.at, ret->list.len, sizeof(*ret->list.at), by_name, NULL) < 0)
		rc = takt_err_set(err, -ENOMEM, "no memory for the attempts");
	return rc;
}

void takt_admin_attempts_fini(struct takt_admin_attempts *attempts)
{
	takt_vec_fini(&attempts->list);
}

size_t takt_admin_attempts_of(const struct takt_admin_attempts *attempts, uint64_t job_id,
			      size_t *ret_first)
{
	size_t low = 0, high = attempts->list.len, count = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (attempts->list.at[middle].job_id < job_id)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + count < attempts->list.len && attempts->list.at[low + count].job_id == job_id)
		count++;
	*ret_first = low;
	return count;
}
