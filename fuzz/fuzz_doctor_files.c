/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor looks for in other programs' files: whatever is in them, what is found is of its
 * kind and ends within its room, and what is not found leaves what was there. */
#include "fuzz_input.h"
#include "health/file_words.h"

enum {
	ROOM = 16
};

static void check(bool (*find)(const char *text, char *ret, size_t size), const char *text,
		  const char *of)
{
	char word[ROOM + 1] = "before";

	word[ROOM] = '#';
	if (!find(text, word, ROOM)) {
		fuzz_expect(strcmp(word, "before") == 0);
		return;
	}
	fuzz_expect(word[ROOM] == '#' && memchr(word, '\0', ROOM) != NULL);
	fuzz_expect(!of || strspn(word, of) == strlen(word));
}

static bool find_package(const char *text, char *ret, size_t size)
{
	return takt_find_package_version(text, "nvidia-fabricmanager", ret, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char digits[] = "0123456789.";
	char *text = fuzz_text(data, size);

	check(takt_find_module_version, text, NULL);
	check(find_package, text, digits);
	check(takt_find_manager_version, text, digits);
	check(takt_find_runtime, text, NULL);
	check(takt_find_cdi_version, text, digits);
	check(takt_find_torch_cuda, text, digits);
	check(takt_find_toolkit_version, text, digits);
	if (takt_says_no_cgroups(text))
		fuzz_expect(strstr(text, "no-cgroups") && strstr(text, "true"));
	free(text);
	if (takt_bridge_redirects(data, size))
		fuzz_expect(size >= 0x100 + 8);
	return 0;
}
