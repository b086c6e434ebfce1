/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of governed jobs. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/govern_impl.h"

static const char *const phase_names[] = {
	[TAKT_GOVERNED_ASKING] = "asking",    [TAKT_GOVERNED_MEASURING] = "holds",
	[TAKT_GOVERNED_ADVISING] = "advises", [TAKT_GOVERNED_RESTING] = "rests",
	[TAKT_GOVERNED_OVER] = "over",
};

const char *takt_govern_signal_name(uint32_t signal)
{
	static const char *const names[] = {[TAKT_SIGNAL_NONE] = "",
					    [TAKT_SIGNAL_UTILISATION] = "utilisation",
					    [TAKT_SIGNAL_COUNTERS] = "counters",
					    [TAKT_SIGNAL_JOB] = "job"};

	return signal < TAKT_ARRAY_LEN(names) ? names[signal] : "";
}

static void fill_wish(const struct takt_governed *one, struct takt_governed_view *ret)
{
	const struct takt_governor_cap *cap = &one->wish.cap;

	if (one->phase == TAKT_GOVERNED_OVER)
		return;
	takt_strcpy(ret->reason, sizeof(ret->reason), takt_governor_reason_name(one->wish.reason));
	takt_governor_explain(one->governor, one->state, &one->setup, &one->wish, ret->text,
			      sizeof(ret->text));
	ret->min_mhz = cap->sets & TAKT_ACTUATE_CLOCKS ? cap->min_mhz : 0;
	ret->max_mhz = cap->sets & TAKT_ACTUATE_CLOCKS ? cap->max_mhz : 0;
	ret->power_limit_mw = cap->sets & TAKT_ACTUATE_POWER ? cap->power_mw : 0;
	ret->epochs = one->epochs;
}

/* Of GPUs that others use too, utilisation says nothing of this job. */
static bool is_unjudged(const struct takt_governed *one)
{
	return one->shared && !one->unit && one->phase != TAKT_GOVERNED_OVER;
}

static void fill_one(const struct takt_govern *govern, const struct takt_governed *one,
		     struct takt_governed_view *ret)
{
	enum takt_governor_signal signal = takt_govern_basis(one).signal;
	char budget[sizeof(ret->note)] = "";
	size_t used;

	takt_strcpy(ret->state, sizeof(ret->state), phase_names[one->phase]);
	takt_strcpy(ret->note, sizeof(ret->note), one->note);
	takt_strcpy(ret->signal, sizeof(ret->signal), takt_govern_signal_name(signal));
	ret->signal_error_permille = takt_signal_error_permille(signal);
	ret->max_slowdown_permille = one->setup.job.max_slowdown_permille;
	if (is_unjudged(one) && !ret->note[0])
		takt_strcpy(ret->note, sizeof(ret->note),
			    "its GPUs are shared, and it does not say how far it is: nothing tells "
			    "how fast it runs");
	if (!ret->note[0] || one->phase == TAKT_GOVERNED_ASKING)
		takt_budget_job_note(govern, one, budget, sizeof(budget));
	used = strlen(ret->note);
	if (budget[0])
		snprintf(ret->note + used, sizeof(ret->note) - used, "%s%s", used ? "; " : "",
			 budget);
	takt_load_text(one, ret->ahead, sizeof(ret->ahead));
	fill_wish(one, ret);
	if (one->applied_ns)
		ret->first_applied_us = (one->applied_ns - one->watched_ns) / TAKT_NS_PER_US + 1;
}

/* Reports of before a signal had an error of its own are shown with it, too. */
static uint32_t with_signal(const struct takt_job_report *report, uint32_t error_permille)
{
	uint32_t least = takt_signal_error_permille((enum takt_governor_signal)report->work_signal);

	return error_permille > least ? error_permille : least;
}

void takt_govern_fill_saved(const struct takt_job_report *report, struct takt_report_view *ret)
{
	takt_strcpy(ret->governor, sizeof(ret->governor), report->governor);
	if (!(report->has & TAKT_REPORT_SAVED))
		return;
	ret->has |= TAKT_RV_SAVED;
	takt_strcpy(ret->work_signal, sizeof(ret->work_signal),
		    takt_govern_signal_name(report->work_signal));
	ret->governed_mj = report->governed_mj;
	ret->highest_mj = report->highest_mj;
	ret->highest_error_permille = with_signal(report, report->highest_error_permille);
	ret->slowdown_permille = report->slowdown_permille;
	ret->slowdown_error_permille = with_signal(report, report->slowdown_error_permille);
}

void takt_govern_fill(const struct takt_govern *govern, const struct takt_queue_job *job,
		      struct takt_job_view *ret)
{
	const struct takt_governed *one = takt_map_u64_ptr(&govern->jobs, job->row.id);
	struct takt_job_report report = {.has = 0};

	if (!one)
		return;
	fill_one(govern, one, &ret->governed);
	takt_govern_peek(govern, job->row.id, &report);
	takt_govern_fill_saved(&report, &ret->report);
}

void takt_govern_note(const struct takt_govern *govern, uint64_t job_id, char *ret, size_t size)
{
	const struct takt_governed *one = takt_map_u64_ptr(&govern->jobs, job_id);

	ret[0] = '\0';
	if (one && one->phase != TAKT_GOVERNED_OVER)
		snprintf(ret, size, "%s for job %llu: %s", one->governor->name,
			 (unsigned long long)job_id, takt_governor_reason_text(one->wish.reason));
}

void takt_govern_update_page(const struct takt_govern *govern)
{
	struct takt_telemetry *telemetry = govern->daemon->telemetry;
	uint32_t holds = 0;

	TAKT_MAP_EACH(entry, &govern->jobs)
	holds += ((const struct takt_governed *)entry->value.ptr)->phase == TAKT_GOVERNED_MEASURING;
	takt_telemetry_gauge(telemetry, "takt_governed_jobs",
			     "Jobs at a setting that a governor chose.", false, holds);
	takt_telemetry_gauge(telemetry, "takt_governed_energy_joules_total",
			     "Measured, of ended jobs whose saving is known.", true,
			     (double)govern->governed_mj / 1000);
	takt_telemetry_gauge(telemetry, "takt_governed_energy_at_highest_joules_total",
			     "Modelled: the same work at the highest clock.", true,
			     (double)govern->highest_mj / 1000);
	if (govern->budget.watts)
		takt_telemetry_gauge(telemetry, "takt_power_budget_watts",
				     "What all GPUs may draw together (power_budget_w).", false,
				     govern->budget.watts);
}
