/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of takt goes through here (SQLite's and cJSON's too, see daemon), so that a test
 * can fail the Nth one. NULL means out of memory and is the caller's -ENOMEM.
 */
#ifndef TAKT_BASE_MEM_H
#define TAKT_BASE_MEM_H

#include <stddef.h>

#include "base/compiler.h"

void *takt_alloc(size_t size);
void *takt_zalloc(size_t size);
void *takt_calloc(size_t n, size_t size); /* zeroed; NULL on overflow too */
void *takt_realloc(void *p, size_t size);
void *takt_reallocarray(void *p, size_t n, size_t size);
char *takt_strdup(const char *s); /* NULL stays NULL */
void takt_free(void *p);	  /* NULL is fine */

/* Tests: the call counted `nth` from now (1 = the next) fails, once or from then on. 0 disarms. */
void takt_alloc_fail_nth(unsigned long nth, int and_after);
unsigned long takt_alloc_count(void); /* calls so far in this process */

static inline void takt_cleanup_freep(void *pp)
{
	takt_free(*(void **)pp);
}

#endif
