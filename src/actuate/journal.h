/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takt has changed on this machine's GPUs, on disk before it is changed.
 *
 * A record says "these knobs of GPU U are about to be set for lease L" and is durable when
 * takt_journal_record returns, which is before the driver is called; "GPU U is back at its
 * baseline" is written after. So whoever comes next, after a kill or a power cut at any moment,
 * finds every GPU that may be changed. It may find one that is not: restoring that one is harmless.
 *
 * The journal also carries the epoch: a number that each new holder of the right to set (mandate.h)
 * raises, and that every setter is checked against.
 *
 * One writer, the holder of the lock; takt_journal_epoch may be asked from any thread.
 */
#ifndef TAKT_ACTUATE_JOURNAL_H
#define TAKT_ACTUATE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "actuate/baseline.h"
#include "actuate/cpufreq.h"
#include "actuate/driver_load.h"
#include "actuate/setting.h"
#include "base/err.h"
#include "base/mig_layout.h"
#include "base/sys.h"

enum {
	TAKT_JOURNAL_PAIRS = 128, /* twice the GPUs of a machine, for those that came and went */
	TAKT_JOURNAL_UUID = 96,
	TAKT_JOURNAL_BOOT = 40,
};

/* Whose the record of the machine's CPUs is; no GPU is called so. */
#define TAKT_CPU_UUID "CPU"

/* How a GPU is cut into MIG instances has a record of its own: this, and behind it the GPU's UUID.
 */
#define TAKT_MIG_UUID "MIG of "

enum takt_journal_state {
	TAKT_JOURNAL_CLEAN = 1, /* at its baseline */
	TAKT_JOURNAL_CHANGED,	/* perhaps not */
};

/* What is known of one GPU. */
struct takt_journal_record {
	char uuid[TAKT_JOURNAL_UUID];
	enum takt_journal_state state;
	/* CHANGED: the knobs that may be changed, and what was about to be set. No knob: not known
	 * which; the SM clock then (that is all that takt once set). */
	struct takt_setting setting;
	uint32_t found_power_mw; /* the limit before takt's first change; 0 = not changed */
	uint32_t cap_power_mw;	 /* a facility's cap that stays when takt ends; 0 = none */
	uint64_t lease_id, job_id;
	uint64_t epoch;			    /* of the writer */
	struct takt_baseline_rule baseline; /* what puts it back, CLEAN: what it was put back to */
	struct takt_cpufreq cpu;	    /* of the CPUs' record: what puts them back */
	char mig[TAKT_MIG_TEXT];	    /* of a MIG record: the layout that puts it back */
	char boot_id[TAKT_JOURNAL_BOOT];
	char driver_load[TAKT_DRIVER_LOAD];
};

/* A pair of slots in memory. */
struct takt_journal_pair {
	enum takt_journal_pair_state {
		TAKT_JOURNAL_UNUSED,
		TAKT_JOURNAL_VALID,
		TAKT_JOURNAL_DAMAGED, /* both slots unreadable: whose they were is not known */
	} state;
	uint64_t seq;	/* VALID: of the newest slot */
	uint32_t place; /* which of the two that is */
	struct takt_journal_record record;
};

/* Who raised the epoch last. */
struct takt_journal_holder {
	uint64_t epoch; /* 0: nobody yet */
	int32_t pid;
	char name[32]; /* "actuator", "guard" */
};

struct takt_journal {
	const struct takt_sys *sys; /* borrowed until close */
	int fd;
	uint64_t device, inode; /* of the file */
	struct takt_journal_holder holder;
	uint64_t holder_seq;
	uint32_t torn; /* pairs of which one slot was unreadable and the other used */
	struct takt_journal_pair pairs[TAKT_JOURNAL_PAIRS];
};

/* Opens, makes when there is none, and reads the journal at `path`. A file of another kind is
 * refused (-TAKT_E_CORRUPT) and left alone. On failure *ret holds nothing. */
int takt_journal_open(const struct takt_sys *sys, const char *path, struct takt_journal *ret,
		      struct takt_err *err);
void takt_journal_close(struct takt_journal *journal);

/* Reads the journal at `path` as it is and changes nothing, whoever may be writing; *ret needs no
 * close and is for takt_journal_find and _damaged alone. -ENOENT; -TAKT_E_CORRUPT also for one that
 * was cut short, which takt_journal_open would mend. */
int takt_journal_look(const struct takt_sys *sys, const char *path, struct takt_journal *ret,
		      struct takt_err *err);

/* Durable when it returns 0; on failure the file holds the record that was there before, or this
 * one, and `journal` says the former. A failed record may be written again. */
int takt_journal_record(struct takt_journal *journal, const struct takt_journal_record *record,
			struct takt_err *err);

/* The newest record of a GPU; NULL when there is none. Borrowed until the next record or close. */
const struct takt_journal_record *takt_journal_find(const struct takt_journal *journal,
						    const char *uuid);

/* Pairs that are damaged. Every GPU without a record of its own may be the one they spoke of. */
uint32_t takt_journal_damaged(const struct takt_journal *journal);

/* Once each such GPU has its own record: makes the damaged pairs unused, durably. */
int takt_journal_forget_damage(struct takt_journal *journal, struct takt_err *err);

/* Durable when it returns 0. */
int takt_journal_raise_epoch(struct takt_journal *journal, struct takt_journal_holder holder,
			     struct takt_err *err);

/* The holder as the file has it now, which another process may have changed. */
int takt_journal_read_holder(const struct takt_journal *journal, struct takt_journal_holder *ret);

#endif
