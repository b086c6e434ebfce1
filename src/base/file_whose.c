/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_whose.h"

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stddef.h>
#include <sys/xattr.h>

#include "base/compiler.h"

enum {
	MAX_ENTRIES = 8 /* of what takt sets there are five */
};

uid_t takt_file_whose(int fd, const struct stat *st)
{
	struct {
		struct posix_acl_xattr_header head;
		struct posix_acl_xattr_entry entry[MAX_ENTRIES];
	} list;
	uid_t found = 0;
	ssize_t size = st->st_uid == 0
			       ? fgetxattr(fd, "system.posix_acl_access", &list, sizeof(list))
			       : -1;
	size_t count = size < (ssize_t)sizeof(list.head)
			       ? 0
			       : ((size_t)size - sizeof(list.head)) / sizeof(list.entry[0]);

	for (size_t i = 0; i < count; i++) {
		if (le16toh(list.entry[i].e_tag) != ACL_USER)
			continue;
		if (found)
			return st->st_uid;
		found = le32toh(list.entry[i].e_id);
	}
	return found ? found : st->st_uid;
}
