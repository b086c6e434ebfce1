/* SPDX-License-Identifier: Apache-2.0 */
/* What changes something: cancel, signal, clocks; and what waits or streams: wait, logs, metrics.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_whose.h"
#include "base/mem.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_orders.h"
#include "daemon/net_probe.h"

static const uint64_t cancel_answer_ms = 10000; /* then the answer is "stopping" */

int takt_api_find_own(struct takt_daemon *daemon, const struct takt_peer *peer, uint64_t job_id,
		      const struct takt_queue_job **ret, struct takt_err *err)
{
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, job_id);
	struct takt_job row = {0};
	int rc;

	if (job && !takt_api_may_act(peer, job->row.uid))
		return takt_err_set(err, -EPERM, "job %llu is another user's",
				    (unsigned long long)job_id);
	if (job) {
		*ret = job;
		return 0;
	}
	rc = takt_api_ended_row(daemon, job_id, &row, err);
	if (rc == 0)
		rc = takt_err_set(err, -TAKT_E_CONFLICT, "job %llu has ended (%s)",
				  (unsigned long long)job_id, takt_job_state_name(row.state));
	takt_job_fini(&row);
	return rc;
}

static uint64_t deadline_in(const struct takt_daemon *daemon, uint64_t ms)
{
	return takt_boot_now(daemon->sys).ns + ms * TAKT_NS_PER_MS;
}

static int cancel(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		  struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job;
	int rc = takt_api_find_own(daemon, peer, job_id, &job, err);

	if (rc == 0)
		rc = takt_waiters_add(daemon->waiters, job_id,
				      deadline_in(daemon, cancel_answer_ms), peer, pending, err);
	/* From here on the waiter answers, whatever becomes of the job: found above, so it is live.
	 */
	if (rc == 0)
		(void)takt_queue_cancel(daemon->queue, job_id, TAKT_CAUSE_CANCELLED,
					takt_wall_now(daemon->sys), NULL);
	return rc;
}

static int send_signal(void *ctx, const struct takt_peer *peer, uint64_t job_id, int signal,
		       struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job;
	int rc = takt_api_find_own(daemon, peer, job_id, &job, err);

	return rc < 0 ? rc : takt_queue_signal(daemon->queue, job_id, signal, err);
}

/* The job has ended already: answer from the store. */
static int answer_ended(struct takt_daemon *daemon, const struct takt_peer *peer, uint64_t job_id,
			struct takt_pending *pending, struct takt_err *err)
{
	struct takt_job_view *view = takt_zalloc(sizeof(*view));
	struct takt_str json = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	int rc = view ? takt_api_job(daemon, peer, job_id, view, err)
		      : takt_err_set(err, -ENOMEM, "the answer");

	if (rc == 0)
		rc = takt_job_view_to_json(view, &json);
	if (rc == 0)
		takt_pending_json(pending, 200, takt_str_text(&json), json.len);
	takt_str_fini(&json);
	takt_free(view);
	return rc;
}

static int wait_job(void *ctx, const struct takt_peer *peer, uint64_t job_id, uint32_t timeout_ms,
		    struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;

	if (!takt_queue_find(daemon->queue, job_id))
		return answer_ended(daemon, peer, job_id, pending, err);
	return takt_waiters_add(daemon->waiters, job_id, deadline_in(daemon, timeout_ms), peer,
				pending, err);
}

/* -1: there is none yet. The directory of an attempt of an older takt is the job's user's, so what
 * has the name of a log may be a pipe that nobody writes to, or another name of a file that is not
 * for him to read. */
static int open_log(const struct takt_daemon *daemon, uint64_t job_id, uint32_t attempt,
		    uid_t owner, struct takt_err *err)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%llu.%u/log", (unsigned long long)job_id, attempt);
	fd = openat(daemon->jobs_dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return -1;
	if (fd < 0)
		return takt_err_set(err, -errno, "log of job %llu", (unsigned long long)job_id);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && takt_file_whose(fd, &st) == owner)
		return fd;
	close(fd);
	return takt_err_set(err, -TAKT_E_CORRUPT, "log of job %llu is not the file that takt made",
			    (unsigned long long)job_id);
}

static int job_log(void *ctx, const struct takt_peer *peer, uint64_t job_id, int *ret_fd,
		   uint32_t *ret_attempt, bool *ret_live, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, job_id);
	struct takt_job row = {0};
	uint32_t attempt;
	uid_t owner;
	int fd, rc = job ? 0 : takt_api_ended_row(daemon, job_id, &row, err);

	if (rc < 0)
		return rc;
	owner = job ? job->row.uid : row.uid;
	attempt = job ? job->row.attempt : row.attempt;
	takt_job_fini(&row);
	if (!takt_api_may_read(peer, owner))
		return takt_err_set(err, -EPERM, "job %llu is another user's",
				    (unsigned long long)job_id);
	fd = attempt ? open_log(daemon, job_id, attempt, owner, err) : -1;
	if (fd < -1)
		return fd;
	*ret_fd = fd;
	*ret_attempt = attempt;
	*ret_live = job != NULL;
	return 0;
}

/* From its place to its end, at which its clocks are put back; one that is over would not do so
 * again. A job's program may ask before takt has heard that it runs. */
static bool has_place(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		      uint32_t gpu)
{
	if (job->phase < TAKT_PHASE_PREPARING || job->phase > TAKT_PHASE_RUNNING)
		return false;
	return job->phase == TAKT_PHASE_RUNNING || !takt_queue_gpu_contested(daemon->queue, gpu);
}

/* The job of the peer's that holds the GPU alone, 0 = none. */
static uint64_t own_job_on(const struct takt_daemon *daemon, const struct takt_peer *peer,
			   uint32_t gpu)
{
	const struct takt_queue_job *job;
	uint64_t holder;

	takt_queue_gpu(daemon->queue, gpu, &holder);
	job = takt_queue_find(daemon->queue, holder);
	return job && has_place(daemon, job, gpu) && job->row.uid == peer->uid &&
			       job->row.share_milli == TAKT_REQUEST_WHOLE &&
			       !daemon->watch[gpu].outside
		       ? holder
		       : 0;
}

/* Who may change the clocks of these GPUs: administrators; a user, those that one running job of
 * his holds alone. *ret_job: that job, with which the change ends; 0 = as administrator, until it
 * is reset. */
static int may_set_clocks(struct takt_daemon *daemon, const struct takt_peer *peer,
			  uint64_t gpu_mask, uint64_t *ret_job, struct takt_err *err)
{
	uint64_t job = 0;

	if (!daemon->manages)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "takt only observes here (%s)",
				    daemon->observe_why);
	if (gpu_mask == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "no such GPU; there are %u",
				    daemon->gpu_count);
	*ret_job = 0;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		uint64_t holder = gpu_mask >> gpu & 1 ? own_job_on(daemon, peer, gpu) : job;

		if (gpu_mask >> gpu & 1 && (!holder || (job && holder != job)))
			return peer->admin
				       ? 0
				       : takt_err_set(err, -EPERM,
						      "GPU %u is not held alone by a running job "
						      "of yours; root or group %s may change it",
						      gpu, daemon->config.admin_group);
		job = holder;
	}
	*ret_job = job;
	return 0;
}

static int check_mhz(const struct takt_daemon *daemon, uint64_t gpu_mask, uint32_t mhz,
		     struct takt_err *err)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
		uint32_t n = facts->has & TAKT_FACT_SM_CLOCKS ? facts->sm_clock_count : 0;

		if (!(gpu_mask >> gpu & 1) || mhz == 0)
			continue;
		if (n == 0)
			return takt_err_set(err, -TAKT_E_UNSUPPORTED,
					    "the driver lists no SM clocks for GPU %u", gpu);
		if (mhz < facts->sm_clocks_mhz[0] || mhz > facts->sm_clocks_mhz[n - 1])
			return takt_err_set(
				err, -TAKT_E_USAGE, "SM clock %u MHz; GPU %u accepts %u to %u MHz",
				mhz, gpu, facts->sm_clocks_mhz[0], facts->sm_clocks_mhz[n - 1]);
	}
	return 0;
}

/* A benchmark may outrank others where it runs, and ends with its job. */
static int check_benchmark(uint64_t job, const struct takt_clock_order *ask, struct takt_err *err)
{
	return job || !ask->benchmark
		       ? 0
		       : takt_err_set(err, -EPERM,
				      "a benchmark needs GPUs that a running job of yours holds "
				      "alone");
}

/* Memory at another clock than its own may err, and not only under the job that is there now. */
static int check_mem(const struct takt_daemon *daemon, const struct takt_peer *peer,
		     uint64_t gpu_mask, uint32_t mhz, struct takt_err *err)
{
	if (mhz && !peer->admin)
		return takt_err_set(err, -EPERM, "memory clocks: root or group %s may change them",
				    daemon->config.admin_group);
	for (uint32_t gpu = 0; mhz && gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		if (!(gpu_mask >> gpu & 1))
			continue;
		if (!(facts->has & TAKT_FACT_MEM_CLOCKS))
			return takt_err_set(err, -TAKT_E_UNSUPPORTED,
					    "the driver lists no memory clocks for GPU %u", gpu);
		if (mhz < facts->mem_clocks_mhz[0] ||
		    mhz > facts->mem_clocks_mhz[facts->mem_clock_count - 1])
			return takt_err_set(err, -TAKT_E_USAGE,
					    "memory clock %u MHz; GPU %u accepts %u to %u MHz", mhz,
					    gpu, facts->mem_clocks_mhz[0],
					    facts->mem_clocks_mhz[facts->mem_clock_count - 1]);
	}
	return 0;
}

static int check_word(const struct takt_daemon *daemon, const struct takt_peer *peer,
		      const struct takt_clock_order *ask, struct takt_err *err)
{
	return peer->admin || !ask->assume_unlocked
		       ? 0
		       : takt_err_set(err, -EPERM,
				      "that nobody else has locked a clock is for root or group "
				      "%s to say",
				      daemon->config.admin_group);
}

static int clock_set(void *ctx, const struct takt_peer *peer, uint64_t gpu_mask,
		     const struct takt_clock_order *ask, struct takt_pending *pending,
		     struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	uint64_t job;
	int rc = may_set_clocks(daemon, peer, gpu_mask, &job, err);

	if (rc == 0)
		rc = check_benchmark(job, ask, err);
	if (rc == 0)
		rc = check_word(daemon, peer, ask, err);
	if (rc == 0)
		rc = check_mhz(daemon, gpu_mask, ask->max_mhz, err);
	if (rc == 0)
		rc = check_mem(daemon, peer, gpu_mask, ask->mem_mhz, err);
	if (rc == 0)
		takt_leases_set(daemon->leases, gpu_mask, job, ask, pending);
	return rc;
}

static int clock_reset(void *ctx, const struct takt_peer *peer, uint64_t gpu_mask,
		       struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	uint64_t job;
	int rc = may_set_clocks(daemon, peer, gpu_mask, &job, err);

	if (rc == 0)
		takt_leases_reset(daemon->leases, gpu_mask, peer->admin ? 0 : job, pending);
	return rc;
}

static int cpu_clock(void *ctx, const struct takt_peer *peer, uint32_t max_mhz,
		     struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;

	if (!peer->admin)
		return takt_err_set(err, -EPERM, "clocks of CPUs: root or group %s may change them",
				    daemon->config.admin_group);
	return takt_knobs_cpu(daemon->knobs, max_mhz, pending, err);
}

static void release_page(void *page)
{
	takt_page_unref(page);
}

static int metrics(void *ctx, bool openmetrics, const char **ret_text, size_t *ret_len,
		   void **ret_page, void (**ret_release)(void *page))
{
	enum takt_page_format format = openmetrics ? TAKT_PAGE_OPENMETRICS : TAKT_PAGE_PLAIN;
	struct takt_daemon *daemon = ctx;
	struct takt_mono now = takt_mono_now(daemon->sys);
	const struct takt_page *page;

	if (takt_telemetry_page_is_old(daemon->telemetry, format, now))
		takt_api_update_page(daemon);
	page = takt_telemetry_page(daemon->telemetry, format, now);
	*ret_text = page->text;
	*ret_len = page->len;
	*ret_page = (void *)page;
	*ret_release = release_page;
	return 0;
}

const struct takt_server_backend takt_daemon_backend = {
	.status = takt_api_status,
	.topology = takt_api_topology,
	.queue = takt_api_queue,
	.live_version = takt_api_live_version,
	.job = takt_api_job,
	.explain = takt_api_explain,
	.course = takt_api_course,
	.submit = takt_api_submit,
	.submit_many = takt_api_submit_many,
	.again = takt_api_again,
	.try = takt_api_try,
	.cancel = cancel,
	.change = takt_api_change,
	.signal = send_signal,
	.wait = wait_job,
	.log = job_log,
	.clocks = takt_api_clocks,
	.clock_set = clock_set,
	.clock_reset = clock_reset,
	.clock_cap = takt_api_clock_cap,
	.clock_declare = takt_api_clock_declare,
	.cpu_clock = cpu_clock,
	.health = takt_api_health,
	.net = takt_api_net,
	.orders = takt_api_orders,
	.order = takt_api_order,
	.reload = takt_api_reload,
	.history = takt_api_history,
	.metrics = metrics,
};
