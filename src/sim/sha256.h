/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4). Result files name the traces that they were made from by it, so that
 * anybody can check with sha256sum that he has the same. Not used for secrets.
 */
#ifndef TAKT_SIM_SHA256_H
#define TAKT_SIM_SHA256_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TAKT_SHA256_BYTES = 32,
	TAKT_SHA256_TEXT = 65
};

struct takt_sha256 {
	struct sha256_ctx ctx;
};

void takt_sha256_init(struct takt_sha256 *sha);
void takt_sha256_add(struct takt_sha256 *sha, const void *bytes, size_t n);
/* The object is as takt_sha256_init leaves it afterwards; of the text, 64 lower-case hexadecimal
 * digits. */
void takt_sha256_bytes(struct takt_sha256 *sha, uint8_t ret[TAKT_SHA256_BYTES]);
void takt_sha256_text(struct takt_sha256 *sha, char ret[TAKT_SHA256_TEXT]);

#endif
