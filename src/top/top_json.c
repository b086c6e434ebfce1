/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot as JSON: the views of the API, and the processes with what is known of them here. */
#include <inttypes.h>

#include "codec/json.h"
#include "top/graph.h"
#include "top/top_json.h"

static void add_text(struct takt_str *out, const char *name, const char *text)
{
	if (!text[0])
		return;
	takt_json_add_name(out, name, false);
	takt_json_add_text(out, text);
}

static void add_proc(struct takt_str *out, const struct takt_top_proc *proc)
{
	const char *comma = "";

	takt_str_addf(out, "{\"pid\":%d", proc->id.pid);
	if (proc->id.start_ticks)
		takt_str_addf(out, ",\"start_ticks\":%" PRIu64, proc->id.start_ticks);
	if (proc->uid != UINT32_MAX)
		takt_str_addf(out, ",\"uid\":%u", proc->uid);
	add_text(out, "user", proc->user);
	add_text(out, "command", proc->command);
	if (proc->job_id)
		takt_str_addf(out, ",\"job_id\":%" PRIu64, proc->job_id);
	if (proc->memory_known)
		takt_str_addf(out, ",\"memory_bytes\":%" PRIu64, proc->memory_bytes);
	if (proc->util_gpus)
		takt_str_addf(out, ",\"util_gpus\":%u,\"sm_pct_sum\":%u,\"mem_pct_sum\":%u",
			      proc->util_gpus, proc->sm_pct_sum, proc->mem_pct_sum);
	if (proc->cpu_known)
		takt_str_addf(out, ",\"cpu_permille\":%u", proc->cpu_permille);
	if (proc->id.start_ticks)
		takt_str_addf(out, ",\"run_ms\":%" PRIu64, proc->run_ms);
	takt_str_add(out, ",\"gpus\":[");
	for (uint32_t i = 0; i < TAKT_VIEW_MAX_GPUS; i++) {
		if (!(proc->gpu_mask >> i & 1))
			continue;
		takt_str_addf(out, "%s%u", comma, i);
		comma = ",";
	}
	takt_str_add(out, "]}");
}

static void add_host(struct takt_str *out, const struct takt_top_host *host)
{
	const char *comma = "";

	takt_str_add(out, ",\"host\":{");
	if (host->has & TAKT_TOP_HOST_CPU) {
		takt_str_addf(out, "\"cpu_permille\":%u", host->cpu_permille);
		comma = ",";
	}
	if (host->has & TAKT_TOP_HOST_MEMORY) {
		takt_str_addf(out,
			      "%s\"memory_used_bytes\":%" PRIu64 ",\"memory_total_bytes\":%" PRIu64,
			      comma, host->mem_used_bytes, host->mem_total_bytes);
		comma = ",";
	}
	if (host->has & TAKT_TOP_HOST_LOAD)
		takt_str_addf(out, "%s\"load_centi\":[%u,%u,%u]", comma, host->load_centi[0],
			      host->load_centi[1], host->load_centi[2]);
	takt_str_add(out, "}");
}

/* As far back as there is something; -1 = nothing is known of that step. */
static void add_row(struct takt_str *out, const char *name, const uint16_t row[TAKT_TOP_HISTORY])
{
	int count = TAKT_TOP_HISTORY;

	while (count > 0 && row[count - 1] == TAKT_NO_VALUE)
		count--;
	takt_str_addf(out, ",\"%s\":[", name);
	for (int i = 0; i < count; i++)
		takt_str_addf(out, "%s%d", i ? "," : "", row[i] == TAKT_NO_VALUE ? -1 : row[i]);
	takt_str_add(out, "]");
}

static void add_past(struct takt_str *out, const struct takt_top_past *past)
{
	takt_str_addf(out, ",\"past\":{\"step_ms\":%u,\"gpus\":[", past->step_ms);
	for (uint32_t g = 0; g < past->gpu_count; g++) {
		takt_str_add(out, g ? ",{\"uuid\":" : "{\"uuid\":");
		takt_json_add_text(out, past->gpus[g].uuid);
		for (int s = 0; s < TAKT_TOP_SERIES; s++)
			add_row(out, takt_top_past_names[s], past->gpus[g].permille[s]);
		takt_str_add(out, "}");
	}
	takt_str_add(out, "]}");
}

static void add_log(struct takt_str *out, const struct takt_top_log *log)
{
	uint64_t dropped =
		log->dropped_lines < TAKT_JSON_MAX_INT ? log->dropped_lines : TAKT_JSON_MAX_INT;

	takt_str_addf(out,
		      ",\"log\":{\"job_id\":%" PRIu64 ",\"attempt\":%u,\"over\":%s"
		      ",\"dropped_lines\":%" PRIu64,
		      log->job_id, log->attempt, log->over ? "true" : "false", dropped);
	add_text(out, "why_not", log->why_not);
	add_text(out, "text", takt_str_text(&log->text));
	takt_str_add(out, "}");
}

/* Of those processes that could be looked at: all of one boot. */
static const char *boot_id_of(const struct takt_top_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->procs.len; i++)
		if (snapshot->procs.at[i].id.start_ticks)
			return snapshot->procs.at[i].id.boot_id;
	return "";
}

int takt_top_to_json(const struct takt_top_snapshot *snapshot, struct takt_str *out)
{
	takt_str_addf(out, "{\"at_ms\":%" PRId64 ",\"from\":\"%s\",\"status\":",
		      snapshot->at.ns / 1000000, snapshot->daemon ? "daemon" : "driver");
	takt_status_view_to_json(&snapshot->status, out);
	add_host(out, &snapshot->host);
	if (snapshot->daemon) {
		takt_str_add(out, ",\"queue\":");
		takt_queue_json_begin(out, snapshot->queue.simulated);
		for (size_t i = 0; i < snapshot->queue.count; i++)
			takt_queue_json_job(out, &snapshot->queue.jobs[i]);
		takt_queue_json_end(out, snapshot->queue.total, 0);
	}
	if (snapshot->past)
		add_past(out, snapshot->past);
	if (snapshot->log.job_id)
		add_log(out, &snapshot->log);
	add_text(out, "boot_id", boot_id_of(snapshot));
	takt_str_add(out, ",\"processes\":[");
	for (size_t i = 0; i < snapshot->procs.len; i++) {
		takt_str_add(out, i ? "," : "");
		add_proc(out, &snapshot->procs.at[i]);
	}
	takt_str_add(out, "]}\n");
	return out->rc;
}
