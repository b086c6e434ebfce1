/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI bus ids in the spellings that drivers and kernels use: "00000000:07:00.0" and "0000:07:00.0",
 * either case. Compared by number, since as text the two spellings of one board differ.
 */
#ifndef TAKT_DEVICE_PCI_ID_H
#define TAKT_DEVICE_PCI_ID_H

#include <stdbool.h>
#include <stdint.h>

struct takt_pci_id {
	uint32_t domain;
	uint32_t bus, device, function;
};

/* False when the text is no bus id; *ret untouched then. */
bool takt_pci_id_parse(const char *text, struct takt_pci_id *ret);

/* By domain, bus, device, function; ids that do not parse come last, ordered as text. */
int takt_pci_id_compare(const char *a, const char *b);

#endif
