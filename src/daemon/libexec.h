/* SPDX-License-Identifier: Apache-2.0 */
/* Where the programs lie that takt starts and nobody calls by hand, and what it loads of itself. */
#ifndef TAKT_DAEMON_LIBEXEC_H
#define TAKT_DAEMON_LIBEXEC_H

#include <limits.h>

/* Beside the running program in a build folder, else where they were installed. */
void takt_libexec_dir(char ret[PATH_MAX]);

#endif
