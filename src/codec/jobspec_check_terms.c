/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of a job: which parts of GPUs, what may be done to it for others, how it is started. */
#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "base/compiler.h"
#include "codec/jobspec_impl.h"
#include "codec/json.h"

static int check_share(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->gpu_milli == 0 || spec->gpu_milli == SPEC_WHOLE_GPU)
		return 0;
	if (spec->gpu_milli > SPEC_WHOLE_GPU)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'gpu_milli' must be 1 to %d thousandths of a GPU, not "
				    "%u",
				    SPEC_WHOLE_GPU, spec->gpu_milli);
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'gpu_milli' needs at least one GPU in 'gpus'");
	if (spec->clock_ask == TAKT_CLOCK_ASK_LOCK)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'clock_ask': 'lock' needs GPUs held alone, 'gpu_milli' "
				    "shares them");
	return 0;
}

/* Instances may be several of one GPU. */
static int check_indices(const struct takt_jobspec *spec, struct takt_err *err)
{
	uint32_t named = (uint32_t)__builtin_popcountll(spec->gpu_indices);

	if (named == 0)
		return 0;
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'gpu_indices' needs at least one GPU in 'gpus'");
	if (!spec->mig[0] && spec->gpus > named)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"field 'gpu_indices' names %u GPUs, fewer than the %u of 'gpus'", named,
			spec->gpus);
	return 0;
}

/* What stands after the digits at `text`; NULL when there are none. */
static const char *skip_number(const char *text)
{
	size_t len = text ? strspn(text, "0123456789") : 0;

	return len > 0 ? text + len : NULL;
}

/* "1g.10gb", "1g.10gb+me" */
static bool is_profile(const char *text)
{
	const char *rest = skip_number(text);

	rest = rest && strncmp(rest, "g.", 2) == 0 ? skip_number(rest + 2) : NULL;
	if (!rest || strncmp(rest, "gb", 2) != 0)
		return false;
	rest += 2;
	if (*rest == '+')
		rest += 1 + strspn(rest + 1, "abcdefghijklmnopqrstuvwxyz.");
	return !*rest && rest[-1] != '+';
}

static int check_mig(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->mig[0])
		return 0;
	if (!is_profile(spec->mig))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'mig' must be a profile such as 1g.10gb, not '%s'",
				    spec->mig);
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'mig' needs the number of instances in 'gpus'");
	if (spec->gpu_milli && spec->gpu_milli != SPEC_WHOLE_GPU)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "fields 'mig' and 'gpu_milli' exclude each other");
	return 0;
}

static int check_path(const char *field, const char *path, struct takt_err *err)
{
	if (!path || (path[0] == '/' && strlen(path) <= SPEC_MAX_PATH && takt_utf8_valid(path)))
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "field '%s' must be an absolute path of at most %d bytes in UTF-8, not "
			    "'%.80s'",
			    field, SPEC_MAX_PATH, path);
}

static int check_checkpoint(const struct takt_jobspec *spec, struct takt_err *err)
{
	int32_t sig = spec->checkpoint_signal;

	if (sig < 0 || sig > SPEC_MAX_SIGNAL || sig == SIGKILL || sig == SIGSTOP)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'checkpoint_signal' must be the number of a signal that "
				    "a program can catch, 1 to %d, not %d",
				    SPEC_MAX_SIGNAL, sig);
	if (spec->checkpoint_grace_ms && !sig)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'checkpoint_grace_ms' needs 'checkpoint_signal'");
	if (spec->checkpoint_grace_ms > SPEC_MAX_DAY_MS)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'checkpoint_grace_ms' must be at most %d (a day), not "
				    "%u",
				    SPEC_MAX_DAY_MS, spec->checkpoint_grace_ms);
	return check_path("checkpoint_dir", spec->checkpoint_dir, err);
}

static int check_times(const struct takt_jobspec *spec, struct takt_err *err)
{
	int rc = takt_spec_check_time("estimate_ms", spec->estimate_ms, err);

	if (rc == 0)
		rc = takt_spec_check_time("idle_release_ms", spec->idle_release_ms, err);
	if (rc < 0)
		return rc;
	if (spec->deadline_ms < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'deadline_ms' must be milliseconds since 1970, not %lld",
				    (long long)spec->deadline_ms);
	if (spec->deadline_ms && spec->deadline_ms <= spec->begin_ms)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'deadline_ms' must lie after 'begin_ms'");
	if (spec->retry_backoff_ms < 1 || spec->retry_backoff_ms > SPEC_MAX_DAY_MS)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'retry_backoff_ms' must be 1 to %d (a day), not %llu",
				    SPEC_MAX_DAY_MS, (unsigned long long)spec->retry_backoff_ms);
	return 0;
}

/* Names with `separator` between them, none empty. */
static bool are_names(const char *text, char separator)
{
	for (const char *c = text; *c; c++) {
		bool begins = c == text || c[-1] == separator;

		if (*c == separator ? begins : !takt_spec_name_char(*c))
			return false;
	}
	return !*text || text[strlen(text) - 1] != separator;
}

static int check_labels(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!are_names(spec->tenant, '/'))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'tenant' must be such as lab/vision: letters, digits, "
				    "'.', '_', '-' with '/' between names, not '%s'",
				    spec->tenant);
	if (!are_names(spec->tags, ','))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'tags' must be such as night,big: letters, digits, '.', "
				    "'_', '-' with ',' between tags, not '%s'",
				    spec->tags);
	return 0;
}

static int check_ranks(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->ranks > TAKT_SPEC_MAX_RANKS)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'ranks' must be 0 to %d, not %u",
				    TAKT_SPEC_MAX_RANKS, spec->ranks);
	if (spec->rank_prefix && !spec->ranks)
		return takt_err_set(err, -TAKT_E_USAGE, "field 'rank_prefix' needs 'ranks'");
	if (spec->ranks && spec->pty)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'pty': ranks cannot share a terminal");
	if (spec->wait_outside && spec->use_outside)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "fields 'wait_outside' and 'use_outside' exclude each other");
	return 0;
}

static bool is_runtime(const char *name)
{
	static const char *const known[] = {"podman", "docker", "apptainer"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(known); i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return false;
}

static int check_container(const struct takt_jobspec *spec, struct takt_err *err)
{
	const char *image = spec->container;

	if (!image && (spec->container_args || spec->container_runtime[0]))
		return takt_err_set(err, -TAKT_E_USAGE, "field '%s' needs an image in 'container'",
				    spec->container_args ? "container_args" : "container_runtime");
	/* A dash would make an option of it. */
	if (image && (!image[0] || image[0] == '-' || strlen(image) > SPEC_MAX_PATH ||
		      !takt_utf8_valid(image)))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'container' must be an image such as docker.io/library/"
				    "debian:12, not '%.80s'",
				    image);
	if (image && spec->cwd && strpbrk(spec->cwd, ",:\"\n"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'cwd': a directory with ',', ':', '\"' or a newline in "
				    "its name cannot be mounted into a container");
	if (spec->container_runtime[0] && !is_runtime(spec->container_runtime))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'container_runtime' must be podman, docker or "
				    "apptainer, not '%s'",
				    spec->container_runtime);
	return takt_spec_check_texts("container_args", spec->container_args, err);
}

static int check_latency(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (!spec->slo_latency_us != !spec->slo_permille)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "fields 'slo_latency_us' and 'slo_permille' belong together");
	if (spec->slo_latency_us > TAKT_SPEC_MAX_SLO_US)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"field 'slo_latency_us' must be at most %d (half an hour), not %u",
			TAKT_SPEC_MAX_SLO_US, spec->slo_latency_us);
	if (spec->slo_permille && (spec->slo_permille < SPEC_MIN_SLO_PERMILLE ||
				   spec->slo_permille > SPEC_MAX_SLO_PERMILLE))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'slo_permille' must be %d to %d (990 is p99), not %u",
				    SPEC_MIN_SLO_PERMILLE, SPEC_MAX_SLO_PERMILLE,
				    spec->slo_permille);
	return 0;
}

/* Which governors there are is the machine's to say. */
static int check_governed(const struct takt_jobspec *spec, struct takt_err *err)
{
	struct takt_policy_text said;
	const char *policy = spec->clock_policy;
	const char *field = policy[0]			  ? "clock_policy"
			    : spec->max_slowdown_permille ? "max_slowdown_permille"
							  : "slo_latency_us";

	if (!policy[0] && !spec->max_slowdown_permille && !spec->slo_latency_us)
		return check_latency(spec, err);
	if (policy[0] && takt_policy_text_parse(policy, &said) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'clock_policy' must be " TAKT_POLICY_FORM ", not '%s'",
				    policy);
	if (spec->max_slowdown_permille > TAKT_SPEC_MAX_SLOWDOWN)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'max_slowdown_permille' must be 0 to %d, not %u",
				    TAKT_SPEC_MAX_SLOWDOWN, spec->max_slowdown_permille);
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field '%s' needs at least one GPU in 'gpus'", field);
	if (takt_jobspec_sets_gpus(spec))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "fields '%s' and '%s' exclude each other: a governor chooses "
				    "the clock",
				    field, spec->power_limit_mw ? "power_limit_mw" : "clock_ask");
	return check_latency(spec, err);
}

static int check_commands(const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->prefetch && (!spec->prefetch[0] || !spec->prefetch[0][0]))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'prefetch' must have a command as its first entry");
	if (spec->hook && (!spec->hook[0] || !takt_utf8_valid(spec->hook)))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field 'hook' must be a shell command in UTF-8");
	return takt_spec_check_texts("prefetch", spec->prefetch, err);
}

int takt_spec_check_terms(const struct takt_jobspec *spec, struct takt_err *err)
{
	static int (*const checks[])(const struct takt_jobspec *, struct takt_err *) = {
		check_share,	 check_indices,	 check_mig,	 check_checkpoint,
		check_times,	 check_labels,	 check_ranks,	 takt_spec_check_output,
		check_container, check_commands, check_governed,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(checks) && rc == 0; i++)
		rc = checks[i](spec, err);
	return rc;
}
