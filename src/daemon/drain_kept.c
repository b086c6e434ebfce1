/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store keeps of each GPU that a job has, so that a daemon which is started anew while it
 * drains still waits until the job's memory is back: whose it is and what was used before he came.
 * In the store and not with the attempt, whose files are the job's user's. The record goes when
 * nobody has the GPU and it is clean, at a later look, so that a job which is next is not kept
 * waiting for the disk; one too many costs a look at the GPU, one too few leaves what one can do
 * without it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/gpu_watch.h"

static const char prefix[] = "drain/";

enum {
	TEXT_MAX = 160
};

static bool post(struct takt_daemon *daemon, uint32_t gpu, const char *text)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	char key[sizeof(prefix) + sizeof(facts->uuid)];

	snprintf(key, sizeof(key), "%s%s", prefix, facts->uuid);
	return takt_store_keep(daemon->store, key, text, 0, NULL) >= 0;
}

void takt_drain_keep(struct takt_daemon *daemon, uint32_t gpu, const struct takt_queue_job *job)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];
	char text[TEXT_MAX], bytes[24] = "", boot_id[40];

	if (job->row.share_milli == 0)
		return; /* what is kept is of the whole GPU, and a MIG instance goes by itself */
	takt_boot_id(boot_id);
	if (watch->mem_before_known)
		snprintf(bytes, sizeof(bytes), " %" PRIu64, watch->mem_before_bytes);
	snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu32 "%s", boot_id, job->row.id,
		 job->row.attempt, bytes);
	watch->kept |= post(daemon, gpu, text);
}

void takt_drain_forget(struct takt_daemon *daemon, uint32_t gpu)
{
	struct takt_gpu_watch *watch = &daemon->watch[gpu];

	if (watch->kept && post(daemon, gpu, NULL))
		watch->kept = false;
}

static bool find_gpu(const struct takt_daemon *daemon, const char *uuid, uint32_t *ret)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (takt_watch_known(daemon, gpu) &&
		    strcmp(takt_machine_facts(daemon->machine, gpu)->uuid, uuid) == 0) {
			*ret = gpu;
			return true;
		}
	return false;
}

static bool is_held(const struct takt_daemon *daemon, uint32_t gpu)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu)
			return true;
	return false;
}

struct kept {
	uint64_t job_id;
	uint32_t attempt;
	bool bytes_known;
	uint64_t bytes;
};

/* What does not read as ours, or is of an earlier boot, says nothing of what is in the GPU now. */
static bool parse(const char *text, struct kept *ret)
{
	char boot_id[40], kept_id[40];
	int n = sscanf(text, "%39s %" SCNu64 " %" SCNu32 " %" SCNu64, kept_id, &ret->job_id,
		       &ret->attempt, &ret->bytes);

	takt_boot_id(boot_id);
	ret->bytes_known = n == 4;
	return n >= 3 && strcmp(boot_id, kept_id) == 0;
}

static int take(void *ctx, const char *key, const char *text)
{
	struct takt_daemon *daemon = ctx;
	struct takt_gpu_watch *watch;
	struct kept kept = {0};
	uint32_t gpu;

	if (!find_gpu(daemon, key + sizeof(prefix) - 1, &gpu))
		return 0;
	watch = &daemon->watch[gpu];
	watch->kept = true;
	if (!parse(text, &kept))
		return 0;
	watch->mem_before_known = kept.bytes_known;
	watch->mem_before_bytes = kept.bytes;
	if (!is_held(daemon, gpu) &&
	    takt_queue_gpu_left(daemon->queue, gpu, kept.job_id, kept.attempt, NULL) == 0)
		takt_watch_drain(daemon, gpu);
	return 0;
}

int takt_drain_load(struct takt_daemon *daemon, struct takt_err *err)
{
	return takt_store_each_kept(daemon->store, prefix, take, daemon, err);
}
