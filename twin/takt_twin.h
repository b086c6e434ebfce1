/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of takt-twin share. One file a verb; twin_main.c has the table. */
#ifndef TAKT_TWIN_TAKT_TWIN_H
#define TAKT_TWIN_TAKT_TWIN_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "twin_shared.h"

/* A verb gets its own arguments (argv[0] is its name), prints its result and returns an exit
 * status, or a negative code with the sentence in err, which main prints. */
struct twin_verb {
	const char *name;
	const char *usage;   /* arguments, for the first line of its help */
	const char *summary; /* one line */
	const char *help;    /* options and examples */
	int (*run)(int argc, char **argv, struct takt_err *err);
};

extern const struct twin_verb twin_verb_board, twin_verb_create, twin_verb_destroy, twin_verb_list,
	twin_verb_exec, twin_verb_load, twin_verb_fault, twin_verb_kmsg, twin_verb_machine,
	twin_verb_man, twin_verb_state, twin_verb_time;

/* All of them, in the order of --help (twin_main.c). */
extern const struct twin_verb *const twin_verbs[];
extern const size_t twin_verb_count;

/* Error for an option that getopt_long did not know or that lacks its value; names it. */
int twin_bad_option(const struct twin_verb *verb, char **argv, struct takt_err *err);

/* Whole number in [min, max] from an option's value; the error names the option. */
int twin_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		struct takt_err *err);

/* `machine` if given, else $TAKT_TWIN; mapped. */
int twin_open_machine(const char *machine, struct twin_map **ret, struct takt_err *err);

/* Files that nvidia-smi printed, taken together (twin_machine.c). */
struct twin_capture;
int twin_read_captures(int count, char *const *paths, struct twin_capture **ret,
		       struct takt_err *err);

/* One GPU named by its index or its UUID (or the beginning of one). */
int twin_find_gpu(const struct twin_machine *machine, const char *name, uint32_t *ret,
		  struct takt_err *err);

/* As a bit mask; "1,3" or UUIDs, in any order. */
int twin_find_gpus(const struct twin_machine *machine, const char *list, uint64_t *ret_mask,
		   struct takt_err *err);

/* How fast a set of at least two GPUs communicates at this moment, in permille of the best set of
 * that size that the machine has when all is well (twin_rings.c). 1000 for a single one. */
int twin_rings_permille(struct twin_map *map, uint64_t set, uint32_t *ret, struct takt_err *err);

static inline void takt_cleanup_twin_mapp(struct twin_map **map)
{
	twin_map_close(*map);
}

#endif
