/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of other tools. Where one means just what a verb or an option of takt does it stands for
 * that; where it could mean several things, or its options mean others, it is answered with the
 * commands.
 */
#include "cli/synonyms.h"

#include <stdio.h>
#include <string.h>

#include "config/suggest.h"

static const struct {
	const char *word;
	const char *verb;    /* NULL = no single one */
	const char *instead; /* then: which commands */
} verbs[] = {
	{"ls", "queue", NULL},
	{"ps", "queue", NULL},
	{"list", "queue", NULL},
	{"squeue", "queue", NULL},
	{"qstat", "queue", NULL},
	{"bjobs", "queue", NULL},
	{"kill", "cancel", NULL},
	{"rm", "cancel", NULL},
	{"stop", "cancel", NULL},
	{"del", "cancel", NULL},
	{"delete", "cancel", NULL},
	{"remove", "cancel", NULL},
	{"scancel", "cancel", NULL},
	{"qdel", "cancel", NULL},
	{"bkill", "cancel", NULL},
	{"stat", "status", NULL},
	{"gpus", "status", NULL},
	{"sinfo", "status", NULL},
	{"smi", "status", NULL},
	{"nvidia-smi", "status", NULL},
	{"nvtop", "top", NULL},
	{"log", "logs", NULL},
	{"sacct", "jobs", NULL},
	{"describe", "show", NULL},
	{"sattach", "attach", NULL},
	{"why", "explain", NULL},
	{"setup", "init", NULL},
	{"install", "init", NULL},
	{"edit", "update", NULL},
	{"modify", "update", NULL},
	{"watch", NULL,
	 "'takt top' shows the machine live, 'takt status --watch' its table, 'takt logs -f JOB' "
	 "what a job writes"},
	{"info", NULL, "'takt status' tells about the GPUs, 'takt show JOB' about a job"},
	{"get", NULL, "'takt queue' lists jobs, 'takt show JOB' has one, 'takt status' the GPUs"},
	{"job", NULL, "'takt show JOB' has one job, 'takt jobs' lists them"},
	{"free", NULL, "'takt status' shows which GPUs are free"},
	{"tail", NULL, "'takt logs -f JOB' follows what a job writes"},
	{"start", NULL,
	 "'takt run' and 'takt submit' start a command, 'takt release JOB' lets a held job start"},
	{"add", NULL, "'takt submit -- COMMAND' hands in a job"},
	{"sbatch", NULL, "'takt submit --sbatch -- ./SCRIPT' hands in a script of Slurm"},
	{"qsub", NULL, "'takt submit -- ./SCRIPT' hands in a script"},
	{"bsub", NULL, "'takt submit -- ./SCRIPT' hands in a script"},
	{"srun", NULL, "'takt run -n GPUS -- COMMAND' waits for GPUs and runs there"},
	{"salloc", NULL, "'takt run -n GPUS -- bash' waits for GPUs and opens a shell there"},
	{"scontrol", NULL,
	 "'takt show JOB', 'takt update JOB', 'takt hold JOB' and 'takt release JOB' do that"},
	{"pause", NULL,
	 "'takt hold JOB' keeps a waiting job from starting, 'takt freeze JOB' stops a running "
	 "one"},
	{"suspend", NULL, "'takt freeze JOB' stops a running job, 'takt thaw JOB' lets it go on"},
	{"resume", NULL,
	 "'takt thaw JOB' lets a frozen job go on, 'takt release JOB' lets a held one start"},
	{"rerun", "again", NULL},
	{"resubmit", "again", NULL},
	{"retry", "again", NULL},
	{"restart", NULL, "'takt requeue JOB' ends a running job and runs it again"},
	{"exec", NULL,
	 "'takt run -- COMMAND' runs one, 'takt attach JOB' goes into a job's terminal"},
};

static const char *verb_name_at(const void *ctx, size_t i)
{
	const struct takt_verb *verb = takt_verb_at(i, NULL);

	return verb ? verb->name : NULL;
}

const struct takt_verb *takt_verb_meant(const char *name, struct takt_err *err)
{
	const struct takt_verb *verb = takt_verb_find(name);
	const char *near;

	if (verb)
		return verb;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].word, name) != 0)
			continue;
		if (verbs[i].verb)
			return takt_verb_find(verbs[i].verb);
		takt_err_set(err, -TAKT_E_USAGE, "there is no verb '%s'; %s", name,
			     verbs[i].instead);
		return NULL;
	}
	near = takt_suggest(name, verb_name_at, NULL);
	takt_err_set(err, -TAKT_E_USAGE, "there is no verb '%.60s'%s%s%s; 'takt help' lists them",
		     name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	return NULL;
}
