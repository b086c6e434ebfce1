/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities and lists as people read them, and the lines that every view may have to begin with.
 */
#ifndef TAKT_CLI_UNITS_H
#define TAKT_CLI_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cli/verb.h"

enum {
	TAKT_UNIT_TEXT = 32
};

/* "512M", "45.0G": binary units, three digits where they matter. Returns ret. */
const char *takt_bytes_text(uint64_t bytes, char ret[TAKT_UNIT_TEXT]);
/* "3m05s" of milliseconds. */
const char *takt_ms_text(uint64_t ms, char ret[TAKT_UNIT_TEXT]);
/* "4s", "3m05s": the same for a table, in whole seconds. */
const char *takt_span_text(uint64_t ms, char ret[TAKT_UNIT_TEXT]);
/* "22:00" on the day of now_ms, "Fri 22:00" within six days of it, else "2026-11-20"; local. */
const char *takt_when_words(int64_t wall_ms, int64_t now_ms, char ret[TAKT_UNIT_TEXT]);
/* Local time of the wall clock, "2026-11-20 15:11:45"; "-" for 0. */
const char *takt_when_text(int64_t wall_ms, char ret[TAKT_UNIT_TEXT]);
/* "0-3,6"; "-" for none. */
void takt_mask_text(uint64_t mask, struct takt_str *out);
void takt_gpu_list_text(const uint32_t *gpus, uint32_t n, struct takt_str *out);
/* "0-3,6" or "all" into a mask of GPUs below `count`; none may be named twice. */
int takt_mask_parse(const char *text, uint32_t count, uint64_t *ret, struct takt_err *err);

/* "NVIDIA H100 80GB HBM3" without the maker. */
const char *takt_short_name(const char *name);

/* The first line of any view of simulated GPUs. */
void takt_print_simulated(struct takt_cli *cli, bool simulated);
/* One line that nobody may overlook. */
void takt_print_changed(struct takt_cli *cli, uint32_t gpu, const char *note);

#endif
