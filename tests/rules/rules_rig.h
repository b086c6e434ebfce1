/* SPDX-License-Identifier: Apache-2.0 */
/* A healthy board under load, second by second, and faults that a test puts on it. */
#ifndef TAKT_TESTS_RULES_RULES_RIG_H
#define TAKT_TESTS_RULES_RULES_RIG_H

#include "rules/rules.h"

enum {
	RIG_SECONDS = 1200, /* of one run; what lasts begins in the middle */
	RIG_MIDDLE = 600,
};

struct rig {
	struct takt_rules_board board;
	struct takt_rules_gpu gpu;
	struct takt_rules_sample sample; /* the counters go on from second to second */
	uint32_t second;
	bool silent; /* no reading comes in this second */
};

/* Readings that a fault changes: two that change the same cannot be on one board. */
enum rig_reads {
	RIG_ANSWER = 1u << 0,
	RIG_LOAD = 1u << 1,
	RIG_HEAT = 1u << 2,
	RIG_MEMORY_HEAT = 1u << 3,
	RIG_WIDTH = 1u << 4,
	RIG_GEN = 1u << 5,
	RIG_REPLAYS = 1u << 6,
	RIG_UNCORRECTED = 1u << 7,
	RIG_CORRECTED = 1u << 8,
	RIG_ROW_PENDING = 1u << 9,
	RIG_ROW_FAILED = 1u << 10,
	RIG_PAGES = 1u << 11,
	RIG_PAGE_PENDING = 1u << 12,
	RIG_SRAM = 1u << 13,
	RIG_LINKS = 1u << 14,
	RIG_LINK_ERRORS = 1u << 15,
	RIG_CRC = 1u << 16,
	RIG_CLOCK = 1u << 17,
	RIG_CAP = 1u << 18,
	RIG_SYNC = 1u << 19,
	RIG_SW_THERMAL = 1u << 20,
	RIG_HW_THERMAL = 1u << 21,
	RIG_BRAKE = 1u << 22,
	RIG_RECOVERY = 1u << 23,
	RIG_APPS = 1u << 24,
	RIG_DRIVER = 1u << 25, /* that there is one, which answers after an XID 79 */
};

struct rig_fault {
	const char *name;
	uint32_t reads;				       /* enum rig_reads */
	void (*board)(struct takt_rules_board *board); /* NULL = the usual one */
	void (*act)(struct rig *rig);		       /* NULL = xid-NUMBER by its name */
};

/* The fault of that name; fails the test when there is none. */
struct rig_fault rig_fault_named(const char *name);
size_t rig_fault_count(void); /* that have an act of their own */

/* A board under load, one run from its start; faults act in this order, NULL = none. */
void rig_run(struct rig *rig, const struct rig_fault *first, const struct rig_fault *second);

void rig_begin(struct rig *rig); /* init of the rules, with the rig's board */
void rig_step(struct rig *rig);	 /* gives the sample, unless silent, and a second passes */
void rig_steps(struct rig *rig, uint32_t count);   /* the same sample again and again */
void rig_sleep(struct rig *rig, uint32_t seconds); /* nobody asks the GPU meanwhile */
void rig_line(struct rig *rig, const char *line);  /* of the kernel's log */
void rig_nvml(struct rig *rig, uint32_t xid);

#endif
