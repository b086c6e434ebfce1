/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world behind one table.
 *
 * Durable code (store, launch, actuate) makes its file-system calls and reads its clocks through a
 * struct takt_sys, so that a test can make every call fail, lose every write that was not synced,
 * tear or reorder it, and be killed at every named point, without touching the machine.
 *
 * Calls keep the kernel's meaning but return -errno instead of setting errno. EINTR is retried
 * inside. `self` is the table itself (implementations embed it). fstatat follows symbolic links;
 * renameat works within one directory, which is all that durable code needs.
 */
#ifndef TAKT_BASE_SYS_H
#define TAKT_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/timetypes.h"

struct takt_sys {
	int (*openat)(const struct takt_sys *self, int dirfd, const char *path, int flags,
		      mode_t mode);
	int (*close)(const struct takt_sys *self, int fd);
	ssize_t (*pread)(const struct takt_sys *self, int fd, void *buf, size_t n, off_t at);
	ssize_t (*pwrite)(const struct takt_sys *self, int fd, const void *buf, size_t n, off_t at);
	int (*ftruncate)(const struct takt_sys *self, int fd, off_t size);
	int (*fallocate)(const struct takt_sys *self, int fd,
			 off_t size); /* blocks for [0, size) */
	/* The file's bytes from there on are given back to the file system and read as zeros; its
	 * size stays. -EOPNOTSUPP where files cannot have holes. */
	int (*punch)(const struct takt_sys *self, int fd, off_t from, off_t size);
	int (*fsync)(const struct takt_sys *self, int fd); /* also of directories */
	int (*fdatasync)(const struct takt_sys *self, int fd);
	int (*fstat)(const struct takt_sys *self, int fd, struct stat *ret);
	int (*fstatat)(const struct takt_sys *self, int dirfd, const char *path, struct stat *ret);
	int (*mkdirat)(const struct takt_sys *self, int dirfd, const char *path, mode_t mode);
	int (*renameat)(const struct takt_sys *self, int dirfd, const char *from, const char *to);
	int (*unlinkat)(const struct takt_sys *self, int dirfd, const char *path, int flags);
	int (*flock)(const struct takt_sys *self, int fd, int operation);
	uint64_t (*mono_ns)(const struct takt_sys *self);
	uint64_t (*boot_ns)(const struct takt_sys *self);
	int64_t (*wall_ns)(const struct takt_sys *self);
};

/* The real one; static, never freed. */
const struct takt_sys *takt_sys_real(void);

static inline struct takt_mono takt_mono_now(const struct takt_sys *sys)
{
	return (struct takt_mono){sys->mono_ns(sys)};
}
static inline struct takt_boot takt_boot_now(const struct takt_sys *sys)
{
	return (struct takt_boot){sys->boot_ns(sys)};
}
static inline struct takt_wall takt_wall_now(const struct takt_sys *sys)
{
	return (struct takt_wall){sys->wall_ns(sys)};
}

/*
 * A named place where a process may die in a test. With TAKT_CRASH_AT=name[:N] in the environment
 * the process kills itself with SIGKILL on the Nth pass (first by default), all threads counted
 * together. Without it, a no-op; packagers may compile it out (-Dcrash_points=false). Names read
 * "room.place" and have no colon; each stands at one place only, which the house checks prove. The
 * variable is read once a process; a set-uid program and one with a malformed N ignore it.
 */
#ifdef TAKT_CRASH_POINTS
void takt_crash_point(const char *name);
#else
#define takt_crash_point(name) ((void)0)
#endif

/*
 * Durable small files. write: contents go to "<name>.tmp" in the same directory, fsync, rename over
 * name, fsync of the directory. After success the new contents survive power loss; after failure
 * or power loss in between the name holds the old contents or the new, complete, never a mixture
 * (new only when it was the last step, the directory's sync, that failed). `name` has no slash,
 * `dirfd` is an open directory (not AT_FDCWD, not O_PATH: it must be synced), `mode` is subject to
 * the umask, one writer a name. read: whole file of at most max bytes (else -TAKT_E_LIMIT),
 * NUL-terminated (NUL not counted in *ret_len), owned by the caller (takt_free).
 */
int takt_file_write_durable(const struct takt_sys *sys, int dirfd, const char *name,
			    const void *bytes, size_t n, mode_t mode, struct takt_err *err);
int takt_file_read(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
		   char **ret_text, size_t *ret_len, struct takt_err *err);
/* As above, in a directory that somebody else may write: no link is followed, no pipe waited for,
 * and no other name of a file that is elsewhere is read (-TAKT_E_CORRUPT). */
int takt_file_read_plain(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
			 char **ret_text, size_t *ret_len, struct takt_err *err);

/*
 * mkdir -p with fsync of each parent; existing directories are fine. A parent that did not change
 * is synced too (its maker may have been killed before he did), but may refuse it without harm.
 */
int takt_mkdirs_durable(const struct takt_sys *sys, const char *path, mode_t mode,
			struct takt_err *err);

/*
 * A process that cannot be mistaken for another: pid numbers are reused, start times within a boot
 * are not.
 */
struct takt_proc_id {
	int32_t pid;	      /* 0 = none */
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
	char boot_id[40];     /* /proc/sys/kernel/random/boot_id */
};
/* Identity of a live pid; a zombie still has one. -ESRCH if gone, -EACCES if it exists but /proc
 * hides it (hidepid): the two must not be confused. */
int takt_proc_identify(int32_t pid, struct takt_proc_id *ret, struct takt_err *err);
/* Whether the live process of that number began when `id`'s did: for ids of this boot. */
bool takt_proc_lives(const struct takt_proc_id *id);
/* pidfd of exactly that process (caller closes; it polls readable once the process has ended),
 * -ESRCH when it is gone or the boot is another. */
int takt_proc_open(const struct takt_proc_id *id);
#define TAKT_NO_BOOT_ID "00000000-0000-0000-0000-000000000000"
/* Boot id of the running kernel into buf[40]; "" cannot happen, falls back to all zeros. */
void takt_boot_id(char buf[40]);
/* Whether two boot ids are of different boots. One that could not be read (all zeros) tells
 * nothing: what was done at it is not taken for gone. */
static inline bool takt_boot_differs(const char *a, const char *b)
{
	return strcmp(a, TAKT_NO_BOOT_ID) != 0 && strcmp(b, TAKT_NO_BOOT_ID) != 0 &&
	       strcmp(a, b) != 0;
}

#endif
