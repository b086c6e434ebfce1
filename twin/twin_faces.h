/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver shows besides its library: device nodes, /proc/driver/nvidia, the boards on the
 * PCI bus. Some clients look there first and take a machine without for one that has no GPU.
 *
 *   /dev/nvidia<N>, /dev/nvidiactl     character devices 195:<N>, 195:255. No driver is behind
 *                                      them: to open one fails with ENXIO. The true numbers, as
 *                                      programs fence GPUs off by them.
 *   /proc/driver/nvidia/version        says TWIN (twin_guard.h)
 *   /proc/driver/nvidia/gpus/<ID>/information
 *   /proc/driver/nvidia-caps/mig-minors, /proc/driver/nvidia/capabilities/..., /dev/nvidia-caps/...
 *                                      of boards that can be cut: numbers of devices by which
 *                                      access to instances is given, with a major that no driver
 *                                      of the machine has (a driver takes any that is free)
 *   /proc/modules                      a line `nvidia`, where the kernel has the file at all
 *   /sys/bus/pci/devices/<ID>/...      what identifies a board, and where it is
 *   /sys/bus/pci/drivers/nvidia
 *
 * They are the boards as they were created, and the instances as they are at that moment: what
 * comes later does not change them.
 */
#ifndef TAKT_TWIN_FACES_H
#define TAKT_TWIN_FACES_H

#include "base/err.h"
#include "twin_shared.h"

/* Gives this process, and those it starts, the faces of a machine, in a mount namespace of its
 * own. Needs root. After a failure the process should end: it may have some of them. */
int twin_faces_put_on(struct twin_map *map, struct takt_err *err);

/* The board as it is found on the PCI bus; the folders /sys/bus/pci/{devices,drivers/nvidia} are
 * ready. `id` is its folder's name. */
int twin_faces_put_on_bus(const struct twin_machine *machine, const struct twin_gpu_desc *gpu,
			  const char *id, struct takt_err *err);

/* The capabilities of instances; the folders /dev and /proc/driver are ready. */
int twin_faces_put_instances(struct twin_map *map, struct takt_err *err);

#endif
