/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the daemon's socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/client_impl.h"

enum {
	MAX_PLACES = 3
};

static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc = 0;

	if (!takt_strcpy(address.sun_path, sizeof(address.sun_path), path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: somebody listens, and many are waiting. */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EAGAIN)
		rc = -errno;
	close(fd);
	return rc;
}

/* Anybody may make a directory of that name in /tmp; ours is the one that belongs to us. */
static bool is_ours(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static size_t list_places(char places[MAX_PLACES][108])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char dir[40];
	size_t n = 0;

	if (runtime && runtime[0] == '/' && strlen(runtime) < 80)
		snprintf(places[n++], 108, "%.80s/takt/takt.sock", runtime);
	snprintf(dir, sizeof(dir), "/tmp/takt-%u", (unsigned)geteuid());
	if (is_ours(dir))
		snprintf(places[n++], 108, "%s/takt.sock", dir);
	snprintf(places[n++], 108, "/run/takt/takt.sock");
	return n;
}

static int only(const char *path, char ret[108], struct takt_err *err)
{
	int rc = try_connect(path);

	if (rc < 0)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "no takt answers on '%.100s' ($TAKT_SOCKET): %s; 'takt serve' "
				    "starts one",
				    path, takt_err_sentence(rc));
	takt_strcpy(ret, 108, path);
	return 0;
}

int takt_client_discover(char ret[108], struct takt_err *err)
{
	const char *given = getenv("TAKT_SOCKET");
	char places[MAX_PLACES][108], tried[200] = "";
	size_t n, used = 0;

	if (given && given[0])
		return only(given, ret, err);
	n = list_places(places);
	for (size_t i = 0; i < n; i++) {
		int rc = try_connect(places[i]);

		if (rc == 0) {
			takt_strcpy(ret, 108, places[i]);
			return 0;
		}
		used += (size_t)snprintf(tried + used, sizeof(tried) - used, "%s%.50s (%s)",
					 i ? ", " : "", places[i], takt_err_name(rc));
		used = used < sizeof(tried) ? used : sizeof(tried) - 1;
	}
	return takt_err_set(err, -TAKT_E_UNAVAILABLE,
			    "no takt runs here: tried %s; 'takt serve' starts one", tried);
}
