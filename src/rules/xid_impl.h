/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that tools/gen_xids.py makes. */
#ifndef TAKT_RULES_XID_IMPL_H
#define TAKT_RULES_XID_IMPL_H

#include "rules/xid.h"

extern const struct takt_xid takt_xid_table[]; /* ascending codes */
extern const size_t takt_xid_count;
extern const struct takt_nvlink5 takt_nvlink5_table[];
extern const size_t takt_nvlink5_count;

#endif
