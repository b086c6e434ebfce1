/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handing the kernel a list, and telling of what it refuses. The filters are made when takt is
 * built: so a shim, of which there is one a job, loads no library for them and spends no time on
 * them.
 *
 * A call that is refused is not made; the kernel sends SIGSYS instead, whose handler says which it
 * was and has it return an error. So a driver's library of which nobody knows all calls goes on as
 * if the kernel did not have this one, and the log says which it missed.
 */
#include "confine/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"
#include "call_filters.h"

#if defined(__x86_64__)
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#define NATIVE		AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#define NATIVE		AUDIT_ARCH_AARCH64
#else
#error "where does a system call's result stand on this architecture?"
#endif

#define FILTER(calls)                                                \
	{                                                            \
		TAKT_ARRAY_LEN(calls), (struct sock_filter *)(calls) \
	}

static const struct sock_fprog filters[TAKT_CONFINED_COUNT] = {
	[TAKT_CONFINED_LAUNCH] = FILTER(launch_calls),
	[TAKT_CONFINED_SHIM] = FILTER(shim_calls),
	[TAKT_CONFINED_ACTUATE] = FILTER(actuate_calls),
	[TAKT_CONFINED_GUARD] = FILTER(guard_calls),
};

enum {
	NUMBERS = 1024, /* of calls that are told once each; the kernel has half of them */
	BY_FILTER = 1	/* the kernel's SYS_SECCOMP, which the C library does not have */
};

/* What the handler needs; set before it may run. */
static struct {
	int fd;
	const char *program, *advice;
	atomic_bool told[NUMBERS];
} teller;

/* NULL: newer than this build. */
static const char *name_of(int number)
{
	const char *name = call_names; /* of 0, 1, ...; "" where there is none */

	if (number < 0 || number >= CALL_NAMES)
		return NULL;
	while (number-- > 0)
		name += strlen(name) + 1;
	return name[0] ? name : NULL;
}

static char *append(char *at, const char *end, const char *text)
{
	size_t len = strlen(text), room = (size_t)(end - at);

	len = len < room ? len : room;
	memcpy(at, text, len);
	return at + len;
}

/* In a signal's handler: nothing but write(2). */
static void tell(const char *name)
{
	char line[400], *at = line;
	const char *end = line + sizeof(line) - 1;

	at = append(at, end, teller.program);
	at = append(at, end, ": the system call '");
	at = append(at, end, name);
	at = append(at, end, "' was refused");
	at = append(at, end, teller.advice);
	*at++ = '\n';
	(void)!write(teller.fd, line, (size_t)(at - line));
}

static void refuse(int sig, siginfo_t *info, void *context)
{
	bool native = info->si_arch == NATIVE;
	const char *name = native ? name_of(info->si_syscall) : NULL;
	int saved = errno;

	(void)sig;
	if (info->si_code != BY_FILTER)
		return;
	RESULT((ucontext_t *)context) = name ? -EPERM : -ENOSYS;
	if (info->si_syscall < 0 || info->si_syscall >= NUMBERS ||
	    !atomic_exchange(&teller.told[info->si_syscall], true))
		tell(name ? name : native ? "newer than this takt" : "of another architecture");
	errno = saved;
}

void takt_confine_tell(int log_fd, const char *program, const char *advice)
{
	struct sigaction act = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigset_t refused;

	teller.fd = log_fd;
	teller.program = program;
	teller.advice = advice;
	sigemptyset(&act.sa_mask);
	sigemptyset(&refused);
	sigaddset(&refused, SIGSYS);
	(void)sigaction(SIGSYS, &act, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &refused, NULL);
}

int takt_confine_calls(enum takt_confined who, struct takt_err *err)
{
	if (who != TAKT_CONFINED_LAUNCH && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return takt_err_set(err, -errno, "ask for no new rights");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &filters[who]) <
	    0)
		return takt_err_set(err, -errno, "have the kernel filter system calls");
	return 0;
}
