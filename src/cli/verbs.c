/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of verbs. */
#include <string.h>

#include "cli/init.h"
#include "cli/verb.h"

static const struct takt_verb *const verbs[] = {
	&takt_verb_status,  &takt_verb_top,	   &takt_verb_topo,	     &takt_verb_submit,
	&takt_verb_run,	    &takt_verb_queue,	   &takt_verb_show,	     &takt_verb_explain,
	&takt_verb_logs,    &takt_verb_attach,	   &takt_verb_cancel,	     &takt_verb_hold,
	&takt_verb_release, &takt_verb_update,	   &takt_verb_freeze,	     &takt_verb_thaw,
	&takt_verb_requeue, &takt_verb_checkpoint, &takt_verb_progress,	     &takt_verb_wait,
	&takt_verb_gpu,	    &takt_verb_jobs,	   &takt_verb_health,	     &takt_verb_doctor,
	&takt_verb_report,  &takt_verb_history,	   &takt_verb_net,	     &takt_verb_alerts,
	&takt_verb_token,   &takt_verb_init,	   &takt_verb_config,	     &takt_verb_admin,
	&takt_verb_clock,   &takt_verb_simulate,   &takt_verb_replay_clocks, &takt_verb_forecast,
	&takt_verb_bench,   &takt_verb_tune,	   &takt_verb_record,	     &takt_verb_serve,
	&takt_verb_version, &takt_verb_help,	   &takt_verb_completion,    &takt_verb_man,
};

const struct takt_verb *takt_verb_at(size_t i)
{
	return i < TAKT_ARRAY_LEN(verbs) ? verbs[i] : NULL;
}

const struct takt_verb *takt_verb_find(const char *name)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}
