/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured workloads from a CSV file: a line of column names, then a row for each measurement.
 *
 *   workload                       any name; rows of one are one workload
 *   gpu                            what it was measured on; may be left out
 *   core_mhz                       SM clock; or, where that is empty,
 *   power_limit_w                  the power limit under which it ran
 *   time, time_unit                of the same work: s, s/step, rel, ...
 *   power_w                        what the board drew
 *
 * Other columns are passed over. Under a power limit the clock was not written down: it is taken to
 * be where the board's own curve has the power that was measured.
 */
#ifndef TAKT_TWIN_TWIN_ROWS_FILE_H
#define TAKT_TWIN_TWIN_ROWS_FILE_H

#include <stddef.h>

#include "base/err.h"
#include "twin_layout.h"

enum {
	TWIN_ROWS_MAX_BYTES = 8 << 20,
	TWIN_ROWS_MAX = 1024, /* of one workload */
};

/* Which rows of a file: of this workload, measured on this GPU (NULL where there is only one). */
struct twin_rows_wish {
	const char *file, *workload, *gpu;
};

/* Makes a workload of them, for a board of that type. Errors name file, line and column. */
int twin_rows_from(const char *text, const struct twin_rows_wish *wish,
		   const struct twin_board *board, struct twin_profile *ret, struct takt_err *err);

/* The same from the file itself. */
int twin_rows_load(const struct twin_rows_wish *wish, const struct twin_board *board,
		   struct twin_profile *ret, struct takt_err *err);

#endif
