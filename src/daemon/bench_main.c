/* SPDX-License-Identifier: Apache-2.0 */
/* takt-bench: measures GPUs for takt tune and takt bench gpu. Wiring only. */
#include <stdio.h>
#include <string.h>

#include "daemon/bench.h"

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "meter") == 0)
		return takt_bench_meter_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "gpu") == 0)
		return takt_bench_gpu_main(argc - 1, argv + 1);
	(void)fputs("Usage: takt-bench meter [--nvml PATH] [UUID...] | gpu [option...]\n"
		    "It is started by takt tune and takt bench gpu.\n",
		    stderr);
	return 64;
}
