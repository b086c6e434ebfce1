/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of expected verdicts speak of findings and actions that there are, each with a source;
 * every published code is known, with the action of its bucket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/finding.h"
#include "rules/xid.h"
#include "tsv.h"

static const char *folder, *data;

static void read_table(struct tsv *tsv, const char *where, const char *name)
{
	char path[1024];

	assert_in_range(snprintf(path, sizeof(path), "%s/%s", where, name), 1, sizeof(path) - 1);
	tsv_read(tsv, path);
}

static enum takt_finding_kind kind_named(const char *name)
{
	for (unsigned kind = 0; kind < TAKT_FINDING_KINDS; kind++)
		if (strcmp(takt_finding_name(kind), name) == 0)
			return kind;
	fail_msg("no finding is called '%s'", name);
	return TAKT_FINDING_KINDS;
}

static void is_action(const char *name)
{
	for (unsigned action = 0; action < TAKT_REMEDY_COUNT; action++)
		if (strcmp(takt_remedy_name(action), name) == 0)
			return;
	fail_msg("no action is called '%s'", name);
}

static void every_fault_has_a_verdict_and_a_source(void **state)
{
	bool seen[TAKT_FINDING_KINDS] = {0};
	struct tsv faults;

	read_table(&faults, folder, "faults.tsv");
	for (size_t i = 0; i < faults.count; i++) {
		const char **row = faults.cell[i];
		bool healthy = strcmp(row[1], "-") == 0;

		assert_int_equal(tsv_find(&faults, row[0]), i);
		assert_true(row[5][0]);
		is_action(row[4]);
		if (healthy) {
			assert_string_equal(row[2], "-");
			assert_string_equal(row[3], "healthy");
			assert_string_equal(row[4], "none");
			continue;
		}
		seen[kind_named(row[1])] = true;
	}
	for (unsigned kind = 0; kind < TAKT_FINDING_KINDS; kind++)
		if (!seen[kind])
			fail_msg("no fault leads to %s", takt_finding_name(kind));
	tsv_free(&faults);
}

static void pairs_are_of_known_faults(void **state)
{
	struct tsv faults, effects;

	read_table(&faults, folder, "faults.tsv");
	read_table(&effects, folder, "effects.tsv");
	for (size_t i = 0; i < effects.count; i++) {
		const char **row = effects.cell[i];

		assert_true(tsv_find(&faults, row[0]) >= 0);
		assert_true(strcmp(row[1], "*") == 0 || tsv_find(&faults, row[1]) >= 0);
		assert_true(row[2][0]);
	}
	tsv_free(&effects);
	tsv_free(&faults);
}

static void what_is_alike_says_what_would_tell(void **state)
{
	struct tsv alike;

	read_table(&alike, folder, "alike.tsv");
	assert_true(alike.count >= 10);
	for (size_t i = 0; i < alike.count; i++)
		for (size_t column = 0; column < 4; column++)
			assert_true(alike.cell[i][column][0]);
	tsv_free(&alike);
}

/* Restated here so that a slip in the generator shows: bucket -> action. */
static const char *action_of(const char *bucket)
{
	static const char *const known[][2] = {
		{"IGNORE", "none"},
		{"RESTART_APP", "restart-app"},
		{"RESET_GPU", "reset-gpu"},
		{"CONTACT_SUPPORT", "contact-support"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i][0], bucket) == 0)
			return known[i][1];
	return NULL;
}

static void every_published_code_is_known(void **state)
{
	struct tsv catalog, policy;

	read_table(&catalog, data, "xid_catalog.tsv");
	read_table(&policy, data, "xid_policy.tsv");
	assert_int_equal(catalog.count, 172);
	for (size_t i = 0; i < catalog.count; i++) {
		const char **row = catalog.cell[i], *action = action_of(row[3]);
		const struct takt_xid *xid = takt_xid_find((uint32_t)atoi(row[0]));
		int own = tsv_find(&policy, row[0]);

		assert_non_null(xid);
		assert_string_equal(xid->mnemonic, row[1]);
		if (own >= 0)
			action = policy.cell[own][2];
		if (action)
			assert_string_equal(takt_remedy_name(xid->action), action);
		assert_in_range(xid->order, 1, 9);
	}
	assert_null(takt_xid_find(0));
	assert_null(takt_xid_find(173));
	assert_false(takt_xid_find(9)->used);
	assert_true(takt_xid_find(79)->used);
	tsv_free(&policy);
	tsv_free(&catalog);
}

static void decodes(uint32_t xid, const char *unit, uint32_t info, uint32_t status,
		    const char *want_unit, enum takt_remedy action)
{
	const struct takt_nvlink5 *row = takt_nvlink5_decode(xid, unit, info, status);

	assert_non_null(row);
	assert_string_equal(row->unit, want_unit);
	assert_int_equal(row->action, action);
}

/* Registers of lines that real drivers wrote. */
static void nvlink5_is_decoded_in_both_encodings(void **state)
{
	decodes(149, "NETIR_LINK_EVT", 0x025001c6, 0, "NETIR_LINK_EVT/NETIR_LINK_DOWN",
		TAKT_REMEDY_RESET_GPU);
	decodes(149, "NETIR", 0x000fe406, 0, "NETIR/NETIR_INT", TAKT_REMEDY_RESET_GPU);
	decodes(145, "RLW_REMAP", 0x00000004, 0x40, "RLW_REMAP", TAKT_REMEDY_RESET_GPU);
	decodes(145, "RLW_RXPIPE", 0x0409a0c2, 0x8, "RLW_RXPIPE", TAKT_REMEDY_NONE);
	decodes(145, "", 0x0409a0c2, 0x8, "RLW_RXPIPE", TAKT_REMEDY_NONE);
	assert_null(takt_nvlink5_decode(145, "RLW_RXPIPE", 0x0409a0c2, 0x10));
	assert_null(takt_nvlink5_decode(74, "", 0, 0));
}

static void of_several_bits_the_gravest_counts(void **state)
{
	assert_int_equal(takt_nvlink5_decode(145, "RLW_REMAP", 4, 0x140)->action,
			 TAKT_REMEDY_RESET_GPU);
	assert_int_equal(takt_nvlink5_decode(145, "RLW_REMAP", 4, 0x300)->action, TAKT_REMEDY_NONE);
}

static void every_row_of_nvlink5_decodes_itself(void **state)
{
	struct tsv rules;
	uint32_t found = 0;

	read_table(&rules, data, "nvlink5_xid_rules.tsv");
	assert_int_equal(rules.count, 91);
	for (size_t i = 0; i < rules.count; i++) {
		uint32_t info = 0, status = (uint32_t)strtoul(rules.cell[i][4], NULL, 16);
		const struct takt_nvlink5 *row;

		for (const char *bit = rules.cell[i][2]; *bit; bit++)
			info = info << 1 | (*bit == '1');
		row = takt_nvlink5_decode((uint32_t)atoi(rules.cell[i][0]), rules.cell[i][1], info,
					  status);
		assert_non_null(row);
		assert_int_equal(row->status, status);
		found += strcmp(row->further, rules.cell[i][6]) == 0;
	}
	assert_int_equal(found, rules.count);
	tsv_free(&rules);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_has_a_verdict_and_a_source),
		cmocka_unit_test(pairs_are_of_known_faults),
		cmocka_unit_test(what_is_alike_says_what_would_tell),
		cmocka_unit_test(every_published_code_is_known),
		cmocka_unit_test(nvlink5_is_decoded_in_both_encodings),
		cmocka_unit_test(of_several_bits_the_gravest_counts),
		cmocka_unit_test(every_row_of_nvlink5_decodes_itself),
	};

	if (argc != 3)
		return 1;
	folder = argv[1];
	data = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
