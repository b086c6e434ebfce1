/* SPDX-License-Identifier: Apache-2.0 */
/* The spec of an attempt: checked, as a record, and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "launch/attempt.h"
#include "launch/attempt_files.h"
#include "launch/attempt_record.h"
#include "launch/attempt_spec.h"

static void free_strings(char **strings)
{
	for (char **s = strings; s && *s; s++)
		takt_free(*s);
	takt_free(strings);
}

void takt_attempt_spec_fini(struct takt_attempt_spec *spec)
{
	free_strings(spec->argv);
	free_strings(spec->env);
	free_strings(spec->cleanup);
	free_strings(spec->prefetch);
	takt_free(spec->cwd);
	takt_free(spec->output);
	*spec = (struct takt_attempt_spec){0};
}

static size_t count(char *const *strings)
{
	size_t n = 0;

	while (strings[n])
		n++;
	return n;
}

/* Survivors are found by this variable, so a job without it must not start. */
static bool env_names_attempt(const struct takt_attempt_spec *spec)
{
	static const char name[] = "TAKT_ATTEMPT=";

	for (char **env = spec->env; *env; env++)
		if (strncmp(*env, name, sizeof(name) - 1) == 0)
			return strcmp(*env + sizeof(name) - 1, spec->id) == 0;
	return false;
}

static int check_ranks(const struct takt_attempt_spec *spec, struct takt_err *err)
{
	if (spec->ranks > TAKT_ATTEMPT_MAX_RANKS)
		return takt_err_set(err, -TAKT_E_LIMIT, "ranks: %u, at most %d", spec->ranks,
				    TAKT_ATTEMPT_MAX_RANKS);
	if (spec->ranks && (spec->master_port < 1 || spec->master_port > UINT16_MAX))
		return takt_err_set(err, -EINVAL, "master_port: 1 to 65535, not %u",
				    spec->master_port);
	if (spec->ranks > 1 && spec->pty)
		return takt_err_set(err, -EINVAL, "pty: several ranks cannot share a terminal");
	if (spec->cleanup && (!spec->cleanup[0] || count(spec->cleanup) > TAKT_ATTEMPT_MAX_ARGS))
		return takt_err_set(err, -EINVAL, "cleanup: 1 to %d arguments",
				    TAKT_ATTEMPT_MAX_ARGS);
	return 0;
}

int takt_attempt_spec_check(const struct takt_attempt_spec *spec, struct takt_err *err)
{
	if (spec->job_id == 0 || spec->attempt == 0)
		return takt_err_set(err, -EINVAL, "job id and attempt start at 1");
	if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
		return takt_err_set(err, -EINVAL, "argv: no command to run");
	if (count(spec->argv) > TAKT_ATTEMPT_MAX_ARGS)
		return takt_err_set(err, -TAKT_E_LIMIT, "argv: %zu arguments, at most %d",
				    count(spec->argv), TAKT_ATTEMPT_MAX_ARGS);
	if (!spec->cwd || spec->cwd[0] != '/')
		return takt_err_set(err, -EINVAL, "cwd: '%s' is not an absolute path",
				    spec->cwd ? spec->cwd : "");
	if (!spec->env || !spec->id[0] || !env_names_attempt(spec))
		return takt_err_set(err, -EINVAL, "env: TAKT_ATTEMPT must be the attempt's id '%s'",
				    spec->id);
	if (count(spec->env) > TAKT_ATTEMPT_MAX_ENV)
		return takt_err_set(err, -TAKT_E_LIMIT, "env: %zu variables, at most %d",
				    count(spec->env), TAKT_ATTEMPT_MAX_ENV);
	return check_ranks(spec, err);
}

static void put_strings(struct takt_str *out, const char *count_key, const char *key,
			char *const *strings)
{
	takt_record_put_u64(out, count_key, count(strings));
	for (; *strings; strings++)
		takt_record_put_text(out, key, *strings);
}

/* What came after the first build is written only where it says something, in this order, and may
 * be missing: a spec is read by daemons and launchers of other builds than wrote it. */
static void put_more(struct takt_str *out, const struct takt_attempt_spec *spec)
{
	if (spec->ranks) {
		takt_record_put_u64(out, "ranks", spec->ranks);
		takt_record_put_u64(out, "rank_prefix", spec->rank_prefix);
		takt_record_put_u64(out, "master_port", spec->master_port);
	}
	if (spec->pty)
		takt_record_put_u64(out, "pty", 1);
	if (spec->cleanup)
		put_strings(out, "cleanupc", "cleanup", spec->cleanup);
	if (spec->progress)
		takt_record_put_u64(out, "progress", 1);
	if (spec->output_limit)
		takt_record_put_u64(out, "output_limit", spec->output_limit);
	if (spec->output)
		takt_record_put_text(out, "output", spec->output);
}

static void put_stage(struct takt_str *out, const struct takt_attempt_spec *spec)
{
	if (!spec->stage_lease_ms)
		return;
	takt_record_put_u64(out, "stage_lease_ms", spec->stage_lease_ms);
	if (!spec->prefetch)
		return;
	takt_record_put_u64(out, "prefetch_limit_ms", spec->prefetch_limit_ms);
	put_strings(out, "prefetchc", "prefetch", spec->prefetch);
}

static void put_hook(struct takt_str *out, const struct takt_attempt_spec *spec)
{
	if (!spec->hook_event[0])
		return;
	takt_record_put_text(out, "hook_event", spec->hook_event);
	takt_record_put_u64(out, "hook_limit_ms", spec->hook_limit_ms);
	takt_record_put_u64(out, "hook_log", spec->hook_log);
}

int takt_attempt_spec_format(const struct takt_attempt_spec *spec, struct takt_str *out)
{
	takt_record_begin(out, "takt-spec");
	takt_record_put_u64(out, "job", spec->job_id);
	takt_record_put_u64(out, "attempt", spec->attempt);
	takt_record_put_text(out, "id", spec->id);
	if (spec->secret[0])
		takt_record_put_text(out, "secret", spec->secret);
	takt_record_put_u64(out, "grace_ms", spec->grace_ms);
	takt_record_put_text(out, "cgroup", spec->cgroup);
	takt_record_put_u64(out, "cpu_count", spec->cpu_count);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(spec->cpus); i++)
		takt_record_put_u64(out, "cpus", spec->cpus[i]);
	takt_record_put_text(out, "cwd", spec->cwd);
	put_strings(out, "argc", "arg", spec->argv);
	put_strings(out, "envc", "env", spec->env);
	put_more(out, spec);
	put_stage(out, spec);
	put_hook(out, spec);
	return takt_record_end(out);
}

/* NULL when damaged or out of memory; then record->rc says which. */
static char **get_strings(struct takt_record *record, const char *count_key, const char *key,
			  uint64_t min, uint64_t max)
{
	size_t n = takt_record_u64(record, count_key, min, max);
	char **strings;

	if (record->rc < 0)
		return NULL;
	strings = takt_calloc(n + 1, sizeof(*strings));
	if (!strings) {
		record->rc = -ENOMEM;
		return NULL;
	}
	for (size_t i = 0; i < n && record->rc == 0; i++)
		strings[i] = takt_record_dup(record, key);
	if (record->rc == 0)
		return strings;
	free_strings(strings);
	return NULL;
}

static void get_more(struct takt_record *record, struct takt_attempt_spec *spec)
{
	if (takt_record_next_is(record, "ranks")) {
		spec->ranks = (uint32_t)takt_record_u64(record, "ranks", 1, TAKT_ATTEMPT_MAX_RANKS);
		spec->rank_prefix = takt_record_u64(record, "rank_prefix", 0, 1);
		spec->master_port = (uint32_t)takt_record_u64(record, "master_port", 1, UINT16_MAX);
	}
	if (takt_record_next_is(record, "pty"))
		spec->pty = takt_record_u64(record, "pty", 1, 1);
	if (takt_record_next_is(record, "cleanupc"))
		spec->cleanup =
			get_strings(record, "cleanupc", "cleanup", 1, TAKT_ATTEMPT_MAX_ARGS);
	if (takt_record_next_is(record, "progress"))
		spec->progress = takt_record_u64(record, "progress", 1, 1);
	if (takt_record_next_is(record, "output_limit"))
		spec->output_limit =
			takt_record_u64(record, "output_limit", 1, TAKT_ATTEMPT_MAX_OUTPUT);
	if (takt_record_next_is(record, "output"))
		spec->output = takt_record_dup(record, "output");
}

static void get_stage(struct takt_record *record, struct takt_attempt_spec *spec)
{
	if (takt_record_next_is(record, "stage_lease_ms"))
		spec->stage_lease_ms =
			(uint32_t)takt_record_u64(record, "stage_lease_ms", 1, UINT32_MAX);
	if (!spec->stage_lease_ms || !takt_record_next_is(record, "prefetch_limit_ms"))
		return;
	spec->prefetch_limit_ms =
		(uint32_t)takt_record_u64(record, "prefetch_limit_ms", 0, UINT32_MAX);
	spec->prefetch = get_strings(record, "prefetchc", "prefetch", 1, TAKT_ATTEMPT_MAX_ARGS);
}

static void get_hook(struct takt_record *record, struct takt_attempt_spec *spec)
{
	if (!takt_record_next_is(record, "hook_event"))
		return;
	takt_record_text(record, "hook_event", spec->hook_event, sizeof(spec->hook_event));
	spec->hook_limit_ms = (uint32_t)takt_record_u64(record, "hook_limit_ms", 1, UINT32_MAX);
	spec->hook_log = (uint32_t)takt_record_u64(record, "hook_log", 0, UINT32_MAX);
}

/* The fields that it begins with. */
static void get_name(struct takt_record *record, struct takt_attempt_spec *spec)
{
	spec->job_id = takt_record_u64(record, "job", 1, UINT64_MAX);
	spec->attempt = (uint32_t)takt_record_u64(record, "attempt", 1, UINT32_MAX);
	takt_record_text(record, "id", spec->id, sizeof(spec->id));
	if (takt_record_next_is(record, "secret"))
		takt_record_text(record, "secret", spec->secret, sizeof(spec->secret));
}

int takt_attempt_spec_parse(const char *text, size_t len, struct takt_attempt_spec *ret)
{
	struct takt_attempt_spec spec = {0};
	struct takt_record record;
	int rc = takt_record_open(text, len, "takt-spec", &record);

	if (rc < 0)
		return rc;
	get_name(&record, &spec);
	spec.grace_ms = (uint32_t)takt_record_u64(&record, "grace_ms", 0, UINT32_MAX);
	takt_record_text(&record, "cgroup", spec.cgroup, sizeof(spec.cgroup));
	spec.cpu_count = (uint32_t)takt_record_u64(&record, "cpu_count", 0, UINT32_MAX);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(spec.cpus); i++)
		spec.cpus[i] = takt_record_u64(&record, "cpus", 0, UINT64_MAX);
	spec.cwd = takt_record_dup(&record, "cwd");
	spec.argv = get_strings(&record, "argc", "arg", 1, TAKT_ATTEMPT_MAX_ARGS);
	spec.env = get_strings(&record, "envc", "env", 1, TAKT_ATTEMPT_MAX_ENV);
	get_more(&record, &spec);
	get_stage(&record, &spec);
	get_hook(&record, &spec);
	rc = takt_record_done(&record);
	if (rc == 0 && takt_attempt_spec_check(&spec, NULL) < 0)
		rc = -TAKT_E_CORRUPT;
	if (rc < 0) {
		takt_attempt_spec_fini(&spec);
		return rc;
	}
	*ret = spec;
	return 0;
}

int takt_attempt_read_mark(const struct takt_sys *sys, int attempt_dirfd,
			   struct takt_attempt_mark *ret)
{
	struct takt_attempt_spec spec = {0};
	TAKT_CLEANUP(freep) char *text = NULL;
	struct takt_record record;
	size_t len;
	int rc = takt_attempt_read_text(sys, attempt_dirfd, "spec", TAKT_ATTEMPT_MAX_SPEC, &text,
					&len, NULL);

	if (rc == 0)
		rc = takt_record_open(text, len, "takt-spec", &record);
	if (rc == 0)
		get_name(&record, &spec);
	if (rc == 0)
		rc = record.rc;
	if (rc < 0)
		return rc == -ENOENT || rc == -TAKT_E_CORRUPT || rc == -TAKT_E_VERSION ? 0 : rc;
	if (spec.secret[0]) {
		snprintf(ret->of, sizeof(ret->of), "%" PRIu64 ".%" PRIu32 ".%s", spec.job_id,
			 spec.attempt, spec.secret);
		ret->all = true;
	}
	return 0;
}

static int read_file(const struct takt_sys *sys, int attempt_dirfd, const char *name,
		     struct takt_attempt_spec *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;
	int rc;

	rc = takt_attempt_read_text(sys, attempt_dirfd, name, TAKT_ATTEMPT_MAX_SPEC, &text, &len,
				    err);
	if (rc < 0)
		return rc;
	rc = takt_attempt_spec_parse(text, len, ret);
	return rc < 0 ? takt_err_set(err, rc, "the %s of the attempt is not a sound record", name)
		      : 0;
}

int takt_attempt_read_spec(const struct takt_sys *sys, int attempt_dirfd,
			   struct takt_attempt_spec *ret, struct takt_err *err)
{
	return read_file(sys, attempt_dirfd, "spec", ret, err);
}

int takt_attempt_read_go(const struct takt_sys *sys, int attempt_dirfd,
			 struct takt_attempt_spec *ret, struct takt_err *err)
{
	return read_file(sys, attempt_dirfd, "go", ret, err);
}
