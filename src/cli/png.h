/* SPDX-License-Identifier: Apache-2.0 */
/* A chart as PNG. rsvg-convert of librsvg2-bin draws it: a renderer of SVG is nothing to write
 * anew. */
#ifndef TAKT_CLI_PNG_H
#define TAKT_CLI_PNG_H

#include "base/err.h"
#include "base/str.h"

/* check: 0, or -TAKT_E_UNSUPPORTED where there is no rsvg-convert. write: the SVG to `path` as PNG;
 * the same, or -EIO: it failed. */
int takt_cli_check_png(struct takt_err *err);
int takt_cli_write_png(const struct takt_str *svg, const char *path, struct takt_err *err);

#endif
