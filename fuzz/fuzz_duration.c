/* SPDX-License-Identifier: Apache-2.0 */
/* Durations: an accepted one, written out exactly, reads as the same. */
#include <errno.h>

#include "base/timetext.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), shown[TAKT_DURATION_TEXT];
	char again[TAKT_DURATION_EXACT];
	uint64_t ns = 0, back = 1;
	int rc = takt_duration_parse(text, &ns);

	fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	if (rc == 0) {
		takt_duration_exact(ns, again);
		fuzz_expect(takt_duration_parse(again, &back) == 0 && back == ns);
		fuzz_expect(strlen(takt_duration_text(ns, shown)) > 1);
	}
	rc = takt_slurm_time_parse(text, &ns);
	fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	free(text);
	return 0;
}
