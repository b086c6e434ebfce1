/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator and a daemon in hostile hands, on boards that fail and hang: messages of any bytes
 * and length from three connections, which go when they like, while time passes. A request is
 * answered once, to whom it belongs; no board is ever set to what it cannot do; and when all of it
 * is over, every board is as it was found.
 */
#include "fuzz_bytes.h"

#include <errno.h>
#include <stdio.h>

#include "actuate_kit.h"

enum {
	BOARDS = 3,
	CONNECTIONS = 3,
	STEPS = 80,
	TURNS_UNTIL_CLEAN = 2000,
};

static struct kit kit;
static uint64_t seq;
static unsigned unanswered[CONNECTIONS + 1];

static struct fake_board *any_board(struct fuzz_bytes *in)
{
	return &kit.machine.boards[fuzz_u8(in) % BOARDS];
}

static void check_boards(void)
{
	for (uint32_t i = 0; i < BOARDS; i++) {
		const struct fake_board *board = &kit.machine.boards[i];

		fuzz_expect(!board->locked || (board->range.min_mhz >= 210 &&
					       board->range.min_mhz <= board->range.max_mhz &&
					       board->range.max_mhz <= 1980));
		fuzz_expect(!board->mem_locked ||
			    (board->mem_range.min_mhz >= 405 &&
			     board->mem_range.min_mhz <= board->mem_range.max_mhz &&
			     board->mem_range.max_mhz <= 1593));
		fuzz_expect(board->power_limit_mw >= 100000 && board->power_limit_mw <= 400000);
	}
}

static void check_reply(const struct takt_actuate_reply *reply)
{
	fuzz_expect(reply->version == TAKT_ACTUATE_VERSION && reply->rc <= 0);
	fuzz_expect(memchr(reply->message, '\0', sizeof(reply->message)) != NULL);
	fuzz_expect(memchr(reply->uuid, '\0', sizeof(reply->uuid)) != NULL);
	fuzz_expect(reply->rc == 0 || reply->message[0]);
}

static void take_replies(void)
{
	struct takt_actuate_reply reply;
	uint64_t connection;

	while (takt_actuator_reply(kit.actuator, &connection, &reply)) {
		fuzz_expect(connection >= 1 && connection <= CONNECTIONS);
		fuzz_expect(unanswered[connection]-- > 0);
		check_reply(&reply);
	}
}

static void pass_time(uint64_t ms)
{
	fake_sys_advance(kit.world, ms * TAKT_NS_PER_MS);
	(void)takt_actuator_step(kit.actuator, kit_now(&kit));
	take_replies();
	check_boards();
}

static void send(uint64_t connection, const struct takt_actuate_request *request, size_t size)
{
	struct takt_actuate_reply reply;
	unsigned char *bytes = malloc(sizeof(*request));

	if (!bytes)
		abort();
	memcpy(bytes, request, sizeof(*request));
	if (takt_actuator_message(kit.actuator, connection, bytes, size, kit_now(&kit), &reply))
		check_reply(&reply);
	else
		unanswered[connection]++;
	free(bytes);
}

/* What a daemon would say, more or less: each field is often one that means something here. */
static struct takt_actuate_request any_request(struct fuzz_bytes *in)
{
	static const uint64_t ttls[] = {TAKT_NS_PER_S,
					0,
					1,
					TAKT_ACTUATE_TTL_MIN_NS,
					60 * TAKT_NS_PER_S,
					TAKT_ACTUATE_TTL_MAX_NS,
					TAKT_ACTUATE_TTL_MAX_NS + 1,
					UINT64_MAX};
	static const char *const migs[] = {"", "9:0,9:4", "none", "19:0", "0:0", ":", "9:0,9:0"};
	struct takt_actuate_request request = {.version = TAKT_ACTUATE_VERSION, .seq = ++seq};

	request.op = fuzz_u8(in) % (TAKT_ACTUATE_MIG + 2);
	request.lease_id = fuzz_u8(in) % 12;
	request.job_id = fuzz_u8(in) % 6;
	request.ttl_ns = ttls[fuzz_u8(in) % (sizeof(ttls) / sizeof(ttls[0]))];
	request.rank = fuzz_u8(in) % 4;
	request.min_mhz = fuzz_u16(in);
	request.max_mhz = fuzz_u16(in);
	request.power_limit_mw = fuzz_u8(in) * 4000u;
	request.mem_min_mhz = fuzz_u8(in) * 8u;
	request.mem_max_mhz = fuzz_u8(in) * 8u;
	request.assume_unlocked = fuzz_u8(in) % 3;
	request.gpu_index = fuzz_u8(in) % (BOARDS + 1);
	if (request.gpu_index < BOARDS || request.op != TAKT_ACTUATE_RESET)
		(void)snprintf(request.uuid, sizeof(request.uuid), "GPU-fake-%u",
			       request.gpu_index);
	(void)snprintf(request.mig, sizeof(request.mig), "%s",
		       migs[fuzz_u8(in) % (sizeof(migs) / sizeof(migs[0]))]);
	return request;
}

/* Above: 0 as it is, 1 to every GPU, 2 of another length, 3 any bytes behind the version. */
static void send_any(struct fuzz_bytes *in)
{
	uint64_t connection = 1 + fuzz_u8(in) % CONNECTIONS;
	unsigned how = fuzz_u8(in) % 4;
	struct takt_actuate_request request = any_request(in);
	size_t size = sizeof(request);

	if (how == 1)
		memset(request.uuid, 0, sizeof(request.uuid));
	else if (how == 2)
		size = 1 + fuzz_u16(in) % (2 * sizeof(request));
	else if (how == 3)
		fuzz_take(in, (char *)&request + sizeof(request.version),
			  sizeof(request) - sizeof(request.version));
	send(connection, &request, size);
}

static void trouble(struct fuzz_bytes *in)
{
	static const int rcs[] = {0, -EPERM, -EIO, -EINVAL, -TAKT_E_UNAVAILABLE};
	struct fake_board *board = any_board(in);
	int rc = rcs[fuzz_u8(in) % (sizeof(rcs) / sizeof(rcs[0]))];

	switch (fuzz_u8(in) % 12) {
	case 0:
		board->set_rc = rc;
		break;
	case 1:
		board->reset_rc = rc;
		break;
	case 2:
		board->power_rc = rc;
		break;
	case 3:
		if (board->mem_rc != -TAKT_E_UNSUPPORTED)
			board->mem_rc = rc;
		break;
	case 4:
		/* With others the fake would do half of it, which no driver's answer of that kind
		 * is. */
		board->mig_rc = rc == 0 || rc == -EPERM ? rc : -EIO;
		break;
	case 5:
		board->hangs = true;
		board->hangs_inside = rc != 0;
		break;
	case 6:
		fake_boards_unhang(&kit.machine, (uint32_t)(board - kit.machine.boards));
		break;
	case 7:
		board->runs_at_mhz = fuzz_u16(in) % 2200;
		board->util_pct = 100;
		break;
	case 8:
		board->ecc_uncorrected += fuzz_u8(in);
		break;
	case 9:
		board->silent_samples = rc != 0;
		break;
	case 10:
		board->no_power_reading = rc != 0;
		break;
	default:
		board->mig_in_use = rc != 0;
	}
}

static void take_step(struct fuzz_bytes *in)
{
	static const uint64_t pauses_ms[] = {
		10, 50, 1000, 5000, 31000, 3600 * 1000, 25 * 3600 * 1000};
	uint64_t connection;

	switch (fuzz_u8(in) % 8) {
	case 0:
		pass_time(pauses_ms[fuzz_u8(in) % (sizeof(pauses_ms) / sizeof(pauses_ms[0]))]);
		break;
	case 1:
		trouble(in);
		break;
	case 2:
		connection = 1 + fuzz_u8(in) % CONNECTIONS;
		takt_actuator_forget(kit.actuator, connection);
		unanswered[connection] = 0;
		break;
	case 3:
		pass_time(10);
		break;
	default:
		send_any(in);
	}
	check_boards();
}

/* No trouble any more; what a board lacks it goes on lacking. */
static void heal(struct fake_board *board)
{
	board->set_rc = board->reset_rc = board->power_rc = board->mig_rc = 0;
	if (board->mem_rc != -TAKT_E_UNSUPPORTED)
		board->mem_rc = 0;
	board->silent_samples = board->no_power_reading = board->mig_in_use = false;
	board->runs_at_mhz = board->util_pct = 0;
}

static bool is_as_found(const struct fake_board *board)
{
	return !board->locked && !board->mem_locked && board->power_limit_mw == 400000 &&
	       strcmp(board->mig, "9:0,9:4") == 0;
}

static void expect_all_is_put_back(void)
{
	static const enum takt_actuate_op orders[] = {TAKT_ACTUATE_CAP, TAKT_ACTUATE_RESET};
	bool clean = false;

	for (uint32_t i = 0; i < BOARDS; i++) {
		heal(&kit.machine.boards[i]);
		fake_boards_unhang(&kit.machine, i);
	}
	pass_time(60 * 1000);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct takt_actuate_request request = {
			.version = TAKT_ACTUATE_VERSION, .op = orders[i], .seq = ++seq};

		send(1, &request, sizeof(request));
		pass_time(10);
	}
	takt_actuator_end_all(kit.actuator, kit_now(&kit));
	for (int i = 0; i < TURNS_UNTIL_CLEAN && !clean; i++) {
		pass_time(100);
		clean = takt_keeper_all_clean(kit_keeper(&kit));
	}
	fuzz_expect(clean);
	for (uint32_t i = 0; i < BOARDS; i++)
		fuzz_expect(is_as_found(&kit.machine.boards[i]));
	for (uint32_t i = 1; i <= CONNECTIONS; i++)
		fuzz_expect(unanswered[i] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes in = {data, size};

	kit_init(&kit, BOARDS);
	kit_start(&kit);
	memset(unanswered, 0, sizeof(unanswered));
	if (size % 2)
		kit.machine.boards[0].mem_rc = -TAKT_E_UNSUPPORTED;
	for (int i = 0; i < STEPS && in.left > 0; i++)
		take_step(&in);
	expect_all_is_put_back();
	kit_fini(&kit);
	return 0;
}
