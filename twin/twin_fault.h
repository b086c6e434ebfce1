/* SPDX-License-Identifier: Apache-2.0 */
/* Faults by their names, and putting them into a machine. The verb is in twin_fault.c, scripts in
 * twin_script.c, what they do in twin_trouble.c. */
#ifndef TAKT_TWIN_FAULT_H
#define TAKT_TWIN_FAULT_H

#include <stdio.h>

#include "takt_twin.h"

struct twin_fault_kind;

/* A fault, and when it comes about: so long after it is put into the machine. */
struct twin_fault_wish {
	const struct twin_fault_kind *kind;
	uint64_t value;
	uint64_t mask; /* GPUs */
	uint64_t at_ns;
};

/* NAME or NAME=VALUE; the error says what there is. */
int twin_fault_parse(const char *text, struct twin_fault_wish *ret, struct takt_err *err);

/* "all", or GPUs as twin_find_gpus takes them. */
int twin_fault_parse_gpus(const struct twin_map *map, const char *text, struct twin_fault_wish *ret,
			  struct takt_err *err);

/* "5s", "200ms", "1.5s" are not all: a whole number of s or ms. */
int twin_fault_parse_time(const char *text, uint64_t *ret_ns, struct takt_err *err);

/* What a GPU suffers is called; "" for none. */
const char *twin_fault_name(uint32_t trouble);

/* Puts them into the machine, ordered by time: those of time 0 come about at once, in their order;
 * the machine brings the others about, whoever lives. Checked as a whole before any is put. */
int twin_fault_apply(struct twin_map *map, const struct twin_fault_wish *wishes, uint32_t count,
		     struct takt_err *err);

/* A script: lines of TIME GPU FAULT in the order of time, with # comments. Read as a whole before
 * any of it is put into the machine; errors name file and line. *ret_end_ns is when the last comes
 * about, in the machine's time. */
int twin_script_put(struct twin_map *map, const char *path, uint64_t *ret_end_ns,
		    struct takt_err *err);

/* How far somebody has read what the machine's kernel would log. */
struct twin_kmsg {
	uint64_t seen[TWIN_MAX_GPUS];
};

/* From now on. */
void twin_kmsg_start(struct twin_map *map, struct twin_kmsg *kmsg);

/* Writes what was logged since, oldest first, in the kernel's words. */
void twin_kmsg_write(struct twin_map *map, struct twin_kmsg *kmsg, FILE *out);

/* Goes on writing until the machine's time is `until_ns`, UINT64_MAX for ever. */
void twin_kmsg_follow(struct twin_map *map, struct twin_kmsg *kmsg, uint64_t until_ns, FILE *out);

#endif
