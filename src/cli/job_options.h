/* SPDX-License-Identifier: Apache-2.0 */
/* The options that describe a job, of submit and of run. */
#ifndef TAKT_CLI_JOB_OPTIONS_H
#define TAKT_CLI_JOB_OPTIONS_H

#include "cli/verb.h"

/* Entries of an option table; the verb adds its own and the end. */
#define TAKT_JOB_OPTIONS                                                                           \
	{"gpus", 'n', "GPUS", "whole GPUs, best linked (default 1; 0 for none)"},                  \
		{"cpus", 'c', "N", "CPUs that are counted as its own (2, 0.5)"},                   \
		{"mem", 'm', "SIZE", "memory that is counted as its own (512M, 16G)"},             \
		{"gpu-mem", 0, "SIZE", "each of its GPUs has so much memory at least"},            \
		{"name", 0, "NAME", "of the job (default: the command's)"},                        \
		{"priority", 'p', "N", "-1000 to 1000; above 0 for administrators (default 0)"},   \
		{"hold", 0, NULL, "held until takt release"},                                      \
		{"clock", 0, "MHZ", "SM clock at most so high"},                                   \
		{"clock-lock", 0, "MHZ", "SM clock exactly so high"},                              \
		{"visible", 0, "index|uuid", "what CUDA_VISIBLE_DEVICES holds (default index)"},   \
		{"requeue", 0, NULL, "run it again if it is lost or interrupted"},                 \
		{"retries", 0, "N", "run it again up to N times if it fails, after a pause"},      \
		{"time-limit", 't', "TIME", "stop it after it has run so long (1h30m)"},           \
		{"begin", 0, "TIME", "not before: 18:00, 2026-12-24T18:00, or 2h from now"},       \
		{"after", 0, "JOB[:ok|any]",                                                       \
		 "after that job is done, or :any has ended; may be repeated"},                    \
		{"use-outside", 0, NULL, "may share GPUs with processes that takt did not start"}, \
		{"grace", 0, "TIME", "from SIGTERM to SIGKILL when cancelled (default 30s)"},      \
		{"env", 'e', "NAME=VALUE", "add to or change the environment; may be repeated"},   \
	{                                                                                          \
		"cwd", 'C', "DIR", "run there (default: here)"                                     \
	}

/* Ends in takt_jobspec_fini either way. */
int takt_job_options_read(const struct takt_cli *cli, struct takt_jobspec *ret,
			  struct takt_err *err);

/* This process's environment and, in the place of those of the same name, `more` ("NAME=value").
 * *ret is owned by the caller, as are its entries. */
int takt_job_env(const char *const *more, size_t count, char ***ret, struct takt_err *err);

/* 0, or the exit status (126, 127) with which a shell would refuse the command; then *err says why.
 * The job's own exec decides in the end: this only spares a wait in the queue for a typing error.
 */
int takt_job_options_find_command(const struct takt_jobspec *spec, struct takt_err *err);

#endif
