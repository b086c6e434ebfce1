/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe a job, of submit and of run. */
#ifndef TAKT_CLI_JOB_OPTIONS_H
#define TAKT_CLI_JOB_OPTIONS_H

#include "cli/verb.h"

/* Entries of an option table, in groups; the verb adds its own and the end. */
#define TAKT_JOB_OPTIONS                                                                           \
	{"gpus", 'n', "GPUS",                                                                      \
	 "GPUs, best linked (default 1; 0 for none); 0.5 for half of one, "                        \
	 "2x0.25 for a quarter of each of two",                                                    \
	 "resources"},                                                                             \
		{"gpu-index", 0, "LIST",                                                           \
		 "these GPUs of the machine and no others (3; 0,2-3), or --gpus of them"},         \
		{"mig", 0, "PROFILE[xN]", "N MIG instances such as 1g.10gb instead of GPUs"},      \
		{"gpu-mem", 0, "SIZE", "each of its GPUs has so much memory at least"},            \
		{"cpus", 'c', "N", "CPUs that are counted as its own (2, 0.5)"},                   \
		{"mem", 'm', "SIZE", "memory that is counted as its own (512M, 16G)"},             \
		{"visible", 0, "index|uuid", "what CUDA_VISIBLE_DEVICES holds (default index)"},   \
		{"use-outside", 0, NULL, "may share GPUs with processes that takt did not start"}, \
		{"wait-outside", 0, NULL,                                                          \
		 "wait for the processes that takt did not start to leave its GPUs"},              \
		{"idle-release", 0, "TIME", "end it when its GPUs have done nothing for so long"}, \
		{"priority", 'p', "N", "-1000 to 1000; above 0 for administrators (default 0)",    \
		 "when"},                                                                          \
		{"hold", 0, NULL, "held until takt release"},                                      \
		{"begin", 0, "TIME",                                                               \
		 "not before: 18:00, tomorrow, 2026-12-24T18:00, or 2h from now"},                 \
		{"deadline", 0, "TIME", "wanted done by then, written as for --begin"},            \
		{"after", 0, "JOB[:ok|any]",                                                       \
		 "after that job is done, or :any has ended; may be repeated"},                    \
		{"time-limit", 't', "TIME",                                                        \
		 "stop it after it has run so long (1h30m, 1:30:00; 90 is minutes)"},              \
		{"estimate", 0, "TIME", "how long it will run, as far as you know"},               \
		{"tenant", 0, "TENANT", "whose share it counts against (lab/vision)"},             \
		{"name", 0, "NAME", "of the job (default: the command's)",                         \
		 "what it is and where it runs"},                                                  \
		{"tag", 0, "TAG,...", "words to find the job by; may be repeated"},                \
		{"cwd", 'C', "DIR", "run there (default: here)"},                                  \
		{"env", 'e', "NAME=VALUE", "add to or change the environment; may be repeated"},   \
		{"no-env", 0, NULL, "without this environment: only what --env says"},             \
		{"output", 'o', "FILE",                                                            \
		 "write what it prints there, from its directory (%j: job, %a: index in array)"},  \
		{"hook", 0, "CMD", "a shell command run at its events, named by TAKT_EVENT"},      \
		{"grace", 0, "TIME", "from SIGTERM to SIGKILL when cancelled (default 30s)"},      \
		{"ranks", 0, "[=N]",                                                               \
		 "start N processes, else one a GPU, with RANK, WORLD_SIZE and the like"},         \
		{"rank-prefix", 0, NULL, "each line of their output begins with [rank]"},          \
		{"stage", 0, NULL, "make it ready while the job before it still runs"},            \
		{"prefetch", 0, "CMD", "a shell command run before its turn; may run twice"},      \
		{"clock", 0, "MHZ|profile",                                                        \
		 "SM clock at most so high; or clock and limit as takt tune kept for its name",    \
		 "clocks and power"},                                                              \
		{"clock-lock", 0, "MHZ", "SM clock exactly so high"},                              \
		{"power-limit", 0, "WATTS",                                                        \
		 "each of its GPUs may draw at most so much (300W); it only lowers their limit"},  \
		{"max-slowdown", 0, "PERCENT",                                                     \
		 "how much longer it may take for the sake of energy (3%)"},                       \
		{"slo", 0, "pN=TIME", "latency that it has to hold as a service (p99=50ms)"},      \
		{"clock-policy", 0, "GOVERNOR[:PARAM=N,...]",                                      \
		 "who chooses its clocks (default: assured with --max-slowdown, slo with --slo)"}, \
		{"requeue", 0, NULL, "run it again if it is lost or interrupted",                  \
		 "making room, and running again"},                                                \
		{"retries", 0, "N", "run it again up to N times if it fails, after a pause"},      \
		{"retry-backoff", 0, "TIME",                                                       \
		 "the pause before the first retry, then doubled (default 1s)"},                   \
		{"preemptible", 0, NULL,                                                           \
		 "may be ended for a job that goes first, and is then run again"},                 \
		{"freezable", 0, NULL,                                                             \
		 "may be frozen for it instead where both fit into the GPU memory (--gpu-mem)"},   \
		{"checkpoint-signal", 0, "SIGNAL",                                                 \
		 "sent first when the job has to go, before SIGTERM (USR1)"},                      \
		{"checkpoint-grace", 0, "TIME",                                                    \
		 "from the checkpoint signal to SIGTERM (default 1m)"},                            \
		{"checkpoint-dir", 0, "DIR",                                                       \
		 "kept over restarts; the job finds it in TAKT_CHECKPOINT_DIR"},                   \
		{"container", 0, "IMAGE", "run the command in a container of that image",          \
		 "containers"},                                                                    \
		{"container-arg", 0, "ARG", "one more argument for its runtime; may be repeated"}, \
	{                                                                                          \
		"container-runtime", 0, "NAME",                                                    \
			"podman, docker or apptainer (default: the first that there is)"           \
	}

/* Ends in takt_jobspec_fini either way. */
int takt_job_options_read(const struct takt_cli *cli, struct takt_jobspec *ret,
			  struct takt_err *err);

/* What the options say, beyond command, directory and environment; unchecked. Ends in
 * takt_jobspec_fini either way. */
int takt_job_options_apply(const struct takt_cli *cli, struct takt_jobspec *spec,
			   struct takt_err *err);

/* Of --env and --no-env into spec->env, which goes with the spec. */
int takt_job_env_read(const struct takt_cli *cli, struct takt_jobspec *spec, struct takt_err *err);

/* If told to, this process's environment, and in the place of those of the same name `more`
 * ("NAME=value"). */
int takt_job_env(const char *const *more, size_t count, bool inherit, char ***ret,
		 struct takt_err *err);
void takt_job_env_free(char **env); /* takes NULL */

/* "12", "12:ok", "12:any" */
int takt_job_after_parse(const char *text, struct takt_spec_after *ret, struct takt_err *err);

/* job_terms.c: parts of GPUs, what may be done to the job, how it is started. */
int takt_job_terms_read(const struct takt_cli *cli, struct takt_jobspec *spec,
			struct takt_err *err);

/* `wanted`, from here if it is not absolute. *ret is the caller's. */
int takt_job_path(const char *wanted, char **ret, struct takt_err *err);

/* 0, or the exit status (126, 127) with which a shell would refuse the command; then *err says why.
 * The job's own exec decides in the end: this only spares a wait in the queue for a typing error.
 */
int takt_job_options_find_command(const struct takt_jobspec *spec, struct takt_err *err);

#endif
