/* SPDX-License-Identifier: Apache-2.0 */
/* What of its GPUs explains that a job ended badly. */
#include "daemon/daemon.h"
#include "daemon/gpu_health.h"

/* That instant on the clock of readings; 0 = not known. */
static struct takt_mono mono_at(const struct takt_sys *sys, struct takt_boot at)
{
	uint64_t ago_ns = takt_boot_elapsed_ns(takt_boot_now(sys), at);
	struct takt_mono now = takt_mono_now(sys);

	return (struct takt_mono){at.ns && now.ns > ago_ns ? now.ns - ago_ns : 0};
}

static struct takt_job_cause cause_of(const struct takt_daemon *daemon, uint32_t gpu,
				      const struct takt_rules_blow *blow)
{
	uint64_t ago_ns = takt_mono_elapsed_ns(takt_mono_now(daemon->sys), blow->at);

	return (struct takt_job_cause){
		.cause = blow->lost    ? TAKT_CAUSE_GPU_LOST
			 : blow->fault ? TAKT_CAUSE_GPU_FAULT
				       : TAKT_CAUSE_GPU_ERROR,
		.gpu = (int32_t)gpu,
		.xid = blow->xid,
		.at.ns = takt_wall_now(daemon->sys).ns - (int64_t)ago_ns,
	};
}

/* Of several GPUs the gravest; the causes are in that order. */
bool takt_daemon_job_cause(void *ctx, const struct takt_queue_job *job, struct takt_boot since,
			   struct takt_job_cause *ret)
{
	struct takt_daemon *daemon = ctx;
	struct takt_mono ended = mono_at(daemon->sys, since);
	struct takt_mono began = mono_at(daemon->sys, job->started_boot);
	struct takt_job_cause found = {.cause = TAKT_CAUSE_NONE};
	bool all_known = true;

	for (uint64_t left = job->row.gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);
		struct takt_rules_blow blow;
		struct takt_job_cause cause;
		bool known;

		if (gpu >= daemon->gpu_count)
			continue;
		if (takt_health_befell(daemon->health, gpu, began, ended, &blow, &known)) {
			cause = cause_of(daemon, gpu, &blow);
			if (!found.cause || cause.cause < found.cause)
				found = cause;
		}
		all_known = all_known && known;
	}
	if (found.cause)
		*ret = found;
	return all_known;
}
