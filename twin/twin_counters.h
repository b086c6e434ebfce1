/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted while time passes, apart from energy: how long kernels ran, how much of the
 * memory's and of the links' bandwidth was used. Of the GPU, of each GPU instance, and of each
 * process, for accounting. GPM, the traffic of NVLinks and accounting read them, so all of these
 * say the same.
 */
#ifndef TAKT_TWIN_COUNTERS_H
#define TAKT_TWIN_COUNTERS_H

#include "twin_layout.h"

/* `ns` in which nothing changes pass. */
void twin_counters_book(struct twin_gpu *gpu, uint64_t ns);

struct twin_counters twin_counters_since(const struct twin_counters *now,
					 const struct twin_counters *then);

/* Remembers a process that has ended, if accounting was on when it began. */
void twin_account_end(struct twin_gpu *gpu, const struct twin_load *load);

/* What accounting says of a process that is still in the list of loads. */
void twin_account_of(const struct twin_gpu *gpu, const struct twin_load *load,
		     struct twin_account *ret);

/* Bytes that went over one of the GPU's NVLinks, in each direction. A step's communication uses all
 * links alike, as fast as the slowest part of the job's ring allows (GUESS). */
uint64_t twin_link_bytes(const struct twin_gpu *gpu, const struct twin_board *board);

#endif
