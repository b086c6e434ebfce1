/* SPDX-License-Identifier: Apache-2.0 */
/* See driver_wait.h. The object goes with the last of its two holders, caller and thread. */
#include "device/driver_wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"
#include "base/sys.h"
#include "device/device_impl.h"
#include "device/sysfs_pci.h"

static const uint64_t open_ns = 60 * TAKT_NS_PER_S;

struct takt_driver_wait {
	pthread_mutex_t lock;
	pthread_cond_t stop_cond;
	unsigned holders;
	bool stopped, over;
	uint64_t every_ns;
	struct takt_machine_config config; /* strings owned */
	char *nvml_path, *sysfs_root;
};

static void let_go(struct takt_driver_wait *wait)
{
	bool last;

	pthread_mutex_lock(&wait->lock);
	last = --wait->holders == 0;
	pthread_mutex_unlock(&wait->lock);
	if (!last)
		return;
	pthread_cond_destroy(&wait->stop_cond);
	pthread_mutex_destroy(&wait->lock);
	takt_free(wait->nvml_path);
	takt_free(wait->sysfs_root);
	takt_free(wait);
}

/* False: nobody waits any more. */
static bool pause_once(struct takt_driver_wait *wait)
{
	struct takt_mono end = takt_mono_add(takt_mono_now(takt_sys_real()), wait->every_ns);
	struct timespec at = {.tv_sec = (time_t)(end.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(end.ns % TAKT_NS_PER_S)};
	bool stopped;

	pthread_mutex_lock(&wait->lock);
	while (!wait->stopped &&
	       pthread_cond_timedwait(&wait->stop_cond, &wait->lock, &at) != ETIMEDOUT)
		;
	stopped = wait->stopped;
	pthread_mutex_unlock(&wait->lock);
	return !stopped;
}

/* How many GPUs the driver has now, or why it does not say. */
static int look(const struct takt_driver_wait *wait)
{
	struct takt_source *source;
	int rc;

	if (wait->config.leaves_asleep && takt_sysfs_all_asleep(wait->config.sysfs_root))
		return 0;
	rc = takt_source_open(&takt_source_nvml, &wait->config, open_ns, &source, NULL);
	if (rc < 0)
		return rc;
	rc = (int)source->gpu_count;
	takt_source_unref(source);
	return rc;
}

static void *wait_main(void *opaque)
{
	struct takt_driver_wait *wait = opaque;
	int gpus = 0;

	while (gpus <= 0 && gpus != -ETIMEDOUT && pause_once(wait))
		gpus = look(wait);
	pthread_mutex_lock(&wait->lock);
	wait->over = gpus > 0;
	pthread_mutex_unlock(&wait->lock);
	let_go(wait);
	return NULL;
}

static int start(struct takt_driver_wait *wait)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	wait->holders = 2;
	rc = pthread_create(&thread, NULL, wait_main, wait);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_detach(thread);
	else
		wait->holders = 1;
	return -rc;
}

static struct takt_driver_wait *wait_new(const struct takt_machine_config *config,
					 uint64_t every_ns)
{
	struct takt_driver_wait *wait = takt_zalloc(sizeof(*wait));
	pthread_condattr_t attr;

	if (!wait)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&wait->lock, NULL);
	pthread_cond_init(&wait->stop_cond, &attr);
	pthread_condattr_destroy(&attr);
	wait->holders = 1;
	wait->every_ns = every_ns;
	wait->nvml_path = takt_strdup(config->nvml_path);
	wait->sysfs_root = takt_strdup(config->sysfs_root ? config->sysfs_root : "/sys");
	wait->config = (struct takt_machine_config){.source = TAKT_SOURCE_NVML,
						    .nvml_path = wait->nvml_path,
						    .sysfs_root = wait->sysfs_root,
						    .leaves_asleep = config->leaves_asleep};
	if ((config->nvml_path && !wait->nvml_path) || !wait->sysfs_root) {
		let_go(wait);
		return NULL;
	}
	return wait;
}

int takt_driver_wait_new(const struct takt_machine_config *config, uint64_t every_ns,
			 struct takt_driver_wait **ret, struct takt_err *err)
{
	struct takt_driver_wait *wait = wait_new(config, every_ns);
	int rc;

	if (!wait)
		return takt_err_set(err, -ENOMEM, "waiting for the driver");
	rc = start(wait);
	if (rc < 0) {
		let_go(wait);
		return takt_err_set(err, rc, "thread that waits for the driver");
	}
	*ret = wait;
	return 0;
}

bool takt_driver_wait_is_over(struct takt_driver_wait *wait)
{
	bool over;

	if (!wait)
		return false;
	pthread_mutex_lock(&wait->lock);
	over = wait->over;
	pthread_mutex_unlock(&wait->lock);
	return over;
}

void takt_driver_wait_free(struct takt_driver_wait *wait)
{
	if (!wait)
		return;
	pthread_mutex_lock(&wait->lock);
	wait->stopped = true;
	pthread_cond_signal(&wait->stop_cond);
	pthread_mutex_unlock(&wait->lock);
	let_go(wait);
}
