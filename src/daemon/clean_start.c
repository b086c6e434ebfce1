/* SPDX-License-Identifier: Apache-2.0 */
/* See clean_start.h. */
#include "daemon/clean_start.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"

/* Names, or beginnings of names ('*'). None of them chooses code: the simulated driver's machine is
 * looked at only by a library that an administrator has named. */
static const char *const kept[] = {
	"PATH",
	"HOME",
	"LANG",
	"TZ",
	"XDG_RUNTIME_DIR",
	"XDG_STATE_HOME",
	"TAKT_TWIN",
	TAKT_UNUSED_NVML,
	"TAKT_CRASH_AT",
	"LISTEN_*",
	"NOTIFY_SOCKET",
	"JOURNAL_STREAM",
	"INVOCATION_ID",
	"ASAN_OPTIONS",
	"UBSAN_OPTIONS",
	"LSAN_OPTIONS",
};

static bool is_kept(const char *variable)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(kept); i++) {
		size_t len = strcspn(kept[i], "*");

		if (strncmp(variable, kept[i], len) == 0 &&
		    (kept[i][len] == '*' || variable[len] == '='))
			return true;
	}
	return false;
}

void takt_keep_name(char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	(void)prctl(PR_SET_NAME, slash ? slash + 1 : argv[0]);
}

int takt_clean_start(char **argv, struct takt_err *err)
{
	size_t n = 0, clean_count = 0;
	char **clean;

	while (environ && environ[n])
		n++;
	clean = takt_calloc(n + 1, sizeof(*clean));
	if (!clean)
		return takt_err_set(err, -ENOMEM, "an environment of our own");
	for (size_t i = 0; i < n; i++)
		if (is_kept(environ[i]))
			clean[clean_count++] = environ[i];
	if (clean_count < n)
		execve("/proc/self/exe", argv, clean);
	takt_free(clean);
	takt_keep_name(argv);
	return clean_count < n
		       ? takt_err_set(err, -errno, "start anew without the caller's environment")
		       : 0;
}
