/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where snapshots come from: the daemon, and while none answers the driver itself. One thread at a
 * time.
 */
#ifndef TAKT_TOP_SOURCE_H
#define TAKT_TOP_SOURCE_H

#include "top/top_model.h"

struct takt_top_source_config {
	const char *socket;    /* NULL = find it */
	const char *nvml_path; /* NULL = the loader's search path */
	bool driver_only;
	/* Called, perhaps again and again, while the daemon's first answer or the driver is waited
	 * for; NULL = none. */
	void (*meanwhile)(void);
	/* Steps of the past that a daemon is asked for, once; 0 = it is not asked. */
	uint32_t past_step_ms;
	const char
		*host; /* NULL = this machine; else see host_link.h, and the paths are not used */
};

struct takt_top_source;

/* `config` is borrowed until free. -ENOMEM. */
int takt_top_source_new(const struct takt_top_source_config *config, struct takt_top_source **ret);
void takt_top_source_free(struct takt_top_source *source);

/* A look at everything, and at the log of that job (0 = of none). *ret needs no init; the caller
 * finis it. Without a daemon and without a driver it has why_not. */
void takt_top_source_look(struct takt_top_source *source, uint64_t log_job,
			  struct takt_top_snapshot *ret);

/* proc_look.c: who the processes are, by /proc. `before`: processes of the last look, ascending
 * pid, of which nothing is read twice; empty at first. */
void takt_top_identify(struct takt_top_snapshot *snapshot, const struct takt_top_proc *before,
		       size_t before_count);

#endif
