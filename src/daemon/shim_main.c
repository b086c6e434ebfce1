/* SPDX-License-Identifier: Apache-2.0 */
/* takt-shim: one a job attempt, as the job's user. Started by takt-launch. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "launch/launch.h"

int main(int argc, char **argv)
{
	struct takt_err err;
	char text[320];
	int dirfd, rc;

	if (argc != 2 && argc != 3) {
		fprintf(stderr,
			"usage: takt-shim DIRECTORY-OF-AN-ATTEMPT [DIRECTORY-OF-ATTEMPTS]\n");
		return takt_err_exit_status(-TAKT_E_USAGE);
	}
	dirfd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		rc = takt_err_set(&err, -errno, "open '%s'", argv[1]);
	else
		rc = chdir("/") < 0 ? takt_err_set(&err, -errno, "change to '/'")
				    : takt_shim_run(takt_sys_real(), dirfd, &err);
	if (rc == 0)
		return 0;
	fprintf(stderr, "takt-shim: %s\n", takt_err_text(&err, text, sizeof(text)));
	return takt_err_exit_status(rc);
}
