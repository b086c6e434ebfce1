/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of a job as they are shown, out of its description. */
#include "codec/jobspec.h"
#include "codec/views.h"

static void copy_text(char *ret, size_t size, const char *text)
{
	takt_strcpy(ret, size, text ? text : "");
}

static void fill_open(const struct takt_jobspec *spec, struct takt_job_view *ret)
{
	ret->gpu_milli = spec->gpu_milli;
	ret->gpu_indices = spec->gpu_indices;
	takt_strcpy(ret->mig, sizeof(ret->mig), spec->mig);
	ret->preemptible = spec->preemptible;
	ret->freezable = spec->freezable;
	ret->pty = spec->pty;
	ret->stage = spec->stage;
	ret->wait_outside = spec->wait_outside;
	ret->checkpoint_signal = spec->checkpoint_signal;
	ret->checkpoint_grace_ms = spec->checkpoint_grace_ms;
	ret->ranks = spec->ranks;
	ret->estimate_ms = spec->estimate_ms;
	ret->idle_release_ms = spec->idle_release_ms;
	takt_strcpy(ret->clock_policy, sizeof(ret->clock_policy), spec->clock_policy);
	ret->max_slowdown_permille = spec->max_slowdown_permille;
	ret->slo_latency_us = spec->slo_latency_us;
	ret->slo_permille = spec->slo_permille;
	ret->retry_backoff_ms = spec->retries ? spec->retry_backoff_ms : 0;
	ret->deadline_ms = spec->deadline_ms;
}

/* What only the owner is to see. */
static void fill_own(const struct takt_jobspec *spec, struct takt_job_view *ret)
{
	takt_strcpy(ret->tenant, sizeof(ret->tenant), spec->tenant);
	takt_strcpy(ret->tags, sizeof(ret->tags), spec->tags);
	copy_text(ret->container, sizeof(ret->container), spec->container);
	takt_strcpy(ret->container_runtime, sizeof(ret->container_runtime),
		    spec->container_runtime);
	copy_text(ret->checkpoint_dir, sizeof(ret->checkpoint_dir), spec->checkpoint_dir);
	takt_words_text(spec->prefetch, ret->prefetch, sizeof(ret->prefetch));
	takt_words_text(spec->params, ret->params, sizeof(ret->params));
	copy_text(ret->hook, sizeof(ret->hook), spec->hook);
	copy_text(ret->output, sizeof(ret->output), spec->output);
}

void takt_job_view_terms(const struct takt_jobspec *spec, bool own, struct takt_job_view *ret)
{
	fill_open(spec, ret);
	if (own)
		fill_own(spec, ret);
}
