/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What "put back" means: the baseline that an administrator declares for a machine's GPUs. NVML
 * cannot be asked which lock is in force, so takt cannot find out what was there before; it has to
 * be told, and without a word it is `reset`.
 *
 * The file has one line a GPU, words separated by blanks, '#' begins a comment:
 *
 *	GPU-8f2a...  reset            # no lock: the driver's own defaults
 *	GPU-17c0...  range 210 1410   # locked to [210, 1410] MHz
 *	*            reset            # every GPU without a line of its own
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
#include "base/sys.h"
#include "clock/range.h"

enum {
	TAKT_BASELINE_MAX_LINES = 256,
	TAKT_BASELINE_MAX_BYTES = 64 * 1024,
	TAKT_BASELINE_MAX_MHZ = 20000,
};

struct takt_baseline_rule {
	bool locked;		       /* false: reset */
	struct takt_clock_range range; /* locked: this */
};

struct takt_baseline {
	uint32_t count;
	struct takt_baseline_line {
		char uuid[96]; /* "*" for the rest */
		struct takt_baseline_rule rule;
	} lines[TAKT_BASELINE_MAX_LINES];
};

/* *ret untouched on failure. */
int takt_baseline_parse(const char *text, size_t len, struct takt_baseline *ret,
			struct takt_err *err);

/* "" as path: an empty baseline, which resets every GPU. */
int takt_baseline_load(const struct takt_sys *sys, const char *path, struct takt_baseline *ret,
		       struct takt_err *err);

struct takt_baseline_rule takt_baseline_of(const struct takt_baseline *baseline, const char *uuid);

#endif
