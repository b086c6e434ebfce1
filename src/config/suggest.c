/* SPDX-License-Identifier: Apache-2.0 */
/* Distance between words by Damerau and Levenshtein, in its restricted form (neighbours swap). */
#include "config/suggest.h"

#include <string.h>

enum {
	MAX_WORD = 40
};

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Row i holds the cost of turning the first i letters of a into the first j of b. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[MAX_WORD + 1][MAX_WORD + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > MAX_WORD || b_len > MAX_WORD)
		return MAX_WORD;
	for (size_t i = 0; i <= a_len; i++) {
		for (size_t j = 0; j <= b_len; j++) {
			unsigned *cell = &rows[i][j];

			if (i == 0 || j == 0) {
				*cell = (unsigned)(i + j);
				continue;
			}
			*cell = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			*cell = least(*cell, least(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				*cell = least(*cell, rows[i - 2][j - 2] + 1);
		}
	}
	return rows[a_len][b_len];
}

const char *takt_suggest(const char *word, const char *(*word_at)(const void *ctx, size_t i),
			 const void *ctx)
{
	size_t most = strlen(word) / 3; /* "free" is no misspelt "freeze" */
	unsigned best_distance = (unsigned)(most ? most : 1) + 1;
	const char *best = NULL, *candidate;

	for (size_t i = 0; (candidate = word_at(ctx, i)); i++) {
		unsigned d = distance(word, candidate);

		if (d < best_distance) {
			best_distance = d;
			best = candidate;
		}
	}
	return best;
}
