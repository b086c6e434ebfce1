/* SPDX-License-Identifier: Apache-2.0 */
/* What came over the launcher's socket, as a message of this build or as none; private to this
 * room. */
#ifndef TAKT_LAUNCH_LAUNCH_WIRE_H
#define TAKT_LAUNCH_LAUNCH_WIRE_H

#include <stddef.h>

#include "launch/launch.h"

/* `size` is the message's, also where it is longer than what could be read of it: then it is none.
 * -TAKT_E_VERSION: of another size or version; -EINVAL: no request of this build could say that. */
int takt_launch_read_request(const void *bytes, size_t size, struct takt_launch_request *ret,
			     struct takt_err *err);

/* The same of a reply, for which -TAKT_E_VERSION is all that can be wrong. */
int takt_launch_read_reply(const void *bytes, size_t size, struct takt_launch_reply *ret,
			   struct takt_err *err);

#endif
