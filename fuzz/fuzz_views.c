/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command line reads from a daemon, and one daemon from another: one byte chooses the
 * view, the rest is its JSON. An accepted view is written and read again as the same.
 */
#include "codec/course_view.h"
#include "codec/health.h"
#include "codec/history_view.h"
#include "codec/net_view.h"
#include "codec/views.h"
#include "fuzz_input.h"

enum {
	TEXT_MAX = 16 * 1024 * 1024
};

/* Both steps of a type that has no fini. Static: some are large. */
#define ROUND_TRIP(type, data, size)                                                 \
	do {                                                                         \
		static struct type first, second;                                    \
		memset(&first, 0, sizeof(first));                                    \
		memset(&second, 0, sizeof(second));                                  \
		if (type##_from_json((data), (size), &first, NULL) < 0)              \
			break;                                                       \
		fuzz_expect(type##_to_json(&first, &text) == 0);                     \
		fuzz_expect(type##_from_json(text.s, text.len, &second, NULL) == 0); \
		fuzz_expect(type##_to_json(&second, &again) == 0);                   \
		fuzz_expect(strcmp(text.s, again.s) == 0);                           \
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

static void read_history(const char *json, size_t size)
{
	struct takt_history_view view = {0};

	if (takt_history_view_from_json(json, size, &view, NULL) == 0)
		takt_history_view_fini(&view);
}

static void read_net(const char *json, size_t size)
{
	static struct takt_net_view view;

	(void)takt_net_view_from_json(json, size, &view, NULL);
}

static void read_course(const char *json, size_t size)
{
	static struct takt_course_view view;
	struct takt_str text = TAKT_STR(TEXT_MAX);

	if (takt_course_view_from_json(json, size, &view, NULL) == 0)
		(void)takt_course_view_to_json(&view, &text);
	takt_str_fini(&text);
}

static void read_health(const char *json, size_t size)
{
	struct takt_health_view view = {0};

	if (takt_health_view_from_json(json, size, &view, NULL) == 0)
		takt_health_view_fini(&view);
}

static void read_view(char which, const char *json, size_t size)
{
	struct takt_str text = TAKT_STR(TEXT_MAX), again = TAKT_STR(TEXT_MAX);
	struct takt_err err = {0};

	if (which == 's')
		read_status(json, size);
	else if (which == 'q')
		read_queue(json, size);
	else if (which == 'h')
		read_history(json, size);
	else if (which == 'g')
		read_health(json, size);
	else if (which == 'p')
		ROUND_TRIP(takt_health_past, json, size);
	else if (which == 'o')
		read_course(json, size);
	else if (which == 'n')
		read_net(json, size);
	else if (which == 'j')
		ROUND_TRIP(takt_job_view, json, size);
	else if (which == 't')
		ROUND_TRIP(takt_topo_view, json, size);
	else if (which == 'x')
		ROUND_TRIP(takt_explain_view, json, size);
	else if (which == 'c')
		ROUND_TRIP(takt_clock_view, json, size);
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
