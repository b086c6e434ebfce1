/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up codes, and decoding NVLink 5. */
#include <string.h>

#include "base/compiler.h"
#include "rules/xid_impl.h"

const struct takt_xid *takt_xid_find(uint32_t code)
{
	for (size_t i = 0; i < takt_xid_count; i++)
		if (takt_xid_table[i].code == code)
			return &takt_xid_table[i];
	return NULL;
}

/* Whether the row's unit, one name or two with a slash between, is the one that the line names. */
static bool is_unit(const struct takt_nvlink5 *row, const char *unit)
{
	size_t len = strlen(unit);

	for (const char *name = row->unit; name; name = strchr(name, '/')) {
		name += *name == '/';
		if (strncmp(name, unit, len) == 0 && (name[len] == '\0' || name[len] == '/'))
			return true;
	}
	return false;
}

static bool fits(const struct takt_nvlink5 *row, uint32_t xid, uint32_t info)
{
	return row->xid == xid &&
	       ((info & row->mask1) == row->value1 || (info & row->mask2) == row->value2);
}

/* How well the row fits: its status equals, or, where the status is a set of bits, holds its bit;
 * the named unit before any other; the graver before the lesser. 0 = not at all. */
static uint32_t score(const struct takt_nvlink5 *row, const char *unit, uint32_t status)
{
	bool equal = row->status == status;
	bool holds = row->xid < 149 && row->status && (status & row->status) == row->status;

	if (!equal && !holds)
		return 0;
	return 1u + row->level + (is_unit(row, unit) ? 32 : 0) + (equal ? 16 : 0);
}

const struct takt_nvlink5 *takt_nvlink5_decode(uint32_t xid, const char *unit, uint32_t info,
					       uint32_t status)
{
	const struct takt_nvlink5 *best = NULL;
	uint32_t best_score = 0;

	for (size_t i = 0; i < takt_nvlink5_count; i++) {
		const struct takt_nvlink5 *row = &takt_nvlink5_table[i];
		uint32_t now = fits(row, xid, info) ? score(row, unit, status) : 0;

		if (now > best_score) {
			best = row;
			best_score = now;
		}
	}
	return best;
}

bool takt_recovery_finding(uint32_t action, enum takt_finding_kind *ret)
{
	static const enum takt_finding_kind kinds[] = {
		TAKT_FINDING_GPU_LOST, /* 0: none */
		TAKT_FINDING_RECOVERY_RESET,  TAKT_FINDING_RECOVERY_REBOOT,
		TAKT_FINDING_RECOVERY_P2P,    TAKT_FINDING_RECOVERY_DRAIN,
		TAKT_FINDING_RECOVERY_P2P,   /* 5: the IMEX domain */
		TAKT_FINDING_RECOVERY_RESET, /* 6: of the bus */
		TAKT_FINDING_RECOVERY_REBOOT,
	};

	if (action == 0)
		return false;
	/* A word of a later driver: it asks for something. */
	*ret = action < TAKT_ARRAY_LEN(kinds) ? kinds[action] : TAKT_FINDING_RECOVERY_REBOOT;
	return true;
}
