/* SPDX-License-Identifier: Apache-2.0 */
/* CPU sets as the kernel writes them ("0-31,64-95") and as masks of 64-bit words. */
#ifndef TAKT_DEVICE_CPU_LIST_H
#define TAKT_DEVICE_CPU_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* False when the text is no list (empty is none), not ascending, or names a CPU beyond the words;
 * ret untouched then. */
bool takt_cpu_list_parse(const char *text, uint64_t *ret, size_t words);

/* Appends the list; nothing for the empty set. */
void takt_cpu_list_format(const uint64_t *mask, size_t words, struct takt_str *ret);

#endif
