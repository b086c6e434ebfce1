/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the SM clock of a board at work fits the ceiling that it was given. A lock cannot be read
 * back, so what tells that somebody else has set another one is how the board runs.
 *
 * Not every board reaches the end of its own list, and near its end a warm one runs a few steps
 * lower than a cold one without a word. So a clock is held against the highest that the board was
 * seen to run at, with a sixteenth of it to spare; where it was never seen any higher, only one
 * below three quarters of its ceiling is no fit.
 */
#ifndef TAKT_CLOCK_FIT_H
#define TAKT_CLOCK_FIT_H

#include <stdint.h>

enum takt_clock_fit {
	TAKT_CLOCK_FITS,
	TAKT_CLOCK_ABOVE,      /* the ceiling is not in force */
	TAKT_CLOCK_FELL,       /* the board was seen to do better: something holds it down */
	TAKT_CLOCK_NEVER_CAME, /* far below, and it was never seen to do better */
};

/* `mhz`: of a board that is busy, that nothing it knows of holds back, and that has had time to
 * come to its clock. ABOVE holds for any board. reach_mhz: the highest that it was seen to run at
 * under load, held back or not; 0 = not known. */
enum takt_clock_fit takt_clock_fit(uint32_t max_mhz, uint32_t mhz, uint32_t reach_mhz);

#endif
