/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin: makes, loads, breaks and shows simulated GPU machines. This file: verbs and errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "takt_twin.h"

const struct twin_verb *const twin_verbs[] = {
	&twin_verb_create,  &twin_verb_destroy, &twin_verb_list, &twin_verb_board,
	&twin_verb_machine, &twin_verb_exec,	&twin_verb_load, &twin_verb_fault,
	&twin_verb_kmsg,    &twin_verb_state,	&twin_verb_time, &twin_verb_man,
};
const size_t twin_verb_count = TAKT_ARRAY_LEN(twin_verbs);

static void usage(FILE *out)
{
	fprintf(out, "Simulated GPU machines for any NVML client. Nothing here is a real GPU.\n\n"
		     "usage: takt-twin VERB [arguments]\n\n");
	for (size_t i = 0; i < twin_verb_count; i++)
		fprintf(out, "  %-8s %s\n", twin_verbs[i]->name, twin_verbs[i]->summary);
	fprintf(out,
		"\n"
		"  export TAKT_TWIN=$(takt-twin create hgx-h100)\n"
		"  takt-twin load --profile gemm --gpus 0,1 --seconds 60 &\n"
		"  takt-twin exec -- nvtop\n\n"
		"takt-twin VERB --help tells more. Exit status: 0 done, 64 wrong use, 65 bad "
		"data,\n"
		"66 not found, 69 not available, 75 in conflict, else what VERB --help says.\n");
}

static void verb_help(const struct twin_verb *verb)
{
	printf("%s.\n\nusage: takt-twin %s %s\n\n%s", verb->summary, verb->name, verb->usage,
	       verb->help);
}

int twin_bad_option(const struct twin_verb *verb, char **argv, struct takt_err *err)
{
	return takt_err_set(
		err, -TAKT_E_USAGE,
		"%s: option '%s' is unknown or lacks its value; see takt-twin %s --help",
		verb->name, argv[optind - 1], verb->name);
}

int twin_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		struct takt_err *err)
{
	unsigned long long value;

	if (takt_parse_u64(text, min, max, &value) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s takes a whole number from %llu to %llu, not '%s'", option,
				    (unsigned long long)min, (unsigned long long)max, text);
	*ret = value;
	return 0;
}

int twin_open_machine(const char *machine, struct twin_map **ret, struct takt_err *err)
{
	const char *path = machine ? machine : getenv("TAKT_TWIN");

	if (!path || !*path)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"no machine: set TAKT_TWIN to what `takt-twin create` printed, or "
			"give --machine FILE");
	return twin_map_open(path, ret, err);
}

int twin_find_gpu(const struct twin_machine *machine, const char *name, uint32_t *ret,
		  struct takt_err *err)
{
	unsigned long long index;

	if (takt_parse_u64(name, 0, machine->gpu_count - 1, &index) == 0) {
		*ret = (uint32_t)index;
		return 0;
	}
	for (uint32_t i = 0; strncmp(name, "GPU-", 4) == 0 && i < machine->gpu_count; i++) {
		if (strncmp(machine->gpus[i].uuid, name, strlen(name)) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_NOT_FOUND,
			    "no GPU '%s': this machine has 0 to %u, or say its UUID", name,
			    machine->gpu_count - 1);
}

int twin_find_gpus(const struct twin_machine *machine, const char *list, uint64_t *ret_mask,
		   struct takt_err *err)
{
	uint64_t mask = 0;
	char name[64];

	while (*list) {
		size_t n = strcspn(list, ",");
		uint32_t gpu;
		int rc;

		snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name) - 1),
			 list);
		rc = twin_find_gpu(machine, name, &gpu, err);
		if (rc < 0)
			return rc;
		mask |= 1ull << gpu;
		list += n + (list[n] == ',');
	}
	*ret_mask = mask;
	return 0;
}

static int run_verb(const struct twin_verb *verb, int argc, char **argv)
{
	struct takt_err err = {0};
	char text[TAKT_ERR_MSG + 80];
	int rc;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		verb_help(verb);
		return 0;
	}
	opterr = 0;
	rc = verb->run(argc, argv, &err);
	if (rc >= 0)
		return rc;
	fprintf(stderr, "takt-twin %s: %s\n", verb->name, takt_err_text(&err, text, sizeof(text)));
	return takt_err_exit_status(rc);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < twin_verb_count; i++) {
		if (strcmp(name, twin_verbs[i]->name) == 0)
			return run_verb(twin_verbs[i], argc - 1, argv + 1);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		usage(stdout);
		return 0;
	}
	if (*name)
		fprintf(stderr, "takt-twin: no verb '%s'\n\n", name);
	usage(stderr);
	return takt_err_exit_status(-TAKT_E_USAGE);
}
