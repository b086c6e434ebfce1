/* SPDX-License-Identifier: Apache-2.0 */
/* What is changed about a job after it was handed in, as JSON. */
#include <string.h>

#include "codec/jobspec_impl.h"
#include "codec/view_tables.h"

#define CHANGE struct takt_job_change
static const struct takt_field fields[] = {
	{TAKT_FIELD_AT(CHANGE, held, TAKT_FIELD_BOOL), .flag_offset = offsetof(CHANGE, has_held)},
	{TAKT_FIELD_AT(CHANGE, priority, TAKT_FIELD_I32), .min = -TAKT_SPEC_MAX_PRIORITY,
	 .max = TAKT_SPEC_MAX_PRIORITY, .flag_offset = offsetof(CHANGE, has_priority)},
	{TAKT_FIELD_AT(CHANGE, checkpoint, TAKT_FIELD_BOOL),
	 .flag_offset = offsetof(CHANGE, checkpoint)},
	{TAKT_FIELD_AT(CHANGE, frozen, TAKT_FIELD_BOOL),
	 .flag_offset = offsetof(CHANGE, has_frozen)},
	{TAKT_FIELD_AT(CHANGE, requeue, TAKT_FIELD_BOOL), .flag_offset = offsetof(CHANGE, requeue)},
	{TAKT_FIELD_AT(CHANGE, max_slowdown_permille, TAKT_FIELD_U32),
	 .max = TAKT_SPEC_MAX_SLOWDOWN, .flag_offset = offsetof(CHANGE, has_max_slowdown)},
	{TAKT_FIELD_AT(CHANGE, clock_policy, TAKT_FIELD_TEXT), .size = TAKT_SPEC_MAX_CLOCK_POLICY,
	 .flag_offset = offsetof(CHANGE, has_clock_policy)},
	{TAKT_FIELD_AT(CHANGE, time_limit_ms, TAKT_FIELD_U64), .max = INT64_MAX,
	 .flag_offset = offsetof(CHANGE, has_time_limit)},
};
static const struct takt_shape shape = TAKT_SHAPE(CHANGE, "a change", fields);

enum {
	MAX_BYTES = 4096
};

static bool says_more(const struct takt_job_change *change)
{
	return change->has_held || change->has_priority || change->checkpoint ||
	       change->has_frozen || change->has_max_slowdown || change->has_clock_policy ||
	       change->has_time_limit;
}

int takt_job_change_from_json(const char *text, size_t len, struct takt_job_change *ret,
			      struct takt_err *err)
{
	struct takt_job_change change;
	int rc;

	memset(&change, 0, sizeof(change));
	rc = takt_shape_decode(&shape, text, len, MAX_BYTES, TAKT_SHAPE_STRICT, &change, err);
	if (rc == -TAKT_E_CORRUPT) {
		rc = -TAKT_E_USAGE;
		if (err)
			err->rc = rc;
	}
	if (rc == 0 && change.requeue && says_more(&change))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "nothing else can be changed together with 'requeue'");
	if (rc == 0 && !change.requeue && !says_more(&change))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "nothing to change: give 'held' or 'priority', or of a job that "
				  "runs 'checkpoint', 'frozen' or 'requeue', or of either "
				  "'time_limit_ms', 'max_slowdown_permille' or 'clock_policy'");
	if (rc == 0 && (change.checkpoint || change.has_frozen) &&
	    (change.has_max_slowdown || change.has_clock_policy || change.has_time_limit))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "'time_limit_ms', 'max_slowdown_permille' and 'clock_policy' "
				  "cannot be changed together with 'checkpoint' or 'frozen'");
	if (rc == 0 && change.has_time_limit)
		rc = takt_spec_check_time("time_limit_ms", change.time_limit_ms, err);
	if (rc == 0 && (change.has_held || change.has_priority) &&
	    (change.checkpoint || change.has_frozen))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "'checkpoint' and 'frozen' are for jobs that run, 'held' and "
				  "'priority' for those that wait");
	if (rc == 0)
		*ret = change;
	return rc;
}

int takt_job_change_to_json(const struct takt_job_change *change, struct takt_str *out)
{
	return takt_shape_encode(&shape, change, out);
}
