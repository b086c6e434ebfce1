/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's file.
 *
 *	pair 0		the holder: epoch, process
 *	pair 1..128	a GPU each, in the order in which GPUs were first changed
 *
 * A pair is two slots of 512 bytes, one behind the other. A slot is struct slot below in the byte
 * order of the machine (the file never leaves it), closed by a CRC-32C over all that stands before.
 * All zeros is a slot that was never written. The newer slot of a pair is the one with the higher
 * sequence number; a write goes to the other one and is synced before it counts, so a write cut off
 * at any byte costs that write alone. The file has its full size from the start: a record needs no
 * new block, so a full disk cannot prevent the restoring of a GPU.
 *
 * When both slots of a pair are unreadable, which GPU they spoke of is lost with them. The pair is
 * "damaged", and remains so until every GPU that could have been meant has a record of its own. A
 * file that was cut short is treated in the same way: its last pair is made a damaged one before
 * anything else is written.
 */
#include "actuate/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/checksum.h"
#include "base/str.h"

#define MAGIC "TAKTJRN1"

enum {
	SLOT = 512,
	PAIR = 2 * SLOT,
	FILE_SIZE = (1 + TAKT_JOURNAL_PAIRS) * PAIR,
	AT_ONCE = 16, /* pairs */
};

struct slot {
	char magic[8];
	uint64_t seq;
	uint64_t epoch;
	uint64_t lease_id, job_id;
	uint32_t state; /* enum takt_journal_state; 0 in the holder's pair */
	uint32_t min_mhz, max_mhz;
	uint32_t base_locked, base_min_mhz, base_max_mhz;
	int32_t pid;
	uint32_t knobs; /* 0: of a takt that knew one */
	char boot_id[TAKT_JOURNAL_BOOT];
	char uuid[TAKT_JOURNAL_UUID]; /* of the GPU; in the holder's pair its name */
	char driver_load[TAKT_DRIVER_LOAD];
	uint32_t power_limit_mw, found_power_mw, cap_power_mw, base_power_mw;
	uint32_t mem_min_mhz, mem_max_mhz;
	struct takt_cpufreq cpu;
	char mig[TAKT_MIG_TEXT];
	char zero[SLOT - 72 - 16 - 8 - sizeof(struct takt_cpufreq) - 4 - TAKT_JOURNAL_BOOT -
		  TAKT_JOURNAL_UUID - TAKT_DRIVER_LOAD - TAKT_MIG_TEXT];
	uint32_t crc;
};
_Static_assert(sizeof(struct slot) == SLOT, "a slot is 512 bytes");
_Static_assert(offsetof(struct slot, crc) == SLOT - sizeof(uint32_t), "the CRC closes the slot");

enum slot_kind {
	SLOT_EMPTY,
	SLOT_GOOD,
	SLOT_BAD,
};

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static enum slot_kind judge(const struct slot *slot)
{
	static const struct slot empty;

	if (memcmp(slot, &empty, SLOT) == 0)
		return SLOT_EMPTY;
	if (memcmp(slot->magic, MAGIC, sizeof(slot->magic)) != 0 || slot->seq == 0 ||
	    slot->crc != takt_crc32c(slot, offsetof(struct slot, crc)))
		return SLOT_BAD;
	if (!ends(slot->boot_id, sizeof(slot->boot_id)) || !ends(slot->uuid, sizeof(slot->uuid)) ||
	    !ends(slot->driver_load, sizeof(slot->driver_load)) ||
	    !ends(slot->mig, sizeof(slot->mig)))
		return SLOT_BAD;
	return SLOT_GOOD;
}

/* What two slots say together. */
struct verdict {
	enum takt_journal_pair_state state;
	uint32_t place;
	bool torn;
};

static struct verdict judge_pair(const struct slot slots[2])
{
	enum slot_kind kind[2] = {judge(&slots[0]), judge(&slots[1])};
	struct verdict v = {.torn = kind[0] == SLOT_BAD || kind[1] == SLOT_BAD};

	if (kind[0] == SLOT_GOOD && kind[1] == SLOT_GOOD)
		v.place = slots[1].seq > slots[0].seq;
	else
		v.place = kind[1] == SLOT_GOOD;
	if (kind[v.place] == SLOT_GOOD)
		v.state = TAKT_JOURNAL_VALID;
	else if (v.torn && kind[0] != SLOT_EMPTY && kind[1] != SLOT_EMPTY)
		v.state = TAKT_JOURNAL_DAMAGED;
	return v;
}

static off_t slot_at(uint32_t pair, uint32_t place)
{
	return (off_t)pair * PAIR + (off_t)place * SLOT;
}

/* All of it or an error. */
static int read_at(const struct takt_sys *sys, int fd, void *buf, size_t n, off_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = sys->pread(sys, fd, (char *)buf + done, n - done, at + (off_t)done);

		if (got <= 0)
			return got < 0 ? (int)got : -EIO;
		done += (size_t)got;
	}
	return 0;
}

static int write_at(const struct takt_sys *sys, int fd, const void *buf, size_t n, off_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t put =
			sys->pwrite(sys, fd, (const char *)buf + done, n - done, at + (off_t)done);

		if (put <= 0)
			return put < 0 ? (int)put : -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* Writes and syncs one slot. */
static int put_slot(const struct takt_journal *journal, uint32_t pair, uint32_t place,
		    struct slot *slot)
{
	int rc;

	memcpy(slot->magic, MAGIC, sizeof(slot->magic));
	slot->crc = takt_crc32c(slot, offsetof(struct slot, crc));
	rc = write_at(journal->sys, journal->fd, slot, SLOT, slot_at(pair, place));
	takt_crash_point("actuate.journal_written");
	if (rc == 0)
		rc = journal->sys->fdatasync(journal->sys, journal->fd);
	takt_crash_point("actuate.journal_synced");
	return rc;
}

static void holder_from(const struct slot *slot, struct takt_journal_holder *ret)
{
	ret->epoch = slot->epoch;
	ret->pid = slot->pid;
	takt_strcpy(ret->name, sizeof(ret->name), slot->uuid);
}

static void record_from(const struct slot *slot, struct takt_journal_record *ret)
{
	*ret = (struct takt_journal_record){
		.state = slot->state == TAKT_JOURNAL_CLEAN ? TAKT_JOURNAL_CLEAN
							   : TAKT_JOURNAL_CHANGED,
		.setting = {slot->knobs,
			    {slot->min_mhz, slot->max_mhz},
			    slot->power_limit_mw,
			    {slot->mem_min_mhz, slot->mem_max_mhz}},
		.found_power_mw = slot->found_power_mw,
		.cap_power_mw = slot->cap_power_mw,
		.lease_id = slot->lease_id,
		.job_id = slot->job_id,
		.epoch = slot->epoch,
		.baseline = {slot->base_locked != 0,
			     {slot->base_min_mhz, slot->base_max_mhz},
			     slot->base_power_mw},
	};
	if (slot->cpu.count <= TAKT_CPUFREQ_RUNS)
		ret->cpu = slot->cpu;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), slot->uuid);
	takt_strcpy(ret->boot_id, sizeof(ret->boot_id), slot->boot_id);
	takt_strcpy(ret->driver_load, sizeof(ret->driver_load), slot->driver_load);
	takt_strcpy(ret->mig, sizeof(ret->mig), slot->mig);
}

static void record_to(const struct takt_journal_record *record, uint64_t seq, struct slot *ret)
{
	*ret = (struct slot){
		.seq = seq,
		.epoch = record->epoch,
		.lease_id = record->lease_id,
		.job_id = record->job_id,
		.state = record->state,
		.knobs = record->setting.knobs,
		.min_mhz = record->setting.sm.min_mhz,
		.max_mhz = record->setting.sm.max_mhz,
		.power_limit_mw = record->setting.power_limit_mw,
		.mem_min_mhz = record->setting.mem.min_mhz,
		.mem_max_mhz = record->setting.mem.max_mhz,
		.found_power_mw = record->found_power_mw,
		.cap_power_mw = record->cap_power_mw,
		.base_locked = record->baseline.locked,
		.base_min_mhz = record->baseline.range.min_mhz,
		.base_max_mhz = record->baseline.range.max_mhz,
		.base_power_mw = record->baseline.power_limit_mw,
		.cpu = record->cpu,
	};
	takt_strcpy(ret->uuid, sizeof(ret->uuid), record->uuid);
	takt_strcpy(ret->boot_id, sizeof(ret->boot_id), record->boot_id);
	takt_strcpy(ret->driver_load, sizeof(ret->driver_load), record->driver_load);
	takt_strcpy(ret->mig, sizeof(ret->mig), record->mig);
}

/*
 * The epoch of a damaged holder's pair is not lost: no record was written under a higher one than
 * it had. Going past the highest of them is enough for a new holder to differ from every old one
 * that ever set anything.
 */
static uint64_t highest_epoch(const struct takt_journal *journal)
{
	uint64_t epoch = journal->holder.epoch;

	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
		if (journal->pairs[i].state == TAKT_JOURNAL_VALID &&
		    journal->pairs[i].record.epoch > epoch)
			epoch = journal->pairs[i].record.epoch;
	}
	return epoch;
}

static void take_pair(struct takt_journal *journal, uint32_t index, const struct slot slots[2])
{
	struct verdict v = judge_pair(slots);
	const struct slot *newest = &slots[v.place];
	struct takt_journal_pair *pair;

	journal->torn += v.state == TAKT_JOURNAL_VALID && v.torn;
	if (index == 0) {
		if (v.state == TAKT_JOURNAL_VALID) {
			holder_from(newest, &journal->holder);
			journal->holder_seq = newest->seq;
		}
		return;
	}
	pair = &journal->pairs[index - 1];
	pair->state = v.state;
	pair->place = v.place;
	if (v.state == TAKT_JOURNAL_VALID) {
		pair->seq = newest->seq;
		record_from(newest, &pair->record);
	}
}

static int read_pairs(struct takt_journal *journal)
{
	struct slot slots[AT_ONCE][2];
	uint32_t n;
	int rc;

	for (uint32_t from = 0; from <= TAKT_JOURNAL_PAIRS; from += n) {
		n = TAKT_JOURNAL_PAIRS + 1 - from;
		if (n > AT_ONCE)
			n = AT_ONCE;
		rc = read_at(journal->sys, journal->fd, slots, (size_t)n * PAIR, slot_at(from, 0));
		if (rc < 0)
			return rc;
		for (uint32_t i = 0; i < n; i++)
			take_pair(journal, from + i, slots[i]);
	}
	return 0;
}

/* The directory, so that the new file's name survives too. */
static int sync_directory(const struct takt_sys *sys, const char *path)
{
	char dir[PATH_MAX];
	char *slash;
	int fd, rc;

	if (!takt_strcpy(dir, sizeof(dir), path))
		return -ENAMETOOLONG;
	slash = strrchr(dir, '/');
	if (!slash)
		takt_strcpy(dir, sizeof(dir), ".");
	else
		slash[slash == dir] = '\0';
	fd = sys->openat(sys, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	rc = sys->fsync(sys, fd);
	(void)sys->close(sys, fd);
	return rc;
}

/* Whether the file's beginning is one that a journal may have. */
static int check_kind(const struct takt_sys *sys, int fd, off_t size, struct takt_err *err)
{
	static const char zeros[sizeof(MAGIC) - 1];
	char head[2][sizeof(MAGIC) - 1] = {{0}};
	int rc = 0;

	for (uint32_t place = 0; rc == 0 && place < 2; place++) {
		if (size >= slot_at(0, place) + (off_t)sizeof(head[0]))
			rc = read_at(sys, fd, head[place], sizeof(head[0]), slot_at(0, place));
		if (memcmp(head[place], MAGIC, sizeof(head[0])) == 0)
			return 0;
	}
	if (rc < 0)
		return takt_err_set(err, rc, "read");
	if (memcmp(head[0], zeros, sizeof(zeros)) == 0 || size == FILE_SIZE)
		return 0;
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "this is no clock journal of takt (%lld bytes, of which the first are "
			    "not \"%s\"); it was left alone: name another file or remove it",
			    (long long)size, MAGIC);
}

/* 1 when the file holds anything but zeros, which is all that an interrupted creation leaves. */
static int holds_data(const struct takt_sys *sys, int fd, off_t size)
{
	static const char zeros[SLOT];
	char part[SLOT];
	int rc;

	for (off_t at = 0; at < size; at += SLOT) {
		size_t n = size - at < SLOT ? (size_t)(size - at) : SLOT;

		rc = read_at(sys, fd, part, n, at);
		if (rc < 0)
			return rc;
		if (memcmp(part, zeros, n) != 0)
			return 1;
	}
	return 0;
}

/* The last pair becomes a damaged one, in a file that was cut short. */
static int mark_cut(const struct takt_sys *sys, int fd)
{
	char marks[PAIR];
	int rc;

	memset(marks, 0xff, sizeof(marks));
	rc = write_at(sys, fd, marks, sizeof(marks), slot_at(TAKT_JOURNAL_PAIRS, 0));
	return rc == 0 ? sys->fsync(sys, fd) : rc;
}

static int make_whole(const struct takt_sys *sys, int fd, off_t size, const char *path,
		      struct takt_err *err)
{
	int rc = holds_data(sys, fd, size);

	if (rc > 0)
		rc = mark_cut(sys, fd);
	if (rc == 0)
		rc = sys->fallocate(sys, fd, FILE_SIZE);
	if (rc == 0)
		rc = sys->fsync(sys, fd);
	if (rc == 0)
		rc = sync_directory(sys, path);
	return rc < 0 ? takt_err_set(err, rc, "make it %d bytes long", FILE_SIZE) : 0;
}

/* Whether it is a journal of takt's; how long it is. */
static int check_file(struct takt_journal *journal, off_t *ret_size, struct takt_err *err)
{
	const struct takt_sys *sys = journal->sys;
	struct stat st;
	int rc = sys->fstat(sys, journal->fd, &st);

	if (rc == 0 && !S_ISREG(st.st_mode))
		rc = -EINVAL;
	if (rc < 0)
		return takt_err_set(err, rc, "not a plain file");
	journal->device = st.st_dev;
	journal->inode = st.st_ino;
	*ret_size = st.st_size;
	return check_kind(sys, journal->fd, st.st_size, err);
}

static int open_and_read(struct takt_journal *journal, const char *path, struct takt_err *err)
{
	off_t size = 0;
	int rc = check_file(journal, &size, err);

	if (rc == 0 && size < FILE_SIZE)
		rc = make_whole(journal->sys, journal->fd, size, path, err);
	if (rc < 0)
		return rc;
	rc = read_pairs(journal);
	return rc < 0 ? takt_err_set(err, rc, "read") : 0;
}

int takt_journal_open(const struct takt_sys *sys, const char *path, struct takt_journal *ret,
		      struct takt_err *err)
{
	int rc;

	*ret = (struct takt_journal){.sys = sys};
	ret->fd = sys->openat(sys, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ret->fd < 0)
		return takt_err_set(err, ret->fd, "open clock journal '%s'", path);
	rc = open_and_read(ret, path, err);
	if (rc == 0)
		return 0;
	takt_journal_close(ret);
	return takt_err_wrap(err, rc, "clock journal '%s'", path);
}

int takt_journal_look(const struct takt_sys *sys, const char *path, struct takt_journal *ret,
		      struct takt_err *err)
{
	off_t size = 0;
	int rc;

	*ret = (struct takt_journal){.sys = sys};
	ret->fd = sys->openat(sys, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (ret->fd < 0)
		return takt_err_set(err, ret->fd, "open clock journal '%s'", path);
	rc = check_file(ret, &size, err);
	if (rc == 0 && size < FILE_SIZE)
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "%lld bytes instead of %d", (long long)size,
				  FILE_SIZE);
	if (rc == 0 && (rc = read_pairs(ret)) < 0)
		takt_err_set(err, rc, "read");
	takt_journal_close(ret);
	return rc < 0 ? takt_err_wrap(err, rc, "clock journal '%s'", path) : 0;
}

void takt_journal_close(struct takt_journal *journal)
{
	if (journal->fd >= 0)
		(void)journal->sys->close(journal->sys, journal->fd);
	journal->fd = -1;
}

static struct takt_journal_pair *find_pair(const struct takt_journal *journal, const char *uuid)
{
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
		const struct takt_journal_pair *pair = &journal->pairs[i];

		if (pair->state == TAKT_JOURNAL_VALID && strcmp(pair->record.uuid, uuid) == 0)
			return (struct takt_journal_pair *)pair;
	}
	return NULL;
}

/* A pair for a GPU that has none: an unused one, else a damaged one, else that of a GPU which was
 * clean when last heard of. */
static struct takt_journal_pair *free_pair(struct takt_journal *journal)
{
	static const enum takt_journal_pair_state order[] = {
		TAKT_JOURNAL_UNUSED, TAKT_JOURNAL_DAMAGED, TAKT_JOURNAL_VALID};

	for (size_t k = 0; k < TAKT_ARRAY_LEN(order); k++) {
		for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
			struct takt_journal_pair *pair = &journal->pairs[i];

			if (pair->state == order[k] && (order[k] != TAKT_JOURNAL_VALID ||
							pair->record.state == TAKT_JOURNAL_CLEAN))
				return pair;
		}
	}
	return NULL;
}

int takt_journal_record(struct takt_journal *journal, const struct takt_journal_record *record,
			struct takt_err *err)
{
	struct takt_journal_pair *pair = find_pair(journal, record->uuid);
	uint32_t place;
	struct slot slot;
	uint64_t seq;
	int rc;

	if (!pair)
		pair = free_pair(journal);
	if (!pair)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "clock journal: %d GPUs are on record as changed",
				    TAKT_JOURNAL_PAIRS);
	place = pair->state == TAKT_JOURNAL_VALID ? !pair->place : 0;
	seq = pair->seq + 1;
	record_to(record, seq, &slot);
	rc = put_slot(journal, (uint32_t)(pair - journal->pairs) + 1, place, &slot);
	if (rc < 0)
		return takt_err_set(err, rc, "write the clock journal for %s", record->uuid);
	pair->state = TAKT_JOURNAL_VALID;
	pair->seq = seq;
	pair->place = place;
	pair->record = *record;
	return 0;
}

const struct takt_journal_record *takt_journal_find(const struct takt_journal *journal,
						    const char *uuid)
{
	const struct takt_journal_pair *pair = find_pair(journal, uuid);

	return pair ? &pair->record : NULL;
}

uint32_t takt_journal_damaged(const struct takt_journal *journal)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++)
		n += journal->pairs[i].state == TAKT_JOURNAL_DAMAGED;
	return n;
}

int takt_journal_forget_damage(struct takt_journal *journal, struct takt_err *err)
{
	static const char zeros[PAIR];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < TAKT_JOURNAL_PAIRS; i++) {
		if (journal->pairs[i].state != TAKT_JOURNAL_DAMAGED)
			continue;
		rc = write_at(journal->sys, journal->fd, zeros, sizeof(zeros), slot_at(i + 1, 0));
		if (rc == 0)
			rc = journal->sys->fdatasync(journal->sys, journal->fd);
		if (rc == 0)
			journal->pairs[i].state = TAKT_JOURNAL_UNUSED;
	}
	return rc < 0 ? takt_err_set(err, rc, "write the clock journal") : 0;
}

int takt_journal_raise_epoch(struct takt_journal *journal, struct takt_journal_holder holder,
			     struct takt_err *err)
{
	struct slot slot = {.seq = journal->holder_seq + 1, .pid = holder.pid};
	int rc;

	holder.epoch = highest_epoch(journal) + 1;
	slot.epoch = holder.epoch;
	takt_strcpy(slot.uuid, sizeof(slot.uuid), holder.name);
	rc = put_slot(journal, 0, (uint32_t)(slot.seq & 1), &slot);
	if (rc < 0)
		return takt_err_set(err, rc, "write the epoch into the clock journal");
	journal->holder_seq = slot.seq;
	journal->holder = holder;
	return 0;
}

int takt_journal_read_holder(const struct takt_journal *journal, struct takt_journal_holder *ret)
{
	struct slot slots[2];
	struct verdict v;
	int rc;

	rc = read_at(journal->sys, journal->fd, slots, PAIR, slot_at(0, 0));
	if (rc < 0)
		return rc;
	v = judge_pair(slots);
	if (v.state == TAKT_JOURNAL_DAMAGED)
		return -TAKT_E_CORRUPT;
	*ret = (struct takt_journal_holder){0};
	if (v.state == TAKT_JOURNAL_VALID)
		holder_from(&slots[v.place], ret);
	return 0;
}
