/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of jobs, see the header. */
#include "cli/job_line.h"

#include <inttypes.h>
#include <string.h>

#include "cli/job_text.h"
#include "cli/units.h"
#include "client/client.h"

static bool waits(const struct takt_job_view *job)
{
	return strcmp(job->state, "waiting") == 0;
}

size_t takt_job_line_length(const struct takt_job_view *jobs, size_t count)
{
	size_t length = 1;

	while (length < count && jobs[0].array_id && waits(&jobs[0]) && waits(&jobs[length]) &&
	       jobs[length].array_id == jobs[0].array_id &&
	       strcmp(jobs[length].held, jobs[0].held) == 0)
		length++;
	return length;
}

/* Where indices that follow each other end. They rise in the queue and fall where the newest jobs
 * come first. */
static size_t last_of_run(const struct takt_job_view *jobs, size_t length, size_t first, int step)
{
	size_t last = first;

	while (last + 1 < length &&
	       (int64_t)jobs[last + 1].array_index == (int64_t)jobs[last].array_index + step)
		last++;
	return last;
}

static void add_indices(const struct takt_job_view *jobs, size_t length, struct takt_str *out)
{
	int step = jobs[0].array_index < jobs[1].array_index ? 1 : -1;
	const char *comma = "";

	for (size_t first = 0, last; first < length; first = last + 1) {
		last = last_of_run(jobs, length, first, step);
		takt_str_addf(out, "%s%" PRIu32, comma, jobs[step > 0 ? first : last].array_index);
		if (last > first)
			takt_str_addf(out, "-%" PRIu32, jobs[step > 0 ? last : first].array_index);
		comma = ",";
	}
}

void takt_job_line_id(const struct takt_job_view *jobs, size_t length, struct takt_str *out)
{
	if (length == 1) {
		takt_str_addf(out, "%" PRIu64, jobs[0].id);
		return;
	}
	takt_str_addf(out, "%" PRIu64 "[", jobs[0].array_id);
	add_indices(jobs, length, out);
	if (jobs[0].array_limit)
		takt_str_addf(out, "%%%" PRIu32, jobs[0].array_limit);
	takt_str_add(out, "]");
}

void takt_job_line_name(const struct takt_job_view *jobs, size_t length, struct takt_str *out)
{
	takt_str_add(out, jobs[0].name);
	if (length == 1 && jobs[0].array_id && jobs[0].name[0])
		takt_str_addf(out, "[%" PRIu32 "]", jobs[0].array_index);
}

void takt_job_line_gpus(const struct takt_job_view *job, struct takt_str *out)
{
	bool part = job->mig[0] || (job->gpu_milli && job->gpu_milli < 1000);

	if (!part || job->gpus != 1)
		takt_str_addf(out, "%" PRIu32 "%s", job->gpus, part ? "x" : "");
	if (job->mig[0])
		takt_str_add(out, job->mig);
	else if (part)
		takt_str_addf(out, "%.3g", job->gpu_milli / 1000.0);
}

/* An older daemon has the sentence alone. */
static void add_why(const struct takt_job_view *job, int64_t now_ms, struct takt_str *out)
{
	char when[TAKT_UNIT_TEXT];

	if (takt_job_waits_until_ms(job)) {
		takt_str_addf(out, "until %s",
			      takt_when_words(takt_job_waits_until_ms(job), now_ms, when));
		return;
	}
	takt_str_add(out, job->why_words[0] ? job->why_words : job->why_text);
	if (job->start.starts_ms)
		takt_str_addf(out, "; expected %s%s",
			      takt_when_words(job->start.starts_ms, now_ms, when),
			      job->start.starts_overdue_ms ? ", overdue" : "");
}

void takt_job_line_where(const struct takt_job_view *job, int64_t now_ms, struct takt_str *out)
{
	if (takt_client_job_ended(job)) {
		takt_job_end_text(job, out);
		return;
	}
	if (job->gpu_list_count > 0 && !waits(job)) {
		takt_str_add(out, job->gpu_list_count == 1 ? "GPU " : "GPUs ");
		takt_gpu_list_text(job->gpu_list, job->gpu_list_count, out);
		takt_str_add(out, job->why_text[0] ? ", " : "");
	}
	if (job->why_text[0])
		add_why(job, now_ms, out);
}
