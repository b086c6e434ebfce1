/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal view as `takt top` runs it. */
#ifndef TAKT_TOP_MAIN_H
#define TAKT_TOP_MAIN_H

/* Returns the exit status. Options: --socket PATH, --nvml-path PATH, --rate-milli N (of a hertz),
 * --host NAME (again and again), --driver, --once, --json, --each-line, --ascii, --allow-foreign;
 * `takt top` has checked them. */
int takt_top_main(int argc, char **argv);

#endif
