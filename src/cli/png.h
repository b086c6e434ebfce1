/* SPDX-License-Identifier: Apache-2.0 */
/* A chart as PNG. rsvg-convert of librsvg2-bin draws it: a renderer of SVG is nothing to write
 * anew. */
#ifndef TAKT_CLI_PNG_H
#define TAKT_CLI_PNG_H

#include "base/err.h"
#include "base/str.h"

/* Writes the SVG to `path` as PNG. -TAKT_E_UNSUPPORTED: there is no rsvg-convert; -EIO: it failed.
 */
int takt_cli_write_png(const struct takt_str *svg, const char *path, struct takt_err *err);

#endif
