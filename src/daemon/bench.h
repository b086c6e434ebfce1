/* SPDX-License-Identifier: Apache-2.0 */
/* The two works of takt-bench, a process of its own so that a driver's crash is nobody else's. */
#ifndef TAKT_DAEMON_BENCH_H
#define TAKT_DAEMON_BENCH_H

/*
 * takt-bench meter [--nvml PATH] UUID...: says "ready SIMULATED(0|1) NAME" and "deaf WHY" or
 * "hears" on standard output, then "event TEXT" when something goes wrong, and for each line on
 * standard input "mark AT_NS ENERGY_MJ|- POWER_SUM_MW POWER_COUNT SM_SUM_MHZ SM_COUNT" or "lost
 * WHY". Ends with its input. The exit status.
 */
int takt_bench_meter_main(int argc, char **argv);

/*
 * takt-bench gpu: what `takt bench gpu` does; its options are in cli/verb_bench.c, and --nvml,
 * --cuda, --cublas PATH for tests. Prints text, or with --json an object. The exit status.
 */
int takt_bench_gpu_main(int argc, char **argv);

#endif
