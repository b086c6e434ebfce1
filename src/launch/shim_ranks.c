/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks: the processes of a job that trains on several GPUs, started as torchrun would start them
 * on one machine. Each sees all GPUs of the job and knows by its number which one is its own. They
 * find each other at MASTER_ADDR:MASTER_PORT. One that fails leaves the others waiting for it in a
 * collective call, so its end is the end of all.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch/shim_job.h"

enum {
	RANK_VARIABLES = 6,
	VARIABLE_MAX = 40,
};

struct takt_shim_rank *takt_shim_rank_of(const struct takt_shim *shim, pid_t pid)
{
	for (uint32_t i = 0; i < shim->rank_count; i++)
		if (shim->ranks[i].pid == pid)
			return &shim->ranks[i];
	return NULL;
}

static void say_which(struct takt_shim *shim, uint32_t rank, int status)
{
	char *message = shim->end.message;
	const size_t size = sizeof(shim->end.message);

	if (WIFSIGNALED(status))
		snprintf(message, size, "rank %u was killed by signal %d (%s)", rank,
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(message, size, "rank %u failed with exit status %d", rank,
			 WEXITSTATUS(status));
	takt_shim_note(shim, "%s", message);
}

static void take_end(struct takt_shim *shim, const struct takt_shim_rank *rank, int status,
		     bool explain)
{
	struct takt_attempt_status *end = &shim->end;

	if (takt_shim_hear_report(shim))
		return;
	end->exit_kind = WIFSIGNALED(status) ? TAKT_EXIT_SIGNALED : TAKT_EXIT_EXITED;
	end->exit_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	if (explain)
		say_which(shim, (uint32_t)(rank - shim->ranks), status);
}

bool takt_shim_rank_ended(struct takt_shim *shim, struct takt_shim_rank *rank, int status,
			  bool asked)
{
	bool failed = WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
	bool first = failed && !shim->rank_failed;

	rank->ended = true;
	shim->ranks_left--;
	if (first || (shim->ranks_left == 0 && !shim->rank_failed))
		take_end(shim, rank, status, failed && !asked && shim->spec.ranks > 0);
	shim->rank_failed |= failed;
	return first;
}

static bool same_name(const char *entry, const char *other)
{
	size_t len = strcspn(other, "=");

	return strncmp(entry, other, len + 1) == 0;
}

static bool is_ours(const char *entry, char ours[RANK_VARIABLES][VARIABLE_MAX])
{
	for (size_t i = 0; i < RANK_VARIABLES; i++)
		if (same_name(entry, ours[i]))
			return true;
	return false;
}

static void name_place(const struct takt_attempt_spec *spec, uint32_t rank,
		       char ret[RANK_VARIABLES][VARIABLE_MAX])
{
	snprintf(ret[0], VARIABLE_MAX, "RANK=%u", rank);
	snprintf(ret[1], VARIABLE_MAX, "LOCAL_RANK=%u", rank);
	snprintf(ret[2], VARIABLE_MAX, "WORLD_SIZE=%u", spec->ranks);
	snprintf(ret[3], VARIABLE_MAX, "LOCAL_WORLD_SIZE=%u", spec->ranks);
	snprintf(ret[4], VARIABLE_MAX, "MASTER_ADDR=127.0.0.1");
	snprintf(ret[5], VARIABLE_MAX, "MASTER_PORT=%u", spec->master_port);
}

int takt_shim_rank_env(struct takt_shim *shim, uint32_t rank, struct takt_err *err)
{
	struct takt_attempt_spec *spec = &shim->spec;
	char ours[RANK_VARIABLES][VARIABLE_MAX];
	size_t n = 0, kept = 0;
	char **env;

	if (spec->ranks == 0)
		return 0;
	while (spec->env[n])
		n++;
	env = takt_calloc(n + RANK_VARIABLES + 1, sizeof(*env));
	if (!env)
		return takt_err_set(err, -ENOMEM, "environment of rank %u", rank);
	name_place(spec, rank, ours);
	for (size_t i = 0; i < n; i++)
		if (!is_ours(spec->env[i], ours))
			env[kept++] = spec->env[i];
	for (size_t i = 0; i < RANK_VARIABLES; i++)
		if (!(env[kept++] = takt_strdup(ours[i])))
			return takt_err_set(err, -ENOMEM, "environment of rank %u", rank);
	spec->env = env; /* the process becomes another program: nothing is given back */
	return 0;
}
