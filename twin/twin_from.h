/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Board and machine files from what nvidia-smi printed. A capture has names, limits, thresholds and
 * clock lists; what it cannot have (how power follows the clock, the heat sink) is taken from the
 * board that is built in with the same PCI device id, if there is one, and said so ("as h100-sxm"),
 * else put in proportion to the power limit and marked GUESS. What a capture has and a simulated
 * machine has not is told to `notes`, a line each: nothing is dropped in silence.
 */
#ifndef TAKT_TWIN_TWIN_FROM_H
#define TAKT_TWIN_TWIN_FROM_H

#include <stdio.h>

#include "twin_capture.h"

struct twin_from {
	const struct twin_capture *capture;
	FILE *out, *notes;
	/* set by twin_from_begin */
	const struct twin_capture_gpu *gpu;
	const struct twin_capture_place *place; /* of the first GPU; of none if nothing is said */
	bool rests;				/* it was at rest when it was asked */
	uint32_t nvlinks; /* of a GPU; said by nvlink -s, of the board built in, or a guess */
	bool nvlinks_said, has_like;
	struct twin_board like; /* built in, of the same kind */
};

/* Error if the capture has no GPU. */
int twin_from_begin(struct twin_from *from, const struct twin_capture *capture, FILE *out,
		    FILE *notes, struct takt_err *err);

/* The keys of a board, from the first GPU. */
int twin_from_board(struct twin_from *from, struct takt_err *err);

/* The keys of a machine without those of its board, which have to follow. */
int twin_from_machine(struct twin_from *from, struct takt_err *err);

/* The end of a line whose value is that of the board built in, or else a guess. */
void twin_from_source(const struct twin_from *from, bool is_like);

/* A line about what is not taken. */
void twin_from_note(struct twin_from *from, const char *fmt, ...) TAKT_PRINTF(2, 3);

#endif
