/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shim moves itself, where the job does not simply write to its log: lines of ranks that get
 * a prefix (shim_lines.c), a terminal (shim_pty.c). Each has descriptors that are waited for
 * together with signals.
 */
#ifndef TAKT_LAUNCH_SHIM_IO_H
#define TAKT_LAUNCH_SHIM_IO_H

#include <stdint.h>

#include "launch/shim_job.h"

/* A descriptor that is waited for; part of what belongs to it. */
struct takt_shim_source {
	int fd; /* -1 = none */
	void (*ready)(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events);
};

struct takt_shim_lines;
struct takt_shim_pty;

struct takt_shim_io {
	int epollfd;			/* owned */
	struct takt_shim_source signal; /* fd owned; only wakes */
	struct takt_shim_lines *lines;	/* owned; NULL = none */
	struct takt_shim_pty *pty;	/* owned; NULL = none */
};

/* Wait for epoll events of the source: 0 adds nothing but hang-ups. add: -errno. */
int takt_shim_watch(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events);
void takt_shim_watch_for(struct takt_shim *shim, struct takt_shim_source *source, uint32_t events);
/* No longer waited for, and closed. */
void takt_shim_drop(struct takt_shim *shim, struct takt_shim_source *source);

/* To the log; what a full disk does not take is lost. */
void takt_shim_log(const struct takt_shim *shim, const char *text, size_t len);

int takt_shim_lines_open(struct takt_shim *shim, struct takt_err *err);
int takt_shim_lines_take(const struct takt_shim *shim, uint32_t rank, struct takt_err *err);
void takt_shim_lines_finish(struct takt_shim *shim);

int takt_shim_pty_open(struct takt_shim *shim, struct takt_err *err);
int takt_shim_pty_take(const struct takt_shim *shim, struct takt_err *err);
void takt_shim_pty_finish(struct takt_shim *shim);
/* Milliseconds to what it has to do by itself; -1 = nothing. Does what is due. */
int takt_shim_pty_due_ms(struct takt_shim *shim);

#endif
