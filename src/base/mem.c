/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation hook: libc's allocator with a counter that tests can make run out. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_ulong calls;
static atomic_ulong fail_at; /* value of `calls` that fails; 0 = never */
static atomic_bool fail_on;  /* keep failing afterwards */

static bool must_fail(void)
{
	unsigned long call = atomic_fetch_add(&calls, 1) + 1;
	unsigned long at = atomic_load(&fail_at);

	return at != 0 && (call == at || (call > at && atomic_load(&fail_on)));
}

void takt_alloc_fail_nth(unsigned long nth, int and_after)
{
	atomic_store(&fail_on, and_after != 0);
	atomic_store(&fail_at, nth == 0 ? 0 : atomic_load(&calls) + nth);
}

unsigned long takt_alloc_count(void)
{
	return atomic_load(&calls);
}

void *takt_realloc(void *p, size_t size)
{
	return must_fail() ? NULL : realloc(p, size ? size : 1);
}

void *takt_alloc(size_t size)
{
	return takt_realloc(NULL, size);
}

void *takt_zalloc(size_t size)
{
	return takt_calloc(1, size);
}

void *takt_calloc(size_t n, size_t size)
{
	if (size != 0 && n > SIZE_MAX / size)
		return NULL;
	return must_fail() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *takt_reallocarray(void *p, size_t n, size_t size)
{
	if (size != 0 && n > SIZE_MAX / size)
		return NULL;
	return takt_realloc(p, n * size);
}

char *takt_strdup(const char *s)
{
	size_t n;
	char *copy;

	if (!s)
		return NULL;
	n = strlen(s) + 1;
	copy = takt_alloc(n);
	return copy ? memcpy(copy, s, n) : NULL;
}

void takt_free(void *p)
{
	free(p);
}
