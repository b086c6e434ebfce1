/* SPDX-License-Identifier: Apache-2.0 */
/* How much of something there was in the last minutes, forgotten part by part; and counters of a
 * driver, which begin anew when it is loaded anew. */
#ifndef TAKT_RULES_WINDOW_H
#define TAKT_RULES_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timetypes.h"

enum {
	TAKT_WINDOW_PARTS = 20
};

struct takt_window {
	uint64_t newest; /* number of the part that was added to last */
	uint64_t amount[TAKT_WINDOW_PARTS];
};

/* length_ns: of the whole window, the same in every call. */
void takt_window_add(struct takt_window *window, uint64_t length_ns, struct takt_mono now,
		     uint64_t amount);
uint64_t takt_window_sum(const struct takt_window *window, uint64_t length_ns,
			 struct takt_mono now);

struct takt_counter {
	bool known;
	uint64_t last;
};

/* By how much it has risen; 0 the first time and after it began anew. */
uint64_t takt_counter_rise(struct takt_counter *counter, uint64_t value);

#endif
