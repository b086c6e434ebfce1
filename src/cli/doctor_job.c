/* SPDX-License-Identifier: Apache-2.0 */
/* takt doctor JOB: why a running job is slow. */
#include "cli/doctor_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/doctor_text.h"
#include "cli/table.h"
#include "cli/units.h"
#include "codec/json.h"
#include "health/slow_gather.h"

enum {
	SECONDS = 5,
	SECONDS_LEAST = 3, /* counters are read once a second, and count from the second on */
};

static const enum takt_style styles[TAKT_SLOW_ANSWERS] = {
	[TAKT_SLOW_NO] = TAKT_STYLE_PLAIN,
	[TAKT_SLOW_UNKNOWN] = TAKT_STYLE_PLAIN,
	[TAKT_SLOW_PART] = TAKT_STYLE_MIND,
	[TAKT_SLOW_YES] = TAKT_STYLE_ALARM,
};

struct patient {
	struct takt_cli *cli;
	struct takt_job_view job;
	struct takt_slow_facts facts;
	struct takt_slow_verdict verdict;
	char why[TAKT_ERR_MSG]; /* the driver was not asked; "" = it was */
};

static struct takt_gpu_reading reading_of(const struct takt_gpu_view *gpu)
{
	static const struct {
		uint32_t view, reading;
	} bits[] = {
		{TAKT_VIEW_GPU_UTIL, TAKT_HAS_GPU_UTIL},
		{TAKT_VIEW_MEM_UTIL, TAKT_HAS_MEM_UTIL},
		{TAKT_VIEW_SM, TAKT_HAS_SM_CLOCK},
		{TAKT_VIEW_POWER, TAKT_HAS_POWER},
		{TAKT_VIEW_POWER_LIMIT, TAKT_HAS_POWER_LIMIT},
		{TAKT_VIEW_THROTTLE, TAKT_HAS_THROTTLE},
	};
	struct takt_gpu_reading r = {
		.gpu_util_pct = gpu->gpu_util_pct,
		.mem_util_pct = gpu->mem_util_pct,
		.sm_mhz = gpu->sm_mhz,
		.power_mw = gpu->power_mw,
		.power_limit_mw = gpu->power_limit_mw,
		.throttle = gpu->throttle,
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(bits); i++)
		if (gpu->has & bits[i].view && !gpu->stale && !gpu->lost)
			r.has |= bits[i].reading;
	return r;
}

/* What the daemon reads, where the driver cannot be asked here. */
static bool read_daemon(void *ctx, struct takt_gpu_reading *ret)
{
	struct patient *patient = ctx;
	struct takt_status_view view;
	struct takt_err err = {0};

	if (takt_client_status(patient->cli->client, &view, &err) < 0)
		return false;
	for (uint32_t i = 0; i < patient->job.gpu_list_count; i++) {
		ret[i] = (struct takt_gpu_reading){0};
		for (uint32_t k = 0; k < view.gpu_count; k++)
			if (view.gpus[k].index == patient->job.gpu_list[i])
				ret[i] = reading_of(&view.gpus[k]);
	}
	takt_status_view_fini(&view);
	return true;
}

/* The job's processes that are on GPUs: those of a container descend from nobody of takt's. */
static void add_gpu_processes(struct patient *patient, struct takt_slow_ask *ask)
{
	struct takt_status_view view;
	struct takt_err err = {0};

	if (takt_client_status(patient->cli->client, &view, &err) < 0)
		return;
	for (uint32_t k = 0; k < view.gpu_count; k++) {
		const struct takt_gpu_view *gpu = &view.gpus[k];

		for (uint32_t i = 0; i < gpu->proc_count && i < TAKT_ARRAY_LEN(gpu->procs); i++)
			if (gpu->procs[i].job_id == patient->job.id &&
			    ask->root_count < TAKT_SLOW_MAX_ROOTS)
				ask->roots[ask->root_count++] = gpu->procs[i].pid;
	}
	takt_status_view_fini(&view);
}

static void take_clocks(struct patient *patient)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_alloc(sizeof(*view));
	struct takt_err err = {0};

	if (!view || takt_client_clocks(patient->cli->client, view, &err) < 0)
		return;
	for (uint32_t i = 0; i < patient->facts.gpu_count; i++)
		for (uint32_t k = 0; k < view->gpu_count; k++)
			if (strcmp(view->gpu[k].uuid, patient->job.gpu_uuid[i]) == 0)
				patient->facts.gpu[i].held_by_takt =
					takt_doctor_holds(&view->gpu[k]);
}

/* What its NCCL says, where it says something: the operation that takes longest, on the GPU where
 * it does. */
static void take_nccl(struct patient *patient)
{
	TAKT_CLEANUP(freep) struct takt_course_view *view = takt_alloc(sizeof(*view));
	const struct takt_course_nccl_view *worst = NULL;
	struct takt_slow_nccl *ret = &patient->facts.nccl;
	struct takt_err err = {0};

	if (!view || takt_client_course(patient->cli->client, patient->job.id, view, &err) < 0)
		return;
	for (uint32_t i = 0; i < view->nccl_count; i++)
		if (!worst || view->nccl[i].operation_us > worst->operation_us)
			worst = &view->nccl[i];
	if (!worst)
		return;
	*ret = (struct takt_slow_nccl){.known = true,
				       .gpu = worst->gpu,
				       .ranks = worst->ranks,
				       .nodes = worst->nodes,
				       .bus_bytes_s = worst->bus_bytes_s,
				       .operation_us = worst->operation_us};
	(void)takt_strcpy(ret->operation, sizeof(ret->operation), worst->operation);
	for (char *at = ret->operation; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?'; /* what is written there is the job's; it goes to a terminal */
}

static int find_job(struct patient *patient, struct takt_err *err)
{
	struct takt_cli *cli = patient->cli;
	uint64_t id = 0;
	int rc = takt_cli_job_id(cli->operands[0], &id, err);

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_job(cli->client, id, &patient->job, err);
	if (rc < 0)
		return rc;
	if (strcmp(patient->job.state, "running") != 0 || patient->job.frozen)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu is %s: only a job that runs can be looked at",
				    (unsigned long long)id,
				    patient->job.frozen ? "frozen" : patient->job.state);
	return patient->job.gpu_list_count
		       ? 0
		       : takt_err_set(err, -TAKT_E_CONFLICT, "job %llu has no GPU",
				      (unsigned long long)id);
}

static int examine(struct patient *patient, struct takt_err *err)
{
	const struct takt_job_view *job = &patient->job;
	struct takt_slow_ask ask = {.nvml_path = takt_cli_value(patient->cli, "nvml-path"),
				    .gpu_count = job->gpu_list_count,
				    .uuid = patient->job.gpu_uuid,
				    .read = read_daemon,
				    .ctx = patient};
	int64_t seconds = SECONDS;
	int rc = takt_cli_number(patient->cli, "seconds", SECONDS_LEAST, 600, SECONDS, &seconds,
				 err);

	if (rc < 0)
		return rc;
	ask.window_ns = (uint64_t)seconds * TAKT_NS_PER_S;
	if (job->pid)
		ask.roots[ask.root_count++] = job->pid;
	add_gpu_processes(patient, &ask);
	if (takt_slow_gather(&ask, &patient->facts, patient->why) < 0)
		return takt_err_set(err, -ENOMEM, "no memory for readings");
	for (uint32_t i = 0; i < patient->facts.gpu_count; i++) {
		patient->facts.gpu[i].index = job->gpu_list[i];
		patient->facts.gpu[i].shared = job->gpu_milli || job->mig[0];
	}
	take_clocks(patient);
	take_nccl(patient);
	takt_slow_judge(&patient->facts, &patient->verdict);
	return 0;
}

static uint64_t gpus_of(const struct patient *patient, const struct takt_slow_row *row)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < patient->facts.gpu_count; i++)
		all |= 1ull << patient->facts.gpu[i].index;
	return row->gpus ? row->gpus : all;
}

static void print_row(struct takt_cli *cli, const struct patient *patient, uint32_t cause)
{
	const struct takt_slow_row *row = &patient->verdict.row[cause];
	struct takt_str where = TAKT_STR(512);
	char word[16];

	takt_doctor_gpus_text(&where, gpus_of(patient, row));
	snprintf(word, sizeof(word), "%-7s", takt_slow_answers[row->answer]);
	takt_style_add(&cli->out, cli->colour, styles[row->answer], word);
	takt_str_addf(&cli->out, "  %-13s  %-9s  %s\n", takt_slow_causes[cause],
		      takt_str_text(&where), row->evidence);
	takt_str_fini(&where);
}

/* The first YES has what to do; without one, what would tell more is said once each. */
static void print_next(struct takt_cli *cli, const struct takt_slow_verdict *verdict)
{
	const char *before = "";

	if (verdict->found) {
		takt_str_addf(&cli->out, "\nBottleneck: %s\n",
			      takt_slow_causes[verdict->bottleneck]);
		if (verdict->row[verdict->bottleneck].next[0])
			takt_str_addf(&cli->out, "  %s\n", verdict->row[verdict->bottleneck].next);
		return;
	}
	takt_str_add(&cli->out, "\nBottleneck: UNKNOWN\n");
	for (uint32_t i = 0; i < TAKT_SLOW_CAUSES; i++) {
		const struct takt_slow_row *row = &verdict->row[i];

		if (row->answer == TAKT_SLOW_NO || !row->next[0] || strcmp(row->next, before) == 0)
			continue;
		takt_str_addf(&cli->out, "  %s: %s\n", takt_slow_causes[i], row->next);
		before = row->next;
	}
}

static void print_text(struct takt_cli *cli, const struct patient *patient)
{
	const struct takt_slow_facts *facts = &patient->facts;

	takt_print_simulated(cli, patient->job.simulated);
	takt_str_addf(&cli->out, "job %llu, %u GPU%s, looked at for %llu s",
		      (unsigned long long)patient->job.id, facts->gpu_count,
		      facts->gpu_count == 1 ? "" : "s",
		      (unsigned long long)(facts->window_ns / TAKT_NS_PER_S));
	if (facts->host_known)
		takt_str_addf(&cli->out, "; %u processes, %u threads, of which %u.%u compute",
			      facts->processes, facts->threads, facts->cpu_milli / 1000,
			      facts->cpu_milli / 100 % 10);
	takt_str_add(&cli->out, "\n");
	if (patient->why[0])
		takt_str_addf(&cli->out, "by what takt serve reads, which is less: %s\n",
			      patient->why);
	for (uint32_t i = 0; i < TAKT_SLOW_CAUSES; i++)
		print_row(cli, patient, i);
	print_next(cli, &patient->verdict);
}

static void add_host_json(struct takt_str *out, const struct takt_slow_facts *facts)
{
	if (facts->host_known)
		takt_str_addf(out,
			      ",\"processes\":%u,\"threads\":%u,\"cpu_milli\":%u,"
			      "\"lead_milli\":%u,\"within_milli\":%u,\"io_milli\":%u",
			      facts->processes, facts->threads, facts->cpu_milli, facts->lead_milli,
			      facts->within_milli, facts->io_milli);
}

static void add_nccl_json(struct takt_str *out, const struct takt_slow_nccl *nccl)
{
	if (!nccl->known)
		return;
	takt_str_add(out, ",\"nccl\":{");
	takt_doctor_text_json(out, "operation", nccl->operation, true);
	takt_str_addf(out,
		      ",\"gpu\":%u,\"ranks\":%u,\"nodes\":%u,\"bus_bytes_s\":%llu,"
		      "\"operation_us\":%llu}",
		      nccl->gpu, nccl->ranks, nccl->nodes, (unsigned long long)nccl->bus_bytes_s,
		      (unsigned long long)nccl->operation_us);
}

static void print_json(struct takt_str *out, const struct patient *patient)
{
	const struct takt_slow_verdict *verdict = &patient->verdict;

	takt_str_addf(out,
		      "{\"simulated\":%s,\"job\":%llu,\"seconds\":%llu,\"driver\":%s,"
		      "\"exit\":%d",
		      patient->job.simulated ? "true" : "false",
		      (unsigned long long)patient->job.id,
		      (unsigned long long)(patient->facts.window_ns / TAKT_NS_PER_S),
		      patient->why[0] ? "false" : "true", takt_slow_exit(verdict));
	add_host_json(out, &patient->facts);
	add_nccl_json(out, &patient->facts.nccl);
	if (verdict->found)
		takt_doctor_text_json(out, "bottleneck", takt_slow_causes[verdict->bottleneck],
				      false);
	takt_str_add(out, ",\"causes\":[");
	for (uint32_t i = 0; i < TAKT_SLOW_CAUSES; i++) {
		const struct takt_slow_row *row = &verdict->row[i];

		takt_str_add(out, i ? ",{" : "{");
		takt_doctor_text_json(out, "cause", takt_slow_causes[i], true);
		takt_doctor_text_json(out, "answer", takt_slow_answers[row->answer], false);
		takt_doctor_gpus_json(out, gpus_of(patient, row));
		takt_doctor_text_json(out, "evidence", row->evidence, false);
		if (row->next[0])
			takt_doctor_text_json(out, "next", row->next, false);
		takt_str_add(out, "}");
	}
	takt_str_add(out, "]}\n");
}

int takt_doctor_job(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct patient *patient = takt_zalloc(sizeof(*patient));
	int rc;

	if (!patient)
		return takt_err_set(err, -ENOMEM, "no memory for a job");
	patient->cli = cli;
	rc = find_job(patient, err);
	if (rc == 0)
		rc = examine(patient, err);
	if (rc < 0)
		return rc;
	if (cli->json)
		print_json(&cli->out, patient);
	else
		print_text(cli, patient);
	return takt_slow_exit(&patient->verdict);
}
