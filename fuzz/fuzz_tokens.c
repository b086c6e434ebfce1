/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokens: what is taken has its digits and is written as it was read; and requests. */
#include "codec/tokens.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(1 << 22), twice = TAKT_STR(1 << 22);
	struct takt_tokens_view view, again;
	struct takt_token_request request;

	(void)takt_token_request_from_json((const char *)data, size, &request, NULL);
	if (takt_tokens_view_from_json((const char *)data, size, &view, NULL) < 0) {
		fuzz_expect(view.count == 0 || !view.tokens);
		return 0;
	}
	for (uint32_t i = 0; i < view.count; i++)
		fuzz_expect(view.tokens[i].id[0]);
	fuzz_expect(takt_tokens_view_to_json(&view, &once) == 0);
	fuzz_expect(takt_tokens_view_from_json(once.s, once.len, &again, NULL) == 0);
	fuzz_expect(takt_tokens_view_to_json(&again, &twice) == 0);
	fuzz_expect(once.len == twice.len && memcmp(once.s, twice.s, once.len) == 0);
	takt_tokens_view_fini(&view);
	takt_tokens_view_fini(&again);
	return 0;
}
