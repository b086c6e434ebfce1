/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal text, and random bytes as an id. The bytes are the caller's: no randomness.
 */
#ifndef TAKT_BASE_HEX_H
#define TAKT_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Lower case; ret takes 2 * n + 1 bytes. */
void takt_hex_encode(const void *bytes, size_t n, char *ret);

/* Exactly 2 * n digits of either case, else -EINVAL and ret as it was. */
int takt_hex_decode(const char *text, void *ret, size_t n);

/* RFC 4122 version 4 from 16 random bytes: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6". */
void takt_uuid_format(const uint8_t random[16], char ret[37]);

#endif
