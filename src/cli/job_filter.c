/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job_filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/timetext.h"
#include "base/user_name.h"
#include "cli/when.h"

static const int64_t day_ms = 24ll * 3600 * 1000;

int takt_past_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct takt_err *err)
{
	uint64_t ago_ns;
	int rc;

	if (takt_duration_parse(text, &ago_ns) == 0) {
		*ret_ms = now_ms - (int64_t)(ago_ns / TAKT_NS_PER_MS);
		return 0;
	}
	rc = takt_when_parse(text, now_ms, ret_ms, err);
	if (rc == 0 && *ret_ms > now_ms && text[0] >= '0' && text[0] <= '9' && strchr(text, ':') &&
	    !strchr(text, '-'))
		*ret_ms -= day_ms; /* a time of day: the last one, not the next */
	return rc;
}

static int read_time(const struct takt_cli *cli, const char *option, int64_t *ret_ms,
		     struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);
	int rc = text ? takt_past_parse(text, (int64_t)time(NULL) * 1000, ret_ms, err) : 0;

	return rc < 0 ? takt_err_wrap(err, rc, "'--%s'", option) : 0;
}

/* Whether the word is one of a list with commas. */
static bool is_in(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list;; at += strcspn(at, ",") + 1) {
		if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
		if (!strchr(at, ','))
			return false;
	}
}

/* A word that no job is in would find nothing, and look as if there were no such job. */
static int check_states(const char *list, struct takt_err *err)
{
	static const char states[] =
		"waiting,starting,running,stopping,done,failed,cancelled,lost,interrupted";
	char word[16];

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		size_t len = strcspn(at, ",");

		if (len > 0 && len < sizeof(word)) {
			memcpy(word, at, len);
			word[len] = '\0';
			if (is_in(states, word))
				continue;
		}
		return takt_err_set(err, -TAKT_E_USAGE, "'--state' takes a list of %s, not '%.*s'",
				    states, (int)(len < 40 ? len : 40), at);
	}
	return 0;
}

int takt_job_filter_read(const struct takt_cli *cli, struct takt_job_filter *ret,
			 struct takt_err *err)
{
	int64_t before = 0;
	int rc;

	*ret = (struct takt_job_filter){
		.user = takt_cli_value(cli, "user"),
		.state = takt_cli_value(cli, "state"),
		.name = takt_cli_value(cli, "name"),
		.tag = takt_cli_value(cli, "tag"),
		.gpu = -1,
	};
	rc = check_states(ret->state, err);
	if (rc == 0)
		rc = takt_cli_number(cli, "gpu", 0, TAKT_VIEW_MAX_GPUS - 1, -1, &ret->gpu, err);
	if (rc == 0)
		rc = takt_cli_number(cli, "before", 1, INT64_MAX, 0, &before, err);
	ret->before = (uint64_t)before;
	if (rc == 0)
		rc = read_time(cli, "since", &ret->since_ms, err);
	return rc < 0 ? rc : read_time(cli, "until", &ret->until_ms, err);
}

static bool is_on(const struct takt_job_view *job, int64_t gpu)
{
	for (uint32_t i = 0; i < job->gpu_list_count; i++)
		if (job->gpu_list[i] == gpu)
			return true;
	return gpu < 0;
}

static bool is_when(const struct takt_job_filter *filter, const struct takt_job_view *job)
{
	int64_t at = job->ended_ms ? job->ended_ms : job->started_ms;

	at = at ? at : job->submitted_ms;
	return at >= filter->since_ms && (filter->until_ms == 0 || at < filter->until_ms);
}

/* By the name that the daemon gives him, or by number. */
static bool is_users(const struct takt_job_filter *filter, const struct takt_job_view *job)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", job->uid);
	return !filter->user || strcmp(filter->user, job->user) == 0 ||
	       strcmp(filter->user, number) == 0;
}

bool takt_job_filter_takes(const struct takt_job_filter *filter, const struct takt_job_view *job)
{
	return is_users(filter, job) && (!filter->state || is_in(filter->state, job->state)) &&
	       (!filter->name || fnmatch(filter->name, job->name, 0) == 0) &&
	       (!filter->tag || (job->tags[0] && is_in(job->tags, filter->tag))) &&
	       (!filter->before || job->id < filter->before) && is_on(job, filter->gpu) &&
	       is_when(filter, job);
}

void takt_job_filter_keep(const struct takt_job_filter *filter, struct takt_queue_view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++)
		if (takt_job_filter_takes(filter, &view->jobs[i]))
			view->jobs[kept++] = view->jobs[i];
	view->count = kept;
}

struct walk {
	const struct takt_job_filter *filter;
	int (*take)(void *ctx, const struct takt_queue_view *part, struct takt_err *err);
	void *ctx;
};

/* Hands over what the filter takes, and lets go of it all. */
static int hand_part(const struct walk *walk, struct takt_queue_view *part, struct takt_err *err)
{
	size_t all = part->count;
	int rc;

	takt_job_filter_keep(walk->filter, part);
	rc = walk->take(walk->ctx, part, err);
	part->count = all;
	takt_queue_view_fini(part);
	return rc;
}

/* What the daemon can choose by itself is sent to it. A user whom this machine does not know is
 * told apart by the text alone. */
static struct takt_client_past past_of(const struct takt_job_filter *filter, uint32_t page)
{
	uid_t uid = UINT32_MAX;

	if (filter->user)
		(void)takt_user_find(filter->user, &uid);
	return (struct takt_client_past){
		.before = filter->before,
		.since_ms = filter->since_ms,
		.until_ms = filter->until_ms,
		.uid = uid,
		.gpu = filter->gpu,
		.states = filter->state,
		.limit = page,
	};
}

static int walk_past(struct takt_cli *cli, const struct walk *walk, uint32_t page,
		     struct takt_err *err)
{
	struct takt_client_past past = past_of(walk->filter, page);
	struct takt_queue_view part;
	int rc = 0;

	do {
		rc = takt_client_past(cli->client, &past, &part, err);
		if (rc < 0)
			return rc;
		past.before = part.next;
		rc = hand_part(walk, &part, err);
	} while (rc == 0 && past.before);
	return rc;
}

int takt_job_filter_walk(struct takt_cli *cli, const struct takt_job_filter *filter,
			 bool ended_only, uint32_t page,
			 int (*take)(void *ctx, const struct takt_queue_view *part,
				     struct takt_err *err),
			 void *ctx, struct takt_err *err)
{
	const struct walk walk = {filter, take, ctx};
	struct takt_queue_view live;
	int rc = takt_cli_connect(cli, err);

	if (rc == 0 && !ended_only) {
		rc = takt_client_queue(cli->client, false, TAKT_FILTER_MOST, &live, err);
		if (rc == 0)
			rc = hand_part(&walk, &live, err);
	}
	if (rc == 0)
		rc = walk_past(cli, &walk, page, err);
	return rc < 0 ? rc : 0;
}

void takt_csv_add(struct takt_str *out, const char *text, bool last)
{
	if (strpbrk(text, ",\"\r\n")) {
		takt_str_add(out, "\"");
		for (; *text; text++) {
			takt_str_addn(out, text, 1);
			if (*text == '"')
				takt_str_add(out, "\"");
		}
		takt_str_add(out, "\"");
	} else {
		takt_str_add(out, text);
	}
	takt_str_add(out, last ? "\n" : ",");
}
