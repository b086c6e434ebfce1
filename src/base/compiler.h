/* SPDX-License-Identifier: Apache-2.0 */
/* What we ask of the compiler, in one place. */
#ifndef TAKT_BASE_COMPILER_H
#define TAKT_BASE_COMPILER_H

#define TAKT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TAKT_MUST_CHECK	       __attribute__((warn_unused_result))
#define TAKT_API	       __attribute__((visibility("default")))

/* TAKT_CLEANUP(freep) char *p = NULL;  runs freep(&p) when p leaves its scope. */
#define TAKT_CLEANUP(fn) __attribute__((cleanup(takt_cleanup_##fn)))

#define TAKT_ARRAY_LEN(a)		     (sizeof(a) / sizeof((a)[0]))
#define TAKT_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
