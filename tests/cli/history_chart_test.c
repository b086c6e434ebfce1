/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of takt history: a line a GPU, cut where nothing was measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/history_chart.h"

enum {
	POINTS = 6,
	MAX = 64,
};

static struct takt_history_view_point points[POINTS];
static struct takt_history_list list;
static struct takt_str svg;

static int begin(void **state)
{
	/* a step is missing between the third and the fourth, and the last stands alone */
	static const int64_t at_s[POINTS] = {0, 10, 20, 40, 50, 90};

	for (int i = 0; i < POINTS; i++)
		points[i] = (struct takt_history_view_point){at_s[i] * 1000, 1, 100 + i, 900};
	list.views.max = MAX;
	svg = TAKT_STR(1 << 20);
	return 0;
}

static int end(void **state)
{
	takt_vec_fini(&list.views);
	memset(&list, 0, sizeof(list));
	takt_str_fini(&svg);
	return 0;
}

static void add(uint32_t gpu, const char *metric, uint32_t count, uint64_t step_ms)
{
	struct takt_history_view view = {.gpu = gpu,
					 .step_ms = step_ms,
					 .unit = "W",
					 .until_ms = 100000,
					 .points = points,
					 .point_count = count};

	strcpy(view.metric, metric);
	assert_int_equal(takt_vec_push(&list.views, view), 0);
}

static unsigned times(const char *text)
{
	unsigned n = 0;

	for (const char *at = takt_str_text(&svg); (at = strstr(at, text)); at += strlen(text))
		n++;
	return n;
}

/* How often the pen is set down in the first line of data. */
static unsigned pieces(void)
{
	const char *at = strstr(takt_str_text(&svg), " d=\""), *line_end = strstr(at, "\"><title>");
	unsigned n = 0;

	for (; at < line_end; at++)
		n += *at == 'M';
	return n;
}

static void lines_are_cut_at_gaps(void **state)
{
	add(0, "power", POINTS, 10000);
	assert_int_equal(takt_history_chart(&list, &svg), 0);
	assert_int_equal(pieces(), 3);
	assert_int_equal(times("h1\""), 1); /* the one alone is seen */
	assert_int_equal(times("nan"), 0);
	assert_non_null(strstr(takt_str_text(&svg), "seconds since "));
	assert_non_null(strstr(takt_str_text(&svg), ">power, W<"));
	assert_non_null(strstr(takt_str_text(&svg), ">GPU 0<"));
}

static void samples_are_cut_where_there_were_none_for_seconds(void **state)
{
	for (int i = 0; i < POINTS; i++)
		points[i].at_ms = i * 1000 + (i > 2 ? 3000 : 0);
	add(0, "power", POINTS, 0);
	assert_int_equal(takt_history_chart(&list, &svg), 0);
	assert_int_equal(pieces(), 2);
}

static void a_metric_and_eight_gpus_are_a_chart(void **state)
{
	for (uint32_t gpu = 0; gpu < 9; gpu++) {
		add(gpu, "power", POINTS, 10000);
		add(gpu, "temperature", POINTS, 10000);
	}
	assert_int_equal(takt_history_chart(&list, &svg), 0);
	assert_int_equal(times("<svg"), 1 + 4);
	assert_int_equal(times(">temperature, W<"), 2);
	assert_int_equal(times("</svg>"), 1 + 4);
}

static void without_a_point_nothing_is_drawn(void **state)
{
	add(0, "power", 0, 10000);
	assert_int_equal(takt_history_chart(&list, &svg), 0);
	assert_int_equal(svg.len, 0);
	add(1, "power", 1, 10000);
	assert_int_equal(takt_history_chart(&list, &svg), 0);
	assert_int_equal(times("<svg"), 1 + 1);
}

static void without_memory_there_is_none(void **state)
{
	int rc = -1;

	add(0, "power", POINTS, 10000);
	add(1, "power", POINTS, 10000);
	for (unsigned long nth = 1; rc < 0 && nth < 1000; nth++) {
		takt_str_fini(&svg);
		svg = TAKT_STR(1 << 20);
		takt_alloc_fail_nth(nth, 0);
		rc = takt_history_chart(&list, &svg);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(times("<svg"), 1 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
		CASE(lines_are_cut_at_gaps),
		CASE(samples_are_cut_where_there_were_none_for_seconds),
		CASE(a_metric_and_eight_gpus_are_a_chart),
		CASE(without_a_point_nothing_is_drawn),
		CASE(without_memory_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
