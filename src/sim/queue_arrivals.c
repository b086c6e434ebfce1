/* SPDX-License-Identifier: Apache-2.0 */
/* Submissions, see the header. */
#include "sim/queue_arrivals.h"

#include "base/sort.h"
#include "base/timetypes.h"
#include "sim/sim_random.h"
#include "sim/trace.h"

static const uint64_t WEEK_NS = 7 * 24 * 3600 * TAKT_NS_PER_S;

static uint32_t widest_node(const struct takt_sim_cluster *cluster)
{
	uint32_t widest = 0;

	TAKT_VEC_EACH (node, &cluster->nodes)
		if (node->gpus > widest)
			widest = node->gpus;
	return widest;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int takt_queue_split_gangs(struct takt_sim_work *work, struct takt_sim_cluster *cluster,
			   struct takt_err *err)
{
	uint32_t widest = widest_node(cluster);

	TAKT_VEC_EACH (job, &work->jobs) {
		struct takt_sim_kind kind = work->kinds.at[job->kind];
		uint32_t part, split;
		int rc;

		if (kind.gpus <= widest || widest == 0)
			continue;
		part = common_divisor(kind.gpus, widest);
		job->tasks *= kind.gpus / part;
		kind.gpus = part;
		rc = takt_sim_work_kind(work, cluster, &kind, work->specs.texts.at[kind.models],
					&split, err);
		if (rc < 0)
			return rc;
		work->counts.at[job->kind]--;
		work->counts.at[split]++;
		job->kind = split;
	}
	return 0;
}

static int check_times(const struct takt_sim_work *work, struct takt_err *err)
{
	const uint32_t need = 1u << TAKT_TRACE_JOB_SUBMIT | 1u << TAKT_TRACE_JOB_DURATION;

	for (size_t i = 0; i < work->jobs.len; i++)
		if ((work->jobs.at[i].has & need) != need)
			return takt_err_set(err, -TAKT_E_CORRUPT,
					    "job %zu ('%.40s') has no %s: a queue needs both "
					    "columns submit_s and duration_s (or end_s)",
					    i + 1, work->jobs.at[i].name,
					    work->jobs.at[i].has & 1u << TAKT_TRACE_JOB_SUBMIT
						    ? "duration"
						    : "submission");
	return 0;
}

static void find_span(const struct takt_sim_work *work, int64_t *ret_first, int64_t *ret_last)
{
	*ret_first = INT64_MAX;
	*ret_last = INT64_MIN;
	TAKT_VEC_EACH (job, &work->jobs) {
		if (job->submit_ns < *ret_first)
			*ret_first = job->submit_ns;
		if (job->submit_ns > *ret_last)
			*ret_last = job->submit_ns;
	}
}

/* The jobs submitted in [from, to), moved so that `from` becomes `base`. */
static int take_span(const struct takt_sim_work *work, uint64_t first, uint64_t from, uint64_t to,
		     uint64_t base, struct takt_queue_arrivals *arrivals)
{
	for (size_t i = 0; i < work->jobs.len; i++) {
		const struct takt_sim_job *job = &work->jobs.at[i];
		uint64_t at = (uint64_t)job->submit_ns - first;
		int rc;

		if (at < from || at >= to)
			continue;
		rc = takt_vec_push(&arrivals->jobs,
				   ((struct takt_queue_job){
					   .submit_ns = TAKT_QUEUE_START_NS + base + (at - from),
					   .work_ns = (uint64_t)job->duration_ns,
					   .tasks = job->tasks,
					   .source = (uint32_t)i,
				   }));
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int take_weeks(const struct takt_sim_work *work, uint64_t first, uint64_t span,
		      uint64_t seed, struct takt_queue_arrivals *arrivals, struct takt_err *err)
{
	uint64_t weeks = span / WEEK_NS;
	struct takt_rng rng;
	int rc = 0;

	if (weeks == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "the trace is shorter than a week: nothing to draw from");
	takt_sim_stream(seed, TAKT_SIM_WEEKS, &rng);
	for (uint64_t i = 0; i < weeks && rc == 0; i++) {
		uint64_t week = takt_rng_below(&rng, weeks);

		rc = take_span(work, first, week * WEEK_NS, (week + 1) * WEEK_NS, i * WEEK_NS,
			       arrivals);
	}
	return rc < 0 ? takt_err_set(err, rc, "no memory for submissions") : 0;
}

static int by_submission(const void *a, const void *b, void *ctx)
{
	const struct takt_queue_job *x = a, *y = b;

	(void)ctx;
	return (x->submit_ns > y->submit_ns) - (x->submit_ns < y->submit_ns);
}

static void sum_up(const struct takt_sim_work *work, struct takt_queue_arrivals *arrivals)
{
	TAKT_VEC_EACH (job, &arrivals->jobs) {
		const struct takt_sim_kind *kind = &work->kinds.at[work->jobs.at[job->source].kind];

		arrivals->gpu_ms += job->work_ns / TAKT_NS_PER_MS *
				    (takt_sim_kind_milli(kind) * job->tasks) / 1000;
	}
	if (arrivals->jobs.len)
		arrivals->span_ms = (takt_vec_last(&arrivals->jobs)->submit_ns -
				     arrivals->jobs.at[0].submit_ns) /
				    TAKT_NS_PER_MS;
}

int takt_queue_arrivals(const struct takt_sim_work *work, bool resample, uint64_t seed,
			struct takt_queue_arrivals *ret, struct takt_err *err)
{
	struct takt_queue_arrivals arrivals = {.jobs = TAKT_VEC_INIT(TAKT_SIM_MAX_JOBS)};
	int64_t first, last;
	int rc = check_times(work, err);

	if (rc < 0)
		return rc;
	find_span(work, &first, &last);
	if (resample)
		rc = take_weeks(work, (uint64_t)first, (uint64_t)(last - first), seed, &arrivals,
				err);
	else
		rc = take_span(work, (uint64_t)first, 0, UINT64_MAX, 0, &arrivals);
	if (rc == 0)
		rc = takt_sort(arrivals.jobs.at, arrivals.jobs.len, sizeof(arrivals.jobs.at[0]),
			       by_submission, NULL);
	if (rc < 0) {
		takt_queue_arrivals_fini(&arrivals);
		return resample ? rc : takt_err_set(err, rc, "no memory for submissions");
	}
	sum_up(work, &arrivals);
	*ret = arrivals;
	return 0;
}

void takt_queue_arrivals_fini(struct takt_queue_arrivals *arrivals)
{
	takt_vec_fini(&arrivals->jobs);
}

uint64_t takt_queue_offered(const struct takt_queue_arrivals *arrivals, uint64_t gpus)
{
	uint64_t room = gpus * (arrivals->span_ms ? arrivals->span_ms : 1);

	return room ? arrivals->gpu_ms / room * 1000 + arrivals->gpu_ms % room * 1000 / room : 0;
}

uint64_t takt_queue_gpus_for(const struct takt_queue_arrivals *arrivals, uint64_t permille)
{
	uint64_t room = (arrivals->span_ms ? arrivals->span_ms : 1) * permille;
	uint64_t gpus = (arrivals->gpu_ms * 1000 + room - 1) / room;

	return gpus ? gpus : 1;
}

/* In milliseconds, so that the product stays within 64 bits for a century. */
void takt_queue_stretch(struct takt_queue_arrivals *arrivals, uint64_t from, uint64_t to)
{
	TAKT_VEC_EACH (job, &arrivals->jobs) {
		uint64_t ms = (job->submit_ns - TAKT_QUEUE_START_NS) / TAKT_NS_PER_MS;

		job->submit_ns = TAKT_QUEUE_START_NS + ms * from / to * TAKT_NS_PER_MS;
	}
	if (arrivals->jobs.len)
		arrivals->span_ms = (takt_vec_last(&arrivals->jobs)->submit_ns -
				     arrivals->jobs.at[0].submit_ns) /
				    TAKT_NS_PER_MS;
}
