/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's table of checks, and how findings become a report. */
#include "health/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "device/pci_id.h"

enum {
	MAX_FINDINGS = 4096,
	FULL_PERCENT = 90,
};

const char *const takt_doctor_verdicts[TAKT_DOCTOR_VERDICTS] = {"PASS", "UNKNOWN", "INFO",
								"WARNING", "CRITICAL"};

const struct takt_doctor_check takt_doctor_checks[] = {
#define X(id, name, theme, asks) {name, theme, asks, takt_doctor_check_##id},
	TAKT_DOCTOR_CHECKS(X)
#undef X
		{NULL, NULL, NULL, NULL},
};

static bool answers(const struct takt_doctor_gpu *gpu)
{
	return gpu->facts.has && !gpu->last.lost && !gpu->silent;
}

uint32_t takt_doctor_next(const struct takt_doctor_facts *facts, uint32_t i)
{
	while (i < facts->gpu_count && !answers(&facts->gpu[i]))
		i++;
	return i;
}

bool takt_doctor_is(const struct takt_doctor_pci *pci, const char *pci_bus_id)
{
	return takt_pci_id_compare(pci->id, pci_bus_id) == 0;
}

static struct takt_doctor_finding *same(struct takt_doctor_report *report,
					const struct takt_doctor_finding *finding)
{
	TAKT_VEC_EACH (f, &report->findings)
		if (f->check == finding->check && f->verdict == finding->verdict &&
		    f->action == finding->action && (f->gpus == 0) == (finding->gpus == 0) &&
		    strcmp(f->text, finding->text) == 0 && strcmp(f->fix, finding->fix) == 0)
			return f;
	return NULL;
}

void takt_doctor_say(struct takt_doctor_report *report, enum takt_doctor_verdict verdict,
		     uint64_t gpus, enum takt_doctor_act action, const char *fix, const char *fmt,
		     ...)
{
	struct takt_doctor_finding finding = {
		.check = report->check, .verdict = verdict, .gpus = gpus, .action = action};
	struct takt_doctor_finding *known;
	va_list args;
	int rc = 0;

	va_start(args, fmt);
	vsnprintf(finding.text, sizeof(finding.text), fmt, args);
	va_end(args);
	takt_strcpy(finding.fix, sizeof(finding.fix), fix ? fix : "");
	known = same(report, &finding);
	if (known)
		known->gpus |= gpus;
	else
		rc = takt_vec_push(&report->findings, finding);
	if (rc < 0)
		report->rc = rc;
	if (verdict > report->worst)
		report->worst = verdict;
}

/* Samples without a busy GPU tell nothing of clocks and links. */
static void see_work(struct takt_doctor_gpu *gpu, const struct takt_gpu_reading *r)
{
	if (!(r->has & TAKT_HAS_GPU_UTIL) || r->gpu_util_pct == 0)
		return;
	gpu->busy++;
	gpu->full += r->gpu_util_pct >= FULL_PERCENT;
	if (r->has & TAKT_HAS_SM_CLOCK && r->sm_mhz > gpu->sm_max_seen_mhz)
		gpu->sm_max_seen_mhz = r->sm_mhz;
	if (r->has & TAKT_HAS_THROTTLE) {
		gpu->throttle_any |= r->throttle;
		gpu->throttle_all =
			gpu->throttled_known ? gpu->throttle_all & r->throttle : r->throttle;
		gpu->throttled_known++;
	}
	if (!(r->has & TAKT_HAS_PSTATE))
		return;
	if (gpu->busy == 1 || r->pstate < gpu->pstate_best)
		gpu->pstate_best = r->pstate;
	if (r->pstate > 2)
		return;
	gpu->loaded++;
	if (r->has & TAKT_HAS_PCIE && r->pcie_gen > gpu->gen_seen)
		gpu->gen_seen = r->pcie_gen;
}

void takt_doctor_see(struct takt_doctor_gpu *gpu, const struct takt_gpu_reading *r)
{
	gpu->last = *r;
	gpu->samples++;
	see_work(gpu, r);
	if (r->has & TAKT_HAS_PCIE && r->pcie_width > gpu->width_seen)
		gpu->width_seen = r->pcie_width;
	if (r->has & TAKT_HAS_PROCS && r->proc_count == 0 && r->procs_dropped == 0)
		gpu->no_procs++;
	if (r->has & TAKT_HAS_MEMORY &&
	    (gpu->samples == 1 || r->mem_used_bytes < gpu->least_held_bytes))
		gpu->least_held_bytes = r->mem_used_bytes;
}

void takt_doctor_judge(const struct takt_doctor_facts *facts, struct takt_doctor_report *ret)
{
	*ret = (struct takt_doctor_report){.looked = facts->asked == TAKT_ASKED_YES};
	ret->findings.max = MAX_FINDINGS;
	ret->todo.max = MAX_FINDINGS;
	for (const struct takt_doctor_check *check = takt_doctor_checks; check->name; check++) {
		ret->check = check;
		check->judge(facts, ret);
	}
	takt_doctor_plan(ret);
}

void takt_doctor_report_fini(struct takt_doctor_report *report)
{
	takt_vec_fini(&report->findings);
	takt_vec_fini(&report->todo);
}

int takt_doctor_exit(const struct takt_doctor_report *report)
{
	if (report->worst >= TAKT_DOCTOR_CRITICAL)
		return 2;
	if (report->worst >= TAKT_DOCTOR_WARNING)
		return 1;
	return report->looked ? 0 : 3;
}
