/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameter grids of strangers' jobs, an entry a line: of one that passes the check each
 * combination has all parameters, and a value that is put into a list is the one that comes out.
 */
#include "base/mem.h"
#include "codec/grid.h"
#include "codec/jobspec.h"
#include "fuzz_input.h"

enum {
	MAX_LINES = TAKT_GRID_MAX_PARAMS + 2, /* one too many, and the end */
};

static void free_all(char **params)
{
	for (uint32_t i = 0; params[i]; i++)
		takt_free(params[i]);
	takt_free(params);
}

static void read_back(const char *value)
{
	struct takt_str list = TAKT_STR(4096), entry = TAKT_STR(4096);
	char *grid[] = {NULL, NULL}, **params;
	uint32_t count = 0;

	fuzz_expect(takt_grid_add_value(&list, value) == 0);
	fuzz_expect(takt_str_addf(&entry, "x=%s", list.s) == 0);
	grid[0] = entry.s;
	fuzz_expect(takt_grid_check(grid, &count, NULL) == 0 && count == 1);
	params = takt_grid_params(grid, 0);
	fuzz_expect(params && strncmp(params[0], "x=", 2) == 0);
	fuzz_expect(strcmp(params[0] + 2, value) == 0);
	free_all(params);
	takt_str_fini(&list);
	takt_str_fini(&entry);
}

static void check_one(char *const *grid, uint32_t index)
{
	char **params = takt_grid_params(grid, index), *filled = NULL;

	fuzz_expect(params != NULL);
	for (uint32_t i = 0; grid[i]; i++) {
		const char *value = params[i] ? strchr(params[i], '=') : NULL;

		fuzz_expect(value && value[1]);
		read_back(value + 1);
	}
	(void)takt_params_fill("--a={a} {b} {", params, TAKT_SPEC_MAX_BYTES, &filled);
	fuzz_expect(filled != NULL);
	takt_free(filled);
	free_all(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *save = NULL, *grid[MAX_LINES] = {NULL};
	uint32_t count = 0, lines = 0;

	for (char *line = strtok_r(text, "\n", &save); line && lines < MAX_LINES - 1;
	     line = strtok_r(NULL, "\n", &save))
		grid[lines++] = line;
	if (takt_grid_check(grid, &count, NULL) == 0) {
		fuzz_expect(count >= 1 && count <= TAKT_SPEC_MAX_ARRAY);
		check_one(grid, 0);
		check_one(grid, count - 1);
	}
	free(text);
	return 0;
}
