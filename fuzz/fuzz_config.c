/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files: refused ones change nothing, accepted ones can be printed and read again. */
#include "config/config.h"
#include "fuzz_input.h"

enum {
	TEXT_MAX = 256 * 1024
};

static void check_printed(const struct takt_config *config)
{
	struct takt_str text = TAKT_STR(TEXT_MAX), again = TAKT_STR(TEXT_MAX);
	struct takt_config back;

	takt_config_init(&back);
	fuzz_expect(takt_config_print(config, &text) == 0);
	fuzz_expect(takt_config_parse(&back, text.s, text.len, "printed", NULL) == 0);
	fuzz_expect(takt_config_print(&back, &again) == 0);
	fuzz_expect(strcmp(text.s, again.s) == 0);
	takt_str_fini(&text);
	takt_str_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_config config, before;

	memset(&config, 0, sizeof(config)); /* bytes between the fields are compared too */
	takt_config_init(&config);
	memcpy(&before, &config, sizeof(config));
	if (takt_config_parse(&config, (const char *)data, size, "input", NULL) == 0)
		check_printed(&config);
	else
		fuzz_expect(memcmp(&config, &before, sizeof(config)) == 0);
	return 0;
}
