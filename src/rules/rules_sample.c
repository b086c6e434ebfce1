/* SPDX-License-Identifier: Apache-2.0 */
/* The rules over samples. The limits are those of docs/doctor.md, each with its source there. */
#include "base/compiler.h"
#include "rules/rules_impl.h"
#include "rules/xid.h"

#define MINUTE_NS     (60 * TAKT_NS_PER_S)
#define TEN_MIN_NS    (600 * TAKT_NS_PER_S)
#define SAMPLED_NS    (10 * TAKT_NS_PER_S) /* what one sampled reason stands for at most */
#define REASON_CAP    UINT64_C(0x4)
#define REASON_LOCKED UINT64_C(0x2)
#define REASONS_SLOW  UINT64_C(0x1fe) /* all but idle */

enum {
	BUSY_PCT = 90,		/* all of it is wanted */
	UNDER_LOAD_PCT = 10,	/* enough for the link to be at its full speed */
	HIGH_PSTATE = 2,	/* P0 to P2: not saving power */
	MARGIN_C = 5,		/* left to the highest working temperature */
	MARGIN_OVER_C = 8,	/* good again */
	OVER_MARGIN_C = 3,	/* no longer too hot */
	MEMORY_COOLER_C = 5,	/* below its limit: good again */
	REPLAYS_A_MIN = 8,	/* more than these */
	CRC_A_S = 100,		/* or more */
	CORRECTED_A_MIN = 10,	/* or more */
	PAGES_MANY = 15,	/* or more */
	PAGES_FULL = 63,	/* or more */
	LOW_CLOCK_PCT = 70,	/* of what it may have: less is low */
	LOWERED_LIMIT_PCT = 95, /* of the board's own power limit */
};

static bool has(const struct takt_rules_sample *sample, uint32_t bits)
{
	return (sample->has & bits) == bits;
}

static void see(struct takt_rules_gpu *gpu, enum takt_finding_kind kind, bool bad, int64_t value,
		int64_t limit)
{
	takt_standing_see(gpu, kind, bad ? TAKT_LOOK_BAD : TAKT_LOOK_GOOD, value, limit);
}

/* Bad from one value on, good again only up to another. */
static void see_between(struct takt_rules_gpu *gpu, enum takt_finding_kind kind, int64_t value,
			int64_t bad_from, int64_t good_to)
{
	takt_standing_see(gpu, kind,
			  value >= bad_from  ? TAKT_LOOK_BAD
			  : value <= good_to ? TAKT_LOOK_GOOD
					     : TAKT_LOOK_BETWEEN,
			  value, bad_from);
}

/* The link runs at its full speed and width only for work. */
static bool is_under_load(const struct takt_rules_sample *sample)
{
	return has(sample, TAKT_SEEN_UTIL) && sample->util_pct >= UNDER_LOAD_PCT &&
	       (!has(sample, TAKT_SEEN_PSTATE) || sample->pstate <= HIGH_PSTATE);
}

static bool is_busy(const struct takt_rules_sample *sample)
{
	return is_under_load(sample) && sample->util_pct >= BUSY_PCT;
}

/* Time that the GPU was slow for this reason since the last sample: counted by the driver, or,
 * where it counts none, as long as the reason is seen. */
static uint64_t slow_time(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample,
			  enum takt_rules_slow slow, uint64_t elapsed_ns)
{
	static const uint64_t reasons[TAKT_SLOW_COUNT] = {REASON_CAP, 0x10, 0x20, 0x40, 0x80};
	uint64_t ns = 0;

	if (has(sample, (uint32_t)TAKT_SEEN_SLOW << slow))
		ns = takt_counter_rise(&gpu->slow[slow], sample->slow_ns[slow]);
	else if (has(sample, TAKT_SEEN_REASONS) && (sample->reasons & reasons[slow]))
		ns = elapsed_ns < SAMPLED_NS ? elapsed_ns : SAMPLED_NS;
	return ns < elapsed_ns ? ns : elapsed_ns;
}

static void check_slow(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample,
		       uint64_t elapsed_ns)
{
	/* Of ten minutes, in milliseconds: found from, over at. */
	static const struct {
		enum takt_finding_kind kind;
		int64_t from_ms, to_ms;
	} rules[TAKT_SLOW_COUNT] = {
		[TAKT_SLOW_POWER_CAP] = {TAKT_FINDING_POWER_CAP, 300000, 150000},
		[TAKT_SLOW_SYNC_BOOST] = {TAKT_FINDING_SYNC_BOOST, 60000, 30000},
		[TAKT_SLOW_SW_THERMAL] = {TAKT_FINDING_SW_THERMAL, 60000, 30000},
		[TAKT_SLOW_HW_THERMAL] = {TAKT_FINDING_HW_THERMAL, 6000, 3000},
		[TAKT_SLOW_POWER_BRAKE] = {TAKT_FINDING_POWER_BRAKE, 6000, 3000},
	};
	bool lowered = has(sample, TAKT_SEEN_POWER_LIMIT) &&
		       (gpu->board.has & TAKT_BOARD_POWER_DEFAULT) &&
		       (uint64_t)sample->power_limit_mw * 100 <
			       (uint64_t)gpu->board.power_default_mw * LOWERED_LIMIT_PCT;

	struct takt_mono awake = takt_rules_awake(gpu);

	for (unsigned slow = 0; slow < TAKT_SLOW_COUNT; slow++) {
		struct takt_window *window = &gpu->slow_window[slow];
		enum takt_finding_kind kind = rules[slow].kind;
		int64_t ms;

		takt_window_add(window, TEN_MIN_NS, awake,
				slow_time(gpu, sample, slow, elapsed_ns));
		ms = (int64_t)(takt_window_sum(window, TEN_MIN_NS, awake) / TAKT_NS_PER_MS);
		if (slow == TAKT_SLOW_POWER_CAP) {
			see_between(gpu, TAKT_FINDING_CLOCK_LIMIT, lowered ? ms : 0,
				    rules[slow].from_ms, rules[slow].to_ms);
			ms = lowered ? 0 : ms;
		}
		see_between(gpu, kind, ms, rules[slow].from_ms, rules[slow].to_ms);
	}
}

/* Degrees to the highest working temperature. */
static bool margin(const struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample,
		   int32_t *ret)
{
	if (has(sample, TAKT_SEEN_MARGIN))
		*ret = sample->margin_c;
	else if (has(sample, TAKT_SEEN_TEMP) && (gpu->board.has & TAKT_BOARD_TEMP_MAX))
		*ret = gpu->board.temp_max_c - sample->temp_c;
	else
		return false;
	return true;
}

static void check_heat(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	bool at_target = has(sample, TAKT_SEEN_TEMP) && (gpu->board.has & TAKT_BOARD_TEMP_TARGET) &&
			 sample->temp_c <= gpu->board.temp_target_c;
	int32_t left;

	if (margin(gpu, sample, &left)) {
		see_between(gpu, TAKT_FINDING_TEMP_OVER, -left, 0, -OVER_MARGIN_C);
		see_between(gpu, TAKT_FINDING_TEMP_MARGIN, at_target ? -MARGIN_OVER_C : -left,
			    -MARGIN_C, -MARGIN_OVER_C);
	}
	if (has(sample, TAKT_SEEN_MEMORY_TEMP) && (gpu->board.has & TAKT_BOARD_MEMORY_TEMP_MAX))
		see_between(gpu, TAKT_FINDING_MEMORY_TEMP_OVER, sample->memory_temp_c,
			    gpu->board.memory_temp_max_c,
			    gpu->board.memory_temp_max_c - MEMORY_COOLER_C);
}

static void check_link(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	uint32_t width = sample->pcie_width;

	if (!has(sample, TAKT_SEEN_PCIE) || !is_under_load(sample))
		return;
	gpu->widest = width > gpu->widest ? width : gpu->widest;
	see(gpu, TAKT_FINDING_PCIE_WIDTH, width < gpu->widest, width, gpu->widest);
	if (!(gpu->board.has & TAKT_BOARD_PCIE))
		return;
	see(gpu, TAKT_FINDING_PCIE_NARROW,
	    width == gpu->widest && width < gpu->board.pcie_width_max, width,
	    gpu->board.pcie_width_max);
	see(gpu, TAKT_FINDING_PCIE_GEN, sample->pcie_gen < gpu->board.pcie_gen_max,
	    sample->pcie_gen, gpu->board.pcie_gen_max);
}

/* A counter of errors: bad from so many in the window on, good at half of it. */
static void check_rate(struct takt_rules_gpu *gpu, enum takt_finding_kind kind,
		       struct takt_counter *counter, struct takt_window *window, uint64_t value,
		       uint64_t length_ns, int64_t bad_from)
{
	takt_window_add(window, length_ns, gpu->now, takt_counter_rise(counter, value));
	see_between(gpu, kind, (int64_t)takt_window_sum(window, length_ns, gpu->now), bad_from,
		    bad_from / 2);
}

static void check_nvlinks(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	uint32_t want = gpu->most_nvlinks;

	if (has(sample, TAKT_SEEN_NVLINK_ERRORS))
		check_rate(gpu, TAKT_FINDING_NVLINK_ERRORS, &gpu->link_errors,
			   &gpu->link_error_window, sample->nvlink_errors, TEN_MIN_NS, 1);
	if (has(sample, TAKT_SEEN_NVLINK_CRC))
		check_rate(gpu, TAKT_FINDING_NVLINK_CRC, &gpu->link_crc, &gpu->link_crc_window,
			   sample->nvlink_crc, MINUTE_NS, CRC_A_S * 60);
	if (!has(sample, TAKT_SEEN_NVLINKS))
		return;
	if (gpu->board.has & TAKT_BOARD_NVLINKS)
		want = gpu->board.nvlinks > want ? gpu->board.nvlinks : want;
	want = sample->nvlinks_up > want ? sample->nvlinks_up : want;
	gpu->most_nvlinks =
		sample->nvlinks_up > gpu->most_nvlinks ? sample->nvlinks_up : gpu->most_nvlinks;
	see(gpu, TAKT_FINDING_NVLINK_INACTIVE, sample->nvlinks_up < want, sample->nvlinks_up, want);
}

static void check_memory(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	if (has(sample, TAKT_SEEN_ECC)) {
		see(gpu, TAKT_FINDING_ECC_UNCORRECTED, sample->ecc_uncorrected > 0,
		    (int64_t)sample->ecc_uncorrected, 1);
		check_rate(gpu, TAKT_FINDING_ECC_CORRECTED_RATE, &gpu->corrected,
			   &gpu->corrected_window, sample->ecc_corrected, MINUTE_NS,
			   CORRECTED_A_MIN);
	}
	if (has(sample, TAKT_SEEN_ROWS)) {
		see(gpu, TAKT_FINDING_ROW_FAILED, sample->row_failed, 1, 1);
		see(gpu, TAKT_FINDING_ROW_PENDING, sample->row_pending, 1, 1);
	}
	if (has(sample, TAKT_SEEN_PAGES)) {
		see(gpu, TAKT_FINDING_PAGES_FULL, sample->pages_retired >= PAGES_FULL,
		    sample->pages_retired, PAGES_FULL);
		see(gpu, TAKT_FINDING_PAGES_MANY, sample->pages_retired >= PAGES_MANY,
		    sample->pages_retired, PAGES_MANY);
		see(gpu, TAKT_FINDING_PAGE_PENDING, sample->page_pending, 1, 1);
	}
	if (has(sample, TAKT_SEEN_SRAM))
		see(gpu, TAKT_FINDING_SRAM_THRESHOLD, sample->sram_threshold, 1, 1);
}

/* Busy, and its clock far below what it may have: with a reason that is another finding, without
 * one it is this. What takt has set is what it may have. */
static void check_clock(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	uint32_t may = gpu->board.sm_max_mhz;
	bool ours = has(sample, TAKT_SEEN_CEILING), low;

	if (!has(sample, TAKT_SEEN_SM_CLOCK | TAKT_SEEN_REASONS) || !is_busy(sample) ||
	    !(gpu->board.has & TAKT_BOARD_SM_MAX))
		return;
	if (ours && sample->ceiling_mhz < may)
		may = sample->ceiling_mhz;
	low = (uint64_t)sample->sm_mhz * 100 < (uint64_t)may * LOW_CLOCK_PCT;
	see(gpu, TAKT_FINDING_CLOCK_LOW, low && !(sample->reasons & REASONS_SLOW), sample->sm_mhz,
	    may);
	see(gpu, TAKT_FINDING_CLOCK_LOCKED, low && !ours && (sample->reasons & REASON_LOCKED),
	    sample->sm_mhz, may);
}

static void check_recovery(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	static const enum takt_finding_kind kinds[] = {
		TAKT_FINDING_RECOVERY_REBOOT, TAKT_FINDING_RECOVERY_DRAIN,
		TAKT_FINDING_RECOVERY_RESET, TAKT_FINDING_RECOVERY_P2P};
	enum takt_finding_kind asked;
	bool asks;

	gpu->has_recovery = has(sample, TAKT_SEEN_RECOVERY);
	if (!gpu->has_recovery)
		return;
	asks = takt_recovery_finding(sample->recovery, &asked);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++)
		see(gpu, kinds[i], asks && asked == kinds[i], sample->recovery, 0);
	takt_incidents_expire(&gpu->incidents, gpu->now, sample->recovery == 0);
}

void takt_rules_check(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample,
		      uint64_t elapsed_ns)
{
	check_slow(gpu, sample, elapsed_ns);
	check_heat(gpu, sample);
	check_link(gpu, sample);
	if (has(sample, TAKT_SEEN_PCIE_REPLAYS))
		check_rate(gpu, TAKT_FINDING_PCIE_REPLAY, &gpu->replays, &gpu->replay_window,
			   sample->pcie_replays, MINUTE_NS, REPLAYS_A_MIN + 1);
	check_nvlinks(gpu, sample);
	check_memory(gpu, sample);
	check_clock(gpu, sample);
	check_recovery(gpu, sample);
}
