/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong with a GPU, as changes of its state: what clients read afterwards, what it does
 * to work, and the events that they may wait for. Faults that are planned are a part of the state,
 * too, so they come about in every process at their moment, whether the one that planned them lives
 * or not. For use inside twin_change, and by the model.
 */
#ifndef TAKT_TWIN_TROUBLE_H
#define TAKT_TWIN_TROUBLE_H

#include "twin_layout.h"

/* Tells those who wait, now. The oldest of TWIN_EVENTS is forgotten. */
void twin_event_add(struct twin_gpu *gpu, uint64_t type, uint64_t data);

/* 0 if such a board can have this trouble with this value, else -ERANGE or -ENOTSUP. */
int twin_trouble_check(const struct twin_board *board, enum twin_trouble trouble, uint64_t value);

/* Brings it about, now. It must have passed the check. */
void twin_trouble_happen(struct twin_gpu *gpu, const struct twin_board *board,
			 enum twin_trouble trouble, uint64_t value);

/* Plans it for `at_ns`, which may be past: then it happens as time goes on. -ENOSPC when
 * TWIN_PLANNED are still to come. */
int twin_trouble_plan(struct twin_gpu *gpu, const struct twin_planned *planned);

/* Moment of the next that is planned, UINT64_MAX if there is none. */
uint64_t twin_trouble_next_ns(const struct twin_gpu *gpu);

/* Brings about what is due at the moment of the state. */
void twin_trouble_due(struct twin_gpu *gpu, const struct twin_board *board);

/* The GPU alone is reset, which a change of its MIG mode does to boards up to Ampere: locks and
 * limits are gone, what waited for a reset is done. Its energy counter goes on. */
void twin_trouble_reset(struct twin_gpu *gpu, const struct twin_board *board);

#endif
