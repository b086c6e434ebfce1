/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the machine's CPUs at a ceiling that an administrator asked for, or as they were found:
 * under the journal, the lock and the guard of the GPUs, in a record of its own.
 *
 * The kernel answers at once, so nothing is ever under way here: what can be done is done in the
 * call, and what could not be put back is tried again. The ceiling has a time to live.
 */
#ifndef TAKT_ACTUATE_KEEPER_CPU_H
#define TAKT_ACTUATE_KEEPER_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "actuate/cpufreq.h"
#include "base/timetypes.h"

struct takt_keeper_cpu {
	const char *sysfs_root;	   /* borrowed; NULL: "/sys" */
	uint32_t max_mhz;	   /* wished; 0 = as found */
	struct takt_boot expires;  /* of the wish */
	bool changed;		   /* perhaps not as found */
	struct takt_cpufreq found; /* changed: before takt did it */
	uint32_t failures;	   /* in a row, to put them back */
	struct takt_boot next;	   /* not to be tried before */
	char note[160];
};

struct takt_keeper;

/* A ceiling until ttl_ns from now, or 0: as they were found. The same again renews it. -EACCES and
 * -EPERM say what an administrator would run; after any failure the CPUs are put back. */
int takt_keeper_cpu_set(struct takt_keeper *keeper, uint32_t max_mhz, uint64_t ttl_ns,
			struct takt_boot now, struct takt_err *err);

/* Parts of the functions of the same name in keeper.h. */
struct takt_journal_record;
int takt_keeper_cpu_recover(struct takt_keeper *keeper, const struct takt_journal_record *record,
			    struct takt_boot now, struct takt_err *err);
struct takt_boot takt_keeper_cpu_step(struct takt_keeper *keeper, struct takt_boot now);

#endif
