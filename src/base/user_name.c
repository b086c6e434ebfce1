/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users and back, see the header. */
#include "base/user_name.h"

#include <pwd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

enum {
	ENTRY = 4096, /* bytes of one user's entry */
};

const char *takt_user_text(uid_t uid, char *buf, size_t size)
{
	struct passwd pw, *found = NULL;
	char text[ENTRY];

	if (getpwuid_r(uid, &pw, text, sizeof(text), &found) == 0 && found)
		takt_strcpy(buf, size, found->pw_name);
	else
		snprintf(buf, size, "%u", (unsigned)uid);
	return buf;
}

bool takt_user_find(const char *text, uid_t *ret)
{
	struct passwd pw, *found = NULL;
	unsigned long long number;
	char entry[ENTRY];

	if (getpwnam_r(text, &pw, entry, sizeof(entry), &found) == 0 && found)
		*ret = found->pw_uid;
	else if (takt_parse_u64(text, 0, UINT32_MAX - 1, &number) == 0)
		*ret = (uid_t)number;
	else
		return false;
	return true;
}
