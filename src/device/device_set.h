/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that change a GPU. Only src/actuate may include this file: the layer checker refuses
 * everybody else.
 *
 * A setter is posted to the GPU's own worker and its result fetched later, because the actuator is
 * one loop that must go on serving seven boards while the eighth hangs. There is no deadline here:
 * whoever posted decides when he stops waiting, and still learns the outcome when a late call
 * returns, which he must, since a late call has taken effect. At most one setter a GPU is under
 * way; samples and setters of a GPU run one after the other. A setter goes before samples that were
 * asked for and have not begun, so that every sample asked for after it shows what it did.
 *
 * Results: 0, -EPERM, -TAKT_E_UNSUPPORTED (board, or a source without setters), -ENODEV (GPU lost),
 * -ETIMEDOUT (the driver gave up), -EINVAL, -EIO, or what the gate said; `vendor` holds the
 * driver's own code. TAKT_SET_MIG is refused with the GPU as it was with -EPERM, -EINVAL,
 * -TAKT_E_UNSUPPORTED or -TAKT_E_BUSY (a process is on it); whatever else fails may have changed
 * it.
 */
#ifndef TAKT_DEVICE_DEVICE_SET_H
#define TAKT_DEVICE_DEVICE_SET_H

#include "device/device.h"

enum takt_set_op {
	TAKT_SET_LOCK_SM,     /* SM clock into [min_mhz, max_mhz]; NVML has no getter for it */
	TAKT_SET_UNLOCK_SM,   /* lifts any such lock, a foreign one too */
	TAKT_SET_POWER_LIMIT, /* limit_mw */
	TAKT_SET_LOCK_MEM,    /* memory clock into [min_mhz, max_mhz]; no getter either */
	TAKT_SET_UNLOCK_MEM,
	TAKT_SET_MIG, /* the instances of `mig` and no others, unless it is so already */
};

struct takt_set_call {
	enum takt_set_op op;
	uint32_t min_mhz, max_mhz; /* both from the list of such clocks in the facts */
	uint32_t limit_mw;
	char mig[TAKT_MIG_TEXT]; /* see base/mig_layout.h */

	/* Optional. Asked on the worker's thread immediately before the driver is called, since a
	 * setter may have waited there behind a call that hung, and whoever posted it may have lost
	 * the right to set meanwhile. Non-zero: the driver is not called and that is the result.
	 * gate_ctx is borrowed until the call has finished; a worker that never comes back never
	 * asks. */
	int (*gate)(void *gate_ctx);
	void *gate_ctx;
};

/* Returns at once. -EAGAIN while a setter of this GPU is under way or its result was not fetched.
 */
int takt_machine_set_post(struct takt_machine *machine, uint32_t gpu,
			  const struct takt_set_call *call, struct takt_err *err);

/* True once for each posted setter, when it has finished: *ret_result is its outcome (rc 0: done).
 * The eventfd of takt_machine_notify is written at that moment. Never waits. */
bool takt_machine_set_finished(struct takt_machine *machine, uint32_t gpu,
			       struct takt_err *ret_result);

#endif
