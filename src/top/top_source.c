/* SPDX-License-Identifier: Apache-2.0 */
/* See top_source.h. */
#include "top/top_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "client/client.h"
#include "device/device.h"
#include "top/gpu_view.h"
#include "top/host_link.h"
#include "top/host_look.h"
#include "top/top_log.h"
#include "top/top_past.h"

/* To a daemon, or a driver, that did not answer. */
static const struct takt_pace tries = {TAKT_NS_PER_S / 4, 10 * TAKT_NS_PER_S};
static const uint64_t queue_ns = 900 * TAKT_NS_PER_MS;	/* how old the queue may be */
static const uint64_t sample_ns = 500 * TAKT_NS_PER_MS; /* a driver that hangs */
static const uint64_t first_ns = 2 * TAKT_NS_PER_S;	/* the same, of a GPU never heard */

struct takt_top_source {
	const struct takt_top_source_config *config;
	struct takt_client *client;   /* NULL = none answers */
	struct takt_machine *machine; /* NULL = not opened */
	struct takt_host_link *link;  /* NULL = this machine */
	struct takt_err no_daemon, no_driver;
	struct attempts {
		struct takt_mono retry_at;
		uint32_t failures; /* in a row */
	} of_daemon, of_driver;
	struct takt_mono asked_queue;
	bool past_told;
	struct takt_top_log log; /* as far as it was read */
	struct takt_log_place log_place;
	struct takt_host_ticks ticks;	      /* of the last look */
	TAKT_VEC(struct takt_top_proc) procs; /* of the last look */
	struct {
		uint64_t seq; /* of its newest sample when it was asked last */
		bool hangs;   /* it was waited for in vain */
	} gpus[TAKT_DEVICE_MAX_GPUS];
};

int takt_top_source_new(const struct takt_top_source_config *config, struct takt_top_source **ret)
{
	struct takt_top_source *source = takt_zalloc(sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->config = config;
	source->procs.max = TAKT_TOP_MAX_PROCS;
	if (config->host)
		source->link = takt_host_link_new(config->host, config->driver_only);
	if (config->host && !source->link) {
		takt_free(source);
		return -ENOMEM;
	}
	*ret = source;
	return 0;
}

void takt_top_source_free(struct takt_top_source *source)
{
	if (!source)
		return;
	takt_client_free(source->client);
	takt_machine_close(source->machine);
	takt_host_link_free(source->link);
	takt_vec_fini(&source->procs);
	takt_top_log_fini(&source->log);
	takt_free(source);
}

static bool is_due(struct takt_mono *last, uint64_t every_ns)
{
	struct takt_mono now = takt_mono_now(takt_sys_real());

	if (last->ns && takt_mono_elapsed_ns(now, *last) < every_ns)
		return false;
	*last = now;
	return true;
}

static bool may_try(const struct attempts *attempts)
{
	return takt_mono_now(takt_sys_real()).ns >= attempts->retry_at.ns;
}

static void try_later(struct attempts *attempts)
{
	attempts->retry_at = takt_mono_add(takt_mono_now(takt_sys_real()),
					   takt_pace_ns(&tries, attempts->failures++));
}

static void find_daemon(struct takt_top_source *source)
{
	if (source->client || source->config->driver_only || !may_try(&source->of_daemon))
		return;
	if (takt_client_connect(source->config->socket, &source->client, &source->no_daemon) < 0) {
		source->client = NULL;
		try_later(&source->of_daemon);
	} else {
		takt_client_meanwhile(source->client, source->config->meanwhile);
	}
	source->asked_queue.ns = 0;
}

static int ask_queue(struct takt_top_source *source, struct takt_top_snapshot *ret)
{
	ret->same_queue = !is_due(&source->asked_queue, queue_ns);
	if (ret->same_queue)
		return 0;
	return takt_client_queue(source->client, false, TAKT_TOP_MAX_JOBS, &ret->queue,
				 &source->no_daemon);
}

/* Whatever does not come of it is no reason to take the daemon for gone. */
static void ask_past(struct takt_top_source *source, struct takt_top_snapshot *ret)
{
	if (!source->config->past_step_ms || source->past_told)
		return;
	source->past_told = true;
	ret->past = takt_top_past_ask(source->client, &ret->status, takt_wall_now(takt_sys_real()),
				      source->config->past_step_ms);
}

/* Another job's log is read from its beginning. */
static void ask_log(struct takt_top_source *source, uint64_t job, struct takt_top_snapshot *ret)
{
	if (source->log.job_id != job) {
		takt_top_log_fini(&source->log);
		source->log.job_id = job;
		source->log_place = (struct takt_log_place){.offset = 0};
	}
	if (job == 0)
		return;
	takt_top_log_follow(source->client, &source->log, &source->log_place);
	(void)takt_top_log_copy(&source->log, &ret->log);
}

static int ask_daemon(struct takt_top_source *source, uint64_t log_job,
		      struct takt_top_snapshot *ret)
{
	int rc = takt_client_status(source->client, &ret->status, &source->no_daemon);

	if (rc == 0)
		rc = ask_queue(source, ret);
	ret->daemon = true;
	if (rc == 0) {
		source->of_daemon.failures = 0;
		ask_past(source, ret);
		ask_log(source, log_job, ret);
		return 0;
	}
	takt_client_free(source->client);
	source->client = NULL;
	try_later(&source->of_daemon);
	takt_top_snapshot_fini(ret);
	return rc;
}

static void open_driver(struct takt_top_source *source)
{
	struct takt_machine_config config = {
		.source = TAKT_SOURCE_NVML,
		.nvml_path = source->config->nvml_path,
		.no_links = true,
		.for_view = true,
		.leaves_asleep = true,
		.meanwhile = source->config->meanwhile,
	};

	if (source->machine || !may_try(&source->of_driver))
		return;
	if (takt_machine_open(&config, &source->machine, &source->no_driver) < 0) {
		source->machine = NULL;
		try_later(&source->of_driver);
	} else {
		takt_machine_hush(source->machine, true);
	}
}

/* Its samples so far; has it given one since it was asked last, it hangs no longer. */
static void count_samples(struct takt_top_source *source, uint32_t gpu,
			  struct takt_gpu_reading *work)
{
	uint64_t seq = takt_machine_reading(source->machine, gpu, work) == 0 ? work->seq : 0;

	source->gpus[gpu].hangs &= seq == source->gpus[gpu].seq;
	source->gpus[gpu].seq = seq;
}

static bool answers(struct takt_top_source *source, uint32_t gpu, struct takt_mono asked)
{
	uint64_t seq = source->gpus[gpu].seq;
	struct takt_mono end = takt_mono_add(asked, seq > 0 ? sample_ns : first_ns);

	return takt_machine_wait(source->machine, gpu, seq, end) == 0;
}

/* Who did not answer is not waited for until it has: the others' news would come late with it. */
static void sample(struct takt_top_source *source, struct takt_gpu_reading *work)
{
	uint32_t gpus = takt_machine_info(source->machine)->gpu_count;
	struct takt_mono asked;

	for (uint32_t i = 0; i < gpus; i++)
		count_samples(source, i, work);
	takt_machine_tick(source->machine, UINT32_MAX);
	asked = takt_mono_now(takt_sys_real());
	/* The last one first: most often the others are done by then, too. */
	for (uint32_t i = gpus; i > 0; i--)
		if (!source->gpus[i - 1].hangs)
			source->gpus[i - 1].hangs = !answers(source, i - 1, asked);
}

static void fill_gpu(const struct takt_machine *machine, uint32_t gpu,
		     const struct takt_gpu_reading *reading, struct takt_gpu_view *view)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(machine, gpu);

	takt_gpu_view_facts(facts, view);
	takt_gpu_view_reading(facts, reading, takt_mono_now(takt_sys_real()), view);
	view->proc_count = reading->proc_count + reading->procs_dropped;
	for (uint32_t i = 0; i < reading->proc_count && i < TAKT_ARRAY_LEN(view->procs); i++)
		view->procs[i] = (struct takt_proc_view){
			.pid = reading->procs[i].pid,
			.uid = UINT32_MAX,
			.memory_known = reading->procs[i].memory_known,
			.memory_bytes = reading->procs[i].memory_bytes,
			.util_known = reading->procs[i].util_known,
			.sm_util_pct = reading->procs[i].sm_util_pct,
			.mem_util_pct = reading->procs[i].mem_util_pct,
		};
}

static void fill_machine(const struct takt_machine_info *info, struct takt_status_view *ret)
{
	gethostname(ret->hostname, sizeof(ret->hostname) - 1);
	takt_strcpy(ret->driver_version, sizeof(ret->driver_version), info->driver_version);
	takt_cuda_text(info->cuda_version, ret->cuda_version, sizeof(ret->cuda_version));
	takt_strcpy(ret->source, sizeof(ret->source), info->source);
	ret->simulated = info->simulated;
}

static int read_driver(struct takt_top_source *source, struct takt_top_snapshot *ret)
{
	const struct takt_machine_info *info = takt_machine_info(source->machine);
	struct takt_gpu_reading *reading = takt_alloc(sizeof(*reading));
	struct takt_status_view *status = &ret->status;

	status->gpus = takt_calloc(info->gpu_count + 1, sizeof(*status->gpus));
	if (!reading || !status->gpus) {
		takt_free(reading);
		return -ENOMEM;
	}
	fill_machine(info, status);
	status->gpu_count = info->gpu_count;
	sample(source, reading);
	for (uint32_t i = 0; i < info->gpu_count; i++) {
		status->gpus[i].index = i;
		if (takt_machine_reading(source->machine, i, reading) == 0)
			fill_gpu(source->machine, i, reading, &status->gpus[i]);
		else
			status->gpus[i].stale = true;
	}
	takt_free(reading);
	return 0;
}

static int look(struct takt_top_source *source, uint64_t log_job, struct takt_top_snapshot *ret)
{
	find_daemon(source);
	if (source->client && ask_daemon(source, log_job, ret) == 0)
		return 0;
	open_driver(source);
	return source->machine ? read_driver(source, ret) : -TAKT_E_UNAVAILABLE;
}

/* What was found out about processes, for the next look. */
static void keep_procs(struct takt_top_source *source, const struct takt_top_snapshot *snapshot)
{
	takt_vec_clear(&source->procs);
	if (takt_vec_reserve(&source->procs, snapshot->procs.len) < 0)
		return;
	TAKT_VEC_EACH (proc, &snapshot->procs)
		source->procs.at[source->procs.len++] = *proc;
}

static void say_why(const struct takt_top_source *source, char *ret, size_t size)
{
	if (source->config->driver_only)
		snprintf(ret, size, "%s", source->no_driver.msg);
	else
		snprintf(ret, size, "%.110s; and without it: %.110s", source->no_daemon.msg,
			 source->no_driver.msg);
}

void takt_top_source_look(struct takt_top_source *source, uint64_t log_job,
			  struct takt_top_snapshot *ret)
{
	int rc;

	if (source->link) {
		takt_host_link_look(source->link, source->config->past_step_ms, log_job, ret);
		return;
	}
	takt_top_snapshot_init(ret);
	rc = look(source, log_job, ret);
	if (rc == 0)
		rc = takt_top_gather_procs(ret);
	takt_host_look(&source->ticks, &ret->host);
	ret->at = takt_wall_now(takt_sys_real());
	if (rc == -TAKT_E_UNAVAILABLE)
		say_why(source, ret->why_not, sizeof(ret->why_not));
	else if (rc < 0)
		snprintf(ret->why_not, sizeof(ret->why_not), "%s", takt_err_sentence(rc));
	if (rc < 0)
		return;
	takt_top_identify(ret, source->procs.at, source->procs.len);
	keep_procs(source, ret);
}
