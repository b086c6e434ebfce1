/* SPDX-License-Identifier: Apache-2.0 */
/* The fake machine: a setter is done when it is posted, unless the board hangs. */
#include "fake_boards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "device/driver_look.h"
#include "device/sysfs_pci.h"

void fake_boards_init(struct takt_machine *machine, uint32_t count)
{
	memset(machine, 0, sizeof(*machine));
	machine->info = (struct takt_machine_info){.gpu_count = count, .can_set = true};
	takt_strcpy(machine->info.driver_version, sizeof(machine->info.driver_version), "550.54");
	for (uint32_t g = 0; g < count; g++) {
		struct takt_gpu_facts *facts = &machine->boards[g].facts;

		facts->has = TAKT_FACT_UUID | TAKT_FACT_SM_CLOCKS | TAKT_FACT_POWER_LIMITS |
			     TAKT_FACT_MEM_CLOCKS;
		facts->mem_clock_count = 3;
		memcpy(facts->mem_clocks_mhz, (uint32_t[]){405, 1215, 1593}, 3 * sizeof(uint32_t));
		facts->power_min_mw = 100000;
		facts->power_max_mw = facts->power_default_mw = 400000;
		machine->boards[g].power_limit_mw = 400000;
		facts->has |= TAKT_FACT_MIG;
		facts->mig_enabled = true;
		takt_strcpy(machine->boards[g].mig, TAKT_MIG_TEXT, "9:0,9:4");
		takt_strcpy(facts->mig_layout, TAKT_MIG_TEXT, "9:0,9:4");
		(void)snprintf(facts->uuid, sizeof(facts->uuid), "GPU-fake-%u", g);
		for (uint32_t mhz = 210; mhz <= 1980; mhz += 15)
			facts->sm_clocks_mhz[facts->sm_clock_count++] = mhz;
	}
}

struct takt_machine *_Atomic fake_boards_installed;

void fake_boards_open(struct takt_machine *machine)
{
	for (uint32_t g = 0; g < machine->info.gpu_count; g++) {
		struct fake_board *board = &machine->boards[g];

		if (board->known.has == 0)
			board->known = board->facts;
		board->facts = board->hangs ? (struct takt_gpu_facts){0} : board->known;
		if (!board->hangs)
			takt_strcpy(board->facts.mig_layout, TAKT_MIG_TEXT, board->mig);
	}
}

int takt_machine_open(const struct takt_machine_config *config, struct takt_machine **ret,
		      struct takt_err *err)
{
	if (!fake_boards_installed)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "no driver");
	*ret = fake_boards_installed;
	fake_boards_open(*ret);
	return 0;
}

void fake_boards_let_go(struct takt_machine *machine)
{
	for (uint32_t g = 0; g < machine->info.gpu_count; g++) {
		struct fake_board *board = &machine->boards[g];

		if (board->posted && !board->finished && board->hangs_inside && !board->stray) {
			board->stray = true;
			board->stray_call = board->call;
		}
		board->posted = board->finished = false;
	}
}

void takt_machine_close(struct takt_machine *machine)
{
	if (machine)
		fake_boards_let_go(machine);
}

/* Nothing finishes behind the caller's back. */
void takt_machine_notify(struct takt_machine *machine, int eventfd)
{
}

const struct takt_machine_info *takt_machine_info(const struct takt_machine *machine)
{
	return &machine->info;
}

/* Every board says at once who it is. */
bool takt_machine_knows_more(struct takt_machine *machine)
{
	return false;
}

const struct takt_gpu_facts *takt_machine_facts(const struct takt_machine *machine, uint32_t gpu)
{
	return &machine->boards[gpu].facts;
}

void takt_machine_sample(struct takt_machine *machine, uint32_t gpu)
{
	for (uint32_t g = 0; g < machine->info.gpu_count; g++)
		if ((gpu == UINT32_MAX || gpu == g) && !machine->boards[g].silent_samples &&
		    !machine->boards[g].hangs)
			machine->boards[g].seq++;
}

/* These boards have no driver that could go or come: tests/e2e/driver_reload.py. */
bool takt_machine_driver_is_gone(struct takt_machine *machine)
{
	return false;
}

bool takt_sysfs_has_gpu(const char *root)
{
	return false;
}

void takt_driver_look_init(struct takt_driver_look *look, const struct takt_machine_config *config,
			   struct takt_boot first)
{
}

bool takt_driver_look_step(struct takt_driver_look *look, struct takt_boot now,
			   struct takt_boot *ret_next)
{
	return false;
}

void takt_driver_look_fini(struct takt_driver_look *look)
{
}

void takt_machine_look_at_mig(struct takt_machine *machine, uint32_t gpu)
{
	machine->boards[gpu].mig_asked = true;
}

bool takt_machine_seen_mig(struct takt_machine *machine, uint32_t gpu)
{
	struct fake_board *board = &machine->boards[gpu];

	if (!board->mig_asked || (board->hangs && !board->mig_shows))
		return false;
	board->mig_asked = false;
	takt_strcpy(board->facts.mig_layout, TAKT_MIG_TEXT, board->mig);
	return true;
}

int takt_machine_reading(struct takt_machine *machine, uint32_t gpu, struct takt_gpu_reading *ret)
{
	const struct fake_board *board = &machine->boards[gpu];

	if (board->seq == 0)
		return -EAGAIN;
	*ret = (struct takt_gpu_reading){.seq = board->seq,
					 .has = TAKT_HAS_SM_CLOCK | TAKT_HAS_MEM_CLOCK |
						TAKT_HAS_GPU_UTIL | TAKT_HAS_THROTTLE,
					 .gpu_util_pct = board->util_pct,
					 .throttle = board->throttle};
	ret->mem_mhz = board->mem_locked ? board->mem_range.max_mhz : 1593;
	if (!board->no_ecc)
		ret->has |= TAKT_HAS_ECC;
	ret->ecc_corrected = board->ecc_corrected;
	ret->ecc_uncorrected = board->ecc_uncorrected;
	ret->sm_mhz = board->locked ? board->range.max_mhz : 1980;
	if (board->runs_at_mhz)
		ret->sm_mhz = board->runs_at_mhz;
	if (!board->no_power_reading) {
		ret->has |= TAKT_HAS_POWER_LIMIT;
		ret->power_limit_mw = board->power_limit_mw;
	}
	if (board->power_mw)
		ret->has |= TAKT_HAS_POWER;
	ret->power_mw = board->power_mw;
	ret->has &= ~board->has_not;
	return 0;
}

static int drive_power(struct fake_board *board)
{
	board->power_sets++;
	if (board->power_rc == 0)
		board->power_limit_mw = board->call.limit_mw;
	return board->power_rc;
}

static int drive_mem(struct fake_board *board)
{
	board->mem_sets++;
	if (board->mem_rc < 0)
		return board->mem_rc;
	board->mem_locked = board->call.op == TAKT_SET_LOCK_MEM;
	board->mem_range = (struct takt_clock_range){board->call.min_mhz, board->call.max_mhz};
	return 0;
}

static int drive_sm(struct fake_board *board)
{
	bool lock = board->call.op == TAKT_SET_LOCK_SM;
	int rc = lock ? board->set_rc : board->reset_rc;

	if (lock)
		board->sets++;
	else
		board->resets++;
	if (rc < 0)
		return rc;
	board->locked = lock;
	board->range = (struct takt_clock_range){board->call.min_mhz, board->call.max_mhz};
	return 0;
}

static int drive_mig(struct fake_board *board)
{
	if (strcmp(board->mig, board->call.mig) == 0)
		return 0;
	if (board->mig_rc == -EPERM || board->mig_in_use)
		return board->mig_in_use ? -TAKT_E_BUSY : -EPERM;
	board->mig_sets++;
	takt_strcpy(board->mig, TAKT_MIG_TEXT, board->mig_rc < 0 ? "none" : board->call.mig);
	return board->mig_rc;
}

static int drive(struct fake_board *board)
{
	switch (board->call.op) {
	case TAKT_SET_MIG:
		return drive_mig(board);
	case TAKT_SET_POWER_LIMIT:
		return drive_power(board);
	case TAKT_SET_LOCK_MEM:
	case TAKT_SET_UNLOCK_MEM:
		return drive_mem(board);
	default:
		return drive_sm(board);
	}
}

static int ask_gate(const struct fake_board *board)
{
	return board->call.gate ? board->call.gate(board->call.gate_ctx) : 0;
}

static void finish(struct fake_board *board, int rc)
{
	board->result = (struct takt_err){0};
	if (rc < 0)
		takt_err_set(&board->result, rc, "the fake driver");
	board->finished = true;
}

static void carry_out(struct fake_board *board)
{
	int rc = ask_gate(board);

	finish(board, rc == 0 ? drive(board) : rc);
}

/* Past the gate and no further. */
static void enter(struct fake_board *board)
{
	int rc = ask_gate(board);

	board->call.gate = NULL;
	if (rc < 0)
		finish(board, rc);
}

void fake_boards_end_stray(struct takt_machine *machine, uint32_t gpu, bool done)
{
	struct fake_board *board = &machine->boards[gpu];
	struct takt_set_call own = board->call;

	if (board->stray && done) {
		board->call = board->stray_call;
		(void)drive(board);
		board->call = own;
	}
	board->stray = false;
}

int takt_machine_set_post(struct takt_machine *machine, uint32_t gpu,
			  const struct takt_set_call *call, struct takt_err *err)
{
	struct fake_board *board = &machine->boards[gpu];

	if (board->posted)
		return takt_err_set(err, -EAGAIN, "a setter is under way");
	board->posted = true;
	board->call = *call;
	if (!board->hangs)
		carry_out(board);
	else if (board->hangs_inside)
		enter(board);
	return 0;
}

bool takt_machine_set_finished(struct takt_machine *machine, uint32_t gpu,
			       struct takt_err *ret_result)
{
	struct fake_board *board = &machine->boards[gpu];

	if (!board->posted || !board->finished)
		return false;
	board->posted = board->finished = false;
	*ret_result = board->result;
	return true;
}

void fake_boards_unhang(struct takt_machine *machine, uint32_t gpu)
{
	struct fake_board *board = &machine->boards[gpu];

	board->hangs = board->hangs_inside = false;
	fake_boards_end_stray(machine, gpu, true);
	if (board->posted && !board->finished)
		carry_out(board);
}
