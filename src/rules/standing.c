/* SPDX-License-Identifier: Apache-2.0 */
/* Hysteresis: what must look bad or good for how long, of the time in which it is looked at. */
#include "rules/rules_impl.h"

static bool has_lasted(struct takt_mono now, struct takt_mono since, uint32_t seconds)
{
	return takt_mono_elapsed_ns(now, since) >= seconds * TAKT_NS_PER_S;
}

void takt_standing_see(struct takt_rules_gpu *gpu, enum takt_finding_kind kind,
		       enum takt_rules_look look, int64_t value, int64_t limit)
{
	const struct takt_finding_rule *rule = takt_finding_rule(kind);
	struct takt_rules_standing *standing = &gpu->standing[kind];
	struct takt_mono awake = takt_rules_awake(gpu);

	if (look == TAKT_LOOK_BAD && !standing->is_bad)
		standing->bad_since = awake;
	if (look == TAKT_LOOK_GOOD && !standing->is_good)
		standing->good_since = awake;
	standing->is_bad = look == TAKT_LOOK_BAD;
	standing->is_good = look == TAKT_LOOK_GOOD;
	if (standing->is_bad)
		standing->evidence = (struct takt_evidence){gpu->now, value, limit};
	if (standing->is_bad && !standing->found &&
	    has_lasted(awake, standing->bad_since, rule->raise_s)) {
		standing->found = true;
		standing->found_at = gpu->now;
	}
	if (standing->is_good && has_lasted(awake, standing->good_since, rule->clear_s))
		standing->found = false;
}
