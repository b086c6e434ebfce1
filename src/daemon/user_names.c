/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users. A list of a thousand jobs asks a thousand times for the same few, and each answer
 * of the C library reads a file or asks a server of the network: so names are kept for a minute.
 * For the main thread.
 */
#include "base/str.h"
#include "base/sys.h"
#include "base/user_name.h"
#include "daemon/daemon.h"

enum {
	KEPT = 64
};

static const uint64_t fresh_ns = 60 * TAKT_NS_PER_S;

struct user_name {
	uid_t uid;
	uint64_t until_ns; /* 0 = none is kept here */
	char name[64];
};

const char *takt_user_name(uid_t uid, char *buf, size_t size)
{
	static struct user_name kept[KEPT];
	struct user_name *at = &kept[uid % KEPT];
	uint64_t now_ns = takt_mono_now(takt_sys_real()).ns;

	if (at->uid != uid || at->until_ns <= now_ns) {
		at->uid = uid;
		takt_user_text(uid, at->name, sizeof(at->name));
		at->until_ns = now_ns + fresh_ns;
	}
	takt_strcpy(buf, size, at->name);
	return buf;
}
