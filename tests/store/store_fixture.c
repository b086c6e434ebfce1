/* SPDX-License-Identifier: Apache-2.0 */
/* Shared beginnings of the store's tests. */
#include "store_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	WAIT_MS = 20000
};

void store_place_init(struct store_place *place)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(place->dir, sizeof(place->dir), "%s/takt-store-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(place->dir));
	snprintf(place->path, sizeof(place->path), "%s/takt.db", place->dir);
}

void store_place_fini(struct store_place *place)
{
	DIR *dir = opendir(place->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	(void)rmdir(place->dir);
}

struct takt_store *store_open_ok(const char *path)
{
	struct takt_store_config config = {.path = path};
	struct takt_store *store = NULL;
	struct takt_err err = {0};

	if (takt_store_open(&config, &store, &err) < 0)
		fail_msg("open: %s", err.msg);
	return store;
}

struct takt_job store_job(uint64_t id)
{
	return (struct takt_job){
		.id = id,
		.submit_seq = id + 1000,
		.uid = 1000,
		.gid = 100,
		.state = TAKT_JOB_WAITING,
		.spec_json = (char *)"{\"argv\":[\"./train.sh\"]}",
		.submitted = {.ns = 1700000000000000000 + (int64_t)(id % 1000000)},
		.message = (char *)"",
	};
}

struct takt_store_completion store_wait(struct takt_store *store, int64_t ticket)
{
	struct pollfd fd = {.fd = takt_store_fd(store), .events = POLLIN};
	struct takt_store_completion done = {0};

	do {
		if (poll(&fd, 1, WAIT_MS) != 1)
			fail_msg("ticket %lld was not reported", (long long)ticket);
		(void)takt_store_completions(store, &done, 1);
	} while (done.ticket < ticket);
	return done;
}

const char *store_job_text(const struct takt_job *job)
{
	static char text[2][2048];
	static unsigned turn;
	const struct takt_job_report *r = &job->report;
	char *buf = text[turn++ % 2];

	snprintf(buf, sizeof(text[0]),
		 "id=%llu seq=%llu uid=%u gid=%u state=%s attempt=%u mask=%llx submitted=%lld "
		 "started=%lld ended=%lld code=%d signal=%d cancel=%d message='%s' has=%x sim=%d "
		 "wall=%llu energy=%llu why='%s' sm=%u throttled=%llu reasons=%llx peak=%llu "
		 "util=%u idle=%llu gaps=%llu/%llu/%llu saved=%s/%u/%llu/%llu/%u/%d/%u "
		 "held=%d priority=%d timed_out=%d restarts=%u failures=%u retry=%lld "
		 "mps=%d share=%u held_mib=%u mig=%s preemptions=%u frozen=%d lost=%llu staged=%d "
		 "evict=%u for=%llu at=%lld checkpoint=%lld promise=%d/%u/%s limit=%d/%llu "
		 "spread=%u uuids=%s "
		 "cause=%s/%d/%u/%lld "
		 "spec=%s",
		 (unsigned long long)job->id, (unsigned long long)job->submit_seq, job->uid,
		 job->gid, takt_job_state_name(job->state), job->attempt,
		 (unsigned long long)job->gpu_mask, (long long)job->submitted.ns,
		 (long long)job->started.ns, (long long)job->ended.ns, job->exit_code,
		 job->exit_signal, job->cancel_wanted, job->message ? job->message : "", r->has,
		 r->simulated, (unsigned long long)r->wall_ns, (unsigned long long)r->energy_mj,
		 r->energy_why_not, r->mean_sm_mhz, (unsigned long long)r->throttled_ns,
		 (unsigned long long)r->throttle_reasons, (unsigned long long)r->peak_memory_bytes,
		 r->mean_util_permille, (unsigned long long)r->idle_ns,
		 (unsigned long long)r->gap_driver_ns, (unsigned long long)r->gap_scheduler_ns,
		 (unsigned long long)r->gap_start_ns, r->governor, r->work_signal,
		 (unsigned long long)r->governed_mj, (unsigned long long)r->highest_mj,
		 r->highest_error_permille, r->slowdown_permille, r->slowdown_error_permille,
		 job->held, job->priority, job->timed_out, job->restarts, job->failures,
		 (long long)job->retry_at.ns, job->mps_limited, job->share_milli, job->mem_held_mib,
		 job->mig ? job->mig : "", job->preemptions, job->frozen,
		 (unsigned long long)job->stood_ns, job->staged, job->evict,
		 (unsigned long long)job->evict_for, (long long)job->evict_at.ns,
		 (long long)job->checkpoint_at.ns, job->promise.changed,
		 job->promise.max_slowdown_permille, job->promise.clock_policy, job->limit.changed,
		 (unsigned long long)job->limit.time_ms, r->sm_spread_mhz,
		 job->gpu_uuids ? job->gpu_uuids : "", takt_cause_name(job->cause.cause),
		 job->cause.cause ? job->cause.gpu : -1, job->cause.xid,
		 (long long)job->cause.at.ns, job->spec_json ? job->spec_json : "");
	return buf;
}
