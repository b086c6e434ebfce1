/* SPDX-License-Identifier: Apache-2.0 */
/* The load itself, over a link whose sides have met. */
#ifndef TAKT_CLI_BW_RUN_H
#define TAKT_CLI_BW_RUN_H

#include "cli/bw_link.h"

struct takt_bw_watch {
	/* Once before and each second: 0 = go on, else TAKT_BW_GANG or TAKT_BW_NO_TAKT. */
	enum takt_bw_end (*look)(void *ctx);
	/* When it has begun and each second: bytes passed since the beginning. */
	void (*tell)(void *ctx, uint64_t bytes, uint64_t elapsed_ns);
	void *ctx;
};

struct takt_bw_result {
	uint64_t sent_bytes; /* the caller's alone */
	uint64_t received_bytes;
	uint64_t elapsed_ns;  /* to the last that came */
	enum takt_bw_end end; /* 0 = not ended */
	bool there;	      /* it was the other side that ended it */
	bool begun;	      /* false: ended before a byte */
};

/* 0 also when a side ended it early: *ret says so. *ret is filled after a failure, too. */
int takt_bw_call(const struct takt_bw_link *link, const struct takt_bw_watch *watch,
		 struct takt_bw_result *ret, struct takt_err *err);
int takt_bw_serve(const struct takt_bw_link *link, const struct takt_bw_watch *watch,
		  struct takt_bw_result *ret, struct takt_err *err);

#endif
