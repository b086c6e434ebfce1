/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/label_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

static const uint64_t day_ns = 24 * 3600 * TAKT_NS_PER_S;

/* Bytes of the word that are shown: no character is cut in two. */
static size_t shown_bytes(const char *word)
{
	size_t len = strnlen(word, TAKT_WORDS_BYTES + 1);

	if (len <= TAKT_WORDS_BYTES)
		return len;
	len = TAKT_WORDS_BYTES;
	while (len > 0 && ((unsigned char)word[len] & 0xc0) == 0x80)
		len--;
	return len;
}

static bool is_word(const struct takt_word *at, const char *word, size_t len)
{
	return at->text[0] != '\0' && strncmp(at->text, word, len) == 0 && at->text[len] == '\0';
}

static bool has_room(const struct takt_word *at, struct takt_mono now)
{
	return at->text[0] == '\0' || takt_mono_elapsed_ns(now, at->used) > day_ns;
}

static struct takt_word *find(struct takt_words *words, const char *word, size_t len,
			      struct takt_mono now)
{
	struct takt_word *room = NULL;

	for (size_t i = 0; i < TAKT_WORDS_MAX; i++) {
		struct takt_word *at = &words->at[i];

		if (is_word(at, word, len))
			return at;
		if (!room && has_room(at, now))
			room = at;
	}
	if (room) {
		memcpy(room->text, word, len);
		room->text[len] = '\0';
	}
	return room;
}

const char *takt_words_use(struct takt_words *words, const char *word, struct takt_mono now)
{
	struct takt_word *at = NULL;
	size_t len = shown_bytes(word);

	if (len == 0)
		return "";
	if (!words->at)
		words->at = takt_calloc(TAKT_WORDS_MAX, sizeof(words->at[0]));
	if (words->at)
		at = find(words, word, len, now);
	if (!at)
		return "other";
	at->used = now;
	return at->text;
}

void takt_words_fini(struct takt_words *words)
{
	takt_free(words->at);
	words->at = NULL;
}
