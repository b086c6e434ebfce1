/* SPDX-License-Identifier: Apache-2.0 */
/* What takt init says: the machine, what was done file by file, how to undo it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/init.h"
#include "codec/json.h"

static const char *const cgroup_words[] = {"not known", "no version 2", "version 2"};

static void add_line(struct takt_str *out, const char *what, const char *text)
{
	takt_str_addf(out, "  %-11s %s\n", what, text);
}

static void gpus_text(const struct takt_setup_machine *machine, char *ret, size_t size)
{
	char driver[64] = "no driver is loaded";

	if (machine->driver[0])
		snprintf(driver, sizeof(driver), "driver %s", machine->driver);
	if (machine->gpu_count)
		snprintf(ret, size, "%u of NVIDIA, %s", machine->gpu_count, driver);
	else
		snprintf(ret, size, "none is seen, %s", driver);
}

static void users_text(const struct takt_setup_machine *machine, char *ret, size_t size)
{
	snprintf(ret, size, "%u who log in%s%s%s", machine->user_count,
		 machine->user_count ? ": " : "", machine->users,
		 machine->directory ? ", and those of a directory service" : "");
}

static void disk_text(const struct takt_setup_machine *machine, char *ret, size_t size)
{
	if (!machine->disk_known)
		snprintf(ret, size, "not known");
	else if (machine->disk_free_mib >= 10 * 1024)
		snprintf(ret, size, "%" PRIu64 " GiB are free in %s", machine->disk_free_mib / 1024,
			 machine->disk);
	else
		snprintf(ret, size, "%" PRIu64 " MiB are free in %s%s", machine->disk_free_mib,
			 machine->disk, machine->disk_free_mib < 1024 ? ", which is little" : "");
}

static const char *services_text(const struct takt_init *init)
{
	if (init->place.who == TAKT_SETUP_ME)
		return init->machine.user_manager ? "a systemd of yours"
						  : "no systemd of yours runs";
	return init->machine.systemd ? "systemd" : "no systemd";
}

static void add_about(const struct takt_init *init, struct takt_str *out)
{
	if (init->live)
		takt_str_add(out, "This machine");
	else
		takt_str_addf(out, "Below %s", init->root);
	if (init->machine.system[0])
		takt_str_addf(out, ", %s", init->machine.system);
	takt_str_add(out, ":\n");
}

void takt_init_print_machine(const struct takt_init *init, struct takt_str *out)
{
	const struct takt_setup_machine *machine = &init->machine;
	bool all = init->place.who == TAKT_SETUP_ALL;
	char text[TAKT_SETUP_PATH + 100];

	add_about(init, out);
	gpus_text(machine, text, sizeof(text));
	add_line(out, "GPUs", text);
	users_text(machine, text, sizeof(text));
	add_line(out, "users", text);
	snprintf(text, sizeof(text), "%s; takt would hand out the same GPUs", machine->manager);
	add_line(out, "managed by", machine->manager[0] ? text : "nobody else");
	add_line(out, "cgroups", cgroup_words[machine->cgroups]);
	disk_text(machine, text, sizeof(text));
	add_line(out, "disk", text);
	add_line(out, "services", services_text(init));
	if (!all && machine->serves_all)
		add_line(out, "takt",
			 "one for all users is there, which keeps the GPUs: yours only looks");
	if (all) {
		add_line(out, "PAM",
			 !machine->pam		? "none"
			 : machine->pam_service ? "has a service takt"
						: "has no service takt");
		add_line(out, "account", machine->account ? "takt is there" : "there is no takt");
	}
	takt_str_add(out, "\n");
}

bool takt_init_is_left(const struct takt_setup_item *item)
{
	return item->fate == TAKT_SETUP_LEAVE && item->recorded;
}

static const char *word_of(const struct takt_setup_item *item, bool dry_run)
{
	static const char *const done[] = {"made",     "is there", "renewed",
					   "replaced", "removed",  "left"};
	static const char *const would[] = {"would make",    "is there",     "would renew",
					    "would replace", "would remove", "would leave"};

	return dry_run ? would[item->fate] : done[item->fate];
}

static void add_item(const struct takt_init *init, const struct takt_setup_item *item,
		     struct takt_str *out)
{
	takt_str_addf(out, "  %-13s %s%s", word_of(item, init->dry_run), init->root, item->path);
	if (item->kind == TAKT_SETUP_LINK && item->fate == TAKT_SETUP_MAKE)
		takt_str_add(out, " (it starts with the machine)");
	if (item->fate == TAKT_SETUP_REPLACE)
		takt_str_addf(out, "\n%16swhat was there: %s%s", "", init->root, item->copy);
	if (item->fate == TAKT_SETUP_DROP && item->copy[0])
		takt_str_addf(out, "\n%16swhat was there before is back", "");
	if (takt_init_is_left(item))
		takt_str_addf(out, " (%s)",
			      item->kind == TAKT_SETUP_FOLDER ? "others have files in it"
							      : "changed since takt init made it");
	if (takt_init_is_left(item) && item->copy[0])
		takt_str_addf(out, "\n%16swhat was there before: %s%s", "", init->root, item->copy);
	takt_str_add(out, "\n");
}

/* Folders and files that were there already are no news, unless nothing else is. */
static void add_items(const struct takt_init *init, struct takt_str *out)
{
	TAKT_VEC_EACH (item, &init->plan.items)
		if (item->recorded &&
		    (item->fate != TAKT_SETUP_SAME || item->kind == TAKT_SETUP_FILE))
			add_item(init, item, out);
	for (size_t i = 0; i < init->command_count; i++)
		takt_str_addf(out, "  %-13s %s\n", init->dry_run ? "would run" : "ran",
			      init->commands[i]);
}

/* What is not takt init's to do. */
static void add_next(const struct takt_init *init, struct takt_str *out)
{
	char config[TAKT_SETUP_PATH];

	takt_setup_config_path(&init->place, config);
	if (init->place.who == TAKT_SETUP_ALL && !init->machine.systemd)
		takt_str_addf(out,
			      "There is no systemd: have root run '%s/takt serve' when the machine "
			      "starts.\n",
			      init->bindir);
	if (init->place.who == TAKT_SETUP_ALL && init->machine.systemd && !init->live &&
	    init->plan.account_needed)
		takt_str_add(out,
			     "systemd-sysusers makes the account takt when that system starts.\n");
	if (init->place.who == TAKT_SETUP_ME && !init->machine.user_manager)
		takt_str_addf(out, "Start it: %s/takt serve --config %s\n", init->bindir, config);
	if (init->place.who == TAKT_SETUP_ME && init->machine.user_manager)
		takt_str_add(out,
			     "It runs while you are logged in. To have it run always: loginctl "
			     "enable-linger\n");
	if (init->place.who == TAKT_SETUP_ME)
		takt_str_add(out, "Clocks and power limits only root's takt can set.\n");
	if (strcmp(init->answers.web, "off") != 0)
		takt_str_addf(out, "The page asks for a token: takt token add. It is at %s%s\n",
			      init->answers.tls_certificate[0] ? "https://" : "http://",
			      strcmp(init->answers.web, "local") == 0 ? "127.0.0.1:9832"
								      : init->answers.web);
	takt_str_addf(out, "To undo all of it: takt init --remove%s%s\n",
		      init->live ? "" : " --root ", init->root);
}

void takt_init_print_done(const struct takt_init *init, struct takt_str *out)
{
	if (!init->plan.changes) {
		takt_str_add(out, "All of it is there already; nothing was changed.\n");
		return;
	}
	takt_str_add(out, init->dry_run ? "Nothing was changed. Without --dry-run:\n" : "Done:\n");
	add_items(init, out);
	takt_str_add(out, "\n");
	add_next(init, out);
}

static void add_jobs(const struct takt_init *init, struct takt_str *out)
{
	if (init->running)
		takt_str_addf(out,
			      "%u jobs run. They go on without takt, and are found again "
			      "when it is set up again.\n",
			      init->running);
	if (init->waiting)
		takt_str_addf(out,
			      "%u jobs wait. They stay in the queue, and nothing starts them "
			      "until takt is set up again.\n",
			      init->waiting);
}

void takt_init_print_removed(const struct takt_init *init, const char *purged, struct takt_str *out)
{
	char state[2 * PATH_MAX];

	takt_str_add(out, init->dry_run ? "Nothing was changed. Without --dry-run:\n" : "Done:\n");
	add_items(init, out);
	takt_str_add(out, "\n");
	add_jobs(init, out);
	snprintf(state, sizeof(state), "%s%s", init->root, init->config.state_dir);
	if (purged)
		takt_str_addf(out, "%s: %s\n", init->dry_run ? "To be deleted" : "Deleted", purged);
	else if (access(state, F_OK) == 0)
		takt_str_addf(out,
			      "Jobs' records and history stay in %s%s. takt init --remove --purge "
			      "deletes them.\n",
			      state, init->plan.account_made ? ", and the account takt stays" : "");
}

static void add_text_field(struct takt_str *out, const char *name, const char *text)
{
	takt_json_add_name(out, name, false);
	takt_json_add_text(out, text);
}

static void add_found(const struct takt_init *init, struct takt_str *out)
{
	static const char *const cgroups[] = {"unknown", "v1", "v2"};
	const struct takt_setup_machine *machine = &init->machine;

	takt_str_addf(out, ",\"found\":{\"gpus\":%u", machine->gpu_count);
	if (machine->driver[0])
		add_text_field(out, "driver", machine->driver);
	if (machine->system[0])
		add_text_field(out, "system", machine->system);
	takt_str_addf(out, ",\"users\":%u,\"directory\":%s", machine->user_count,
		      machine->directory ? "true" : "false");
	if (machine->manager[0])
		add_text_field(out, "manager", machine->manager);
	add_text_field(out, "cgroups", cgroups[machine->cgroups]);
	if (machine->disk_known)
		takt_str_addf(out, ",\"disk_free_mib\":%" PRIu64, machine->disk_free_mib);
	takt_str_addf(out, ",\"systemd\":%s,\"user_manager\":%s,\"pam_service\":%s,\"account\":%s}",
		      machine->systemd ? "true" : "false", machine->user_manager ? "true" : "false",
		      machine->pam_service ? "true" : "false", machine->account ? "true" : "false");
}

static void add_answers(const struct takt_init *init, struct takt_str *out)
{
	takt_str_addf(out, ",\"answers\":{\"users\":\"%s\",\"observe\":%s,\"clocks\":%s",
		      init->place.who == TAKT_SETUP_ALL ? "all" : "me",
		      init->answers.observe ? "true" : "false",
		      init->answers.clocks ? "true" : "false");
	add_text_field(out, "web", init->answers.web);
	takt_str_add(out, "}");
}

static void add_steps(const struct takt_init *init, struct takt_str *out)
{
	bool first = true;

	takt_str_add(out, ",\"steps\":[");
	TAKT_VEC_EACH (item, &init->plan.items) {
		if (!item->recorded)
			continue;
		takt_str_addf(out, "%s{\"kind\":\"%s\",\"do\":\"%s\"", first ? "" : ",",
			      takt_setup_kinds[item->kind], takt_setup_fates[item->fate]);
		add_text_field(out, "path", item->path);
		if (item->copy[0])
			add_text_field(out, "copy", item->copy);
		takt_str_add(out, "}");
		first = false;
	}
	takt_str_add(out, "],\"commands\":[");
	for (size_t i = 0; i < init->command_count; i++) {
		takt_str_add(out, i ? "," : "");
		takt_json_add_text(out, init->commands[i]);
	}
	takt_str_add(out, "]");
}

void takt_init_print_json(const struct takt_init *init, const char *purged, struct takt_str *out)
{
	takt_str_addf(out, "{\"dry_run\":%s,\"changes\":%s", init->dry_run ? "true" : "false",
		      init->plan.changes ? "true" : "false");
	if (!init->live)
		add_text_field(out, "root", init->root);
	if (!init->plan.removal) {
		add_found(init, out);
		add_answers(init, out);
	} else {
		takt_str_addf(out, ",\"running\":%u,\"waiting\":%u", init->running, init->waiting);
	}
	add_steps(init, out);
	if (purged)
		add_text_field(out, "purged", purged);
	takt_str_add(out, "}\n");
}
