/* SPDX-License-Identifier: Apache-2.0 */
/* Looks that another machine sent: what is taken is whole, and is read again as it is written. */
#include <string.h>

#include "fuzz_input.h"
#include "top/top_json.h"

static void expect_order(const struct takt_top_snapshot *look)
{
	for (size_t i = 1; i < look->procs.len; i++)
		fuzz_expect(look->procs.at[i - 1].id.pid < look->procs.at[i].id.pid);
	for (size_t i = 0; i < look->procs.len; i++)
		fuzz_expect(look->procs.at[i].id.start_ticks == 0 ||
			    strlen(look->procs.at[i].id.boot_id) == strlen(TAKT_NO_BOOT_ID));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 24);
	struct takt_top_snapshot look, again;

	if (takt_top_from_json((const char *)data, size, &look, NULL) < 0)
		return 0;
	expect_order(&look);
	fuzz_expect(takt_top_to_json(&look, &text) == 0);
	fuzz_expect(takt_top_from_json(text.s, text.len, &again, NULL) == 0);
	fuzz_expect(again.procs.len == look.procs.len);
	fuzz_expect(again.status.gpu_count == look.status.gpu_count);
	for (size_t i = 0; i < look.procs.len; i++)
		fuzz_expect(again.procs.at[i].id.start_ticks == look.procs.at[i].id.start_ticks);
	takt_top_snapshot_fini(&look);
	takt_top_snapshot_fini(&again);
	return 0;
}
