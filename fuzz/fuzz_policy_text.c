/* SPDX-License-Identifier: Apache-2.0 */
/* Governors with parameters: an accepted one, written out again, reads as the same. */
#include <errno.h>
#include <stdio.h>

#include "base/policy_text.h"
#include "fuzz_input.h"

static void write_out(const struct takt_policy_text *policy, char *ret, size_t size)
{
	size_t at = (size_t)snprintf(ret, size, "%s", policy->name);

	for (size_t i = 0; i < policy->param_count; i++)
		at += (size_t)snprintf(ret + at, size - at, "%c%s=%lld", i ? ',' : ':',
				       policy->params[i].name, (long long)policy->params[i].value);
	fuzz_expect(at < size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), shown[4096];
	struct takt_policy_text policy, again;
	int rc = takt_policy_text_parse(text, &policy);

	fuzz_expect(rc == 0 || rc == -EINVAL);
	if (rc == 0) {
		write_out(&policy, shown, sizeof(shown));
		fuzz_expect(strlen(shown) <= strlen(text));
		fuzz_expect(takt_policy_text_parse(shown, &again) == 0);
		fuzz_expect(memcmp(&policy, &again, sizeof(policy)) == 0);
	}
	free(text);
	return 0;
}
