/* SPDX-License-Identifier: Apache-2.0 */
/* Job descriptions from strangers: what is accepted passes the check and survives a round trip. */
#include "codec/jobspec.h"
#include "fuzz_input.h"

static void check_round_trip(const struct takt_jobspec *spec)
{
	struct takt_str text = TAKT_STR(TAKT_SPEC_MAX_BYTES), again = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	struct takt_jobspec back;
	char command[80];

	takt_jobspec_init(&back);
	fuzz_expect(takt_jobspec_check(spec, NULL) == 0 && spec->name[0] != '\0');
	takt_jobspec_command(spec, command, sizeof(command));
	fuzz_expect(strlen(command) < sizeof(command));
	fuzz_expect(takt_jobspec_to_json(spec, true, &text) == 0);
	fuzz_expect(takt_jobspec_from_json(text.s, text.len, &back, NULL) == 0);
	fuzz_expect(takt_jobspec_to_json(&back, true, &again) == 0);
	fuzz_expect(strcmp(text.s, again.s) == 0);
	takt_jobspec_fini(&back);
	takt_str_fini(&text);
	takt_str_fini(&again);
}

/* The last job of an array, with the values of its grid in their places. */
static void check_element(const struct takt_jobspec *spec)
{
	struct takt_jobspec element;

	takt_jobspec_init(&element);
	fuzz_expect(spec->array_last - spec->array_first < TAKT_SPEC_MAX_ARRAY);
	if (takt_jobspec_element(spec, 1, spec->array_last, &element, NULL) == 0)
		fuzz_expect(!element.has_array && takt_jobspec_check(&element, NULL) == 0);
	takt_jobspec_fini(&element);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	if (takt_jobspec_from_json((const char *)data, size, &spec, NULL) == 0) {
		check_round_trip(&spec);
		if (spec.has_array)
			check_element(&spec);
	}
	takt_jobspec_fini(&spec);
	return 0;
}
