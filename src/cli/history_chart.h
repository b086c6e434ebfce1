/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did, as charts: one a metric and eight GPUs, under each other in one SVG. */
#ifndef TAKT_CLI_HISTORY_CHART_H
#define TAKT_CLI_HISTORY_CHART_H

#include "cli/history_text.h"

/* Lines of the means over the time asked for, cut where nothing was measured. Appends nothing when
 * there is no point at all. -ENOMEM. */
int takt_history_chart(const struct takt_history_list *list, struct takt_str *ret_svg);

#endif
