/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader of the Prometheus text format 0.0.4, written from its description and not from
 * the renderer: so that a page that it takes is one that Prometheus takes.
 */
#ifndef TAKT_TESTS_PROM_CHECK_H
#define TAKT_TESTS_PROM_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* NULL when the page is right, else what is wrong (static text, with the line in *ret_line). */
const char *prom_check(const char *text, size_t len, size_t *ret_line);

/* The value of the series whose text before the value is exactly `series`; false when absent. */
bool prom_value(const char *text, const char *series, double *ret);

/* How many series the metric has. */
size_t prom_count(const char *text, const char *metric);

#endif
