/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A witness beside the store: what was posted, what was reported, and whether what is read back
 * agrees. Everything in a row follows from its job id and the number of the change that wrote it,
 * so a row made of two changes shows.
 *
 * What must hold after a crash. With K the largest change number found in any row: every change
 * that was reported durable is numbered K at most; every change up to K that was not reported as
 * failed is in effect (the store applies changes in posting order, whole transactions at a time, so
 * what survives is a prefix; but an update of a job whose insert was lost is refused); no change
 * that was reported as failed is in effect; each row is exactly what its change wrote.
 */
#ifndef TAKT_TESTS_STORE_LEDGER_H
#define TAKT_TESTS_STORE_LEDGER_H

#include <stdbool.h>

#include "base/rng.h"
#include "fake_sys.h"
#include "store/store.h"

enum ledger_outcome {
	LEDGER_OPEN, /* not reported */
	LEDGER_DURABLE,
	LEDGER_FAILED,
	LEDGER_EITHER, /* reported as failed while the power was off: may have arrived */
};

struct ledger_change {
	uint64_t job; /* 0: struck out, lost in a crash before it was reported */
	int64_t ticket;
	bool insert;
	enum ledger_outcome outcome;
};

struct ledger {
	struct ledger_change *changes; /* owned; change number n is at n - 1 */
	size_t len, cap;
	uint64_t jobs; /* job ids 1..jobs were posted */
	uint32_t nr_failed, nr_durable;
	struct fake_sys *world; /* borrowed; whose power may go. NULL: it cannot */
	char why[512];		/* first violation; "" while all is well */
};

void ledger_init(struct ledger *ledger, struct fake_sys *world);
void ledger_fini(struct ledger *ledger);

/* The same in a file of fixed size, so that it outlives a killed process: maps it, and makes it if
 * it is not there. Never unmapped. */
struct ledger *ledger_map(const char *path);

/* Posts an insert of the next job (`insert`), or that or an update of an old one (`post`); false
 * when the store refuses. */
bool ledger_insert(struct ledger *ledger, struct takt_store *store);
bool ledger_post(struct ledger *ledger, struct takt_store *store, struct takt_rng *rng);

/* Takes what was reported; with `wait`, until everything posted is. Failures reported when the
 * power is off prove nothing. */
void ledger_take(struct ledger *ledger, struct takt_store *store, bool wait);

/* Reads the store and judges: 1 all is well, 0 a violation (see `why`), negative when it could not
 * be read (nothing is judged). Unreported changes that did not arrive are struck out, so that the
 * next life goes on from here. */
int ledger_check(struct ledger *ledger, struct takt_store *store, struct takt_err *err);

/* The row that change n of job id writes; texts are borrowed until the next call. */
struct takt_job ledger_job(uint64_t id, uint32_t n);

#endif
