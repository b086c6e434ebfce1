/* SPDX-License-Identifier: Apache-2.0 */
/* Every fault of the table gives its row, alone and beside every other fault that can be on the
 * same board. With a third argument a table of both is written there (bench/health_rules.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/xid.h"
#include "rules_rig.h"
#include "tsv.h"

static struct tsv faults, effects;
static struct rig_fault acts[TSV_ROWS];
static uint32_t failures; /* told one by one, so that one run shows all */
static struct tally {
	uint32_t tried, as_expected;
} alone[TSV_ROWS], pairs[TSV_ROWS];

/* Columns of faults.tsv. */
enum {
	NAME,
	FINDING,
	LEVEL,
	STATE,
	ACTION
};

static const char *first_action(const struct takt_rules_verdict *verdict)
{
	return takt_remedy_name(verdict->action_count ? verdict->action[0] : TAKT_REMEDY_NONE);
}

static const struct takt_rules_finding *finding_named(const struct takt_rules_verdict *verdict,
						      const char *name)
{
	for (uint32_t i = 0; i < verdict->count; i++)
		if (strcmp(takt_finding_name(verdict->finding[i].kind), name) == 0)
			return &verdict->finding[i];
	return NULL;
}

/* Which case is tried, and what came of it, if something is not as it should be. */
static void should(bool is, const char *what, const char *one, const char *other,
		   const struct takt_rules_verdict *verdict)
{
	char text[200];

	if (is)
		return;
	fprintf(stderr, "%s + %s: %s, %s, first action %s\n", one, other, what,
		takt_health_name(verdict->health), first_action(verdict));
	for (uint32_t i = 0; i < verdict->count; i++) {
		takt_rules_text(&verdict->finding[i], true, text, sizeof(text));
		fprintf(stderr, "  %s %s cause %d: %s\n",
			takt_finding_name(verdict->finding[i].kind),
			takt_level_name(verdict->finding[i].level), verdict->finding[i].cause,
			text);
	}
	failures++;
}

static bool is_healthy(const char *const *row)
{
	return strcmp(row[FINDING], "-") == 0;
}

static void gives_row(const struct takt_rules_verdict *verdict, const char *const *row,
		      const char *action, const char *other)
{
	if (is_healthy(row)) {
		should(verdict->count == 0, "nothing to be found", row[NAME], other, verdict);
		return;
	}
	if (verdict->count == 0) {
		should(false, row[FINDING], row[NAME], other, verdict);
		return;
	}
	should(strcmp(takt_finding_name(verdict->finding[0].kind), row[FINDING]) == 0, row[FINDING],
	       row[NAME], other, verdict);
	should(strcmp(takt_level_name(verdict->finding[0].level), row[LEVEL]) == 0, row[LEVEL],
	       row[NAME], other, verdict);
	should(strcmp(takt_health_name(verdict->health), row[STATE]) == 0, row[STATE], row[NAME],
	       other, verdict);
	should(strcmp(first_action(verdict), action) == 0, action, row[NAME], other, verdict);
}

static void count(struct tally *tally, uint32_t failures_before)
{
	tally->tried++;
	tally->as_expected += failures == failures_before;
}

static void every_fault_alone(void **state)
{
	size_t own = 0;

	for (size_t i = 0; i < faults.count; i++) {
		struct takt_rules_verdict verdict;
		uint32_t before = failures;
		struct rig rig;

		rig_run(&rig, &acts[i], NULL);
		takt_rules_verdict(&rig.gpu, &verdict);
		gives_row(&verdict, faults.cell[i], faults.cell[i][ACTION], "nothing");
		count(&alone[i], before);
		own += acts[i].act != NULL;
	}
	assert_int_equal(own, rig_fault_count());
	assert_int_equal(failures, 0);
}

static bool is_effect(const char *cause, const char *effect, bool *ret_any)
{
	for (size_t i = 0; i < effects.count; i++) {
		*ret_any = strcmp(effects.cell[i][1], "*") == 0;
		if (strcmp(effects.cell[i][0], cause) == 0 &&
		    (*ret_any || strcmp(effects.cell[i][1], effect) == 0))
			return true;
	}
	return false;
}

static void effect_follows(size_t cause, size_t effect)
{
	const char *const *row = faults.cell[cause], *const *other = faults.cell[effect];
	const struct takt_rules_finding *follows;
	struct takt_rules_verdict verdict;
	struct rig rig;

	rig_run(&rig, &acts[effect], &acts[cause]);
	takt_rules_verdict(&rig.gpu, &verdict);
	gives_row(&verdict, row, row[ACTION], other[NAME]);
	follows = finding_named(&verdict, other[FINDING]);
	should(!follows || follows == &verdict.finding[0] || follows->cause >= 0,
	       "the other to follow", row[NAME], other[NAME], &verdict);
}

static uint32_t grade(const char *const *row)
{
	static const char *const levels[] = {"-", "info", "warning", "critical"};

	for (uint32_t i = 0; i < 4; i++)
		if (strcmp(levels[i], row[LEVEL]) == 0)
			return i;
	fail_msg("no level is called '%s'", row[LEVEL]);
	return 0;
}

static unsigned kind_of(const char *const *row)
{
	for (unsigned kind = 0; kind < TAKT_FINDING_KINDS; kind++)
		if (strcmp(takt_finding_name(kind), row[FINDING]) == 0)
			return kind;
	return TAKT_FINDING_KINDS;
}

static uint32_t xid_order(const char *const *row)
{
	const struct takt_xid *xid = takt_xid_find((uint32_t)atoi(row[NAME] + strlen("xid-")));

	return xid ? xid->order : 5;
}

static bool is_xid(const char *const *row)
{
	return strcmp(row[FINDING], "xid") == 0;
}

/* Whether a is named before b; they act in this order. */
static bool comes_first(const char *const *a, const char *const *b)
{
	if (grade(a) != grade(b))
		return grade(a) > grade(b);
	if (is_xid(a) && is_xid(b))
		return xid_order(a) <= xid_order(b);
	return kind_of(a) <= kind_of(b);
}

/* How to reset is for the driver to say. */
static const char *action_beside(const char *const *row, const char *const *other)
{
	bool resets = strcmp(row[ACTION], "reset-gpu") == 0 || strcmp(row[ACTION], "reboot") == 0;
	bool asks = strncmp(other[FINDING], "recovery-", 9) == 0;

	return resets && asks && strcmp(row[FINDING], "gpu-lost") ? other[ACTION] : row[ACTION];
}

static void both_stand(size_t a, size_t b)
{
	const char *const *one = faults.cell[a], *const *other = faults.cell[b];
	bool swap = !comes_first(one, other);
	const char *const *first = swap ? other : one, *const *second = swap ? one : other;
	const struct takt_rules_finding *found;
	struct takt_rules_verdict verdict;
	const char *action;
	struct rig rig;

	rig_run(&rig, &acts[a], &acts[b]);
	takt_rules_verdict(&rig.gpu, &verdict);
	action = action_beside(first, second);
	if (strcmp(action, "none") == 0 && !(is_xid(first) && is_xid(second)))
		action = action_beside(second, first);
	gives_row(&verdict, first, action, second[NAME]);
	if (is_healthy(second) || (is_xid(first) && is_xid(second)))
		return;
	found = finding_named(&verdict, second[FINDING]);
	should(found && found->cause < 0, "both to stand", first[NAME], second[NAME], &verdict);
}

/* False when the two cannot be on one board. */
static bool try_pair(size_t a, size_t b, uint32_t *effects_tried)
{
	const char *one = acts[a].name, *other = acts[b].name;
	bool can = !(acts[a].reads & acts[b].reads), any;

	if (is_effect(one, other, &any) && (can || !any))
		(*effects_tried)++, effect_follows(a, b);
	else if (is_effect(other, one, &any) && (can || !any))
		(*effects_tried)++, effect_follows(b, a);
	else if (can)
		both_stand(a, b);
	else
		return false;
	return true;
}

static void every_pair(void **state)
{
	uint32_t effects_tried = 0, tried = 0;

	for (size_t a = 0; a < faults.count; a++)
		for (size_t b = a + 1; b < faults.count; b++) {
			uint32_t before = failures;

			if (!try_pair(a, b, &effects_tried))
				continue;
			tried++;
			count(&pairs[a], before);
			count(&pairs[b], before);
		}
	print_message("# %u pairs, %u of cause and effect\n", tried, effects_tried);
	assert_int_equal(failures, 0);
	assert_true(tried > 1700 && effects_tried > 200);
}

static int write_table(const char *path)
{
	FILE *file = fopen(path, "w");

	for (size_t i = 0; file && i < faults.count; i++)
		fprintf(file, "%s\t%u\t%u\t%u\t%u\n", faults.cell[i][NAME], alone[i].tried,
			alone[i].as_expected, pairs[i].tried, pairs[i].as_expected);
	return file ? fclose(file) : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_alone),
		cmocka_unit_test(every_pair),
	};
	char path[1024];
	int failed;

	if (argc < 3)
		return 1;
	snprintf(path, sizeof(path), "%s/faults.tsv", argv[1]);
	tsv_read(&faults, path);
	snprintf(path, sizeof(path), "%s/effects.tsv", argv[1]);
	tsv_read(&effects, path);
	for (size_t i = 0; i < faults.count; i++)
		acts[i] = rig_fault_named(faults.cell[i][0]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return failed ? failed : argc > 3 ? write_table(argv[3]) : 0;
}
