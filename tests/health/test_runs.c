/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor makes of the runs that takt has kept: a GPU that is slower every time, what else
 * explains unlike times, and nothing where it is chance or the job's own affair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "health/doctor.h"

static struct takt_doctor_facts facts;
static struct takt_doctor_report report;

static int make_machine(void **state)
{
	facts = (struct takt_doctor_facts){.gpu_count = 2};
	for (uint32_t i = 0; i < 2; i++) {
		facts.gpu[i].facts.has = TAKT_FACT_NAME;
		strcpy(facts.gpu[i].facts.name, "NVIDIA A100");
	}
	return 0;
}

static int release(void **state)
{
	takt_doctor_report_fini(&report);
	return 0;
}

static void ran(uint64_t thing, uint64_t gpus, uint32_t seconds, uint32_t sm_mhz,
		uint32_t util_permille)
{
	struct takt_doctor_run *run = &facts.run[facts.run_count++];

	*run = (struct takt_doctor_run){.thing = thing,
					.gpus = gpus,
					.ran_ms = seconds * 1000ull,
					.sm_mhz = sm_mhz,
					.util_permille = util_permille};
	snprintf(run->name, sizeof(run->name), "thing%u", (unsigned)thing);
}

/* The only thing that is said; NULL = nothing. */
static const struct takt_doctor_finding *said(void)
{
	takt_doctor_report_fini(&report);
	report = (struct takt_doctor_report){.findings = TAKT_VEC_INIT(100)};
	takt_doctor_check_runs(&facts, &report);
	assert_true(report.findings.len <= 1);
	return report.findings.len ? report.findings.at : NULL;
}

static void says(enum takt_doctor_verdict verdict, uint64_t gpus, const char *words)
{
	const struct takt_doctor_finding *finding = said();

	assert_non_null(finding);
	assert_int_equal(finding->verdict, verdict);
	assert_int_equal(finding->gpus, gpus);
	if (!strstr(finding->text, words))
		fail_msg("'%s' in: %s", words, finding->text);
}

static void a_gpu_that_is_slower_every_time(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		ran(7, 1, 100 + i, 1400, 900);
		ran(7, 2, 120 + i, 1400, 900);
	}
	says(TAKT_DOCTOR_WARNING, 2, "all 4 runs of 'thing7' with it");
	assert_non_null(strstr(report.findings.at[0].text, "by 19 %"));
	assert_int_equal(report.findings.at[0].action, TAKT_DO_SLOW_GPU);
	strcpy(facts.gpu[1].facts.name, "NVIDIA L4"); /* another kind of board may be */
	says(TAKT_DOCTOR_INFO, 0, "do not explain it");
}

static void one_quick_run_there_clears_a_gpu(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		ran(7, 1, 100 + i, 1400, 900);
		ran(7, 2, 104 + i, 1400, 900);
	}
	says(TAKT_DOCTOR_PASS, 0, "took alike"); /* by less than is said */
	for (uint32_t i = 0; i < facts.run_count; i++)
		facts.run[i].ran_ms *= facts.run[i].gpus == 2 ? 2 : 1;
	says(TAKT_DOCTOR_WARNING, 2, "with it");
	ran(7, 2, 99, 1400, 900);
	says(TAKT_DOCTOR_INFO, 0, "do not explain it");
}

static void what_else_explains_unlike_times(void **state)
{
	for (uint32_t i = 0; i < 8; i++)
		ran(7, 3, 100 + 10 * i, 1400, 900);
	says(TAKT_DOCTOR_INFO, 0, "do not explain it");
	for (uint32_t i = 4; i < 8; i++)
		facts.run[i].util_permille = 600;
	says(TAKT_DOCTOR_INFO, 0, "in the slow half the GPUs were busy for 60 %");
	for (uint32_t i = 4; i < 8; i++)
		facts.run[i].sm_mhz = 1000;
	says(TAKT_DOCTOR_INFO, 0, "the slow half ran at 1000 MHz, the quick one at 1400");
	facts.run[2].sm_mhz = facts.run[2].util_permille = 0; /* of which it is not known */
	says(TAKT_DOCTOR_INFO, 0, "do not explain it");
}

static void too_few_too_short_and_other_things(void **state)
{
	for (uint32_t i = 0; i < 5; i++)
		ran(7, 1, 100 + 30 * i, 1400, 900);
	assert_null(said());
	for (uint32_t i = 0; i < 8; i++) /* another thing each */
		ran(10 + i, 1, 100 + 30 * i, 1400, 900);
	assert_null(said());
	facts.run_count = 0;
	for (uint32_t i = 0; i < 8; i++)
		ran(7, 1, 10 + i, 1400, 900);
	assert_null(said());
	facts.run_count = 0;
	for (uint32_t i = 0; i < 8; i++)
		ran(7, 1, 0, 0, 0);
	assert_null(said());
}

static void a_stray_run_is_no_spread(void **state)
{
	for (uint32_t i = 0; i < 7; i++)
		ran(7, 1, 100, 1400, 900);
	ran(7, 1, 300, 1400, 900);
	for (uint32_t i = 0; i < 6; i++)
		ran(8, 2, 200, 1400, 900);
	says(TAKT_DOCTOR_PASS, 0, "of 2 kinds");
}

static void as_many_as_there_is_room_for(void **state)
{
	for (uint32_t i = 0; i < TAKT_DOCTOR_MAX_RUNS; i++)
		ran(7, 1 + i % 2, 200 - i % 3, 1400, 900);
	says(TAKT_DOCTOR_PASS, 0, "of 1 kind");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_machine, release)
	const struct CMUnitTest tests[] = {
		CASE(a_gpu_that_is_slower_every_time), CASE(one_quick_run_there_clears_a_gpu),
		CASE(what_else_explains_unlike_times), CASE(too_few_too_short_and_other_things),
		CASE(a_stray_run_is_no_spread),	       CASE(as_many_as_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
