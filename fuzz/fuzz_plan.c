/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as JSON: what is accepted is written and read again as the same. */
#include "codec/snapshot.h"
#include "fuzz_input.h"

enum {
	TEXT_MAX = 64 * 1024 * 1024
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_str text = TAKT_STR(TEXT_MAX);
	struct takt_str again = TAKT_STR(TEXT_MAX);
	struct takt_plan plan = {0};
	struct takt_plan back = {0};

	if (takt_plan_from_json((const char *)data, size, &plan, NULL) == 0) {
		fuzz_expect(takt_plan_to_json(&plan, &text, NULL) == 0);
		fuzz_expect(takt_plan_from_json(text.s, text.len, &back, NULL) == 0);
		fuzz_expect(takt_plan_to_json(&back, &again, NULL) == 0);
		fuzz_expect(strcmp(text.s, again.s) == 0);
	}
	takt_plan_fini(&plan);
	takt_plan_fini(&back);
	takt_str_fini(&text);
	takt_str_fini(&again);
	return 0;
}
