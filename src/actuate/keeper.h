/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps each GPU at what is wished for it: a lease's setting, or the baseline. Actuator and guard
 * are both built on it; a guard is a keeper to whom nothing is ever wished but the baseline.
 *
 * A wish is stated once and the keeper works towards it, a step at a time and never waiting:
 * journal (durable), driver, read back; when the driver refuses or hangs, again after a pause that
 * doubles from 250 ms to 30 s. A GPU is "settled" when the wish it has now was tried once: the
 * outcome is then known, good or bad, though a bad one may still be worked on.
 *
 * What a board holds is known only by what was done to it: each knob is held at its BASELINE, SET
 * or UNKNOWN, and UNKNOWN from the moment a setter is begun until its outcome is certain. A setting
 * of several knobs holds as a whole or not at all: when one is refused, the others go back.
 *
 * The baseline of the power limit is what was found before takt's first change, or what the
 * baseline file says, and never above a facility's cap. A lease never raises a limit above that.
 * What was found is kept on record for as long as a cap or a declared limit stands in its place.
 *
 * A clock lock cannot be read. So before takt's first one, where no baseline is declared, the board
 * is looked at (keeper_probe.c): the SM clock waits until it was seen to run as high as it can.
 * What else is wished for is set at once: a power limit may be what keeps a budget.
 *
 * While something is set it is looked at every few seconds, and before another setting takes its
 * place (keeper_foreign.c). An SM clock above its range, or another power limit, is somebody else's
 * work: takt lets that knob go. One that fell well below it under load seems to be: takt puts its
 * own back, which may be there still. Either way it sets nothing more on this GPU and says so,
 * until an administrator resets it. Memory errors that come with another memory clock end the wish
 * for it at once.
 */
#ifndef TAKT_ACTUATE_KEEPER_H
#define TAKT_ACTUATE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "actuate/actuate.h"
#include "actuate/baseline.h"
#include "actuate/journal.h"
#include "actuate/keeper_cpu.h"
#include "actuate/keeper_mig.h"
#include "actuate/mandate.h"
#include "actuate/setting.h"
#include "base/timetypes.h"
#include "device/device.h"

enum {
	TAKT_KEEPER_NOTE = 160
};

struct takt_keeper_gpu {
	const struct takt_gpu_facts *facts; /* borrowed from the machine; no UUID: it did not answer
					       when takt started, and is left alone */

	enum takt_keeper_held {
		TAKT_HELD_BASELINE,
		TAKT_HELD_SET,
		TAKT_HELD_UNKNOWN,
	} held[TAKT_KNOBS];
	struct takt_setting held_at; /* of knobs that are SET */

	uint32_t found_mw;   /* power limit before takt's first change; 0 = not looked up */
	uint32_t cap_mw;     /* a facility's; 0 = none */
	uint32_t cap_was_mw; /* the one before, which stays when the driver refuses this one */
	bool cap_owed;	     /* the journal does not know it yet */
	bool rule_owed;	     /* nor the baseline that was declared */

	struct takt_setting wish; /* knobs that it leaves out are wished at their baseline */
	uint64_t wish_lease, wish_job;
	uint64_t wish_number; /* counts wishes of this GPU */
	struct takt_boot wished_at;
	uint32_t forced; /* knobs to be restored even if nothing is known to have changed them */
	bool settled;
	struct takt_err outcome; /* settled: of this wish */

	enum takt_keeper_flight {
		TAKT_FLIGHT_NONE,
		TAKT_FLIGHT_SET,
		TAKT_FLIGHT_RESTORE,
	} flight; /* the setter that was posted and has not finished */
	enum takt_knob flight_knob;
	struct takt_setting flight_at;
	uint32_t flight_cap_mw;		   /* RESTORE: the cap that it counts with */
	enum takt_keeper_held held_before; /* of that knob */
	struct takt_boot posted_at;
	bool overdue;

	enum takt_keeper_read {
		TAKT_READ_NONE,
		TAKT_READ_LOOK,	 /* what there is before it is changed */
		TAKT_READ_PROBE, /* whether somebody else has locked the SM clock */
		TAKT_READ_LAST,	 /* whether it holds, before another setting takes its place */
		TAKT_READ_BACK,	 /* what came of a setting */
		TAKT_READ_CHECK, /* whether it still holds */
	} reading;		 /* waits for a sample newer than after_seq */
	uint64_t after_seq;
	struct takt_boot read_until;
	bool looked;		     /* LOOK is over, whether it brought found_mw or not */
	uint32_t readback_mhz;	     /* 0 = not readable */
	struct takt_boot check_at;   /* something is set: the next look at it */
	struct takt_boot set_at;     /* the newest setter of these, */
	struct takt_boot counted_at; /* the newest look that counts in what follows */
	uint32_t above[TAKT_KNOBS];  /* looks in a row that saw a clock above its range, */
	uint32_t low;		     /* and the SM clock well below it at work */
	uint32_t seen_mhz;	     /* highest SM clock seen at all, */
	uint32_t reach_mhz;	     /* and under load; 0 = none */
	bool seen_before;	     /* LAST is over, and nothing spoke against the present wish */
	struct takt_keeper_errors {
		bool known; /* the board counts them */
		uint64_t corrected, uncorrected;
	} errors_before; /* memory errors before takt set the memory clock */

	enum takt_keeper_lock {
		TAKT_LOCK_UNKNOWN,
		TAKT_LOCK_NONE,	   /* nobody's but takt's: seen, or lifted by takt itself */
		TAKT_LOCK_MAYBE,   /* under load below its highest clock, and nothing explains it */
	} lock;			   /* of others, on the SM clock; while takt has set none */
	uint32_t below, below_mhz; /* looks in a row that spoke for one, the latest clock */
	uint32_t looks;		   /* of this wish, */
	struct takt_boot probe_at; /* and the next */

	uint32_t foreign;  /* knobs that somebody else has set, or so it seems: set no more until
			      it is reset */
	bool ineffective;  /* the clock that was set never came: set no more until it is reset */
	bool mem_errors;   /* came with a memory clock: set no more until it is reset */
	bool denied;	   /* no permission: the wish is advice */
	bool silent;	   /* lost, or did not answer in time */
	bool record_owed;  /* restored, but the journal could not be told yet */
	uint32_t failures; /* in a row */
	struct takt_boot next;		/* not to be tried before */
	char note[TAKT_KEEPER_NOTE];	/* of what is being done, */
	char verdict[TAKT_KEEPER_NOTE]; /* and why nothing is set until it is reset */
	struct takt_keeper_mig mig;
};

struct takt_keeper {
	const struct takt_sys *sys; /* all borrowed until the end */
	struct takt_machine *machine;
	struct takt_journal *journal;
	struct takt_mandate *mandate;
	const struct takt_baseline *baseline; /* NULL: what the journal's records say */
	bool declared;			      /* it is to be in force on every GPU */
	struct takt_actuate_log log;
	uint64_t call_deadline_ns;
	struct takt_keeper_cpu cpu; /* the caller has filled sysfs_root */

	bool guarded; /* somebody would restore if this process died; without it nothing is set */
	bool stale;   /* lost the right to set: the owner must stop */
	char boot_id[TAKT_JOURNAL_BOOT];
	char driver_load[TAKT_DRIVER_LOAD];
	uint32_t unseen; /* GPUs on record as changed that this machine does not show now */
	uint32_t gpu_count;
	struct takt_keeper_gpu gpus[TAKT_ACTUATE_MAX_GPUS];
};

/* Fills what follows `call_deadline_ns` (0: 2 s); the caller has filled what precedes it. */
void takt_keeper_init(struct takt_keeper *keeper);

/* Takes over what the journal says: what was left changed in this boot and driver load is going to
 * be restored, what a reboot or reload undid is marked clean, and each is said in the log. A GPU
 * that takt put where another baseline said goes to where this one says. */
int takt_keeper_recover(struct takt_keeper *keeper, struct takt_boot now, struct takt_err *err);

/* Index of a GPU, -1 when no GPU here has this UUID. */
int takt_keeper_find(const struct takt_keeper *keeper, const char *uuid);

/* A wish that equals the present one changes nothing. Clock ranges are clamped to the driver's
 * lists here; -EINVAL (also for a power limit out of the board's bounds), -TAKT_E_UNSUPPORTED (no
 * list, no setters) and -TAKT_E_CONFLICT (somebody else sets this GPU) leave the old wish. */
int takt_keeper_set(struct takt_keeper *keeper, uint32_t gpu, const struct takt_setting *setting,
		    uint64_t lease_id, uint64_t job_id, struct takt_boot now, struct takt_err *err);

/* From now on the power limit's baseline is at most this, 0: no cap. It stays when this process
 * ends, for however long the driver is loaded. Errors as above, but CONFLICT only where somebody
 * else has set the limit itself. */
int takt_keeper_cap(struct takt_keeper *keeper, uint32_t gpu, uint32_t cap_mw, struct takt_boot now,
		    struct takt_err *err);

/* Whether that would be taken, without doing it. */
int takt_keeper_may_cap(const struct takt_keeper *keeper, uint32_t gpu, uint32_t cap_mw,
			struct takt_err *err);

/* The same of a cap that is declared: that begins with nothing held against others. */
int takt_keeper_may_declare_cap(const struct takt_keeper *keeper, uint32_t gpu, uint32_t cap_mw,
				struct takt_err *err);
void takt_keeper_restore(struct takt_keeper *keeper, uint32_t gpu, struct takt_boot now);

/* An administrator says that nobody else has locked this GPU's clock. */
void takt_keeper_assume_unlocked(struct takt_keeper *keeper, uint32_t gpu);

/* The baseline that keeper->baseline has now, instead of `was`, is put in force: once for knobs
 * that are declared, until it works for those that are not any more. */
void takt_keeper_declare(struct takt_keeper *keeper, uint32_t gpu,
			 const struct takt_baseline_rule *was, struct takt_boot now);

/* Restores in any case, which also undoes what somebody else did to the board: for an administrator
 * who asks for it. */
void takt_keeper_reset(struct takt_keeper *keeper, uint32_t gpu, struct takt_boot now);

/* Does what can be done now; returns when to come back at the latest. Also to be called when the
 * machine's eventfd says that something has finished. */
struct takt_boot takt_keeper_step(struct takt_keeper *keeper, struct takt_boot now);

/* What there is to say of a GPU, "" = nothing: of what is being done, else why nothing is set. */
const char *takt_keeper_says(const struct takt_keeper_gpu *gpu);

enum takt_actuate_gpu_state takt_keeper_state(const struct takt_keeper_gpu *gpu);

/* Every GPU is at its baseline, the CPUs are as they were found, and the journal says so. */
bool takt_keeper_all_clean(const struct takt_keeper *keeper);

/* No setter is under way, but for those that have been overdue. */
bool takt_keeper_quiet(const struct takt_keeper *keeper);

#endif
