/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine itself does: processors, memory, load. */
#ifndef TAKT_TOP_HOST_LOOK_H
#define TAKT_TOP_HOST_LOOK_H

#include "top/top_model.h"

/* Of all processors, since the start, in ticks. */
struct takt_host_ticks {
	uint64_t busy, all;
};

/* The texts of /proc/stat, /proc/meminfo and /proc/loadavg; false where they are not such. */
bool takt_host_read_ticks(const char *text, struct takt_host_ticks *ret);
bool takt_host_read_memory(const char *text, struct takt_top_host *ret);
bool takt_host_read_load(const char *text, struct takt_top_host *ret);

/* A look; *before: what was read at the last one, zeroed at first. How busy the processors are is
 * not known until there are two. */
void takt_host_look(struct takt_host_ticks *before, struct takt_top_host *ret);

#endif
