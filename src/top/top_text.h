/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as the terminal view shows them: short, and of a steady width. */
#ifndef TAKT_TOP_TEXT_H
#define TAKT_TOP_TEXT_H

#include "codec/views.h"

enum {
	TAKT_TOP_TEXT = 64
};

/* "61.2G", "512M" */
const char *takt_top_bytes(uint64_t bytes, char ret[TAKT_TOP_TEXT]);
/* "45s", "3m05s", "2h10m", "3d04h" */
const char *takt_top_span(uint64_t ms, char ret[TAKT_TOP_TEXT]);
/* "0-3,6"; "-" for none. */
const char *takt_top_gpus(uint64_t mask, char ret[TAKT_TOP_TEXT]);
/* "H100 80GB HBM3": without the maker, and without what says that it is simulated. */
const char *takt_top_model_name(const char *name);
/* Why the clock is not higher, in a word or two; "" = nothing holds it back. */
const char *takt_top_held_back(const struct takt_gpu_view *gpu);
/* Its clock, its cap and why: "1980 MHz power cap", "1410 of 1980 MHz, takt <= 1410". */
const char *takt_top_clock(const struct takt_gpu_view *gpu, char ret[TAKT_TOP_TEXT]);

uint64_t takt_top_job_gpus(const struct takt_job_view *job);

#endif
