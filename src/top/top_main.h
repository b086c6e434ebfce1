/* SPDX-License-Identifier: Apache-2.0 */
/* The program takt-top, which `takt top` becomes. */
#ifndef TAKT_TOP_MAIN_H
#define TAKT_TOP_MAIN_H

#include "base/str.h"
#include "top/top_model.h"

/* Returns the exit status. Options: --socket PATH, --nvml-path PATH, --rate-milli N (of a hertz),
 * --driver, --once, --json, --ascii, --allow-foreign; `takt top` has checked them. */
int takt_top_main(int argc, char **argv);

/* top_json.c: a snapshot for programs. */
int takt_top_to_json(const struct takt_top_snapshot *snapshot, struct takt_str *out);

#endif
