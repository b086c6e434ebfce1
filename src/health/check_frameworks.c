/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what is installed can run on this driver and these boards. A program needs a driver of
 * its CUDA version or newer; within a major version an older driver does as well, down to a floor,
 * as long as nothing is compiled at run time (PTX).
 * https://docs.nvidia.com/deploy/cuda-compatibility
 * https://docs.nvidia.com/cuda/cuda-toolkit-release-notes, table 3
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "health/doctor.h"

/* The oldest drivers of a major version, and those that brought a version along (newest first). */
static const struct {
	uint32_t cuda; /* 12040 */
	const char *driver;
} bundled[] = {
	{13010, "590.44.01"}, {13000, "580.65.06"}, {12090, "575.51.03"}, {12080, "570.26"},
	{12060, "560.28.03"}, {12050, "555.42.02"}, {12040, "550.54.14"}, {12030, "545.23.06"},
	{12020, "535.54.03"}, {12010, "530.30.02"}, {12000, "525.60.13"}, {11080, "520.61.05"},
	{11070, "515.43.04"}, {11060, "510.39.01"}, {11050, "495.29.05"}, {11040, "470.42.01"},
	{11030, "465.19.01"}, {11020, "460.27.03"}, {11010, "455.23"},	  {11000, "450.51.05"},
};
static const struct {
	uint32_t major;
	const char *driver;
} floors[] = {{13, "580"}, {12, "525.60.13"}, {11, "450.80.02"}};

/* "12.4" or "12.4.1" as 12040; 0 = no version. */
static uint32_t parse_cuda(const char *text)
{
	uint32_t major = 0, minor = 0;

	return sscanf(text, "%" SCNu32 ".%" SCNu32, &major, &minor) == 2 && major < 100 &&
			       minor < 100
		       ? major * 1000 + minor * 10
		       : 0;
}

/* By number, part for part. */
static int compare_versions(const char *a, const char *b)
{
	for (;;) {
		unsigned x = 0, y = 0;
		int n = 0, m = 0;

		if (sscanf(a, "%u%n", &x, &n) != 1)
			x = 0;
		if (sscanf(b, "%u%n", &y, &m) != 1)
			y = 0;
		if (x != y)
			return x < y ? -1 : 1;
		if (n == 0 && m == 0)
			return 0;
		a += n + (a[n] == '.');
		b += m + (b[m] == '.');
	}
}

static const char *driver_for(uint32_t cuda)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(bundled); i++)
		if (bundled[i].cuda == cuda)
			return bundled[i].driver;
	return NULL;
}

static bool above_floor(uint32_t cuda, const char *driver)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(floors); i++)
		if (floors[i].major == cuda / 1000)
			return compare_versions(driver, floors[i].driver) >= 0;
	return false;
}

/* GPUs that programs of this CUDA version have no code for: 13 left out what is older than Turing
 * (7.5), Blackwell (10 and 12) came with 12.8. Release notes of both. */
static uint64_t boards_without_code(const struct takt_doctor_facts *facts, uint32_t cuda)
{
	uint64_t mask = 0;

	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_facts *f = &facts->gpu[i].facts;
		uint32_t arch = f->compute_major * 10 + f->compute_minor;

		if (f->has & TAKT_FACT_COMPUTE_CAP &&
		    ((cuda >= 13000 && arch < 75) || (cuda < 12080 && arch >= 100)))
			mask |= 1ull << i;
	}
	return mask;
}

static void judge_driver(const struct takt_doctor_facts *facts, const struct takt_doctor_package *p,
			 uint32_t cuda, struct takt_doctor_report *report)
{
	uint32_t can = (uint32_t)facts->info.cuda_version;
	const char *driver = facts->info.driver_version, *needed = driver_for(cuda);
	char fix[TAKT_DOCTOR_FIX];

	snprintf(fix, sizeof(fix), "driver %s or newer; or %s for CUDA %u.%u or older",
		 needed ? needed : "of its CUDA version", p->name, can / 1000, can % 1000 / 10);
	if (cuda <= can)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%s %s (CUDA %s) runs on this driver", p->name, p->version,
				p->cuda);
	else if (above_floor(cuda, driver))
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%s %s (CUDA %s) runs on this driver (CUDA %u.%u) but for what it "
				"compiles at run time",
				p->name, p->version, p->cuda, can / 1000, can % 1000 / 10);
	else
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_PACKAGE, fix,
				"%s %s is for CUDA %s, driver %s can run up to %u.%u (%s)", p->name,
				p->version, p->cuda, driver, can / 1000, can % 1000 / 10, p->path);
}

static void judge_package(const struct takt_doctor_facts *facts,
			  const struct takt_doctor_package *p, struct takt_doctor_report *report)
{
	uint32_t cuda = parse_cuda(p->cuda);
	uint64_t without;

	if (p->cuda[0] == '\0') {
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%s %s is built without CUDA and leaves the GPUs alone (%s)",
				p->name, p->version, p->path);
		return;
	}
	if (cuda == 0 || facts->info.cuda_version == 0) {
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"%s %s: %s (%s)", p->name, p->version,
				cuda ? "the driver does not say its CUDA version"
				     : "its CUDA version is not known",
				p->path);
		return;
	}
	judge_driver(facts, p, cuda, report);
	without = strcmp(p->name, "cuda") == 0 ? 0 : boards_without_code(facts, cuda);
	if (without)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, without, TAKT_DO_PACKAGE,
				cuda >= 13000 ? "a build for CUDA 12"
					      : "a build for CUDA 12.8 or newer",
				"%s %s (CUDA %s) has no code for these boards (%s)", p->name,
				p->version, p->cuda, p->path);
}

void takt_doctor_check_frameworks(const struct takt_doctor_facts *facts,
				  struct takt_doctor_report *report)
{
	if (facts->asked != TAKT_ASKED_YES || facts->gpu_count == 0)
		return;
	for (uint32_t i = 0; i < facts->package_count; i++)
		judge_package(facts, &facts->package[i], report);
}
