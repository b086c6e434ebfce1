/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated machine's file, mapped: reading the state of a GPU, and changing it.
 *
 * Any number of processes and threads. Readers never wait. A change takes the GPU's byte lock on a
 * descriptor that is opened for it alone: so two threads exclude each other as two processes do, a
 * child of fork shares nothing with its parent, and a program that closes all its descriptors does
 * no harm. Nothing here starts threads, installs handlers or keeps a descriptor.
 */
#ifndef TAKT_TWIN_SHARED_H
#define TAKT_TWIN_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "twin_clock.h"
#include "twin_layout.h"

struct twin_map;

/* Maps the machine at `path`. Fails if there is none, if it was made by another layout or before
 * the last boot, or if it is damaged. */
int twin_map_open(const char *path, struct twin_map **ret, struct takt_err *err);
void twin_map_close(struct twin_map *map); /* takes NULL; nobody may use the map any more */

/* `map` takes the place of `older` (may be NULL), which stays mapped because somebody may still be
 * reading it. */
void twin_map_follow(struct twin_map *map, struct twin_map *older);

/* Is `path` still the file that was mapped? A destroyed or replaced machine is not. */
bool twin_map_is(const struct twin_map *map, const char *path);

/* May this process change the machine? */
bool twin_map_writable(const struct twin_map *map);

/* The fixed part; until close. */
struct twin_file *twin_map_file(const struct twin_map *map);
static inline const struct twin_board *twin_map_board(const struct twin_map *map)
{
	return &twin_map_file(map)->machine.board;
}

/* The machine's time at this moment: the time of everything in a machine. */
uint64_t twin_map_now_ns(const struct twin_map *map);

/* Lets the machine's time pass `speed` times as fast as the world's from a moment on that is soon,
 * and jump by `skip_ns` then; returns when that moment has come. -EACCES and -ETIMEDOUT as
 * twin_change. */
int twin_map_set_time(struct twin_map *map, uint64_t speed, uint64_t skip_ns);

/* What a call meets before anything else. */
struct twin_ailment {
	uint32_t faults; /* enum twin_fault */
	uint32_t slow_ms;
	uint64_t hang_until_ns;
	uint64_t reloads, away_until_ns; /* of GPU 0: the driver's */
};

/* That of a GPU at this moment: cheaper than all its state. */
struct twin_ailment twin_ailment(struct twin_map *map, uint32_t gpu);

/* Do calls with this ailment hang at this moment? */
bool twin_ailment_hangs(const struct twin_map *map, const struct twin_ailment *ailment);

/* State of a GPU at this moment. Only load_count entries of loads are filled. Looks now and then
 * whether the processes still live. */
void twin_read(struct twin_map *map, uint32_t gpu, struct twin_gpu *ret);

/* Change a GPU: `change` is shown its state at this moment and alters it, and nothing else: it may
 * be called again with a fresh state. What it returns is returned; if negative nothing is changed.
 * -EACCES if the file may not be written, -ETIMEDOUT if another writer holds the GPU for seconds.
 */
typedef int twin_change_fn(struct twin_gpu *gpu, const struct twin_board *board, void *arg);
int twin_change(struct twin_map *map, uint32_t gpu, twin_change_fn *change, void *arg);

/* Start time of a process (field 22 of /proc/PID/stat), 0 if it is gone or has ended and waits to
 * be collected: the driver has closed its GPU by then. */
uint64_t twin_process_start(int32_t pid);

/* Which numbers pids of this process are: the inode of its pid namespace, 0 if not known. */
uint32_t twin_pid_namespace(void);

#endif
