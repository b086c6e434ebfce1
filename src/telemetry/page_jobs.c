/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job holds a GPU: takt_gpu_job, to be joined with other series of the GPU, and the label
 * hpc_job of dcgm-exporter. The label is takt_job: Prometheus gives each target a label job.
 */
#include <inttypes.h>
#include <stdio.h>

#include "telemetry/page.h"

static void add_gpu_job(const struct takt_page_gpu *gpu, const struct takt_page_job *job,
			struct takt_str *ret)
{
	takt_str_addf(ret, "takt_gpu_job{%s,takt_job=\"%" PRIu64 "\"",
		      takt_str_text(&gpu->own_labels), job->id);
	if (job->engine)
		takt_page_add_label("engine", job->engine, ret);
	if (job->user)
		takt_page_add_label("user", job->user, ret);
	if (job->name)
		takt_page_add_label("name", job->name, ret);
	takt_str_add(ret, "} 1\n");
}

void takt_page_add_jobs(const struct takt_page_input *input, struct takt_str *ret)
{
	takt_page_add_head(input, "takt_gpu_job",
			   "1 for each job that holds the GPU or a share of it", false, ret);
	for (uint32_t g = 0; g < input->gpu_count; g++) {
		const struct takt_page_label *label = input->gpus[g].label;

		for (uint32_t i = 0; label->set && i < label->job_count; i++)
			add_gpu_job(&input->gpus[g], &label->jobs[i], ret);
	}
}

uint32_t takt_page_dcgm_series(const struct takt_page_input *input, const struct takt_page_gpu *gpu)
{
	bool by_job = input->hpc_job && gpu->label->set && gpu->label->job_count > 0;

	return by_job ? gpu->label->job_count : 1;
}

void takt_page_end_dcgm(const struct takt_page_input *input, const struct takt_page_gpu *gpu,
			uint32_t series, struct takt_str *ret)
{
	if (input->hpc_job && gpu->label->set && series < gpu->label->job_count)
		takt_str_addf(ret, ",hpc_job=\"%" PRIu64 "\"", gpu->label->jobs[series].id);
	takt_str_add(ret, "} ");
}
