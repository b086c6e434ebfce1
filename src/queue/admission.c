/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether there is room for what is handed in: how many jobs, how many bytes of descriptions. All
 * limits are looked at before the first job is posted, so that what is refused has cost next to
 * nothing; and with count times size, since an array of thousands is a few bytes.
 */
#include <errno.h>
#include <string.h>

#include "queue/queue_impl.h"

uint32_t takt_queue_jobs_of(const struct takt_jobspec *spec)
{
	return spec->has_array ? spec->array_last - spec->array_first + 1 : 1;
}

uint32_t takt_queue_jobs_of_all(const struct takt_jobspecs *specs)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < specs->count; i++)
		count += takt_queue_jobs_of(&specs->jobs[i]);
	return count;
}

/* Of its JSON form without the environment. */
static int json_bytes(const struct takt_jobspec *spec, size_t *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	int rc = takt_jobspec_to_json(spec, false, &json);

	if (rc < 0)
		return takt_err_set(err, rc, "the description, of at most %d bytes",
				    TAKT_SPEC_MAX_BYTES);
	*ret = json.len;
	return 0;
}

/* Of one job of the array. */
static int element_bytes(const struct takt_jobspec *array, size_t *ret, struct takt_err *err)
{
	struct takt_jobspec bare = *array, largest;
	int rc = 0;

	bare.env = NULL;
	takt_jobspec_init(&largest);
	rc = takt_jobspec_largest(&bare, &largest, err);
	if (rc == 0)
		rc = json_bytes(&largest, ret, err);
	if (rc == 0) {
		largest.env = array->env;
		rc = takt_jobspec_check_exec(&largest, err);
		largest.env = NULL;
	}
	takt_jobspec_fini(&largest);
	return rc;
}

static int weigh(const struct takt_jobspec *spec, size_t *bytes, struct takt_err *err)
{
	size_t each = 0;
	int rc = spec->has_array ? element_bytes(spec, &each, err) : json_bytes(spec, &each, err);

	if (rc == 0)
		*bytes += each * takt_queue_jobs_of(spec) + takt_queue_env_bytes(spec->env);
	return rc;
}

static int weigh_all(const struct takt_jobspecs *specs, size_t *ret_bytes, struct takt_err *err)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < specs->count; i++) {
		int rc = weigh(&specs->jobs[i], &bytes, err);

		if (rc < 0)
			return specs->count > 1 ? takt_err_wrap(err, rc, "jobs[%u]", i) : rc;
	}
	*ret_bytes = bytes;
	return 0;
}

static int check_hand_in(uint32_t count, size_t bytes, struct takt_err *err)
{
	if (bytes > TAKT_QUEUE_MAX_HAND_IN)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "the descriptions of these %u jobs would be %zu bytes, over "
				    "the %d that may be handed in at once: shorten them or hand "
				    "in fewer",
				    count, bytes, TAKT_QUEUE_MAX_HAND_IN);
	return 0;
}

/* Which is weighed when its texts are made. */
static bool is_one_job(const struct takt_jobspecs *specs)
{
	return specs->count == 1 && !specs->jobs->has_array;
}

int takt_queue_check_limits_of(const struct takt_queue *queue, uid_t uid,
			       const struct takt_jobspecs *specs, size_t *ret_bytes,
			       struct takt_err *err)
{
	uint32_t count = takt_queue_jobs_of_all(specs);
	size_t bytes = 0;
	int rc = takt_queue_check_count(queue, uid, count, err);

	if (rc == 0)
		rc = takt_queue_check_queued(queue, uid, count, err);
	if (rc == 0 && !is_one_job(specs))
		rc = weigh_all(specs, &bytes, err);
	if (rc == 0)
		rc = check_hand_in(count, bytes, err);
	if (rc == 0)
		rc = takt_queue_check_bytes(queue, uid, bytes, err);
	if (rc == 0)
		*ret_bytes = bytes;
	return rc;
}
