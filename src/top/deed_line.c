/* SPDX-License-Identifier: Apache-2.0 */
/* See deed_line.h. */
#include "top/deed_line.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

#include "codec/json.h"
#include "top/top_json.h"

enum {
	MAX_SIGNAL = 64,
};

static const char *word_of(const struct takt_deed *deed)
{
	switch (deed->kind) {
	case TAKT_DEED_CANCEL:
		return "cancel";
	case TAKT_DEED_REQUEUE:
		return "requeue";
	case TAKT_DEED_HOLD:
		return deed->hold ? "hold" : "release";
	default:
		return "signal";
	}
}

void takt_deed_to_line(const struct takt_deed *deed, struct takt_str *out)
{
	takt_str_addf(out, "{\"do\":\"%s\"", word_of(deed));
	if (deed->kind == TAKT_DEED_SIGNAL)
		takt_str_addf(
			out,
			",\"signal\":%d,\"pid\":%d,\"start_ticks\":%" PRIu64 ",\"boot_id\":\"%s\"",
			deed->signal, deed->proc.pid, deed->proc.start_ticks, deed->proc.boot_id);
	else
		takt_str_addf(out, ",\"job_id\":%" PRIu64, deed->job_id);
	takt_str_add(out, "}\n");
}

static bool read_kind(const cJSON *root, struct takt_deed *ret)
{
	static const struct {
		const char *word;
		enum takt_deed_kind kind;
		bool hold;
	} words[] = {
		{"cancel", TAKT_DEED_CANCEL, false}, {"requeue", TAKT_DEED_REQUEUE, false},
		{"hold", TAKT_DEED_HOLD, true},	     {"release", TAKT_DEED_HOLD, false},
		{"signal", TAKT_DEED_SIGNAL, false},
	};
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "do"));

	for (size_t i = 0; text && i < TAKT_ARRAY_LEN(words); i++) {
		if (strcmp(words[i].word, text) != 0)
			continue;
		ret->kind = words[i].kind;
		ret->hold = words[i].hold;
		return true;
	}
	return false;
}

static bool read_signal(const cJSON *root, struct takt_deed *ret)
{
	uint64_t signal, pid;

	if (!takt_top_read_number(root, "signal", MAX_SIGNAL, &signal) ||
	    !takt_top_read_number(root, "pid", INT32_MAX, &pid) || signal == 0 || pid == 0 ||
	    !takt_top_read_number(root, "start_ticks", TAKT_JSON_MAX_INT, &ret->proc.start_ticks))
		return false;
	ret->signal = (int)signal;
	ret->proc.pid = (int32_t)pid;
	return takt_top_read_boot_id(root, ret->proc.boot_id);
}

static bool read_deed(const cJSON *root, struct takt_deed *ret)
{
	if (!read_kind(root, ret))
		return false;
	return ret->kind == TAKT_DEED_SIGNAL
		       ? read_signal(root, ret)
		       : takt_top_read_number(root, "job_id", TAKT_JSON_MAX_INT, &ret->job_id);
}

int takt_deed_from_line(const char *text, size_t len, struct takt_deed *ret, struct takt_err *err)
{
	struct takt_deed deed = {.kind = TAKT_DEED_NONE};
	cJSON *root;
	int rc = takt_json_parse(text, len, TAKT_DEED_LINE, &root, err);

	if (rc < 0)
		return rc;
	if (!read_deed(root, &deed))
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "takt top here knows no such deed");
	cJSON_Delete(root);
	if (rc == 0)
		*ret = deed;
	return rc;
}

void takt_deed_answer_to_line(bool bad, const char *text, struct takt_str *out)
{
	takt_str_addf(out, "{\"%s\":", bad ? "failed" : "done");
	takt_json_add_text(out, text);
	takt_str_add(out, "}\n");
}

int takt_deed_answer_from_line(const char *text, size_t len, bool *ret_bad, char *ret, size_t size,
			       struct takt_err *err)
{
	const char *done, *failed;
	cJSON *root;
	int rc = takt_json_parse(text, len, TAKT_TOP_MAX_LOOK, &root, err);

	if (rc < 0)
		return rc;
	done = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "done"));
	failed = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "failed"));
	if (done || failed) {
		*ret_bad = !done;
		takt_strcpy(ret, size, done ? done : failed);
	} else {
		rc = takt_err_set(err, -TAKT_E_CORRUPT, "takt there is older and only shows");
	}
	cJSON_Delete(root);
	return rc;
}
