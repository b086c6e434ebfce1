/* SPDX-License-Identifier: Apache-2.0 */
/* CPU lists of the kernel: what was accepted comes back as an equal set; ids of PCI devices too. */
#include "device/cpu_list.h"
#include "device/pci_id.h"
#include "fuzz_input.h"

enum {
	WORDS = 16,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t mask[WORDS] = {0}, again[WORDS] = {0};
	struct takt_str list = TAKT_STR(1 << 16);
	char *text = fuzz_text(data, size);
	struct takt_pci_id id;

	if (takt_cpu_list_parse(text, mask, WORDS)) {
		takt_cpu_list_format(mask, WORDS, &list);
		fuzz_expect(takt_cpu_list_parse(takt_str_text(&list), again, WORDS));
		fuzz_expect(memcmp(mask, again, sizeof(mask)) == 0);
	}
	fuzz_expect(!takt_pci_id_parse(text, &id) || takt_pci_id_compare(text, text) == 0);
	takt_str_fini(&list);
	free(text);
	return 0;
}
