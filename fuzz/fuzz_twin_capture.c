/* SPDX-License-Identifier: Apache-2.0 */
/* What nvidia-smi printed, as text or XML: what is read is within bounds, and what is made of it is
 * written without a fault or refused. */
#include "fuzz_input.h"
#include "twin_capture.h"
#include "twin_from.h"

static void make(const struct twin_capture *capture)
{
	FILE *nowhere = fopen("/dev/null", "w");
	struct twin_from from;

	fuzz_expect(nowhere != NULL);
	if (twin_from_begin(&from, capture, nowhere, nowhere, NULL) == 0 &&
	    twin_from_machine(&from, NULL) == 0)
		(void)twin_from_board(&from, NULL);
	fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct twin_capture *capture = twin_capture_new();
	char *text = fuzz_text(data, size);

	fuzz_expect(capture != NULL);
	if (twin_capture_add(capture, "input", text, NULL) == 0) {
		fuzz_expect(capture->gpu_count <= TWIN_MAX_GPUS);
		fuzz_expect(capture->place_count <= TWIN_MAX_GPUS);
		for (uint32_t i = 0; i < capture->gpu_count; i++)
			fuzz_expect(capture->gpus[i].count <= TWIN_CAPTURE_MAX_ITEMS);
		make(capture);
	}
	twin_capture_free(capture);
	free(text);
	return 0;
}
