/* SPDX-License-Identifier: Apache-2.0 */
/* CSV files of measured workloads: what is accepted is within what the model can bear. */
#include "fuzz_input.h"
#include "twin_rows.h"
#include "twin_rows_file.h"

/* A board of two clocks is enough: rows have clocks of their own, or are given one of these. */
static const struct twin_board board = {
	.clock_count = 2,
	.sm_mhz = {210, 1410},
	.idle_mw = 50000,
	.held_mw = 20000,
	.slope_permille = 800,
	.floor_permille = 800,
};

static void check(const struct twin_profile *profile)
{
	fuzz_expect(profile->row_count >= 1 && profile->row_count <= TWIN_ROWS);
	fuzz_expect(profile->step_ms >= 1 && profile->phase_count == 1);
	for (uint32_t i = 0; i < profile->row_count; i++) {
		const struct twin_row *row = &profile->rows[i];
		fuzz_expect(row->time >= 100000 && row->limit_mw >= row->power_mw);
		fuzz_expect(i == 0 ||
			    (row->mhz >= row[-1].mhz && row->power_mw >= row[-1].power_mw));
	}
	for (uint32_t mhz = 1; mhz <= 20000; mhz = mhz * 3 / 2 + 1) {
		fuzz_expect(twin_rows_time(profile, mhz) >= 100000);
		fuzz_expect(twin_rows_power_uw(profile, mhz) < 1ull << 50);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct twin_rows_wish wish = {"input", "job", NULL};
	struct twin_profile profile = {0}, before = {0};
	char *text = fuzz_text(data, size);

	if (twin_rows_from(text, &wish, &board, &profile, NULL) < 0)
		fuzz_expect(memcmp(&profile, &before, sizeof(profile)) == 0);
	else
		check(&profile);
	free(text);
	return 0;
}
