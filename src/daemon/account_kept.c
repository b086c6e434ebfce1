/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts of running jobs, kept in the store so that a daemon which is started anew goes on with
 * them: once a minute, and when this one ends. A job that takes less leaves nothing here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/daemon.h"

static const char prefix[] = "account/";
static const uint64_t keep_ns = 60 * TAKT_NS_PER_S;

enum {
	KEY_MAX = sizeof(prefix) + 32
};

static void key_of(uint64_t job_id, uint32_t attempt, char ret[KEY_MAX])
{
	snprintf(ret, KEY_MAX, "%s%" PRIu64 ".%" PRIu32, prefix, job_id, attempt);
}

/* One that cannot be kept now is tried again in a minute. */
static void keep(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_STORE_MAX_KEPT);
	char key[KEY_MAX];

	key_of(job->row.id, job->row.attempt, key);
	if (takt_telemetry_account_write(daemon->telemetry, job->row.id, &text) == 0)
		(void)takt_store_keep(daemon->store, key, takt_str_text(&text), 0, NULL);
}

void takt_accounts_keep(struct takt_daemon *daemon)
{
	uint64_t job_id;

	for (size_t i = 0; (job_id = takt_telemetry_account_at(daemon->telemetry, i)); i++) {
		const struct takt_queue_job *job = takt_queue_find(daemon->queue, job_id);

		if (job && job->row.gpu_mask)
			keep(daemon, job);
	}
}

void takt_accounts_tick(struct takt_daemon *daemon, struct takt_mono now)
{
	if (now.ns < daemon->accounts_due.ns)
		return;
	if (daemon->accounts_due.ns)
		takt_accounts_keep(daemon);
	daemon->accounts_due = takt_mono_add(now, keep_ns);
}

void takt_account_forget(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	char key[KEY_MAX];

	key_of(job->row.id, job->row.attempt, key);
	(void)takt_store_keep(daemon->store, key, NULL, 0, NULL);
}

/* The job, where that attempt of it may be alive. */
static const struct takt_queue_job *find_job(const struct takt_daemon *daemon, const char *key)
{
	const struct takt_queue_job *job;
	uint64_t job_id;
	uint32_t attempt;

	if (sscanf(key + strlen(prefix), "%" SCNu64 ".%" SCNu32, &job_id, &attempt) != 2)
		return NULL;
	job = takt_queue_find(daemon->queue, job_id);
	return job && job->row.attempt == attempt && job->phase >= TAKT_PHASE_STARTING ? job : NULL;
}

static int take(void *ctx, const char *key, const char *text)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job = find_job(daemon, key);

	if (!job || takt_telemetry_account_resume(daemon->telemetry, job->row.id, job->row.gpu_mask,
						  text, NULL) < 0)
		(void)takt_store_keep(daemon->store, key, NULL, 0, NULL);
	return 0;
}

int takt_accounts_load(struct takt_daemon *daemon, struct takt_err *err)
{
	return takt_store_each_kept(daemon->store, prefix, take, daemon, err);
}
