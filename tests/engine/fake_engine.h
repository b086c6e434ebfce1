/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake engine: runs nothing, keeps the contract of engine.h, and is as awkward as that contract
 * allows. All it does follows from its seed and the times handed to pump().
 *
 *	struct takt_engine *engine = fake_engine_new(&(struct fake_engine_config){
 *		.seed = 7, .delay_max_ms = 50, .run_max_ms = 200, .reject_permille = 100});
 *
 * It delays every event, so that those of different jobs overtake each other; with `reorder` those
 * of one attempt do too, except that nothing follows its ENDED (outcomes do). It rejects STARTs,
 * and ends attempts in rare ways. It also keeps watch: a START that puts a job on a GPU that
 * another one still has, or starts a job that is alive, is counted as a violation and refused.
 */
#ifndef TAKT_TESTS_FAKE_ENGINE_H
#define TAKT_TESTS_FAKE_ENGINE_H

#include <stdbool.h>

#include "engine/engine.h"

struct fake_engine_config {
	uint64_t seed;
	uint32_t delay_max_ms;	     /* of each event; 0 = the next pump */
	uint32_t run_min_ms;	     /* from start to end of a job */
	uint32_t run_max_ms;	     /* UINT32_MAX = until fake_engine_end() or a STOP */
	uint32_t reject_permille;    /* of STARTs: FAILED or CONFLICT */
	uint32_t lost_permille;	     /* of attempts: end as LOST */
	uint32_t never_ran_permille; /* of attempts: accepted, then NEVER_RAN, without STARTED */
	uint32_t duplicate_permille; /* of events but ENDED: delivered twice, each with its seq */
	bool reorder;
};

/* Free with takt_engine_free(). Aborts when out of memory. */
struct takt_engine *fake_engine_new(const struct fake_engine_config *config);

/* Have a job end so at its next pump; false when it is not alive. */
bool fake_engine_end(struct takt_engine *engine, uint64_t job_id, enum takt_end end, int code);

size_t fake_engine_alive(const struct takt_engine *engine); /* accepted and not over */
size_t fake_engine_violations(const struct takt_engine *engine);
size_t fake_engine_started(const struct takt_engine *engine); /* attempts, ever */

#endif
