/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of jobs: one, the queue, and why one waits. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "codec/view_tables.h"
#include "codec/views.h"

#define REPORT struct takt_report_view
static const struct takt_field report_fields[] = {
	MUST_BOOL(REPORT, simulated),
	U64(REPORT, wall_ms, HAS(TAKT_RV_WALL)),
	U64(REPORT, energy_mj, HAS(TAKT_RV_ENERGY)),
	TEXT(REPORT, energy_why_not),
	U32(REPORT, mean_sm_mhz, HAS(TAKT_RV_MEAN_SM)),
	U32(REPORT, sm_spread_mhz, HAS(TAKT_RV_SM_SPREAD)),
	U64(REPORT, throttled_ms, HAS(TAKT_RV_THROTTLED)),
	TEXT(REPORT, throttle_text),
	U64(REPORT, peak_memory_bytes, HAS(TAKT_RV_PEAK_MEMORY)),
	U32(REPORT, mean_util_permille, HAS(TAKT_RV_UTIL)),
	U64(REPORT, idle_ms, HAS(TAKT_RV_UTIL)),
	U64(REPORT, gap_driver_us, HAS(TAKT_RV_HANDOVER)),
	U64(REPORT, gap_scheduler_us, HAS(TAKT_RV_HANDOVER)),
	U64(REPORT, gap_start_us, HAS(TAKT_RV_HANDOVER)),
	TEXT(REPORT, governor),
	U64(REPORT, governed_mj, HAS(TAKT_RV_SAVED)),
	U64(REPORT, highest_mj, HAS(TAKT_RV_SAVED)),
	U32(REPORT, highest_error_permille, HAS(TAKT_RV_SAVED)),
	I32(REPORT, slowdown_permille, HAS(TAKT_RV_SAVED)),
	U32(REPORT, slowdown_error_permille, HAS(TAKT_RV_SAVED)),
	TEXT(REPORT, work_signal),
};
static const struct takt_shape report_shape = {
	.what = "a report",
	.fields = report_fields,
	.count = TAKT_ARRAY_LEN(report_fields),
	.size = sizeof(REPORT),
	.has_offset = offsetof(REPORT, has),
};

#define PROGRESS struct takt_progress_view
static const struct takt_field progress_fields[] = {
	U64(PROGRESS, steps, HAS(TAKT_PV_STEPS)),
	U64(PROGRESS, tokens, HAS(TAKT_PV_TOKENS)),
	U64(PROGRESS, queries, HAS(TAKT_PV_QUERIES)),
	U64(PROGRESS, latency_us, HAS(TAKT_PV_LATENCY)),
	U64(PROGRESS, steps_milli_s, HAS(TAKT_PV_STEPS_RATE)),
	U64(PROGRESS, tokens_milli_s, HAS(TAKT_PV_TOKENS_RATE)),
	U64(PROGRESS, queries_milli_s, HAS(TAKT_PV_QUERIES_RATE)),
	U64(PROGRESS, age_ms, NONE(0)),
	U32(PROGRESS, ranks, HAS(TAKT_PV_SKEW)),
	U32(PROGRESS, slowest_rank, HAS(TAKT_PV_SKEW)),
	U32(PROGRESS, skew_permille, HAS(TAKT_PV_SKEW)),
};
static const struct takt_shape progress_shape = {
	.what = "a progress",
	.fields = progress_fields,
	.count = TAKT_ARRAY_LEN(progress_fields),
	.size = sizeof(PROGRESS),
	.has_offset = offsetof(PROGRESS, has),
};

#define GOVERNED struct takt_governed_view
static const struct takt_field governed_fields[] = {
	U32(GOVERNED, max_slowdown_permille, NONE(0)),
	TEXT(GOVERNED, state),
	TEXT(GOVERNED, note),
	TEXT(GOVERNED, reason),
	TEXT(GOVERNED, text),
	TEXT(GOVERNED, signal),
	U32(GOVERNED, signal_error_permille, NONE(0)),
	TEXT(GOVERNED, ahead),
	U32(GOVERNED, min_mhz, NONE(0)),
	U32(GOVERNED, max_mhz, NONE(0)),
	U32(GOVERNED, power_limit_mw, NONE(0)),
	U32(GOVERNED, epochs, NONE(0)),
	U64(GOVERNED, first_applied_us, NONE(0)),
};
static const struct takt_shape governed_shape =
	TAKT_SHAPE(GOVERNED, "a governed job", governed_fields);

#define START_AT(of, member)                                                                   \
	{                                                                                      \
		.name = #member, .kind = TAKT_FIELD_I64, .offset = offsetof(of, start.member), \
		.min = -(int64_t)TAKT_JSON_MAX_INT, .max = INT64_MAX, NONE(0)                  \
	}
#define START(of)                                                                           \
	START_AT(of, starts_ms), START_AT(of, starts_low_ms), START_AT(of, starts_high_ms), \
		START_AT(of, starts_overdue_ms)

#define JOB struct takt_job_view
static const struct takt_field job_fields[] = {
	MUST_BOOL(JOB, simulated),
	U64(JOB, id, MUST, .min = 1),
	TEXT(JOB, name),
	TEXT(JOB, user),
	TEXT(JOB, state),
	U32(JOB, uid, MUST),
	U32(JOB, gpus),
	I32(JOB, priority),
	BOOL(JOB, mine),
	TEXT(JOB, command),
	TEXT(JOB, cwd),
	U32(JOB, attempt, NONE(0)),
	{TAKT_FIELD_AT(JOB, gpu_list, TAKT_FIELD_U32), .many = TAKT_MANY_ARRAY, .required = true,
	 .counts = true, .size = sizeof(uint32_t), COUNT(JOB, gpu_list_count),
	 .room = TAKT_VIEW_MAX_GPUS, .max = UINT32_MAX},
	{TAKT_FIELD_AT(JOB, gpu_uuid, TAKT_FIELD_TEXT), .many = TAKT_MANY_ARRAY,
	 .size = sizeof(((JOB *)0)->gpu_uuid[0]), COUNT(JOB, gpu_list_count),
	 .room = TAKT_VIEW_MAX_GPUS},
	I64(JOB, submitted_ms, NONE(0)),
	I64(JOB, started_ms, NONE(0)),
	I64(JOB, ended_ms, NONE(0)),
	I32(JOB, exit_code, .flag_offset = offsetof(JOB, has_exit_code)),
	I32(JOB, exit_signal, NONE(0)),
	I32(JOB, pid, NONE(0)),
	TEXT(JOB, cause),
	TEXT(JOB, cause_text),
	U32(JOB, cause_gpu, .flag_offset = offsetof(JOB, has_cause_gpu)),
	U32(JOB, cause_xid, NONE(0)),
	I64(JOB, cause_at_ms, NONE(0)),
	TEXT(JOB, message),
	U64(JOB, array_id, NONE(0)),
	U32(JOB, array_index, NONE(0)),
	U32(JOB, array_limit, NONE(0)),
	U32(JOB, cpu_milli, NONE(0)),
	U64(JOB, mem_mib, NONE(0)),
	U32(JOB, gpu_mem_mib, NONE(0)),
	U64(JOB, time_limit_ms, NONE(0)),
	I64(JOB, begin_ms, NONE(0)),
	I64(JOB, retry_at_ms, NONE(0)),
	U32(JOB, retries, NONE(0)),
	U32(JOB, failures, NONE(0)),
	U32(JOB, restarts, NONE(0)),
	TEXT(JOB, after),
	U32(JOB, gpu_milli, NONE(0)),
	{TAKT_FIELD_AT(JOB, gpu_indices, TAKT_FIELD_MASK), .optional = true},
	TEXT(JOB, mig),
	BOOL(JOB, preemptible),
	BOOL(JOB, freezable),
	BOOL(JOB, pty),
	BOOL(JOB, stage),
	BOOL(JOB, wait_outside),
	I32(JOB, checkpoint_signal, NONE(0)),
	U32(JOB, checkpoint_grace_ms, NONE(0)),
	U32(JOB, ranks, NONE(0)),
	U64(JOB, estimate_ms, NONE(0)),
	U64(JOB, idle_release_ms, NONE(0)),
	TEXT(JOB, clock_policy),
	U32(JOB, max_slowdown_permille, NONE(0)),
	U32(JOB, slo_latency_us, NONE(0)),
	U32(JOB, slo_permille, NONE(0)),
	U64(JOB, retry_backoff_ms, NONE(0)),
	I64(JOB, deadline_ms, NONE(0)),
	TEXT(JOB, tenant),
	TEXT(JOB, tags),
	TEXT(JOB, container),
	TEXT(JOB, container_runtime),
	TEXT(JOB, checkpoint_dir),
	TEXT(JOB, prefetch),
	TEXT(JOB, hook),
	TEXT(JOB, output),
	TEXT(JOB, health_note),
	TEXT(JOB, health_severity),
	TEXT(JOB, stray_note),
	TEXT(JOB, terminal),
	U64(JOB, run_ms, NONE(0)),
	U64(JOB, run_error_ms, .flag_offset = offsetof(JOB, has_run_error)),
	TEXT(JOB, run_from),
	START(JOB),
	{TAKT_FIELD_AT(JOB, starts_gpus, TAKT_FIELD_MASK)},
	U32(JOB, preemptions, NONE(0)),
	U64(JOB, room_for, NONE(0)),
	U32(JOB, share_place, NONE(0)),
	U32(JOB, share_of, NONE(0)),
	U64(JOB, share_used_gpu_s, NONE(0)),
	BOOL(JOB, frozen),
	I64(JOB, checkpoint_ms, NONE(0)),
	TEXT(JOB, params),
	TEXT(JOB, held),
	TEXT(JOB, why),
	TEXT(JOB, why_text),
	TEXT(JOB, why_words),
	TEXT(JOB, refused),
	TEXT(JOB, refused_by),
	TEXT(JOB, refused_text),
	U32(JOB, refused_tries, NONE(0)),
	I64(JOB, refused_since_ms, NONE(0)),
	U32(JOB, clock_min_mhz, NONE(0)),
	U32(JOB, clock_max_mhz, NONE(0)),
	U32(JOB, power_limit_mw, NONE(0)),
	TEXT(JOB, clock_note),
	TEXT(JOB, isolation),
	TEXT(JOB, isolation_note),
	U64(JOB, last_peak_bytes, NONE(0)),
	TEXT(JOB, memory_hint),
	U32(JOB, gpu_mem_held_mib, NONE(0)),
	TEXT(JOB, memory),
	U64(JOB, output_kept, NONE(0)),
	U64(JOB, output_cut_from, NONE(0)),
	U64(JOB, output_cut_to, NONE(0)),
	{TAKT_FIELD_AT(JOB, report, TAKT_FIELD_OBJECT), .shape = &report_shape},
	{TAKT_FIELD_AT(JOB, governed, TAKT_FIELD_OBJECT), .shape = &governed_shape},
	{TAKT_FIELD_AT(JOB, progress, TAKT_FIELD_OBJECT), .shape = &progress_shape},
};
static const struct takt_shape job_shape = TAKT_SHAPE(JOB, "a job", job_fields);

int takt_job_view_to_json(const struct takt_job_view *view, struct takt_str *out)
{
	return takt_shape_encode(&job_shape, view, out);
}

int takt_job_view_from_json(const char *text, size_t len, struct takt_job_view *ret,
			    struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *view = takt_zalloc(sizeof(*view));
	int rc;

	if (!view)
		return takt_err_set(err, -ENOMEM, "no memory for a job");
	rc = takt_shape_decode(&job_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
			       view, err);
	if (rc == 0)
		*ret = *view;
	return rc;
}

/* The queue: the C struct counts with a size_t, the tables with 32 bits. */
struct queue {
	bool simulated;
	uint64_t total, next;
	uint32_t count;
	struct takt_job_view *jobs; /* owned */
};
static const struct takt_field queue_fields[] = {
	MUST_BOOL(struct queue, simulated),
	U64(struct queue, total, MUST),
	U64(struct queue, next, NONE(0)),
	{TAKT_FIELD_AT(struct queue, jobs, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED,
	 .required = true, .counts = true, .size = sizeof(JOB), COUNT(struct queue, count),
	 .room = 10000, .shape = &job_shape},
};
static const struct takt_shape queue_shape = TAKT_SHAPE(struct queue, "a queue", queue_fields);

void takt_queue_view_fini(struct takt_queue_view *view)
{
	takt_free(view->jobs);
	view->jobs = NULL;
	view->count = 0;
}

int takt_queue_view_from_json(const char *text, size_t len, struct takt_queue_view *ret,
			      struct takt_err *err)
{
	struct queue queue = {.count = 0};
	int rc = takt_shape_decode(&queue_shape, text, len, TAKT_VIEW_MAX_BYTES,
				   TAKT_SHAPE_TOLERANT, &queue, err);

	if (rc < 0) {
		takt_shape_release(&queue_shape, &queue);
		return rc;
	}
	*ret = (struct takt_queue_view){
		.simulated = queue.simulated,
		.total = queue.total,
		.next = queue.next,
		.count = queue.count,
		.jobs = queue.jobs,
	};
	return 0;
}

int takt_queue_json_begin(struct takt_str *out, bool simulated)
{
	return takt_str_addf(out, "{\"simulated\":%s,\"jobs\":[", simulated ? "true" : "false");
}

int takt_queue_json_job(struct takt_str *out, const struct takt_job_view *view)
{
	if (out->len > 0 && out->s[out->len - 1] == '}')
		takt_str_add(out, ",");
	return takt_job_view_to_json(view, out);
}

int takt_queue_json_end(struct takt_str *out, uint64_t total, uint64_t next)
{
	takt_str_addf(out, "],\"total\":%llu", (unsigned long long)total);
	if (next)
		takt_str_addf(out, ",\"next\":%llu", (unsigned long long)next);
	return takt_str_add(out, "}");
}

#define EXPLAIN struct takt_explain_view
#define COUNTED .flag_offset = offsetof(EXPLAIN, counted)
static const struct takt_field explain_fields[] = {
	MUST_BOOL(EXPLAIN, simulated),
	U64(EXPLAIN, id, MUST, .min = 1),
	TEXT(EXPLAIN, state),
	TEXT(EXPLAIN, why),
	TEXT(EXPLAIN, text),
	U32(EXPLAIN, need, COUNTED),
	U32(EXPLAIN, total, COUNTED),
	U32(EXPLAIN, free, COUNTED),
	U32(EXPLAIN, running, COUNTED),
	U32(EXPLAIN, draining, COUNTED),
	U32(EXPLAIN, outside, COUNTED),
	U32(EXPLAIN, unhealthy, COUNTED),
	U32(EXPLAIN, promised, COUNTED),
	U32(EXPLAIN, kept, NONE(0)),
	U32(EXPLAIN, must_end, COUNTED),
	U64(EXPLAIN, behind_job, NONE(0)),
	U32(EXPLAIN, ahead, COUNTED),
	I64(EXPLAIN, retry_at_ms, NONE(0)),
	I64(EXPLAIN, refused_since_ms, NONE(0)),
	U32(EXPLAIN, refused_tries, NONE(0)),
	START(EXPLAIN),
	U64(EXPLAIN, run_ms, NONE(0)),
	TEXT(EXPLAIN, run_from),
};
static const struct takt_shape explain_shape =
	TAKT_SHAPE(EXPLAIN, "an explanation", explain_fields);

int takt_explain_view_to_json(const struct takt_explain_view *view, struct takt_str *out)
{
	return takt_shape_encode(&explain_shape, view, out);
}

int takt_explain_view_from_json(const char *text, size_t len, struct takt_explain_view *ret,
				struct takt_err *err)
{
	struct takt_explain_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = takt_shape_decode(&explain_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
			       &view, err);
	if (rc == 0)
		*ret = view;
	return rc;
}

#define RUN struct takt_try_run_view
static const struct takt_field run_fields[] = {
	U32(RUN, first, MUST),
	U32(RUN, last, MUST),
	MUST_BOOL(RUN, starts),
	{TAKT_FIELD_AT(RUN, gpu_list, TAKT_FIELD_MASK)},
	TEXT(RUN, why),
	TEXT(RUN, text),
	START(RUN),
};
static const struct takt_shape run_shape = TAKT_SHAPE(RUN, "jobs of an array", run_fields);

#define TRY struct takt_try_view
static const struct takt_field try_fields[] = {
	MUST_BOOL(TRY, simulated),
	MUST_BOOL(TRY, starts),
	{TAKT_FIELD_AT(TRY, gpu_list, TAKT_FIELD_U32), .many = TAKT_MANY_ARRAY, .required = true,
	 .counts = true, .size = sizeof(uint32_t), COUNT(TRY, gpu_list_count),
	 .room = TAKT_VIEW_MAX_GPUS, .max = UINT32_MAX},
	TEXT(TRY, why),
	TEXT(TRY, text),
	U32(TRY, ahead, NONE(0)),
	START(TRY),
	U64(TRY, run_ms, NONE(0)),
	TEXT(TRY, run_from),
	{TAKT_FIELD_AT(TRY, array, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY, .counts = true,
	 .size = sizeof(RUN), COUNT(TRY, array_count), .room = TAKT_VIEW_MAX_RUNS,
	 .shape = &run_shape},
	U32(TRY, more, NONE(0)),
};
static const struct takt_shape try_shape = TAKT_SHAPE(TRY, "a trial", try_fields);

int takt_try_view_to_json(const struct takt_try_view *view, struct takt_str *out)
{
	return takt_shape_encode(&try_shape, view, out);
}

int takt_try_view_from_json(const char *text, size_t len, struct takt_try_view *ret,
			    struct takt_err *err)
{
	struct takt_try_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = takt_shape_decode(&try_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
			       &view, err);
	if (rc == 0)
		*ret = view;
	return rc;
}

struct tries {
	uint32_t count;
	struct takt_try_view *jobs; /* owned */
};
static const struct takt_field tries_fields[] = {
	{TAKT_FIELD_AT(struct tries, jobs, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED,
	 .required = true, .counts = true, .size = sizeof(TRY), COUNT(struct tries, count),
	 .room = 10000, .shape = &try_shape},
};
static const struct takt_shape tries_shape = TAKT_SHAPE(struct tries, "trials", tries_fields);

int takt_try_views_to_json(const struct takt_try_view *views, uint32_t count, struct takt_str *out)
{
	struct tries tries = {.count = count, .jobs = (struct takt_try_view *)views};

	return takt_shape_encode(&tries_shape, &tries, out);
}

int takt_try_views_from_json(const char *text, size_t len, uint32_t count,
			     struct takt_try_view *ret, struct takt_err *err)
{
	struct tries tries = {.count = 0};
	int rc = takt_shape_decode(&tries_shape, text, len, TAKT_VIEW_MAX_BYTES,
				   TAKT_SHAPE_TOLERANT, &tries, err);

	if (rc == 0 && tries.count != count)
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "%u trials of %u jobs", tries.count, count);
	if (rc == 0)
		memcpy(ret, tries.jobs, count * sizeof(*ret));
	takt_shape_release(&tries_shape, &tries);
	return rc;
}
