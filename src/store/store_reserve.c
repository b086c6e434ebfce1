/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room that is set aside, so that what was promised can be written on a full disk: "<path>.reserve"
 * is a file of blocks and nothing else. A commit that finds no room gives a part of them back to
 * the file system and is tried again at once, without new jobs and without decisions, which are
 * nobody's promise: so starts, cancels and ends go on. While the reserve is not whole no new job is
 * taken. It is made whole when there is room for it and as much again, so that it does not come and
 * go.
 *
 * What is given back anybody may take, who fills the disk too; so it goes in parts. Called by the
 * writer alone but for takt_store_is_short and takt_store_ask.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "store/store_impl.h"

enum {
	PARTS = 4
};

static bool no_room(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT;
}

static void close_it(struct takt_store *store)
{
	if (store->reserve.fd >= 0)
		(void)store->sys->close(store->sys, store->reserve.fd);
	store->reserve.fd = -1;
}

/* Whole, or as it was. A file system that cannot do it has no reserve. */
static void make_whole(struct takt_store *store)
{
	struct takt_store_reserve *reserve = &store->reserve;
	const struct takt_sys *sys = store->sys;
	uint64_t spare = reserve->short_of_room ? reserve->bytes : 0;
	int rc = sys->fallocate(sys, reserve->fd, (off_t)(reserve->bytes + spare));

	if (no_room(rc)) {
		(void)sys->ftruncate(sys, reserve->fd, (off_t)reserve->held);
		reserve->short_of_room = true;
		return;
	}
	if (rc == 0)
		rc = sys->ftruncate(sys, reserve->fd, (off_t)reserve->bytes);
	if (rc < 0)
		close_it(store);
	reserve->held = rc < 0 ? 0 : reserve->bytes;
	reserve->short_of_room = false;
}

int takt_store_reserve_open(struct takt_store *store, struct takt_err *err)
{
	const struct takt_sys *sys = store->sys;
	char path[PATH_MAX];

	if (store->reserve.bytes == 0)
		return 0;
	if (snprintf(path, sizeof(path), "%s.reserve", store->path) >= PATH_MAX)
		return takt_err_set(err, -ENAMETOOLONG, "'%.80s...'", store->path);
	store->reserve.fd =
		sys->openat(sys, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (store->reserve.fd < 0 && !no_room(store->reserve.fd))
		return takt_err_set(err, store->reserve.fd, "open '%s'", path);
	if (store->reserve.fd >= 0)
		make_whole(store);
	return 0;
}

void takt_store_reserve_close(struct takt_store *store)
{
	close_it(store);
}

bool takt_store_reserve_give(struct takt_store *store)
{
	struct takt_store_reserve *reserve = &store->reserve;
	uint64_t part = reserve->bytes / PARTS, left;

	if (reserve->fd < 0 || reserve->held == 0)
		return false;
	left = reserve->held > part ? reserve->held - part : 0;
	if (store->sys->ftruncate(store->sys, reserve->fd, (off_t)left) < 0)
		return false;
	reserve->held = left;
	reserve->short_of_room = true;
	return true;
}

void takt_store_reserve_tend(struct takt_store *store)
{
	struct takt_store_reserve *reserve = &store->reserve;
	enum takt_store_errand errand = atomic_exchange(&reserve->errand, TAKT_STORE_NO_ERRAND);

	if (errand == TAKT_STORE_GIVE_ROOM)
		(void)takt_store_reserve_give(store);
	else if (reserve->short_of_room && reserve->fd >= 0)
		make_whole(store);
}

bool takt_store_is_short(const struct takt_store *store)
{
	return store->reserve.short_of_room;
}

void takt_store_ask(struct takt_store *store, enum takt_store_errand errand)
{
	pthread_mutex_lock(&store->lock);
	store->reserve.errand = errand;
	pthread_cond_signal(&store->wake);
	pthread_mutex_unlock(&store->lock);
}
