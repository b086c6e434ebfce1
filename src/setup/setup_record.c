/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of what was made: a section "[kind path]" an item, with the checksum of what was put
 * there and the copy of what was there before.
 */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/ini.h"
#include "base/mem.h"
#include "base/sys.h"
#include "setup/setup_impl.h"

static const char head[] =
	"# What takt init has made. takt init --remove takes away what is still as it says here.\n";
static const char about[] = "setup";

const char *const takt_setup_kinds[] = {"folder", "file", "link"};

void takt_setup_sum(const char *text, size_t len, char ret[TAKT_SETUP_SUM])
{
	struct sha256_ctx ctx;
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_init(&ctx);
	sha256_update(&ctx, len, (const uint8_t *)text);
	sha256_digest(&ctx, sizeof(digest), digest);
	takt_hex_encode(digest, sizeof(digest), ret);
}

/* What is to be taken away stays on record until it is. */
static bool is_on_record(const struct takt_setup_item *item, bool begun)
{
	if (item->fate == TAKT_SETUP_DROP)
		return begun;
	return item->recorded;
}

int takt_setup_record_text(const struct takt_setup_plan *plan, bool begun, struct takt_str *out)
{
	takt_str_addf(out, "%s[%s]\nversion = 1\nstate = %s\naccount = %s\n", head, about,
		      begun ? "begun" : "whole", plan->account_made ? "made" : "found");
	TAKT_VEC_EACH (item, &plan->items) {
		if (!is_on_record(item, begun))
			continue;
		takt_str_addf(out, "[%s %s]\n", takt_setup_kinds[item->kind], item->path);
		if (item->kind != TAKT_SETUP_FOLDER)
			takt_str_addf(out, "sha256 = %s\n", item->sum);
		if (begun && item->was[0])
			takt_str_addf(out, "was = %s\n", item->was);
		if (item->copy[0])
			takt_str_addf(out, "copy = %s\n", item->copy);
	}
	return out->rc;
}

struct takt_setup_item *takt_setup_item_at(struct takt_setup_plan *plan, const char *path)
{
	TAKT_VEC_EACH (item, &plan->items)
		if (strcmp(item->path, path) == 0)
			return item;
	return NULL;
}

static bool fits(const char *path)
{
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < ' ' || *c == ']' || *c == '\x7f')
			return false;
	return path[0] == '/' && strlen(path) < TAKT_SETUP_PATH - 32;
}

struct takt_setup_item *takt_setup_item_add(struct takt_setup_plan *plan, enum takt_setup_kind kind,
					    const char *path, const char *text,
					    struct takt_err *err)
{
	struct takt_setup_item item = {.kind = kind, .text = takt_strdup(text)};

	if (!fits(path)) {
		takt_err_set(err, -TAKT_E_USAGE,
			     "the path '%.100s' is too long or has odd characters", path);
	} else if (text && !item.text) {
		takt_err_set(err, -ENOMEM, "no memory for '%s'", path);
	} else {
		takt_strcpy(item.path, sizeof(item.path), path);
		if (text)
			takt_setup_sum(text, strlen(text), item.sum);
		if (takt_vec_push(&plan->items, item) == 0)
			return &plan->items.at[plan->items.len - 1];
		takt_err_set(err, -TAKT_E_LIMIT, "more than %d files", TAKT_SETUP_MAX_ITEMS);
	}
	takt_free(item.text);
	return NULL;
}

int takt_setup_sum_at(const char *root, const struct takt_setup_item *item,
		      char ret[TAKT_SETUP_SUM])
{
	struct takt_str text = TAKT_STR(TAKT_SETUP_MAX_TEXT);
	struct takt_setup_spot spot;
	struct stat st;
	int rc = takt_setup_stat(root, item->path, &st);

	if (rc == 0 && S_ISLNK(st.st_mode) != (item->kind == TAKT_SETUP_LINK))
		rc = -EEXIST;
	if (rc == 0 && item->kind == TAKT_SETUP_LINK) {
		char target[TAKT_SETUP_PATH];
		ssize_t n = -1;

		if (takt_setup_open(root, item->path, &spot) == 0) {
			n = readlinkat(spot.dirfd, spot.name, target, sizeof(target));
			close(spot.dirfd);
		}
		rc = n < 0 ? -EIO : takt_str_addn(&text, target, (size_t)n);
	} else if (rc == 0) {
		rc = takt_setup_text_of(root, item->path, &text);
	}
	if (rc == 0)
		takt_setup_sum(takt_str_text(&text), text.len, ret);
	takt_str_fini(&text);
	return rc;
}

bool takt_setup_unchanged(const char *root, const struct takt_setup_item *item)
{
	char sum[TAKT_SETUP_SUM];

	return takt_setup_sum_at(root, item, sum) == 0 &&
	       (strcmp(sum, item->sum) == 0 || strcmp(sum, item->was) == 0);
}

static int take_about(struct takt_setup_plan *plan, const struct takt_ini_line *line,
		      struct takt_err *err)
{
	if (!line->key)
		return 0;
	if (strcmp(line->key, "version") == 0 && strcmp(line->value, "1") != 0)
		return takt_err_set(err, -TAKT_E_VERSION, "%s: the record is of another takt",
				    line->where);
	if (strcmp(line->key, "state") == 0)
		plan->killed = strcmp(line->value, "whole") != 0;
	if (strcmp(line->key, "account") == 0)
		plan->account_made = strcmp(line->value, "made") == 0;
	return 0;
}

static int take_section(struct takt_setup_plan *plan, const struct takt_ini_line *line,
			struct takt_err *err)
{
	struct takt_setup_item *item;

	for (enum takt_setup_kind kind = 0; kind <= TAKT_SETUP_LINK; kind++) {
		size_t len = strlen(takt_setup_kinds[kind]);

		if (strncmp(line->section, takt_setup_kinds[kind], len) != 0 ||
		    line->section[len] != ' ')
			continue;
		item = takt_setup_item_add(plan, kind, line->section + len + 1, NULL, err);
		if (!item)
			return err->rc;
		item->recorded = true;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_CORRUPT, "%s: '[%.60s]' is nothing that takt init makes",
			    line->where, line->section);
}

static int take_line(void *ctx, const struct takt_ini_line *line, struct takt_err *err)
{
	struct takt_setup_plan *plan = ctx;
	struct takt_setup_item *item;

	if (strcmp(line->section, about) == 0)
		return take_about(plan, line, err);
	if (!line->key)
		return take_section(plan, line, err);
	if (plan->items.len == 0)
		return takt_err_set(err, -TAKT_E_CORRUPT, "%s: belongs to no file", line->where);
	item = &plan->items.at[plan->items.len - 1];
	if (strcmp(line->key, "sha256") == 0)
		takt_strcpy(item->sum, sizeof(item->sum), line->value);
	else if (strcmp(line->key, "was") == 0)
		takt_strcpy(item->was, sizeof(item->was), line->value);
	else if (strcmp(line->key, "copy") == 0 && fits(line->value))
		takt_strcpy(item->copy, sizeof(item->copy), line->value);
	else
		return takt_err_set(err, -TAKT_E_CORRUPT, "%s: '%.60s' is nothing of a record",
				    line->where, line->key);
	return 0;
}

/* Who sets takt up believes what it says: nobody else may have written it. */
static int check_owner(const struct takt_setup_plan *plan, struct takt_err *err)
{
	struct stat st;
	int rc = takt_setup_stat(plan->root, plan->record, &st);

	if (rc == 0 && (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022))
		return takt_err_set(err, -EPERM,
				    "the record '%s' is not yours alone to write: look at it, and "
				    "remove it",
				    plan->record);
	return rc;
}

/* The copy is not there yet, or both are names of one file. */
static bool was_not_replaced(const struct takt_setup_plan *plan, const struct takt_setup_item *item)
{
	struct stat there, copy;
	int rc;

	if (!plan->killed || !item->copy[0] || takt_setup_stat(plan->root, item->path, &there) < 0)
		return false;
	rc = takt_setup_stat(plan->root, item->copy, &copy);
	return rc == -ENOENT ||
	       (rc == 0 && there.st_dev == copy.st_dev && there.st_ino == copy.st_ino);
}

static void judge(struct takt_setup_plan *plan, struct takt_setup_item *item)
{
	struct stat st;
	bool there = takt_setup_stat(plan->root, item->path, &st) == 0;

	item->fate = item->kind == TAKT_SETUP_FOLDER
			     ? (there && S_ISDIR(st.st_mode) ? TAKT_SETUP_DROP : TAKT_SETUP_LEAVE)
		     : takt_setup_unchanged(plan->root, item) ? TAKT_SETUP_DROP
							      : TAKT_SETUP_LEAVE;
	item->recorded = there; /* what somebody has removed is nobody's to undo */
	item->half = was_not_replaced(plan, item);
	item->recorded = item->recorded && !item->half;
}

int takt_setup_record_load(struct takt_setup_plan *plan, struct takt_err *err)
{
	int rc = check_owner(plan, err);

	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc == 0)
		rc = takt_setup_text_of(plan->root, plan->record, &plan->before);
	if (rc == 0)
		rc = takt_ini_each(takt_str_text(&plan->before), plan->before.len, plan->record,
				   take_line, plan, err);
	else if (rc != -EPERM)
		takt_err_set(err, rc, "read the record '%s'", plan->record);
	if (rc < 0)
		return rc;
	plan->again = true;
	TAKT_VEC_EACH (item, &plan->items)
		judge(plan, item);
	return 0;
}

int takt_setup_record_write(const struct takt_setup_plan *plan, const struct takt_str *text,
			    struct takt_err *err)
{
	struct takt_setup_spot spot;
	int rc = takt_setup_open(plan->root, plan->record, &spot);

	if (rc < 0)
		return takt_err_set(err, rc, "open the folder of '%s'", plan->record);
	rc = takt_file_write_durable(takt_sys_real(), spot.dirfd, spot.name, takt_str_text(text),
				     text->len, 0644, err);
	close(spot.dirfd);
	return rc;
}
