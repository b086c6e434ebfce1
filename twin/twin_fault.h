/* SPDX-License-Identifier: Apache-2.0 */
/* Faults by their names, and bringing one about. The verb is in twin_fault.c, scripts in
 * twin_script.c. */
#ifndef TAKT_TWIN_FAULT_H
#define TAKT_TWIN_FAULT_H

#include <stdio.h>

#include "takt_twin.h"

struct twin_fault_kind;

/* A fault, and when it comes about: after the start of the script. */
struct twin_fault_wish {
	const struct twin_fault_kind *kind;
	uint64_t value;
	uint32_t mask; /* GPUs */
	uint64_t at_ns;
};

/* NAME or NAME=VALUE; the error says what there is. */
int twin_fault_parse(const char *text, struct twin_fault_wish *ret, struct takt_err *err);

/* "all", or GPUs as twin_find_gpus takes them. */
int twin_fault_parse_gpus(const struct twin_map *map, const char *text, struct twin_fault_wish *ret,
			  struct takt_err *err);

/* "5s", "200ms", "1.5s" are not all: a whole number of s or ms. */
int twin_fault_parse_time(const char *text, uint64_t *ret_ns, struct takt_err *err);

/* Now. Kernel-log lines are appended to `log` unless it is NULL. */
int twin_fault_apply(struct twin_map *map, const struct twin_fault_wish *wish, FILE *log,
		     struct takt_err *err);

/* Plays a script: lines of TIME GPU FAULT in the order of time, with # comments. Read as a whole
 * before its first fault comes about; errors name file and line. */
int twin_script_play(struct twin_map *map, const char *path, FILE *log, struct takt_err *err);

/* Sleeps until so long after `start_ns`. */
void twin_script_wait(uint64_t start_ns, uint64_t after_ns);

#endif
