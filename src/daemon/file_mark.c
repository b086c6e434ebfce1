/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is still the one that was read: by what changes when it is written, replaced, or
 * opened to others, and by no clock of ours. */
#include <sys/stat.h>

#include "daemon/daemon.h"

struct takt_file_mark takt_file_mark_of(const char *path)
{
	struct takt_file_mark mark = {.size = -1};
	struct stat st;

	if (stat(path, &st) == 0)
		mark = (struct takt_file_mark){.inode = st.st_ino,
					       .size = st.st_size,
					       .changed_s = st.st_ctim.tv_sec,
					       .changed_ns = st.st_ctim.tv_nsec};
	return mark;
}
