/* SPDX-License-Identifier: Apache-2.0 */
/* The fake machine: a setter is done when it is posted, unless the board hangs. */
#include "fake_boards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void fake_boards_init(struct takt_machine *machine, uint32_t count)
{
	memset(machine, 0, sizeof(*machine));
	machine->info = (struct takt_machine_info){.gpu_count = count, .can_set = true};
	takt_strcpy(machine->info.driver_version, sizeof(machine->info.driver_version), "550.54");
	for (uint32_t g = 0; g < count; g++) {
		struct takt_gpu_facts *facts = &machine->boards[g].facts;

		facts->has = TAKT_FACT_UUID | TAKT_FACT_SM_CLOCKS;
		(void)snprintf(facts->uuid, sizeof(facts->uuid), "GPU-fake-%u", g);
		for (uint32_t mhz = 210; mhz <= 1980; mhz += 15)
			facts->sm_clocks_mhz[facts->sm_clock_count++] = mhz;
	}
}

struct takt_machine *_Atomic fake_boards_installed;

int takt_machine_open(const struct takt_machine_config *config, struct takt_machine **ret,
		      struct takt_err *err)
{
	if (!fake_boards_installed)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "no driver");
	*ret = fake_boards_installed;
	return 0;
}

void takt_machine_close(struct takt_machine *machine)
{
	for (uint32_t g = 0; machine && g < machine->info.gpu_count; g++)
		machine->boards[g].posted = machine->boards[g].finished = false;
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
	if (!machine->boards[gpu].silent_samples)
		machine->boards[gpu].seq++;
}

int takt_machine_reading(struct takt_machine *machine, uint32_t gpu, struct takt_gpu_reading *ret)
{
	const struct fake_board *board = &machine->boards[gpu];

	if (board->seq == 0)
		return -EAGAIN;
	*ret = (struct takt_gpu_reading){.seq = board->seq, .has = TAKT_HAS_SM_CLOCK};
	ret->sm_mhz = board->locked ? board->range.max_mhz : 1980;
	return 0;
}

static int drive(struct fake_board *board)
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

static void carry_out(struct fake_board *board)
{
	int rc = board->call.gate ? board->call.gate(board->call.gate_ctx) : 0;

	if (rc == 0)
		rc = drive(board);
	board->result = (struct takt_err){0};
	if (rc < 0)
		takt_err_set(&board->result, rc, "the fake driver");
	board->finished = true;
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

	board->hangs = false;
	if (board->posted && !board->finished)
		carry_out(board);
}
