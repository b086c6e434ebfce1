/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in words. */
#include "cli/job_text.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/outlook_text.h"
#include "cli/units.h"
#include "codec/quantity.h"

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

const char *takt_job_governor(const struct takt_job_view *job)
{
	const char *name = job->report.governor, *policy = job->clock_policy;
	size_t len = strlen(name);

	return len == 0 || (strncmp(policy, name, len) == 0 && policy[len] == ':') ? policy : name;
}

bool takt_job_has_clocks(const struct takt_job_view *job)
{
	return job->clock_max_mhz || job->power_limit_mw || takt_job_governor(job)[0] ||
	       job->max_slowdown_permille || job->slo_latency_us;
}

void takt_job_clocks_text(const struct takt_job_view *job, struct takt_str *out)
{
	const struct takt_governed_view *governed = &job->governed;
	const char *governor = takt_job_governor(job);
	uint32_t promised = governed->max_slowdown_permille ? governed->max_slowdown_permille
							    : job->max_slowdown_permille;

	if (job->clock_max_mhz)
		takt_str_addf(out, "%s %u MHz",
			      job->clock_min_mhz ? "=" : "<=", job->clock_max_mhz);
	if (job->power_limit_mw)
		takt_str_addf(out, "%s<= %u W", job->clock_max_mhz ? " " : "",
			      job->power_limit_mw / 1000);
	takt_str_add(out, governor);
	if (promised)
		takt_str_addf(out, "%s%.4g%%", governor[0] ? " " : "", promised / 10.0);
	if (job->slo_latency_us)
		takt_str_addf(out, "%sp%.4g %.4g ms", governor[0] ? " " : "",
			      job->slo_permille / 10.0, job->slo_latency_us / 1000.0);
	if (governed->max_mhz && strcmp(governed->state, "holds") == 0)
		takt_str_addf(out, " %u MHz", governed->max_mhz);
	if (governed->power_limit_mw && strcmp(governed->state, "holds") == 0)
		takt_str_addf(out, " %u W", governed->power_limit_mw / 1000);
}

int64_t takt_job_waits_until_ms(const struct takt_job_view *job)
{
	if (strcmp(job->why, "earliest_start") != 0)
		return 0;
	return job->retry_at_ms > job->begin_ms ? job->retry_at_ms : job->begin_ms;
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
		if (takt_job_waits_until_ms(job))
			takt_str_addf(out, ": %s",
				      takt_when_text(takt_job_waits_until_ms(job), text));
		else if (strcmp(job->why, "refused") == 0)
			takt_str_addf(out, "; again %s", takt_when_text(job->retry_at_ms, text));
	} else if (takt_client_job_ended(job)) {
		takt_str_addf(out, "%s: ", job->state);
		takt_job_end_text(job, out);
		add_reason(job->message[0] ? job->message : job->cause_text, out);
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

const char *takt_job_signal_text(const char *signal)
{
	static const char *const names[][2] = {
		{"job", "the job's own progress"},
		{"counters", "activity counters, which stand in for progress"},
		{"utilisation", "utilisation, which is a guess"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		if (strcmp(names[i][0], signal) == 0)
			return names[i][1];
	return signal;
}

/* Only what is known: modelled against measured, with the error of model and signal. */
static void add_saved(const struct takt_report_view *report, const char *prefix,
		      struct takt_str *out)
{
	char text[TAKT_UNIT_TEXT], highest[TAKT_UNIT_TEXT];

	if (!(report->has & TAKT_RV_SAVED))
		return;
	takt_str_addf(out,
		      "\n%sgoverned      %s, %s as modelled at the highest clock (+-%.1f %%), "
		      "%.1f +-%.1f %% slower; by %s",
		      prefix, takt_energy_text(report->governed_mj, text),
		      takt_energy_text(report->highest_mj, highest),
		      report->highest_error_permille / 10.0, report->slowdown_permille / 10.0,
		      report->slowdown_error_permille / 10.0,
		      takt_job_signal_text(report->work_signal));
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
	if (report->has & TAKT_RV_SM_SPREAD)
		takt_str_addf(out, ", its GPUs %u MHz apart", report->sm_spread_mhz);
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
	add_saved(report, prefix, out);
}

static void add_count(const char *prefix, const char *name, uint64_t count, bool rated,
		      uint64_t milli_s, struct takt_str *out)
{
	takt_str_addf(out, "%s%-14s%llu", prefix, name, (unsigned long long)count);
	if (rated)
		takt_str_addf(out, ", %.*f/s", milli_s < 10000 ? 3 : 1, (double)milli_s / 1000);
	takt_str_add(out, ", from the job itself\n");
}

void takt_job_progress_text(const struct takt_job_view *job, const char *prefix,
			    struct takt_str *out)
{
	const struct takt_progress_view *said = &job->progress;
	char text[TAKT_UNIT_TEXT];

	if (said->has & TAKT_PV_STEPS)
		add_count(prefix, "steps", said->steps, said->has & TAKT_PV_STEPS_RATE,
			  said->steps_milli_s, out);
	if (said->has & TAKT_PV_TOKENS)
		add_count(prefix, "tokens", said->tokens, said->has & TAKT_PV_TOKENS_RATE,
			  said->tokens_milli_s, out);
	if (said->has & TAKT_PV_QUERIES)
		add_count(prefix, "queries", said->queries, said->has & TAKT_PV_QUERIES_RATE,
			  said->queries_milli_s, out);
	if (said->has & TAKT_PV_LATENCY)
		takt_str_addf(out, "%s%-14s%.3f ms, from the job itself\n", prefix, "latency",
			      (double)said->latency_us / 1000);
	if (said->has & TAKT_PV_SKEW)
		takt_str_addf(out,
			      "%s%-14s%u, of which this is the slowest: rank %u, %.1f%% behind the "
			      "fastest\n",
			      prefix, "ranks", said->ranks, said->slowest_rank,
			      (double)said->skew_permille / 10);
	if (said->has && said->age_ms > 60000)
		takt_str_addf(out, "%s%-14s%s ago\n", prefix, "said so",
			      takt_ms_text(said->age_ms, text));
}

void takt_job_report_text(const struct takt_job_view *job, const char *prefix, struct takt_str *out)
{
	const struct takt_report_view *report = &job->report;
	char text[TAKT_UNIT_TEXT];

	takt_job_progress_text(job, prefix, out);
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

/* `which` of them the prediction is for. */
static void add_trial(const struct takt_try_view *view, const char *which, struct takt_str *out)
{
	takt_str_add(out, view->starts ? "would start now" : "would wait");
	if (view->gpu_list_count > 0) {
		takt_str_add(out, view->gpu_list_count == 1 ? " on GPU " : " on GPUs ");
		takt_gpu_list_text(view->gpu_list, view->gpu_list_count, out);
	}
	add_reason(view->text, out);
	if (view->start.starts_ms) {
		takt_str_addf(out, "; %spredicted to start ", which);
		takt_starts_text(&view->start, out);
	}
}

void takt_job_trial_text(const struct takt_try_view *view, struct takt_str *out)
{
	add_trial(view, "", out);
}

void takt_job_trial_run_text(const struct takt_try_view *view, uint32_t run, struct takt_str *out)
{
	const struct takt_try_run_view *jobs = &view->array[run];
	struct takt_try_view *as_one = takt_zalloc(sizeof(*as_one));

	if (!as_one) {
		out->rc = out->rc < 0 ? out->rc : -ENOMEM;
		return;
	}
	as_one->starts = jobs->starts;
	as_one->start = jobs->start;
	for (uint64_t left = jobs->gpu_list; left; left &= left - 1)
		as_one->gpu_list[as_one->gpu_list_count++] = (uint32_t)__builtin_ctzll(left);
	takt_strcpy(as_one->text, sizeof(as_one->text), jobs->text);
	add_trial(as_one, jobs->first < jobs->last ? "the first " : "", out);
	takt_free(as_one);
}
