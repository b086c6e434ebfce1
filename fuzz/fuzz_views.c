/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command line reads from a daemon: one byte chooses the view, the rest is its JSON. An
 * accepted view is written and read again as the same.
 */
#include "codec/views.h"
#include "fuzz_input.h"

enum {
	TEXT_MAX = 16 * 1024 * 1024
};

/* Both steps of a view whose type has no fini. Static: some are large. */
#define ROUND_TRIP(view, data, size)                                                             \
	do {                                                                                     \
		static struct takt_##view##_view first, second;                                  \
		memset(&first, 0, sizeof(first));                                                \
		memset(&second, 0, sizeof(second));                                              \
		if (takt_##view##_view_from_json((data), (size), &first, NULL) < 0)              \
			break;                                                                   \
		fuzz_expect(takt_##view##_view_to_json(&first, &text) == 0);                     \
		fuzz_expect(takt_##view##_view_from_json(text.s, text.len, &second, NULL) == 0); \
		fuzz_expect(takt_##view##_view_to_json(&second, &again) == 0);                   \
		fuzz_expect(strcmp(text.s, again.s) == 0);                                       \
	} while (0)

static void read_status(const char *json, size_t size)
{
	struct takt_status_view view = {0};

	if (takt_status_view_from_json(json, size, &view, NULL) == 0)
		takt_status_view_fini(&view);
}

static void read_queue(const char *json, size_t size)
{
	struct takt_queue_view view = {0};

	if (takt_queue_view_from_json(json, size, &view, NULL) == 0)
		takt_queue_view_fini(&view);
}

static void read_view(char which, const char *json, size_t size)
{
	struct takt_str text = TAKT_STR(TEXT_MAX), again = TAKT_STR(TEXT_MAX);
	struct takt_err err = {0};

	if (which == 's')
		read_status(json, size);
	else if (which == 'q')
		read_queue(json, size);
	else if (which == 'j')
		ROUND_TRIP(job, json, size);
	else if (which == 't')
		ROUND_TRIP(topo, json, size);
	else if (which == 'x')
		ROUND_TRIP(explain, json, size);
	else if (which == 'c')
		ROUND_TRIP(clock, json, size);
	else
		(void)takt_error_from_json(json, size, &err);
	takt_str_fini(&text);
	takt_str_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0)
		read_view((char)data[0], (const char *)data + 1, size - 1);
	return 0;
}
