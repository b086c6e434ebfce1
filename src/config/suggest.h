/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of a list of words to one that is not in it. */
#ifndef TAKT_CONFIG_SUGGEST_H
#define TAKT_CONFIG_SUGGEST_H

#include <stddef.h>

/* The word with the fewest letters to change, drop, add or swap, the first of several; NULL when
 * even that is more than a third of the word. word_at(ctx, i) is NULL beyond the last. */
const char *takt_suggest(const char *word, const char *(*word_at)(const void *ctx, size_t i),
			 const void *ctx);

#endif
