/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a sanitizer slows this build down: long campaigns then leave out faults that the plain
 * build tries. */
#ifndef TAKT_TESTS_SANITIZED_H
#define TAKT_TESTS_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
