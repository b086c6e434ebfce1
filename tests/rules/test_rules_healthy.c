/* SPDX-License-Identifier: Apache-2.0 */
/* No false alarm: captures of healthy boards, and healthy boards of many kinds under many kinds of
 * work for a day each. With a third argument a table of them is written there
 * (bench/health_rules.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "rules_rig.h"
#include "tsv.h"

static const char *folder;
static FILE *table; /* NULL = nobody wants one */

static void note(const char *board, const char *work, uint32_t seconds,
		 const struct takt_rules_gpu *gpu)
{
	if (table)
		fprintf(table, "%s\t%s\t%u\t%llu\n", board, work, seconds,
			(unsigned long long)gpu->changes);
}

static void must_be_healthy(const struct takt_rules_gpu *gpu, const char *board, const char *work)
{
	struct takt_rules_verdict verdict;
	char text[200];

	if (!gpu->changes)
		return;
	takt_rules_verdict(gpu, &verdict);
	for (uint32_t i = 0; i < verdict.count; i++) {
		takt_rules_text(&verdict.finding[i], true, text, sizeof(text));
		print_error("%s, %s: %s\n", board, work, text);
	}
	fail_msg("%s, %s: found ill at %llu s for %s", board, work,
		 (unsigned long long)(gpu->history[0].at.ns / TAKT_NS_PER_S),
		 takt_finding_name(gpu->history[0].why));
}

/* The cell's number, and its bit into *has, unless the board does not say. */
static int64_t cell(const char *text, uint32_t bits, uint32_t *has)
{
	if (strcmp(text, "-") == 0) {
		*has &= ~bits;
		return 0;
	}
	return strtoll(text, NULL, 0);
}

static void read_capture(const char **row, struct takt_rules_board *board,
			 struct takt_rules_sample *sample)
{
	uint32_t *b = &board->has, *s = &sample->has;

	board->temp_max_c = (int32_t)cell(row[2], TAKT_BOARD_TEMP_MAX, b);
	board->temp_target_c = (int32_t)cell(row[3], TAKT_BOARD_TEMP_TARGET, b);
	board->memory_temp_max_c = (int32_t)cell(row[6], TAKT_BOARD_MEMORY_TEMP_MAX, b);
	board->sm_max_mhz = (uint32_t)cell(row[10], TAKT_BOARD_SM_MAX, b);
	board->pcie_gen_max = (uint32_t)cell(row[13], TAKT_BOARD_PCIE, b);
	board->pcie_width_max = (uint32_t)cell(row[15], TAKT_BOARD_PCIE, b);
	board->power_default_mw = (uint32_t)cell(row[18], TAKT_BOARD_POWER_DEFAULT, b) * 1000;
	sample->temp_c = (int32_t)cell(row[1], TAKT_SEEN_TEMP, s);
	sample->margin_c = (int32_t)cell(row[4], TAKT_SEEN_MARGIN, s);
	sample->memory_temp_c = (int32_t)cell(row[5], TAKT_SEEN_MEMORY_TEMP, s);
	sample->util_pct = (uint32_t)cell(row[7], TAKT_SEEN_UTIL, s);
	sample->pstate = (uint32_t)cell(row[8], TAKT_SEEN_PSTATE, s);
	sample->sm_mhz = (uint32_t)cell(row[9], TAKT_SEEN_SM_CLOCK, s);
	sample->reasons = (uint64_t)cell(row[11], TAKT_SEEN_REASONS, s);
	sample->pcie_gen = (uint32_t)cell(row[12], TAKT_SEEN_PCIE, s);
	sample->pcie_width = (uint32_t)cell(row[14], TAKT_SEEN_PCIE, s);
	sample->pcie_replays = (uint64_t)cell(row[16], TAKT_SEEN_PCIE_REPLAYS, s);
	sample->power_limit_mw = (uint32_t)cell(row[17], TAKT_SEEN_POWER_LIMIT, s) * 1000;
	sample->ecc_corrected = (uint64_t)cell(row[19], TAKT_SEEN_ECC, s);
	sample->ecc_uncorrected = (uint64_t)cell(row[20], TAKT_SEEN_ECC, s);
	sample->row_pending = cell(row[21], TAKT_SEEN_ROWS, s);
	sample->row_failed = cell(row[22], TAKT_SEEN_ROWS, s);
	sample->pages_retired = (uint32_t)cell(row[23], TAKT_SEEN_PAGES, s);
	sample->recovery = (uint32_t)cell(row[24], TAKT_SEEN_RECOVERY, s);
}

static void captures_are_healthy(void **state)
{
	struct tsv captures;
	char path[1024];

	snprintf(path, sizeof(path), "%s/captures.tsv", folder);
	tsv_read(&captures, path);
	assert_true(captures.count >= 20);
	for (size_t i = 0; i < captures.count; i++) {
		struct rig rig;

		rig_begin(&rig);
		rig.board.has = 0x7f & ~(uint32_t)TAKT_BOARD_NVLINKS;
		rig.sample = (struct takt_rules_sample){.has = (TAKT_SEEN_SLOW - 1) &
							       ~(uint32_t)TAKT_SEEN_CEILING};
		read_capture(captures.cell[i], &rig.board, &rig.sample);
		takt_rules_init(&rig.gpu, &rig.board);
		rig_steps(&rig, 1800);
		note(captures.cell[i][0], "as captured", 1800, &rig.gpu);
		must_be_healthy(&rig.gpu, captures.cell[i][0], "as captured");
	}
	tsv_free(&captures);
}

/* A board's curves, from rest to full work: what captures and data sheets say, temperatures those
 * of a well cooled machine. */
static const struct kind {
	const char *name;
	int32_t temp_max_c; /* 0: it tells the margin, which is 87 C minus its temperature */
	int32_t temp_target_c;
	int32_t rest_c, full_c;
	uint32_t sm_max_mhz, full_mhz, capped_mhz;
	uint32_t rest_gen, gen, width, width_max, links;
	uint32_t rest_pstate, full_pstate;
	bool counts_slow, counts_ecc;
} kinds[] = {
	{"T4", 85, 0, 33, 78, 1590, 1350, 700, 3, 3, 8, 16, 0, 0, 0, true, true},
	{"V100", 83, 0, 35, 74, 1530, 1500, 1300, 3, 3, 16, 16, 6, 0, 0, false, true},
	{"A100", 85, 0, 33, 68, 1410, 1410, 1100, 4, 4, 16, 16, 12, 0, 0, true, true},
	{"H100", 0, 0, 29, 70, 1980, 1980, 1400, 5, 5, 16, 16, 18, 0, 0, true, true},
	{"L40S", 0, 0, 29, 72, 2520, 2400, 1700, 4, 4, 8, 16, 0, 0, 0, true, true},
	{"RTX 2080 SUPER", 89, 84, 35, 84, 2100, 1850, 1600, 1, 3, 16, 16, 0, 8, 2, false, false},
	{"RTX 4080 SUPER", 90, 84, 43, 83, 3165, 2800, 2500, 1, 4, 16, 16, 0, 8, 2, true, false},
};

struct day {
	const struct kind *kind;
	struct rig rig;
	struct takt_rng rng;
	double heat; /* 0 = at rest, 1 = full work for long */
};

static uint32_t chance(struct day *day, uint32_t below)
{
	return (uint32_t)takt_rng_below(&day->rng, below);
}

static void begin_day(struct day *day, const struct kind *kind, uint64_t seed)
{
	struct takt_rules_board *board = &day->rig.board;
	struct takt_rules_sample *sample = &day->rig.sample;

	*day = (struct day){.kind = kind};
	takt_rng_init(&day->rng, seed);
	rig_begin(&day->rig);
	board->has &= ~(uint32_t)(TAKT_BOARD_MEMORY_TEMP_MAX |
				  (kind->temp_max_c ? 0 : TAKT_BOARD_TEMP_MAX));
	board->has |= kind->temp_target_c ? TAKT_BOARD_TEMP_TARGET : 0;
	board->temp_max_c = kind->temp_max_c;
	board->temp_target_c = kind->temp_target_c;
	board->sm_max_mhz = kind->sm_max_mhz;
	board->pcie_gen_max = kind->gen;
	board->pcie_width_max = kind->width_max;
	sample->has |= kind->temp_max_c ? 0 : TAKT_SEEN_MARGIN;
	sample->has &= ~(kind->counts_slow ? 0 : 0x1fu * TAKT_SEEN_SLOW);
	sample->has &= ~(kind->counts_ecc ? 0 : (uint32_t)(TAKT_SEEN_ECC | TAKT_SEEN_ROWS));
	sample->pcie_width = kind->width;
	sample->nvlinks_up = kind->links;
	takt_rules_init(&day->rig.gpu, board);
}

/* What a healthy board's counters do of themselves. */
static void count_on(struct day *day)
{
	struct takt_rules_sample *sample = &day->rig.sample;

	sample->pcie_replays += chance(day, 300) == 0;
	sample->ecc_corrected += chance(day, 7200) == 0;
	sample->nvlink_crc += chance(day, 20) == 0;
}

static void work(struct day *day, uint32_t util_pct, bool capped)
{
	const struct kind *kind = day->kind;
	struct takt_rules_sample *sample = &day->rig.sample;
	bool rests = util_pct == 0;

	day->heat += ((double)util_pct / 100 - day->heat) / 120;
	sample->temp_c = kind->rest_c + (int32_t)((kind->full_c - kind->rest_c) * day->heat) +
			 (int32_t)chance(day, 2);
	if (kind->temp_target_c && sample->temp_c > kind->temp_target_c)
		sample->temp_c = kind->temp_target_c;
	sample->margin_c = 87 - sample->temp_c;
	sample->util_pct = util_pct;
	sample->pstate = rests ? kind->rest_pstate : kind->full_pstate;
	sample->pcie_gen = rests ? kind->rest_gen : kind->gen;
	sample->sm_mhz =
		rests ? 210 : (capped ? kind->capped_mhz : kind->full_mhz) - chance(day, 60);
	sample->reasons = rests ? 0x1 : capped ? 0x4 : 0;
	sample->slow_ns[TAKT_SLOW_POWER_CAP] += capped ? TAKT_NS_PER_S : 0;
	count_on(day);
}

static void rests(struct day *day)
{
	work(day, 0, false);
}
static void trains(struct day *day)
{
	work(day, 97 + chance(day, 4), false);
}
static void trains_at_its_limit(struct day *day)
{
	work(day, 100, true);
}
static void serves(struct day *day)
{
	work(day, chance(day, 3) ? chance(day, 101) : 0, chance(day, 2));
}
static void comes_and_goes(struct day *day)
{
	bool works = day->rig.second / 900 % 3 != 0;

	work(day, works ? 99 : 0, works && day->rig.second % 7 < 3);
	day->rig.silent = chance(day, 2000) == 0;
}
/* Programs with faults of their own, that are started again. */
static void crashes(struct day *day)
{
	work(day, 95, false);
	if (day->rig.second % 7200 != 3600)
		return;
	rig_nvml(&day->rig, 31);
	rig_line(&day->rig, "NVRM: Xid (PCI:0000:18:00): 31, pid=77, name=train.py, Ch 0000000b");
	rig_line(&day->rig, "NVRM: Xid (PCI:0000:18:00): 45, pid=77, name=train.py, Ch 0000000c");
	rig_line(&day->rig, "NVRM: Xid (PCI:0000:18:00): 43, pid=77, name=train.py, Ch 0000000d");
}

static const struct {
	const char *name;
	void (*second)(struct day *day);
} works[] = {
	{"at rest", rests},
	{"training", trains},
	{"held down by its power control", trains_at_its_limit},
	{"serving", serves},
	{"jobs come and go", comes_and_goes},
	{"programs crash", crashes},
};

static void a_day_of_everything_is_healthy(void **state)
{
	static struct day day;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
			begin_day(&day, &kinds[k], 1000 * k + w);
			for (uint32_t second = 0; second < 86400; second++) {
				works[w].second(&day);
				rig_step(&day.rig);
			}
			note(kinds[k].name, works[w].name, 86400, &day.rig.gpu);
			must_be_healthy(&day.rig.gpu, kinds[k].name, works[w].name);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures_are_healthy),
		cmocka_unit_test(a_day_of_everything_is_healthy),
	};
	int failed;

	if (argc < 3)
		return 1;
	folder = argv[1];
	table = argc > 3 ? fopen(argv[3], "w") : NULL;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (table && fclose(table) != 0)
		return 1;
	return failed;
}
