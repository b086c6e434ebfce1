/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as the API shows it: status, topology, clocks, and the metrics page's labels. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/clock_terms.h"
#include "daemon/govern.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_mig.h"
#include "daemon/gpu_orders.h"
#include "daemon/net_probe.h"
#include "device/net_watch.h"
#include "sched/sched.h"
#include "takt_build.h"

_Static_assert(TAKT_VIEW_MAX_PROCS >= (int)TAKT_DEVICE_MAX_PROCS,
	       "whoever asks is told of all that are sampled");

static void fill_proc(struct takt_daemon *daemon, const struct takt_peer *peer,
		      const struct takt_gpu_proc *proc, struct takt_mono now,
		      struct takt_proc_view *view)
{
	const struct takt_proc_who *who = takt_proc_who(daemon->procs, proc->pid, now);

	view->pid = proc->pid;
	view->uid = who->uid;
	if (who->uid != UINT32_MAX)
		takt_user_name(who->uid, view->user, sizeof(view->user));
	if (peer->uid == 0 || peer->uid == who->uid)
		takt_strcpy(view->command, sizeof(view->command), who->command);
	view->job_id = who->job_id;
	view->memory_known = proc->memory_known;
	view->memory_bytes = proc->memory_bytes;
	view->util_known = proc->util_known;
	view->sm_util_pct = proc->sm_util_pct;
	view->mem_util_pct = proc->mem_util_pct;
}

static void fill_procs(struct takt_daemon *daemon, const struct takt_peer *peer,
		       const struct takt_gpu_reading *reading, struct takt_mono now,
		       struct takt_gpu_view *view)
{
	view->proc_count = reading->proc_count + reading->procs_dropped;
	for (uint32_t i = 0; i < reading->proc_count && i < TAKT_ARRAY_LEN(view->procs); i++)
		fill_proc(daemon, peer, &reading->procs[i], now, &view->procs[i]);
}

/* What the GPU is to whoever wants one: "free" is not said of one that an outside process uses. */
static const char *state_text(const struct takt_daemon *daemon, uint32_t gpu, uint64_t *ret_job)
{
	enum takt_gpu_state state = takt_queue_gpu(daemon->queue, gpu, ret_job);
	const char *said = takt_orders_state(daemon->orders, gpu, takt_wall_now(daemon->sys));

	if (said && state < TAKT_GPU_QUARANTINED &&
	    (state == TAKT_GPU_FREE || strcmp(said, "drained") == 0))
		return said;
	return state == TAKT_GPU_FREE && daemon->watch[gpu].outside ? "outside"
								    : takt_gpu_state_name(state);
}

static void fill_holder(struct takt_daemon *daemon, const struct takt_peer *peer, uint32_t gpu,
			struct takt_gpu_view *view)
{
	const struct takt_queue_job *job;

	takt_strcpy(view->state, sizeof(view->state), state_text(daemon, gpu, &view->job_id));
	takt_orders_note(daemon->orders, gpu, takt_wall_now(daemon->sys), view->note,
			 sizeof(view->note));
	view->kept_for_job = takt_queue_gpu_kept_for(daemon->queue, gpu);
	job = takt_queue_find(daemon->queue, view->job_id);
	if (!job)
		return;
	takt_user_name(job->row.uid, view->job_user, sizeof(view->job_user));
	if (peer->uid == 0 || peer->uid == job->row.uid)
		takt_strcpy(view->job_name, sizeof(view->job_name), job->spec.name);
}

static void fill_handover(const struct takt_daemon *daemon, uint32_t gpu,
			  struct takt_gpu_view *view)
{
	const struct takt_handover_gap *gap = &daemon->watch[gpu].gap;

	if (!gap->complete)
		return;
	view->has |= TAKT_VIEW_HANDOVER;
	view->gap_job_id = gap->job_id;
	view->gap_driver_us = gap->driver_ns / TAKT_NS_PER_US;
	view->gap_scheduler_us = gap->scheduler_ns / TAKT_NS_PER_US;
	view->gap_start_us = gap->start_ns / TAKT_NS_PER_US;
}

static void fill_share(struct takt_daemon *daemon, const struct takt_peer *peer,
		       const struct takt_queue_holding *holding, struct takt_gpu_share_view *view)
{
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, holding->job_id);

	view->job_id = holding->job_id;
	view->milli = holding->milli;
	view->mem_mib = holding->mem_mib;
	view->left = holding->left;
	if (holding->instance >= 0)
		takt_strcpy(view->mig_uuid, sizeof(view->mig_uuid),
			    takt_queue_instance_uuid(daemon->queue, holding->instance));
	if (!job)
		return;
	takt_user_name(job->row.uid, view->user, sizeof(view->user));
	if (peer->uid == 0 || peer->uid == job->row.uid)
		takt_strcpy(view->name, sizeof(view->name), job->spec.name);
}

static void fill_shares(struct takt_daemon *daemon, const struct takt_peer *peer, uint32_t gpu,
			struct takt_gpu_view *view)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count; i++) {
		if (holdings[i].gpu != gpu || holdings[i].milli == TAKT_REQUEST_WHOLE)
			continue;
		view->has |= TAKT_VIEW_SHARES;
		if (view->share_count < TAKT_ARRAY_LEN(view->shares))
			fill_share(daemon, peer, &holdings[i], &view->shares[view->share_count]);
		view->share_count++;
	}
}

static void fill_clock_state(struct takt_daemon *daemon, uint32_t gpu, struct takt_gpu_view *view)
{
	struct takt_lease_state lease;

	takt_watch_clocks(daemon, gpu, &lease);
	takt_strcpy(view->clock_state, sizeof(view->clock_state), lease.state);
	takt_strcpy(view->clock_note, sizeof(view->clock_note), lease.note);
	if (!lease.note[0] && lease.max_mhz)
		takt_govern_note(daemon->govern, lease.job_id, view->clock_note,
				 sizeof(view->clock_note));
	view->lease_min_mhz = lease.min_mhz;
	view->lease_max_mhz = lease.max_mhz;
	view->power_cap_mw = lease.cap_power_mw;
}

static void fill_gpu(struct takt_daemon *daemon, const struct takt_peer *peer, uint32_t gpu,
		     struct takt_mono now, struct takt_gpu_view *view)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	const struct takt_gpu_reading *reading;

	view->index = gpu;
	takt_gpu_view_facts(facts, view);
	takt_strcpy(view->health, sizeof(view->health), takt_health_state(daemon->health, gpu));
	takt_health_note(daemon->health, gpu, view->health_note, sizeof(view->health_note));
	takt_strcpy(view->severity, sizeof(view->severity),
		    takt_level_name(takt_health_severity(daemon->health, gpu)));
	fill_holder(daemon, peer, gpu, view);
	fill_shares(daemon, peer, gpu, view);
	fill_clock_state(daemon, gpu, view);
	fill_handover(daemon, gpu, view);
	if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0) {
		view->stale = true;
		return;
	}
	takt_gpu_view_reading(facts, reading, now, view);
	if (takt_telemetry_nvlink_rates(daemon->telemetry, gpu, &view->nvlink_sent_bytes_per_s,
					&view->nvlink_received_bytes_per_s))
		view->has |= TAKT_VIEW_NVLINK_RATES;
	fill_procs(daemon, peer, reading, now, view);
}

static void add_note(struct takt_status_view *ret, size_t *n, enum takt_level level,
		     const char *what, const char *text)
{
	if (!text[0] || *n == TAKT_ARRAY_LEN(ret->notes))
		return;
	takt_strcpy(ret->note_severity[*n], sizeof(ret->note_severity[0]), takt_level_name(level));
	snprintf(ret->notes[(*n)++], sizeof(ret->notes[0]), "%s%s", what, text);
}

static void add_gpu_note(const struct takt_daemon *daemon, uint32_t gpu,
			 struct takt_status_view *ret, size_t *n)
{
	enum takt_level severity = takt_health_severity(daemon->health, gpu);
	struct takt_lease_state lease;
	char what[80];

	takt_leases_state(daemon->leases, gpu, &lease);
	snprintf(what, sizeof(what), "GPU %u: ", gpu);
	if (strcmp(lease.state, "changed") == 0) {
		snprintf(what, sizeof(what),
			 "GPU %u: clocks are CHANGED and could not be put back: ", gpu);
		add_note(ret, n, TAKT_LEVEL_CRITICAL, what,
			 lease.note[0] ? lease.note : "it is tried again");
	} else if (takt_watch_note(daemon, gpu)[0]) {
		add_note(ret, n, severity > TAKT_LEVEL_WARNING ? severity : TAKT_LEVEL_WARNING,
			 what, takt_watch_note(daemon, gpu));
	} else if (takt_mig_note(daemon->mig, gpu)[0]) {
		add_note(ret, n, TAKT_LEVEL_INFO, what, takt_mig_note(daemon->mig, gpu));
	} else {
		add_note(ret, n, TAKT_LEVEL_WARNING, "", daemon->watch[gpu].over_note);
	}
}

/* What an administrator should see at the top: set-aside GPUs, clocks left changed, a missing
 * helper. */
static void fill_notes(const struct takt_daemon *daemon, struct takt_status_view *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(daemon->notes); i++)
		add_note(ret, &n, TAKT_LEVEL_WARNING, "", daemon->notes[i]);
	add_note(ret, &n, TAKT_LEVEL_WARNING, "", takt_govern_budget_note(daemon->govern));
	add_note(ret, &n, TAKT_LEVEL_INFO, "", takt_govern_model_note(daemon->govern));
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		add_gpu_note(daemon, gpu, ret, &n);
}

int takt_api_status(void *ctx, const struct takt_peer *peer, struct takt_status_view *ret,
		    struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_machine_info *info = takt_machine_info(daemon->machine);
	struct takt_mono now = takt_mono_now(daemon->sys);
	struct takt_gpu_view *gpus = takt_calloc(daemon->gpu_count, sizeof(*gpus));

	if (!gpus)
		return takt_err_set(err, -ENOMEM, "the status of %u GPUs", daemon->gpu_count);
	takt_strcpy(ret->hostname, sizeof(ret->hostname), daemon->hostname);
	takt_strcpy(ret->driver_version, sizeof(ret->driver_version), info->driver_version);
	takt_cuda_text(info->cuda_version, ret->cuda_version, sizeof(ret->cuda_version));
	takt_strcpy(ret->source, sizeof(ret->source), info->source);
	takt_strcpy(ret->takt_version, sizeof(ret->takt_version), TAKT_VERSION);
	ret->simulated = info->simulated;
	ret->manages = daemon->manages;
	takt_strcpy(ret->observe_why, sizeof(ret->observe_why), daemon->observe_why);
	ret->pid = getpid();
	ret->uptime_ms = (now.ns - daemon->started.ns) / TAKT_NS_PER_MS;
	takt_queue_counts(daemon->queue, &ret->waiting, &ret->running);
	if (peer->admin)
		takt_strcpy(ret->state_dir, sizeof(ret->state_dir), daemon->config.state_dir);
	fill_notes(daemon, ret);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		fill_gpu(daemon, peer, gpu, now, &gpus[gpu]);
	ret->gpu_count = daemon->gpu_count;
	ret->gpus = gpus;
	return 0;
}

static void cpu_list_text(const uint64_t cpus[TAKT_DEVICE_CPU_WORDS], char *buf, size_t size)
{
	uint32_t max = TAKT_DEVICE_CPU_WORDS * 64;
	size_t used = 0;

	buf[0] = '\0';
	for (uint32_t cpu = 0; cpu < max; cpu++) {
		uint32_t last = cpu;
		int n;

		if (!(cpus[cpu / 64] >> (cpu % 64) & 1))
			continue;
		while (last + 1 < max && (cpus[(last + 1) / 64] >> ((last + 1) % 64) & 1))
			last++;
		n = last == cpu ? snprintf(buf + used, size - used, "%s%u", used ? "," : "", cpu)
				: snprintf(buf + used, size - used, "%s%u-%u", used ? "," : "", cpu,
					   last);
		if (n < 0 || used + (size_t)n >= size)
			return;
		used += (size_t)n;
		cpu = last;
	}
}

static void fill_topo_row(struct takt_daemon *daemon, uint32_t a, struct takt_topo_view *ret)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, a);

	takt_strcpy(ret->name[a], sizeof(ret->name[a]),
		    facts->has & TAKT_FACT_NAME ? facts->name : "");
	ret->numa_node[a] = facts->has & TAKT_FACT_NUMA ? facts->numa_node : -1;
	if (facts->has & TAKT_FACT_CPUS)
		cpu_list_text(facts->cpus, ret->cpu_list[a], sizeof(ret->cpu_list[a]));
	for (uint32_t b = 0; b < daemon->gpu_count; b++) {
		struct takt_gpu_link link = takt_machine_link(daemon->machine, a, b);

		ret->score[a][b] = a == b ? 0 : daemon->pair_score[a * daemon->gpu_count + b];
		if (a == b)
			takt_strcpy(ret->link[a][b], sizeof(ret->link[a][b]), "X");
		else if (link.nvlinks)
			snprintf(ret->link[a][b], sizeof(ret->link[a][b]), "NV%u", link.nvlinks);
		else
			takt_strcpy(ret->link[a][b], sizeof(ret->link[a][b]),
				    takt_link_name(link.pcie));
	}
}

static uint64_t free_mask(const struct takt_daemon *daemon)
{
	uint64_t mask = 0, job;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (takt_queue_gpu(daemon->queue, gpu, &job) == TAKT_GPU_FREE &&
		    !daemon->watch[gpu].outside &&
		    !takt_orders_state(daemon->orders, gpu, takt_wall_now(daemon->sys)))
			mask |= 1ull << gpu;
	return mask;
}

int takt_api_topology(void *ctx, struct takt_topo_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	uint32_t n = daemon->gpu_count;
	uint64_t all = n >= 64 ? UINT64_MAX : (1ull << n) - 1, spare = free_mask(daemon);
	int64_t sum;

	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	ret->gpu_count = n;
	for (uint32_t gpu = 0; gpu < n; gpu++)
		fill_topo_row(daemon, gpu, ret);
	/* Too few GPUs for a set leaves its mask 0, which means "none". */
	(void)takt_best_set(daemon->pair_score, n, all, 2, &ret->best2_mask, &ret->best2_sum);
	(void)takt_best_set(daemon->pair_score, n, all, 4, &ret->best4_mask, &ret->best4_sum);
	(void)takt_best_set(daemon->pair_score, n, spare, 2, &ret->free_best2_mask, &sum);
	(void)takt_best_set(daemon->pair_score, n, spare, 4, &ret->free_best4_mask, &sum);
	return 0;
}

static void fill_clock_gpu(struct takt_daemon *daemon, uint32_t gpu, struct takt_mono now,
			   struct takt_clock_gpu *ret)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	const struct takt_gpu_reading *reading;
	struct takt_lease_state lease;

	takt_watch_clocks(daemon, gpu, &lease);
	ret->index = gpu;
	takt_clock_gpu_facts(facts, ret);
	takt_strcpy(ret->severity, sizeof(ret->severity),
		    takt_level_name(takt_health_severity(daemon->health, gpu)));
	takt_strcpy(ret->clock_state, sizeof(ret->clock_state), lease.state);
	takt_strcpy(ret->note, sizeof(ret->note), lease.note);
	ret->lease_min_mhz = lease.min_mhz;
	ret->lease_max_mhz = lease.max_mhz;
	ret->lease_mem_min_mhz = lease.mem_min_mhz;
	ret->lease_mem_max_mhz = lease.mem_max_mhz;
	ret->lease_job = lease.job_id;
	ret->lease_power_mw = lease.power_mw;
	ret->cap_power_mw = lease.cap_power_mw;
	takt_strcpy(ret->cap_why, sizeof(ret->cap_why),
		    takt_clock_admin_cap_why(daemon->clock_admin, gpu, lease.cap_power_mw));
	ret->base_min_mhz = lease.base_min_mhz;
	ret->base_max_mhz = lease.base_max_mhz;
	ret->base_power_mw = lease.base_power_mw;
	takt_clock_admin_mig(daemon->clock_admin, gpu, ret->base_mig);
	if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0)
		return;
	takt_clock_gpu_reading(reading, ret);
	ret->has_draw = (reading->has & TAKT_HAS_POWER) && !reading->stale;
	ret->draw_mw = ret->has_draw ? reading->power_mw : 0;
}

int takt_api_clocks(void *ctx, struct takt_clock_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;

	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	ret->gpu_count = daemon->gpu_count;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		fill_clock_gpu(daemon, gpu, takt_mono_now(daemon->sys), &ret->gpu[gpu]);
	takt_knobs_cpu_state(daemon->knobs, &ret->cpu);
	takt_govern_fill_budget(daemon->govern, ret);
	return 0;
}

/* Users and names are told only where the administrator wants them on a page without a lock. */
static void label_job(struct takt_daemon *daemon, uint64_t id, char user[64],
		      struct takt_label_job *ret)
{
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, id);

	*ret = (struct takt_label_job){.id = id, .engine = "takt"};
	if (!job)
		return;
	if (daemon->config.metrics_user)
		ret->user = takt_user_name(job->row.uid, user, 64);
	if (daemon->config.metrics_job_name)
		ret->name = job->spec.name;
}

/* Each job once, however many instances of the GPU it has. */
static size_t list_shares(const struct takt_daemon *daemon, uint32_t gpu,
			  uint64_t ret[TAKT_LABEL_MAX_JOBS])
{
	size_t count, n = 0;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	for (size_t i = 0; i < count && n < TAKT_LABEL_MAX_JOBS; i++) {
		size_t known = 0;

		if (holdings[i].gpu != gpu || holdings[i].milli == TAKT_REQUEST_WHOLE)
			continue;
		while (known < n && ret[known] != holdings[i].job_id)
			known++;
		if (known == n)
			ret[n++] = holdings[i].job_id;
	}
	return n;
}

static void label_gpu(struct takt_daemon *daemon, uint32_t gpu)
{
	char users[TAKT_LABEL_MAX_JOBS][64];
	uint64_t holder = 0, jobs[TAKT_LABEL_MAX_JOBS];
	struct takt_lease_state lease;
	struct takt_gpu_label label = {.state = state_text(daemon, gpu, &holder)};
	size_t count = list_shares(daemon, gpu, jobs);

	takt_watch_clocks(daemon, gpu, &lease);
	if (count == 0 && holder)
		jobs[count++] = holder;
	for (size_t i = 0; i < count; i++)
		label_job(daemon, jobs[i], users[i], &label.jobs[i]);
	label.actuate = lease.state;
	label.health = takt_health_state(daemon->health, gpu);
	label.hears_xids = takt_health_hears_xids(daemon->health);
	label.lease_min_mhz = lease.min_mhz;
	label.lease_max_mhz = lease.max_mhz;
	label.power_cap_mw = lease.cap_power_mw;
	takt_telemetry_label(daemon->telemetry, gpu, &label);
}

void takt_api_update_page(struct takt_daemon *daemon)
{
	uint32_t waiting, running;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		label_gpu(daemon, gpu);
	takt_queue_counts(daemon->queue, &waiting, &running);
	takt_telemetry_gauge(daemon->telemetry, "takt_jobs_waiting", "Jobs that wait to be placed.",
			     false, waiting);
	takt_telemetry_gauge(daemon->telemetry, "takt_jobs_running", "Jobs that start, run or end.",
			     false, running);
	takt_telemetry_gauge(daemon->telemetry, "takt_manages",
			     "1 when takt gives out these GPUs, 0 when it observes only.", false,
			     daemon->manages);
	takt_telemetry_gauge(daemon->telemetry, "takt_loop_turns_total",
			     "Times that takt's loop went round.", true, (double)daemon->turns);
	takt_telemetry_gauge(daemon->telemetry, "takt_loop_busy_seconds_total",
			     "Time that takt's loop was not waiting.", true,
			     (double)daemon->busy_ns / 1e9);
	takt_telemetry_gauge(daemon->telemetry, "takt_loop_longest_turn_seconds",
			     "The longest that takt's loop was busy at a time, since its start.",
			     false, (double)daemon->longest_ns / 1e9);
	takt_net_watch_latest(daemon->net_watch, takt_telemetry_net(daemon->telemetry));
	takt_net_probe_update_page(daemon);
	takt_handover_update_page(daemon);
	takt_govern_update_page(daemon->govern);
	takt_gpu_history_update_page(daemon);
	takt_own_files_update_page(daemon);
	takt_refused_update_page(daemon);
}
