/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor: facts of a machine in, a verdict a check out, and one list of what to do, the root
 * cause first. Judging is pure; gathering is gather.h.
 *
 * A check is a row of takt_doctor_checks: one idea, one function. One that has nothing to do with
 * this machine (InfiniBand where there is none) says nothing. One that has, but cannot see what it
 * would judge by, says UNKNOWN and why.
 */
#ifndef TAKT_HEALTH_DOCTOR_H
#define TAKT_HEALTH_DOCTOR_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/vec.h"
#include "health/doctor_facts.h"

/* Ascending by how much it matters. */
enum takt_doctor_verdict {
	TAKT_DOCTOR_PASS,
	TAKT_DOCTOR_UNKNOWN,
	TAKT_DOCTOR_INFO,
	TAKT_DOCTOR_WARNING,
	TAKT_DOCTOR_CRITICAL,
	TAKT_DOCTOR_VERDICTS,
};
extern const char *const takt_doctor_verdicts[TAKT_DOCTOR_VERDICTS]; /* "PASS", ... */

/* What to do, in the order in which it is to be done: what is above may make what is below
 * unnecessary. Texts are in doctor_actions.c. */
enum takt_doctor_act {
	TAKT_DO_NONE,
	TAKT_DO_RESTART,
	TAKT_DO_DRIVER,
	TAKT_DO_BIND,
	TAKT_DO_REPLACE,
	TAKT_DO_RESET,
	TAKT_DO_COOLING,
	TAKT_DO_POWER,
	TAKT_DO_MANAGER,
	TAKT_DO_FABRIC,
	TAKT_DO_RESEAT,
	TAKT_DO_PROCESS,
	TAKT_DO_SLOW_GPU,
	TAKT_DO_UNLOCK,
	TAKT_DO_CAP,
	TAKT_DO_HOST,
	TAKT_DO_NETWORK,
	TAKT_DO_CONTAINERS,
	TAKT_DO_PACKAGE,
	TAKT_DO_SUPPORT,
	TAKT_DO_PERSISTENCE,
	TAKT_DO_COUNT,
};

enum {
	TAKT_DOCTOR_TEXT = 320,
	TAKT_DOCTOR_FIX = 200,
};

struct takt_doctor_finding {
	const struct takt_doctor_check *check;
	enum takt_doctor_verdict verdict;
	uint64_t gpus; /* that it is about; 0 = the machine */
	enum takt_doctor_act action;
	char text[TAKT_DOCTOR_TEXT]; /* the evidence */
	char fix[TAKT_DOCTOR_FIX];   /* what to do, besides the action's own words; "" = no more */
};

struct takt_doctor_todo {
	enum takt_doctor_act action;
	enum takt_doctor_verdict why; /* the worst of the findings that ask for it */
	uint64_t gpus;
	char fix[TAKT_DOCTOR_FIX];
};

struct takt_doctor_report {
	TAKT_VEC(struct takt_doctor_finding) findings; /* in the order of the checks */
	TAKT_VEC(struct takt_doctor_todo) todo;	       /* what to do first is first */
	enum takt_doctor_verdict worst;
	bool looked;			       /* the driver was asked and answered */
	int rc;				       /* 0, or why something is missing here */
	const struct takt_doctor_check *check; /* that is being made */
};

struct takt_doctor_check {
	const char *name, *theme;
	const char *asks; /* half a line */
	void (*judge)(const struct takt_doctor_facts *facts, struct takt_doctor_report *report);
};

/* All of them; a NULL name ends the table. */
extern const struct takt_doctor_check takt_doctor_checks[];

/* Fills an empty report; takt_doctor_report_fini releases it. report->rc as said there. */
void takt_doctor_judge(const struct takt_doctor_facts *facts, struct takt_doctor_report *ret);
void takt_doctor_report_fini(struct takt_doctor_report *report);

/* 0 nothing to do, 1 a warning, 2 something critical, 3 the driver could not be looked at (and
 * nothing worse was found). */
int takt_doctor_exit(const struct takt_doctor_report *report);

/* Makes the list of what to do from the findings; part of takt_doctor_judge. */
void takt_doctor_plan(struct takt_doctor_report *report);

/* What an action says to the reader: "reset", "restart the machine". */
const char *takt_doctor_act_name(enum takt_doctor_act action);

/* For checks. A finding that says the same as one before of the same check joins it. fix may be
 * NULL. */
void takt_doctor_say(struct takt_doctor_report *report, enum takt_doctor_verdict verdict,
		     uint64_t gpus, enum takt_doctor_act action, const char *fix, const char *fmt,
		     ...) TAKT_PRINTF(6, 7);

/* The next GPU from `i` on that the driver has and that answers; gpu_count = no more. */
uint32_t takt_doctor_next(const struct takt_doctor_facts *facts, uint32_t i);
#define TAKT_EACH_GPU(i, facts)                                                   \
	for (uint32_t i = takt_doctor_next((facts), 0); (i) < (facts)->gpu_count; \
	     (i) = takt_doctor_next((facts), (i) + 1))

/* Whether this is the device at that PCI address, in whichever spelling. */
bool takt_doctor_is(const struct takt_doctor_pci *pci, const char *pci_bus_id);

#define TAKT_DOCTOR_CHECKS(X)                                                               \
	X(driver, "driver", "driver", "whether the NVIDIA driver answers")                  \
	X(versions, "driver-versions", "driver", "whether its libraries and module match")  \
	X(presence, "gpu-presence", "driver", "whether every GPU on the bus is in use")     \
	X(persistence, "persistence", "driver", "whether settings outlive programs")        \
	X(heard, "heard-over-time", "driver", "what takt serve has found, XIDs too")        \
	X(ecc_mode, "ecc-pending", "memory", "ECC modes that wait for a restart")           \
	X(ecc_errors, "ecc-errors", "memory", "uncorrected memory errors")                  \
	X(row_remap, "row-remap", "memory", "rows of memory that were replaced")            \
	X(retired_pages, "retired-pages", "memory", "pages of memory that were given up")   \
	X(mig_mode, "mig-pending", "memory", "MIG modes that wait for a reset")             \
	X(memory_held, "memory-held", "memory", "memory in use by no process")              \
	X(dead_process, "dead-process", "memory", "contexts of processes that are gone")    \
	X(compute_mode, "compute-mode", "memory", "modes that keep programs out")           \
	X(pcie_width, "pcie-width", "pcie", "lanes of the PCIe link")                       \
	X(pcie_generation, "pcie-generation", "pcie", "its speed, under load")              \
	X(nvlink, "nvlink", "links", "NVLinks that are not active")                         \
	X(fabric, "fabric", "links", "the fabric of NVSwitches")                            \
	X(manager, "fabric-manager", "links", "its manager's version")                      \
	X(peer_access, "peer-access", "links", "GPUs that cannot read each other")          \
	X(acs, "acs", "links", "bridges that keep GPUs from each other")                    \
	X(power_cap, "power-cap", "clocks", "power limits below the board's own")           \
	X(throttle, "throttle", "clocks", "what holds the clocks down")                     \
	X(temperature, "temperature", "clocks", "degrees left before it slows down")        \
	X(cooling, "cooling", "clocks", "fans, and boards that are warmer than their like") \
	X(supply, "power-supply", "clocks", "signs of a supply that is out")                \
	X(clock_lock, "clock-lock", "clocks", "clocks that somebody set")                   \
	X(low_power, "power-saving", "clocks", "work in a power-saving state")              \
	X(runs, "run-variance", "clocks", "runs of one job that take unlike times")         \
	X(clock_skew, "clock-skew", "clocks", "GPUs that work slower than their like")      \
	X(numa, "numa", "host", "whether CPUs near to a GPU are known")                     \
	X(peermem, "peermem", "host", "GPU memory for network cards")                       \
	X(network_links, "network-links", "host", "InfiniBand and RoCE ports")              \
	X(toolkit, "container-toolkit", "containers", "GPUs in containers")                 \
	X(runtime, "container-runtime", "containers", "its setting up")                     \
	X(cgroup, "container-cgroups", "containers", "containers that lose GPUs later")     \
	X(cdi, "cdi", "containers", "whether CDI files are of this driver")                 \
	X(frameworks, "frameworks", "frameworks", "CUDA, PyTorch and TensorFlow")

#define X(id, name, theme, asks)                                           \
	void takt_doctor_check_##id(const struct takt_doctor_facts *facts, \
				    struct takt_doctor_report *report);
TAKT_DOCTOR_CHECKS(X)
#undef X

#endif
