/* SPDX-License-Identifier: Apache-2.0 */
/* What this room has to tell an administrator, a line at a time, to wherever its process logs. */
#ifndef TAKT_ACTUATE_ACTUATE_LOG_H
#define TAKT_ACTUATE_ACTUATE_LOG_H

#include "actuate/actuate.h"
#include "base/compiler.h"

/* Lines are cut at 511 bytes. A log without a function says nothing. */
void takt_actuate_say(const struct takt_actuate_log *log, const char *fmt, ...) TAKT_PRINTF(2, 3);

#endif
