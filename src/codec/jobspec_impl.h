/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of a job description's fields and their checks share. */
#ifndef TAKT_CODEC_JOBSPEC_IMPL_H
#define TAKT_CODEC_JOBSPEC_IMPL_H

#include "codec/jobspec.h"

enum {
	SPEC_MAX_GPUS = 64,
	SPEC_MAX_CLOCK_MHZ = 10000,
	SPEC_MIN_POWER_MW = 1000, /* a limit in watts is not mistaken for one in milliwatts */
	SPEC_MAX_POWER_MW = 10 * 1000 * 1000,
	SPEC_MAX_CPU_MILLI = 4096 * 1000,
	SPEC_MAX_MEM_MIB = 64 * 1024 * 1024,
	SPEC_MAX_TIME_DAYS = 366,
	SPEC_MAX_DAY_MS = 24 * 60 * 60 * 1000,
	SPEC_MAX_GRACE_MS = SPEC_MAX_DAY_MS,
	SPEC_DEFAULT_GRACE_MS = 30000,
	SPEC_MAX_PATH = 4095, /* bytes */
	SPEC_MAX_SIGNAL = 64,
	SPEC_WHOLE_GPU = 1000, /* of gpu_milli */
	SPEC_MIN_SLO_PERMILLE = 500,
	SPEC_MAX_SLO_PERMILLE = 999,
};

/* Of a name: letters, digits, '.', '_' and '-'. */
bool takt_spec_name_char(char c);
/* NULL is a list of nothing. -TAKT_E_USAGE names the entry. */
int takt_spec_check_texts(const char *field, char *const *texts, struct takt_err *err);
/* 0 to the longest time that is accepted anywhere, a year. */
int takt_spec_check_time(const char *field, uint64_t ms, struct takt_err *err);
int takt_spec_check_output(const struct takt_jobspec *spec, struct takt_err *err);
/* jobspec_check_terms.c: parts of GPUs, what may be done to the job, how it is started. */
int takt_spec_check_terms(const struct takt_jobspec *spec, struct takt_err *err);

#endif
