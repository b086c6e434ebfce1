/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping, reading and changing the machine file; the scheme is described in twin_layout.h. */
#include "twin_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc_stat.h"
#include "base/sys.h"
#include "twin_physics.h"
#include "twin_trouble.h"

enum {
	LOCK_TRIES = 4000, /* of LOCK_NAP_NS: two seconds and a bit */
	LOCK_NAP_NS = 500000,
	REAP_EVERY_NS = 20000000,
	CLOCK_BYTE = TWIN_MAX_GPUS, /* locked by who changes the machine's time */
};

/* What this process worked out last: a reading starts from here instead of from the file. */
struct cache {
	atomic_flag
		busy; /* whoever finds it set works without; so a fork amid a reading is harmless */
	uint64_t number; /* of the copy it came from */
	uint64_t reaped_ns;
	struct twin_gpu gpu;
};

struct twin_map {
	struct twin_file *file;
	bool writable;
	dev_t dev;
	ino_t ino;
	char *path;
	struct twin_map *older; /* kept, see twin_map_follow */
	struct cache cache[TWIN_MAX_GPUS];
};

_Static_assert(sizeof(struct twin_gpu) % sizeof(uint64_t) == 0, "copied by words");

struct twin_file *twin_map_file(const struct twin_map *map)
{
	return map->file;
}

uint64_t twin_map_now_ns(const struct twin_map *map)
{
	return twin_clock_at(&map->file->clock, twin_now_ns());
}

bool twin_map_writable(const struct twin_map *map)
{
	return map->writable;
}

static int check_file(const struct twin_file *file, const char *path, struct takt_err *err)
{
	char boot_id[TWIN_BOOT_ID];

	takt_boot_id(boot_id);
	if (memcmp(file->magic, TWIN_MAGIC, sizeof(file->magic)) != 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is no simulated machine", path);
	if (file->layout != TWIN_LAYOUT || file->file_size != sizeof(*file))
		return takt_err_set(
			err, -TAKT_E_VERSION,
			"'%s' was made by another version of takt-twin; create it again", path);
	if (strncmp(file->boot_id, boot_id, sizeof(boot_id)) != 0)
		return takt_err_set(
			err, -TAKT_E_STALE,
			"'%s' was made before this machine's last start; create it again", path);
	if (file->machine.gpu_count - 1 >= TWIN_MAX_GPUS ||
	    file->machine.board.clock_count - 1 >= TWIN_MAX_CLOCKS)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is damaged", path);
	return 0;
}

static int map_fd(struct twin_map *map, int fd, const char *path, struct takt_err *err)
{
	int protection = PROT_READ | (map->writable ? PROT_WRITE : 0);
	struct stat st;

	if (fstat(fd, &st) != 0)
		return takt_err_set(err, -errno, "look at '%s'", path);
	if (st.st_size != sizeof(struct twin_file))
		return takt_err_set(err, -TAKT_E_VERSION,
				    "'%s' is no simulated machine, or was made by another version "
				    "of takt-twin; create it again",
				    path);
	map->dev = st.st_dev;
	map->ino = st.st_ino;
	map->file = mmap(NULL, sizeof(struct twin_file), protection, MAP_SHARED, fd, 0);
	if (map->file == MAP_FAILED) {
		map->file = NULL;
		return takt_err_set(err, -errno, "map '%s'", path);
	}
	return check_file(map->file, path, err);
}

static int open_machine(const char *path, bool *ret_writable, struct takt_err *err)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	*ret_writable = fd >= 0;
	if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : takt_err_set(err, -errno, "open machine '%s'", path);
}

int twin_map_open(const char *path, struct twin_map **ret, struct takt_err *err)
{
	struct twin_map *map = takt_zalloc(sizeof(*map));
	int fd, rc;

	if (!map || !(map->path = takt_strdup(path))) {
		twin_map_close(map);
		return takt_err_set(err, -ENOMEM, "map '%s'", path);
	}
	fd = open_machine(path, &map->writable, err);
	rc = fd < 0 ? fd : map_fd(map, fd, path, err);
	if (fd >= 0)
		close(fd);
	if (rc < 0) {
		twin_map_close(map);
		return rc;
	}
	*ret = map;
	return 0;
}

void twin_map_close(struct twin_map *map)
{
	if (!map)
		return;
	if (map->file)
		munmap(map->file, sizeof(struct twin_file));
	takt_free(map->path);
	takt_free(map);
}

void twin_map_follow(struct twin_map *map, struct twin_map *older)
{
	map->older = older;
}

bool twin_map_is(const struct twin_map *map, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == map->dev && st.st_ino == map->ino;
}

/* Copies by words, each load and store atomic: a torn copy is noticed by its number, but no word
 * of it may be torn or invented by the compiler. */
static void copy_out(struct twin_gpu *to, const struct twin_gpu *from)
{
	const uint64_t *source = (const uint64_t *)(const void *)from;
	uint64_t *target = (uint64_t *)(void *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(uint64_t); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

static void copy_in(struct twin_gpu *to, const struct twin_gpu *from)
{
	const uint64_t *source = (const uint64_t *)(const void *)from;
	uint64_t *target = (uint64_t *)(void *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(uint64_t); i++)
		__atomic_store_n(&target[i], source[i], __ATOMIC_RELAXED);
}

/* The copy in force and its number. Tries again only when a writer got through meanwhile. */
static uint64_t fetch(const struct twin_slot *slot, struct twin_gpu *ret)
{
	uint64_t before, after = atomic_load_explicit(&slot->number, memory_order_acquire);

	do {
		before = after;
		copy_out(ret, &slot->copy[before % 2]);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&slot->number, memory_order_acquire);
	} while (before != after);
	if (ret->load_count > TWIN_MAX_LOADS)
		ret->load_count = TWIN_MAX_LOADS;
	return before;
}

uint64_t twin_process_start(int32_t pid)
{
	struct takt_proc_stat stat;
	char path[32], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (takt_proc_stat_parse(text, &stat) < 0 || stat.state == 'Z' || stat.state == 'X')
		return 0;
	return stat.start_ticks;
}

uint32_t twin_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

static bool is_dead(const struct twin_load *load, uint32_t pid_namespace)
{
	return load->pid_namespace == pid_namespace &&
	       twin_process_start(load->pid) != load->start_ticks;
}

static int mark_gone(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint32_t pid_namespace = twin_pid_namespace();
	int marked = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		struct twin_load *load = &gpu->loads[i];
		if (!twin_load_alive(load) || !is_dead(load, pid_namespace))
			continue;
		load->gone_ns = gpu->at_ns;
		marked++;
	}
	return marked ? 0 : -ENOENT;
}

static int change(struct twin_map *map, uint32_t gpu, twin_change_fn *fn, void *arg, int tries);

/* Processes that died since somebody looked are marked in the file; if another writer is at work
 * just now, in this process's copy alone, and the next look tries again. */
static void reap(struct twin_map *map, uint32_t index, struct twin_gpu *gpu)
{
	if (mark_gone(gpu, twin_map_board(map), NULL) == 0) {
		twin_physics_settle(gpu, twin_map_board(map));
		change(map, index, mark_gone, NULL, 1);
	}
}

static void hand_out(const struct twin_gpu *gpu, struct twin_gpu *ret)
{
	memcpy(ret, gpu,
	       offsetof(struct twin_gpu, loads) + gpu->load_count * sizeof(gpu->loads[0]));
}

/* Brings the copy of this process up to the file's and to this moment. */
static void refresh(struct twin_map *map, uint32_t index, struct cache *cache, uint64_t now_ns)
{
	struct twin_slot *slot = &map->file->slots[index];

	if (atomic_load_explicit(&slot->number, memory_order_acquire) != cache->number)
		cache->number = fetch(slot, &cache->gpu);
	twin_physics_advance(&cache->gpu, twin_map_board(map), now_ns);
}

static void read_cached(struct twin_map *map, uint32_t index, struct cache *cache, uint64_t now_ns)
{
	uint64_t boot_ns = twin_now_ns();

	refresh(map, index, cache, now_ns);
	if (cache->gpu.load_count && boot_ns - cache->reaped_ns >= REAP_EVERY_NS) {
		cache->reaped_ns = boot_ns;
		reap(map, index, &cache->gpu);
	}
}

/* As long as nothing that calls meet can have changed, time need not be worked out: cooling acts at
 * the end of a cell, plans at their moment. */
static bool is_fresh(const struct twin_map *map, uint32_t index, const struct cache *cache,
		     uint64_t now_ns)
{
	const struct twin_slot *slot = &map->file->slots[index];

	return atomic_load_explicit(&slot->number, memory_order_acquire) == cache->number &&
	       now_ns / TWIN_CELL_NS == cache->gpu.at_ns / TWIN_CELL_NS &&
	       now_ns < twin_trouble_next_ns(&cache->gpu);
}

static struct twin_ailment ailment_of(const struct twin_gpu *gpu)
{
	return (struct twin_ailment){
		.faults = gpu->faults,
		.slow_ms = gpu->slow_ms,
		.hang_until_ns = gpu->hang_until_ns,
		.reloads = gpu->reloads,
		.away_until_ns = gpu->away_until_ns,
	};
}

/* Without the cache, which another thread has. */
static void read_alone(struct twin_map *map, uint32_t index, struct twin_gpu *ret, uint64_t now_ns)
{
	fetch(&map->file->slots[index], ret);
	twin_physics_advance(ret, twin_map_board(map), now_ns);
}

struct twin_ailment twin_ailment(struct twin_map *map, uint32_t gpu)
{
	struct cache *cache = &map->cache[gpu];
	uint64_t now_ns = twin_map_now_ns(map);
	struct twin_ailment found;

	if (atomic_flag_test_and_set_explicit(&cache->busy, memory_order_acquire)) {
		struct twin_gpu state;
		read_alone(map, gpu, &state, now_ns);
		return ailment_of(&state);
	}
	if (!is_fresh(map, gpu, cache, now_ns))
		refresh(map, gpu, cache, now_ns);
	found = ailment_of(&cache->gpu);
	atomic_flag_clear_explicit(&cache->busy, memory_order_release);
	return found;
}

bool twin_ailment_hangs(const struct twin_map *map, const struct twin_ailment *ailment)
{
	return ailment->faults & TWIN_FAULT_HANG &&
	       (!ailment->hang_until_ns || twin_map_now_ns(map) < ailment->hang_until_ns);
}

void twin_read(struct twin_map *map, uint32_t gpu, struct twin_gpu *ret)
{
	struct cache *cache = &map->cache[gpu];
	uint64_t now_ns = twin_map_now_ns(map);

	if (atomic_flag_test_and_set_explicit(&cache->busy, memory_order_acquire)) {
		read_alone(map, gpu, ret, now_ns);
		return;
	}
	read_cached(map, gpu, cache, now_ns);
	hand_out(&cache->gpu, ret);
	atomic_flag_clear_explicit(&cache->busy, memory_order_release);
}

/* A descriptor of its own with that byte locked (a GPU's is its index), or negative. */
static int lock_byte(const struct twin_map *map, uint32_t byte, int tries)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
	struct stat st;
	int fd;

	if (!map->writable)
		return -EACCES;
	fd = open(map->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || st.st_dev != map->dev || st.st_ino != map->ino) {
		close(fd);
		return -ESTALE;
	}
	while (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
		int rc = errno == EAGAIN || errno == EACCES || errno == EINTR ? -ETIMEDOUT : -errno;
		if (rc != -ETIMEDOUT || --tries <= 0) {
			close(fd);
			return rc;
		}
		nanosleep(&nap, NULL);
	}
	return fd;
}

/* One attempt under the lock, from the state as it is at this moment. False if a cell ended
 * meanwhile: a reader may have closed that cell without the change already, so it must be made
 * anew, now. */
static bool attempt(struct twin_map *map, struct twin_slot *slot, uint64_t number,
		    const struct twin_gpu *now, twin_change_fn *fn, void *arg, int *ret_rc)
{
	struct twin_gpu state = *now;

	*ret_rc = fn(&state, twin_map_board(map), arg);
	if (*ret_rc < 0)
		return true;
	twin_physics_settle(&state, twin_map_board(map));
	/* whoever sees a word of the new copy also sees the number that we started from */
	atomic_thread_fence(memory_order_release);
	copy_in(&slot->copy[(number + 1) % 2], &state);
	if (twin_map_now_ns(map) / TWIN_CELL_NS > state.at_ns / TWIN_CELL_NS)
		return false;
	atomic_store_explicit(&slot->number, number + 1, memory_order_release);
	return true;
}

static int change(struct twin_map *map, uint32_t gpu, twin_change_fn *fn, void *arg, int tries)
{
	struct twin_slot *slot = &map->file->slots[gpu];
	int fd = lock_byte(map, gpu, tries), rc;
	struct twin_gpu state;
	uint64_t number;

	if (fd < 0)
		return fd;
	number = fetch(slot, &state);
	/* what was worked out stays worked out, so that a long way is gone once */
	do {
		twin_physics_advance(&state, twin_map_board(map), twin_map_now_ns(map));
	} while (!attempt(map, slot, number, &state, fn, arg, &rc));
	close(fd);
	return rc;
}

int twin_change(struct twin_map *map, uint32_t gpu, twin_change_fn *fn, void *arg)
{
	return change(map, gpu, fn, arg, LOCK_TRIES);
}

/* Until the newest stretch of time has begun. */
static void await_stretch(const struct twin_map *map)
{
	struct timespec nap = {.tv_nsec = TWIN_CLOCK_LEAD_NS / 10};

	while (!twin_clock_begun(&map->file->clock))
		nanosleep(&nap, NULL);
}

int twin_map_set_time(struct twin_map *map, uint64_t speed, uint64_t skip_ns)
{
	int fd = lock_byte(map, CLOCK_BYTE, LOCK_TRIES);

	if (fd < 0)
		return fd;
	do {
		await_stretch(map);
	} while (!twin_clock_announce(&map->file->clock, speed, skip_ns));
	close(fd);
	await_stretch(map);
	return 0;
}
