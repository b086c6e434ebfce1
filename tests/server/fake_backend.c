/* SPDX-License-Identifier: Apache-2.0 */
/* The fake behind the server. */
#include "fake_backend.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "codec/history_view.h"
#include "codec/json.h"
#include "net/listen.h"

enum {
	RUN_MS = 60
};

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

static struct fake_job *find(struct fake *fake, uint64_t id)
{
	return id >= 1 && id <= fake->job_count ? &fake->jobs[id - 1] : NULL;
}

static int no_job(uint64_t id, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no job %llu", (unsigned long long)id);
}

static bool has_ended(const struct fake_job *job)
{
	return job->view.ended_ms != 0;
}

static void fill_gpu(const struct fake *fake, struct takt_gpu_view *gpu, uint32_t index)
{
	gpu->index = index;
	snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%08u-0000-0000-0000-000000000000", index);
	snprintf(gpu->name, sizeof(gpu->name),
		 fake->mixed && index == 1 ? "NVIDIA L40S" : "NVIDIA H100 80GB HBM3");
	snprintf(gpu->pci_bus_id, sizeof(gpu->pci_bus_id), "00000000:%02X:00.0", 0x1b + index);
	snprintf(gpu->state, sizeof(gpu->state), index == 0 ? "running" : "free");
	snprintf(gpu->clock_state, sizeof(gpu->clock_state), "clean");
	if (fake->changed_clock && index == 1) {
		snprintf(gpu->clock_state, sizeof(gpu->clock_state), "changed");
		snprintf(gpu->clock_note, sizeof(gpu->clock_note),
			 "the driver refuses to restore: no permission");
	}
	if (index == 2)
		return; /* a GPU of which nothing could be read */
	gpu->has = TAKT_VIEW_SM | TAKT_VIEW_SM_MAX | TAKT_VIEW_POWER | TAKT_VIEW_POWER_LIMIT |
		   TAKT_VIEW_TEMP | TAKT_VIEW_GPU_UTIL | TAKT_VIEW_MEMORY | TAKT_VIEW_THROTTLE |
		   TAKT_VIEW_PROCS;
	gpu->sm_mhz = index == 0 ? 1410 : 345;
	gpu->sm_max_mhz = 1980;
	gpu->lease_max_mhz = index == 0 ? 1410 : 0;
	gpu->lease_min_mhz = index == 0 ? 210 : 0;
	gpu->power_mw = index == 0 ? 612345 : 71200;
	gpu->power_limit_mw = 700000;
	gpu->temp_c = index == 0 ? 61 : 33;
	gpu->gpu_util_pct = index == 0 ? 97 : 0;
	gpu->mem_used_bytes = index == 0 ? UINT64_C(45) << 30 : 0;
	gpu->mem_total_bytes = UINT64_C(80) << 30;
	if (index == 0) {
		gpu->throttle = 4;
		snprintf(gpu->throttle_text, sizeof(gpu->throttle_text), "sw_power_cap");
		gpu->job_id = 7;
		snprintf(gpu->job_name, sizeof(gpu->job_name), "train");
		snprintf(gpu->job_user, sizeof(gpu->job_user), "ada");
	}
	if (index == 1) {
		gpu->proc_count = 1;
		gpu->procs[0] = (struct takt_proc_view){
			.pid = 4242, .uid = 1000, .user = "bob", .command = "python3"};
	}
}

static int on_status(void *ctx, const struct takt_peer *peer, struct takt_status_view *ret,
		     struct takt_err *err)
{
	struct fake *fake = ctx;

	fake->last_peer = *peer;
	*ret = (struct takt_status_view){.hostname = "box",
					 .driver_version = "550.54.15",
					 .source = "nvml",
					 .takt_version = "0.1.0",
					 .simulated = fake->simulated,
					 .manages = true,
					 .pid = 1,
					 .uptime_ms = 3723000,
					 .waiting = 1,
					 .running = 2};
	ret->gpus = takt_calloc(3, sizeof(*ret->gpus));
	if (!ret->gpus)
		return takt_err_set(err, -ENOMEM, "no memory for the status");
	ret->gpu_count = 3;
	for (uint32_t i = 0; i < 3; i++)
		fill_gpu(fake, &ret->gpus[i], i);
	return 0;
}

static int on_topology(void *ctx, struct takt_topo_view *ret, struct takt_err *err)
{
	struct fake *fake = ctx;

	ret->simulated = fake->simulated;
	ret->gpu_count = 4;
	for (uint32_t i = 0; i < 4; i++) {
		snprintf(ret->name[i], sizeof(ret->name[i]), "NVIDIA H100 80GB HBM3");
		ret->numa_node[i] = i == 3 ? -1 : (int32_t)i / 2;
		snprintf(ret->cpu_list[i], sizeof(ret->cpu_list[i]), i == 3 ? "" : "0-31,64-95");
		for (uint32_t j = 0; j < 4; j++) {
			snprintf(ret->link[i][j], 8,
				 i == j		  ? "X"
				 : i / 2 == j / 2 ? "NV18"
						  : "SYS");
			ret->score[i][j] = i == j ? 0 : i / 2 == j / 2 ? 1810 : 10;
		}
	}
	ret->best2_mask = 3;
	ret->best2_sum = 1810;
	ret->best4_mask = 15;
	ret->best4_sum = 3660;
	ret->free_best2_mask = 12;
	return 0;
}

static int on_queue(void *ctx, const struct takt_peer *peer, const struct takt_history_ask *history,
		    uint32_t limit, int (*each)(void *arg, const struct takt_job_view *view),
		    void *arg, struct takt_queue_rest *ret_rest, struct takt_err *err)
{
	struct fake *fake = ctx;
	uint32_t shown = 0;

	bool past = history && !history->live;

	fake->lists_made += !past;
	fake->pasts_made += past;
	*ret_rest = (struct takt_queue_rest){0};
	for (uint64_t i = 0; i < fake->job_count; i++) {
		if (has_ended(&fake->jobs[i]) != past)
			continue;
		ret_rest->total++;
		if (shown < limit && each(arg, &fake->jobs[i].view) < 0)
			return takt_err_set(err, -TAKT_E_LIMIT, "the list is too long");
		shown++;
	}
	return 0;
}

/* Its tests change jobs behind its back, so nothing is known unless one says so. */
static uint64_t on_live_version(void *ctx)
{
	struct fake *fake = ctx;

	return fake->keeps_lists ? fake->live_version : ++fake->live_version;
}

static int on_job(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		  struct takt_job_view *ret, struct takt_err *err)
{
	const struct fake_job *job = find(ctx, job_id);

	if (!job)
		return no_job(job_id, err);
	*ret = job->view;
	return 0;
}

static int on_explain(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		      struct takt_explain_view *ret, struct takt_err *err)
{
	const struct fake_job *job = find(ctx, job_id);

	if (!job)
		return no_job(job_id, err);
	ret->id = job_id;
	ret->simulated = job->view.simulated;
	takt_strcpy(ret->state, sizeof(ret->state), job->view.state);
	takt_strcpy(ret->why, sizeof(ret->why), job->view.why);
	takt_strcpy(ret->text, sizeof(ret->text), job->view.why_text);
	ret->counted = true;
	ret->need = job->view.gpus;
	ret->total = 8;
	ret->free = 2;
	ret->running = 6;
	ret->must_end = 2;
	return 0;
}

static int on_course(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     struct takt_course_view *ret, struct takt_err *err)
{
	if (!find(ctx, job_id))
		return no_job(job_id, err);
	ret->id = job_id;
	return 0;
}

static void finish_with(struct takt_pending *pending, const struct takt_job_view *view)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(1 << 20);

	takt_job_view_to_json(view, &json);
	takt_pending_json(pending, 200, takt_str_text(&json), json.len);
}

static void start_job(struct fake_job *job, char *const *argv)
{
	struct takt_job_view *view = &job->view;
	uint64_t ends_ns = now_ns() + RUN_MS * TAKT_NS_PER_MS;

	takt_strcpy(view->state, sizeof(view->state), "running");
	view->attempt = 1;
	view->pid = 4711;
	view->started_ms = 1763651106000;
	view->gpu_list_count = view->gpus;
	for (uint32_t i = 0; i < view->gpus; i++) {
		view->gpu_list[i] = i;
		snprintf(view->gpu_uuid[i], sizeof(view->gpu_uuid[i]), "GPU-%u", i);
	}
	if (strcmp(argv[0], "hang") == 0)
		return;
	job->ends_ns = ends_ns;
	if (strcmp(argv[0], "exit") == 0 && argv[1])
		view->exit_code = atoi(argv[1]);
	if (strcmp(argv[0], "kill") == 0 && argv[1])
		view->exit_signal = atoi(argv[1]);
}

static void write_log(struct fake *fake, const struct fake_job *job, char *const *argv)
{
	if (strcmp(argv[0], "echo") == 0) {
		for (size_t i = 1; argv[i]; i++) {
			fake_log(fake, job->view.id, argv[i], strlen(argv[i]));
			fake_log(fake, job->view.id, "\n", 1);
		}
	}
	for (int c = 0; strcmp(argv[0], "binary") == 0 && c < 256; c++)
		fake_log(fake, job->view.id, &(unsigned char){(unsigned char)c}, 1);
}

static void on_gone(void *ctx)
{
	struct fake *fake = ctx;

	fake->never = NULL;
	fake->cancelled++;
}

static int on_submit(void *ctx, const struct takt_peer *peer, struct takt_jobspec *spec,
		     struct takt_pending *pending, struct takt_err *err)
{
	struct fake *fake = ctx;
	struct fake_job *job = &fake->jobs[fake->job_count];

	fake->last_peer = *peer;
	if (spec->gpus > 8)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "asks for %u GPUs, the largest node has 8", spec->gpus);
	takt_free(fake->last_env);
	fake->last_env = takt_strdup(spec->env ? spec->env[0] : NULL);
	fake->job_count++;
	memset(job, 0, sizeof(*job));
	job->view = (struct takt_job_view){.simulated = fake->simulated,
					   .id = fake->job_count,
					   .user = "ada",
					   .uid = peer->uid,
					   .gpus = spec->gpus,
					   .priority = spec->priority,
					   .mine = true,
					   .submitted_ms = 1763651105000};
	takt_strcpy(job->view.name, sizeof(job->view.name), spec->name);
	takt_job_view_terms(spec, true, &job->view);
	job->view.retries = spec->retries;
	job->view.time_limit_ms = spec->time_limit_ms;
	job->view.mem_mib = spec->mem_mib;
	job->view.begin_ms = spec->begin_ms;
	takt_jobspec_command(spec, job->view.command, sizeof(job->view.command));
	takt_strcpy(job->view.cwd, sizeof(job->view.cwd), "/home/ada");
	snprintf(job->log_path, sizeof(job->log_path), "%s/log.%llu", fake->dir,
		 (unsigned long long)job->view.id);
	takt_strcpy(job->view.state, sizeof(job->view.state), "waiting");
	if (strcmp(spec->argv[0], "never") == 0) {
		fake->never = pending;
		takt_pending_set_cancel(pending, on_gone, fake);
		takt_jobspec_fini(spec);
		return 0;
	}
	if (strcmp(spec->argv[0], "queue") == 0) {
		takt_strcpy(job->view.why, sizeof(job->view.why), "gpus");
		takt_strcpy(job->view.why_text, sizeof(job->view.why_text),
			    "needs 4 GPUs, 2 are free: 2 more have to come free");
		takt_strcpy(job->view.why_words, sizeof(job->view.why_words), "needs 2 more");
	} else {
		start_job(job, spec->argv);
		write_log(fake, job, spec->argv);
	}
	takt_jobspec_fini(spec);
	finish_with(pending, &job->view);
	return 0;
}

static int on_submit_many(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
			  struct takt_pending *pending, struct takt_err *err)
{
	return on_submit(ctx, peer, &specs->jobs[0], pending, err);
}

static int on_try(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
		  struct takt_try_view *ret, struct takt_err *err)
{
	struct fake *fake = ctx;

	for (uint32_t i = 0; i < specs->count; i++) {
		uint32_t gpus = specs->jobs[i].gpus;

		ret[i].simulated = fake->simulated;
		ret[i].starts = gpus <= 2;
		for (uint32_t gpu = 0; gpu < gpus && ret[i].starts; gpu++)
			ret[i].gpu_list[ret[i].gpu_list_count++] = gpu;
		if (!ret[i].starts) {
			takt_strcpy(ret[i].why, sizeof(ret[i].why), "gpus");
			takt_strcpy(ret[i].text, sizeof(ret[i].text), "waits for more GPUs");
			ret[i].start.starts_ms = 1795204226500;
		}
	}
	return 0;
}

static int on_cancel(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     struct takt_pending *pending, struct takt_err *err)
{
	struct fake *fake = ctx;
	struct fake_job *job = find(fake, job_id);

	if (!job)
		return no_job(job_id, err);
	if (has_ended(job))
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu is over",
				    (unsigned long long)job_id);
	fake_end(fake, job_id, 0, job->view.started_ms ? SIGTERM : 0);
	job->view.has_exit_code = false;
	if (!job->view.started_ms)
		job->view.report.has = 0;
	takt_strcpy(job->view.state, sizeof(job->view.state), "cancelled");
	finish_with(pending, &job->view);
	return 0;
}

static int on_change(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     const struct takt_job_change *change, struct takt_pending *pending,
		     struct takt_err *err)
{
	struct fake *fake = ctx;
	struct fake_job *job = find(fake, job_id);

	if (!job)
		return no_job(job_id, err);
	if (change->has_priority)
		job->view.priority = change->priority;
	if (change->has_held)
		takt_strcpy(job->view.held, sizeof(job->view.held), change->held ? "owner" : "");
	finish_with(pending, &job->view);
	return 0;
}

static int on_signal(void *ctx, const struct takt_peer *peer, uint64_t job_id, int signal,
		     struct takt_err *err)
{
	struct fake *fake = ctx;
	struct fake_job *job = find(fake, job_id);

	if (!job)
		return no_job(job_id, err);
	if (!job->view.started_ms)
		return takt_err_set(err, -TAKT_E_CONFLICT, "job %llu does not run",
				    (unsigned long long)job_id);
	fake->last_signal = signal;
	if (signal != SIGUSR1)
		fake_end(fake, job_id, 0, signal);
	return 0;
}

static void on_waiter_gone(void *ctx)
{
	struct fake_waiter *waiter = ctx;

	waiter->pending = NULL;
	waiter->fake->cancelled++;
}

static int on_wait(void *ctx, const struct takt_peer *peer, uint64_t job_id, uint32_t timeout_ms,
		   struct takt_pending *pending, struct takt_err *err)
{
	struct fake *fake = ctx;
	struct fake_job *job = find(fake, job_id);
	struct fake_waiter *waiter = fake->waiters;

	if (!job)
		return no_job(job_id, err);
	if (has_ended(job) || timeout_ms == 0) {
		finish_with(pending, &job->view);
		return 0;
	}
	while (waiter->pending)
		waiter++;
	assert(waiter < fake->waiters + FAKE_MAX_WAITERS);
	*waiter =
		(struct fake_waiter){fake, pending, job_id, now_ns() + timeout_ms * TAKT_NS_PER_MS};
	takt_pending_set_cancel(pending, on_waiter_gone, waiter);
	return 0;
}

static int on_log(void *ctx, const struct takt_peer *peer, uint64_t job_id, int *ret_fd,
		  uint32_t *ret_attempt, bool *ret_live, struct takt_err *err)
{
	const struct fake_job *job = find(ctx, job_id);

	if (!job)
		return no_job(job_id, err);
	*ret_fd = job->view.attempt ? open(job->log_path, O_RDONLY | O_CLOEXEC) : -1;
	*ret_attempt = job->view.attempt;
	*ret_live = !has_ended(job);
	return 0;
}

static int on_clocks(void *ctx, struct takt_clock_view *ret, struct takt_err *err)
{
	struct fake *fake = ctx;

	ret->simulated = fake->simulated;
	ret->gpu_count = 2;
	for (uint32_t i = 0; i < 2; i++) {
		struct takt_clock_gpu *gpu = &ret->gpu[i];

		gpu->index = i;
		snprintf(gpu->name, sizeof(gpu->name), "NVIDIA H100 80GB HBM3");
		snprintf(gpu->clock_state, sizeof(gpu->clock_state), "clean");
		gpu->has_sm = i == 0;
		gpu->sm_mhz = 1980;
		gpu->list_min_mhz = 210;
		gpu->list_max_mhz = 1980;
	}
	if (fake->last_mhz) {
		snprintf(ret->gpu[0].clock_state, sizeof(ret->gpu[0].clock_state), "leased");
		ret->gpu[0].lease_min_mhz = 210;
		ret->gpu[0].lease_max_mhz = fake->last_mhz;
		ret->gpu[0].lease_job = 7;
	}
	if (fake->changed_clock) {
		snprintf(ret->gpu[1].clock_state, sizeof(ret->gpu[1].clock_state), "changed");
		snprintf(ret->gpu[1].note, sizeof(ret->gpu[1].note),
			 "the driver refuses to restore: no permission");
	}
	return 0;
}

static void finish_clocks(struct fake *fake, struct takt_pending *pending)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(1 << 20);
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_zalloc(sizeof(*view));

	(void)on_clocks(fake, view, NULL);
	takt_clock_view_to_json(view, &json);
	takt_pending_json(pending, 200, takt_str_text(&json), json.len);
}

static int on_clock_set(void *ctx, const struct takt_peer *peer, uint64_t gpu_mask,
			const struct takt_clock_order *ask, struct takt_pending *pending,
			struct takt_err *err)
{
	struct fake *fake = ctx;

	if (ask->max_mhz > 1980)
		return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
				    "GPU 0 has no clock of %u MHz; it goes from 210 to 1980",
				    ask->max_mhz);
	fake->last_mask = gpu_mask;
	fake->last_mhz = ask->max_mhz;
	finish_clocks(fake, pending);
	return 0;
}

static int on_cpu_clock(void *ctx, const struct takt_peer *peer, uint32_t max_mhz,
			struct takt_pending *pending, struct takt_err *err)
{
	struct fake *fake = ctx;

	fake->last_mhz = max_mhz;
	finish_clocks(fake, pending);
	return 0;
}

static int on_clock_reset(void *ctx, const struct takt_peer *peer, uint64_t gpu_mask,
			  struct takt_pending *pending, struct takt_err *err)
{
	struct fake *fake = ctx;

	fake->last_mask = gpu_mask;
	fake->last_mhz = 0;
	finish_clocks(fake, pending);
	return 0;
}

static int on_reload(void *ctx, const struct takt_peer *peer, struct takt_reload_view *ret,
		     struct takt_err *err)
{
	if (!peer->admin)
		return takt_err_set(err, -EPERM, "not you");
	takt_strcpy(ret->changed, sizeof(ret->changed), "order");
	return 0;
}

static int on_health(void *ctx, const struct takt_peer *peer, struct takt_health_view *ret,
		     struct takt_err *err)
{
	struct fake *fake = ctx;
	struct takt_health_gpu *gpu = takt_zalloc(sizeof(*gpu));

	if (!gpu)
		return takt_err_set(err, -ENOMEM, "health");
	takt_strcpy(gpu->state, sizeof(gpu->state), peer->uid == 0 ? "lost" : "suspect");
	ret->simulated = fake->simulated;
	ret->gpu_count = 1;
	ret->gpus = gpu;
	return 0;
}

static int on_net(void *ctx, struct takt_net_view *ret, struct takt_err *err)
{
	takt_strcpy(ret->listen, sizeof(ret->listen), "10.0.0.1:9833");
	ret->peer_count = 1;
	takt_strcpy(ret->peers[0].name, sizeof(ret->peers[0].name), "gpu2");
	ret->peers[0].answered = 7;
	ret->peers[0].last_ns = 85000;
	return 0;
}

static int on_orders(void *ctx, const struct takt_peer *peer, struct takt_orders_view *ret,
		     struct takt_err *err)
{
	struct fake *fake = ctx;

	*ret = fake->orders;
	ret->simulated = fake->simulated;
	ret->gpus = 4;
	return 0;
}

static void take_order(struct fake *fake, const struct takt_gpu_request *request)
{
	struct takt_orders_view *orders = &fake->orders;

	if (request->kind == TAKT_GPU_RESUME) {
		orders->set_aside_count = 0;
	} else if (request->kind == TAKT_GPU_RELEASE) {
		orders->reservation_count = 0;
	} else if (request->kind == TAKT_GPU_APPROVE || request->kind == TAKT_GPU_REFUSE) {
		snprintf(orders->reservations[0].state, sizeof(orders->reservations[0].state), "%s",
			 request->kind == TAKT_GPU_APPROVE ? "granted" : "refused");
		snprintf(orders->reservations[0].answer, sizeof(orders->reservations[0].answer),
			 "%s", request->reason);
	} else if (request->kind == TAKT_GPU_DRAIN) {
		struct takt_gpu_order *order = &orders->set_aside[orders->set_aside_count++];

		*order = (struct takt_gpu_order){
			.index = (uint32_t)__builtin_ctzll(request->gpu_mask),
			.state = "drained",
			.by = "root",
			.since_ms = 1763650000000,
		};
		snprintf(order->reason, sizeof(order->reason), "%s", request->reason);
	} else {
		struct takt_reservation *at = &orders->reservations[orders->reservation_count++];

		*at = (struct takt_reservation){.id = 1,
						.gpu_mask = request->gpu_mask,
						.uid = request->user[0] ? 1000 : UINT32_MAX,
						.from_ms = request->from_ms,
						.until_ms = request->until_ms,
						.state = "granted",
						.by = "root"};
		snprintf(at->user, sizeof(at->user), "%s", request->user);
	}
}

static int on_order(void *ctx, const struct takt_peer *peer, const struct takt_gpu_request *request,
		    struct takt_pending *pending, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(1 << 20);
	TAKT_CLEANUP(freep) struct takt_orders_view *view = takt_zalloc(sizeof(*view));
	struct fake *fake = ctx;

	fake->last_mask = request->gpu_mask;
	take_order(fake, request);
	(void)on_orders(fake, peer, view, err);
	takt_orders_view_to_json(view, &json);
	takt_pending_json(pending, 200, takt_str_text(&json), json.len);
	return 0;
}

static int on_history(void *ctx, const struct takt_gpu_history_ask *ask,
		      struct takt_pending *pending, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(1 << 16);
	struct takt_history_view_point points[] = {{ask->since_ms, 1, 2, 3}};
	struct takt_history_view view = {
		.gpu = ask->gpu,
		.until_ms = ask->until_ms,
		.step_ms = ask->step && strcmp(ask->step, "1m") == 0 ? 60000 : 10000,
		.points = points,
		.point_count = 1};

	if (ask->gpu > 3)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no GPU %u", ask->gpu);
	snprintf(view.metric, sizeof(view.metric), "%s", ask->metric ? ask->metric : "power");
	takt_history_view_to_json(&view, &json);
	takt_pending_json(pending, 200, takt_str_text(&json), json.len);
	return 0;
}

static void release_page(void *page)
{
	struct fake *fake = page;

	fake->pages_out--;
}

static int on_metrics(void *ctx, bool openmetrics, const char **ret_text, size_t *ret_len,
		      void **ret_page, void (**ret_release)(void *page))
{
	struct fake *fake = ctx;

	fake->pages_out++;
	*ret_text = openmetrics ? "takt_up 1\n# EOF\n" : "takt_up 1\n";
	*ret_len = strlen(*ret_text);
	*ret_page = fake;
	*ret_release = release_page;
	return 0;
}

static const struct takt_server_backend backend = {
	.status = on_status,
	.topology = on_topology,
	.queue = on_queue,
	.live_version = on_live_version,
	.job = on_job,
	.explain = on_explain,
	.course = on_course,
	.submit = on_submit,
	.submit_many = on_submit_many,
	.history = on_history,
	.try = on_try,
	.cancel = on_cancel,
	.change = on_change,
	.signal = on_signal,
	.wait = on_wait,
	.log = on_log,
	.clocks = on_clocks,
	.clock_set = on_clock_set,
	.clock_reset = on_clock_reset,
	.cpu_clock = on_cpu_clock,
	.health = on_health,
	.net = on_net,
	.orders = on_orders,
	.order = on_order,
	.reload = on_reload,
	.metrics = on_metrics,
};

static void open_server(struct fake *fake, bool with_tcp)
{
	static const char *const hosts[] = {"gpu.example", NULL};
	struct takt_server_config config = {
		.tcp_fd = -1,
		.web_fd = -1,
		.tokens_dir = fake->with_web ? fake->dir : NULL,
		.owner_uid = getuid(),
		.single_user = !fake->many_users,
		.max_connections = fake->max_connections ? fake->max_connections : 20,
		.simulated = fake->simulated,
		.hosts = hosts,
	};
	struct takt_err err;

	if (takt_net_listen_unix(fake->socket, fake->many_users ? 0666 : 0600, &config.unix_fd,
				 &err) < 0 ||
	    (with_tcp &&
	     takt_net_listen_tcp("127.0.0.1:0", &config.tcp_fd, &fake->tcp_port, &err) < 0) ||
	    (fake->with_web &&
	     takt_net_listen_tcp("127.0.0.1:0", &config.web_fd, &fake->web_port, &err) < 0) ||
	    takt_server_new(&config, &backend, fake, &fake->server, &err) < 0) {
		fprintf(stderr, "fake: %s\n", err.msg);
		abort();
	}
}

void fake_start(struct fake *fake, bool simulated, bool with_tcp)
{
	memset(fake, 0, sizeof(*fake));
	(void)signal(SIGPIPE, SIG_IGN);
	takt_json_init();
	snprintf(fake->dir, sizeof(fake->dir), "/tmp/takt-test-XXXXXX");
	if (!mkdtemp(fake->dir))
		abort();
	snprintf(fake->socket, sizeof(fake->socket), "%s/takt.sock", fake->dir);
	fake->simulated = simulated;
	open_server(fake, with_tcp);
}

void fake_stop_server(struct fake *fake)
{
	takt_server_free(fake->server);
	fake->server = NULL;
}

void fake_restart(struct fake *fake)
{
	if (fake->server)
		fake_stop_server(fake);
	open_server(fake, false);
}

void fake_stop(struct fake *fake)
{
	fake_stop_server(fake);
	for (uint64_t i = 0; i < fake->job_count; i++)
		(void)unlink(fake->jobs[i].log_path);
	(void)unlink(fake->socket);
	(void)rmdir(fake->dir);
	takt_free(fake->last_env);
}

static void tick(struct fake *fake)
{
	uint64_t now = now_ns();

	for (uint64_t i = 0; i < fake->job_count; i++) {
		struct fake_job *job = &fake->jobs[i];

		if (job->ends_ns && !has_ended(job) && now >= job->ends_ns)
			fake_end(fake, i + 1, job->view.exit_code, job->view.exit_signal);
	}
	for (size_t i = 0; i < FAKE_MAX_WAITERS; i++) {
		struct fake_waiter *waiter = &fake->waiters[i];
		struct takt_pending *pending = waiter->pending;

		if (!pending || (now < waiter->until_ns && !has_ended(find(fake, waiter->job_id))))
			continue;
		waiter->pending = NULL;
		finish_with(pending, &find(fake, waiter->job_id)->view);
	}
}

void fake_pump(struct fake *fake, int max_ms)
{
	struct pollfd fd = {.fd = takt_server_fd(fake->server), .events = POLLIN};
	int timeout_ms = max_ms;
	struct takt_err err;

	tick(fake);
	if (takt_server_pump(fake->server, &timeout_ms, &err) < 0)
		abort();
	if (timeout_ms < 0 || timeout_ms > max_ms)
		timeout_ms = max_ms;
	(void)poll(&fd, 1, timeout_ms);
}

int fake_rest_ms(struct fake *fake)
{
	struct pollfd fd = {.fd = takt_server_fd(fake->server), .events = POLLIN};
	int timeout_ms = -1;

	tick(fake);
	if (takt_server_pump(fake->server, &timeout_ms, NULL) < 0)
		abort();
	if (poll(&fd, 1, 0) != 0)
		return 0;
	return timeout_ms < 0 ? INT_MAX : timeout_ms;
}

static void *run(void *ctx)
{
	struct fake *fake = ctx;

	while (!fake->stop)
		fake_pump(fake, 5);
	return NULL;
}

void fake_run(struct fake *fake)
{
	fake->stop = false;
	if (pthread_create(&fake->thread, NULL, run, fake) != 0)
		abort();
}

void fake_halt(struct fake *fake)
{
	fake->stop = true;
	pthread_join(fake->thread, NULL);
}

void fake_accept(struct fake *fake)
{
	finish_with(fake->never, &fake->jobs[fake->job_count - 1].view);
	fake->never = NULL;
}

void fake_log(struct fake *fake, uint64_t job_id, const void *bytes, size_t len)
{
	int fd =
		open(find(fake, job_id)->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
	takt_server_poke(fake->server);
}

void fake_end(struct fake *fake, uint64_t job_id, int code, int signal)
{
	struct takt_job_view *view = &find(fake, job_id)->view;

	takt_strcpy(view->state, sizeof(view->state), code || signal ? "failed" : "done");
	view->ended_ms = 1763651109500;
	view->has_exit_code = signal == 0;
	view->exit_code = code;
	view->exit_signal = signal;
	view->pid = 0;
	view->report = (struct takt_report_view){
		.has = TAKT_RV_WALL | TAKT_RV_ENERGY | TAKT_RV_MEAN_SM | TAKT_RV_THROTTLED |
		       TAKT_RV_PEAK_MEMORY | TAKT_RV_UTIL,
		.simulated = view->simulated,
		.wall_ms = 3500,
		.energy_mj = 1234567,
		.mean_sm_mhz = 1405,
		.throttled_ms = 1200,
		.throttle_text = "sw_power_cap",
		.peak_memory_bytes = UINT64_C(45) << 30,
		.mean_util_permille = 875,
		.idle_ms = 400,
	};
	takt_server_poke(fake->server);
}
