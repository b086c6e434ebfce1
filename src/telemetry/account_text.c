/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An account as text, so that it outlives the process that adds it up. A line of the whole, then
 * one of each GPU by its UUID, since their order may be another one next time:
 *
 *     takt-account 1 BOOT_ID WRITTEN_NS OPENED_NS AWAY_NS SHARED SHARE OWN_SEEN OWN_PEAK_BYTES
 *     UUID ENERGY_BEGUN ENERGY_RESET THROTTLE_SEEN MEMORY_SEEN, then what `numbers` names
 *
 * Times are those of the monotonic clock, which goes on as long as the boot does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "telemetry/accounts.h"

#define NUMBER(member) offsetof(struct takt_account_gpu, member)

static const size_t numbers[] = {
	NUMBER(energy_first_mj),   NUMBER(energy_last_mj),   NUMBER(energy_first_at.ns),
	NUMBER(energy_last_at.ns), NUMBER(last_at.ns),	     NUMBER(sm_sum),
	NUMBER(sm_samples),	   NUMBER(throttled_ns),     NUMBER(throttle_reasons),
	NUMBER(util_ns),	   NUMBER(busy_permille_ns), NUMBER(idle_ns),
	NUMBER(peak_memory_bytes),
};

static uint64_t *number_of(struct takt_account_gpu *gpu, size_t i)
{
	return (uint64_t *)((char *)gpu + numbers[i]);
}

static void gpu_to_text(struct takt_account_gpu gpu, const char *uuid, struct takt_str *ret)
{
	takt_str_addf(ret, "%s %d %d %d %d", uuid, gpu.energy_begun, gpu.energy_reset,
		      gpu.throttle_seen, gpu.memory_seen);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(numbers); i++)
		takt_str_addf(ret, " %" PRIu64, *number_of(&gpu, i));
	takt_str_add(ret, "\n");
}

int takt_account_to_text(const struct takt_accounts *accounts,
			 const struct takt_account_entry *entry, const char *const uuids[],
			 struct takt_str *ret)
{
	char boot_id[40];

	takt_boot_id(boot_id);
	takt_str_addf(
		ret, "takt-account 1 %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %d %" PRIu64 "\n",
		boot_id, accounts->now.ns, entry->opened_at.ns, entry->away_ns, entry->shared,
		entry->share, entry->own_seen, entry->own_peak_bytes);
	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS; g++)
		if (entry->gpu_mask >> g & 1)
			gpu_to_text(entry->gpus[g], uuids[g], ret);
	return ret->rc;
}

/* "0 " or "1 ", NULL when there is neither; the place behind it. */
static const char *take_bool(const char *text, bool *ret)
{
	if (!text || (text[0] != '0' && text[0] != '1') || text[1] != ' ')
		return NULL;
	*ret = text[0] == '1';
	return text + 2;
}

/* Digits and one character behind them, which ends the field. */
static const char *take_number(const char *text, char end, uint64_t *ret)
{
	uint64_t sum = 0;
	size_t i = 0;

	while (text && text[i] >= '0' && text[i] <= '9') {
		uint64_t digit = (uint64_t)(text[i++] - '0');

		if (__builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return NULL;
	}
	if (i == 0 || text[i] != end)
		return NULL;
	*ret = sum;
	return text + i + 1;
}

static const char *take_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	return text && strncmp(text, word, len) == 0 && text[len] == ' ' ? text + len + 1 : NULL;
}

static const char *take_whole(const char *text, struct takt_mono now,
			      struct takt_account_entry *entry)
{
	struct takt_mono written;
	char boot_id[40];

	takt_boot_id(boot_id);
	text = take_word(take_word(text, "takt-account 1"), boot_id);
	text = take_number(text, ' ', &written.ns);
	text = take_number(text, ' ', &entry->opened_at.ns);
	text = take_number(text, ' ', &entry->away_ns);
	text = take_bool(text, &entry->shared);
	text = take_bool(text, &entry->share);
	text = take_bool(text, &entry->own_seen);
	text = take_number(text, '\n', &entry->own_peak_bytes);
	if (!text || written.ns > now.ns || entry->opened_at.ns > written.ns)
		return NULL;
	entry->away_ns += now.ns - written.ns;
	return text;
}

static const char *take_gpu(const char *text, struct takt_account_gpu *gpu)
{
	size_t count = TAKT_ARRAY_LEN(numbers);

	text = take_bool(text, &gpu->energy_begun);
	text = take_bool(text, &gpu->energy_reset);
	text = take_bool(text, &gpu->throttle_seen);
	text = take_bool(text, &gpu->memory_seen);
	for (size_t i = 0; i < count; i++)
		text = take_number(text, i + 1 < count ? ' ' : '\n', number_of(gpu, i));
	return text;
}

/* Of a GPU that is not the job's, or not there, there is no such line. */
static const char *take_line(const char *text, const char *const uuids[],
			     struct takt_account_entry *entry, uint64_t *left)
{
	for (uint64_t at = *left; at; at &= at - 1) {
		uint32_t g = (uint32_t)__builtin_ctzll(at);
		const char *rest = take_word(text, uuids[g]);

		if (rest) {
			*left &= ~(UINT64_C(1) << g);
			return take_gpu(rest, &entry->gpus[g]);
		}
	}
	return NULL;
}

int takt_account_from_text(const struct takt_accounts *accounts, const char *text,
			   const char *const uuids[], struct takt_account_entry *entry)
{
	struct takt_account_entry found = *entry;
	uint64_t left = entry->gpu_mask;

	text = take_whole(text, accounts->now, &found);
	while (text && text[0])
		text = take_line(text, uuids, &found, &left);
	if (!text || left)
		return -TAKT_E_CORRUPT;
	found.written = true;
	*entry = found;
	return 0;
}
