/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sensors add to the truth. Readings of clients carry it, and nothing else does: energy, heat
 * and work follow the true power. A draw depends on the GPU's seed and on the number of the cell
 * alone, so all processes read the same, and a machine made again with its seed reads the same
 * again.
 *
 *   power        each cell of 100 ms deviates by the board's permille of what it draws at rest, and
 * by another permille of what it draws beyond; means over more cells deviate less temperature  the
 * sensor deviates by thousandths of a degree clock        one that is held down by power or heat
 * dithers: in a part of the cells it is read one step lower, in as large a part one step higher
 */
#ifndef TAKT_TWIN_TWIN_NOISE_H
#define TAKT_TWIN_TWIN_NOISE_H

#include "twin_layout.h"

/* A deviation in thousandths of a standard deviation: mean 0, never beyond 3465. */
int32_t twin_noise_draw(uint64_t seed, uint64_t cell, uint32_t what);

/* Any of 0 to 999, each as likely. */
uint32_t twin_noise_permille(uint64_t seed, uint64_t number, uint32_t what);

/* Makes of the true state what a client reads. Nothing if the seed is 0. */
void twin_noise_add(struct twin_gpu *gpu, const struct twin_board *board);

#endif
