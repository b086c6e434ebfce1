/* SPDX-License-Identifier: Apache-2.0 */
/* How two GPUs reach each other over PCIe, nearer is larger: the numbering of enum takt_link in
 * sched/sched.h, which device may not include. */
#ifndef TAKT_DEVICE_LINK_KIND_H
#define TAKT_DEVICE_LINK_KIND_H

enum link_kind {
	LINK_UNKNOWN,
	LINK_SYS,
	LINK_NODE,
	LINK_PHB,
	LINK_PXB,
	LINK_PIX,
	LINK_BOARD,
};

#endif
