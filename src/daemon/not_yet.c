/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes that this takt understands but does not carry out yet. They are refused: whoever asked for
 * them must not think that he got them. A line goes when its wish is carried out. */
#include <stddef.h>

#include "base/compiler.h"
#include "daemon/daemon.h"

#define WISH(flag, member)                                              \
	{                                                               \
		(flag), #member, offsetof(struct takt_jobspec, member), \
			sizeof(((struct takt_jobspec *)0)->member)      \
	}

static const struct wish {
	const char *flag, *field;
	size_t offset, size;
} not_yet[] = {
	WISH("--freezable", freezable),
	WISH("--hook", hook),
};

/* All these fields are zero, NULL or empty when nothing is asked for. */
static bool is_asked(const struct takt_jobspec *spec, const struct wish *wish)
{
	const unsigned char *at = (const unsigned char *)spec + wish->offset;

	for (size_t i = 0; i < wish->size; i++)
		if (at[i])
			return true;
	return false;
}

int takt_daemon_check_carried_out(const struct takt_jobspec *spec, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(not_yet); i++)
		if (is_asked(spec, &not_yet[i]))
			return takt_err_set(err, -TAKT_E_UNSUPPORTED,
					    "%s (field '%s') is not carried out yet",
					    not_yet[i].flag, not_yet[i].field);
	return 0;
}
