/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What "put back" means: the baseline that an administrator declares for a machine's GPUs. NVML
 * cannot be asked which lock is in force, so takt cannot find out what was there before; it has to
 * be told, and without a word it is `reset`. A power limit can be read: without a word it goes back
 * to the value that was found.
 *
 * The file has one line a GPU, words separated by blanks, '#' begins a comment:
 *
 *	GPU-8f2a...  reset                      # no lock: the driver's own defaults
 *	GPU-17c0...  range 210 1410             # locked to [210, 1410] MHz
 *	GPU-55d1...  range 210 1410 power 300   # and a power limit of 300 W
 *	GPU-91b2...  reset cap 350              # and never more than 350 W while it is declared
 *	GPU-c3d4...  reset mig 3g.40gb,3g.40gb  # cut into two MIG instances (base/mig_layout.h)
 *	*            reset                      # every GPU without a line of its own
 *
 * A cap is only put in force where the file is declared anew (TAKT_ACTUATE_DECLARE): it outlives
 * the process that set it and is not the baseline's to lift.
 *
 * Without a `*` line the rest is `reset`. A GPU named twice, an unknown word or a number that is no
 * number is an error that names the line; nothing of such a file is used.
 */
#ifndef TAKT_ACTUATE_BASELINE_H
#define TAKT_ACTUATE_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mig_layout.h"
#include "base/sys.h"
#include "clock/range.h"

enum {
	TAKT_BASELINE_MAX_LINES = 256,
	TAKT_BASELINE_MAX_BYTES = 64 * 1024,
	TAKT_BASELINE_MAX_MHZ = 20000,
	TAKT_BASELINE_MAX_W = 10000,
};

struct takt_baseline_rule {
	bool locked;		       /* false: reset */
	struct takt_clock_range range; /* locked: this */
	uint32_t power_limit_mw;       /* 0: what was found */
};

struct takt_baseline {
	uint32_t count;
	struct takt_baseline_line {
		char uuid[96]; /* "*" for the rest */
		struct takt_baseline_rule rule;
		uint32_t cap_power_mw;	 /* 0: says nothing of caps */
		char mig[TAKT_MIG_TEXT]; /* "": says nothing of MIG */
	} lines[TAKT_BASELINE_MAX_LINES];
};

/* *ret untouched on failure. */
int takt_baseline_parse(const char *text, size_t len, struct takt_baseline *ret,
			struct takt_err *err);

/* "" as path: an empty baseline, which resets every GPU. */
int takt_baseline_load(const struct takt_sys *sys, const char *path, struct takt_baseline *ret,
		       struct takt_err *err);

/* The file that was declared (TAKT_ACTUATE_DECLARE) if it says anything, which is then true of
 * *ret_declared, else the one of `path`. */
int takt_baseline_load_declared(const struct takt_sys *sys, const char *declared_path,
				const char *path, struct takt_baseline *ret, bool *ret_declared,
				struct takt_err *err);

/* Whether a line speaks of this GPU, be it the one for the rest. */
bool takt_baseline_says(const struct takt_baseline *baseline, const char *uuid);
struct takt_baseline_rule takt_baseline_of(const struct takt_baseline *baseline, const char *uuid);
const char *takt_baseline_mig_of(const struct takt_baseline *baseline, const char *uuid);
uint32_t takt_baseline_cap_of(const struct takt_baseline *baseline, const char *uuid);

#endif
