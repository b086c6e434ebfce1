/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a job is, told by the job itself: steps, tokens, queries done so far, and what a query
 * takes. takt shows it (takt show), reports it, and steers clocks by it: nothing else says so well
 * what a slower clock costs. This header is all there is to it; nothing to link.
 *
 *	struct takt_progress progress;
 *
 *	takt_progress_open(&progress);               // outside of takt too: then nothing happens
 *	for (...) {
 *		train();
 *		takt_progress_add(&progress, 1, tokens, 0);
 *	}
 *	takt_progress_close(&progress);
 *
 * The file is named by the environment variable TAKT_PROGRESS and has the 64 bytes of struct
 * takt_progress_file for each rank, in the machine's own byte order. One process of a rank writes
 * its own; which that is LOCAL_RANK says, or RANK, else it is the first. Telling takes some ten
 * nanoseconds: two stores and a clock.
 */
#ifndef TAKT_PROGRESS_H
#define TAKT_PROGRESS_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The format and its version, in the file's first eight bytes; written last, when it is made. */
#define TAKT_PROGRESS_MAGIC "TAKTPRG1"

/* Ranks that can tell: one page of them. */
enum {
	TAKT_PROGRESS_MAX_RANKS = 64
};

/* Which counters the job tells. */
enum takt_progress_has {
	TAKT_PROGRESS_STEPS = 1,
	TAKT_PROGRESS_TOKENS = 2,
	TAKT_PROGRESS_QUERIES = 4,
	TAKT_PROGRESS_LATENCY = 8
};

struct takt_progress_file {
	char magic[8];
	uint32_t sequence; /* odd while it is written; a reader takes what is the same twice */
	uint32_t has;
	uint64_t steps, tokens, queries; /* since the job began; never less than before */
	uint64_t latency_us;		 /* what a query takes lately, a p99 say; or a step */
	uint64_t at_ns;			 /* CLOCK_MONOTONIC when this was told */
	uint64_t spare;			 /* 0 */
};

struct takt_progress {
	struct takt_progress_file *file; /* of this rank; NULL: nobody wants to know */
	void *map;
	size_t mapped; /* bytes */
};

static inline uint64_t takt_progress_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline long takt_progress_rank_(void)
{
	const char *text = getenv("LOCAL_RANK");

	if (!text || !text[0])
		text = getenv("RANK");
	return text ? strtol(text, NULL, 10) : 0;
}

/* Maps the file up to the rank's end. It grows by a byte that is 0 anyway, and is never cut: other
 * ranks may be in it. */
static inline int takt_progress_map_(struct takt_progress *progress, int fd, long rank)
{
	size_t size = (size_t)(rank + 1) * sizeof(struct takt_progress_file);
	void *at;

	/* The daemon may be another user: it reads as the folder's group, whatever the umask. A
	 * file of root's that is lent to us has the right mode. */
	if ((fchmod(fd, 0640) < 0 && errno != EPERM) || pwrite(fd, "", 1, (off_t)size - 1) < 0)
		return -errno;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	progress->map = at;
	progress->mapped = size;
	progress->file = (struct takt_progress_file *)at + rank;
	memcpy(progress->file->magic, TAKT_PROGRESS_MAGIC, sizeof(progress->file->magic));
	return 0;
}

/* 0 or a negative errno: -ENOENT where nobody asks, -ERANGE for a rank beyond those that can tell.
 * The other calls may follow in any case. */
static inline int takt_progress_open(struct takt_progress *progress)
{
	const char *path = getenv("TAKT_PROGRESS");
	long rank = takt_progress_rank_();
	int fd, rc;

	progress->file = NULL;
	progress->map = NULL;
	progress->mapped = 0;
	if (!path || !path[0])
		return -ENOENT;
	if (rank < 0 || rank >= TAKT_PROGRESS_MAX_RANKS)
		return -ERANGE;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return -errno;
	rc = takt_progress_map_(progress, fd, rank);
	close(fd);
	return rc;
}

static inline void takt_progress_close(struct takt_progress *progress)
{
	if (progress->file)
		munmap(progress->map, progress->mapped);
	progress->file = NULL;
}

static inline void takt_progress_begin_(struct takt_progress_file *file)
{
	__atomic_store_n(&file->sequence, file->sequence | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void takt_progress_end_(struct takt_progress_file *file)
{
	file->at_ns = takt_progress_now_ns();
	__atomic_store_n(&file->sequence, (file->sequence | 1) + 1, __ATOMIC_RELEASE);
}

/* So much more is done. */
static inline void takt_progress_add(struct takt_progress *progress, uint64_t steps,
				     uint64_t tokens, uint64_t queries)
{
	struct takt_progress_file *file = progress->file;

	if (!file)
		return;
	takt_progress_begin_(file);
	file->steps += steps;
	file->tokens += tokens;
	file->queries += queries;
	file->has |= (steps ? TAKT_PROGRESS_STEPS : 0u) | (tokens ? TAKT_PROGRESS_TOKENS : 0u) |
		     (queries ? TAKT_PROGRESS_QUERIES : 0u);
	takt_progress_end_(file);
}

/* What a query takes at present; of a rank that waits for others in each step: its own part of a
 * step, before it waits. */
static inline void takt_progress_latency(struct takt_progress *progress, uint64_t latency_us)
{
	struct takt_progress_file *file = progress->file;

	if (!file)
		return;
	takt_progress_begin_(file);
	file->latency_us = latency_us;
	file->has |= TAKT_PROGRESS_LATENCY;
	takt_progress_end_(file);
}

#ifdef __cplusplus
}
#endif

#endif
