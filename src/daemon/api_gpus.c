/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as the API shows it: status, topology, clocks, and the metrics page's labels. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/gpu_orders.h"
#include "sched/sched.h"
#include "takt_build.h"

void takt_throttle_text(uint64_t bits, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint64_t bit = 1; bit && bit <= bits; bit <<= 1) {
		const char *name = bits & bit ? takt_throttle_name(bit) : NULL;
		int n = name ? snprintf(buf + used, size - used, "%s%s", used ? "," : "", name) : 0;

		if (n < 0 || used + (size_t)n >= size)
			return;
		used += (size_t)n;
	}
}

static void fill_facts(const struct takt_gpu_facts *facts, struct takt_gpu_view *view)
{
	if (facts->has & TAKT_FACT_NAME)
		takt_strcpy(view->name, sizeof(view->name), facts->name);
	if (facts->has & TAKT_FACT_UUID)
		takt_strcpy(view->uuid, sizeof(view->uuid), facts->uuid);
	if (facts->has & TAKT_FACT_PCI)
		takt_strcpy(view->pci_bus_id, sizeof(view->pci_bus_id), facts->pci_bus_id);
	if (facts->has & TAKT_FACT_NUMA)
		view->has |= TAKT_VIEW_NUMA;
	view->numa_node = facts->numa_node;
	if (facts->has & TAKT_FACT_SM_MAX)
		view->has |= TAKT_VIEW_SM_MAX;
	view->sm_max_mhz = facts->sm_max_mhz;
	view->mem_total_bytes = facts->memory_total_bytes;
}

static uint32_t view_bits(uint32_t has, bool total_known)
{
	static const struct {
		uint32_t reading, view;
	} same[] = {
		{TAKT_HAS_SM_CLOCK, TAKT_VIEW_SM},
		{TAKT_HAS_MEM_CLOCK, TAKT_VIEW_MEM_CLOCK},
		{TAKT_HAS_POWER, TAKT_VIEW_POWER},
		{TAKT_HAS_POWER_LIMIT, TAKT_VIEW_POWER_LIMIT},
		{TAKT_HAS_TEMP, TAKT_VIEW_TEMP},
		{TAKT_HAS_GPU_UTIL, TAKT_VIEW_GPU_UTIL},
		{TAKT_HAS_MEM_UTIL, TAKT_VIEW_MEM_UTIL},
		{TAKT_HAS_ENERGY, TAKT_VIEW_ENERGY},
		{TAKT_HAS_THROTTLE, TAKT_VIEW_THROTTLE},
		{TAKT_HAS_PROCS, TAKT_VIEW_PROCS},
		{TAKT_HAS_FAN, TAKT_VIEW_FAN},
		{TAKT_HAS_PSTATE, TAKT_VIEW_PSTATE},
	};
	uint32_t bits = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(same); i++)
		if (has & same[i].reading)
			bits |= same[i].view;
	if ((has & TAKT_HAS_MEMORY) && total_known)
		bits |= TAKT_VIEW_MEMORY;
	return bits;
}

static void fill_reading(const struct takt_gpu_reading *reading, bool total_known,
			 struct takt_mono now, struct takt_gpu_view *view)
{
	view->has |= view_bits(reading->has, total_known);
	view->stale = reading->stale;
	view->lost = reading->lost;
	view->age_ms = (now.ns - reading->at.ns) / TAKT_NS_PER_MS;
	view->sm_mhz = reading->sm_mhz;
	view->mem_mhz = reading->mem_mhz;
	view->power_mw = reading->power_mw;
	view->power_limit_mw = reading->power_limit_mw;
	view->temp_c = reading->temp_c;
	view->gpu_util_pct = reading->gpu_util_pct;
	view->mem_util_pct = reading->mem_util_pct;
	view->fan_pct = reading->fan_pct;
	view->pstate = reading->pstate;
	view->mem_used_bytes = reading->mem_used_bytes;
	view->energy_mj = reading->energy_mj;
	view->throttle = reading->throttle;
	if (reading->has & TAKT_HAS_THROTTLE)
		takt_throttle_text(reading->throttle, view->throttle_text,
				   sizeof(view->throttle_text));
}

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

	takt_leases_state(daemon->leases, gpu, &lease);
	takt_strcpy(view->clock_state, sizeof(view->clock_state), lease.state);
	takt_strcpy(view->clock_note, sizeof(view->clock_note), lease.note);
	view->lease_min_mhz = lease.min_mhz;
	view->lease_max_mhz = lease.max_mhz;
}

static void fill_gpu(struct takt_daemon *daemon, const struct takt_peer *peer, uint32_t gpu,
		     struct takt_mono now, struct takt_gpu_view *view)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	const struct takt_gpu_reading *reading;

	view->index = gpu;
	fill_facts(facts, view);
	fill_holder(daemon, peer, gpu, view);
	fill_shares(daemon, peer, gpu, view);
	fill_clock_state(daemon, gpu, view);
	fill_handover(daemon, gpu, view);
	if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0) {
		view->stale = true;
		return;
	}
	fill_reading(reading, facts->has & TAKT_FACT_MEMORY, now, view);
	fill_procs(daemon, peer, reading, now, view);
}

/* What an administrator should see at the top: set-aside GPUs, clocks left changed, a missing
 * helper. */
static void fill_notes(const struct takt_daemon *daemon, struct takt_status_view *ret)
{
	size_t n = 0, max = TAKT_ARRAY_LEN(ret->notes);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(daemon->notes) && n < max; i++)
		if (daemon->notes[i][0])
			takt_strcpy(ret->notes[n++], sizeof(ret->notes[0]), daemon->notes[i]);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count && n < max; gpu++) {
		struct takt_lease_state lease;

		takt_leases_state(daemon->leases, gpu, &lease);
		if (strcmp(lease.state, "changed") == 0)
			snprintf(ret->notes[n++], sizeof(ret->notes[0]),
				 "GPU %u: clocks are CHANGED and could not be put back: %.130s",
				 gpu, lease.note);
		else if (takt_watch_note(daemon, gpu)[0])
			snprintf(ret->notes[n++], sizeof(ret->notes[0]), "GPU %u: %s", gpu,
				 takt_watch_note(daemon, gpu));
		else if (daemon->watch[gpu].over_note[0])
			takt_strcpy(ret->notes[n++], sizeof(ret->notes[0]),
				    daemon->watch[gpu].over_note);
	}
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
	takt_strcpy(ret->source, sizeof(ret->source), info->source);
	takt_strcpy(ret->takt_version, sizeof(ret->takt_version), TAKT_VERSION);
	ret->simulated = info->simulated;
	ret->manages = daemon->manages;
	takt_strcpy(ret->observe_why, sizeof(ret->observe_why), daemon->observe_why);
	ret->pid = getpid();
	ret->uptime_ms = (now.ns - daemon->started.ns) / TAKT_NS_PER_MS;
	takt_queue_counts(daemon->queue, &ret->waiting, &ret->running);
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

	takt_leases_state(daemon->leases, gpu, &lease);
	ret->index = gpu;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), facts->uuid);
	takt_strcpy(ret->name, sizeof(ret->name), facts->name);
	takt_strcpy(ret->clock_state, sizeof(ret->clock_state), lease.state);
	takt_strcpy(ret->note, sizeof(ret->note), lease.note);
	ret->lease_min_mhz = lease.min_mhz;
	ret->lease_max_mhz = lease.max_mhz;
	ret->lease_job = lease.job_id;
	if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) == 0 &&
	    (reading->has & TAKT_HAS_SM_CLOCK)) {
		ret->has_sm = true;
		ret->sm_mhz = reading->sm_mhz;
	}
	if ((facts->has & TAKT_FACT_SM_CLOCKS) && facts->sm_clock_count) {
		ret->list_min_mhz = facts->sm_clocks_mhz[0];
		ret->list_max_mhz = facts->sm_clocks_mhz[facts->sm_clock_count - 1];
	}
}

int takt_api_clocks(void *ctx, struct takt_clock_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;

	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	ret->gpu_count = daemon->gpu_count;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		fill_clock_gpu(daemon, gpu, takt_mono_now(daemon->sys), &ret->gpu[gpu]);
	return 0;
}

void takt_api_update_page(struct takt_daemon *daemon)
{
	uint32_t waiting, running;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_lease_state lease;
		struct takt_gpu_label label = {0};

		takt_leases_state(daemon->leases, gpu, &lease);
		label.state = state_text(daemon, gpu, &label.job_id);
		label.actuate = lease.state;
		label.lease_min_mhz = lease.min_mhz;
		label.lease_max_mhz = lease.max_mhz;
		takt_telemetry_label(daemon->telemetry, gpu, &label);
	}
	takt_queue_counts(daemon->queue, &waiting, &running);
	takt_telemetry_gauge(daemon->telemetry, "takt_jobs_waiting", "Jobs that wait to be placed.",
			     false, waiting);
	takt_telemetry_gauge(daemon->telemetry, "takt_jobs_running", "Jobs that start, run or end.",
			     false, running);
	takt_telemetry_gauge(daemon->telemetry, "takt_manages",
			     "1 when takt gives out these GPUs, 0 when it observes only.", false,
			     daemon->manages);
	takt_handover_update_page(daemon);
}
