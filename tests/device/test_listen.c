/* SPDX-License-Identifier: Apache-2.0 */
/* How often the thread that hears XIDs asks a driver that tells none, by a clock of the test's: it
 * never waits, and so goes through hours at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/sys.h"
#include "device/gpu_events.h"
#include "device/gpu_listen.h"

static atomic_uint_least64_t now_ns, until_ns; /* until then the thread lives on */
static atomic_bool is_mute;
static atomic_uint opens;
static pthread_t tester;
static sem_t is_then;

static uint64_t mono_ns(const struct takt_sys *self)
{
	return now_ns;
}

/* The linker puts these in between: tests/device/meson.build. */
const struct takt_sys *__wrap_takt_sys_real(void);
const struct takt_sys *__wrap_takt_sys_real(void)
{
	static const struct takt_sys sys = {.mono_ns = mono_ns};

	return &sys;
}

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *at);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *at);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *at)
{
	uint64_t at_ns = (uint64_t)at->tv_sec * TAKT_NS_PER_S + (uint64_t)at->tv_nsec;

	if (pthread_equal(pthread_self(), tester))
		return __real_pthread_cond_timedwait(cond, lock, at);
	now_ns = at_ns < until_ns ? at_ns : until_ns;
	if (at_ns <= until_ns)
		return ETIMEDOUT;
	sem_post(&is_then);
	return pthread_cond_wait(cond, lock);
}

int __wrap_takt_gpu_events_open(const char *nvml_path, const char *const *uuids, size_t count,
				struct takt_gpu_events **ret, uint64_t *ret_deaf,
				struct takt_err *err);
int __wrap_takt_gpu_events_open(const char *nvml_path, const char *const *uuids, size_t count,
				struct takt_gpu_events **ret, uint64_t *ret_deaf,
				struct takt_err *err)
{
	static int opened;

	opens++;
	if (is_mute)
		return takt_err_set(err, -ENODEV, "no driver");
	*ret = (struct takt_gpu_events *)&opened;
	*ret_deaf = 0;
	return 0;
}

int __wrap_takt_gpu_events_next(struct takt_gpu_events *events, struct takt_gpu_event *ret);
int __wrap_takt_gpu_events_next(struct takt_gpu_events *events, struct takt_gpu_event *ret)
{
	return is_mute ? -ENODEV : 0;
}

void __wrap_takt_gpu_events_close(struct takt_gpu_events *events);
void __wrap_takt_gpu_events_close(struct takt_gpu_events *events)
{
}

/* How often the driver was asked meanwhile. */
static unsigned asked_in(struct takt_gpu_listen *listen, uint64_t seconds)
{
	unsigned before = opens;

	until_ns += seconds * TAKT_NS_PER_S;
	(void)takt_gpu_listen_heard(listen, (struct takt_mono){UINT64_MAX}); /* it looks at once */
	sem_wait(&is_then);
	return opens - before;
}

static void hours_of_a_mute_driver_are_few_tries(void **state)
{
	const char *uuids[] = {"GPU-a"};
	struct takt_gpu_listen *listen;
	char why[TAKT_LISTEN_WHY];

	tester = pthread_self();
	is_mute = true;
	now_ns = until_ns = 100 * TAKT_NS_PER_S;
	assert_int_equal(sem_init(&is_then, 0, 0), 0);
	assert_int_equal(takt_gpu_listen_open(NULL, uuids, 1, &listen, NULL), 0);
	sem_wait(&is_then);
	assert_int_equal(opens, 1);
	assert_in_range(asked_in(listen, 60), 4, 5); /* 1, 2, 4, 8 and 16 s apart */
	assert_in_range(asked_in(listen, 6 * 3600), 6 * 120 - 1, 6 * 120 + 1);
	takt_gpu_listen_why(listen, why);
	assert_string_equal(why, "no driver");
	is_mute = false;
	assert_int_equal(asked_in(listen, 30), 1); /* then it stays open */
	assert_int_equal(asked_in(listen, 3600), 0);
	takt_gpu_listen_why(listen, why);
	assert_string_equal(why, "");
	is_mute = true; /* what went well is forgotten */
	assert_in_range(asked_in(listen, 60), 5, 6);
	takt_gpu_listen_close(listen);
	sem_destroy(&is_then);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hours_of_a_mute_driver_are_few_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
