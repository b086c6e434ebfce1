/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of an attempt. The checksum would keep a fuzzer out, so the input is also tried with a
 * right one put behind it. What is accepted is written again and read as the same.
 */
#include "fuzz_input.h"

#include "launch/attempt_record.h"
#include "launch/attempt_spec.h"
#include "launch/attempt_status.h"

enum {
	LIMIT = 1 << 20
};

static void try_spec(const char *text, size_t len)
{
	struct takt_str once = TAKT_STR(LIMIT), twice = TAKT_STR(LIMIT);
	struct takt_attempt_spec spec, again;

	if (takt_attempt_spec_parse(text, len, &spec) < 0)
		return;
	fuzz_expect(takt_attempt_spec_check(&spec, NULL) == 0);
	fuzz_expect(takt_attempt_spec_format(&spec, &once) == 0);
	fuzz_expect(takt_attempt_spec_parse(once.s, once.len, &again) == 0);
	fuzz_expect(takt_attempt_spec_format(&again, &twice) == 0);
	fuzz_expect(strcmp(once.s, twice.s) == 0);
	takt_attempt_spec_fini(&spec);
	takt_attempt_spec_fini(&again);
	takt_str_fini(&once);
	takt_str_fini(&twice);
}

static void try_exit(const char *text, size_t len)
{
	struct takt_attempt_status status = {0}, again = {0};
	struct takt_str once = TAKT_STR(LIMIT);

	if (takt_attempt_exit_parse(text, len, &status) < 0)
		return;
	fuzz_expect(takt_attempt_exit_format(&status, &once) == 0);
	fuzz_expect(takt_attempt_exit_parse(once.s, once.len, &again) == 0);
	fuzz_expect(status.exit_kind == again.exit_kind && status.exit_code == again.exit_code &&
		    status.run_ns == again.run_ns && status.ended_at.ns == again.ended_at.ns &&
		    strcmp(status.message, again.message) == 0);
	takt_str_fini(&once);
}

static void try_cut(const char *text, size_t len)
{
	struct takt_str once = TAKT_STR(LIMIT);
	struct takt_output_cut cut, again;

	if (takt_attempt_cut_parse(text, len, &cut) < 0)
		return;
	fuzz_expect(cut.limit && (!cut.to || cut.to > cut.from));
	fuzz_expect(takt_attempt_cut_format(&cut, &once) == 0);
	fuzz_expect(takt_attempt_cut_parse(once.s, once.len, &again) == 0);
	fuzz_expect(memcmp(&cut, &again, sizeof(cut)) == 0);
	takt_str_fini(&once);
}

/* What is taken for ours is the record that it was made of. */
static void try_mark(const char *text, size_t len)
{
	struct takt_str once = TAKT_STR(LIMIT), twice = TAKT_STR(LIMIT);

	if (takt_str_addn(&once, text, len) == 0 && takt_str_addn(&twice, text, len) == 0 &&
	    takt_record_mark_take(once.s, &once.len, "7.1.", false) == 0 && once.len < len) {
		fuzz_expect(takt_record_mark_take(once.s, &once.len, "", false) == 0);
		fuzz_expect(memcmp(once.s, text, once.len - 14) == 0);
	} else if (twice.len >= 14 && takt_record_mark_take(twice.s, &twice.len, "", false) == 0 &&
		   takt_record_mark_put(&twice, "7.1.x") == 0) {
		fuzz_expect(takt_record_mark_take(twice.s, &twice.len, "7.2.", false) < 0);
		fuzz_expect(takt_record_mark_take(twice.s, &twice.len, "7.1.x", true) == 0);
	}
	takt_str_fini(&once);
	takt_str_fini(&twice);
}

static void try_all(const char *text, size_t len)
{
	struct takt_attempt_status status = {0};

	try_spec(text, len);
	try_exit(text, len);
	try_cut(text, len);
	try_mark(text, len);
	(void)takt_attempt_shim_parse(text, len, &status);
	(void)takt_attempt_started_parse(text, len, &status);
	fuzz_expect(status.shim.pid >= 0 && status.job.pid >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_str sealed = TAKT_STR(LIMIT);

	try_all((const char *)data, size);
	if (takt_str_addn(&sealed, data, size) == 0 && takt_record_end(&sealed) == 0)
		try_all(sealed.s, sealed.len);
	takt_str_fini(&sealed);
	return 0;
}
