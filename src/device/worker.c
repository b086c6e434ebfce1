/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread behind each GPU. It waits for wishes (stop, setter, links, sample, tick), takes one,
 * lets go of the lock, is in the driver for as long as the driver likes, and publishes the result.
 * Whoever waits for it waits on a condition with a deadline, never on the thread.
 */
#include "device/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	/* Only touched pages cost memory, and what the driver's library puts on a stack is not ours
	 * to know. */
	STACK_BYTES = 256 * 1024,
};

static const uint64_t slow_every_ns = TAKT_NS_PER_S;
/* Samples of a tick come a little early or late; a second-old slow part is read at the tick nearest
 * to its second. */
static const uint64_t slow_slack_ns = 50 * TAKT_NS_PER_MS;
static const uint64_t late_ns = 20 * TAKT_NS_PER_MS;
/* An energy counter that takes longer is not read at every tick. */
static const uint64_t cheap_ns = 500 * TAKT_NS_PER_US;
/* A GPU whose sample takes longer is left to its own thread, so that it does not hold up others. */
static const uint64_t long_ns = 10 * TAKT_NS_PER_MS;

static struct takt_mono now_mono(void)
{
	return takt_mono_now(takt_sys_real());
}

struct takt_wake *takt_wake_new(void)
{
	struct takt_wake *wake = takt_zalloc(sizeof(*wake));

	if (!wake)
		return NULL;
	atomic_init(&wake->refs, 1);
	pthread_mutex_init(&wake->fd_lock, NULL);
	atomic_init(&wake->hushed, false);
	wake->fd = -1;
	return wake;
}

void takt_wake_set_fd(struct takt_wake *wake, int fd)
{
	pthread_mutex_lock(&wake->fd_lock);
	wake->fd = fd;
	pthread_mutex_unlock(&wake->fd_lock);
}

void takt_wake_unref(struct takt_wake *wake)
{
	if (atomic_fetch_sub(&wake->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&wake->fd_lock);
	takt_free(wake);
}

void takt_worker_ref(struct takt_worker *worker)
{
	atomic_fetch_add(&worker->refs, 1);
}

void takt_worker_unref(struct takt_worker *worker)
{
	if (atomic_fetch_sub(&worker->refs, 1) != 1)
		return;
	pthread_cond_destroy(&worker->done);
	pthread_cond_destroy(&worker->work);
	pthread_mutex_destroy(&worker->lock);
	takt_wake_unref(worker->wake);
	takt_free(worker);
}

/* Another GPU was asked together with this one and will be back in a moment: it wakes the caller
 * then, once for all. */
static bool others_are_about_to_finish(const struct takt_wake *wake, struct takt_mono now)
{
	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS; g++) {
		uint64_t since = atomic_load(&wake->busy[g]);

		if (since != 0 && now.ns < since + late_ns)
			return true;
	}
	return false;
}

static void write_eventfd(struct takt_wake *wake)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&wake->fd_lock);
	/* A full counter means that the caller has news waiting anyway. */
	if (wake->fd >= 0)
		(void)!write(wake->fd, &one, sizeof(one));
	pthread_mutex_unlock(&wake->fd_lock);
}

static void copy_reading(struct takt_gpu_reading *to, const struct takt_gpu_reading *from)
{
	memcpy(to, from,
	       offsetof(struct takt_gpu_reading, procs) +
		       from->proc_count * sizeof(from->procs[0]));
}

/* From here to finish_driver the thread is in the driver and holds no lock. */
static void begin_driver(struct takt_worker *worker)
{
	worker->busy_since = now_mono();
	pthread_mutex_unlock(&worker->lock);
}

static void finish_driver(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->busy_since = (struct takt_mono){0};
	pthread_cond_broadcast(&worker->done);
}

static void read_facts(struct takt_worker *worker)
{
	const struct takt_source_ops *ops = worker->source->ops;
	struct takt_gpu_facts *work = &worker->facts_work;

	begin_driver(worker);
	for (uint32_t step = 0; ops->facts(worker->source, worker->at_source, step, work); step++) {
		pthread_mutex_lock(&worker->lock);
		worker->facts = *work;
		pthread_mutex_unlock(&worker->lock);
	}
	finish_driver(worker);
	worker->facts_done = true;
	pthread_cond_broadcast(&worker->done);
}

static void read_links(struct takt_worker *worker)
{
	struct takt_source *source = worker->source;

	worker->want_links = false;
	begin_driver(worker);
	for (uint32_t other = 0; other < source->gpu_count; other++) {
		struct takt_gpu_link link = {0};

		if (other != worker->at_source)
			link = source->ops->link(source, worker->at_source, other);
		pthread_mutex_lock(&worker->lock);
		worker->links[other] = link;
		pthread_mutex_unlock(&worker->lock);
	}
	finish_driver(worker);
	worker->links_done = true;
}

static void read_mig(struct takt_worker *worker)
{
	struct takt_source *source = worker->source;

	worker->want_mig = false;
	begin_driver(worker);
	if (source->ops->mig)
		source->ops->mig(source, worker->at_source, &worker->facts_work);
	finish_driver(worker);
	worker->facts = worker->facts_work;
	worker->mig_seen = true;
	write_eventfd(worker->wake);
}

/* What one call took says little, since the thread may have been kept waiting meanwhile. So the
 * least of late counts: one that takes long is believed after some twenty of them. */
static void note_energy(struct takt_worker *worker, struct takt_mono begin)
{
	struct takt_gpu_reading *reading = &worker->work_reading;
	uint64_t believed_ns = worker->energy_cost_ns + worker->energy_cost_ns / 4 + TAKT_NS_PER_US;

	worker->energy_cost_ns =
		reading->energy_took_ns < believed_ns ? reading->energy_took_ns : believed_ns;
	worker->energy_asked_at = begin;
	reading->energy_at = reading->at;
}

/* False: the driver answered nothing. */
static bool read_parts(struct takt_worker *worker, uint32_t parts, struct takt_mono begin)
{
	struct takt_gpu_reading *reading = &worker->work_reading;
	bool answered;
	uint32_t kept = (parts & TAKT_PART_SLOW ? 0 : ~(uint32_t)TAKT_FAST_HAS) | TAKT_HAS_ENERGY;

	reading->has &= parts & TAKT_PART_ENERGY ? kept & ~(uint32_t)TAKT_HAS_ENERGY : kept;
	if (parts & TAKT_PART_SLOW)
		reading->vitals.has = 0;
	reading->last_rc = 0;
	reading->lost = reading->asleep = false;
	answered = worker->source->ops->sample(worker->source, worker->at_source, parts, reading);
	if (reading->lost || !answered)
		reading->has = reading->vitals.has = 0;
	if (!(reading->has & TAKT_HAS_PROCS))
		reading->proc_count = reading->procs_dropped = 0;
	if (parts & TAKT_PART_SLOW)
		reading->slow_at = begin;
	if (answered)
		reading->at = now_mono();
	if (answered && (parts & TAKT_PART_ENERGY))
		note_energy(worker, begin);
	reading->seq++;
	return answered;
}

static bool energy_is_due(const struct takt_worker *worker, struct takt_mono now)
{
	return worker->energy_cost_ns <= cheap_ns ||
	       takt_mono_elapsed_ns(now, worker->energy_asked_at) + slow_slack_ns >=
		       atomic_load(&worker->energy_every_ns);
}

/* One that does not get to sleep may be stuck on its way there, which shows only when it is asked.
 */
static bool sleeps(struct takt_worker *worker, struct takt_mono now)
{
	enum takt_sleep sleep = worker->source->ops->asleep(worker->source, worker->at_source);

	if (sleep != TAKT_SLEEP_FALLING)
		worker->falling_since = (struct takt_mono){0};
	else if (worker->falling_since.ns == 0)
		worker->falling_since = now;
	return sleep == TAKT_SLEEP_ASLEEP ||
	       (sleep == TAKT_SLEEP_FALLING &&
		takt_mono_elapsed_ns(now, worker->falling_since) < worker->falling_ns);
}

/* One that was lost when last asked is asked on: the kernel's word is not the driver's. */
static bool is_left_asleep(struct takt_worker *worker, struct takt_mono now)
{
	if (!worker->source->ops->asleep)
		return false;
	if (worker->work_reading.lost || atomic_load(&worker->read_always)) {
		worker->falling_since = (struct takt_mono){0}; /* nobody saw how long */
		return false;
	}
	return sleeps(worker, now);
}

/* In place of reading it. Once awake it is read whole. */
static void note_asleep(struct takt_gpu_reading *reading)
{
	if (!reading->asleep)
		reading->awake_at = reading->at;
	reading->asleep = true;
	reading->has = reading->vitals.has = 0;
	reading->proc_count = reading->procs_dropped = 0;
	reading->last_rc = 0;
	reading->slow_at = (struct takt_mono){0};
	reading->at = now_mono();
	reading->seq++;
}

/* What is read now; with the lock. */
static uint32_t parts_of(const struct takt_worker *worker, struct takt_mono now)
{
	const struct takt_gpu_reading *reading = &worker->work_reading;
	uint32_t parts = TAKT_PART_FAST;

	if (worker->want_full || reading->slow_at.ns == 0 || reading->lost)
		return worker->part_mask;
	if (takt_mono_elapsed_ns(now, reading->slow_at) + slow_slack_ns >= slow_every_ns)
		parts = worker->part_mask & ~(uint32_t)TAKT_PART_ENERGY;
	return energy_is_due(worker, now) ? parts | TAKT_PART_ENERGY : parts;
}

static void sample(struct takt_worker *worker)
{
	struct takt_gpu_reading *reading = &worker->work_reading;
	atomic_uint_least64_t *busy = &worker->wake->busy[worker->at_source];
	struct takt_mono begin = now_mono(), end;
	uint32_t parts = parts_of(worker, begin);
	bool unanswered = false;

	worker->want_full = worker->want_tick = false;

	begin_driver(worker);
	if (is_left_asleep(worker, begin))
		note_asleep(reading);
	else
		unanswered = !read_parts(worker, parts, begin);
	end = now_mono();
	worker->takes_long = takt_mono_elapsed_ns(end, begin) > long_ns;
	pthread_mutex_lock(&worker->lock);
	copy_reading(&worker->reading, reading);
	worker->unanswered = unanswered;
	pthread_mutex_unlock(&worker->lock);
	atomic_store(busy, 0);
	if (!atomic_load(&worker->wake->hushed) && !others_are_about_to_finish(worker->wake, end))
		write_eventfd(worker->wake);
	finish_driver(worker);
}

static int set_in_driver(struct takt_worker *worker, const struct takt_set_call *call,
			 struct takt_err *err)
{
	struct takt_source *source = worker->source;
	int rc = call->gate ? call->gate(call->gate_ctx) : 0;

	if (rc != 0)
		return takt_err_set(err, rc, "the right to change the GPU was lost meanwhile");
	return source->ops->set(source, worker->at_source, call, err);
}

static void run_setter(struct takt_worker *worker)
{
	struct takt_set_call call = worker->set;
	struct takt_err result = {0};

	worker->set_state = TAKT_SET_RUNNING;
	begin_driver(worker);
	result.rc = set_in_driver(worker, &call, &result);
	finish_driver(worker);
	worker->set_result = result;
	worker->set_state = TAKT_SET_DONE;
	write_eventfd(worker->wake);
}

/* Takes up one wish; false when there is none, or while the thread of rounds.h is in the driver for
 * this GPU. */
static bool take_up(struct takt_worker *worker)
{
	if (worker->busy_since.ns != 0)
		return false;
	if (!worker->facts_done)
		read_facts(worker);
	else if (worker->set_state == TAKT_SET_POSTED)
		run_setter(worker);
	else if (worker->want_links)
		read_links(worker);
	else if (worker->want_mig)
		read_mig(worker);
	else if (worker->want_full || worker->want_tick)
		sample(worker);
	else
		return false;
	return true;
}

static void *worker_main(void *opaque)
{
	struct takt_worker *worker = opaque;

	pthread_mutex_lock(&worker->lock);
	while (!worker->want_stop) {
		if (take_up(worker))
			pthread_cond_broadcast(&worker->done);
		else
			pthread_cond_wait(&worker->work, &worker->lock);
	}
	pthread_mutex_unlock(&worker->lock);

	/* The last worker to end closes the source, which may block as any driver call. */
	takt_source_unref(worker->source);

	pthread_mutex_lock(&worker->lock);
	worker->ended = true;
	pthread_cond_broadcast(&worker->done);
	pthread_mutex_unlock(&worker->lock);
	takt_worker_unref(worker);
	return NULL;
}

void takt_cond_init_mono(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

struct start {
	void *(*main)(void *arg);
	void *arg;
	char name[16];
};

/* A thread names itself with one call; named by another it takes a file of /proc. */
static void *begin_thread(void *opaque)
{
	struct start start = *(struct start *)opaque;

	takt_free(opaque);
	pthread_setname_np(pthread_self(), start.name);
	return start.main(start.arg);
}

/* Signals are the main thread's business. */
int takt_worker_thread(pthread_t *ret, const char *name, void *(*main)(void *arg), void *arg)
{
	struct start *start = takt_alloc(sizeof(*start));
	pthread_attr_t attr;
	sigset_t all, before;
	int rc;

	if (!start)
		return -ENOMEM;
	*start = (struct start){.main = main, .arg = arg};
	takt_strcpy(start->name, sizeof(start->name), name);
	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* of a call that is refused: confine/confine.h */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, &attr, begin_thread, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0)
		takt_free(start);
	return -rc;
}

int takt_worker_new(struct takt_source *source, struct takt_wake *wake, uint32_t at_source,
		    uint32_t part_mask, struct takt_worker **ret, struct takt_err *err)
{
	struct takt_worker *worker = takt_zalloc(sizeof(*worker));

	if (!worker)
		return takt_err_set(err, -ENOMEM, "worker of GPU %" PRIu32, at_source);
	atomic_init(&worker->refs, 1);
	worker->source = source;
	worker->wake = wake;
	worker->at_source = at_source;
	worker->part_mask = part_mask;
	atomic_init(&worker->read_always, false);
	atomic_init(&worker->energy_every_ns, slow_every_ns);
	pthread_mutex_init(&worker->lock, NULL);
	takt_cond_init_mono(&worker->work);
	takt_cond_init_mono(&worker->done);
	atomic_fetch_add(&wake->refs, 1);
	*ret = worker;
	return 0;
}

/* With the lock. */
static int start_thread(struct takt_worker *worker)
{
	char name[16];
	int rc;

	/* Nobody joins the thread of a worker that was told to stop. */
	if (worker->has_thread || worker->want_stop)
		return 0;
	atomic_fetch_add(&worker->source->refs, 1);
	takt_worker_ref(worker);
	snprintf(name, sizeof(name), "gpu%" PRIu32, worker->at_source);
	rc = takt_worker_thread(&worker->thread, name, worker_main, worker);
	worker->has_thread = rc == 0;
	if (rc < 0) {
		atomic_fetch_sub(&worker->source->refs, 1);
		atomic_fetch_sub(&worker->refs, 1);
	}
	return rc;
}

/* With the lock. Where no thread can be had the wish stays, and the next one tries again. */
static int wake_thread(struct takt_worker *worker)
{
	int rc = start_thread(worker);

	pthread_cond_signal(&worker->work);
	return rc;
}

int takt_worker_start(struct takt_worker *worker, struct takt_err *err)
{
	int rc;

	pthread_mutex_lock(&worker->lock);
	rc = start_thread(worker);
	pthread_mutex_unlock(&worker->lock);
	return rc < 0 ? takt_err_set(err, rc, "thread of GPU %" PRIu32, worker->at_source) : 0;
}

/* Waits for `done` once; false when the deadline is over. With the lock. */
static bool wait_until(struct takt_worker *worker, struct takt_mono deadline)
{
	struct timespec at = {.tv_sec = (time_t)(deadline.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(deadline.ns % TAKT_NS_PER_S)};

	return pthread_cond_timedwait(&worker->done, &worker->lock, &at) != ETIMEDOUT;
}

void takt_worker_stop(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->want_stop = true;
	pthread_cond_signal(&worker->work);
	pthread_mutex_unlock(&worker->lock);
}

void takt_worker_join(struct takt_worker *worker, struct takt_mono deadline)
{
	bool has_thread, ended;

	pthread_mutex_lock(&worker->lock);
	has_thread = worker->has_thread;
	while (has_thread && !worker->ended && wait_until(worker, deadline))
		;
	ended = worker->ended;
	pthread_mutex_unlock(&worker->lock);
	if (has_thread && ended)
		pthread_join(worker->thread, NULL);
	else if (has_thread)
		pthread_detach(worker->thread);
	takt_worker_unref(worker);
}

bool takt_worker_facts(struct takt_worker *worker, struct takt_mono deadline,
		       struct takt_gpu_facts *ret)
{
	bool done;

	pthread_mutex_lock(&worker->lock);
	while (!worker->facts_done && wait_until(worker, deadline))
		;
	*ret = worker->facts;
	done = worker->facts_done;
	pthread_mutex_unlock(&worker->lock);
	return done;
}

void takt_worker_ask_mig(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->want_mig = true;
	worker->mig_seen = false;
	(void)wake_thread(worker);
	pthread_mutex_unlock(&worker->lock);
}

bool takt_worker_seen_mig(struct takt_worker *worker, struct takt_gpu_facts *ret)
{
	bool seen;

	pthread_mutex_lock(&worker->lock);
	seen = worker->mig_seen && !worker->want_mig;
	worker->mig_seen = worker->mig_seen && !seen;
	if (seen)
		*ret = worker->facts;
	pthread_mutex_unlock(&worker->lock);
	return seen;
}

void takt_worker_ask_links(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->want_links = true;
	(void)wake_thread(worker);
	pthread_mutex_unlock(&worker->lock);
}

void takt_worker_links(struct takt_worker *worker, struct takt_mono deadline,
		       struct takt_gpu_link ret[TAKT_DEVICE_MAX_GPUS])
{
	pthread_mutex_lock(&worker->lock);
	while (!worker->links_done && wait_until(worker, deadline))
		;
	memcpy(ret, worker->links, sizeof(worker->links));
	pthread_mutex_unlock(&worker->lock);
}

void takt_worker_announce(struct takt_worker *worker, struct takt_mono now)
{
	uint_least64_t idle = 0;

	(void)atomic_compare_exchange_strong(&worker->wake->busy[worker->at_source], &idle, now.ns);
}

void takt_worker_ask_sample(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->want_full = true;
	(void)wake_thread(worker);
	pthread_mutex_unlock(&worker->lock);
}

void takt_worker_ask_tick(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	if (worker->busy_since.ns == 0) {
		worker->want_tick = true;
		(void)wake_thread(worker);
	}
	pthread_mutex_unlock(&worker->lock);
}

static bool wants_nothing(const struct takt_worker *worker)
{
	return worker->set_state != TAKT_SET_POSTED && !worker->want_links && !worker->want_full &&
	       !worker->want_tick && !worker->want_mig && !worker->want_stop;
}

void takt_worker_facts_here(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	if (worker->busy_since.ns == 0 && !worker->facts_done && !worker->has_thread &&
	    !worker->want_stop) {
		read_facts(worker);
		if (!wants_nothing(worker))
			(void)wake_thread(worker);
	}
	pthread_mutex_unlock(&worker->lock);
}

void takt_worker_tick_here(struct takt_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	if (worker->busy_since.ns == 0) {
		if (worker->facts_done && wants_nothing(worker) && !worker->takes_long)
			sample(worker);
		else
			worker->want_tick = true;
		/* What was wished for meanwhile, or this, is for the worker's own thread. */
		if (!wants_nothing(worker))
			(void)wake_thread(worker);
	}
	pthread_mutex_unlock(&worker->lock);
}

static uint64_t stale_after_ns(const struct takt_machine_info *info,
			       const struct takt_gpu_reading *reading)
{
	return reading->asleep ? info->wake_ns : info->stale_ns;
}

bool takt_reading_is_stale(const struct takt_machine_info *info,
			   const struct takt_gpu_reading *reading, struct takt_mono now)
{
	return reading->lost ||
	       takt_mono_elapsed_ns(now, reading->at) > stale_after_ns(info, reading);
}

int takt_worker_reading(struct takt_worker *worker, const struct takt_machine_info *info,
			struct takt_gpu_reading *ret)
{
	struct takt_mono now = now_mono();
	struct takt_mono busy_since;

	pthread_mutex_lock(&worker->lock);
	if (worker->reading.seq == 0) {
		pthread_mutex_unlock(&worker->lock);
		return -EAGAIN;
	}
	copy_reading(ret, &worker->reading);
	busy_since = worker->busy_since;
	pthread_mutex_unlock(&worker->lock);

	ret->stale = takt_reading_is_stale(info, ret, now);
	if (busy_since.ns != 0 &&
	    takt_mono_elapsed_ns(now, busy_since) > stale_after_ns(info, ret)) {
		ret->stale = true;
		ret->last_rc = -ETIMEDOUT;
	}
	ret->asleep &= !ret->stale;
	return 0;
}

enum takt_word takt_worker_word(struct takt_worker *worker, uint64_t patience_ns)
{
	const struct takt_gpu_reading *reading = &worker->reading;
	enum takt_word word = TAKT_WORD_NONE;
	struct takt_mono now = now_mono();

	pthread_mutex_lock(&worker->lock);
	if (reading->at.ns == 0 || reading->asleep)
		word = TAKT_WORD_NONE;
	else if (takt_mono_elapsed_ns(now, reading->at) <= patience_ns)
		word = TAKT_WORD_THERE;
	else if (worker->unanswered)
		word = TAKT_WORD_GONE;
	pthread_mutex_unlock(&worker->lock);
	return word;
}

int takt_worker_wait(struct takt_worker *worker, uint64_t after_seq, struct takt_mono deadline)
{
	int rc = 0;

	pthread_mutex_lock(&worker->lock);
	while (worker->reading.seq <= after_seq && rc == 0)
		rc = wait_until(worker, deadline) ? 0 : -ETIMEDOUT;
	if (worker->reading.seq > after_seq)
		rc = 0;
	pthread_mutex_unlock(&worker->lock);
	return rc;
}

int takt_worker_set_post(struct takt_worker *worker, const struct takt_set_call *call)
{
	int rc = -EAGAIN;

	pthread_mutex_lock(&worker->lock);
	if (worker->set_state == TAKT_SET_NONE) {
		worker->set = *call;
		rc = wake_thread(worker);
		worker->set_state = rc < 0 ? TAKT_SET_NONE : TAKT_SET_POSTED;
	}
	pthread_mutex_unlock(&worker->lock);
	return rc;
}

bool takt_worker_set_finished(struct takt_worker *worker, struct takt_err *ret_result)
{
	bool finished;

	pthread_mutex_lock(&worker->lock);
	finished = worker->set_state == TAKT_SET_DONE;
	if (finished) {
		*ret_result = worker->set_result;
		worker->set_state = TAKT_SET_NONE;
	}
	pthread_mutex_unlock(&worker->lock);
	return finished;
}
