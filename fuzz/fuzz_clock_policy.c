/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of clocks: refused ones change nothing, accepted ones keep to their ranges. */
#include <string.h>

#include "codec/clock_policy.h"
#include "fuzz_input.h"

static struct takt_clock_policy policy;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[4096];

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	policy.count = 1;
	if (takt_clock_policy_parse(text, size, &policy, NULL) < 0) {
		fuzz_expect(policy.count == 1);
		return 0;
	}
	fuzz_expect(policy.count >= 1 && policy.count <= TAKT_CLOCK_POLICY_MAX);
	for (uint32_t i = 0; i < policy.count; i++) {
		const struct takt_declared *wish = &policy.rules[i].wish;

		fuzz_expect(wish->sm_min_mhz <= wish->sm_max_mhz && policy.rules[i].line >= 1);
		fuzz_expect(wish->power_limit_mw % 1000 == 0 && wish->cap_power_mw % 1000 == 0);
	}
	return 0;
}
