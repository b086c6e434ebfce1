/* SPDX-License-Identifier: Apache-2.0 */
/* One self-contained page: style inline, no script, nothing fetched. */
#ifndef TAKT_SIM_HTML_PAGE_H
#define TAKT_SIM_HTML_PAGE_H

#include "base/str.h"
#include "sim/sim_meta.h"
#include "sim/sim_table.h"

/* Text with what HTML reads otherwise escaped. */
void takt_html_text(struct takt_str *out, const char *text);

/* Title, one line below it, and the facts of the result; then sections; then the end, with the
 * command that repeats it. */
void takt_html_begin(struct takt_str *out, const struct takt_sim_meta *meta, const char *title,
		     const char *subtitle);
void takt_html_heading(struct takt_str *out, const char *text);
void takt_html_end(struct takt_str *out, const struct takt_sim_meta *meta);

/* Means with their intervals, of one load; the differences to the baseline below them. */
void takt_html_table(struct takt_str *out, const struct takt_sim_table *table, size_t load,
		     size_t baseline);

#endif
