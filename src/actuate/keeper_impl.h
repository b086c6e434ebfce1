/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the keeper have in common. */
#ifndef TAKT_ACTUATE_KEEPER_IMPL_H
#define TAKT_ACTUATE_KEEPER_IMPL_H

#include <stdio.h>

#include "actuate/keeper.h"
#include "base/pace.h"

#define takt_keeper_note(gpu, ...) ((void)snprintf((gpu)->note, sizeof((gpu)->note), __VA_ARGS__))

/* Of a GPU that is left alone from now on; it stays until a reset, whatever is noted meanwhile. */
#define takt_keeper_convict(gpu, ...)   \
	((void)((gpu)->note[0] = '\0'), \
	 (void)snprintf((gpu)->verdict, sizeof((gpu)->verdict), __VA_ARGS__))

/* Between tries at what the driver, the kernel or the disk refuses. */
static const struct takt_pace takt_keeper_pace = {250 * TAKT_NS_PER_MS, 30 * TAKT_NS_PER_S};

static inline uint32_t takt_keeper_index(const struct takt_keeper *keeper,
					 const struct takt_keeper_gpu *gpu)
{
	return (uint32_t)(gpu - keeper->gpus);
}

/* Every knob is at its baseline, as far as is known. */
bool takt_keeper_at_baseline(const struct takt_keeper_gpu *gpu);

/* Nothing is wished but the baseline any more; the lease is gone with the wish. */
void takt_keeper_give_up(struct takt_keeper_gpu *gpu);

/* What the wish comes to: a power limit is never raised above its baseline, and an SM clock that
 * waits is not wished for yet. */
struct takt_setting takt_keeper_target(const struct takt_keeper *keeper,
				       const struct takt_keeper_gpu *gpu);

/* Every knob stands where it is wished. */
bool takt_keeper_at_wish(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu);

/* The power limit that stands for the baseline, in mW; 0 = not known. */
uint32_t takt_keeper_base_power(const struct takt_keeper *keeper,
				const struct takt_keeper_gpu *gpu);
struct takt_baseline_rule takt_keeper_rule(const struct takt_keeper *keeper,
					   const struct takt_keeper_gpu *gpu);

/* Asks for a sample newer than what there is, for half a second at the most. */
void takt_keeper_read(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		      enum takt_keeper_read why, struct takt_boot now);

/* True when no sample is awaited any more. */
bool takt_keeper_collect_read(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			      struct takt_boot now);

/* Whether the wish's SM clock waits for it to be known that nobody else has locked the SM clock. */
bool takt_keeper_is_waiting(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu);

/* Looks for another's lock; false when it is not time to. */
bool takt_keeper_probe(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       struct takt_boot now);
void takt_keeper_take_probe(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			    const struct takt_gpu_reading *reading, struct takt_boot now);

/* What a look at a GPU says of what takt has set there: nothing, or that it is not in force, which
 * ends the wish. Returns after how long it is to be looked at again to be sure; 0 = it holds. */
uint64_t takt_keeper_judge(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			   const struct takt_gpu_reading *reading, struct takt_boot now);

/* What was seen so far was of another setting. */
void takt_keeper_forget_looks(struct takt_keeper_gpu *gpu);

/* Whether a knob is to be looked at before it is set otherwise. */
bool takt_keeper_must_look(const struct takt_keeper_gpu *gpu, enum takt_knob knob,
			   struct takt_boot now);

/* Remembers how high a board goes. */
void takt_keeper_note_reach(struct takt_keeper_gpu *gpu, const struct takt_gpu_reading *reading);

/* The first outcome of a wish is the one that is reported; why may be NULL. */
void takt_keeper_settle(struct takt_keeper_gpu *gpu, int rc, const struct takt_err *why);

/* When what is set is to be looked at again. */
bool takt_keeper_check_due(const struct takt_keeper_gpu *gpu, struct takt_boot now);

#endif
