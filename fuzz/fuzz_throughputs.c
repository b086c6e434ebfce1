/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of throughputs: what is accepted has models and kinds in order, and no negative speed. */
#include "fuzz_input.h"
#include "sim/throughputs.h"

static void check(const struct takt_throughputs *table)
{
	fuzz_expect(table->model_count >= 1 && table->kinds.len >= 1);
	for (size_t i = 1; i < table->model_count; i++)
		fuzz_expect(strcmp(table->models[i - 1], table->models[i]) < 0);
	for (size_t i = 0; i < table->kinds.len; i++) {
		const struct takt_throughput_kind *kind = &table->kinds.at[i];

		fuzz_expect(kind->gpus >= 1);
		for (size_t j = 0; j < TAKT_THROUGHPUT_MAX_MODELS; j++)
			fuzz_expect(kind->together[j] >= 0 && kind->apart[j] >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_throughputs table;
	struct takt_lines *lines;

	fuzz_expect(takt_lines_open_memory("input", data, size, &lines, NULL) == 0);
	if (takt_throughputs_read(lines, &table, NULL) == 0) {
		check(&table);
		takt_throughputs_fini(&table);
	}
	takt_lines_free(lines);
	return 0;
}
