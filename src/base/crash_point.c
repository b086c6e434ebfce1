/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dying at a named place. The environment names at most one point, so one counter is enough; it is
 * read once, at the first pass of any point, because a program must not change its mind half-way.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys.h"

enum {
	NAME_MAX_LEN = 63
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char armed[NAME_MAX_LEN + 1]; /* "" = nothing armed */
static atomic_ullong passes_left;

/* secure_getenv: who calls a set-uid program does not choose where it dies. */
static void arm(void)
{
	const char *spec = secure_getenv("TAKT_CRASH_AT");
	const char *colon = spec ? strrchr(spec, ':') : NULL;
	unsigned long long nth = 1;
	size_t len;

	if (!spec || (colon && takt_parse_u64(colon + 1, 1, 1000000000, &nth) < 0))
		return;
	len = colon ? (size_t)(colon - spec) : strlen(spec);
	if (len > NAME_MAX_LEN)
		return;
	memcpy(armed, spec, len);
	atomic_store(&passes_left, nth);
}

void takt_crash_point(const char *name)
{
	pthread_once(&once, arm);
	if (!armed[0] || strcmp(armed, name) != 0)
		return;
	if (atomic_fetch_sub(&passes_left, 1) != 1)
		return;
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}
