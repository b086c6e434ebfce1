/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into takt and into what it measures (LD_PRELOAD): time runs faster, so that a day of
 * theirs passes in minutes. All clocks are ahead by the same, and a wait is as much shorter. The
 * environment says CLOCK_FAST=SPEED:FROM, of which FROM is the machine's CLOCK_MONOTONIC in
 * nanoseconds when it began: processes that are told the same agree on what time it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static const int64_t second_ns = 1000000000;

static int64_t speed = 1, from_ns;

static int64_t ns_of(struct timespec at)
{
	return at.tv_sec * second_ns + at.tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
	return (struct timespec){ns / second_ns, ns % second_ns};
}

static int64_t machine_ns(clockid_t id)
{
	struct timespec at = {0};

	syscall(SYS_clock_gettime, id, &at);
	return ns_of(at);
}

/* How long a wait takes on the machine that is to take so long here; no wait becomes none. */
static struct timespec shorter(struct timespec wait)
{
	return time_of((ns_of(wait) + speed - 1) / speed);
}

/* The machine's CLOCK_MONOTONIC when ours will be `at`. */
static struct timespec machine_time(struct timespec at)
{
	return time_of((ns_of(at) - from_ns) / speed + from_ns);
}

__attribute__((constructor)) static void read_speed(void)
{
	const char *text = getenv("CLOCK_FAST");
	long long by, from;

	if (text && sscanf(text, "%lld:%lld", &by, &from) == 2 && by > 0) {
		speed = by;
		from_ns = from;
	}
}

SHOWN int clock_gettime(clockid_t id, struct timespec *ret)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ret);

	if (rc == 0 && id != CLOCK_PROCESS_CPUTIME_ID && id != CLOCK_THREAD_CPUTIME_ID)
		*ret = time_of(ns_of(*ret) + (speed - 1) * (machine_ns(CLOCK_MONOTONIC) - from_ns));
	return rc;
}

SHOWN int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
		const sigset_t *mask)
{
	struct timespec wait = limit ? shorter(*limit) : (struct timespec){0};

	return (int)syscall(SYS_ppoll, fds, count, limit ? &wait : NULL, mask, 8);
}

SHOWN int nanosleep(const struct timespec *wait, struct timespec *ret_left)
{
	struct timespec less = shorter(*wait), left = {0};
	int rc = (int)syscall(SYS_nanosleep, &less, &left);

	if (ret_left)
		*ret_left = time_of(ns_of(left) * speed);
	return rc;
}

SHOWN int clock_nanosleep(clockid_t id, int flags, const struct timespec *wait,
			  struct timespec *ret_left)
{
	struct timespec until = *wait, now;

	if (flags & TIMER_ABSTIME) {
		clock_gettime(id, &now);
		if (ns_of(until) <= ns_of(now))
			return 0;
		until = time_of(ns_of(until) - ns_of(now));
	}
	return nanosleep(&until, ret_left) < 0 ? errno : 0;
}

/* All of takt's conditions wait by CLOCK_MONOTONIC. */
SHOWN int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t id,
				 const struct timespec *until)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
	struct timespec at = machine_time(*until);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	return real(cond, mutex, CLOCK_MONOTONIC, &at);
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				 const struct timespec *until)
{
	return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, until);
}
