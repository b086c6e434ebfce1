/* SPDX-License-Identifier: Apache-2.0 */
/* Which device nodes a job may open: its own GPUs', and those that every program may. */
#ifndef TAKT_LAUNCH_DEVICE_RULES_H
#define TAKT_LAUNCH_DEVICE_RULES_H

#include "launch/device_filter.h"
#include "launch/job_limits.h"

/*
 * Appends to *ret the numbers of
 *   - null, zero, full, random, urandom, tty, ptmx and pseudo-terminals, as systemd's "closed";
 *   - fuse, net/tun and everything in infiniband/, which give access to no GPU;
 *   - with GPUs: nvidiactl, nvidia-modeset, nvidia-uvm, nvidia-uvm-tools;
 *   - the GPUs, and the capabilities of MIG instances, that `limits` names.
 * `dev` is an open directory, /dev but for tests; nodes that are not there yet have the numbers
 * that the driver always gives them, or none. Only names of the driver are looked up: a number that
 * stands for something else cannot be asked for.
 */
int takt_device_rules_add(int dev, const struct takt_job_limits *limits, takt_device_rules *ret,
			  struct takt_err *err);

#endif
