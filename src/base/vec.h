/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed, growable vector with a stated limit.
 *
 *	struct plan {
 *		TAKT_VEC(struct placement) placements;
 *	};
 *	struct plan plan = {.placements = TAKT_VEC_INIT(MAX_PLACEMENTS)};
 *	rc = takt_vec_push(&plan.placements, placement);
 *	TAKT_VEC_EACH (p, &plan.placements)
 *		use(p->gpu);
 *	takt_vec_fini(&plan.placements);
 *
 * `at` is owned by the vector and valid until the next call that may grow it; elements are plain
 * bytes to it, so what they own is the caller's to release. A call that fails (-ENOMEM, or
 * -TAKT_E_LIMIT beyond `max`) changes nothing. The vector argument is evaluated more than once.
 */
#ifndef TAKT_BASE_VEC_H
#define TAKT_BASE_VEC_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define TAKT_VEC(type)                                          \
	struct {                                                \
		type *at;   /* owned */                         \
		size_t len; /* elements in use */               \
		size_t cap;                                     \
		size_t max; /* never more elements than this */ \
	}

#define TAKT_VEC_INIT(limit)               \
	{                                  \
		.at = NULL, .max = (limit) \
	}

/* Room for `more` elements beyond len. Returns 0 or a negative code. */
#define takt_vec_reserve(v, more)                                                     \
	takt_vec_grow_bytes((void **)&(v)->at, &(v)->cap, (v)->len, (more), (v)->max, \
			    sizeof(*(v)->at))

/* Appends a copy of the value (evaluated once, only if there is room). */
#define takt_vec_push(v, ...)                                \
	__extension__({                                      \
		int rc_ = takt_vec_reserve((v), 1);          \
		if (rc_ == 0)                                \
			(v)->at[(v)->len++] = (__VA_ARGS__); \
		rc_;                                         \
	})

/* Puts the value before element `i` (i <= len); those behind move up. */
#define takt_vec_insert(v, i, ...)                                   \
	__extension__({                                              \
		size_t i_ = (i);                                     \
		int rc_;                                             \
		assert(i_ <= (v)->len);                              \
		rc_ = takt_vec_reserve((v), 1);                      \
		if (rc_ == 0) {                                      \
			memmove(&(v)->at[i_ + 1], &(v)->at[i_],      \
				((v)->len - i_) * sizeof(*(v)->at)); \
			(v)->at[i_] = (__VA_ARGS__);                 \
			(v)->len++;                                  \
		}                                                    \
		rc_;                                                 \
	})

/* Takes element `i` out; those behind move down. */
#define takt_vec_remove(v, i)                                                                \
	do {                                                                                 \
		size_t i_ = (i);                                                             \
		assert(i_ < (v)->len);                                                       \
		(v)->len--;                                                                  \
		memmove(&(v)->at[i_], &(v)->at[i_ + 1], ((v)->len - i_) * sizeof(*(v)->at)); \
	} while (0)

/* Takes element `i` out in constant time; the last one takes its place. */
#define takt_vec_remove_swap(v, i)               \
	do {                                     \
		size_t i_ = (i);                 \
		assert(i_ < (v)->len);           \
		(v)->len--;                      \
		(v)->at[i_] = (v)->at[(v)->len]; \
	} while (0)

/* Empty, memory kept. */
#define takt_vec_clear(v) ((void)((v)->len = 0))

/* Empty, memory released; the vector may be used again. */
#define takt_vec_fini(v)                 \
	do {                             \
		takt_free((v)->at);      \
		(v)->at = NULL;          \
		(v)->len = (v)->cap = 0; \
	} while (0)

/* Pointer to the last element; the vector is not empty. */
#define takt_vec_last(v) (&(v)->at[(v)->len - 1])

/* `it` points at each element in turn; do not grow or shrink the vector inside. */
#define TAKT_VEC_EACH(it, v) \
	for (__typeof__(*(v)->at) *it = (v)->at; (v)->len != 0 && it < (v)->at + (v)->len; it++)

/* The untyped part of takt_vec_reserve. */
int takt_vec_grow_bytes(void **at, size_t *cap, size_t len, size_t more, size_t max, size_t size);

#endif
