/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gavel's table: how fast each kind of training job runs on each accelerator model.
 *
 * The file is JSON: {model: {"('ResNet-18 (batch size 16)', 1)": {"null": steps/s, ...}}}, where
 * the key is a kind of job and its number of accelerators, "null" its speed alone, and the other
 * members its speed beside another job on the same accelerator (not read). Models named
 * X_unconsolidated hold the speed on X with the accelerators spread over nodes.
 */
#ifndef TAKT_SIM_THROUGHPUTS_H
#define TAKT_SIM_THROUGHPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/text_lines.h"

enum {
	TAKT_THROUGHPUT_MAX_MODELS = 16,
	TAKT_THROUGHPUT_MAX_KINDS = 4096,
	TAKT_THROUGHPUT_MAX_NAME = 64,
	TAKT_THROUGHPUT_MAX_BYTES = 64 * 1024 * 1024,
};

struct takt_throughput_kind {
	char name[TAKT_THROUGHPUT_MAX_NAME]; /* "ResNet-18 (batch size 16)" */
	uint32_t gpus;
	/* Millionths of a step a second by model; 0 = does not run there. */
	int64_t together[TAKT_THROUGHPUT_MAX_MODELS];
	int64_t apart[TAKT_THROUGHPUT_MAX_MODELS];
};

struct takt_throughputs {
	char models[TAKT_THROUGHPUT_MAX_MODELS][TAKT_THROUGHPUT_MAX_NAME]; /* sorted by name */
	size_t model_count;
	TAKT_VEC(struct takt_throughput_kind) kinds; /* sorted by name, then accelerators */
	char hash[TAKT_SHA256_TEXT];		     /* of the (uncompressed) file */
};

/* Reads all of `lines`, which stays the caller's. *ret is overwritten; untouched on failure. */
int takt_throughputs_read(struct takt_lines *lines, struct takt_throughputs *ret,
			  struct takt_err *err);
void takt_throughputs_fini(struct takt_throughputs *table);

#endif
