/* SPDX-License-Identifier: Apache-2.0 */
/* A ceiling for CPUs that is asked for while the actuator starts, or is away. The actuator and
 * whoever waits for an answer are the test's: the linker sends what admin_knobs.c asks of them
 * here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "daemon/daemon.h"

static struct {
	uint64_t now_ns;
	bool there;			   /* the actuator */
	struct takt_actuate_request asked; /* the newest */
	unsigned requests, connects;
	int reflex_rc;			 /* what it answers each request with; 0 = reply, below */
	bool hangs_up;			 /* on whoever has asked */
	struct takt_actuate_reply reply; /* seq 0: it has not said anything */
	int answered;			 /* 200, or what was wrong; 0 = nobody was */
	void (*hung_up)(void *ctx);	 /* of whoever asked last */
	void *hung_up_ctx;
} world;

int __wrap_takt_actuate_connect(const char *socket_path, struct takt_actuate_client **ret,
				struct takt_err *err);
int __wrap_takt_actuate_fd(const struct takt_actuate_client *client);
int __wrap_takt_actuate_send(struct takt_actuate_client *client,
			     struct takt_actuate_request request, struct takt_err *err);
int __wrap_takt_actuate_recv(struct takt_actuate_client *client, struct takt_actuate_reply *ret,
			     struct takt_err *err);
void __wrap_takt_actuate_client_free(struct takt_actuate_client *client);
void __wrap_takt_leases_answer(struct takt_lease_keeper *leases, struct takt_pending *pending);
void __wrap_takt_pending_error(struct takt_pending *pending, const struct takt_err *err);
void __wrap_takt_pending_set_cancel(struct takt_pending *pending, void (*hung_up)(void *ctx),
				    void *ctx);

int __wrap_takt_actuate_connect(const char *socket_path, struct takt_actuate_client **ret,
				struct takt_err *err)
{
	world.connects++;
	*ret = (struct takt_actuate_client *)&world;
	return world.there ? 0 : -ECONNREFUSED;
}

int __wrap_takt_actuate_fd(const struct takt_actuate_client *client)
{
	return 0;
}

int __wrap_takt_actuate_send(struct takt_actuate_client *client,
			     struct takt_actuate_request request, struct takt_err *err)
{
	world.asked = request;
	world.requests++;
	if (world.reflex_rc)
		world.reply = (struct takt_actuate_reply){
			.op = TAKT_ACTUATE_CPU, .seq = request.seq, .rc = world.reflex_rc};
	return 0;
}

int __wrap_takt_actuate_recv(struct takt_actuate_client *client, struct takt_actuate_reply *ret,
			     struct takt_err *err)
{
	if (!world.there || world.hangs_up)
		return -EPIPE;
	if (world.reply.seq == 0)
		return 0;
	*ret = world.reply;
	world.reply.seq = 0;
	return 1;
}

void __wrap_takt_actuate_client_free(struct takt_actuate_client *client)
{
}

void __wrap_takt_leases_answer(struct takt_lease_keeper *leases, struct takt_pending *pending)
{
	world.answered = 200;
}

void __wrap_takt_pending_error(struct takt_pending *pending, const struct takt_err *err)
{
	world.answered = err->rc;
}

void __wrap_takt_pending_set_cancel(struct takt_pending *pending, void (*hung_up)(void *ctx),
				    void *ctx)
{
	world.hung_up = hung_up;
	world.hung_up_ctx = ctx;
}

static uint64_t boot_ns(const struct takt_sys *sys)
{
	return world.now_ns;
}

static const struct takt_sys sys = {.boot_ns = boot_ns};

static struct takt_daemon *rig_open(void)
{
	struct takt_daemon *daemon = takt_zalloc(sizeof(*daemon));

	assert_non_null(daemon);
	memset(&world, 0, sizeof(world));
	daemon->sys = &sys;
	daemon->manages = true;
	assert_int_equal(takt_knobs_new(daemon, &daemon->knobs, NULL), 0);
	return daemon;
}

static void rig_close(struct takt_daemon *daemon)
{
	takt_knobs_free(daemon->knobs);
	takt_free(daemon);
}

static void ask(struct takt_daemon *daemon, uint32_t max_mhz)
{
	static char pending;

	world.answered = 0;
	assert_int_equal(
		takt_knobs_cpu(daemon->knobs, max_mhz, (struct takt_pending *)&pending, NULL), 0);
}

/* Whether the connection is readable. */
static bool is_something_to_hear(const struct takt_daemon *daemon)
{
	return takt_knobs_fd(daemon->knobs) >= 0 &&
	       (!world.there || world.hangs_up || world.reply.seq);
}

/* The daemon's turns, as often as the knobs want one. */
static void pass(struct takt_daemon *daemon, unsigned seconds)
{
	uint64_t end_ns = world.now_ns + seconds * TAKT_NS_PER_S, next_ns;

	do {
		next_ns = 0;
		takt_knobs_pump(daemon->knobs, takt_boot_now(&sys), &next_ns);
		if (is_something_to_hear(daemon))
			next_ns = world.now_ns + TAKT_NS_PER_MS;
		else if (next_ns == 0 || next_ns > end_ns)
			next_ns = end_ns;
		world.now_ns = next_ns > world.now_ns ? next_ns : world.now_ns + 1;
	} while (world.now_ns < end_ns);
	takt_knobs_pump(daemon->knobs, takt_boot_now(&sys), &next_ns);
}

static void reply(int rc, uint32_t mhz)
{
	world.reply = (struct takt_actuate_reply){
		.op = TAKT_ACTUATE_CPU, .seq = world.asked.seq, .rc = rc, .applied_max_mhz = mhz};
}

static void an_order_waits_for_an_actuator_that_is_late(void **state)
{
	struct takt_daemon *daemon = rig_open();

	ask(daemon, 2400);
	pass(daemon, 15);
	assert_int_equal(world.requests, 0);
	assert_int_equal(world.answered, 0);
	world.there = true;
	pass(daemon, 1);
	assert_int_equal(world.asked.max_mhz, 2400);
	assert_int_equal(world.answered, 0);
	pass(daemon, 8); /* its time to answer counts from there */
	assert_int_equal(world.answered, 0);
	reply(0, 2400);
	pass(daemon, 1);
	assert_int_equal(world.answered, 200);
	rig_close(daemon);
}

static void a_reset_waits_too(void **state)
{
	struct takt_daemon *daemon = rig_open();

	ask(daemon, 0);
	pass(daemon, 3);
	world.there = true;
	pass(daemon, 1);
	assert_int_equal(world.requests, 1);
	reply(0, 0);
	pass(daemon, 1);
	assert_int_equal(world.answered, 200);
	assert_int_equal(takt_knobs_fd(daemon->knobs), -1); /* nothing more to say */
	rig_close(daemon);
}

static void an_order_that_is_given_up_is_not_carried_out_later(void **state)
{
	struct takt_daemon *daemon = rig_open();

	ask(daemon, 2400);
	pass(daemon, 21);
	assert_int_equal(world.answered, -TAKT_E_UNAVAILABLE);
	world.there = true;
	pass(daemon, 60);
	assert_int_equal(world.requests, 0);
	rig_close(daemon);
}

static void what_held_before_holds_again(void **state)
{
	struct takt_daemon *daemon = rig_open();

	world.there = true;
	ask(daemon, 2400);
	reply(0, 2400);
	pass(daemon, 1);
	assert_int_equal(world.answered, 200);
	world.there = false;
	pass(daemon, 1);
	ask(daemon, 2000);
	pass(daemon, 21);
	assert_int_equal(world.answered, -TAKT_E_UNAVAILABLE);
	world.there = true;
	pass(daemon, 2);
	assert_int_equal(world.asked.max_mhz, 2400);
	rig_close(daemon);
}

static void an_order_whose_asker_hung_up_is_not_carried_out_later(void **state)
{
	struct takt_daemon *daemon = rig_open();

	ask(daemon, 2400);
	pass(daemon, 1);
	world.hung_up(world.hung_up_ctx);
	pass(daemon, 60);
	world.there = true;
	pass(daemon, 60);
	assert_int_equal(world.requests, 0);
	assert_int_equal(world.answered, 0);
	rig_close(daemon);
}

static void a_reset_whose_asker_hung_up_leaves_what_holds(void **state)
{
	struct takt_daemon *daemon = rig_open();

	world.there = true;
	ask(daemon, 2400);
	reply(0, 2400);
	pass(daemon, 1);
	world.there = false;
	pass(daemon, 1);
	ask(daemon, 0);
	world.hung_up(world.hung_up_ctx);
	world.requests = 0;
	world.there = true;
	pass(daemon, 2);
	assert_int_equal(world.requests, 1);
	assert_int_equal(world.asked.max_mhz, 2400);
	rig_close(daemon);
}

static void the_last_of_several_wishes_is_what_is_sent(void **state)
{
	struct takt_daemon *daemon = rig_open();

	ask(daemon, 2400);
	pass(daemon, 10);
	ask(daemon, 2000);
	pass(daemon, 11); /* the first is given up, the second waits */
	assert_int_equal(world.answered, -TAKT_E_UNAVAILABLE);
	world.there = true;
	pass(daemon, 1);
	assert_int_equal(world.asked.max_mhz, 2000);
	reply(0, 2000);
	pass(daemon, 1);
	assert_int_equal(world.answered, 200);
	rig_close(daemon);
}

static void a_missing_guard_is_waited_for(void **state)
{
	struct takt_daemon *daemon = rig_open();

	world.there = true;
	ask(daemon, 2400);
	reply(-TAKT_E_UNAVAILABLE, 0);
	pass(daemon, 1);
	assert_int_equal(world.answered, 0);
	assert_int_equal(world.requests, 2);
	pass(daemon, 10);
	assert_int_equal(world.answered, -ETIMEDOUT);
	rig_close(daemon);
}

/* A ceiling that holds, over six hours of what is the matter with the actuator. */
static void hold_through(struct takt_daemon *daemon)
{
	world.there = true;
	ask(daemon, 2400);
	reply(0, 2400);
	pass(daemon, 1);
	assert_int_equal(world.answered, 200);
	world.requests = world.connects = 0;
}

static void check_hours(struct takt_daemon *daemon, const unsigned *tries)
{
	pass(daemon, 20);
	assert_in_range(*tries, 10, 25); /* soon at first */
	pass(daemon, 6 * 3600);
	assert_in_range(*tries, 100, 6 * 3600 + 25);
}

static void hours_without_an_actuator_are_few_tries(void **state)
{
	struct takt_daemon *daemon = rig_open();

	hold_through(daemon);
	world.there = false;
	check_hours(daemon, &world.connects);
	world.there = true;
	world.requests = 0;
	pass(daemon, 1);
	assert_int_equal(world.requests, 1);
	assert_int_equal(world.asked.max_mhz, 2400);
	rig_close(daemon);
}

static void hours_of_an_actuator_that_hangs_up_are_few_tries(void **state)
{
	struct takt_daemon *daemon = rig_open();

	hold_through(daemon);
	world.hangs_up = true;
	check_hours(daemon, &world.connects);
	rig_close(daemon);
}

static void hours_without_a_guard_are_few_tries(void **state)
{
	struct takt_daemon *daemon = rig_open();

	hold_through(daemon);
	world.reflex_rc = -TAKT_E_UNAVAILABLE;
	pass(daemon, 8); /* it is renewed by then */
	world.requests = 0;
	check_hours(daemon, &world.requests);
	rig_close(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_waits_for_an_actuator_that_is_late),
		cmocka_unit_test(a_reset_waits_too),
		cmocka_unit_test(an_order_that_is_given_up_is_not_carried_out_later),
		cmocka_unit_test(what_held_before_holds_again),
		cmocka_unit_test(an_order_whose_asker_hung_up_is_not_carried_out_later),
		cmocka_unit_test(a_reset_whose_asker_hung_up_leaves_what_holds),
		cmocka_unit_test(the_last_of_several_wishes_is_what_is_sent),
		cmocka_unit_test(a_missing_guard_is_waited_for),
		cmocka_unit_test(hours_without_an_actuator_are_few_tries),
		cmocka_unit_test(hours_of_an_actuator_that_hangs_up_are_few_tries),
		cmocka_unit_test(hours_without_a_guard_are_few_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
