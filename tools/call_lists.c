/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes call_filters.h when takt is built: for each process the kernel's filter program, made by
 * libseccomp from the lists below, and the names of all calls.
 *
 * Usage: call_lists CPU_FAMILY [--sanitized] > call_filters.h
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* What changes the machine for all. Nothing that a user may do, in a container of his own either
 * (mount, reboot, sethostname there), or that only asks (adjtimex, quotactl, syslog). */
static const char machine[] =
	"init_module finit_module delete_module create_module kexec_load kexec_file_load swapon "
	"swapoff acct settimeofday clock_settime stime iopl ioperm uselib nfsservctl "
	"lookup_dcookie _sysctl";

/* Memory, files, waiting, signals and what the C library asks of its own accord. */
static const char anybody[] =
	"brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 munlock "
	"membarrier "
	"futex futex_waitv set_robust_list get_robust_list rseq set_tid_address arch_prctl prctl "
	"capget capset seccomp getrandom exit exit_group restart_syscall "
	"read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek _llseek "
	"open openat openat2 close close_range dup dup2 dup3 fcntl fcntl64 flock fsync fdatasync "
	"sync_file_range ftruncate ftruncate64 fallocate fadvise64 stat lstat fstat newfstatat "
	"statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getdents getdents64 "
	"getcwd chdir fchdir umask chmod fchmod fchmodat chown fchown fchownat mkdir mkdirat "
	"unlink "
	"unlinkat rmdir rename renameat renameat2 pipe pipe2 ioctl "
	"poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
	"epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime "
	"timerfd_gettime timer_create timer_settime timer_gettime timer_delete setitimer getitimer "
	"alarm pause nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times "
	"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigpending rt_sigsuspend "
	"sigaltstack kill tkill tgkill rt_sigqueueinfo pidfd_open pidfd_send_signal wait4 waitid "
	"getpid getppid gettid getpgrp getpgid getsid setsid setpgid getuid geteuid getgid getegid "
	"getresuid getresgid getgroups getrlimit ugetrlimit prlimit64 getrusage uname sysinfo "
	"getcpu "
	"sched_yield sched_getaffinity sched_getparam sched_getscheduler getpriority "
	"accept accept4 getsockopt setsockopt getsockname getpeername shutdown sendto recvfrom "
	"sendmsg recvmsg sendmmsg recvmmsg";

/* One that starts nothing any more: what is its user's it makes as him or lends him, and its own
 * words do not make his log look newer. */
static const char shims[] = "setfsuid setfsuid32 setfsgid setfsgid32 utimensat fsetxattr";

/* What a driver's library may want beside that, as far as those known do, and generously: threads,
 * helpers of its own (nvidia-modprobe), device nodes. Sockets of two families: see add_all. */
static const char drivers[] =
	"fork vfork execve execveat mknod mknodat link linkat symlink symlinkat utimensat "
	"setrlimit setpriority sched_setaffinity sched_setscheduler sched_setparam sched_getattr "
	"sched_get_priority_max sched_get_priority_min sched_rr_get_interval ioprio_get "
	"get_mempolicy set_mempolicy mbind move_pages mlockall munlockall memfd_create truncate "
	"sendfile copy_file_range splice inotify_init inotify_init1 inotify_add_watch "
	"inotify_rm_watch connect socketpair getxattr fgetxattr lgetxattr shmget shmat shmdt "
	"shmctl "
	"sync_file_range2 setuid setgid setreuid setregid setresuid setresgid setgroups";

/* It serves at a socket. */
static const char servers[] = "bind listen";

/* The runtime of a sanitizer looks for leaks from outside. */
static const char sanitizers[] = "ptrace personality sched_getattr setrlimit";

enum {
	NUMBERS = 1024, /* of calls that are looked for */
};

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "call_lists: %s: %s\n", what, strerror(-rc));
	exit(EXIT_FAILURE);
}

/* Names that this architecture does not have are another's. */
static void add_list(scmp_filter_ctx filter, uint32_t action, const char *list)
{
	char *words = strdup(list), *rest = NULL;

	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		int number = seccomp_syscall_resolve_name(word);

		check(number == __NR_SCMP_ERROR ? -EINVAL : 0, word);
		if (seccomp_rule_add(filter, action, number, 0) < 0 && number >= 0)
			check(-EINVAL, word);
	}
	free(words);
}

/* Processes and threads, but none in namespaces of its own. What clone3 is asked for no filter can
 * see; the C library does with clone where there is no clone3. */
static void add_threads(scmp_filter_ctx filter)
{
	const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

	check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			       SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0)),
	      "clone");
	check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
}

/* None that leads off this machine. */
static void add_sockets(scmp_filter_ctx filter)
{
	const int families[] = {AF_UNIX, AF_NETLINK};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				       SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)families[i])),
		      "socket");
}

static scmp_filter_ctx begin(uint32_t usual, uint32_t arch)
{
	scmp_filter_ctx filter = seccomp_init(usual);

	check(filter ? 0 : -ENOMEM, "a filter");
	if (arch != seccomp_arch_native()) {
		check(seccomp_arch_add(filter, arch), "architecture");
		check(seccomp_arch_remove(filter, seccomp_arch_native()), "architecture");
	}
	check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	return filter;
}

static scmp_filter_ctx only(uint32_t arch, bool sanitized)
{
	scmp_filter_ctx filter = begin(SCMP_ACT_TRAP, arch);

	check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_TRAP), "architectures");
	add_list(filter, SCMP_ACT_ALLOW, anybody);
	if (sanitized) {
		add_list(filter, SCMP_ACT_ALLOW, sanitizers);
		add_threads(filter);
	}
	return filter;
}

/* Jobs run programs of the machine's other architectures, too. */
static scmp_filter_ctx all_but_machine(uint32_t arch)
{
	scmp_filter_ctx filter = begin(SCMP_ACT_ALLOW, arch);

	check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW), "architectures");
	if (arch == SCMP_ARCH_X86_64) {
		check(seccomp_arch_add(filter, SCMP_ARCH_X86), "x86");
		check(seccomp_arch_add(filter, SCMP_ARCH_X32), "x32");
	} else if (arch == SCMP_ARCH_AARCH64) {
		check(seccomp_arch_add(filter, SCMP_ARCH_ARM), "arm");
	}
	add_list(filter, SCMP_ACT_ERRNO(EPERM), machine);
	return filter;
}

static void write_filter(const char *name, scmp_filter_ctx filter)
{
	/* struct sock_filter, of which native headers need not be the target's. */
	struct {
		uint16_t code;
		uint8_t jt, jf;
		uint32_t k;
	} step;
	int fd = memfd_create("filter", MFD_CLOEXEC);

	check(fd < 0 ? -errno : seccomp_export_bpf(filter, fd), name);
	check(lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0, name);
	printf("static const struct sock_filter %s_calls[] = {\n", name);
	while (read(fd, &step, sizeof(step)) == (ssize_t)sizeof(step))
		printf("\t{0x%02x, %u, %u, 0x%08x},\n", step.code, step.jt, step.jf, step.k);
	printf("};\n");
	close(fd);
	seccomp_release(filter);
}

static void write_names(uint32_t arch)
{
	char *names[NUMBERS] = {0};
	int count = 0;

	for (int i = 0; i < NUMBERS; i++) {
		names[i] = seccomp_syscall_resolve_num_arch(arch, i);
		count = names[i] ? i + 1 : count;
	}
	printf("enum { CALL_NAMES = %d };\nstatic const char call_names[] =\n", count);
	for (int i = 0; i < count; i++) {
		printf("\t\"%s\\0\"\n", names[i] ? names[i] : "");
		free(names[i]);
	}
	printf("\t\"\";\n");
}

int main(int argc, char **argv)
{
	uint32_t arch = argc > 1 ? seccomp_arch_resolve_name(argv[1]) : 0;
	bool sanitized = argc > 2 && strcmp(argv[2], "--sanitized") == 0;
	scmp_filter_ctx shim, actuate, guard;

	check(arch == 0 ? -EINVAL : 0, "CPU_FAMILY");
	shim = only(arch, sanitized);
	add_list(shim, SCMP_ACT_ALLOW, shims);
	actuate = only(arch, sanitized);
	guard = only(arch, sanitized);
	add_list(actuate, SCMP_ACT_ALLOW, drivers);
	add_list(guard, SCMP_ACT_ALLOW, drivers);
	add_list(actuate, SCMP_ACT_ALLOW, servers);
	if (!sanitized) {
		add_threads(actuate);
		add_threads(guard);
	}
	add_sockets(actuate);
	add_sockets(guard);
	printf("/* Made by tools/call_lists.c. */\n");
	write_filter("launch", all_but_machine(arch));
	write_filter("shim", shim);
	write_filter("actuate", actuate);
	write_filter("guard", guard);
	write_names(arch);
	return 0;
}
