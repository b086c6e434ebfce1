/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, as in iSCSI and ext4): finds torn and stale
 * records. Against accidents, not against attackers.
 */
#ifndef TAKT_BASE_CHECKSUM_H
#define TAKT_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of "123456789": 0xe3069283. */
uint32_t takt_crc32c(const void *bytes, size_t n);

/* Goes on from the checksum of what came before: crc32c_more(crc32c(a), b) is that of a and b. */
uint32_t takt_crc32c_more(uint32_t crc, const void *bytes, size_t n);

#endif
