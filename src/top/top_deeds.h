/* SPDX-License-Identifier: Apache-2.0 */
/* What changes something: jobs by the daemon, processes by a pidfd. */
#ifndef TAKT_TOP_DEEDS_H
#define TAKT_TOP_DEEDS_H

#include "base/err.h"
#include "top/top_ui.h"

/* Does one; `socket` NULL = find it, *pidfd is the process that was asked about (-1 = none), let go
 * of afterwards. What was done, or what is missing, goes to ui->notice; a process that is gone
 * takes its question with it. */
void takt_top_do(struct takt_top_ui *ui, const struct takt_deed *deed, const char *socket,
		 int *pidfd);

/* Does what a takt top elsewhere has asked about and tells. Only here it is known whose the process
 * is and whether it is still the one that was shown. */
void takt_top_do_told(struct takt_top_ui *ui, const struct takt_deed *deed, const char *socket);

#endif
