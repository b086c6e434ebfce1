/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel knows of a PCI device: the fallback where the driver's library does not say.
 * `root` is "/sys", or a copy of it in tests. Ids may be in either spelling (pci_id.h).
 */
#ifndef TAKT_DEVICE_SYSFS_PCI_H
#define TAKT_DEVICE_SYSFS_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False when the kernel does not know either; outputs untouched then. */
bool takt_sysfs_numa(const char *root, const char *pci_bus_id, int32_t *ret);
bool takt_sysfs_cpus(const char *root, const char *pci_bus_id, uint64_t *ret, size_t words);

/* Whether the NVIDIA driver has GPUs there and the kernel has suspended all of them: whoever asks
 * the driver for anything wakes them. */
bool takt_sysfs_all_asleep(const char *root);

enum takt_sleep {
	TAKT_SLEEP_AWAKE, /* or waking, or nobody says */
	TAKT_SLEEP_FALLING,
	TAKT_SLEEP_ASLEEP,
};

/* Whether the kernel has suspended the device, or is about to. One small file is read, which wakes
 * nothing. */
enum takt_sleep takt_sysfs_sleep(const char *root, const char *pci_bus_id);

/* Whether there is a GPU of NVIDIA's that its driver has, or that no driver has (yet). */
bool takt_sysfs_has_gpu(const char *root);

/* Whether it is a bridge of a kind that is no PCI bridge: what an NVSwitch calls itself. */
bool takt_sysfs_is_switch(const char *root, const char *pci_bus_id);

/* How two devices reach each other, from their places in the device tree: enum takt_link's
 * numbering as in device.h, 0 when unknown. Never "same board", which the tree does not tell. */
uint8_t takt_sysfs_link(const char *root, const char *a, const char *b);

#endif
