/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that asked to be ended when nobody uses them (idle_release_ms): a forgotten shell or
 * notebook gives its GPUs back.
 *
 * Idle is a job while every one of its GPUs is known to do nothing (utilisation 0 in each sample;
 * where others work on the GPU too, their work counts) and nothing is typed at or written to its
 * terminal, or its log. A GPU whose utilisation is not known is never idle, nor is one that does
 * not answer. What was before this daemon started does not count: idleness begins anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/timetext.h"
#include "daemon/daemon.h"
#include "launch/launch.h"

enum {
	MAX_WATCHED = 65536,
	WARN_PART = 4, /* of the limit is left when the user is warned ... */
};

static const uint64_t warn_at_most_ns = 300 * TAKT_NS_PER_S; /* ... but no more than this */
static const uint64_t look_ns = TAKT_NS_PER_S;		     /* between looks at a log */

struct watched {
	struct takt_boot active_at;
	struct takt_boot looked_at; /* at the log */
	struct timespec written;    /* when the log last was; only told apart, never compared with
				       a clock */
	bool warned, ended;
};

struct takt_idle {
	struct takt_daemon *daemon; /* borrowed */
	struct takt_map jobs;	    /* job id -> struct watched, owned */
};

int takt_idle_new(struct takt_daemon *daemon, struct takt_idle **ret)
{
	struct takt_idle *idle = takt_zalloc(sizeof(*idle));

	if (!idle)
		return -ENOMEM;
	idle->daemon = daemon;
	idle->jobs = TAKT_MAP_U64(MAX_WATCHED);
	*ret = idle;
	return 0;
}

void takt_idle_free(struct takt_idle *idle)
{
	if (!idle)
		return;
	TAKT_MAP_EACH(entry, &idle->jobs)
	takt_free(entry->value.ptr);
	takt_map_fini(&idle->jobs);
	takt_free(idle);
}

void takt_idle_watch(struct takt_idle *idle, const struct takt_queue_job *job)
{
	struct watched *watched;

	if (job->spec.idle_release_ms == 0 || job->phase != TAKT_PHASE_RUNNING ||
	    takt_map_u64_ptr(&idle->jobs, job->row.id))
		return;
	watched = takt_zalloc(sizeof(*watched));
	if (!watched)
		return; /* it is not ended: the safe side; the next change of it tries again */
	watched->active_at = takt_boot_now(idle->daemon->sys);
	if (takt_map_u64_put_ptr(&idle->jobs, job->row.id, watched) < 0)
		takt_free(watched);
}

void takt_idle_forget(struct takt_idle *idle, uint64_t job_id)
{
	takt_free(takt_map_u64_ptr(&idle->jobs, job_id));
	(void)takt_map_u64_remove(&idle->jobs, job_id);
}

static bool gpus_idle(const struct takt_daemon *daemon, uint64_t gpu_mask, struct takt_mono now)
{
	const struct takt_gpu_reading *reading;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		if (!(gpu_mask >> gpu & 1))
			continue;
		if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0 ||
		    reading->lost || reading->stale || !(reading->has & TAKT_HAS_GPU_UTIL) ||
		    reading->gpu_util_pct > 0)
			return false;
	}
	return true;
}

/* Whether the log is as it was at the last look; the shim marks it when something is typed. */
static bool log_rests(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		      struct watched *watched, struct takt_boot now)
{
	struct stat st;
	char path[64];
	bool same;

	if (takt_boot_elapsed_ns(now, watched->looked_at) < look_ns)
		return true;
	watched->looked_at = now;
	snprintf(path, sizeof(path), "%llu.%u/log", (unsigned long long)job->row.id,
		 job->row.attempt);
	if (fstatat(daemon->jobs_dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	same = st.st_mtim.tv_sec == watched->written.tv_sec &&
	       st.st_mtim.tv_nsec == watched->written.tv_nsec;
	watched->written = st.st_mtim;
	return same;
}

static void warn(struct takt_daemon *daemon, const struct takt_queue_job *job,
		 struct watched *watched, uint64_t left_ns)
{
	watched->warned = true;
	(void)takt_queue_signal(
		daemon->queue, job->row.id,
		TAKT_SHIM_NOTICE_IDLE + (int)((left_ns + TAKT_NS_PER_S - 1) / TAKT_NS_PER_S), NULL);
}

void takt_idle_note(const struct takt_idle *idle, const struct takt_queue_job *job, char *ret,
		    size_t size)
{
	const struct watched *watched = takt_map_u64_ptr(&idle->jobs, job->row.id);
	uint64_t limit_ns = job->spec.idle_release_ms * TAKT_NS_PER_MS, rested_ns;
	char left[TAKT_DURATION_TEXT];

	if (!watched || !watched->warned || watched->ended)
		return;
	rested_ns = takt_boot_elapsed_ns(takt_boot_now(idle->daemon->sys), watched->active_at);
	snprintf(ret, size, "idle: its GPUs are released in %s unless it is used",
		 takt_duration_text(rested_ns < limit_ns ? limit_ns - rested_ns : 0, left));
}

static void release(struct takt_daemon *daemon, const struct takt_queue_job *job,
		    struct watched *watched)
{
	char limit[TAKT_DURATION_TEXT], text[120];
	struct takt_err err;

	snprintf(text, sizeof(text), "released: its GPUs and terminal were idle for %s",
		 takt_duration_text(job->spec.idle_release_ms * TAKT_NS_PER_MS, limit));
	watched->ended = takt_queue_cancel(daemon->queue, job->row.id, TAKT_CAUSE_IDLE_RELEASE,
					   takt_wall_now(daemon->sys), &err) == 0;
	if (watched->ended)
		takt_queue_remark(daemon->queue, job->row.id, text);
}

static void check(struct takt_daemon *daemon, const struct takt_queue_job *job,
		  struct watched *watched, struct takt_mono now, struct takt_boot boot)
{
	uint64_t limit_ns = job->spec.idle_release_ms * TAKT_NS_PER_MS, rested_ns, warn_ns;

	if (!log_rests(daemon, job, watched, boot) || !gpus_idle(daemon, job->row.gpu_mask, now)) {
		watched->active_at = boot;
		watched->warned = false;
		return;
	}
	rested_ns = takt_boot_elapsed_ns(boot, watched->active_at);
	warn_ns = limit_ns / WARN_PART < warn_at_most_ns ? limit_ns / WARN_PART : warn_at_most_ns;
	if (rested_ns >= limit_ns)
		release(daemon, job, watched);
	else if (rested_ns + warn_ns >= limit_ns && !watched->warned)
		warn(daemon, job, watched, limit_ns - rested_ns);
}

void takt_idle_tick(struct takt_idle *idle, struct takt_mono now, struct takt_boot boot)
{
	TAKT_MAP_EACH(entry, &idle->jobs)
	{
		struct watched *watched = entry->value.ptr;
		const struct takt_queue_job *job = takt_queue_find(idle->daemon->queue, entry->key);

		if (job && job->phase == TAKT_PHASE_RUNNING && !watched->ended)
			check(idle->daemon, job, watched, now, boot);
	}
}
