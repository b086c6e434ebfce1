/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has another process make a system call where it waits, as somebody would who has taken it over,
 * and says what the kernel answered it. Afterwards the process waits on as if nothing had been.
 *
 *   takt-made-to-call PID NAME...
 *   takt-made-to-call --deaf PID NAME
 *
 * One line each: "NAME: done" or "NAME: the kernel's reason". Arguments are such that what is not
 * refused does nothing (a bad address, an impossible flag). Deaf: it has held back all signals, and
 * is let go to make the call by itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)

#define NONE -1L
static const struct call {
	const char *name;
	long number;
	long args[6];
} calls[] = {
	/* the machine itself */
	{"init_module", SYS_init_module, {0, 1, 0}},
	{"finit_module", SYS_finit_module, {NONE, 0, NONE}},
	{"delete_module", SYS_delete_module, {0, 0}},
	{"kexec_load", SYS_kexec_load, {0, NONE, 0, NONE}},
	{"kexec_file_load", SYS_kexec_file_load, {NONE, NONE, 0, 0, NONE}},
	{"swapon", SYS_swapon, {1, NONE}},
	{"swapoff", SYS_swapoff, {1}},
	{"acct", SYS_acct, {1}},
	{"settimeofday", SYS_settimeofday, {1, 0}},
	{"clock_settime", SYS_clock_settime, {0, 1}},
	{"iopl", SYS_iopl, {4}},
	{"ioperm", SYS_ioperm, {NONE, 1, 1}},
	/* what it shows of itself to others */
	{"mount", SYS_mount, {1, 1, 1, 0, 0}},
	{"umount2", SYS_umount2, {1, NONE}},
	{"pivot_root", SYS_pivot_root, {1, 1}},
	{"chroot", SYS_chroot, {1}},
	{"unshare", SYS_unshare, {1}},
	{"setns", SYS_setns, {NONE, 0}},
	{"fsopen", SYS_fsopen, {1, NONE}},
	{"move_mount", SYS_move_mount, {NONE, 1, NONE, 1, 0}},
	{"open_by_handle_at", SYS_open_by_handle_at, {NONE, 1, 0}},
	{"sethostname", SYS_sethostname, {1, 1}},
	{"reboot", SYS_reboot, {0, 0, 0}},
	{"syslog", SYS_syslog, {NONE, 0, 0}},
	{"bpf", SYS_bpf, {NONE, 1, 8}},
	{"perf_event_open", SYS_perf_event_open, {1, 0, NONE, NONE, 0}},
	{"ptrace", SYS_ptrace, {PTRACE_PEEKUSER, NONE, 0, 0}},
	{"process_vm_writev", SYS_process_vm_writev, {NONE, 1, 1, 1, 1, 0}},
	{"userfaultfd", SYS_userfaultfd, {NONE}},
	{"io_uring_setup", SYS_io_uring_setup, {1, 1}},
	{"keyctl", SYS_keyctl, {NONE}},
	{"add_key", SYS_add_key, {1, 1, 0, 0, 0}},
	{"quotactl", SYS_quotactl, {NONE, 1, 0, 0}},
	{"fanotify_init", SYS_fanotify_init, {NONE, 0}},
	{"personality", SYS_personality, {0xffffffff}},
	/* the network; a program of one's own; one's own id */
	{"socket(inet)", SYS_socket, {AF_INET, NONE, 0}},
	{"socket(packet)", SYS_socket, {AF_PACKET, NONE, 0}},
	{"bind", SYS_bind, {NONE, 1, 1}},
	{"listen", SYS_listen, {NONE, 1}},
	{"connect", SYS_connect, {NONE, 1, 1}},
	{"execve", SYS_execve, {1, 1, 1}},
	{"clone(namespace)", SYS_clone, {0x10000000 /* of users */ | 0x00010000 /* wrong */}},
	{"setuid", SYS_setuid, {NONE}},
	{"setgroups", SYS_setgroups, {1, 1}},
	{"setresuid", SYS_setresuid, {NONE, NONE, NONE}},
	/* what all of them may */
	{"getpid", SYS_getpid, {0}},
};

enum {
	CALL_BYTES = 2, /* of the instruction */
	TRIES = 10000,
};

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "takt-made-to-call: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void check(long rc, const char *what)
{
	if (rc < 0)
		give_up(what);
}

/* Until it is stopped by a trap, with what else it is sent in between. */
static void run_to_trap(pid_t pid)
{
	int status, sig = 0;

	do {
		check(ptrace(PTRACE_CONT, pid, 0, sig), "go on");
		check(waitpid(pid, &status, 0), "wait");
		if (!WIFSTOPPED(status)) {
			fprintf(stderr, "takt-made-to-call: it died of it\n");
			exit(EXIT_FAILURE);
		}
		sig = WSTOPSIG(status);
	} while (sig != SIGTRAP);
}

static void begin(pid_t pid, const struct user_regs_struct *before, const struct call *call)
{
	struct user_regs_struct regs = *before;

	regs.rip -= CALL_BYTES;
	regs.rax = (unsigned long)call->number;
	regs.orig_rax = (unsigned long)-1; /* nothing to be restarted */
	regs.rdi = (unsigned long)call->args[0];
	regs.rsi = (unsigned long)call->args[1];
	regs.rdx = (unsigned long)call->args[2];
	regs.r10 = (unsigned long)call->args[3];
	regs.r8 = (unsigned long)call->args[4];
	regs.r9 = (unsigned long)call->args[5];
	check(ptrace(PTRACE_SETREGS, pid, 0, &regs), "set registers");
}

/* The trap lies behind the call, where a handler returns to, too. */
static long make(pid_t pid, const struct user_regs_struct *before, const struct call *call)
{
	const long trap = 0xcc;
	struct user_regs_struct regs;
	long code;

	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, pid, before->rip, 0);
	check(errno ? -1 : 0, "read code");
	check(ptrace(PTRACE_POKETEXT, pid, before->rip, (code & ~0xffL) | trap), "write code");
	begin(pid, before, call);
	run_to_trap(pid);
	check(ptrace(PTRACE_POKETEXT, pid, before->rip, code), "write code");
	check(ptrace(PTRACE_GETREGS, pid, 0, &regs), "get registers");
	return (long)regs.rax;
}

/* Behind the instruction that makes a call; one that computes is let go on until it waits. */
static bool is_behind_call(pid_t pid, const struct user_regs_struct *regs)
{
	long code;

	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, pid, regs->rip - CALL_BYTES, 0);
	return errno == 0 && (code & 0xffff) == 0x050f;
}

static void stop_where_it_waits(pid_t pid, struct user_regs_struct *ret)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	for (int i = 0; i < TRIES; i++) {
		check(ptrace(PTRACE_ATTACH, pid, 0, 0), "attach");
		check(waitpid(pid, NULL, 0), "wait");
		check(ptrace(PTRACE_GETREGS, pid, 0, ret), "get registers");
		if (is_behind_call(pid, ret))
			return;
		check(ptrace(PTRACE_DETACH, pid, 0, 0), "let go");
		(void)nanosleep(&pause, NULL);
	}
	errno = ETIMEDOUT;
	give_up("it never waits");
}

static const struct call *find(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].name, name) == 0)
			return &calls[i];
	fprintf(stderr, "takt-made-to-call: '%s' is not on the list\n", name);
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	bool deaf = argc > 1 && strcmp(argv[1], "--deaf") == 0;
	int first = deaf ? 2 : 1;
	pid_t pid = argc > first ? atoi(argv[first]) : 0;
	const uint64_t all = ~UINT64_C(0);
	struct user_regs_struct before;
	long answer;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			puts(calls[i].name);
		return 0;
	}
	stop_where_it_waits(pid, &before);
	if (deaf) {
		begin(pid, &before, find(argc > first + 1 ? argv[first + 1] : ""));
		check(ptrace(PTRACE_SETSIGMASK, pid, sizeof(all), &all), "hold signals back");
		check(ptrace(PTRACE_DETACH, pid, 0, 0), "let go");
		return 0;
	}
	for (int i = first + 1; i < argc; i++) {
		answer = make(pid, &before, find(argv[i]));
		printf("%s: %s\n", argv[i],
		       answer < 0 && answer > -4096 ? strerror((int)-answer) : "done");
		fflush(stdout);
	}
	check(ptrace(PTRACE_SETREGS, pid, 0, &before), "set registers");
	check(ptrace(PTRACE_DETACH, pid, 0, 0), "let go");
	return 0;
}

#else

int main(void)
{
	puts("the registers of this architecture are not known here");
	return 77;
}

#endif
