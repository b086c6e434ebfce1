/* SPDX-License-Identifier: Apache-2.0 */
/* See far_deed.h. */
#include "top/far_deed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "top/deed_line.h"
#include "top/host_link.h"

static const uint64_t patience_ns = 30 * TAKT_NS_PER_S; /* ssh, and a cancel that takes its time */

struct takt_far_deed {
	const char *host;
	struct takt_host_link *link; /* owned */
	struct takt_mono end;
};

static int send(struct takt_far_deed *far, const struct takt_deed *deed, bool allow_foreign,
		struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str line = TAKT_STR(TAKT_DEED_LINE);

	takt_deed_to_line(deed, &line);
	return line.rc < 0
		       ? takt_err_set(err, line.rc, "no memory for the request")
		       : takt_host_link_tell(far->link, takt_str_text(&line), allow_foreign, err);
}

int takt_far_deed_begin(const char *host, const struct takt_deed *deed, bool allow_foreign,
			struct takt_far_deed **ret, struct takt_err *err)
{
	struct takt_far_deed *far = takt_zalloc(sizeof(*far));
	int rc;

	if (far)
		far->link = takt_host_link_new(host, false);
	if (!far || !far->link) {
		takt_free(far);
		return takt_err_set(err, -ENOMEM, "no memory for the request");
	}
	far->host = host;
	far->end = takt_mono_add(takt_mono_now(takt_sys_real()), patience_ns);
	rc = send(far, deed, allow_foreign, err);
	if (rc < 0)
		takt_far_deed_free(far);
	else
		*ret = far;
	return rc;
}

void takt_far_deed_free(struct takt_far_deed *far)
{
	if (!far)
		return;
	takt_host_link_free(far->link);
	takt_free(far);
}

int takt_far_deed_fd(const struct takt_far_deed *far)
{
	return far ? takt_host_link_fd(far->link) : -1;
}

/* 0: not over. */
static int hear(struct takt_far_deed *far, bool *ret_bad, char *ret, size_t size,
		struct takt_err *err)
{
	const char *answer;
	int rc = takt_host_link_hear(far->link, &answer, err);

	if (rc > 0) {
		rc = takt_deed_answer_from_line(answer, strlen(answer), ret_bad, ret, size, err);
		return rc < 0 ? rc : 1;
	}
	if (rc == 0 && takt_mono_now(takt_sys_real()).ns >= far->end.ns)
		rc = takt_err_set(err, -ETIMEDOUT, "no answer within %d s; it may be done or not",
				  (int)(patience_ns / TAKT_NS_PER_S));
	return rc;
}

bool takt_far_deed_over(struct takt_far_deed *far, struct takt_top_ui *ui)
{
	struct takt_err err = {0};
	char text[160];
	bool bad = true;
	int rc = hear(far, &bad, text, sizeof(text), &err);

	if (rc == 0)
		return false;
	ui->notice_bad = bad;
	snprintf(ui->notice, sizeof(ui->notice), "%.60s: %.160s", far->host,
		 rc < 0 ? err.msg : text);
	return true;
}
