/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much GPU memory a user's jobs of a name took the last time, for whoever hands in another one
 * and asks for less. What history knows of the newest jobs is read at the start.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/peaks.h"

enum {
	MAX_KNOWN = 10000,
	READ_AT_START = 1000
};

struct takt_peaks {
	struct takt_map known; /* "uid name" -> bytes */
};

static bool key_of(uid_t uid, const char *name, char ret[96])
{
	snprintf(ret, 96, "%u %s", uid, name);
	return name[0] != '\0';
}

void takt_peaks_note(struct takt_peaks *peaks, uid_t uid, const char *name,
		     const struct takt_job_report *report)
{
	char key[96];

	if (!(report->has & TAKT_REPORT_PEAK_MEMORY) || report->peak_memory_bytes == 0 ||
	    !key_of(uid, name, key))
		return;
	if (peaks->known.len >= MAX_KNOWN)
		takt_map_clear(&peaks->known);
	(void)takt_map_str_put(&peaks->known, key,
			       (union takt_map_value){.u64 = report->peak_memory_bytes});
}

uint64_t takt_peaks_last(const struct takt_peaks *peaks, uid_t uid, const char *name)
{
	const union takt_map_value *found;
	char key[96];

	if (!key_of(uid, name, key))
		return 0;
	found = takt_map_str_get(&peaks->known, key);
	return found ? found->u64 : 0;
}

/* The newest come first. */
static int read_ended(void *ctx, const struct takt_job *row)
{
	struct takt_peaks *peaks = ctx;
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	if (row->report.has & TAKT_REPORT_PEAK_MEMORY &&
	    takt_jobspec_from_json(row->spec_json, strlen(row->spec_json), &spec, NULL) == 0 &&
	    takt_peaks_last(peaks, row->uid, spec.name) == 0)
		takt_peaks_note(peaks, row->uid, spec.name, &row->report);
	takt_jobspec_fini(&spec);
	return 0;
}

int takt_peaks_new(struct takt_store *store, struct takt_peaks **ret, struct takt_err *err)
{
	struct takt_peaks *peaks = takt_zalloc(sizeof(*peaks));
	int rc;

	if (!peaks)
		return takt_err_set(err, -ENOMEM, "what jobs took of GPU memory");
	peaks->known = TAKT_MAP_STR(MAX_KNOWN);
	rc = takt_store_each_history(store, READ_AT_START, TAKT_QUEUE_LEARN_SPEC, read_ended, peaks,
				     err);
	if (rc < 0) {
		takt_peaks_free(peaks);
		return rc;
	}
	*ret = peaks;
	return 0;
}

void takt_peaks_free(struct takt_peaks *peaks)
{
	if (!peaks)
		return;
	takt_map_fini(&peaks->known);
	takt_free(peaks);
}
