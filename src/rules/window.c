/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of parts, see the header. */
#include "rules/window.h"

static uint64_t part_of(uint64_t length_ns, struct takt_mono now)
{
	return now.ns / (length_ns / TAKT_WINDOW_PARTS);
}

/* Whether the part is in the window that ends with `newest`. */
static bool is_in(uint64_t part, uint64_t newest)
{
	return part <= newest && newest - part < TAKT_WINDOW_PARTS;
}

void takt_window_add(struct takt_window *window, uint64_t length_ns, struct takt_mono now,
		     uint64_t amount)
{
	uint64_t part = part_of(length_ns, now);

	if (!is_in(window->newest, part) && part > window->newest)
		*window = (struct takt_window){.newest = part};
	while (window->newest < part)
		window->amount[++window->newest % TAKT_WINDOW_PARTS] = 0;
	window->amount[window->newest % TAKT_WINDOW_PARTS] += amount;
}

uint64_t takt_window_sum(const struct takt_window *window, uint64_t length_ns, struct takt_mono now)
{
	uint64_t part = part_of(length_ns, now), sum = 0;

	for (uint64_t i = 0; i < TAKT_WINDOW_PARTS && i <= window->newest; i++)
		if (window->newest > part || is_in(window->newest - i, part))
			sum += window->amount[(window->newest - i) % TAKT_WINDOW_PARTS];
	return sum;
}

uint64_t takt_counter_rise(struct takt_counter *counter, uint64_t value)
{
	uint64_t rise = counter->known && value > counter->last ? value - counter->last : 0;

	*counter = (struct takt_counter){true, value};
	return rise;
}
