/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash map from a number or a string to a value, with a stated limit.
 *
 *	struct takt_map jobs = TAKT_MAP_U64(MAX_JOBS);
 *	rc = takt_map_u64_put_ptr(&jobs, job->id, job);
 *	job = takt_map_u64_ptr(&jobs, id);
 *	TAKT_MAP_EACH (entry, &jobs)
 *		use(entry->key, entry->value.ptr);
 *	takt_map_fini(&jobs);
 *
 * Walking goes in the order of insertion (replacing a value keeps its place), or sorted by key with
 * takt_map_sorted(): never in hash order, so that nothing depends on the hash. Entries lie in an
 * array beside a table of indices into it; a removed entry stays as a gap until the array is full.
 *
 * The map owns its memory and copies of its string keys; what the values point at is the caller's.
 * A call that fails (-ENOMEM, -TAKT_E_LIMIT beyond max entries) changes nothing.
 */
#ifndef TAKT_BASE_MAP_H
#define TAKT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union takt_map_value {
	void *ptr; /* borrowed by the map */
	uint64_t u64;
};

struct takt_map_entry {
	uint64_t key; /* the number, or the string's hash */
	char *str;    /* the string, owned by the map; NULL in a map of numbers */
	union takt_map_value value;
	bool live; /* false: removed */
};

enum takt_map_kind {
	TAKT_MAP_KIND_U64,
	TAKT_MAP_KIND_STR,
};

struct takt_map {
	enum takt_map_kind kind;
	struct takt_map_entry *entries; /* owned, in order of insertion */
	uint32_t *slots; /* owned, 2 * cap of them: 0, or index into entries plus 1 */
	size_t used;	 /* entries that are live or gaps */
	size_t len;	 /* live entries */
	size_t cap;	 /* a power of two, or 0 */
	size_t max;	 /* never more live entries than this; under 2^30 */
};

#define TAKT_MAP_U64(limit) ((struct takt_map){.kind = TAKT_MAP_KIND_U64, .max = (limit)})
#define TAKT_MAP_STR(limit) ((struct takt_map){.kind = TAKT_MAP_KIND_STR, .max = (limit)})

/* Sets the value of a key, new or not. */
int takt_map_u64_put(struct takt_map *map, uint64_t key, union takt_map_value value);
int takt_map_str_put(struct takt_map *map, const char *key, union takt_map_value value);

/* The value of a key for reading or changing, borrowed until the next put; NULL if absent. */
union takt_map_value *takt_map_u64_get(const struct takt_map *map, uint64_t key);
union takt_map_value *takt_map_str_get(const struct takt_map *map, const char *key);

/* Whether the key was there. Safe while walking, for the current entry too. */
bool takt_map_u64_remove(struct takt_map *map, uint64_t key);
bool takt_map_str_remove(struct takt_map *map, const char *key);

void takt_map_clear(struct takt_map *map); /* empty, memory kept */
void takt_map_fini(struct takt_map *map);  /* empty, memory released; may be used again */

/* Live entries in order of insertion; next(NULL) is the first, NULL the end. No put while walking.
 */
struct takt_map_entry *takt_map_next(const struct takt_map *map,
				     const struct takt_map_entry *entry);

#define TAKT_MAP_EACH(it, map)                                           \
	for (struct takt_map_entry *it = takt_map_next((map), NULL); it; \
	     it = takt_map_next((map), it))

/* The map->len live entries sorted by key (numbers ascending, strings bytewise): *ret is an array
 * for the caller to takt_free, the entries in it borrowed until the next put. */
int takt_map_sorted(const struct takt_map *map, struct takt_map_entry ***ret);

/* The common case of pointers as values; an absent key reads as NULL. */
static inline int takt_map_u64_put_ptr(struct takt_map *map, uint64_t key, void *ptr)
{
	return takt_map_u64_put(map, key, (union takt_map_value){.ptr = ptr});
}
static inline int takt_map_str_put_ptr(struct takt_map *map, const char *key, void *ptr)
{
	return takt_map_str_put(map, key, (union takt_map_value){.ptr = ptr});
}
static inline void *takt_map_u64_ptr(const struct takt_map *map, uint64_t key)
{
	union takt_map_value *value = takt_map_u64_get(map, key);

	return value ? value->ptr : NULL;
}
static inline void *takt_map_str_ptr(const struct takt_map *map, const char *key)
{
	union takt_map_value *value = takt_map_str_get(map, key);

	return value ? value->ptr : NULL;
}

#endif
