/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of a job from options: which parts of GPUs, what may be done to it for others, how it
 * is started. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/timetext.h"
#include "cli/job_options.h"
#include "cli/units.h"
#include "cli/when.h"

enum {
	MAX_GPUS = 64,
	WHOLE_GPU = 1000, /* thousandths */
	LAST_NAMED_SIGNAL = 31,
};

static const uint64_t max_day_ms = 24ull * 60 * 60 * 1000;
static const uint64_t max_time_ms = 366ull * 24 * 60 * 60 * 1000;

static int no_memory(struct takt_err *err)
{
	return takt_err_set(err, -ENOMEM, "no memory for the job's description");
}

/* "2x0.25": 2 and 250; "0.5": 1 and 500; "3", and as Slurm's --gres has it "gpu:3": 3 and 0. */
static bool parse_gpus(const char *text, uint32_t *ret_gpus, uint32_t *ret_milli)
{
	const char *times = strchr(text, 'x');
	unsigned long long gpus = 1;
	char count[8] = "";
	uint64_t milli;

	if (strncmp(text, "gpu:", 4) == 0)
		text += 4;
	if (!times && takt_parse_u64(text, 0, MAX_GPUS, &gpus) == 0) {
		*ret_gpus = (uint32_t)gpus;
		*ret_milli = 0;
		return true;
	}
	if (times && (size_t)(times - text) < sizeof(count))
		memcpy(count, text, (size_t)(times - text));
	if ((times && takt_parse_u64(count, 1, MAX_GPUS, &gpus) < 0) ||
	    !takt_cli_parse_milli(times ? times + 1 : text, &milli) || milli == 0 ||
	    milli > WHOLE_GPU)
		return false;
	*ret_gpus = (uint32_t)gpus;
	*ret_milli = milli == WHOLE_GPU ? 0 : (uint32_t)milli;
	return true;
}

static int read_gpus(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "gpus");

	if (!text || parse_gpus(text, &spec->gpus, &spec->gpu_milli))
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'--gpus' must be a whole number from 0 to %d, a share such as 0.5, or "
			    "shares of several such as 2x0.25, not '%.40s'",
			    MAX_GPUS, text);
}

/* As many as it names, where it does not say how many of them. */
static int read_indices(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "gpu-index");

	if (!text)
		return 0;
	if (strcmp(text, "all") == 0 ||
	    takt_mask_parse(text, MAX_GPUS, &spec->gpu_indices, NULL) < 0)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"'--gpu-index' must be a list of GPUs such as 0,2-3, each named "
			"once and counted from 0, not '%.40s'",
			text);
	if (!takt_cli_has(cli, "gpus") && !spec->mig[0])
		spec->gpus = (uint32_t)__builtin_popcountll(spec->gpu_indices);
	return 0;
}

/* "1g.10gb", "1g.10gbx2" */
static int read_mig(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "mig"), *times = text ? strrchr(text, 'x') : NULL;
	unsigned long long count = 1;
	size_t len;

	if (!text)
		return 0;
	if (takt_cli_has(cli, "gpus"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--mig' says how many instances itself: '--gpus' cannot be "
				    "given with it");
	if (times && takt_parse_u64(times + 1, 1, MAX_GPUS, &count) < 0)
		times = NULL;
	len = times ? (size_t)(times - text) : strlen(text);
	if (len == 0 || len >= sizeof(spec->mig))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--mig' must be a profile such as 1g.10gb, or 1g.10gbx2 for "
				    "two instances, not '%.40s'",
				    text);
	memcpy(spec->mig, text, len);
	spec->gpus = (uint32_t)count;
	return 0;
}

/* "USR1", "SIGUSR1", "10" */
static bool parse_signal(const char *text, int32_t *ret)
{
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
	unsigned long long number;

	if (takt_parse_u64(text, 1, SIGRTMAX, &number) == 0) {
		*ret = (int32_t)number;
		return true;
	}
	for (int sig = 1; sig <= LAST_NAMED_SIGNAL; sig++) {
		const char *known = sigabbrev_np(sig);

		if (known && strcmp(known, name) == 0) {
			*ret = sig;
			return true;
		}
	}
	return false;
}

static int read_checkpoint(const struct takt_cli *cli, struct takt_jobspec *spec,
			   struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "checkpoint-signal");
	const char *dir = takt_cli_value(cli, "checkpoint-dir");
	uint64_t grace_ms = 0;
	int rc;

	spec->preemptible = takt_cli_has(cli, "preemptible");
	spec->freezable = takt_cli_has(cli, "freezable");
	if (text && !parse_signal(text, &spec->checkpoint_signal))
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"'--checkpoint-signal' must be a signal such as USR1 or 10, not "
			"'%.40s'",
			text);
	rc = takt_cli_duration_ms(cli, "checkpoint-grace", max_day_ms, 0, &grace_ms, err);
	if (rc < 0)
		return rc;
	if (takt_cli_has(cli, "checkpoint-grace") && !text)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--checkpoint-grace' needs '--checkpoint-signal'");
	spec->checkpoint_grace_ms = (uint32_t)grace_ms;
	return dir ? takt_job_path(dir, &spec->checkpoint_dir, err) : 0;
}

static int read_times(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *deadline = takt_cli_value(cli, "deadline");
	struct timespec now;
	int rc = takt_cli_duration_ms(cli, "estimate", max_time_ms, 0, &spec->estimate_ms, err);

	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "idle-release", max_time_ms, 0,
					  &spec->idle_release_ms, err);
	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "retry-backoff", max_day_ms,
					  TAKT_SPEC_RETRY_BACKOFF_MS, &spec->retry_backoff_ms, err);
	if (rc < 0 || !deadline)
		return rc;
	clock_gettime(CLOCK_REALTIME, &now);
	return takt_when_parse(deadline, now.tv_sec * 1000 + now.tv_nsec / 1000000,
			       &spec->deadline_ms, err);
}

/* "a,b", and the same of each repetition. */
static int read_tags(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	for (size_t i = 0; i < cli->given_count; i++) {
		size_t len = strlen(spec->tags), room = sizeof(spec->tags) - len;

		if (strcmp(cli->given[i].option->name, "tag") != 0)
			continue;
		if (snprintf(spec->tags + len, room, "%s%s", len ? "," : "", cli->given[i].value) >=
		    (int)room)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--tag': together at most %zu bytes of tags",
					    sizeof(spec->tags) - 1);
	}
	return 0;
}

static int read_labels(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	const char *tenant = takt_cli_value(cli, "tenant");
	const char *runtime = takt_cli_value(cli, "container-runtime");

	if (tenant && (!tenant[0] || !takt_strcpy(spec->tenant, sizeof(spec->tenant), tenant)))
		return takt_err_set(err, -TAKT_E_USAGE, "'--tenant' must have 1 to %zu bytes",
				    sizeof(spec->tenant) - 1);
	if (runtime && (!runtime[0] || !takt_strcpy(spec->container_runtime,
						    sizeof(spec->container_runtime), runtime)))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--container-runtime' must be podman, docker or apptainer, "
				    "not '%.40s'",
				    runtime);
	return read_tags(cli, spec, err);
}

static int read_ranks(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	int64_t ranks = 0;
	int rc = takt_cli_number(cli, "ranks", 1, TAKT_SPEC_MAX_RANKS, 0, &ranks, err);

	if (rc < 0)
		return rc;
	if (takt_cli_has(cli, "ranks") && !takt_cli_value(cli, "ranks")) {
		if (spec->gpus == 0)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "'--ranks' without GPUs needs a number: --ranks=4");
		ranks = spec->gpus;
	}
	spec->ranks = (uint32_t)ranks;
	spec->rank_prefix = takt_cli_has(cli, "rank-prefix");
	spec->pty = takt_cli_has(cli, "pty");
	spec->stage = takt_cli_has(cli, "stage");
	spec->wait_outside = takt_cli_has(cli, "wait-outside");
	return 0;
}

static int copy_value(const struct takt_cli *cli, const char *option, char **ret,
		      struct takt_err *err)
{
	const char *value = takt_cli_value(cli, option);

	*ret = value ? takt_strdup(value) : NULL;
	return value && !*ret ? no_memory(err) : 0;
}

/* Copies of `words`, which end in NULL. */
static int copy_words(const char *const *words, char ***ret, struct takt_err *err)
{
	size_t n = 0;

	while (words[n])
		n++;
	*ret = takt_calloc(n + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < n; i++) {
		(*ret)[i] = takt_strdup(words[i]);
		if (!(*ret)[i])
			return no_memory(err);
	}
	return *ret ? 0 : no_memory(err);
}

static int read_container_args(const struct takt_cli *cli, struct takt_jobspec *spec,
			       struct takt_err *err)
{
	const char *words[TAKT_CLI_MAX_GIVEN + 1];
	size_t n = 0;

	for (size_t i = 0; i < cli->given_count; i++)
		if (strcmp(cli->given[i].option->name, "container-arg") == 0)
			words[n++] = cli->given[i].value;
	words[n] = NULL;
	return n > 0 ? copy_words(words, &spec->container_args, err) : 0;
}

static int read_commands(const struct takt_cli *cli, struct takt_jobspec *spec,
			 struct takt_err *err)
{
	const char *prefetch = takt_cli_value(cli, "prefetch");
	const char *const shell[] = {"/bin/sh", "-c", prefetch, NULL};
	int rc = copy_value(cli, "container", &spec->container, err);

	if (rc == 0)
		rc = read_container_args(cli, spec, err);
	if (rc == 0)
		rc = copy_value(cli, "hook", &spec->hook, err);
	if (rc == 0)
		rc = copy_value(cli, "output", &spec->output, err);
	if (rc == 0 && prefetch)
		rc = copy_words(shell, &spec->prefetch, err);
	return rc;
}

/* "p99=50ms", "p99.9=1s" */
static bool parse_slo(const char *text, uint32_t *ret_us, uint32_t *ret_permille)
{
	const char *equals = strchr(text, '=');
	char percentile[8] = "";
	uint64_t ns = 0;

	if (text[0] != 'p' || !equals || (size_t)(equals - text) > sizeof(percentile))
		return false;
	memcpy(percentile, text + 1, (size_t)(equals - text - 1));
	if (strchr(percentile, '%') || takt_percent_parse(percentile, 999, ret_permille) < 0 ||
	    *ret_permille < 500 || takt_duration_parse(equals + 1, &ns) < 0 ||
	    ns / TAKT_NS_PER_US == 0 || ns / TAKT_NS_PER_US > TAKT_SPEC_MAX_SLO_US)
		return false;
	*ret_us = (uint32_t)(ns / TAKT_NS_PER_US);
	return true;
}

static int read_governed(const struct takt_cli *cli, struct takt_jobspec *spec,
			 struct takt_err *err)
{
	const char *policy = takt_cli_value(cli, "clock-policy");
	const char *slowdown = takt_cli_value(cli, "max-slowdown");
	const char *slo = takt_cli_value(cli, "slo");

	if (policy &&
	    (!policy[0] || !takt_strcpy(spec->clock_policy, sizeof(spec->clock_policy), policy)))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--clock-policy' must be " TAKT_POLICY_FORM ", not '%.60s'",
				    policy);
	if (slowdown && (takt_percent_parse(slowdown, TAKT_SPEC_MAX_SLOWDOWN,
					    &spec->max_slowdown_permille) < 0 ||
			 spec->max_slowdown_permille == 0))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--max-slowdown' must be a percentage from 0.1 to %d such as "
				    "3%%, not '%.40s'",
				    TAKT_SPEC_MAX_SLOWDOWN / 10, slowdown);
	if (slo && !parse_slo(slo, &spec->slo_latency_us, &spec->slo_permille))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--slo' must be a percentile from p50 to p99.9 and a time up "
				    "to half an hour such as p99=50ms, not '%.40s'",
				    slo);
	return 0;
}

int takt_job_terms_read(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err)
{
	static int (*const steps[])(const struct takt_cli *, struct takt_jobspec *,
				    struct takt_err *) = {
		read_gpus,   read_mig,	 read_indices,	read_checkpoint, read_times,
		read_labels, read_ranks, read_commands, read_governed,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(steps) && rc == 0; i++)
		rc = steps[i](cli, spec, err);
	return rc;
}
