/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of CSV: the cells lie in the line one behind the other, and are the same when they were
 * written in quotes and read again. */
#include "fuzz_input.h"

#include "base/str.h"
#include "sim/csv_cells.h"

enum {
	LIMIT = 8 << 20
};

static int split(char *line, char *cells[TAKT_CSV_MAX_CELLS])
{
	struct takt_err err = {0};
	int count = takt_csv_split(line, cells, &err);

	fuzz_expect(count > 0 || count == -TAKT_E_CORRUPT || count == -TAKT_E_LIMIT);
	fuzz_expect(count <= TAKT_CSV_MAX_CELLS);
	fuzz_expect((count < 0) == (err.msg[0] != '\0'));
	return count;
}

static void check_places(const char *line, size_t len, char *const cells[], int count)
{
	const char *from = line;

	for (int i = 0; i < count; i++) {
		fuzz_expect(cells[i] >= from && cells[i] <= line + len);
		from = cells[i] + strlen(cells[i]);
		fuzz_expect(from <= line + len);
	}
}

static void quote(struct takt_str *out, const char *cell)
{
	takt_str_add(out, "\"");
	for (; *cell; cell++)
		takt_str_addn(out, *cell == '"' ? "\"\"" : cell, *cell == '"' ? 2 : 1);
	takt_str_add(out, "\"");
}

static void read_again(char *const cells[], int count)
{
	struct takt_str text = TAKT_STR(LIMIT);
	char *again[TAKT_CSV_MAX_CELLS];

	for (int i = 0; i < count; i++) {
		if (i)
			takt_str_add(&text, ",");
		quote(&text, cells[i]);
	}
	fuzz_expect(split(text.s, again) == count);
	for (int i = 0; i < count; i++)
		fuzz_expect(strcmp(again[i], cells[i]) == 0);
	takt_str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = fuzz_text(data, size);
	size_t len = strlen(line);
	char *cells[TAKT_CSV_MAX_CELLS];
	int count = split(line, cells);

	if (count > 0) {
		check_places(line, len, cells, count);
		read_again(cells, count);
	}
	free(line);
	return 0;
}
