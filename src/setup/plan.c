/* SPDX-License-Identifier: Apache-2.0 */
/* Which files follow from a machine and the answers, and what becomes of what is there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "setup/setup_impl.h"

#define SYSTEM_UNITS "/etc/systemd/system"

/* Where systemd looks for units, besides the administrator's folder. */
static const char *const unit_dirs[] = {"/run/systemd/system", "/usr/local/lib/systemd/system",
					"/usr/lib/systemd/system", "/lib/systemd/system"};
static const char *const sysusers_dirs[] = {"/run/sysusers.d", "/usr/local/lib/sysusers.d",
					    "/usr/lib/sysusers.d", "/lib/sysusers.d"};

static const char *const units[] = {
	"takt.slice",	       "takt-jobs.service",   "takt-launch.socket",
	"takt-launch.service", "takt-actuate.socket", "takt-actuate.service",
	"takt-clocks.service", "takt-alerts.service", "takt.service",
};

/* As their [Install] sections have it; takt.service asks for the others. */
static const struct {
	const char *unit, *target;
} enabled[] = {
	{"takt-jobs.service", "multi-user.target"},
	{"takt-launch.service", "multi-user.target"},
	{"takt-launch.socket", "sockets.target"},
	{"takt.service", "multi-user.target"},
};

void takt_setup_config_path(const struct takt_setup_place *place, char ret[TAKT_SETUP_PATH])
{
	snprintf(ret, TAKT_SETUP_PATH, "%s/takt/takt.conf",
		 place->who == TAKT_SETUP_ALL ? "/etc" : place->config_home);
}

void takt_setup_record_path(const struct takt_setup_place *place, char ret[TAKT_SETUP_PATH])
{
	snprintf(ret, TAKT_SETUP_PATH, "%s/takt-init/record",
		 place->who == TAKT_SETUP_ALL ? "/var/lib" : place->state_home);
}

/* The one that the record lies in is nobody else's, also when one who was killed has left it. */
static bool holds_record_alone(const struct takt_setup_plan *plan, const char *folder)
{
	size_t len = strlen(folder);

	return strncmp(plan->record, folder, len) == 0 &&
	       strcmp(plan->record + len, "/record") == 0;
}

/* Folders above it that are not there are made, too; those of a record are needed still. */
static int want_folders(struct takt_setup_plan *plan, const char *path, struct takt_err *err)
{
	char folder[TAKT_SETUP_PATH];
	struct takt_setup_item *item;
	struct stat st;
	int rc;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		item = takt_setup_item_at(plan, folder);
		rc = takt_setup_stat(plan->root, folder, &st);
		if (plan->root[0] && (rc == -ELOOP || (rc == 0 && S_ISLNK(st.st_mode))))
			return takt_err_set(err, -TAKT_E_IMPOSSIBLE,
					    "'%s' below '%s' is a link, which is not followed",
					    folder, plan->root);
		if (!item && rc != -ENOENT && !holds_record_alone(plan, folder))
			continue;
		if (!item)
			item = takt_setup_item_add(plan, TAKT_SETUP_FOLDER, folder, NULL, err);
		if (!item)
			return err->rc;
		item->recorded = true;
		item->fate = rc == -ENOENT ? TAKT_SETUP_MAKE : TAKT_SETUP_SAME;
	}
	return 0;
}

/* A name beside it that nobody has. */
static int choose_copy(struct takt_setup_plan *plan, struct takt_setup_item *item,
		       struct takt_err *err)
{
	struct stat st;

	for (unsigned i = 1; i < 100; i++) {
		char number[8] = "";

		if (i > 1)
			snprintf(number, sizeof(number), ".%u", i);
		snprintf(item->copy, sizeof(item->copy), "%.470s.before-takt-init%s", item->path,
			 number);
		if (takt_setup_stat(plan->root, item->copy, &st) == -ENOENT)
			return 0;
	}
	return takt_err_set(err, -EEXIST, "there are too many copies of '%s'", item->path);
}

static int judge(struct takt_setup_plan *plan, struct takt_setup_item *item, bool old,
		 struct takt_err *err)
{
	char now[TAKT_SETUP_SUM];
	bool unchanged = old && item->fate == TAKT_SETUP_DROP;
	struct stat st;
	int rc = takt_setup_stat(plan->root, item->path, &st);

	if (rc == -ENOENT) {
		item->fate = TAKT_SETUP_MAKE;
		item->recorded = true;
		return 0;
	}
	if (rc < 0)
		return takt_err_set(err, rc, "look at '%s'", item->path);
	rc = takt_setup_sum_at(plan->root, item, now);
	if (item->kind == TAKT_SETUP_LINK || (rc == 0 && strcmp(now, item->sum) == 0)) {
		item->fate = TAKT_SETUP_SAME; /* enabled, wherever the link leads */
		return 0;
	}
	if (rc < 0 && rc != -EEXIST && rc != -TAKT_E_LIMIT)
		return takt_err_set(err, rc, "read '%s'", item->path);
	item->recorded = true;
	item->fate = unchanged ? TAKT_SETUP_RENEW : TAKT_SETUP_REPLACE;
	return unchanged || item->half ? 0 : choose_copy(plan, item, err);
}

static int want(struct takt_setup_plan *plan, enum takt_setup_kind kind, const char *path,
		const char *text, struct takt_err *err)
{
	struct takt_setup_item *item;
	bool old;
	int rc = want_folders(plan, path, err);

	if (rc < 0)
		return rc;
	item = takt_setup_item_at(plan, path);
	old = item != NULL;
	if (!item)
		item = takt_setup_item_add(plan, kind, path, text, err);
	if (!item)
		return err->rc;
	if (old) {
		item->text = takt_strdup(text);
		if (!item->text)
			return takt_err_set(err, -ENOMEM, "no memory for '%s'", path);
		takt_strcpy(item->was, sizeof(item->was), kind == TAKT_SETUP_FILE ? item->sum : "");
		if (kind == TAKT_SETUP_FILE)
			takt_setup_sum(text, strlen(text), item->sum);
	}
	return judge(plan, item, old, err);
}

static const char *text_named(const char *name)
{
	for (const struct takt_setup_text *text = takt_setup_texts; text->name; text++)
		if (strcmp(text->name, name) == 0)
			return text->text;
	return NULL;
}

/* What a unit can name without quotes. */
static bool is_plain(const char *path)
{
	return path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "/-_.+,@:")] == '\0';
}

static int fill_in(const struct takt_setup_place *place, const char *text, struct takt_str *ret,
		   struct takt_err *err)
{
	char config[TAKT_SETUP_PATH];
	const struct {
		const char *word, *stands_for;
	} words[] = {{"@BINDIR@", place->bindir},
		     {"@LIBEXECDIR@", place->libexecdir},
		     {"@CONFIG@", config}};

	takt_setup_config_path(place, config);
	while (*text) {
		size_t len = strcspn(text, "@"), i = 0;

		takt_str_addn(ret, text, len);
		text += len;
		while (i < TAKT_ARRAY_LEN(words) &&
		       strncmp(text, words[i].word, strlen(words[i].word)) != 0)
			i++;
		if (i < TAKT_ARRAY_LEN(words) && !is_plain(words[i].stands_for))
			return takt_err_set(err, -TAKT_E_UNSUPPORTED,
					    "'%s' has characters that a unit cannot name",
					    words[i].stands_for);
		takt_str_add(ret, i < TAKT_ARRAY_LEN(words) ? words[i].stands_for
				  : *text		    ? "@"
							    : "");
		text += i < TAKT_ARRAY_LEN(words) ? strlen(words[i].word) : *text != '\0';
	}
	return ret->rc < 0 ? takt_err_set(err, ret->rc, "no memory for a unit") : 0;
}

static int want_text(struct takt_setup_plan *plan, const struct takt_setup_place *place,
		     const char *name, const char *path, struct takt_err *err)
{
	struct takt_str text = TAKT_STR(TAKT_SETUP_MAX_TEXT);
	int rc = fill_in(place, text_named(name), &text, err);

	if (rc == 0)
		rc = want(plan, TAKT_SETUP_FILE, path, takt_str_text(&text), err);
	takt_str_fini(&text);
	return rc;
}

static bool find_in(const char *root, const char *const *dirs, size_t count, const char *name,
		    char ret[TAKT_SETUP_PATH])
{
	char full[2 * TAKT_SETUP_PATH];

	for (size_t i = 0; i < count; i++) {
		snprintf(ret, TAKT_SETUP_PATH, "%s/%s", dirs[i], name);
		snprintf(full, sizeof(full), "%s%s", root, ret);
		if (access(full, F_OK) == 0)
			return true;
	}
	return false;
}

/* Whether a package brought it; *ret is where it is, or is to be. */
static bool find_unit(const struct takt_setup_plan *plan, const char *name,
		      char ret[TAKT_SETUP_PATH])
{
	if (find_in(plan->root, unit_dirs, TAKT_ARRAY_LEN(unit_dirs), name, ret))
		return true;
	snprintf(ret, TAKT_SETUP_PATH, SYSTEM_UNITS "/%s", name);
	return false;
}

/* One that the packages brought, or an administrator's own, is left; *ret is where it is then. */
static int want_unit(struct takt_setup_plan *plan, const struct takt_setup_place *place,
		     const char *name, char ret[TAKT_SETUP_PATH], struct takt_err *err)
{
	struct stat st;

	if (find_unit(plan, name, ret))
		return 0;
	if (!takt_setup_item_at(plan, ret) && takt_setup_stat(plan->root, ret, &st) == 0)
		return 0;
	return want_text(plan, place, name, ret, err);
}

/* The drop-in says nothing to a unit of an earlier takt, or of an administrator's, that asks for no
 * such word. */
static int check_listens(const struct takt_setup_plan *plan, const char *unit, struct takt_err *err)
{
	struct takt_str text = TAKT_STR(TAKT_SETUP_MAX_TEXT);
	int rc = takt_setup_touches(plan, unit) ? -ENOENT
						: takt_setup_text_of(plan->root, unit, &text);

	if (rc == 0 && !strstr(takt_str_text(&text), "$SETS"))
		rc = takt_err_set(
			err, -TAKT_E_CONFLICT,
			"'%s' does not know --clocks no: it is of an earlier takt, or somebody's "
			"own; its ExecStart has to end in $SETS $MORE",
			unit);
	else if (rc < 0 && rc != -ENOENT)
		takt_err_set(err, rc, "read '%s'", unit);
	takt_str_fini(&text);
	return rc == -ENOENT ? 0 : rc;
}

static int want_system_units(struct takt_setup_plan *plan, const struct takt_setup_place *place,
			     bool clocks, struct takt_err *err)
{
	char path[TAKT_SETUP_PATH], link[TAKT_SETUP_PATH];
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(units) && rc == 0; i++)
		rc = want_unit(plan, place, units[i], path, err);
	if (rc == 0 && !clocks) {
		(void)find_unit(plan, "takt-actuate.service", path);
		rc = check_listens(plan, path, err);
	}
	if (rc == 0 && !clocks)
		rc = want_text(plan, place, "set-no-clocks.conf",
			       SYSTEM_UNITS "/takt-actuate.service.d/takt-init.conf", err);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(enabled) && rc == 0; i++) {
		(void)find_unit(plan, enabled[i].unit, path);
		snprintf(link, sizeof(link), SYSTEM_UNITS "/%s.wants/%s", enabled[i].target,
			 enabled[i].unit);
		rc = want(plan, TAKT_SETUP_LINK, link, path, err);
	}
	return rc;
}

static int want_account(struct takt_setup_plan *plan, const struct takt_setup_place *place,
			struct takt_err *err)
{
	char path[TAKT_SETUP_PATH];

	if (find_in(plan->root, sysusers_dirs, TAKT_ARRAY_LEN(sysusers_dirs), "takt.conf", path))
		return 0;
	return want_text(plan, place, "takt.sysusers", "/etc/sysusers.d/takt.conf", err);
}

static int want_for_all(struct takt_setup_plan *plan, const struct takt_setup_place *place,
			const struct takt_setup_machine *machine,
			const struct takt_setup_answers *answers, struct takt_err *err)
{
	static const char pam[] = "/etc/pam.d/takt";
	int rc = 0;

	if (machine->pam && (!machine->pam_service || takt_setup_item_at(plan, pam)))
		rc = want_text(plan, place, "pam", pam, err);
	if (rc < 0 || !machine->systemd)
		return rc;
	plan->account_needed = !machine->account;
	if (!machine->account || takt_setup_item_at(plan, "/etc/sysusers.d/takt.conf"))
		rc = want_account(plan, place, err);
	return rc == 0 ? want_system_units(plan, place, answers->clocks, err) : rc;
}

static int want_for_me(struct takt_setup_plan *plan, const struct takt_setup_place *place,
		       const struct takt_setup_machine *machine, struct takt_err *err)
{
	char unit[TAKT_SETUP_PATH], link[TAKT_SETUP_PATH];
	int rc;

	if (!machine->user_manager)
		return 0;
	snprintf(unit, sizeof(unit), "%s/systemd/user/takt.service", place->config_home);
	snprintf(link, sizeof(link), "%s/systemd/user/default.target.wants/takt.service",
		 place->config_home);
	rc = want_text(plan, place, "user/takt.service", unit, err);
	return rc == 0 ? want(plan, TAKT_SETUP_LINK, link, unit, err) : rc;
}

static int want_config(struct takt_setup_plan *plan, const struct takt_setup_place *place,
		       const struct takt_setup_machine *machine,
		       const struct takt_setup_answers *answers, struct takt_err *err)
{
	struct takt_str earlier = TAKT_STR(TAKT_SETUP_MAX_TEXT),
			text = TAKT_STR(TAKT_SETUP_MAX_TEXT);
	char path[TAKT_SETUP_PATH];
	int rc;

	takt_setup_config_path(place, path);
	rc = takt_setup_text_of(plan->root, path, &earlier);
	if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR)
		takt_err_set(err, rc, "read '%s'", path);
	else
		rc = takt_setup_config_text(place, machine, answers, takt_str_text(&earlier), &text,
					    err);
	if (rc == 0)
		rc = want(plan, TAKT_SETUP_FILE, path, takt_str_text(&text), err);
	takt_str_fini(&earlier);
	takt_str_fini(&text);
	return rc;
}

static void begin_plan(const struct takt_setup_place *place, struct takt_setup_plan *ret)
{
	*ret = (struct takt_setup_plan){.root = place->root,
					.items = TAKT_VEC_INIT(TAKT_SETUP_MAX_ITEMS),
					.before = TAKT_STR(TAKT_SETUP_MAX_TEXT),
					.lock_fd = -1};
	takt_setup_record_path(place, ret->record);
}

int takt_setup_plan(const struct takt_setup_place *place, const struct takt_setup_machine *machine,
		    const struct takt_setup_answers *answers, struct takt_setup_plan *ret,
		    struct takt_err *err)
{
	int rc;

	begin_plan(place, ret);
	rc = takt_setup_record_load(ret, err);
	if (rc == 0)
		rc = want_folders(ret, ret->record, err);
	if (rc == 0)
		rc = want_config(ret, place, machine, answers, err);
	if (rc < 0)
		return rc;
	return place->who == TAKT_SETUP_ALL ? want_for_all(ret, place, machine, answers, err)
					    : want_for_me(ret, place, machine, err);
}

int takt_setup_plan_removal(const struct takt_setup_place *place, struct takt_setup_plan *ret,
			    struct takt_err *err)
{
	int rc;

	begin_plan(place, ret);
	ret->removal = true;
	rc = takt_setup_record_load(ret, err);
	if (rc == 0 && !ret->again)
		rc = takt_err_set(err, -TAKT_E_NOT_FOUND,
				  "takt init has made nothing here: there is no '%s'", ret->record);
	for (size_t i = 0; rc == 0 && i < ret->items.len / 2; i++) {
		struct takt_setup_item last = ret->items.at[ret->items.len - 1 - i];

		ret->items.at[ret->items.len - 1 - i] = ret->items.at[i];
		ret->items.at[i] = last;
	}
	return rc;
}

void takt_setup_plan_fini(struct takt_setup_plan *plan)
{
	TAKT_VEC_EACH (item, &plan->items)
		takt_free(item->text);
	takt_vec_fini(&plan->items);
	takt_str_fini(&plan->before);
	if (plan->lock_fd >= 0)
		close(plan->lock_fd);
}
