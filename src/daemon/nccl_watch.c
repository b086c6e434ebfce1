/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/nccl_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "telemetry/nccl_read.h"

static const uint64_t every_ns = 10 * TAKT_NS_PER_S;

/* By the clock that does not jump; 0 = it is not of the job, or of a time that is yet to come. */
static struct takt_mono written_at(const struct takt_daemon *daemon, const struct takt_job *job,
				   struct takt_wall written, struct takt_mono now)
{
	int64_t age_ns = takt_wall_now(daemon->sys).ns - written.ns;

	if (written.ns < job->started.ns || age_ns < 0 || (uint64_t)age_ns >= now.ns)
		return (struct takt_mono){0};
	return (struct takt_mono){now.ns - (uint64_t)age_ns};
}

/* What the job says of the GPU; false: nothing. Of a file that is just being written the last that
 * was read of it stays. */
static bool look(struct takt_daemon *daemon, int dirfd, const struct takt_job *job, uint32_t gpu,
		 struct takt_mono now)
{
	struct takt_nccl *nccl = takt_telemetry_nccl(daemon->telemetry, gpu), read;
	const char *uuid = takt_machine_facts(daemon->machine, gpu)->uuid;
	int rc = nccl ? takt_nccl_read(dirfd, uuid, job->uid, &read) : -ENOMEM;

	if (rc == -EAGAIN)
		return nccl->count > 0 && nccl->written.ns >= job->started.ns;
	if (rc < 0)
		return false;
	read.at = written_at(daemon, job, read.written, now);
	read.job_id = job->id;
	if (read.at.ns)
		*nccl = read;
	return read.at.ns;
}

static void look_at_jobs(struct takt_daemon *daemon, int dirfd, struct takt_mono now)
{
	bool told[TAKT_DEVICE_MAX_GPUS] = {false};
	const struct takt_queue_holding *holdings;
	size_t count;

	holdings = takt_queue_holdings(daemon->queue, &count);
	for (size_t i = 0; i < count; i++) {
		const struct takt_queue_job *job =
			takt_queue_find(daemon->queue, holdings[i].job_id);
		uint32_t gpu = holdings[i].gpu;

		if (job && job->phase == TAKT_PHASE_RUNNING && gpu < daemon->gpu_count &&
		    !told[gpu])
			told[gpu] = look(daemon, dirfd, &job->row, gpu, now);
	}
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_nccl *nccl =
			told[gpu] ? NULL : takt_telemetry_nccl(daemon->telemetry, gpu);

		if (nccl)
			nccl->count = 0;
	}
}

static int open_folder(struct takt_daemon *daemon)
{
	int fd = open(daemon->config.nccl_inspector, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && !daemon->nccl_failed)
		takt_log(TAKT_LOG_WARNING, "nccl_inspector '%s': %s; tried again",
			 daemon->config.nccl_inspector, takt_err_sentence(-errno));
	daemon->nccl_failed = fd < 0;
	return fd;
}

void takt_nccl_watch_tick(struct takt_daemon *daemon, struct takt_mono now)
{
	int dirfd;

	if (daemon->config.nccl_inspector[0] == '\0' || now.ns < daemon->nccl_due.ns)
		return;
	daemon->nccl_due = takt_mono_add(now, every_ns);
	dirfd = open_folder(daemon);
	if (dirfd < 0)
		return;
	look_at_jobs(daemon, dirfd, now);
	close(dirfd);
}
