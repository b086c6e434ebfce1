/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's error codes mean, and what takt makes of them: data/health as C. */
#ifndef TAKT_RULES_XID_H
#define TAKT_RULES_XID_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/finding.h"

struct takt_xid {
	uint32_t code;
	enum takt_level level;
	enum takt_remedy action;
	uint32_t order; /* of several at one time the lowest is the cause */
	bool used;	/* false: in NVIDIA's list as a code that no current driver uses */
	const char *mnemonic;
	const char *text;
};

/* NULL for a code that is in no list. */
const struct takt_xid *takt_xid_find(uint32_t code);

/* One row of the decoding of XIDs 144 to 150. */
struct takt_nvlink5 {
	uint32_t xid;
	const char *unit;	/* "RLW_REMAP", or two names with a slash */
	uint32_t mask1, value1; /* over the first register, in one encoding */
	uint32_t mask2, value2; /* in the other */
	uint32_t status;	/* the second register */
	enum takt_level level;
	enum takt_remedy action;
	const char *further; /* NVIDIA's bucket for the investigation */
};

/* What the two registers of a line say; the unit's name, "" when not known, decides between the two
 * encodings where both would fit. NULL when no row fits. */
const struct takt_nvlink5 *takt_nvlink5_decode(uint32_t xid, const char *unit, uint32_t info,
					       uint32_t status);

/* The driver's own words for how to recover a GPU (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION), which XID
 * 154 logs too. Sets *ret when it asks for something; false for none. */
bool takt_recovery_finding(uint32_t action, enum takt_finding_kind *ret);

#endif
