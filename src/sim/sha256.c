/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as text, over nettle. */
#include "sim/sha256.h"

#include <stdio.h>

void takt_sha256_init(struct takt_sha256 *sha)
{
	sha256_init(&sha->ctx);
}

void takt_sha256_add(struct takt_sha256 *sha, const void *bytes, size_t n)
{
	sha256_update(&sha->ctx, n, bytes);
}

void takt_sha256_bytes(struct takt_sha256 *sha, uint8_t ret[TAKT_SHA256_BYTES])
{
	sha256_digest(&sha->ctx, TAKT_SHA256_BYTES, ret);
	sha256_init(&sha->ctx);
}

void takt_sha256_text(struct takt_sha256 *sha, char ret[TAKT_SHA256_TEXT])
{
	uint8_t digest[TAKT_SHA256_BYTES];

	takt_sha256_bytes(sha, digest);
	for (int i = 0; i < TAKT_SHA256_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
