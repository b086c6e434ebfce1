/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's log: whatever is in a line, an event holds text with an end and numbers in their
 * range, and decoding its registers goes well. */
#include "fuzz_input.h"
#include "rules/kernel_log.h"
#include "rules/xid.h"

static void check(const struct takt_log_event *event)
{
	fuzz_expect(memchr(event->name, '\0', sizeof(event->name)) != NULL);
	fuzz_expect(memchr(event->unit, '\0', sizeof(event->unit)) != NULL);
	fuzz_expect(event->pci.bus <= 0xff && event->pci.device <= 0x1f);
	fuzz_expect(event->link >= -1 && event->link <= 1000);
	if (event->has & TAKT_LOG_REGISTERS)
		(void)takt_nvlink5_decode(event->code, event->unit, event->info, event->status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;
	char *text = fuzz_text(data, size);
	size_t start = 0;

	for (size_t i = 0; i <= size; i++) {
		if (i < size && text[i] != '\n')
			continue;
		if (takt_log_read(&reader, text + start, i - start, &event))
			check(&event);
		start = i + 1;
	}
	free(text);
	return 0;
}
