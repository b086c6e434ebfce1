/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What administrators say about GPUs, and what the store and the command line read of it: one byte
 * chooses which, the rest is its JSON. What is accepted is written and read again as the same.
 */
#include "codec/orders.h"
#include "fuzz_input.h"

enum {
	TEXT_MAX = 16 * 1024 * 1024
};

/* Static: a view is large. */
#define ROUND_TRIP(type, name, data, size)                                           \
	do {                                                                         \
		static struct type first, second;                                    \
		memset(&first, 0, sizeof(first));                                    \
		memset(&second, 0, sizeof(second));                                  \
		if (name##_from_json((data), (size), &first, NULL) < 0)              \
			break;                                                       \
		fuzz_expect(name##_to_json(&first, &text) == 0);                     \
		fuzz_expect(name##_from_json(text.s, text.len, &second, NULL) == 0); \
		fuzz_expect(name##_to_json(&second, &again) == 0);                   \
		fuzz_expect(strcmp(text.s, again.s) == 0);                           \
	} while (0)

static void read_request(enum takt_gpu_request_kind kind, const char *json, size_t size,
			 struct takt_str *text)
{
	struct takt_gpu_request request, back;

	if (takt_gpu_request_from_json(kind, json, size, &request, NULL) < 0)
		return;
	fuzz_expect(request.kind == kind);
	fuzz_expect(kind != TAKT_GPU_RESERVE || request.until_ms > request.from_ms);
	fuzz_expect(takt_gpu_request_to_json(&request, text) == 0);
	fuzz_expect(takt_gpu_request_from_json(kind, text->s, text->len, &back, NULL) == 0);
	fuzz_expect(request.gpu_mask == back.gpu_mask && request.id == back.id);
	fuzz_expect(strcmp(request.reason, back.reason) == 0);
	fuzz_expect(strcmp(request.layout, back.layout) == 0);
}

static void read_orders(char which, const char *json, size_t size)
{
	struct takt_str text = TAKT_STR(TEXT_MAX), again = TAKT_STR(TEXT_MAX);

	if (which >= '0' && which < '0' + TAKT_GPU_REQUEST_COUNT)
		read_request((enum takt_gpu_request_kind)(which - '0'), json, size, &text);
	else if (which == 'o')
		ROUND_TRIP(takt_gpu_order, takt_gpu_order, json, size);
	else if (which == 'r')
		ROUND_TRIP(takt_reservation, takt_reservation, json, size);
	else
		ROUND_TRIP(takt_orders_view, takt_orders_view, json, size);
	takt_str_fini(&text);
	takt_str_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		read_orders((char)data[0], (const char *)data + 1, size - 1);
	return 0;
}
