/* SPDX-License-Identifier: Apache-2.0 */
/* The small records of an attempt, to text and back. */
#include "launch/attempt_status.h"

#include <string.h>

#include "launch/attempt_record.h"

static const char *const exit_kinds[TAKT_EXIT_KIND_COUNT] = {
	[TAKT_EXIT_EXITED] = "exited",
	[TAKT_EXIT_SIGNALED] = "signaled",
	[TAKT_EXIT_EXEC_FAILED] = "exec_failed",
	[TAKT_EXIT_VOID] = "void",
};

static void put_proc(struct takt_str *out, const struct takt_proc_id *proc)
{
	takt_record_put_u64(out, "pid", (uint64_t)proc->pid);
	takt_record_put_u64(out, "start_ticks", proc->start_ticks);
	takt_record_put_text(out, "boot", proc->boot_id);
}

static struct takt_proc_id get_proc(struct takt_record *record)
{
	struct takt_proc_id proc = {0};

	proc.pid = (int32_t)takt_record_u64(record, "pid", 1, INT32_MAX);
	proc.start_ticks = takt_record_u64(record, "start_ticks", 0, UINT64_MAX);
	takt_record_text(record, "boot", proc.boot_id, sizeof(proc.boot_id));
	return proc;
}

int takt_attempt_shim_format(const struct takt_proc_id *shim, struct takt_str *out)
{
	takt_record_begin(out, "takt-shim");
	put_proc(out, shim);
	return takt_record_end(out);
}

int takt_attempt_shim_parse(const char *text, size_t len, struct takt_attempt_status *ret)
{
	struct takt_record record;
	struct takt_proc_id shim;
	int rc = takt_record_open(text, len, "takt-shim", &record);

	if (rc < 0)
		return rc;
	shim = get_proc(&record);
	rc = takt_record_done(&record);
	if (rc == 0)
		ret->shim = shim;
	return rc;
}

int takt_attempt_staged_format(const struct takt_proc_id *job, struct takt_str *out)
{
	takt_record_begin(out, "takt-staged");
	put_proc(out, job);
	return takt_record_end(out);
}

int takt_attempt_staged_parse(const char *text, size_t len, struct takt_attempt_status *ret)
{
	struct takt_record record;
	int rc = takt_record_open(text, len, "takt-staged", &record);

	if (rc < 0)
		return rc;
	(void)get_proc(&record);
	rc = takt_record_done(&record);
	if (rc == 0)
		ret->staged = TAKT_STAGED_READY;
	return rc;
}

int takt_attempt_isolation_format(const char *why, struct takt_str *out)
{
	takt_record_begin(out, "takt-isolation");
	takt_record_put_text(out, "why_advisory", why);
	return takt_record_end(out);
}

int takt_attempt_isolation_parse(const char *text, size_t len, char *ret_why)
{
	struct takt_record record;
	int rc = takt_record_open(text, len, "takt-isolation", &record);

	if (rc < 0)
		return rc;
	takt_record_text(&record, "why_advisory", ret_why, TAKT_ATTEMPT_MESSAGE);
	return takt_record_done(&record);
}

int takt_attempt_cut_format(const struct takt_output_cut *cut, struct takt_str *out)
{
	takt_record_begin(out, "takt-cut");
	takt_record_put_u64(out, "limit", cut->limit);
	takt_record_put_u64(out, "from", cut->from);
	takt_record_put_u64(out, "to", cut->to);
	return takt_record_end(out);
}

int takt_attempt_cut_parse(const char *text, size_t len, struct takt_output_cut *ret)
{
	struct takt_output_cut cut;
	struct takt_record record;
	int rc = takt_record_open(text, len, "takt-cut", &record);

	if (rc < 0)
		return rc;
	cut.limit = takt_record_u64(&record, "limit", 1, TAKT_ATTEMPT_MAX_OUTPUT);
	cut.from = takt_record_u64(&record, "from", 0, TAKT_ATTEMPT_MAX_OUTPUT);
	cut.to = takt_record_u64(&record, "to", 0, TAKT_ATTEMPT_MAX_OUTPUT);
	rc = takt_record_done(&record);
	if (rc == 0 && cut.to && cut.to <= cut.from)
		rc = -TAKT_E_CORRUPT;
	if (rc == 0)
		*ret = cut;
	return rc;
}

int takt_attempt_started_format(const struct takt_proc_id *job, struct takt_wall at,
				uint64_t boot_ns, struct takt_str *out)
{
	takt_record_begin(out, "takt-started");
	put_proc(out, job);
	takt_record_put_i64(out, "wall_ns", at.ns);
	takt_record_put_u64(out, "boot_ns", boot_ns);
	return takt_record_end(out);
}

int takt_attempt_started_parse(const char *text, size_t len, struct takt_attempt_status *ret)
{
	struct takt_record record;
	struct takt_proc_id job;
	uint64_t boot_ns;
	int64_t wall_ns;
	int rc = takt_record_open(text, len, "takt-started", &record);

	if (rc < 0)
		return rc;
	job = get_proc(&record);
	wall_ns = takt_record_i64(&record, "wall_ns", INT64_MIN, INT64_MAX);
	boot_ns = takt_record_u64(&record, "boot_ns", 0, UINT64_MAX);
	rc = takt_record_done(&record);
	if (rc < 0)
		return rc;
	ret->job = job;
	ret->started_at.ns = wall_ns;
	ret->started_boot.ns = boot_ns;
	return 0;
}

static const char host_memory[] = "memory", gpu_memory[] = "gpu_memory";

int takt_attempt_exit_format(const struct takt_attempt_status *status, struct takt_str *out)
{
	takt_record_begin(out, "takt-exit");
	takt_record_put_text(out, "kind", exit_kinds[status->exit_kind]);
	takt_record_put_i64(out, "code", status->exit_code);
	takt_record_put_i64(out, "wall_ns", status->ended_at.ns);
	takt_record_put_u64(out, "run_ns", status->run_ns);
	takt_record_put_text(out, "message", status->message);
	if (status->out_of_memory || status->out_of_gpu_memory)
		takt_record_put_text(out, "out_of",
				     status->out_of_memory ? host_memory : gpu_memory);
	return takt_record_end(out);
}

static int kind_of(const char *name)
{
	for (int kind = 0; kind < TAKT_EXIT_KIND_COUNT; kind++)
		if (strcmp(exit_kinds[kind], name) == 0)
			return kind;
	return -TAKT_E_CORRUPT;
}

int takt_attempt_exit_parse(const char *text, size_t len, struct takt_attempt_status *ret)
{
	struct takt_attempt_status got = *ret;
	struct takt_record record;
	char kind[16], out_of[16] = "";
	int rc = takt_record_open(text, len, "takt-exit", &record);

	if (rc < 0)
		return rc;
	takt_record_text(&record, "kind", kind, sizeof(kind));
	got.exit_code = (int)takt_record_i64(&record, "code", INT32_MIN, INT32_MAX);
	got.ended_at.ns = takt_record_i64(&record, "wall_ns", INT64_MIN, INT64_MAX);
	got.run_ns = takt_record_u64(&record, "run_ns", 0, UINT64_MAX);
	takt_record_text(&record, "message", got.message, sizeof(got.message));
	if (takt_record_next_is(&record, "out_of"))
		takt_record_text(&record, "out_of", out_of, sizeof(out_of));
	rc = takt_record_done(&record);
	got.out_of_memory = strcmp(out_of, host_memory) == 0;
	got.out_of_gpu_memory = strcmp(out_of, gpu_memory) == 0;
	if (rc == 0)
		rc = kind_of(kind);
	if (rc < 0)
		return rc;
	got.exit_kind = (enum takt_exit_kind)rc;
	*ret = got;
	return 0;
}
