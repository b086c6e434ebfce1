/* SPDX-License-Identifier: Apache-2.0 */
/* Data files of the simulated driver: refused ones change nothing; boards and workloads that are
 * accepted are within what the model can bear. */
#include "fuzz_input.h"
#include "twin_board_file.h"
#include "twin_toml.h"

static void check_board(struct twin_toml *toml)
{
	struct twin_board board = {0}, before = {0};

	if (twin_board_from(toml, &board, NULL) < 0) {
		fuzz_expect(memcmp(&board, &before, sizeof(board)) == 0);
		return;
	}
	fuzz_expect(board.clock_count >= 2 && board.clock_count <= TWIN_MAX_CLOCKS);
	fuzz_expect(board.memory_count >= 1 && board.memory_count <= TWIN_MAX_MEMORY_CLOCKS);
	fuzz_expect(board.k_per_kw > 0 && board.tau_ms > 0 && board.ambient_c < board.gpu_max_c);
}

static void check_profile(struct twin_toml *toml)
{
	struct twin_profile profile = {0}, before = {0};

	if (twin_profile_from(toml, &profile, NULL) < 0)
		fuzz_expect(memcmp(&profile, &before, sizeof(profile)) == 0);
	else
		fuzz_expect(profile.step_ms > 0 && profile.phase_count <= TWIN_MAX_PHASES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct twin_toml *toml = NULL;

	if (twin_toml_parse("input", text, &toml, NULL) == 0) {
		check_board(toml);
		check_profile(toml);
		twin_toml_free(toml);
	} else {
		fuzz_expect(toml == NULL);
	}
	free(text);
	return 0;
}
