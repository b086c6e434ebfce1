/* SPDX-License-Identifier: Apache-2.0 */
/* takt show: everything about one job. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_text.h"
#include "cli/outlook_text.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "codec/quantity.h"

static void add_line(struct takt_cli *cli, const char *label, const char *text)
{
	if (!text[0])
		return;
	takt_str_addf(&cli->out, "%-13s ", label);
	takt_style_add(&cli->out, false, TAKT_STYLE_PLAIN, text);
	takt_str_add(&cli->out, "\n");
}

static void add_cause(struct takt_cli *cli, const struct takt_job_view *job)
{
	char text[TAKT_UNIT_TEXT];

	if (!job->cause[0])
		return;
	takt_str_addf(&cli->out, "%-14s%s: %s", "cause", job->cause, job->cause_text);
	if (job->cause_at_ms)
		takt_str_addf(&cli->out, " (seen %s)", takt_when_text(job->cause_at_ms, text));
	takt_str_add(&cli->out, "\n");
}

static void add_time(struct takt_cli *cli, const char *label, int64_t wall_ms)
{
	char text[TAKT_UNIT_TEXT];

	if (wall_ms)
		add_line(cli, label, takt_when_text(wall_ms, text));
}

/* How sure it is how fast the job runs. */
static void add_signal(struct takt_cli *cli, const struct takt_governed_view *governed)
{
	if (!governed->signal[0] || strcmp(governed->state, "over") == 0)
		return;
	takt_str_addf(&cli->out, "%-14sby %s", "speed", takt_job_signal_text(governed->signal));
	if (governed->signal_error_permille)
		takt_str_addf(&cli->out, " (+-%.1f %%)", governed->signal_error_permille / 10.0);
	takt_str_add(&cli->out, "\n");
}

/* What was promised, who keeps it, and how that goes. */
static void add_governed(struct takt_cli *cli, const struct takt_job_view *job)
{
	const struct takt_governed_view *governed = &job->governed;
	uint32_t promised = governed->max_slowdown_permille ? governed->max_slowdown_permille
							    : job->max_slowdown_permille;
	const char *holds = strcmp(governed->state, "holds") == 0 ? "holds" : "would hold";

	if (promised)
		takt_str_addf(&cli->out, "%-14sat most %u.%u %% longer%s\n", "promised",
			      promised / 10, promised % 10,
			      job->max_slowdown_permille ? "" : " (the default here)");
	if (job->slo_latency_us)
		takt_str_addf(&cli->out, "%-14sp%u.%u within %.3f ms\n", "promised",
			      job->slo_permille / 10, job->slo_permille % 10,
			      job->slo_latency_us / 1000.0);
	add_line(cli, "governor", takt_job_governor(job));
	if (governed->max_mhz)
		takt_str_addf(&cli->out, "%-14s%s SM clock within [%u, %u] MHz (%s)\n", "", holds,
			      governed->min_mhz, governed->max_mhz, governed->reason);
	if (governed->power_limit_mw)
		takt_str_addf(&cli->out, "%-14s%s a power limit of %u W (%s)\n", "", holds,
			      governed->power_limit_mw / 1000, governed->reason);
	add_line(cli, "", governed->text);
	add_line(cli, "", governed->ahead);
	add_line(cli, "", governed->note);
	add_signal(cli, governed);
}

static void add_clock(struct takt_cli *cli, const struct takt_job_view *job)
{
	if (job->clock_max_mhz)
		takt_str_addf(&cli->out, "%-14s%s %u MHz asked for\n", "clock",
			      job->clock_min_mhz ? "exactly" : "at most", job->clock_max_mhz);
	if (job->power_limit_mw)
		takt_str_addf(&cli->out, "%-14sat most %u W asked for\n", "power",
			      job->power_limit_mw / 1000);
	add_line(cli, "", job->clock_note);
	add_governed(cli, job);
}

/* What holds it to its GPU memory. */
static void add_gpu_memory(struct takt_cli *cli, const struct takt_job_view *job)
{
	char text[TAKT_UNIT_TEXT];

	add_line(cli, "note", job->memory_hint);
	if (!job->memory[0])
		return;
	takt_str_addf(&cli->out, "%-14s%s", "GPU memory", job->memory);
	if (job->gpu_mem_held_mib)
		takt_str_addf(&cli->out, ", %s reserved on each",
			      takt_bytes_text((uint64_t)job->gpu_mem_held_mib << 20, text));
	takt_str_add(&cli->out, "\n");
}

static void add_gpus(struct takt_cli *cli, const struct takt_job_view *job)
{
	char text[TAKT_QUANTITY_TEXT];

	takt_str_addf(&cli->out, "%-14s%u%s%s asked for", "GPUs", job->gpus,
		      job->mig[0] ? " of MIG " : "", job->mig);
	if (job->gpu_milli)
		takt_str_addf(&cli->out, ", %s of each",
			      takt_number_text(job->gpu_milli / 1000.0, text));
	if (job->gpu_indices) {
		takt_str_add(&cli->out, ", of ");
		takt_mask_text(job->gpu_indices, &cli->out);
	}
	if (job->gpu_list_count > 0) {
		takt_str_add(&cli->out, ", given ");
		takt_gpu_list_text(job->gpu_list, job->gpu_list_count, &cli->out);
	}
	takt_str_add(&cli->out, "\n");
	for (uint32_t i = 0; i < job->gpu_list_count; i++)
		add_line(cli, "", job->gpu_uuid[i]);
	add_gpu_memory(cli, job);
}

static void add_isolation(struct takt_cli *cli, const struct takt_job_view *job)
{
	if (!job->isolation[0])
		return;
	takt_str_addf(&cli->out, "%-14s%s", "isolation", job->isolation);
	if (job->isolation_note[0])
		takt_str_addf(&cli->out, " (%s)", job->isolation_note);
	takt_str_add(&cli->out, "\n");
}

/* What of its output is not in its log. */
static void add_output(struct takt_cli *cli, const struct takt_job_view *job)
{
	char text[TAKT_UNIT_TEXT];

	if (!job->output_kept)
		return;
	if (job->output_cut_from == 0 && job->output_kept == 1) {
		takt_str_addf(&cli->out,
			      "%-14sis gone: the logs of all jobs came to more than "
			      "output_share allows\n",
			      "output");
		return;
	}
	takt_str_addf(&cli->out, "%-14smore than is kept (%s, see output_limit): ", "output",
		      takt_bytes_text(job->output_kept, text));
	if (job->output_cut_to)
		takt_str_addf(&cli->out, "bytes %llu to %llu are not in its log\n",
			      (unsigned long long)job->output_cut_from,
			      (unsigned long long)job->output_cut_to);
	else
		takt_str_addf(&cli->out, "its log was cut off after byte %llu and goes on there\n",
			      (unsigned long long)job->output_cut_from);
}

static void add_wishes(struct takt_cli *cli, const struct takt_job_view *job)
{
	char text[TAKT_UNIT_TEXT];

	if (job->array_id)
		takt_str_addf(&cli->out, "%-14sindex %u of %llu\n", "array", job->array_index,
			      (unsigned long long)job->array_id);
	add_line(cli, "parameters", job->params);
	if (job->array_limit)
		takt_str_addf(&cli->out, "%-14s%u at a time\n", "", job->array_limit);
	if (job->cpu_milli)
		add_line(cli, "CPUs", takt_number_text(job->cpu_milli / 1000.0, text));
	if (job->mem_mib)
		add_line(cli, "memory", takt_bytes_text(job->mem_mib << 20, text));
	if (job->gpu_mem_mib)
		takt_str_addf(&cli->out, "%-14s%s at least\n", "GPUs with",
			      takt_bytes_text((uint64_t)job->gpu_mem_mib << 20, text));
	add_line(cli, "after", job->after);
	add_time(cli, "not before", job->begin_ms);
	if (job->time_limit_ms)
		add_line(cli, "time limit", takt_ms_text(job->time_limit_ms, text));
	if (job->retries)
		takt_str_addf(&cli->out, "%-14sup to %u, %u failed so far, first pause %s\n",
			      "retries", job->retries, job->failures,
			      takt_ms_text(job->retry_backoff_ms, text));
	add_time(cli, "tried again", job->retry_at_ms);
	if (job->restarts)
		takt_str_addf(&cli->out, "%-14s%u\n", "restarts", job->restarts);
}

static void add_ms(struct takt_cli *cli, const char *label, uint64_t ms)
{
	char text[TAKT_UNIT_TEXT];

	if (ms)
		add_line(cli, label, takt_ms_text(ms, text));
}

/* What may be done to it for others. */
static void add_yielding(struct takt_cli *cli, const struct takt_job_view *job)
{
	const char *name = sigabbrev_np(job->checkpoint_signal);
	char text[TAKT_UNIT_TEXT];

	if (job->preemptible || job->freezable)
		takt_str_addf(&cli->out, "%-14s%s%s%s\n", "yields",
			      job->preemptible ? "may be ended for others" : "",
			      job->preemptible && job->freezable ? ", " : "",
			      job->freezable ? "may be frozen" : "");
	if (job->checkpoint_signal)
		takt_str_addf(&cli->out, "%-14ssignal %d (%s), then %s to SIGTERM\n", "checkpoint",
			      job->checkpoint_signal, name ? name : "?",
			      takt_ms_text(job->checkpoint_grace_ms, text));
	add_line(cli, job->checkpoint_signal ? "" : "checkpoint", job->checkpoint_dir);
	add_time(cli, "saved", job->checkpoint_ms);
	if (job->preemptions)
		takt_str_addf(&cli->out, "%-14s%u time%s, ended for others\n", "made room",
			      job->preemptions, job->preemptions == 1 ? "" : "s");
}

/* How long it is thought to run, and when to start. */
static void add_outlook(struct takt_cli *cli, const struct takt_job_view *job)
{
	TAKT_CLEANUP(strp) struct takt_str run = TAKT_STR(200);
	TAKT_CLEANUP(strp) struct takt_str starts = TAKT_STR(200);

	if (job->run_ms)
		takt_run_text(job->run_ms, job->run_from, &run);
	if (job->start.starts_ms)
		takt_starts_text(&job->start, &starts);
	if (job->share_place)
		takt_str_addf(&cli->out, "%-14splace %u of %u, %llu.%llu GPU-hours used lately\n",
			      "share", job->share_place, job->share_of,
			      (unsigned long long)job->share_used_gpu_s / 3600,
			      (unsigned long long)job->share_used_gpu_s % 3600 / 360);
	add_line(cli, "expected run", takt_str_text(&run));
	add_line(cli, "starts", takt_str_text(&starts));
}

/* How it is started, and until when it is wanted. */
static void add_start(struct takt_cli *cli, const struct takt_job_view *job)
{
	add_ms(cli, "estimate", job->estimate_ms);
	add_time(cli, "deadline", job->deadline_ms);
	if (job->ranks)
		takt_str_addf(&cli->out, "%-14s%u\n", "ranks", job->ranks);
	add_line(cli, "terminal", job->pty ? "its own" : "");
	add_line(cli, "health", job->health_note);
	add_line(cli, "other GPUs", job->stray_note);
	add_ms(cli, "idle release", job->idle_release_ms);
	add_line(cli, "container", job->container);
	add_line(cli, "", job->container_runtime);
	add_line(cli, "staged", job->stage ? "before its turn" : "");
	add_line(cli, "prefetch", job->prefetch);
	add_line(cli, "hook", job->hook);
	add_line(cli, "outside use", job->wait_outside ? "waited for" : "");
}

/* It has had its turn, and was not started. */
static void add_refused(struct takt_cli *cli, const struct takt_job_view *job)
{
	char text[TAKT_UNIT_TEXT];

	if (job->refused[0])
		takt_str_addf(&cli->out, "%-14s%s: %s (since %s)\n", "refused", job->refused,
			      job->refused_text, takt_when_text(job->refused_since_ms, text));
}

static void print_job(struct takt_cli *cli, const struct takt_job_view *job)
{
	takt_print_simulated(cli, job->simulated);
	takt_str_addf(&cli->out, "%-14s%llu %s\n", "job", (unsigned long long)job->id, job->name);
	takt_str_addf(&cli->out, "%-14s", "state");
	takt_job_state_text(job, &cli->out);
	takt_str_add(&cli->out, "\n");
	add_cause(cli, job);
	add_refused(cli, job);
	if (job->held[0])
		add_line(cli, "held", job->held[0] == 'a' ? "by an administrator" : "by its owner");
	add_line(cli, "user", job->user);
	add_line(cli, "tenant", job->tenant);
	add_line(cli, "tags", job->tags);
	add_line(cli, "command", job->command);
	add_line(cli, "directory", job->cwd);
	add_line(cli, "output", job->output);
	add_gpus(cli, job);
	takt_str_addf(&cli->out, "%-14s%d\n", "priority", job->priority);
	add_wishes(cli, job);
	add_yielding(cli, job);
	add_start(cli, job);
	add_isolation(cli, job);
	add_output(cli, job);
	add_outlook(cli, job);
	add_clock(cli, job);
	add_time(cli, "submitted", job->submitted_ms);
	add_time(cli, "started", job->started_ms);
	add_time(cli, "ended", job->ended_ms);
	if (job->attempt > 1)
		takt_str_addf(&cli->out, "%-14s%u\n", "attempt", job->attempt);
	if (job->pid > 0)
		takt_str_addf(&cli->out, "%-14s%d\n", "pid", job->pid);
	takt_job_report_text(job, "", &cli->out);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	uint64_t id = 0;
	int rc = job ? takt_cli_job_id(cli->operands[0], &id, err)
		     : takt_err_set(err, -ENOMEM, "no memory for a job");

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_job(cli->client, id, job, err);
	if (rc == 0 && !takt_cli_print_json(cli))
		print_job(cli, job);
	return rc;
}

static const struct takt_text_pair examples[] = {
	{"takt show 12", "where job 12 is, and after its end how it went"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_show = {
	.name = "show",
	.summary = "everything about one job, and its report at the end",
	.usage = "JOB",
	.about = "Shows a job: its state, command, GPUs with their UUIDs, clocks, times. After its "
		 "end "
		 "also the report: wall time, energy in joules (or why it is not attributable), "
		 "mean "
		 "SM clock, seconds throttled and why, peak memory.",
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
