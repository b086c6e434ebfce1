/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of one label that users choose, so many and no more: each different value is a series that
 * a Prometheus keeps for weeks. A value has a place until it was not used for a day; one that finds
 * no place is "other". Internal to telemetry.
 */
#ifndef TAKT_TELEMETRY_LABEL_WORDS_H
#define TAKT_TELEMETRY_LABEL_WORDS_H

#include "base/timetypes.h"

enum {
	TAKT_WORDS_MAX = 200,
	TAKT_WORDS_BYTES = 64, /* a longer word is cut, between two characters */
};

struct takt_word {
	struct takt_mono used;
	char text[TAKT_WORDS_BYTES + 1]; /* "" = a free place */
};
/* Zero to begin with. */
struct takt_words {
	struct takt_word *at; /* owned; NULL before the first */
};

/* The word as it is shown, valid until a day after its last use, or fini. */
const char *takt_words_use(struct takt_words *words, const char *word, struct takt_mono now);
void takt_words_fini(struct takt_words *words);

#endif
