/* SPDX-License-Identifier: Apache-2.0 */
/* A deed on another machine: told to `takt top` there over an ssh of its own, beside the one that
 * looks, so that neither a slow look nor a slow deed holds up the other. Nothing here waits. */
#ifndef TAKT_TOP_FAR_DEED_H
#define TAKT_TOP_FAR_DEED_H

#include "base/err.h"
#include "top/top_ui.h"

struct takt_far_deed;

/* `host` is borrowed until free. One that is freed before it is over may be done or not. */
int takt_far_deed_begin(const char *host, const struct takt_deed *deed, bool allow_foreign,
			struct takt_far_deed **ret, struct takt_err *err);
void takt_far_deed_free(struct takt_far_deed *far); /* NULL is fine */
/* Readable when there is something to hear; -1 for NULL. */
int takt_far_deed_fd(const struct takt_far_deed *far);
/* True once it is over, with what became of it in ui->notice. */
bool takt_far_deed_over(struct takt_far_deed *far, struct takt_top_ui *ui);

#endif
