/* SPDX-License-Identifier: Apache-2.0 */
/* The number parsers: what they accept is what libc reads, and only plain digits. */
#include <errno.h>
#include <limits.h>

#include "base/str.h"
#include "fuzz_input.h"

static void check_u64(const char *text)
{
	unsigned long long value = 0;
	int rc = takt_parse_u64(text, 0, ULLONG_MAX, &value);

	fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	if (rc == -EINVAL)
		return;
	fuzz_expect(text[0] && strspn(text, "0123456789") == strlen(text));
	errno = 0;
	fuzz_expect(strtoull(text, NULL, 10) == (rc == 0 ? value : ULLONG_MAX));
	fuzz_expect((errno == ERANGE) == (rc == -ERANGE));
}

static void check_i64(const char *text)
{
	long long value = 0;
	int rc = takt_parse_i64(text, LLONG_MIN, LLONG_MAX, &value);

	fuzz_expect(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	if (rc == -EINVAL)
		return;
	errno = 0;
	fuzz_expect(strtoll(text, NULL, 10) == value || rc == -ERANGE);
	fuzz_expect((errno == ERANGE) == (rc == -ERANGE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	check_u64(text);
	check_i64(text);
	free(text);
	return 0;
}
