/* SPDX-License-Identifier: Apache-2.0 */
/* Looked at before it is taken for a struct: either end may be in somebody else's hands. */
#include "launch/launch_wire.h"

#include <errno.h>
#include <string.h>

/* A byte that is neither 0 nor 1 is no bool, and may not be looked at as one. */
static bool is_bool(const unsigned char *bytes, size_t at)
{
	return bytes[at] <= 1;
}

int takt_launch_read_request(const void *bytes, size_t size, struct takt_launch_request *ret,
			     struct takt_err *err)
{
	struct takt_launch_request request;

	if (size != sizeof(request))
		return takt_err_set(err, -TAKT_E_VERSION, "a request of %zu bytes, not %zu", size,
				    sizeof(request));
	if (!is_bool(bytes, offsetof(struct takt_launch_request, limits.staged)) ||
	    !is_bool(bytes, offsetof(struct takt_launch_request, limits.any_device)))
		return takt_err_set(err, -EINVAL, "a yes or no of the request is neither");
	memcpy(&request, bytes, sizeof(request));
	if (request.version != TAKT_LAUNCH_VERSION)
		return takt_err_set(err, -TAKT_E_VERSION, "a request of version %u, not %d",
				    request.version, TAKT_LAUNCH_VERSION);
	request.target.boot_id[sizeof(request.target.boot_id) - 1] = '\0';
	*ret = request;
	return 0;
}

int takt_launch_read_reply(const void *bytes, size_t size, struct takt_launch_reply *ret,
			   struct takt_err *err)
{
	struct takt_launch_reply reply = {0};

	if (size == sizeof(reply))
		memcpy(&reply, bytes, sizeof(reply));
	if (reply.version != TAKT_LAUNCH_VERSION)
		return takt_err_set(err, -TAKT_E_VERSION, "the launcher is of another version");
	reply.shim.boot_id[sizeof(reply.shim.boot_id) - 1] = '\0';
	reply.message[sizeof(reply.message) - 1] = '\0';
	*ret = reply;
	return 0;
}
