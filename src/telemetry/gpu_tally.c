/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/gpu_tally.h"

/* As of a job's account: time between two samples further apart than this belongs to neither. */
static const uint64_t max_gap_ns = TAKT_NS_PER_S;
/* A rate over less would say more of when the counter was read than of the links. */
static const uint64_t min_rate_ns = TAKT_NS_PER_S / 2;

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return (uint64_t)((double)bytes * (double)TAKT_NS_PER_S / (double)ns);
}

/* Vitals are read more rarely than the rest of a reading. */
static void feed_nvlinks(struct takt_tally *tally, const struct takt_gpu_reading *reading)
{
	const struct takt_gpu_vitals *vitals = &reading->vitals;
	uint64_t sent = vitals->nvlink_sent_bytes - tally->nvlink_sent_bytes;
	uint64_t received = vitals->nvlink_received_bytes - tally->nvlink_received_bytes;
	uint64_t ns = takt_mono_elapsed_ns(reading->slow_at, tally->nvlink_at);

	if (!(vitals->has & TAKT_VITAL_NVLINK_BYTES)) {
		tally->has_nvlink_rate = false;
		tally->nvlink_at.ns = 0;
		return;
	}
	if (ns < min_rate_ns)
		return;
	tally->has_nvlink_rate = tally->nvlink_at.ns != 0 &&
				 vitals->nvlink_sent_bytes >= tally->nvlink_sent_bytes &&
				 vitals->nvlink_received_bytes >= tally->nvlink_received_bytes;
	tally->nvlink_sent_bytes_per_s = tally->has_nvlink_rate ? per_second(sent, ns) : 0;
	tally->nvlink_received_bytes_per_s = tally->has_nvlink_rate ? per_second(received, ns) : 0;
	tally->nvlink_sent_bytes = vitals->nvlink_sent_bytes;
	tally->nvlink_received_bytes = vitals->nvlink_received_bytes;
	tally->nvlink_at = reading->slow_at;
}

void takt_tally_feed(struct takt_tally *tally, const struct takt_gpu_reading *reading)
{
	uint64_t ns = takt_mono_elapsed_ns(reading->at, tally->at);
	bool counts = tally->at.ns != 0 && ns <= max_gap_ns;

	tally->at = reading->at;
	feed_nvlinks(tally, reading);
	if (!(reading->has & TAKT_HAS_THROTTLE))
		return;
	tally->throttle_seen = true;
	for (int i = 0; i < TAKT_TALLY_REASONS && counts; i++)
		if (reading->throttle >> i & 1)
			tally->throttled_ns[i] += ns;
}

static struct takt_tally_xid *find_or_add(struct takt_tally *tally, uint32_t xid)
{
	for (uint32_t i = 0; i < tally->xid_count; i++)
		if (tally->xids[i].xid == xid)
			return &tally->xids[i];
	if (tally->xid_count == TAKT_TALLY_XIDS)
		return &tally->others;
	tally->xids[tally->xid_count].xid = xid;
	return &tally->xids[tally->xid_count++];
}

static uint64_t slot_of(struct takt_mono now)
{
	return now.ns / (TAKT_TALLY_SLOT_S * TAKT_NS_PER_S);
}

/* Slots between the newest and now are empty. */
static void count_recent(struct takt_tally_xid *xid, uint64_t slot)
{
	uint64_t empty = slot > xid->slot ? slot - xid->slot : 0;

	for (uint64_t i = 0; i < empty && i < TAKT_TALLY_SLOTS; i++)
		xid->recent[(slot - i) % TAKT_TALLY_SLOTS] = 0;
	xid->slot += empty;
	xid->recent[xid->slot % TAKT_TALLY_SLOTS]++;
}

uint64_t takt_tally_recent(const struct takt_tally_xid *xid, struct takt_mono now)
{
	uint64_t slot = slot_of(now), sum = 0;

	for (uint64_t i = 0; i < TAKT_TALLY_SLOTS && i <= xid->slot; i++)
		if (xid->slot - i + TAKT_TALLY_SLOTS > slot)
			sum += xid->recent[(xid->slot - i) % TAKT_TALLY_SLOTS];
	return sum;
}

void takt_tally_xid(struct takt_tally *tally, uint32_t xid, struct takt_wall at,
		    struct takt_mono now)
{
	struct takt_tally_xid *entry = find_or_add(tally, xid);

	entry->times++;
	count_recent(entry, slot_of(now));
	if (at.ns > entry->last.ns)
		entry->last = at;
	tally->last_xid = xid;
}
