/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of NCCL's inspector, which a job's user may have written: whatever they say, what is
 * taken of them can stand on a page, and none of it twice.
 */
#include "telemetry/nccl_read.h"

#include <math.h>

#include "fuzz_input.h"

static void check(const struct takt_nccl_row *row)
{
	fuzz_expect(memchr(row->operation, '\0', TAKT_NCCL_NAME) && row->operation[0]);
	fuzz_expect(memchr(row->comm, '\0', TAKT_NCCL_NAME) && row->comm[0]);
	fuzz_expect(row->ranks > 0 && row->nodes > 0);
	fuzz_expect(isfinite(row->bus_bytes_s) && row->bus_bytes_s > 0);
	fuzz_expect(isfinite(row->seconds) && row->seconds > 0);
}

static int alike(const struct takt_nccl_row *a, const struct takt_nccl_row *b)
{
	return a->ranks == b->ranks && a->nodes == b->nodes && strcmp(a->comm, b->comm) == 0 &&
	       strcmp(a->operation, b->operation) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_nccl nccl;

	takt_nccl_parse((const char *)data, size, &nccl);
	fuzz_expect(nccl.count <= TAKT_NCCL_MAX_ROWS);
	fuzz_expect(nccl.left_out == 0 || nccl.count == TAKT_NCCL_MAX_ROWS);
	for (uint32_t i = 0; i < nccl.count; i++) {
		check(&nccl.row[i]);
		for (uint32_t k = 0; k < i; k++)
			fuzz_expect(!alike(&nccl.row[i], &nccl.row[k]));
	}
	return 0;
}
