/* SPDX-License-Identifier: Apache-2.0 */
/* Series at a steady step, see the header. */
#include "sim/load_series.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/timetypes.h"
#include "sim/trace.h"

#define HAS(record, field) ((record)->has & 1u << TAKT_TRACE_JOB_##field)

/* The step that a time is in; times before zero too. */
static int64_t step_of(int64_t at_ns, int64_t step_ns)
{
	return at_ns / step_ns - (at_ns % step_ns < 0);
}

static int make(int64_t first, int64_t last, uint32_t step_s, double **ret_values,
		struct takt_series *ret, struct takt_err *err)
{
	size_t len = (size_t)(last - first) + 1;

	if (last - first >= TAKT_FORECAST_MAX_LEN)
		return takt_err_set(err, -EINVAL,
				    "more than %d steps of %u s: a longer step is needed",
				    TAKT_FORECAST_MAX_LEN, step_s);
	*ret_values = takt_calloc(len, sizeof(double));
	if (!*ret_values)
		return takt_err_set(err, -ENOMEM, "a series");
	*ret = (struct takt_series){
		.value = *ret_values, .len = len, .begin_s = first * step_s, .step_s = step_s};
	return 0;
}

static int take_means(const struct takt_load_samples *samples, const struct takt_series *series,
		      double *values, struct takt_err *err)
{
	int64_t step_ns = series->step_s * (int64_t)TAKT_NS_PER_S;
	int64_t first = series->begin_s / series->step_s;
	uint32_t *counts = takt_calloc(series->len, sizeof(*counts));

	if (!counts)
		return takt_err_set(err, -ENOMEM, "a series");
	TAKT_VEC_EACH (sample, &samples->list) {
		size_t at = (size_t)(step_of(sample->at_ns, step_ns) - first);

		if (isnan(sample->value))
			continue;
		values[at] += sample->value;
		counts[at]++;
	}
	for (size_t i = 0; i < series->len; i++)
		values[i] = counts[i] ? values[i] / counts[i] : NAN;
	takt_free(counts);
	return 0;
}

int takt_load_from_samples(const struct takt_load_samples *samples, uint32_t step_s,
			   double **ret_values, struct takt_series *ret, struct takt_err *err)
{
	int64_t step_ns = step_s * (int64_t)TAKT_NS_PER_S, first = INT64_MAX, last = INT64_MIN;
	int rc;

	if (samples->list.len == 0)
		return takt_err_set(err, -ENODATA, "there is no sample");
	TAKT_VEC_EACH (sample, &samples->list) {
		int64_t step = step_of(sample->at_ns, step_ns);

		first = step < first ? step : first;
		last = step > last ? step : last;
	}
	rc = make(first, last, step_s, ret_values, ret, err);
	if (rc < 0)
		return rc;
	rc = take_means(samples, ret, *ret_values, err);
	if (rc < 0)
		takt_free(*ret_values);
	return rc;
}

/* Adds what the span is in each step, as a share of the step. */
static void add_span(double *values, const struct takt_series *series,
		     const struct takt_load_span *span)
{
	int64_t step_ns = series->step_s * (int64_t)TAKT_NS_PER_S;
	int64_t begin_ns = series->begin_s * (int64_t)TAKT_NS_PER_S;
	int64_t end_ns = begin_ns + (int64_t)series->len * step_ns;
	int64_t from = span->from_ns > begin_ns ? span->from_ns : begin_ns;
	int64_t to = span->to_ns < end_ns ? span->to_ns : end_ns;

	while (from < to) {
		size_t at = (size_t)((from - begin_ns) / step_ns);
		int64_t next = begin_ns + ((int64_t)at + 1) * step_ns;

		next = next < to ? next : to;
		values[at] += span->value * (double)(next - from) / (double)step_ns;
		from = next;
	}
}

int takt_load_from_spans(const struct takt_load_spans *spans, int64_t begin_ns, int64_t end_ns,
			 uint32_t step_s, double **ret_values, struct takt_series *ret,
			 struct takt_err *err)
{
	int64_t step_ns = step_s * (int64_t)TAKT_NS_PER_S;
	int rc;

	if (spans->list.len == 0 || end_ns <= begin_ns)
		return takt_err_set(err, -ENODATA, "no job with GPUs ran");
	rc = make(step_of(begin_ns, step_ns), step_of(end_ns - 1, step_ns), step_s, ret_values, ret,
		  err);
	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (span, &spans->list)
		add_span(*ret_values, ret, span);
	return 0;
}

int takt_load_read_samples(const char *path, struct takt_load_samples *ret, struct takt_err *err)
{
	struct takt_trace_sample sample;
	struct takt_trace *trace;
	int rc = takt_trace_open(path, TAKT_TRACE_OF_SAMPLES, 1u << TAKT_TRACE_SAMPLE_TIME, &trace,
				 err);

	if (rc < 0)
		return rc;
	while ((rc = takt_trace_next_sample(trace, &sample, err)) == 1) {
		if (!(sample.has & 1u << TAKT_TRACE_SAMPLE_VALUE))
			sample.value = NAN;
		rc = takt_vec_push(&ret->list,
				   (struct takt_load_sample){sample.at_ns, sample.value});
		if (rc < 0) {
			takt_err_set(err, rc, "%zu samples of '%s'", ret->list.len, path);
			break;
		}
	}
	takt_trace_free(trace);
	return rc;
}

/* When a job held its GPUs. A job without an end is still there at the end of the trace. */
static struct takt_load_span span_of(const struct takt_trace_job *job)
{
	struct takt_load_span span = {
		.from_ns = HAS(job, START) ? job->start_ns : job->submit_ns,
		.to_ns = INT64_MAX,
		.value = (double)job->tasks * (double)job->gpus * (double)job->gpu_milli / 1000,
	};

	if (HAS(job, DURATION))
		span.to_ns = job->duration_ns < INT64_MAX - span.from_ns
				     ? span.from_ns + job->duration_ns
				     : INT64_MAX;
	else if (HAS(job, END))
		span.to_ns = job->end_ns;
	return span;
}

int takt_load_read_trace(const char *path, const char *tenant, struct takt_load_spans *ret,
			 int64_t *ret_begin_ns, int64_t *ret_end_ns, struct takt_err *err)
{
	const uint32_t needed = 1u << TAKT_TRACE_JOB_SUBMIT | 1u << TAKT_TRACE_JOB_GPUS;
	struct takt_trace_job job;
	struct takt_trace *trace;
	int rc = takt_trace_open(path, TAKT_TRACE_OF_JOBS, needed, &trace, err);

	if (rc < 0)
		return rc;
	*ret_begin_ns = INT64_MAX;
	*ret_end_ns = INT64_MIN;
	while ((rc = takt_trace_next_job(trace, &job, err)) == 1) {
		struct takt_load_span span = span_of(&job);

		if (tenant && strcmp(job.tenant, tenant) != 0)
			continue;
		*ret_begin_ns = job.submit_ns < *ret_begin_ns ? job.submit_ns : *ret_begin_ns;
		*ret_end_ns = job.submit_ns > *ret_end_ns ? job.submit_ns : *ret_end_ns;
		rc = span.value > 0 ? takt_vec_push(&ret->list, span) : 0;
		if (rc < 0) {
			takt_err_set(err, rc, "%zu jobs of '%s'", ret->list.len, path);
			break;
		}
	}
	takt_trace_free(trace);
	return rc;
}
