/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator's journal: a file that a power cut, or anybody, left as it is. The checksum of a
 * slot would keep a fuzzer out, so the input is also tried with right ones. Looking at it writes
 * nothing; what was opened can be written, and opened again says the same and what was written.
 */
#include "fuzz_file.h"

#include "actuate/journal.h"
#include "base/checksum.h"

enum {
	SLOT = 512,
	CRC_AT = SLOT - 4,
	WHOLE = (1 + TAKT_JOURNAL_PAIRS) * 2 * SLOT,
};

static const char path[] = "/run/takt/clocks", uuid[] = "GPU-of-the-fuzzer";

/* What is not zeros gets the magic and a right checksum; 0xff in front: it stays as it is. */
static void seal_slots(void)
{
	static const uint8_t zeros[SLOT];
	uint32_t crc;

	(void)file_fallocate(&fuzz_sys, FUZZ_FILE_FD, WHOLE);
	for (size_t at = 0; at < WHOLE; at += SLOT) {
		uint8_t *slot = fuzz_file.bytes + at;

		if (slot[0] == 0xff || memcmp(slot, zeros, SLOT) == 0)
			continue;
		memcpy(slot, "TAKTJRN1", 8);
		crc = takt_crc32c(slot, CRC_AT);
		memcpy(slot + CRC_AT, &crc, sizeof(crc));
	}
}

static bool is_valid(const struct takt_journal *journal, uint32_t i)
{
	return journal->pairs[i].state == TAKT_JOURNAL_VALID;
}

static void check(const struct takt_journal *journal)
{
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
		const struct takt_journal_record *record = &journal->pairs[i].record;

		if (!is_valid(journal, i))
			continue;
		fuzz_expect(takt_journal_find(journal, record->uuid) != NULL);
		fuzz_expect(record->state == TAKT_JOURNAL_CLEAN ||
			    record->state == TAKT_JOURNAL_CHANGED);
		fuzz_expect(record->cpu.count <= TAKT_CPUFREQ_RUNS);
		fuzz_expect(memchr(record->boot_id, '\0', sizeof(record->boot_id)) != NULL);
		fuzz_expect(memchr(record->driver_load, '\0', sizeof(record->driver_load)) != NULL);
		fuzz_expect(memchr(record->mig, '\0', sizeof(record->mig)) != NULL);
	}
}

/* Numbers that nobody has counted up to. */
static bool is_worn_out(const struct takt_journal *journal)
{
	bool worn = journal->holder_seq == UINT64_MAX || journal->holder.epoch == UINT64_MAX;

	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++)
		worn |= is_valid(journal, i) && (journal->pairs[i].seq == UINT64_MAX ||
						 journal->pairs[i].record.epoch == UINT64_MAX);
	return worn;
}

static bool is_same(const struct takt_journal_pair *a, const struct takt_journal_pair *b)
{
	return a->state == b->state &&
	       (a->state != TAKT_JOURNAL_VALID ||
		(a->seq == b->seq && a->place == b->place && a->record.state == b->record.state &&
		 a->record.lease_id == b->record.lease_id &&
		 a->record.found_power_mw == b->record.found_power_mw &&
		 strcmp(a->record.uuid, b->record.uuid) == 0));
}

static void open_again(const struct takt_journal *before, bool recorded)
{
	static struct takt_journal after;
	const struct takt_journal_record *record;

	fuzz_expect(takt_journal_open(&fuzz_sys, path, &after, NULL) == 0);
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++)
		fuzz_expect(is_same(&before->pairs[i], &after.pairs[i]));
	fuzz_expect(after.holder.epoch == before->holder.epoch && after.holder.pid == 7);
	record = takt_journal_find(&after, uuid);
	fuzz_expect(!recorded || (record && record->lease_id == 11));
	fuzz_expect(takt_journal_forget_damage(&after, NULL) == 0);
	fuzz_expect(takt_journal_damaged(&after) == 0);
	takt_journal_close(&after);
}

static void write_and_open_again(struct takt_journal *journal)
{
	struct takt_journal_record record = {
		.state = TAKT_JOURNAL_CHANGED, .lease_id = 11, .epoch = 1};
	uint32_t damaged = takt_journal_damaged(journal);
	int rc;

	memcpy(record.uuid, uuid, sizeof(uuid));
	rc = takt_journal_record(journal, &record, NULL);
	fuzz_expect(rc == 0 || rc == -TAKT_E_LIMIT);
	fuzz_expect(takt_journal_damaged(journal) + 1 >= damaged);
	fuzz_expect(takt_journal_raise_epoch(journal, (struct takt_journal_holder){0, 7, "fuzzer"},
					     NULL) == 0);
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++)
		fuzz_expect(!is_valid(journal, i) ||
			    journal->holder.epoch > journal->pairs[i].record.epoch);
	takt_journal_close(journal);
	open_again(journal, rc == 0);
}

static void try_file(void)
{
	static struct takt_journal journal;
	struct takt_err err = {0};
	int rc;

	fuzz_file.read_only = true;
	rc = takt_journal_look(&fuzz_sys, path, &journal, &err);
	fuzz_expect(rc == 0 ? fuzz_file.size >= WHOLE : rc == -TAKT_E_CORRUPT && err.msg[0]);
	fuzz_file.read_only = false;
	rc = takt_journal_open(&fuzz_sys, path, &journal, &err);
	fuzz_expect(rc == 0 ? fuzz_file.size >= WHOLE : rc == -TAKT_E_CORRUPT && err.msg[0]);
	if (rc == 0) {
		check(&journal);
		if (is_worn_out(&journal))
			takt_journal_close(&journal);
		else
			write_and_open_again(&journal);
	}
	fuzz_expect(fuzz_file.open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file_fill(data, size);
	try_file();
	fuzz_file_fill(data, size);
	seal_slots();
	try_file();
	return 0;
}
