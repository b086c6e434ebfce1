/* SPDX-License-Identifier: Apache-2.0 */
/* takt-shim: one a job attempt. Started by takt-launch: as root where jobs run as other users, else
 * as the user of all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "launch/launch.h"

static const char usage[] =
	"usage: takt-shim DIRECTORY-OF-AN-ATTEMPT [DIRECTORY-OF-ATTEMPTS "
	"[CGROUP [WHY-ADVISORY [UID:GID[:OOM-SCORE] [LIMITS]]]]]\n"
	"Runs one attempt at a job and records its end. takt-launch starts it.\n";

int main(int argc, char **argv)
{
	struct takt_job_place place = {.why = "no launcher has said more"};
	struct takt_job_user user = {0};
	struct takt_err err;
	char text[320];
	int dirfd = -1, rc = 0;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc < 2 || argc > 7) {
		fputs(usage, stderr);
		return takt_err_exit_status(-TAKT_E_USAGE);
	}
	if (argc > 3)
		takt_strcpy(place.job, sizeof(place.job), argv[3]);
	if (argc > 4)
		takt_strcpy(place.why, sizeof(place.why), argv[4]);
	if (argc > 5)
		rc = takt_job_user_parse(argv[5], &user, &err);
	if (rc == 0 && argc > 6)
		rc = takt_user_limits_parse(argv[6], &user.limits, &err);
	if (rc == 0)
		dirfd = open(argv[1], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rc == 0 && dirfd < 0)
		rc = takt_err_set(&err, -errno, "open '%s'", argv[1]);
	if (rc == 0 && chdir("/") < 0)
		rc = takt_err_set(&err, -errno, "change to '/'");
	if (rc == 0)
		rc = takt_shim_run(takt_sys_real(), dirfd, &place, &user, &err);
	if (rc == 0)
		return 0;
	fprintf(stderr, "takt-shim: %s\n", takt_err_text(&err, text, sizeof(text)));
	return takt_err_exit_status(rc);
}
