/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From findings to what is to be done: each thing once, for all GPUs that need it, the root cause
 * first. A restart of the machine reloads its driver and resets its GPUs, so what asks for these
 * is done by it.
 */
#include <errno.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "health/doctor.h"

static const struct {
	const char *name;
	bool by_restart; /* done by a restart of the machine */
} actions[TAKT_DO_COUNT] = {
	[TAKT_DO_NONE] = {"", false},
	[TAKT_DO_RESTART] = {"restart the machine", false},
	[TAKT_DO_DRIVER] = {"set up the driver", false},
	[TAKT_DO_BIND] = {"give the driver its GPUs", false},
	[TAKT_DO_REPLACE] = {"have the board replaced", false},
	[TAKT_DO_RESET] = {"reset the GPU when it is idle", true},
	[TAKT_DO_COOLING] = {"look after the cooling", false},
	[TAKT_DO_POWER] = {"look after the power supply", false},
	[TAKT_DO_MANAGER] = {"install the driver's fabric manager", false},
	[TAKT_DO_FABRIC] = {"start the fabric manager", false},
	[TAKT_DO_RESEAT] = {"look at the board's seat and slot", false},
	[TAKT_DO_PROCESS] = {"end what holds the memory", true},
	[TAKT_DO_SLOW_GPU] = {"find out what slows this GPU", false},
	[TAKT_DO_UNLOCK] = {"find out who set the clocks", false},
	[TAKT_DO_CAP] = {"find out who lowered the power limit", false},
	[TAKT_DO_HOST] = {"change the machine's settings", false},
	[TAKT_DO_NETWORK] = {"look after the network", false},
	[TAKT_DO_CONTAINERS] = {"set up containers", false},
	[TAKT_DO_PACKAGE] = {"install what this driver can run", false},
	[TAKT_DO_SUPPORT] = {"ask the vendor's support", false},
	[TAKT_DO_PERSISTENCE] = {"keep the driver loaded", false},
};

const char *takt_doctor_act_name(enum takt_doctor_act action)
{
	return actions[action].name;
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct takt_doctor_todo *x = a, *y = b;

	(void)ctx;
	if (x->action != y->action)
		return x->action < y->action ? -1 : 1;
	return x->why != y->why ? (x->why > y->why ? -1 : 1) : 0;
}

static void add(struct takt_doctor_report *report, const struct takt_doctor_finding *finding)
{
	int rc;

	TAKT_VEC_EACH (todo, &report->todo) {
		if (todo->action != finding->action || strcmp(todo->fix, finding->fix) != 0)
			continue;
		todo->gpus |= finding->gpus;
		if (finding->verdict > todo->why)
			todo->why = finding->verdict;
		return;
	}
	rc = takt_vec_push(&report->todo, (struct takt_doctor_todo){.action = finding->action,
								    .why = finding->verdict,
								    .gpus = finding->gpus});
	if (rc < 0)
		report->rc = rc;
	else
		takt_strcpy(takt_vec_last(&report->todo)->fix, TAKT_DOCTOR_FIX, finding->fix);
}

void takt_doctor_plan(struct takt_doctor_report *report)
{
	bool restart = false;

	TAKT_VEC_EACH (f, &report->findings)
		restart = restart || f->action == TAKT_DO_RESTART;
	TAKT_VEC_EACH (f, &report->findings)
		if (f->action != TAKT_DO_NONE && !(restart && actions[f->action].by_restart))
			add(report, f);
	if (takt_sort(report->todo.at, report->todo.len, sizeof(*report->todo.at), compare, NULL) <
	    0)
		report->rc = -ENOMEM;
}
