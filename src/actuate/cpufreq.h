/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits between which the kernel lets CPUs run (cpufreq in sysfs): read, lowered, put back.
 * One limit of each kind a policy, which is a group of CPUs that change together.
 */
#ifndef TAKT_ACTUATE_CPUFREQ_H
#define TAKT_ACTUATE_CPUFREQ_H

#include <stdint.h>

#include "base/err.h"
#include "base/sys.h"

enum {
	TAKT_CPUFREQ_RUNS = 6 /* kinds of CPU in a row that a machine may have */
};

/* Limits of all policies, those next to each other that stand alike together. */
struct takt_cpufreq {
	uint32_t count; /* of runs; 0 = not known */
	struct takt_cpufreq_run {
		uint16_t first, last; /* numbers of policies; there may be gaps */
		uint32_t min_khz, max_khz;
	} runs[TAKT_CPUFREQ_RUNS];
};
_Static_assert(sizeof(struct takt_cpufreq) == 4 + 12 * TAKT_CPUFREQ_RUNS,
	       "no padding: the journal stores it as it is");

/* sysfs_root is "/sys" but in tests. -TAKT_E_UNSUPPORTED: this machine has no cpufreq;
 * -TAKT_E_LIMIT: its policies stand at more limits than could be remembered. */
int takt_cpufreq_read(const struct takt_sys *sys, const char *sysfs_root, struct takt_cpufreq *ret,
		      struct takt_err *err);

/* No policy runs above max_mhz, or above where it stood in `found`; where that is below what the
 * hardware can do, at the lowest that it can. On failure some are changed and some not. */
int takt_cpufreq_cap(const struct takt_sys *sys, const char *sysfs_root,
		     const struct takt_cpufreq *found, uint32_t max_mhz, struct takt_err *err);

/* As they stood in `found`. A policy that is not there any more (a CPU was taken offline) is no
 * failure. Tries all even if one fails. */
int takt_cpufreq_put_back(const struct takt_sys *sys, const char *sysfs_root,
			  const struct takt_cpufreq *found, struct takt_err *err);

#endif
