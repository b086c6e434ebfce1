/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL's inspector plugin writes for node_exporter (NCCL_INSPECTOR_PROM_DUMP=1): one file a
 * GPU, nccl_inspector_metrics_UUID.prom, which the job's process writes anew every 30 seconds or
 * more and removes at its end. It is the job's user's, so it is read with suspicion.
 */
#ifndef TAKT_TELEMETRY_NCCL_READ_H
#define TAKT_TELEMETRY_NCCL_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/timetypes.h"

enum {
	TAKT_NCCL_MAX_ROWS = 16, /* a GPU */
	TAKT_NCCL_NAME = 64,
	TAKT_NCCL_MAX_BYTES = 64 * 1024, /* of a file; the rest is not read */
	TAKT_NCCL_STALE_S =
		300, /* older rows are not shown: it writes every 30 s, or more seldom */
};

/* One kind of operation of one communicator: of several message sizes the one that takes longest,
 * as the plugin's newest writing has it. */
struct takt_nccl_row {
	char operation[TAKT_NCCL_NAME]; /* "AllReduce", "Send", ... */
	char comm[TAKT_NCCL_NAME];	/* its name or id; cut off where it is longer */
	uint32_t ranks, nodes;		/* of the communicator */
	double bus_bytes_s;		/* bus bandwidth */
	double seconds;			/* that one operation takes */
};

/* What the job on one GPU says. Zeroed, nothing. */
struct takt_nccl {
	uint32_t count, left_out; /* rows; those that found no place */
	struct takt_wall written; /* the file's own say */
	struct takt_mono at;	  /* the same by this machine's clock; the caller's to fill */
	uint64_t job_id;	  /* that has the GPU; the caller's to fill */
	struct takt_nccl_row row[TAKT_NCCL_MAX_ROWS];
};

/* The text of such a file; lines of anything else, and a last one without its end, are passed
 * over. Writes count, left_out and rows. */
void takt_nccl_parse(const char *text, size_t len, struct takt_nccl *ret);

/*
 * The file of the GPU with this UUID in the folder, made by `owner`. 0; -ENOENT: there is none;
 * -TAKT_E_CORRUPT: it is no such file; -EAGAIN: nothing of it can be read (yet). *ret is written
 * with 0 alone; `at` and the job are 0.
 */
int takt_nccl_read(int dirfd, const char *gpu_uuid, uid_t owner, struct takt_nccl *ret);

#endif
