/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in words. */
#include "cli/job_text.h"

#include <string.h>

#include "cli/outlook_text.h"
#include "cli/units.h"

void takt_job_end_text(const struct takt_job_view *job, struct takt_str *out)
{
	const char *name = sigabbrev_np(job->exit_signal);

	if (job->exit_signal > 0 && name)
		takt_str_addf(out, "killed by SIG%s", name);
	else if (job->exit_signal > 0)
		takt_str_addf(out, "killed by signal %d", job->exit_signal);
	else if (job->has_exit_code)
		takt_str_addf(out, "exit status %d", job->exit_code);
	else if (!job->started_ms)
		takt_str_add(out, "never started");
	else
		takt_str_add(out, "how it ended is not known");
}

static void add_reason(const char *text, struct takt_str *out)
{
	if (text[0])
		takt_str_addf(out, ": %s", text);
}

void takt_job_state_text(const struct takt_job_view *job, struct takt_str *out)
{
	char text[TAKT_UNIT_TEXT];

	if (strcmp(job->state, "waiting") == 0) {
		takt_str_add(out, "queued");
		add_reason(job->why_text, out);
		if (strcmp(job->why, "earliest") == 0)
			takt_str_addf(out, ": %s",
				      takt_when_text(job->retry_at_ms > job->begin_ms
							     ? job->retry_at_ms
							     : job->begin_ms,
						     text));
	} else if (takt_client_job_ended(job)) {
		takt_str_addf(out, "%s: ", job->state);
		takt_job_end_text(job, out);
		add_reason(job->message, out);
	} else {
		takt_str_add(out, job->state);
		if (job->gpu_list_count > 0) {
			takt_str_add(out, job->gpu_list_count == 1 ? " on GPU " : " on GPUs ");
			takt_gpu_list_text(job->gpu_list, job->gpu_list_count, out);
		}
		add_reason(job->message[0] ? job->message : job->why_text, out);
	}
}

static void add_energy(const struct takt_report_view *report, struct takt_str *out)
{
	char text[TAKT_UNIT_TEXT];

	if (report->has & TAKT_RV_ENERGY)
		takt_str_add(out, takt_energy_text(report->energy_mj, text));
	else
		takt_str_addf(out, "not attributable%s%s", report->energy_why_not[0] ? ": " : "",
			      report->energy_why_not);
}

static void add_throttled(const struct takt_report_view *report, struct takt_str *out)
{
	char text[TAKT_UNIT_TEXT];

	if (!(report->has & TAKT_RV_THROTTLED)) {
		takt_str_add(out, "-");
		return;
	}
	takt_str_add(out, takt_ms_text(report->throttled_ms, text));
	if (report->throttled_ms > 0 && report->throttle_text[0])
		takt_str_addf(out, " (%s)", report->throttle_text);
}

static void add_gpu_lines(const struct takt_job_view *job, const char *prefix, struct takt_str *out)
{
	const struct takt_report_view *report = &job->report;
	char text[TAKT_UNIT_TEXT];

	takt_str_addf(out, "\n%senergy        ", prefix);
	add_energy(report, out);
	takt_str_addf(out, "\n%smean SM clock ", prefix);
	if (report->has & TAKT_RV_MEAN_SM)
		takt_str_addf(out, "%u MHz", report->mean_sm_mhz);
	else
		takt_str_add(out, "-");
	takt_str_addf(out, "\n%sthrottled     ", prefix);
	add_throttled(report, out);
	takt_str_addf(out, "\n%sutilisation   ", prefix);
	if (report->has & TAKT_RV_UTIL)
		takt_str_addf(out, "%u.%u%% of its GPUs, idle for %s of GPU time",
			      report->mean_util_permille / 10, report->mean_util_permille % 10,
			      takt_ms_text(report->idle_ms, text));
	else
		takt_str_add(out, "-");
	takt_str_addf(out, "\n%speak memory   ", prefix);
	if (report->has & TAKT_RV_PEAK_MEMORY)
		takt_str_addf(out, "%s of one GPU",
			      takt_bytes_text(report->peak_memory_bytes, text));
	else
		takt_str_add(out, "-");
}

void takt_job_report_text(const struct takt_job_view *job, const char *prefix, struct takt_str *out)
{
	const struct takt_report_view *report = &job->report;
	char text[TAKT_UNIT_TEXT];

	if (report->has == 0)
		return;
	takt_str_addf(out, "%swall time     %s\n%s%-14s", prefix,
		      report->has & TAKT_RV_WALL ? takt_ms_text(report->wall_ms, text) : "-",
		      prefix, job->gpu_list_count == 1 ? "GPU" : "GPUs");
	takt_gpu_list_text(job->gpu_list, job->gpu_list_count, out);
	if (job->gpu_list_count > 0)
		add_gpu_lines(job, prefix, out);
	if (report->has & TAKT_RV_HANDOVER)
		takt_str_addf(out,
			      "\n%shand-over     %.1f ms until the driver was done with the job "
			      "before, %.1f ms "
			      "to schedule, %.1f ms to start",
			      prefix, (double)report->gap_driver_us / 1e3,
			      (double)report->gap_scheduler_us / 1e3,
			      (double)report->gap_start_us / 1e3);
	if (report->simulated)
		takt_str_addf(out, "\n%sSIMULATED: measured on GPUs that are not real", prefix);
	takt_str_add(out, "\n");
}

void takt_job_trial_text(const struct takt_try_view *view, struct takt_str *out)
{
	takt_str_add(out, view->starts ? "would start now" : "would wait");
	if (view->gpu_list_count > 0) {
		takt_str_add(out, view->gpu_list_count == 1 ? " on GPU " : " on GPUs ");
		takt_gpu_list_text(view->gpu_list, view->gpu_list_count, out);
	}
	add_reason(view->text, out);
	if (view->starts_ms) {
		takt_str_add(out, "; predicted to start ");
		takt_starts_text(view->starts_ms, view->has_starts_error, view->starts_error_ms,
				 out);
	}
}
