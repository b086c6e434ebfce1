/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of clocks: whatever is accepted has curves with ascending settings and positive figures,
 * and every one of them can be scored. The same bytes are read as counters, too. */
#include "fuzz_input.h"
#include "sim/clock_run.h"

static void check(const struct takt_clock_curve *curve)
{
	const struct takt_clock_setting *best = takt_clock_best(curve, 50);

	fuzz_expect(curve->count >= 2 && curve->count <= TAKT_GOVERNOR_MAX_CLOCKS);
	for (size_t i = 0; i < curve->count; i++) {
		const struct takt_clock_setting *at = &curve->settings[i];

		fuzz_expect(at->time > 0 && at->power_w > 0 && at->value > 0);
		fuzz_expect(i == 0 || at->value > curve->settings[i - 1].value);
	}
	fuzz_expect(best >= curve->settings && best < curve->settings + curve->count);
	fuzz_expect(!takt_clock_violates(takt_clock_time(curve, best), 50));
}

static struct takt_lines *lines_of(const uint8_t *data, size_t size)
{
	struct takt_lines *lines;

	fuzz_expect(takt_lines_open_memory("input", data, size, &lines, NULL) == 0);
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_lines *lines = lines_of(data, size);
	struct takt_clock_points points;

	if (takt_clock_points_read(lines, &points, NULL) == 0) {
		struct takt_lines *again = lines_of(data, size);

		(void)takt_clock_points_counters(&points, again, NULL);
		takt_lines_free(again);
		fuzz_expect(points.curves.len > 0);
		TAKT_VEC_EACH (curve, &points.curves)
			check(curve);
		takt_clock_points_fini(&points);
	}
	takt_lines_free(lines);
	return 0;
}
