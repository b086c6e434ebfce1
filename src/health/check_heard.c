/* SPDX-License-Identifier: Apache-2.0 */
/* What takt serve has found over time (docs/doctor.md), where it runs: one look cannot see it. */
#include "health/doctor.h"

void takt_doctor_check_heard(const struct takt_doctor_facts *facts,
			     struct takt_doctor_report *report)
{
	uint64_t found = 0;

	if (!(facts->has & TAKT_DOCTOR_HEARD))
		return;
	for (uint32_t i = 0; i < facts->heard_count; i++) {
		const struct takt_doctor_heard *heard = &facts->heard[i];

		found |= 1ull << heard->gpu;
		takt_doctor_say(report, (enum takt_doctor_verdict)heard->verdict,
				1ull << heard->gpu, (enum takt_doctor_act)heard->action, NULL, "%s",
				heard->text);
	}
	for (uint32_t i = 0; i < facts->gpu_count; i++)
		if (facts->gpu[i].watched && !(found >> i & 1))
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"takt serve has found nothing%s",
					facts->deaf[0] ? "; it does not hear XIDs" : "");
}
