/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of verbs. */
#include <string.h>

#include "cli/init.h"
#include "cli/verb.h"

static const struct takt_verb *const look[] = {
	&takt_verb_status, &takt_verb_top,    &takt_verb_web,	  &takt_verb_topo,
	&takt_verb_health, &takt_verb_doctor, &takt_verb_history, &takt_verb_report,
	&takt_verb_net,	   &takt_verb_alerts,
};
static const struct takt_verb *const jobs[] = {
	&takt_verb_submit,  &takt_verb_run,    &takt_verb_queue,  &takt_verb_show,
	&takt_verb_explain, &takt_verb_logs,   &takt_verb_attach, &takt_verb_wait,
	&takt_verb_jobs,    &takt_verb_cancel, &takt_verb_hold,	  &takt_verb_release,
	&takt_verb_update,  &takt_verb_freeze, &takt_verb_thaw,	  &takt_verb_requeue,
	&takt_verb_again,
};
static const struct takt_verb *const within[] = {&takt_verb_checkpoint, &takt_verb_progress};
static const struct takt_verb *const gpus[] = {&takt_verb_gpu, &takt_verb_clock, &takt_verb_tune,
					       &takt_verb_bench};
static const struct takt_verb *const keep[] = {&takt_verb_init, &takt_verb_serve, &takt_verb_config,
					       &takt_verb_admin, &takt_verb_token};
static const struct takt_verb *const study[] = {&takt_verb_record, &takt_verb_simulate,
						&takt_verb_replay_clocks, &takt_verb_forecast};
static const struct takt_verb *const about[] = {&takt_verb_version, &takt_verb_help,
						&takt_verb_completion, &takt_verb_man};

#define GROUP(title, list)                        \
	{                                         \
		title, list, TAKT_ARRAY_LEN(list) \
	}
static const struct {
	const char *title;
	const struct takt_verb *const *verbs;
	size_t count;
} groups[] = {
	GROUP("look at the machine", look),   GROUP("jobs", jobs),
	GROUP("within a job", within),	      GROUP("GPUs and clocks", gpus),
	GROUP("set it up and keep it", keep), GROUP("record and replay", study),
	GROUP("takt itself", about),
};

const struct takt_verb *takt_verb_at(size_t i, const char **ret_group)
{
	for (size_t g = 0; g < TAKT_ARRAY_LEN(groups); g++) {
		if (i < groups[g].count) {
			if (ret_group)
				*ret_group = i == 0 ? groups[g].title : NULL;
			return groups[g].verbs[i];
		}
		i -= groups[g].count;
	}
	return NULL;
}

const struct takt_verb *takt_verb_find(const char *name)
{
	const struct takt_verb *verb;

	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++)
		if (strcmp(verb->name, name) == 0)
			return verb;
	return NULL;
}
