/* SPDX-License-Identifier: Apache-2.0 */
/* See client_user.h. */
#include "daemon/client_user.h"

#include "base/str.h"
#include "base/user_name.h"

int takt_client_user(const char *text, uid_t *ret, struct takt_err *err)
{
	unsigned long long number;

	if (takt_parse_u64(text, 0, UINT32_MAX - 1, &number) == 0) {
		*ret = (uid_t)number;
		return 0;
	}
	if (takt_user_find(text, ret))
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "--client-uid '%.40s': a user's number or name is accepted", text);
}
