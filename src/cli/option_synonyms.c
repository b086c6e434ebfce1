/* SPDX-License-Identifier: Apache-2.0 */
/* Options of other tools; apart from synonyms.c, so that a verb that is a program of its own does
 * not have all others in it. */
#include <string.h>

#include "base/compiler.h"
#include "cli/synonyms.h"

static const struct takt_option_synonym options[] = {
	{"time", 0, "time-limit", NULL},
	{"job-name", 'J', "name", NULL},
	{"gres", 0, "gpus", NULL},
	{"gpus-per-node", 'G', "gpus", NULL},
	{"cpus-per-task", 0, "cpus", NULL},
	{"memory", 0, "mem", NULL},
	{"chdir", 'D', "cwd", NULL},
	{"id", 'i', "gpu", NULL},
	{"error", 0, NULL, "'-o FILE' takes what the job prints and its errors together"},
	{"dependency", 'd', NULL, "'--after JOB:ok' and '--after JOB:any' do that"},
	{"partition", 0, NULL,
	 "one machine has no partitions; '--gpu-mem' and '--mig' choose GPUs"},
	{"ntasks", 0, NULL, "'--ranks=N' starts several processes"},
	{"account", 'A', NULL, "'--tenant TENANT' says whose share it counts against"},
};

const struct takt_option_synonym *takt_option_synonym(const char *name, size_t len, char letter)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(options); i++)
		if (name ? strlen(options[i].name) == len &&
				    strncmp(options[i].name, name, len) == 0
			 : letter && options[i].letter == letter)
			return &options[i];
	return NULL;
}
