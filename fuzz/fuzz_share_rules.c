/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tenants: refused ones change nothing, accepted ones keep to their ranges. */
#include "codec/share_rules.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_share_rules rules = {.half_life_ns = 1};

	if (takt_share_rules_parse((const char *)data, size, "input", &rules, NULL) < 0) {
		fuzz_expect(rules.half_life_ns == 1 && !rules.list);
		return 0;
	}
	for (uint32_t i = 0; i < rules.count; i++) {
		const struct takt_share_rule *rule = &rules.list[i];

		fuzz_expect(rule->weight >= 1 && rule->name[0]);
		fuzz_expect(!rule->limit_milli || rule->quota_milli <= rule->limit_milli);
	}
	takt_share_rules_fini(&rules);
	return 0;
}
