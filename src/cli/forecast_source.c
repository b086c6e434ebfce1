/* SPDX-License-Identifier: Apache-2.0 */
/* The series of `takt forecast`: a file of samples, a trace of jobs, a recording, or the daemon's
 * own jobs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "cli/forecast_cli.h"
#include "cli/job_filter.h"

enum {
	MAX_STEP_S = 86400,
	PAGE = 1000, /* jobs asked for at a time */
};

static int from_file(struct takt_forecast_cli *own, const char *path, uint32_t step_s,
		     struct takt_err *err)
{
	struct takt_load_samples samples = {TAKT_VEC_INIT(TAKT_LOAD_MAX_SAMPLES)};
	int rc = takt_load_read_samples(path, &samples, err);

	if (rc == 0)
		rc = takt_load_from_samples(&samples, step_s, &own->values, &own->series, err);
	takt_vec_fini(&samples.list);
	snprintf(own->what, sizeof(own->what), "values of '%.100s'", path);
	own->unit = "";
	return rc;
}

static int from_trace(struct takt_forecast_cli *own, const char *path, uint32_t step_s,
		      struct takt_err *err)
{
	const char *tenant = takt_cli_value(own->cli, "tenant"), *colon = strchr(path, ':');
	struct takt_load_spans spans = {TAKT_VEC_INIT(TAKT_LOAD_MAX_SAMPLES)};
	int64_t begin_ns, end_ns;
	int rc;

	if (colon && (strncmp(path, "philly:", 7) == 0 || strncmp(path, "openb:", 6) == 0))
		path = colon + 1;
	rc = takt_load_read_trace(path, tenant, &spans, &begin_ns, &end_ns, err);
	if (rc == 0)
		rc = takt_load_from_spans(&spans, begin_ns, end_ns, step_s, &own->values,
					  &own->series, err);
	takt_vec_fini(&spans.list);
	snprintf(own->what, sizeof(own->what), "GPUs asked for by the jobs of '%.80s'%s%.30s", path,
		 tenant ? ", tenant " : "", tenant ? tenant : "");
	own->unit = " GPUs";
	own->simulated = true;
	return rc;
}

static int take_sample(void *ctx, int64_t at_us, double value)
{
	struct takt_load_samples *samples = ctx;

	return takt_vec_push(&samples->list, (struct takt_load_sample){at_us * 1000, value});
}

static int from_recording(struct takt_forecast_cli *own, const char *path, uint32_t step_s,
			  struct takt_err *err)
{
	struct takt_load_samples samples = {TAKT_VEC_INIT(TAKT_LOAD_MAX_SAMPLES)};
	const char *what = takt_cli_value(own->cli, "what");
	int64_t gpu;
	int rc = takt_cli_number(own->cli, "gpu", 0, 1000, 0, &gpu, err);

	if (!what)
		what = "power";
	if (rc == 0 && strcmp(what, "power") != 0 && strcmp(what, "util") != 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--what' must be power or util, not '%.40s'",
				  what);
	if (rc == 0 && (!own->cli->extra || !own->cli->extra->recorded))
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED, "this takt reads no recordings");
	if (rc < 0)
		return rc;
	own->unit = what[0] == 'p' ? " W" : " %";
	rc = own->cli->extra->recorded(path, (uint32_t)gpu, what[0] == 'p', take_sample, &samples,
				       &own->simulated, err);
	if (rc == 0)
		rc = takt_load_from_samples(&samples, step_s, &own->values, &own->series, err);
	takt_vec_fini(&samples.list);
	snprintf(own->what, sizeof(own->what), "%s of GPU %d in '%.90s'",
		 what[0] == 'p' ? "power" : "utilisation", (int)gpu, path);
	return rc;
}

/* What jobs of a daemon held. */
struct held {
	struct takt_load_spans spans;
	int64_t now_ms, begin_ms;
	bool simulated;
};

/* One that has not ended holds it still. */
static int add_job(struct held *held, const struct takt_job_view *job)
{
	double each = job->gpu_milli ? job->gpu_milli / 1000.0 : 1;
	int64_t end_ms = job->ended_ms ? job->ended_ms : held->now_ms;

	if (!job->started_ms || job->gpu_list_count == 0)
		return 0;
	held->begin_ms = job->started_ms < held->begin_ms ? job->started_ms : held->begin_ms;
	return takt_vec_push(&held->spans.list,
			     (struct takt_load_span){job->started_ms * 1000000, end_ms * 1000000,
						     job->gpu_list_count * each});
}

static int take_part(void *ctx, const struct takt_queue_view *part, struct takt_err *err)
{
	struct held *held = ctx;

	held->simulated = part->simulated;
	for (size_t i = 0; i < part->count; i++)
		if (add_job(held, &part->jobs[i]) < 0)
			return takt_err_set(err, -ENOMEM, "no memory for the jobs");
	return 0;
}

static int from_daemon(struct takt_forecast_cli *own, uint32_t step_s, struct takt_err *err)
{
	int64_t now_ms = (int64_t)(takt_wall_now(takt_sys_real()).ns / TAKT_NS_PER_MS);
	struct held held = {.spans = {TAKT_VEC_INIT(TAKT_LOAD_MAX_SAMPLES)},
			    .now_ms = now_ms,
			    .begin_ms = now_ms};
	struct takt_job_filter filter;
	int rc = takt_job_filter_read(own->cli, &filter, err);

	if (rc == 0)
		rc = takt_job_filter_walk(own->cli, &filter, false, PAGE, take_part, &held, err);
	if (rc == 0)
		rc = takt_load_from_spans(&held.spans, held.begin_ms * 1000000, now_ms * 1000000,
					  step_s, &own->values, &own->series, err);
	takt_vec_fini(&held.spans.list);
	own->simulated = held.simulated;
	takt_strcpy(own->what, sizeof(own->what), "GPUs held by the daemon's jobs");
	own->unit = " GPUs";
	own->wall = true;
	return rc;
}

int takt_forecast_source(struct takt_forecast_cli *own, struct takt_err *err)
{
	const char *file = takt_cli_value(own->cli, "history");
	const char *trace = takt_cli_value(own->cli, "trace");
	const char *recording = takt_cli_value(own->cli, "recording");
	uint64_t step_ms;
	int rc = takt_cli_duration_ms(own->cli, "step", MAX_STEP_S * 1000ull, 60000, &step_ms, err);
	uint32_t step_s = (uint32_t)(step_ms / 1000);

	if (rc < 0)
		return rc;
	if (step_s == 0 || step_ms % 1000)
		return takt_err_set(err, -TAKT_E_USAGE, "'--step' must be whole seconds, from 1s");
	if (!!file + !!trace + !!recording > 1)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "one of '--history', '--trace' and '--recording', or none");
	if (file)
		return from_file(own, file, step_s, err);
	if (trace)
		return from_trace(own, trace, step_s, err);
	return recording ? from_recording(own, recording, step_s, err)
			 : from_daemon(own, step_s, err);
}
