/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs print, and the disk that it is kept on, which is the store's too. Each shim holds its
 * job's log to output_limit (launch/log_bound.h), all of them come to output_share; here is said
 * that one did, and, since a shim may fail to, that the disk gets full and whose log is the
 * largest. On a full disk the store goes on with what it has set aside (store/store_reserve.c),
 * and from here it is told to leave some of that to the shims, who write down ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/map.h"
#include "base/mem.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/output_share.h"

enum {
	MAX_WATCHED = 262144,
	NOTE = 5,
	FREE_SHARE = 100, /* of what is free a log may take a hundredth */
	LOW_SHARE = 20,	  /* a disk with less than a twentieth free is nearly full */
	STAT_BLOCK = 512,
	HISTORY_SHARE = 20, /* of a disk is the database's */
	RESERVE_SHARE = 32, /* of a disk may be set aside */
	LARGEST = 80,	    /* bytes of a text */
};

static const uint64_t look_ns = 10 * TAKT_NS_PER_S;
static const uint64_t mib = 1 << 20, low_bytes = 1 << 30; /* nor is one with more than that */
static const uint64_t reserve_bytes = 4 << 20;
static const uint64_t record_bytes = 256 << 10; /* room for what some shims write */

struct takt_job_output {
	/* Of those that run: job id -> attempt * 2, plus 1 once its cut was said. */
	struct takt_map jobs;
	struct takt_output_share *share; /* owned */
	struct takt_mono looked_at;
	bool full;
};

/* The log of a running job that takes most of the disk. */
struct largest {
	uint64_t job_id, bytes; /* 0 = none */
};

int takt_job_output_new(struct takt_job_output **ret)
{
	struct takt_job_output *output = takt_zalloc(sizeof(*output));

	if (!output)
		return -ENOMEM;
	if (takt_output_share_new(&output->share) < 0) {
		takt_free(output);
		return -ENOMEM;
	}
	output->jobs = TAKT_MAP_U64(MAX_WATCHED);
	*ret = output;
	return 0;
}

void takt_job_output_free(struct takt_job_output *output)
{
	if (!output)
		return;
	takt_map_fini(&output->jobs);
	takt_output_share_free(output->share);
	takt_free(output);
}

static uint64_t free_bytes(const struct takt_daemon *daemon, uint64_t *ret_all)
{
	struct statvfs fs;

	if (fstatvfs(daemon->jobs_dirfd, &fs) < 0)
		return *ret_all = 0;
	*ret_all = (uint64_t)fs.f_blocks * fs.f_frsize;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

uint64_t takt_job_output_limit(const struct takt_daemon *daemon)
{
	uint64_t limit = daemon->config.output_limit_mib * mib, all;
	uint64_t share = free_bytes(daemon, &all) / FREE_SHARE;

	if (limit == 0 || all == 0 || share >= limit)
		return limit;
	return share > mib ? share : mib;
}

/* Of all jobs together; 0 = no end. */
static uint64_t share_bytes(const struct takt_daemon *daemon)
{
	uint64_t all;

	(void)free_bytes(daemon, &all);
	return all / 1000 * daemon->config.output_share_permille;
}

uint64_t takt_job_output_give(const struct takt_daemon *daemon, uint64_t job_id, uid_t uid)
{
	return takt_output_share_give(daemon->output->share, job_id, uid,
				      takt_job_output_limit(daemon), share_bytes(daemon),
				      daemon->config.users != TAKT_USERS_ALL);
}

/* Of its log on the disk. */
static uint64_t log_bytes(const struct takt_daemon *daemon, uint64_t job_id, uint64_t attempt)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "%llu.%llu/log", (unsigned long long)job_id,
		 (unsigned long long)attempt);
	return fstatat(daemon->jobs_dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0
		       ? (uint64_t)st.st_blocks * STAT_BLOCK
		       : 0;
}

uint64_t takt_job_output_of_hook(const struct takt_daemon *daemon, uint64_t job_id,
				 uint32_t attempt)
{
	uint64_t has = log_bytes(daemon, job_id, attempt);

	return takt_job_output_limit(daemon) ? has + mib : 0;
}

uint64_t takt_job_output_reserve(const struct takt_daemon *daemon)
{
	uint64_t all;

	(void)free_bytes(daemon, &all);
	return all / RESERVE_SHARE < reserve_bytes ? 0 : reserve_bytes;
}

uint64_t takt_job_output_history(const struct takt_daemon *daemon)
{
	uint64_t limit = daemon->config.history_limit_mib * mib, all;

	(void)free_bytes(daemon, &all);
	return all && all / HISTORY_SHARE < limit ? all / HISTORY_SHARE : limit;
}

void takt_job_output_watch(struct takt_job_output *output, const struct takt_queue_job *job)
{
	const union takt_map_value *known = takt_map_u64_get(&output->jobs, job->row.id);
	union takt_map_value value = {.u64 = (uint64_t)job->row.attempt << 1};

	if (job->phase == TAKT_PHASE_RUNNING && (!known || known->u64 >> 1 != job->row.attempt))
		(void)takt_map_u64_put(&output->jobs, job->row.id, value);
}

/* Once an attempt. */
static void say_cut(const struct takt_daemon *daemon, uint64_t job_id, union takt_map_value *known)
{
	struct takt_output_cut cut;

	if (known->u64 & 1 || takt_attempt_cut(daemon->sys, daemon->jobs_dirfd, job_id,
					       (uint32_t)(known->u64 >> 1), &cut) < 0)
		return;
	known->u64 |= 1;
	takt_log(TAKT_LOG_WARNING,
		 "job %llu prints more than is kept (%llu %s, see output_limit): its log keeps "
		 "its beginning and its newest part",
		 (unsigned long long)job_id,
		 (unsigned long long)(cut.limit < mib ? cut.limit / 1024 : cut.limit / mib),
		 cut.limit < mib ? "KiB" : "MiB");
}

void takt_job_output_over(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	struct takt_map *jobs = &daemon->output->jobs;
	union takt_map_value *known = takt_map_u64_get(jobs, job->row.id);

	if (known)
		say_cut(daemon, job->row.id, known);
	takt_output_share_over(daemon->output->share, job->row.id, job->row.uid,
			       log_bytes(daemon, job->row.id, job->row.attempt));
	(void)takt_map_u64_remove(jobs, job->row.id);
}

static struct largest find_largest(const struct takt_daemon *daemon)
{
	struct largest largest = {0};

	TAKT_MAP_EACH(entry, &daemon->output->jobs)
	{
		uint64_t bytes = log_bytes(daemon, entry->key, entry->value.u64 >> 1);

		if (bytes > largest.bytes)
			largest = (struct largest){entry->key, bytes};
	}
	return largest;
}

/* Of this disk; what was said is taken back at twice that, so that it does not come and go. */
static bool is_low(uint64_t left, uint64_t all, bool said)
{
	uint64_t enough = all / LOW_SHARE < low_bytes ? all / LOW_SHARE : low_bytes;

	return all && left < (said ? 2 * enough : enough);
}

static void name_largest(const struct takt_daemon *daemon, char ret[LARGEST])
{
	struct largest largest = find_largest(daemon);

	ret[0] = '\0';
	if (largest.bytes)
		snprintf(ret, LARGEST, "; of jobs that run, job %llu has the largest log, %llu MiB",
			 (unsigned long long)largest.job_id,
			 (unsigned long long)(largest.bytes / mib));
}

/* The figures are those of now; the log is told when it begins, and when it gets worse. */
static void say_disk(struct takt_daemon *daemon)
{
	char *note = daemon->notes[NOTE], whose[LARGEST];
	uint64_t all, left = free_bytes(daemon, &all);
	bool said = note[0], was_full = daemon->output->full;

	note[0] = '\0';
	daemon->output->full = daemon->store && takt_store_is_short(daemon->store);
	if (!daemon->output->full && !is_low(left, all, said))
		return;
	name_largest(daemon, whose);
	if (daemon->output->full)
		snprintf(note, sizeof(daemon->notes[NOTE]),
			 "the disk of '%.120s' is full: no job is accepted, starts, cancels and "
			 "ends are recorded in what was set aside%s",
			 daemon->config.state_dir, whose);
	else
		snprintf(note, sizeof(daemon->notes[NOTE]),
			 "the disk of state_dir has %llu MiB left; when it is full no job is "
			 "accepted%s",
			 (unsigned long long)(left / mib), whose);
	if (!said || (daemon->output->full && !was_full))
		takt_log(TAKT_LOG_WARNING, "%s", note);
}

/* Whole again if there is room. Where nothing is left at all, shims that have an end to write down
 * would wait, and the store need not have noticed. */
static void tend_reserve(const struct takt_daemon *daemon)
{
	uint64_t all, left = free_bytes(daemon, &all);

	if (all && left < record_bytes)
		takt_store_ask(daemon->store, TAKT_STORE_GIVE_ROOM);
	else if (takt_store_is_short(daemon->store))
		takt_store_ask(daemon->store, TAKT_STORE_MAKE_WHOLE);
}

int takt_job_output_refuse(const struct takt_daemon *daemon, struct takt_err *err)
{
	char whose[LARGEST];

	name_largest(daemon, whose);
	return takt_err_set(
		err, -ENOSPC,
		"the disk of '%.100s' is full, no job is accepted until there is room%s",
		daemon->config.state_dir, whose);
}

/* Of jobs that ran before this takt did. */
static void find_given(const struct takt_daemon *daemon)
{
	struct takt_output_share *share = daemon->output->share;

	TAKT_MAP_EACH(entry, &daemon->output->jobs)
	{
		const struct takt_queue_job *job =
			daemon->queue ? takt_queue_find(daemon->queue, entry->key) : NULL;
		struct takt_attempt_spec spec = {0};
		int dirfd;

		if (!job || takt_output_share_knows(share, entry->key))
			continue;
		dirfd = takt_attempt_open(daemon->sys, daemon->jobs_dirfd, entry->key,
					  (uint32_t)(entry->value.u64 >> 1), NULL);
		if (dirfd >= 0 && takt_attempt_read_spec(daemon->sys, dirfd, &spec, NULL) == 0) {
			takt_output_share_found(share, entry->key, job->row.uid, spec.output_limit);
			takt_attempt_spec_fini(&spec);
		}
		if (dirfd >= 0)
			(void)daemon->sys->close(daemon->sys, dirfd);
	}
}

void takt_job_output_tick(struct takt_daemon *daemon, struct takt_mono now)
{
	struct takt_job_output *output = daemon->output;

	if (output->looked_at.ns && takt_mono_elapsed_ns(now, output->looked_at) < look_ns)
		return;
	output->looked_at = now;
	TAKT_MAP_EACH(entry, &output->jobs)
	say_cut(daemon, entry->key, &entry->value);
	find_given(daemon);
	takt_output_share_look(output->share, daemon, takt_job_output_limit(daemon),
			       share_bytes(daemon));
	say_disk(daemon);
	if (daemon->store)
		tend_reserve(daemon);
}

void takt_job_output_fill(const struct takt_daemon *daemon, struct takt_job_view *ret)
{
	struct takt_output_cut cut;

	if (ret->attempt == 0 ||
	    takt_attempt_cut(daemon->sys, daemon->jobs_dirfd, ret->id, ret->attempt, &cut) < 0)
		return;
	ret->output_kept = cut.limit;
	ret->output_cut_from = cut.from;
	ret->output_cut_to = cut.to;
}
