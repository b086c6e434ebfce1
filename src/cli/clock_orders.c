/* SPDX-License-Identifier: Apache-2.0 */
/* See clock_orders.h. */
#include "cli/clock_orders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/clock_ask.h"
#include "cli/units.h"
#include "codec/json.h"

enum {
	EXIT_CHANGED = 75, /* EX_TEMPFAIL: takt goes on trying */
	MAX_W = 10000,
};

void takt_clock_advise(const struct takt_clock_view *view, uint64_t gpu_mask, const char *words,
		       struct takt_err *err)
{
	struct takt_str list = TAKT_STR(1024);
	size_t used = strlen(err->msg);

	if ((err->rc != -EPERM && err->rc != -TAKT_E_UNAVAILABLE) || strstr(err->msg, "nvidia-smi"))
		return;
	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (gpu_mask >> i & 1)
			takt_str_addf(&list, "%s%u", list.len ? "," : "", view->gpu[i].index);
	if (list.len)
		snprintf(err->msg + used, sizeof(err->msg) - used,
			 "; by hand an administrator would run: nvidia-smi -i %s %s",
			 takt_str_text(&list), words);
	takt_str_fini(&list);
}

static int watts(const struct takt_cli *cli, uint32_t *ret_mw, struct takt_err *err)
{
	int64_t watts = 0;
	int rc = takt_cli_number(cli, "watts", 1, MAX_W, 0, &watts, err);

	if (rc == 0 && (watts == 0) != takt_cli_has(cli, "clear"))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "say '--watts N' for a cap or '--clear' for none any more");
	*ret_mw = (uint32_t)watts * 1000;
	return rc;
}

int takt_clock_cap_verb(struct takt_cli *cli, uint64_t gpu_mask, struct takt_clock_view *view,
			struct takt_err *err)
{
	const char *reason = takt_cli_value(cli, "reason");
	struct takt_clock_cap cap = {.gpu_mask = gpu_mask};
	char words[40];
	int rc = watts(cli, &cap.power_limit_mw, err);

	if (rc == 0 && reason && !takt_strcpy(cap.reason, sizeof(cap.reason), reason))
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--reason' may have %zu bytes",
				  sizeof(cap.reason) - 1);
	if (rc < 0)
		return rc;
	rc = takt_client_clock_cap(cli->client, &cap, view, err);
	snprintf(words, sizeof(words), "-pl %u", cap.power_limit_mw / 1000);
	if (rc < 0 && cap.power_limit_mw)
		takt_clock_advise(view, gpu_mask, words, err);
	return rc;
}

static int read_text(const char *path, struct takt_str *ret, struct takt_err *err)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char part[4096];
	size_t n;
	int rc = 0;

	if (!file)
		return takt_err_set(err, -errno, "open it");
	while (rc == 0 && (n = fread(part, 1, sizeof(part), file)) > 0)
		rc = takt_str_addn(ret, part, n);
	if (rc == 0 && ferror(file))
		rc = -EIO;
	if (file != stdin)
		fclose(file);
	return rc < 0 ? takt_err_set(err, rc, "read it") : 0;
}

int takt_clock_policy_read(const struct takt_cli *cli, struct takt_clock_policy *ret,
			   struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_CLOCK_POLICY_BYTES);
	const char *path = takt_cli_value(cli, "file");
	int rc;

	if (!path)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say which file: takt clock apply --file POLICY.toml");
	rc = read_text(path, &text, err);
	if (rc == 0)
		rc = takt_clock_policy_parse(takt_str_text(&text), text.len, ret, err);
	return rc < 0 ? takt_err_wrap(err, rc, "'%s'", path) : 0;
}

static struct takt_declared_bounds bounds_of(const struct takt_clock_gpu *gpu)
{
	return (struct takt_declared_bounds){
		.uuid = gpu->uuid,
		.name = gpu->name,
		.sm_min_mhz = gpu->list_min_mhz,
		.sm_max_mhz = gpu->list_max_mhz,
		.power_min_mw = gpu->power_min_mw,
		.power_max_mw = gpu->power_max_mw,
	};
}

/* What each GPU falls under, checked against what it takes. */
static int resolve(const struct takt_cli *cli, const struct takt_clock_policy *policy,
		   const struct takt_clock_view *view, struct takt_declaration *ret,
		   struct takt_err *err)
{
	for (uint32_t i = 0; i < view->gpu_count; i++) {
		struct takt_declared_bounds bounds = bounds_of(&view->gpu[i]);
		const struct takt_clock_rule *rule = takt_clock_policy_of(policy, &bounds);
		int rc = rule ? takt_declared_check(&rule->wish, &bounds, err) : 0;

		if (rc < 0)
			return takt_err_wrap(err, rc, "'%s': the entry of line %u, GPU %u",
					     takt_cli_value(cli, "file"), rule->line,
					     view->gpu[i].index);
		if (!rule)
			continue;
		ret->gpu[ret->count] = rule->wish;
		ret->gpu[ret->count++].index = view->gpu[i].index;
	}
	return 0;
}

static bool applies(const struct takt_clock_rule *rule, const struct takt_clock_view *view)
{
	bool found = !rule->uuid[0] && !rule->model[0];

	for (uint32_t i = 0; i < view->gpu_count; i++)
		found = found || (rule->uuid[0] ? strcmp(rule->uuid, view->gpu[i].uuid) == 0
						: strcmp(rule->model, view->gpu[i].name) == 0);
	return found;
}

/* A board may be missing for a day, and a file may be for several machines: no error. */
static void mention_unused(const struct takt_cli *cli, const struct takt_clock_policy *policy,
			   const struct takt_clock_view *view)
{
	for (uint32_t i = 0; i < policy->count; i++)
		if (!applies(&policy->rules[i], view))
			fprintf(stderr, "takt: %s: line %u: no GPU here is '%s'\n",
				takt_cli_value(cli, "file"), policy->rules[i].line,
				policy->rules[i].uuid[0] ? policy->rules[i].uuid
							 : policy->rules[i].model);
}

static void range_text(uint32_t min, uint32_t max, char ret[40])
{
	if (max)
		snprintf(ret, 40, "%u-%u MHz", min, max);
	else
		snprintf(ret, 40, "the driver's own");
}

static void watts_text(uint32_t mw, const char *none, char ret[40])
{
	if (mw)
		snprintf(ret, 40, "%u W", mw / 1000);
	else
		snprintf(ret, 40, "%s", none);
}

static void add_change(struct takt_str *out, const char *what, const char *was, const char *is)
{
	if (strcmp(was, is) != 0)
		takt_str_addf(out, "%s%s %s (was %s)", out->len ? ", " : "", what, is, was);
}

/* "SM clock 210-1200 MHz (was the driver's own), ..."; "" = nothing. */
static void changes_of(const struct takt_clock_gpu *gpu, const struct takt_declared *wish,
		       struct takt_str *out)
{
	char was[40], is[40];

	range_text(gpu->base_min_mhz, gpu->base_max_mhz, was);
	range_text(wish->sm_min_mhz, wish->sm_max_mhz, is);
	add_change(out, "SM clock", was, is);
	watts_text(gpu->base_power_mw, "as found", was);
	watts_text(wish->power_limit_mw, "as found", is);
	add_change(out, "power limit", was, is);
	watts_text(gpu->cap_power_mw, "none", was);
	watts_text(wish->cap_power_mw, was, is);
	add_change(out, "cap", was, is);
	add_change(out, "MIG", gpu->base_mig[0] ? gpu->base_mig : "left as it is",
		   wish->mig[0] ? wish->mig : "left as it is");
}

static void cut_by_hand(const struct takt_clock_gpu *gpu, const char *layout, struct takt_str *out)
{
	const char *uuid = gpu->uuid;

	if (!layout[0] || strcmp(gpu->base_mig, layout) == 0)
		return;
	takt_str_addf(out, "%snvidia-smi mig -i %s -dci; nvidia-smi mig -i %s -dgi",
		      out->len ? "; " : "", uuid, uuid);
	if (strcmp(layout, "none") != 0)
		takt_str_addf(out, "; nvidia-smi mig -i %s -cgi %s -C", uuid, layout);
}

/* The words that nvidia-smi would need, each a command of its own. */
static void by_hand(const struct takt_clock_gpu *gpu, const struct takt_declared *wish,
		    struct takt_str *out)
{
	uint32_t mw = wish->power_limit_mw;

	if (wish->cap_power_mw && (!mw || wish->cap_power_mw < mw))
		mw = wish->cap_power_mw;
	if (wish->sm_max_mhz)
		takt_str_addf(out, "nvidia-smi -i %s -lgc %u,%u", gpu->uuid, wish->sm_min_mhz,
			      wish->sm_max_mhz);
	else if (gpu->base_max_mhz)
		takt_str_addf(out, "nvidia-smi -i %s -rgc", gpu->uuid);
	if (mw)
		takt_str_addf(out, "%snvidia-smi -i %s -pl %u", out->len ? "; " : "", gpu->uuid,
			      mw / 1000);
	cut_by_hand(gpu, wish->mig, out);
}

/* A GPU that the policy does not name is not declared any more. */
static const struct takt_declared *wish_for(const struct takt_declaration *declaration,
					    uint32_t index)
{
	static const struct takt_declared none;

	for (uint32_t i = 0; i < declaration->count; i++)
		if (declaration->gpu[i].index == index)
			return &declaration->gpu[i];
	return &none;
}

static void say_change(struct takt_cli *cli, const struct takt_clock_gpu *gpu, const char *changes,
		       const char *commands, bool dry, bool first)
{
	if (!cli->json) {
		takt_str_addf(&cli->out, "GPU %u: %s\n", gpu->index, changes);
		if (dry && commands[0])
			takt_str_addf(&cli->out, "    by hand: %s\n", commands);
		return;
	}
	takt_str_addf(&cli->out, "%s{\"index\":%u,\"uuid\":", first ? "" : ",", gpu->index);
	takt_json_add_text(&cli->out, gpu->uuid);
	takt_str_add(&cli->out, ",\"changes\":");
	takt_json_add_text(&cli->out, changes);
	takt_str_add(&cli->out, ",\"by_hand\":");
	takt_json_add_text(&cli->out, commands);
	takt_str_add(&cli->out, "}");
}

/* Returns how many GPUs will stand otherwise than now. */
static uint32_t say_changes(struct takt_cli *cli, const struct takt_declaration *declaration,
			    const struct takt_clock_view *view, bool dry)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->gpu_count; i++) {
		const struct takt_declared *wish = wish_for(declaration, view->gpu[i].index);
		TAKT_CLEANUP(strp) struct takt_str changes = TAKT_STR(1024);
		TAKT_CLEANUP(strp) struct takt_str commands = TAKT_STR(1024);

		changes_of(&view->gpu[i], wish, &changes);
		by_hand(&view->gpu[i], wish, &commands);
		if (changes.len)
			say_change(cli, &view->gpu[i], takt_str_text(&changes),
				   takt_str_text(&commands), dry, count++ == 0);
	}
	return count;
}

static void say_dry(struct takt_cli *cli, const struct takt_declaration *declaration,
		    const struct takt_clock_view *view)
{
	uint32_t count;

	takt_str_add(&cli->out, cli->json ? "{\"dry_run\":true,\"gpus\":[" : "");
	count = say_changes(cli, declaration, view, true);
	if (cli->json)
		takt_str_add(&cli->out, "]}");
	else
		takt_str_addf(&cli->out, "%u of %u GPUs would change; nothing was changed\n", count,
			      view->gpu_count);
}

int takt_clock_apply_verb(struct takt_cli *cli, const struct takt_clock_policy *policy,
			  struct takt_clock_view *view, struct takt_err *err)
{
	struct takt_declaration declaration = {.count = 0};
	int rc = resolve(cli, policy, view, &declaration, err);
	uint32_t count;

	if (rc < 0)
		return rc;
	mention_unused(cli, policy, view);
	if (takt_cli_has(cli, "dry-run")) {
		say_dry(cli, &declaration, view);
		return 0;
	}
	if (!cli->json) {
		count = say_changes(cli, &declaration, view, false);
		takt_str_addf(&cli->out, "%u of %u GPUs changed\n", count, view->gpu_count);
	}
	rc = takt_clock_declare(cli, &declaration, view, err);
	if (rc < 0)
		cli->out.len = 0; /* none did */
	if (rc == -EPERM && !strstr(err->msg, "nvidia-smi"))
		rc = takt_err_wrap(err, rc, "'--dry-run' shows what an administrator would run");
	return rc;
}

static bool stands_changed(const struct takt_clock_gpu *gpu)
{
	return strcmp(gpu->clock_state, "changed") == 0 || strcmp(gpu->clock_state, "unknown") == 0;
}

int takt_clock_restore_verb(struct takt_cli *cli, struct takt_clock_view *view,
			    struct takt_err *err)
{
	int rc = takt_clock_declare(cli, NULL, view, err);

	for (uint32_t i = 0; rc >= 0 && i < view->gpu_count; i++) {
		const struct takt_clock_gpu *gpu = &view->gpu[i];

		if (stands_changed(gpu))
			rc = EXIT_CHANGED;
		if (cli->json)
			continue;
		if (stands_changed(gpu))
			takt_str_addf(&cli->out,
				      "GPU %u is not at its baseline, takt goes on trying: %s\n",
				      gpu->index, gpu->note);
		else if (gpu->lease_job)
			takt_str_addf(&cli->out, "GPU %u: job %llu has its clocks until it ends\n",
				      gpu->index, (unsigned long long)gpu->lease_job);
		if (gpu->cap_power_mw)
			takt_str_addf(
				&cli->out,
				"GPU %u: the cap of %u W stays until takt clock cap --clear\n",
				gpu->index, gpu->cap_power_mw / 1000);
	}
	return rc;
}
