/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is: read from /proc, because only the kernel's own numbers cannot be forged. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc_stat.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	STAT_MAX = 4096
};

void takt_boot_id(char buf[40])
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;

	takt_strcpy(buf, 40, TAKT_NO_BOOT_ID);
	if (takt_file_read(takt_sys_real(), AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text,
			   &len, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (strlen(text) == sizeof(TAKT_NO_BOOT_ID) - 1)
		takt_strcpy(buf, 40, text);
}

/* /proc mounted with hidepid shows no stranger's pid: absent there is not the same as gone. */
static int why_no_stat(int32_t pid, int rc, struct takt_err *err)
{
	if (rc != -ENOENT && rc != -ESRCH)
		return takt_err_set(err, rc, "read '/proc/%d/stat'", pid);
	if (kill(pid, 0) == 0 || errno == EPERM)
		return takt_err_set(err, -EACCES, "process %d exists but /proc hides it", pid);
	return takt_err_set(err, -ESRCH, "process %d", pid);
}

int takt_proc_stat_read(int32_t pid, struct takt_proc_stat *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	char path[40];
	size_t len;
	int rc;

	if (pid <= 0)
		return takt_err_set(err, -ESRCH, "process %d", pid);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, STAT_MAX, &text, &len, NULL);
	if (rc < 0)
		return why_no_stat(pid, rc, err);
	if (takt_proc_stat_parse(text, ret) < 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' has an unknown layout", path);
	return 0;
}

bool takt_proc_lives(const struct takt_proc_id *id)
{
	struct takt_proc_stat stat;

	return takt_proc_stat_read(id->pid, &stat, NULL) == 0 &&
	       stat.start_ticks == id->start_ticks;
}

int takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err)
{
	struct takt_proc_stat stat;
	int rc = takt_proc_stat_read(pid, &stat, err);

	if (rc < 0)
		return rc;
	*ret = (struct takt_proc_id){.pid = pid, .start_ticks = stat.start_ticks};
	takt_boot_id(ret->boot_id);
	return 0;
}

/*
 * The descriptor is opened before the identity is compared: an id that still matches afterwards
 * held the number all the time in between, so the descriptor is its own.
 */
int takt_proc_open(const struct takt_proc_id *id)
{
	struct takt_proc_id now;
	int fd, rc;

	if (id->pid <= 0)
		return -ESRCH;
	fd = pidfd_open(id->pid, 0);
	if (fd < 0)
		return -errno;
	rc = takt_proc_identify(id->pid, &now, NULL);
	if (rc == 0 && now.start_ticks == id->start_ticks &&
	    !takt_boot_differs(now.boot_id, id->boot_id))
		return fd;
	close(fd);
	return rc < 0 ? rc : -ESRCH;
}
