/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What strangers ask to be changed of a job, and several jobs at once: one byte chooses which, the
 * rest is its JSON. A change that is accepted is written and read again as the same; each of
 * several jobs passes the check.
 */
#include "codec/jobspec.h"
#include "fuzz_input.h"

static void read_change(const char *json, size_t size)
{
	struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES), again = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	struct takt_job_change change, back;

	if (takt_job_change_from_json(json, size, &change, NULL) < 0)
		return;
	fuzz_expect(takt_job_change_to_json(&change, &text) == 0);
	fuzz_expect(takt_job_change_from_json(text.s, text.len, &back, NULL) == 0);
	fuzz_expect(takt_job_change_to_json(&back, &again) == 0);
	fuzz_expect(strcmp(text.s, again.s) == 0);
	takt_str_fini(&text);
	takt_str_fini(&again);
}

static void read_several(const char *json, size_t size)
{
	struct takt_jobspecs specs = {0};

	if (takt_jobspecs_from_json(json, size, &specs, NULL) < 0)
		return;
	for (uint32_t i = 0; i < specs.count; i++)
		fuzz_expect(takt_jobspec_check(&specs.jobs[i], NULL) == 0 && specs.jobs[i].name[0]);
	takt_jobspecs_free(&specs);
}

static void read_env(const char *json, size_t size)
{
	struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	struct takt_jobspec spec, back;

	takt_jobspec_init(&spec);
	takt_jobspec_init(&back);
	if (takt_jobspec_env_from_json(json, size, &spec, NULL) == 0) {
		fuzz_expect(takt_jobspec_env_to_json(&spec, &text) == 0);
		fuzz_expect(takt_jobspec_env_from_json(text.s, text.len, &back, NULL) == 0);
	}
	takt_str_fini(&text);
	takt_jobspec_fini(&spec);
	takt_jobspec_fini(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *json = (const char *)data + 1;

	if (size == 0)
		return 0;
	if (data[0] == 'c')
		read_change(json, size - 1);
	else if (data[0] == 's')
		read_several(json, size - 1);
	else
		read_env(json, size - 1);
	return 0;
}
