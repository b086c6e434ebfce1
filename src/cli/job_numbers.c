/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs a word of the command line names. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/each_job.h"
#include "cli/job_filter.h"

enum {
	MAX_WORD = 256,
};

static int add(struct takt_job_numbers *jobs, uint64_t id, struct takt_err *err)
{
	return takt_vec_push(&jobs->ids, id) < 0
		       ? takt_err_set(err, -ENOMEM, "no memory for the jobs")
		       : 0;
}

static int add_range(const char *text, const char *dash, struct takt_job_numbers *jobs,
		     struct takt_err *err)
{
	uint64_t first = 0, last = 0;
	char low[24] = "";
	int rc;

	if ((size_t)(dash - text) < sizeof(low))
		memcpy(low, text, (size_t)(dash - text));
	rc = takt_cli_job_id(low, &first, err);
	if (rc == 0)
		rc = takt_cli_job_id(dash + 1, &last, err);
	if (rc == 0 && (last < first || last - first >= TAKT_FILTER_MOST))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "a range of jobs goes from a lower number to a higher one, at "
				  "most %d of them, as in 12-15, not '%.40s'",
				  TAKT_FILTER_MOST, text);
	for (; rc == 0 && first <= last; first++)
		rc = add(jobs, first, err);
	return rc;
}

/* "0-19", "7": false when it is neither. */
static bool read_part(char *part, unsigned long long *ret_first, unsigned long long *ret_last)
{
	char *dash = strchr(part, '-');

	if (dash)
		*dash = '\0';
	if (takt_parse_u64(part, 0, UINT32_MAX, ret_first) < 0)
		return false;
	*ret_last = *ret_first;
	return !dash ||
	       (takt_parse_u64(dash + 1, 0, UINT32_MAX, ret_last) == 0 && *ret_last >= *ret_first);
}

/* Those of the queue that are of the array and in the part of the list. */
static int add_part(const struct takt_queue_view *view, uint64_t array_id, char *part,
		    struct takt_job_numbers *jobs, struct takt_err *err)
{
	unsigned long long first = 0, last = UINT32_MAX;
	int rc = 0;

	if (strcmp(part, "*") != 0 && !read_part(part, &first, &last))
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"jobs of an array are named as in 30[0-19], 30[2,5-7] or 30[*], "
			"not by '%.40s'",
			part);
	for (size_t i = 0; rc == 0 && i < view->count; i++)
		if (view->jobs[i].array_id == array_id && view->jobs[i].array_index >= first &&
		    view->jobs[i].array_index <= last)
			rc = add(jobs, view->jobs[i].id, err);
	return rc;
}

/* The list is cut in place. What the queue shows behind '%' is not asked for. */
static int add_listed(struct takt_cli *cli, uint64_t array_id, char *list,
		      struct takt_job_numbers *jobs, struct takt_err *err)
{
	size_t before = jobs->ids.len;
	struct takt_queue_view view;
	char *save = NULL;
	int rc = takt_cli_connect(cli, err);

	if (rc == 0)
		rc = takt_client_queue(cli->client, false, TAKT_FILTER_MOST, &view, err);
	if (rc < 0)
		return rc;
	list[strcspn(list, "%]")] = '\0';
	for (char *part = strtok_r(list, ",", &save); rc == 0 && part;
	     part = strtok_r(NULL, ",", &save))
		rc = add_part(&view, array_id, part, jobs, err);
	takt_queue_view_fini(&view);
	if (rc == 0 && jobs->ids.len == before)
		rc = takt_err_set(err, -TAKT_E_NOT_FOUND, "no such job of array %llu runs or waits",
				  (unsigned long long)array_id);
	return rc;
}

int takt_cli_jobs_of(struct takt_cli *cli, const char *text, struct takt_job_numbers *jobs,
		     struct takt_err *err)
{
	size_t array = strcspn(text, "[_"), open = array + strspn(text + array, "[_");
	const char *dash = strchr(text, '-');
	char word[MAX_WORD];
	uint64_t id = 0;
	int rc;

	if (!text[array]) {
		if (dash)
			return add_range(text, dash, jobs, err);
		rc = takt_cli_job_id(text, &id, err);
		return rc < 0 ? rc : add(jobs, id, err);
	}
	if (!takt_strcpy(word, sizeof(word), text))
		return takt_err_set(err, -TAKT_E_USAGE, "the list '%.40s...' is too long", text);
	word[array] = '\0';
	rc = takt_cli_job_id(word, &id, err);
	return rc < 0 ? rc : add_listed(cli, id, word + open, jobs, err);
}
