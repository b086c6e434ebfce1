/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of jobs out of takt's history, for the doctor: which of them are of the same thing. */
#include "cli/doctor_runs.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"

enum {
	KEY_BYTES = 2048,
};

/* Ended well, undisturbed, with GPUs of its own, and may be compared with its like. */
static bool is_comparable(const struct takt_job_view *job)
{
	return job->mine && strcmp(job->state, "done") == 0 && job->report.has & TAKT_RV_WALL &&
	       job->attempt == 1 && job->restarts == 0 && job->preemptions == 0 &&
	       !job->freezable && job->gpu_milli == 0 && job->mig[0] == '\0' &&
	       job->gpu_list_count > 0;
}

/* Jobs of an array differ by their place in it. */
static uint64_t thing_of(const struct takt_job_view *job, struct takt_map *things)
{
	TAKT_CLEANUP(strp) struct takt_str key = TAKT_STR(KEY_BYTES);
	union takt_map_value *known;

	takt_str_addf(&key, "%u %u %u %u %u %" PRIu64 " %u %u %u %u %s\n%s\n%s\n%s\n%s\n%s",
		      job->uid, job->gpus, job->array_id ? job->array_index + 1 : 0, job->ranks,
		      job->cpu_milli, job->mem_mib, job->max_slowdown_permille, job->clock_min_mhz,
		      job->clock_max_mhz, job->power_limit_mw, job->clock_policy, job->name,
		      job->command, job->cwd, job->params, job->container);
	known = takt_map_str_get(things, takt_str_text(&key));
	if (known)
		return known->u64;
	if (takt_map_str_put(things, takt_str_text(&key),
			     (union takt_map_value){.u64 = things->len + 1}) < 0)
		return 0;
	return things->len;
}

static uint64_t gpus_of(const struct takt_job_view *job, const struct takt_doctor_facts *facts)
{
	uint64_t gpus = 0;

	for (uint32_t i = 0; i < job->gpu_list_count; i++)
		for (uint32_t k = 0; k < facts->gpu_count; k++)
			if (strcmp(job->gpu_uuid[i], facts->gpu[k].facts.uuid) == 0)
				gpus |= 1ull << k;
	return gpus;
}

static void take_run(const struct takt_job_view *job, struct takt_map *things,
		     struct takt_doctor_facts *facts)
{
	struct takt_doctor_run *run = &facts->run[facts->run_count];
	const struct takt_report_view *report = &job->report;

	if (!is_comparable(job))
		return;
	run->gpus = gpus_of(job, facts);
	run->thing = thing_of(job, things);
	run->ran_ms = report->wall_ms;
	run->sm_mhz = report->has & TAKT_RV_MEAN_SM ? report->mean_sm_mhz : 0;
	run->util_permille = report->has & TAKT_RV_UTIL ? report->mean_util_permille : 0;
	takt_strcpy(run->name, sizeof(run->name), job->name);
	facts->run_count += run->thing && run->gpus;
}

void takt_doctor_take_runs(struct takt_cli *cli, struct takt_doctor_facts *facts)
{
	struct takt_client_past past = {
		.uid = UINT32_MAX, .gpu = -1, .states = "done", .limit = TAKT_DOCTOR_MAX_RUNS};
	struct takt_map things = TAKT_MAP_STR(TAKT_DOCTOR_MAX_RUNS);
	struct takt_queue_view view;
	struct takt_err err = {0};

	if (takt_client_past_all(cli->client, &past, &view, &err) < 0)
		return;
	for (size_t i = 0; i < view.count && i < TAKT_DOCTOR_MAX_RUNS; i++)
		take_run(&view.jobs[i], &things, facts);
	takt_map_fini(&things);
	takt_queue_view_fini(&view);
}
