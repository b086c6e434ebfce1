/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. The directories of attempts are gone through round by round, some at a look,
 * since a disk may be slow and there may be many. A round adds up what there is of whom; of those
 * who have too much the next one finds the oldest, which go when it is over.
 */
#include "daemon/output_share.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_whose.h"
#include "base/map.h"
#include "base/mem.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

enum {
	MAX_JOBS = 262144,
	MAX_USERS = 65536,
	A_LOOK = 256, /* directories */
	OLDEST = 64,  /* logs that go at the end of a round */
	OF_USERS = 4, /* one has a quarter */
	OF_LEFT = 16, /* a job is given a sixteenth of what is left */
	STAT_BLOCK = 512,
	LEAST = 64 * 1024, /* that a job is given */
	TINY = 8 * 1024,   /* a log that is not worth to go */
};

struct given {
	uid_t uid;
	uint64_t bytes;
};

struct totals {
	struct takt_map users; /* uid -> bytes */
	uint64_t all;
};

struct ended {
	uint64_t job_id, bytes;
	uint32_t attempt;
	uid_t uid;
};

struct takt_output_share {
	struct takt_map given; /* job id -> struct given *, owned; of those that are not over */
	struct totals known, round;  /* of those that are: the last round, and the one under way */
	struct ended oldest[OLDEST]; /* of the round, of users who have too much; by job */
	size_t oldest_count;
	DIR *dir; /* owned; NULL = a round is to begin */
	bool alone;
};

int takt_output_share_new(struct takt_output_share **ret)
{
	struct takt_output_share *share = takt_zalloc(sizeof(*share));

	if (!share)
		return -ENOMEM;
	share->given = TAKT_MAP_U64(MAX_JOBS);
	share->known.users = TAKT_MAP_U64(MAX_USERS);
	share->round.users = TAKT_MAP_U64(MAX_USERS);
	*ret = share;
	return 0;
}

void takt_output_share_free(struct takt_output_share *share)
{
	if (!share)
		return;
	TAKT_MAP_EACH(entry, &share->given)
	takt_free(entry->value.ptr);
	takt_map_fini(&share->given);
	takt_map_fini(&share->known.users);
	takt_map_fini(&share->round.users);
	if (share->dir)
		closedir(share->dir);
	takt_free(share);
}

static uint64_t of_user(const struct totals *totals, uid_t uid)
{
	const union takt_map_value *value = takt_map_u64_get(&totals->users, uid);

	return value ? value->u64 : 0;
}

static void add(struct totals *totals, uid_t uid, uint64_t bytes)
{
	union takt_map_value value = {.u64 = of_user(totals, uid) + bytes};

	totals->all += bytes;
	(void)takt_map_u64_put(&totals->users, uid, value);
}

static void take_away(struct totals *totals, uid_t uid, uint64_t bytes)
{
	uint64_t has = of_user(totals, uid);
	union takt_map_value value = {.u64 = has > bytes ? has - bytes : 0};

	totals->all = totals->all > bytes ? totals->all - bytes : 0;
	(void)takt_map_u64_put(&totals->users, uid, value);
}

static void forget(struct takt_output_share *share, uint64_t job_id)
{
	takt_free(takt_map_u64_ptr(&share->given, job_id));
	(void)takt_map_u64_remove(&share->given, job_id);
}

static uint64_t users_part(const struct takt_output_share *share, uint64_t all)
{
	return share->alone ? all : all / OF_USERS;
}

static uint64_t left_of(uint64_t has, uint64_t used)
{
	return has > used ? has - used : 0;
}

/* For one more job of the user's. */
static uint64_t left(const struct takt_output_share *share, uid_t uid, uint64_t all)
{
	uint64_t his = of_user(&share->known, uid), used = share->known.all, of_him;

	TAKT_MAP_EACH(entry, &share->given)
	{
		const struct given *given = entry->value.ptr;

		used += given->bytes;
		his += given->uid == uid ? given->bytes : 0;
	}
	of_him = left_of(users_part(share, all), his);
	used = left_of(all, used);
	return used < of_him ? used : of_him;
}

bool takt_output_share_knows(const struct takt_output_share *share, uint64_t job_id)
{
	return takt_map_u64_ptr(&share->given, job_id) != NULL;
}

void takt_output_share_found(struct takt_output_share *share, uint64_t job_id, uid_t uid,
			     uint64_t limit)
{
	struct given *given = takt_alloc(sizeof(*given));

	if (!given)
		return;
	*given = (struct given){.uid = uid, .bytes = limit};
	forget(share, job_id);
	if (takt_map_u64_put_ptr(&share->given, job_id, given) < 0)
		takt_free(given);
}

uint64_t takt_output_share_give(struct takt_output_share *share, uint64_t job_id, uid_t uid,
				uint64_t limit, uint64_t all, bool alone)
{
	uint64_t part;

	share->alone = alone;
	forget(share, job_id);
	part = all ? left(share, uid, all) / OF_LEFT : limit;
	if (part < LEAST)
		part = LEAST;
	if (limit && part < limit)
		limit = part;
	takt_output_share_found(share, job_id, uid, limit);
	return limit;
}

void takt_output_share_over(struct takt_output_share *share, uint64_t job_id, uid_t uid,
			    uint64_t bytes)
{
	forget(share, job_id);
	add(&share->known, uid, bytes);
}

/* Of an attempt in the queue's hands it does not count here yet. */
static bool is_over(const struct takt_daemon *daemon, uint64_t job_id, uint32_t attempt)
{
	const struct takt_queue_job *job =
		daemon->queue ? takt_queue_find(daemon->queue, job_id) : NULL;

	return !job || job->row.attempt != attempt ||
	       (job->phase < TAKT_PHASE_PREPARING && job->stage == TAKT_STAGE_NONE);
}

static uint64_t on_disk(const struct stat *st)
{
	return (uint64_t)st->st_blocks * STAT_BLOCK;
}

/* Of a log that root has lent to its user. */
static uid_t whose(const struct takt_daemon *daemon, const char *path, struct stat *st)
{
	uid_t uid = st->st_uid;
	int fd = uid == 0 ? openat(daemon->jobs_dirfd, path,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
			  : -1;

	if (fd < 0)
		return uid;
	uid = takt_file_whose(fd, st);
	close(fd);
	return uid;
}

/* The file's bytes on the disk; 0 where it is none. */
static uint64_t look_at(const struct takt_daemon *daemon, const struct ended *ended,
			const char *name, uid_t *ret_uid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "%" PRIu64 ".%" PRIu32 "/%s", ended->job_id, ended->attempt,
		 name);
	if (fstatat(daemon->jobs_dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	*ret_uid = whose(daemon, path, &st);
	return on_disk(&st);
}

static uint64_t limit_of(const struct takt_daemon *daemon, const struct ended *ended,
			 uint64_t limit)
{
	struct takt_output_cut cut;

	if (takt_attempt_cut(daemon->sys, daemon->jobs_dirfd, ended->job_id, ended->attempt, &cut) <
	    0)
		return limit;
	return cut.limit > LEAST ? cut.limit : LEAST;
}

/* What came to it since it was over goes back. */
static void bound(const struct takt_daemon *daemon, struct ended *ended, uint64_t limit)
{
	uint64_t said = look_at(daemon, ended, "progress", &ended->uid);
	uint64_t most;

	ended->bytes = look_at(daemon, ended, "log", &ended->uid);
	if (ended->bytes + said <= 4 * (uint64_t)LEAST)
		return;
	most = limit_of(daemon, ended, limit);
	if (said <= 2 * LEAST && (most == 0 || ended->bytes <= most + most / OF_LEFT + LEAST))
		return;
	if (takt_attempt_bound_output(daemon->sys, daemon->jobs_dirfd, ended->job_id,
				      ended->attempt, most) == 0)
		ended->bytes = look_at(daemon, ended, "log", &ended->uid);
}

static bool is_too_much(uint64_t bytes, uint64_t of)
{
	return of && bytes > of - of / 4;
}

static bool may_go(const struct takt_output_share *share, uid_t uid, uint64_t all)
{
	return is_too_much(share->known.all, all) ||
	       is_too_much(of_user(&share->known, uid), users_part(share, all));
}

/* Among the oldest, if it is one of them. */
static void note_old(struct takt_output_share *share, const struct ended *ended)
{
	size_t at = share->oldest_count;

	while (at > 0 && share->oldest[at - 1].job_id > ended->job_id)
		at--;
	if (at == OLDEST)
		return;
	if (share->oldest_count < OLDEST)
		share->oldest_count++;
	memmove(&share->oldest[at + 1], &share->oldest[at],
		(share->oldest_count - at - 1) * sizeof(share->oldest[0]));
	share->oldest[at] = *ended;
}

static void drop(struct takt_output_share *share, const struct takt_daemon *daemon,
		 const struct ended *ended)
{
	if (takt_attempt_drop_output(daemon->sys, daemon->jobs_dirfd, ended->job_id,
				     ended->attempt) < 0)
		return;
	take_away(&share->known, ended->uid, ended->bytes);
	takt_log(TAKT_LOG_WARNING,
		 "the log of job %" PRIu64 " is gone: what is kept of jobs' output came to more "
		 "than output_share allows",
		 ended->job_id);
}

static void end_round(struct takt_output_share *share, const struct takt_daemon *daemon,
		      uint64_t all)
{
	struct totals spare = share->known;

	closedir(share->dir);
	share->dir = NULL;
	share->known = share->round;
	takt_map_clear(&spare.users);
	spare.all = 0;
	share->round = spare;
	for (size_t i = 0; i < share->oldest_count; i++)
		if (may_go(share, share->oldest[i].uid, all))
			drop(share, daemon, &share->oldest[i]);
	share->oldest_count = 0;
}

static void begin_round(struct takt_output_share *share, const struct takt_daemon *daemon)
{
	int fd = openat(daemon->jobs_dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	share->dir = fd < 0 ? NULL : fdopendir(fd);
	if (!share->dir && fd >= 0)
		close(fd);
}

/* Jobs that were to start and did not. */
static void forget_gone(struct takt_output_share *share, const struct takt_daemon *daemon)
{
	uint64_t gone[A_LOOK];
	size_t n = 0;

	TAKT_MAP_EACH(entry, &share->given)
	{
		const struct takt_queue_job *job =
			daemon->queue ? takt_queue_find(daemon->queue, entry->key) : NULL;

		if (n < A_LOOK && (!job || is_over(daemon, entry->key, job->row.attempt)))
			gone[n++] = entry->key;
	}
	for (size_t i = 0; i < n; i++)
		forget(share, gone[i]);
}

void takt_output_share_look(struct takt_output_share *share, struct takt_daemon *daemon,
			    uint64_t limit, uint64_t all)
{
	struct dirent *entry;

	forget_gone(share, daemon);
	if (!share->dir)
		begin_round(share, daemon);
	for (int i = 0; share->dir && i < A_LOOK; i++) {
		struct ended ended = {0};

		entry = readdir(share->dir);
		if (!entry) {
			end_round(share, daemon, all);
			return;
		}
		if (sscanf(entry->d_name, "%" SCNu64 ".%" SCNu32, &ended.job_id, &ended.attempt) !=
			    2 ||
		    ended.attempt >= TAKT_ENGINE_ASIDE ||
		    !is_over(daemon, ended.job_id, ended.attempt))
			continue;
		bound(daemon, &ended, limit);
		add(&share->round, ended.uid, ended.bytes);
		if (ended.bytes > TINY && may_go(share, ended.uid, all))
			note_old(share, &ended);
	}
}
