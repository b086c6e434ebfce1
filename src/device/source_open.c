/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a source without trusting it to return: the driver's start can take half a minute on a
 * healthy machine and for ever on a sick one. A helper thread opens; the caller waits with a
 * deadline and may leave it behind, in which case the helper closes what it opened in the end.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/sys.h"
#include "device/device_impl.h"

struct attempt {
	const struct takt_source_ops *ops;
	struct takt_source_config config; /* strings owned */
	pthread_mutex_t lock;
	pthread_cond_t ended_cond;
	bool ended, abandoned;
	struct takt_source *source;
	struct takt_err err;
};

void takt_source_unref(struct takt_source *source)
{
	if (source && atomic_fetch_sub(&source->refs, 1) == 1)
		source->ops->close(source);
}

static void attempt_free(struct attempt *attempt)
{
	takt_free(attempt->config.path);
	takt_free(attempt->config.unused_path);
	takt_free(attempt->config.sysfs_root);
	pthread_cond_destroy(&attempt->ended_cond);
	pthread_mutex_destroy(&attempt->lock);
	takt_free(attempt);
}

static struct attempt *attempt_new(const struct takt_source_ops *ops,
				   const struct takt_machine_config *config)
{
	struct attempt *attempt = takt_zalloc(sizeof(*attempt));
	const char *path = ops == &takt_source_replay ? config->replay_path : config->nvml_path;
	pthread_condattr_t attr;

	if (!attempt)
		return NULL;
	attempt->ops = ops;
	attempt->config.leaves_asleep = config->leaves_asleep;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&attempt->lock, NULL);
	pthread_cond_init(&attempt->ended_cond, &attr);
	pthread_condattr_destroy(&attr);
	attempt->config.for_view = config->for_view;
	attempt->config.path = takt_strdup(path);
	attempt->config.unused_path = takt_strdup(config->unused_nvml_path);
	attempt->config.sysfs_root = takt_strdup(config->sysfs_root ? config->sysfs_root : "/sys");
	if ((path && !attempt->config.path) || !attempt->config.sysfs_root) {
		attempt_free(attempt);
		return NULL;
	}
	return attempt;
}

static void *attempt_main(void *opaque)
{
	struct attempt *attempt = opaque;
	struct takt_source *source = NULL;
	struct takt_err err = {0};
	bool abandoned;

	err.rc = attempt->ops->open(&attempt->config, &source, &err);
	pthread_mutex_lock(&attempt->lock);
	attempt->source = source;
	attempt->err = err;
	attempt->ended = true;
	abandoned = attempt->abandoned;
	pthread_cond_signal(&attempt->ended_cond);
	pthread_mutex_unlock(&attempt->lock);
	if (abandoned) {
		takt_source_unref(source);
		attempt_free(attempt);
	}
	return NULL;
}

static int start(struct attempt *attempt, pthread_t *ret)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* of a call that is refused: confine/confine.h */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, NULL, attempt_main, attempt);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

/* Whether it ended by then. */
static bool wait_for(struct attempt *attempt, struct takt_mono deadline)
{
	struct timespec at = {.tv_sec = (time_t)(deadline.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(deadline.ns % TAKT_NS_PER_S)};
	bool ended;

	pthread_mutex_lock(&attempt->lock);
	while (!attempt->ended &&
	       pthread_cond_timedwait(&attempt->ended_cond, &attempt->lock, &at) != ETIMEDOUT)
		;
	ended = attempt->ended;
	attempt->abandoned = !ended;
	pthread_mutex_unlock(&attempt->lock);
	return ended;
}

int takt_source_open(const struct takt_source_ops *ops, const struct takt_machine_config *config,
		     uint64_t deadline_ns, struct takt_source **ret, struct takt_err *err)
{
	struct takt_mono deadline = takt_mono_add(takt_mono_now(takt_sys_real()), deadline_ns);
	struct attempt *attempt = attempt_new(ops, config);
	pthread_t thread;
	int rc;

	if (!attempt)
		return takt_err_set(err, -ENOMEM, "opening '%s'", ops->name);
	rc = start(attempt, &thread);
	if (rc < 0) {
		attempt_free(attempt);
		return takt_err_set(err, rc, "thread that opens '%s'", ops->name);
	}
	if (config->meanwhile)
		config->meanwhile();
	if (!wait_for(attempt, deadline)) {
		pthread_detach(thread);
		return takt_err_set(err, -ETIMEDOUT,
				    "the driver did not start within %llu s: it hangs",
				    (unsigned long long)(deadline_ns / TAKT_NS_PER_S));
	}
	pthread_join(thread, NULL);
	rc = attempt->err.rc;
	if (rc < 0 && err)
		*err = attempt->err;
	else if (rc >= 0)
		*ret = attempt->source;
	attempt_free(attempt);
	return rc;
}
