/* SPDX-License-Identifier: Apache-2.0 */
/* The baseline file: every rule that is accepted is one that a driver can be asked for. */
#include <errno.h>

#include "actuate/baseline.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct takt_baseline baseline;
	struct takt_err err = {0};
	int rc = takt_baseline_parse((const char *)data, size, &baseline, &err);

	fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ENOMEM || rc == -TAKT_E_LIMIT);
	fuzz_expect(rc == 0 || strncmp(err.msg, "line ", 5) == 0 || rc == -ENOMEM);
	for (uint32_t i = 0; rc == 0 && i < baseline.count; i++) {
		const struct takt_baseline_rule *rule = &baseline.lines[i].rule;

		fuzz_expect(baseline.lines[i].uuid[0] != '\0');
		fuzz_expect(!rule->locked || (rule->range.min_mhz >= 1 &&
					      rule->range.min_mhz <= rule->range.max_mhz &&
					      rule->range.max_mhz <= TAKT_BASELINE_MAX_MHZ));
	}
	return 0;
}
