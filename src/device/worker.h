/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU's thread: makes that GPU's driver calls and publishes what they say. At a tick the thread
 * of rounds.h may do it in its place; one of them at a time is in the driver for the GPU.
 *
 * Internal to device. All state that callers and the thread share lies behind one short mutex that
 * is never held across a driver call. The object has two holders, the machine and the thread; the
 * last one frees it, so that a thread stuck in the driver can be left behind.
 */
#ifndef TAKT_DEVICE_WORKER_H
#define TAKT_DEVICE_WORKER_H

#include <pthread.h>

#include "device/device_impl.h"
#include "device/device_set.h"

/* What wakes the caller's loop; shared by the workers of a machine, freed with the last holder. */
struct takt_wake {
	atomic_uint refs;
	pthread_mutex_t fd_lock; /* so that nothing is written once the fd was taken away */
	int fd;			 /* -1 = nobody */
	atomic_bool hushed;	 /* samples wake nobody */
	/* When a sample of GPU g was asked for that has not finished; 0 = none. */
	atomic_uint_least64_t busy[TAKT_DEVICE_MAX_GPUS];
};

enum takt_set_state {
	TAKT_SET_NONE,
	TAKT_SET_POSTED,
	TAKT_SET_RUNNING, /* in the driver */
	TAKT_SET_DONE,	  /* the result waits to be fetched */
};

struct takt_worker {
	/* Fixed before the thread starts. */
	struct takt_source *source; /* the thread holds a reference */
	struct takt_wake *wake;	    /* holds a reference */
	uint32_t at_source;	    /* the source's number of this GPU */
	uint32_t part_mask;	    /* parts of a full sample */
	uint64_t falling_ns;	    /* it is left to fall asleep for so long */
	atomic_uint refs;
	atomic_bool read_always; /* as takt_machine_read_always */
	atomic_uint_least64_t energy_every_ns;

	pthread_mutex_t lock;
	pthread_cond_t work; /* the thread waits here */
	pthread_cond_t done; /* callers wait here */

	/* Behind the lock. */
	bool has_thread; /* which is `thread` */
	pthread_t thread;
	bool want_stop, want_links, want_full, want_tick, want_mig;
	bool mig_seen; /* facts have an answer that was not fetched */
	bool facts_done, links_done, ended;
	struct takt_mono busy_since; /* 0 = nobody is in the driver for this GPU */
	uint32_t link_count;	     /* GPUs at the source */
	struct takt_gpu_facts facts;
	struct takt_gpu_link links[TAKT_DEVICE_MAX_GPUS]; /* by the source's numbers */
	struct takt_gpu_reading reading;
	bool unanswered; /* the latest sample was: nothing that it asked */
	struct takt_set_call set;
	enum takt_set_state set_state;
	struct takt_err set_result;

	/* Of whoever is in the driver. */
	bool takes_long; /* the latest sample did */
	struct takt_mono energy_asked_at;
	uint64_t energy_cost_ns;	/* of asking for it, as low as it was of late */
	struct takt_mono falling_since; /* 0 = it is not seen to fall asleep */
	struct takt_gpu_facts facts_work;
	struct takt_gpu_reading work_reading;
};

/* Without a thread yet. The source outlives it until takt_worker_stop; takes a reference to wake on
 * success. */
int takt_worker_new(struct takt_source *source, struct takt_wake *wake, uint32_t at_source,
		    uint32_t part_mask, struct takt_worker **ret, struct takt_err *err);

/* Its thread, if it has none: it reads the facts first. A worker that is not started gets its
 * thread when it is first asked for something that rounds.h does not do. */
int takt_worker_start(struct takt_worker *worker, struct takt_err *err);

/* Asks the thread to end; join waits until `deadline` and then lets go either way. */
void takt_worker_stop(struct takt_worker *worker);
void takt_worker_join(struct takt_worker *worker, struct takt_mono deadline);

/* Copy of the facts as soon as they are complete, or of what there is at the deadline: false. */
bool takt_worker_facts(struct takt_worker *worker, struct takt_mono deadline,
		       struct takt_gpu_facts *ret);

/* As takt_machine_look_at_mig and takt_machine_seen_mig; the latter fills the facts whole. */
void takt_worker_ask_mig(struct takt_worker *worker);
bool takt_worker_seen_mig(struct takt_worker *worker, struct takt_gpu_facts *ret);

/* Post the reading of the links, then fetch them: what there is at the deadline. */
void takt_worker_ask_links(struct takt_worker *worker);
void takt_worker_links(struct takt_worker *worker, struct takt_mono deadline,
		       struct takt_gpu_link ret[TAKT_DEVICE_MAX_GPUS]);

/* announce goes before the asking, to all that are asked together: it is what lets the last of them
 * be the one that wakes the caller. */
void takt_worker_announce(struct takt_worker *worker, struct takt_mono now);
void takt_worker_ask_sample(struct takt_worker *worker);
void takt_worker_ask_tick(struct takt_worker *worker);

/* The facts, read by the calling thread, which may be in the driver for long; nothing where the
 * worker has a thread. */
void takt_worker_facts_here(struct takt_worker *worker);

/* A tick's sample by the calling thread, which may be in the driver for long. Left to the worker
 * when that has more to do or is in the driver, or when the latest sample took long. */
void takt_worker_tick_here(struct takt_worker *worker);

/* What the latest sample says of the driver, as takt_machine_driver_is_gone has it. */
enum takt_word {
	TAKT_WORD_NONE, /* nothing: it sleeps, hangs, or was not read yet */
	TAKT_WORD_THERE,
	TAKT_WORD_GONE,
};
enum takt_word takt_worker_word(struct takt_worker *worker, uint64_t patience_ns);

/* As takt_machine_reading and takt_machine_wait. */
int takt_worker_reading(struct takt_worker *worker, const struct takt_machine_info *info,
			struct takt_gpu_reading *ret);
int takt_worker_wait(struct takt_worker *worker, uint64_t after_seq, struct takt_mono deadline);

/* As takt_machine_set_post and takt_machine_set_finished. */
int takt_worker_set_post(struct takt_worker *worker, const struct takt_set_call *call);
bool takt_worker_set_finished(struct takt_worker *worker, struct takt_err *ret_result);

void takt_worker_ref(struct takt_worker *worker);
void takt_worker_unref(struct takt_worker *worker);

/* For threads that call the driver: no signals, a stack that suffices for it. */
int takt_worker_thread(pthread_t *ret, const char *name, void *(*main)(void *arg), void *arg);
/* A condition whose deadlines are struct takt_mono. */
void takt_cond_init_mono(pthread_cond_t *cond);

struct takt_wake *takt_wake_new(void); /* NULL = out of memory */
void takt_wake_set_fd(struct takt_wake *wake, int fd);
void takt_wake_unref(struct takt_wake *wake);

#endif
