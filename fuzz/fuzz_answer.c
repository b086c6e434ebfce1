/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a daemon: byte by byte they mean what they mean at once. */
#include "client/http_answer.h"
#include "fuzz_input.h"

enum {
	BODY_MAX = 65536
};

/* In steps, and then the end of the connection. */
static int take(struct takt_answer *answer, struct takt_str *body, const uint8_t *data, size_t size,
		size_t step)
{
	int rc = 0;

	takt_answer_init(answer, body);
	for (size_t at = 0; rc == 0 && at < size; at += step)
		rc = takt_answer_take(answer, (const char *)data + at,
				      size - at < step ? size - at : step);
	return rc == 0 ? takt_answer_take(answer, "", 0) : rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(BODY_MAX), slowly = TAKT_STR(BODY_MAX);
	struct takt_answer first, second;
	int rc = take(&first, &once, data, size, size ? size : 1);

	fuzz_expect(take(&second, &slowly, data, size, 1) == rc);
	fuzz_expect(first.whole == (rc == 0) && first.whole == second.whole);
	if (!first.whole)
		return 0;
	fuzz_expect(first.live == second.live && first.has_place == second.has_place);
	fuzz_expect(first.place.offset == second.place.offset);
	fuzz_expect(first.place.attempt == second.place.attempt);
	fuzz_expect(once.len == slowly.len);
	fuzz_expect(strcmp(takt_str_text(&once), takt_str_text(&slowly)) == 0);
	return 0;
}
