/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel keeps the least score that a process may give itself without CAP_SYS_RESOURCE, and
 * children inherit it. Who has the right and writes a score sets that, too, so that a job below a
 * shim with the least score of all could have that as well. The older file does not set it.
 */
#include "launch/oom_score.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

static const char score_file[] = "/proc/self/oom_score_adj";

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	(void)close(fd);
}

int takt_oom_score_of_jobs(void)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	int own = 0;
	size_t len;

	if (takt_file_read(takt_sys_real(), AT_FDCWD, score_file, 64, &text, &len, NULL) < 0 ||
	    sscanf(text, "%d", &own) != 1 || own < 0)
		return 0;
	return own < TAKT_OOM_SCORE_MAX ? own : TAKT_OOM_SCORE_MAX;
}

void takt_oom_score_take(int score)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", score);
	put(score_file, text);
}

void takt_oom_score_spare(void)
{
	put("/proc/self/oom_adj", "-17");
}
