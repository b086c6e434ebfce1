/* SPDX-License-Identifier: Apache-2.0 */
/* Random tests that can be repeated: each failure names its seed. Include after the standard
 * headers that cmocka asks for; this header brings them. */
#ifndef TAKT_TESTS_SEEDED_H
#define TAKT_TESTS_SEEDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CHECK_SEED(seed, condition)                                                        \
	do {                                                                               \
		if (!(condition))                                                          \
			fail_msg("seed %llu: %s", (unsigned long long)(seed), #condition); \
	} while (0)

#endif
