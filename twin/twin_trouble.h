/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong with a GPU, as changes of its state: what clients read afterwards, and the events
 * that they may wait for. For use inside twin_change.
 */
#ifndef TAKT_TWIN_TROUBLE_H
#define TAKT_TWIN_TROUBLE_H

#include "twin_layout.h"

/* Tells those who wait, now. The oldest of TWIN_EVENTS is forgotten. */
void twin_event_add(struct twin_gpu *gpu, uint64_t type, uint64_t data);

/* An error that the memory could not correct: counted, and its row (or page, on older boards) is to
 * be replaced when the GPU is reset next. */
void twin_trouble_ecc(struct twin_gpu *gpu, const struct twin_board *board);

/* The driver is loaded anew: settings, processes, instances and what counts since its load are
 * gone; rows that waited are replaced. The energy counter starts again. */
void twin_trouble_reload(struct twin_gpu *gpu, const struct twin_board *board);

#endif
