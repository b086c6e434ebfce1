/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing with linear probing over indices. A slot, once taken, stays taken until the map
 * is rebuilt, also when its entry was removed: probing needs no tombstones, and since slots are
 * twice the entries there is always an empty one to stop at.
 */
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/sort.h"

enum {
	CAP_MIN = 8
};

/* The finalizer of splitmix64: neighbouring numbers land far apart. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

static bool matches(const struct takt_map_entry *entry, uint64_t key, const char *str)
{
	return entry->live && entry->key == key && (!str || strcmp(entry->str, str) == 0);
}

static struct takt_map_entry *find(const struct takt_map *map, uint64_t key, const char *str)
{
	size_t mask = 2 * map->cap - 1;

	if (map->cap == 0)
		return NULL;
	for (size_t i = mix(key) & mask; map->slots[i]; i = (i + 1) & mask)
		if (matches(&map->entries[map->slots[i] - 1], key, str))
			return &map->entries[map->slots[i] - 1];
	return NULL;
}

static void index_entry(uint32_t *slots, size_t cap, uint64_t key, size_t entry)
{
	size_t mask = 2 * cap - 1;
	size_t i = mix(key) & mask;

	while (slots[i])
		i = (i + 1) & mask;
	slots[i] = (uint32_t)entry + 1;
}

/* Moves the live entries to new arrays of `cap`, closing the gaps. */
static int rebuild(struct takt_map *map, size_t cap)
{
	struct takt_map_entry *entries = takt_calloc(cap, sizeof(*entries));
	uint32_t *slots = takt_calloc(2 * cap, sizeof(*slots));
	size_t used = 0;

	if (!entries || !slots) {
		takt_free(entries);
		takt_free(slots);
		return -ENOMEM;
	}
	TAKT_MAP_EACH(entry, map)
	{
		entries[used] = *entry;
		index_entry(slots, cap, entry->key, used++);
	}
	takt_free(map->entries);
	takt_free(map->slots);
	map->entries = entries;
	map->slots = slots;
	map->used = used;
	map->cap = cap;
	return 0;
}

/* Doubles unless closing the gaps frees half of the array. */
static int make_room(struct takt_map *map)
{
	if (map->len >= map->max)
		return -TAKT_E_LIMIT;
	if (map->used < map->cap)
		return 0;
	if (map->cap == 0)
		return rebuild(map, CAP_MIN);
	return rebuild(map, map->len > map->cap / 2 ? map->cap * 2 : map->cap);
}

static int put(struct takt_map *map, uint64_t key, const char *str, union takt_map_value value)
{
	struct takt_map_entry *entry = find(map, key, str);
	char *copy = NULL;
	int rc;

	if (entry) {
		entry->value = value;
		return 0;
	}
	rc = make_room(map);
	if (rc < 0)
		return rc;
	if (str && !(copy = takt_strdup(str)))
		return -ENOMEM;
	map->entries[map->used] = (struct takt_map_entry){key, copy, value, true};
	index_entry(map->slots, map->cap, key, map->used);
	map->used++;
	map->len++;
	return 0;
}

static bool remove_entry(struct takt_map *map, struct takt_map_entry *entry)
{
	if (!entry)
		return false;
	takt_free(entry->str);
	entry->str = NULL;
	entry->live = false;
	map->len--;
	return true;
}

int takt_map_u64_put(struct takt_map *map, uint64_t key, union takt_map_value value)
{
	assert(map->kind == TAKT_MAP_KIND_U64);
	return put(map, key, NULL, value);
}

int takt_map_str_put(struct takt_map *map, const char *key, union takt_map_value value)
{
	assert(map->kind == TAKT_MAP_KIND_STR);
	return put(map, hash_text(key), key, value);
}

union takt_map_value *takt_map_u64_get(const struct takt_map *map, uint64_t key)
{
	struct takt_map_entry *entry;

	assert(map->kind == TAKT_MAP_KIND_U64);
	entry = find(map, key, NULL);
	return entry ? &entry->value : NULL;
}

union takt_map_value *takt_map_str_get(const struct takt_map *map, const char *key)
{
	struct takt_map_entry *entry;

	assert(map->kind == TAKT_MAP_KIND_STR);
	entry = find(map, hash_text(key), key);
	return entry ? &entry->value : NULL;
}

bool takt_map_u64_remove(struct takt_map *map, uint64_t key)
{
	assert(map->kind == TAKT_MAP_KIND_U64);
	return remove_entry(map, find(map, key, NULL));
}

bool takt_map_str_remove(struct takt_map *map, const char *key)
{
	assert(map->kind == TAKT_MAP_KIND_STR);
	return remove_entry(map, find(map, hash_text(key), key));
}

struct takt_map_entry *takt_map_next(const struct takt_map *map, const struct takt_map_entry *entry)
{
	size_t i = entry ? (size_t)(entry - map->entries) + 1 : 0;

	while (i < map->used && !map->entries[i].live)
		i++;
	return i < map->used ? &map->entries[i] : NULL;
}

static int compare_keys(const void *a, const void *b, void *ctx)
{
	const struct takt_map_entry *x = *(struct takt_map_entry *const *)a;
	const struct takt_map_entry *y = *(struct takt_map_entry *const *)b;

	if (x->str)
		return strcmp(x->str, y->str);
	return (x->key > y->key) - (x->key < y->key);
}

int takt_map_sorted(const struct takt_map *map, struct takt_map_entry ***ret)
{
	struct takt_map_entry **sorted = takt_calloc(map->len, sizeof(struct takt_map_entry *));
	size_t n = 0;
	int rc;

	if (!sorted)
		return -ENOMEM;
	TAKT_MAP_EACH(entry, map)
	sorted[n++] = entry;
	rc = takt_sort(sorted, n, sizeof(struct takt_map_entry *), compare_keys, NULL);
	if (rc < 0) {
		takt_free(sorted);
		return rc;
	}
	*ret = sorted;
	return 0;
}

void takt_map_clear(struct takt_map *map)
{
	TAKT_MAP_EACH(entry, map)
	takt_free(entry->str);
	if (map->cap)
		memset(map->slots, 0, 2 * map->cap * sizeof(*map->slots));
	map->used = map->len = 0;
}

void takt_map_fini(struct takt_map *map)
{
	takt_map_clear(map);
	takt_free(map->entries);
	takt_free(map->slots);
	*map = (struct takt_map){.kind = map->kind, .max = map->max};
}
