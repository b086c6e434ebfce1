/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile job: tries everything that a job's user might against his attempt's directory and his
 * shim, and says of each whether it was done.
 *
 *   takt-hostile DIRECTORY-OF-THE-ATTEMPT [AFTER]
 *
 * One line each: "held NAME: the kernel's reason" or "DONE NAME". What may end the shim, and with
 * it this process, comes last. AFTER is a program that is executed then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *dir;
static pid_t shim;

/* What of a record there is. */
static const char *const records[] = {"lock", "spec", "shim", "isolation", "started"};
/* What may come, in its own name or in that under which it is written first. */
static const char *const absent[] = {"exit",	 "go",	     "staged", "cut",
				     "exit.tmp", "exit.new", "go.new", "spec.new",
				     "shim.new", "cut.new",  "tty"};

static void tell(bool done, const char *what, const char *name)
{
	int error = errno;

	if (done)
		printf("DONE %s %s\n", what, name);
	else
		printf("held %s %s: %s\n", what, name, strerror(error));
	fflush(stdout);
}

static const char *at(const char *name)
{
	static char path[8][4096];
	static unsigned next;
	char *ret = path[next++ % 8];

	snprintf(ret, sizeof(path[0]), "%s/%s", dir, name);
	return ret;
}

static bool opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* By a link to somewhere else. */
static bool replaces(const char *name)
{
	char mine[64];
	bool done;
	int error;

	snprintf(mine, sizeof(mine), "/tmp/hostile-link-%d", (int)getpid());
	unlink(mine);
	done = symlink("/etc/passwd", mine) == 0 && rename(mine, at(name)) == 0;
	error = errno;
	unlink(mine);
	errno = error;
	return done;
}

static void attack_record(const char *name)
{
	char mine[4200];

	tell(opens(at(name), O_RDONLY), "read", name);
	tell(opens(at(name), O_WRONLY | O_APPEND), "open to write", name);
	tell(truncate(at(name), 0) == 0, "truncate", name);
	tell(chmod(at(name), 0666) == 0, "chmod", name);
	tell(chown(at(name), (uid_t)-1, getgid()) == 0, "chown", name);
	tell(utimes(at(name), NULL) == 0, "touch", name);
	tell(setxattr(at(name), "user.mine", "x", 1, 0) == 0, "mark", name);
	snprintf(mine, sizeof(mine), "/tmp/hostile-%d-%s", (int)getpid(), name);
	tell(link(at(name), mine) == 0, "link elsewhere", name);
	unlink(mine);
	tell(rename(at(name), at("moved")) == 0, "rename", name);
	tell(unlink(at(name)) == 0, "unlink", name);
	tell(replaces(name), "put a link in place of", name);
}

static void attack_absent(const char *name)
{
	tell(opens(at(name), O_WRONLY | O_CREAT), "create", name);
	tell(symlink("/etc/passwd", at(name)) == 0, "put a link as", name);
	tell(mkdir(at(name), 0777) == 0, "make a folder", name);
	tell(mkfifo(at(name), 0666) == 0, "make a FIFO", name);
}

static bool lists(const char *path)
{
	DIR *open = opendir(path);

	if (open)
		closedir(open);
	return open != NULL;
}

static bool binds(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	bool done;

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	done = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return done;
}

static void attack_directory(void)
{
	char other[4200];

	tell(lists(dir), "list", "the attempt");
	tell(chmod(dir, 0777) == 0, "chmod", "the attempt");
	tell(chown(dir, (uid_t)-1, getgid()) == 0, "chown", "the attempt");
	tell(setxattr(dir, "user.mine", "x", 1, 0) == 0, "mark", "the attempt");
	tell(removexattr(dir, "system.posix_acl_access") == 0, "remove the access list of",
	     "the attempt");
	tell(opens(dir, O_TMPFILE | O_WRONLY), "make a nameless file in", "the attempt");
	tell(opens(at("mine"), O_WRONLY | O_CREAT), "create a file in", "the attempt");
	tell(mkdir(at("mine"), 0777) == 0, "make a folder in", "the attempt");
	tell(binds(at("mine")), "bind a socket in", "the attempt");
	tell(rename(at("log"), at("exit")) == 0, "rename the log to", "exit");
	tell(link(at("log"), at("exit")) == 0, "link the log to", "exit");
	tell(unlink(at("log")) == 0, "unlink", "log");
	tell(replaces("log"), "put a link in place of", "log");
	snprintf(other, sizeof(other), "%s.moved", dir);
	tell(rename(dir, other) == 0, "rename", "the attempt");
	tell(rmdir(dir) == 0, "remove", "the attempt");
	tell(lists(at("..")), "list", "all attempts");
	tell(opens(at("../mine"), O_WRONLY | O_CREAT), "create a file beside", "the attempt");
	tell(mkdir(at("../999.1"), 0777) == 0, "make the folder of", "another attempt");
	tell(symlink("/tmp", at("../999.1")) == 0, "put a link as", "another attempt");
}

static bool opens_proc(const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)shim, name);
	return opens(path, flags);
}

static bool reads_link(const char *name)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)shim, name);
	return readlink(path, text, sizeof(text)) > 0;
}

static bool moves_memory(int call)
{
	char byte = 0;
	struct iovec mine = {&byte, 1}, its = {(void *)(uintptr_t)0x400000, 1};

	errno = 0;
	(void)syscall(call, shim, &mine, 1L, &its, 1L, 0L);
	return errno != EPERM;
}

static void attack_shim_insides(void)
{
	const struct rlimit none = {0};
	struct sched_param low = {0};
	cpu_set_t cpus;
	int pidfd = (int)syscall(SYS_pidfd_open, shim, 0);

	tell(ptrace(PTRACE_SEIZE, shim, NULL, NULL) == 0, "trace", "the shim");
	tell(ptrace(PTRACE_ATTACH, shim, NULL, NULL) == 0, "attach to", "the shim");
	tell(moves_memory(SYS_process_vm_readv), "read the memory of", "the shim");
	tell(moves_memory(SYS_process_vm_writev), "write the memory of", "the shim");
	tell(opens_proc("mem", O_RDWR), "open the memory of", "the shim");
	tell(opens_proc("environ", O_RDONLY), "read the environment of", "the shim");
	tell(opens_proc("maps", O_RDONLY), "read the map of", "the shim");
	tell(opens_proc("fd", O_RDONLY | O_DIRECTORY), "list the descriptors of", "the shim");
	tell(opens_proc("fd/3", O_RDONLY), "open a descriptor of", "the shim");
	tell(reads_link("cwd"), "read the directory of", "the shim");
	tell(reads_link("root"), "read the root of", "the shim");
	tell(opens_proc("oom_score_adj", O_WRONLY), "choose it for the kernel to end,", "the shim");
	tell(opens_proc("clear_refs", O_WRONLY), "clear the references of", "the shim");
	tell(opens_proc("coredump_filter", O_WRONLY), "open the core filter of", "the shim");
	tell(syscall(SYS_pidfd_getfd, pidfd, 3, 0) >= 0, "take a descriptor of", "the shim");
	tell(syscall(SYS_kcmp, shim, getpid(), KCMP_FILES, 0, 0) >= 0, "compare with", "the shim");
	tell(prlimit(shim, RLIMIT_CPU, &none, NULL) == 0, "limit the processor time of",
	     "the shim");
	tell(prlimit(shim, RLIMIT_NOFILE, &none, NULL) == 0, "limit the descriptors of",
	     "the shim");
	tell(prlimit(shim, RLIMIT_FSIZE, &none, NULL) == 0, "limit the files of", "the shim");
	tell(setpriority(PRIO_PROCESS, (id_t)shim, 19) == 0, "lower the priority of", "the shim");
	tell(sched_setscheduler(shim, SCHED_IDLE, &low) == 0, "make idle", "the shim");
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	tell(sched_setaffinity(shim, sizeof(cpus), &cpus) == 0, "bind to a CPU", "the shim");
	tell(syscall(SYS_ioprio_set, 1, shim, 3 << 13) == 0, "lower the disk priority of",
	     "the shim");
	tell(setpgid(shim, getpgrp()) == 0, "take into its group", "the shim");
	tell(syscall(SYS_move_pages, shim, 0UL, NULL, NULL, NULL, 0) == 0, "move the pages of",
	     "the shim");
	close(pidfd);
}

static void attack_rights(void)
{
	tell(setuid(0) == 0, "become", "root");
	tell(setresuid((uid_t)-1, 0, (uid_t)-1) == 0, "become effectively", "root");
	tell(setgid(0) == 0, "become", "root's group");
	tell(setgroups(0, NULL) == 0, "drop", "its groups");
	tell(sethostname("mine", 4) == 0, "name", "the machine");
	tell(chroot("/tmp") == 0, "change", "the root");
	tell(mknod("/tmp/hostile-node", S_IFCHR | 0666, 0x103) == 0, "make", "a device");
	tell(nice(-5) != -1, "raise", "its own priority");
}

/* Gentle ones first: each of the last ends the shim where it is the user's. */
static void attack_shim_by_signal(void)
{
	static const int signals[] = {SIGCONT, SIGWINCH, SIGCHLD, SIGURG, SIGPOLL, SIGUSR1, SIGUSR2,
				      SIGALRM, SIGPIPE,	 SIGHUP,  SIGINT, SIGQUIT, SIGTSTP, SIGTTIN,
				      SIGTERM, SIGSEGV,	 SIGABRT, SIGBUS, SIGSTOP, SIGKILL};
	union sigval kill_it = {.sival_int = SIGKILL};
	siginfo_t info = {.si_signo = SIGSTOP, .si_code = SI_QUEUE, .si_pid = getpid()};
	int pidfd = (int)syscall(SYS_pidfd_open, shim, 0);
	char name[32];

	tell(sigqueue(shim, SIGRTMIN + 1, kill_it) == 0, "say it is wanted to", "the shim");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		snprintf(name, sizeof(name), "SIG%s", sigabbrev_np(signals[i]));
		tell(kill(shim, signals[i]) == 0, "send the shim", name);
	}
	tell(syscall(SYS_tgkill, shim, shim, SIGSTOP) == 0, "stop the thread of", "the shim");
	tell(syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, &info, 0) == 0, "stop by descriptor",
	     "the shim");
	tell(sigqueue(shim, SIGRTMIN, kill_it) == 0, "have SIGKILL passed on by", "the shim");
	close(pidfd);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	dir = argv[1];
	shim = getppid();
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		attack_absent(absent[i]);
	attack_directory();
	attack_rights();
	attack_shim_insides();
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		attack_record(records[i]);
	attack_shim_by_signal();
	printf("that was all\n");
	fflush(stdout);
	if (argc > 2)
		execv(argv[2], argv + 2);
	return 0;
}
