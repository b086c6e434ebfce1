/* SPDX-License-Identifier: Apache-2.0 */
/* What both ends of the launcher's socket need; private to this room. */
#ifndef TAKT_LAUNCH_LAUNCH_SOCKET_H
#define TAKT_LAUNCH_LAUNCH_SOCKET_H

#include <sys/un.h>

#include "base/err.h"

int takt_launch_address(const char *path, struct sockaddr_un *ret, struct takt_err *err);

#endif
