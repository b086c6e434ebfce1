/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_clock.h. */
#include "twin_clock.h"

#include <time.h>

uint64_t twin_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void twin_clock_init(struct twin_clock *clock, uint64_t boot_ns, uint64_t speed)
{
	const struct twin_stretch first = {boot_ns, boot_ns - boot_ns % TWIN_CELL_NS, speed};

	clock->stretch[0] = clock->stretch[1] = first;
	atomic_store(&clock->number, 1);
}

static struct twin_stretch load(const struct twin_stretch *from)
{
	return (struct twin_stretch){
		.boot_ns = __atomic_load_n(&from->boot_ns, __ATOMIC_RELAXED),
		.machine_ns = __atomic_load_n(&from->machine_ns, __ATOMIC_RELAXED),
		.speed = __atomic_load_n(&from->speed, __ATOMIC_RELAXED),
	};
}

/* The newest stretch and the one before it. */
static uint64_t fetch(const struct twin_clock *clock, struct twin_stretch *ret_newest,
		      struct twin_stretch *ret_before)
{
	uint64_t before, after = atomic_load_explicit(&clock->number, memory_order_acquire);

	do {
		before = after;
		*ret_newest = load(&clock->stretch[before % TWIN_STRETCHES]);
		*ret_before = load(&clock->stretch[(before - 1) % TWIN_STRETCHES]);
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&clock->number, memory_order_acquire);
	} while (before != after);
	return before;
}

static uint64_t time_in(const struct twin_stretch *stretch, uint64_t boot_ns)
{
	return stretch->machine_ns +
	       (boot_ns > stretch->boot_ns ? boot_ns - stretch->boot_ns : 0) * stretch->speed;
}

uint64_t twin_clock_at(const struct twin_clock *clock, uint64_t boot_ns)
{
	struct twin_stretch newest, before;

	fetch(clock, &newest, &before);
	return time_in(boot_ns >= newest.boot_ns ? &newest : &before, boot_ns);
}

/* What was before all that is kept passed as the world's time: boards begin with a past of rest. */
static uint64_t boot_in(const struct twin_stretch *stretch, uint64_t machine_ns)
{
	if (machine_ns < stretch->machine_ns)
		return stretch->boot_ns - (stretch->machine_ns - machine_ns);
	if (!stretch->speed)
		return stretch->boot_ns;
	return stretch->boot_ns + (machine_ns - stretch->machine_ns) / stretch->speed;
}

uint64_t twin_clock_boot(const struct twin_clock *clock, uint64_t machine_ns, uint64_t boot_ns)
{
	struct twin_stretch newest, before;
	uint64_t found;

	fetch(clock, &newest, &before);
	if (boot_ns >= newest.boot_ns && machine_ns >= newest.machine_ns)
		return boot_in(&newest, machine_ns);
	found = boot_in(&before, machine_ns);
	return found < newest.boot_ns ? found : newest.boot_ns;
}

uint64_t twin_clock_speed(const struct twin_clock *clock)
{
	struct twin_stretch newest, before;

	fetch(clock, &newest, &before);
	return newest.speed;
}

bool twin_clock_begun(const struct twin_clock *clock)
{
	struct twin_stretch newest, before;

	fetch(clock, &newest, &before);
	return twin_now_ns() >= newest.boot_ns;
}

bool twin_clock_announce(struct twin_clock *clock, uint64_t speed, uint64_t skip_ns)
{
	struct twin_stretch newest, before, *next;
	uint64_t number = fetch(clock, &newest, &before), boot_ns = twin_now_ns();
	uint64_t from_ns = boot_ns + TWIN_CLOCK_LEAD_NS;

	if (boot_ns < newest.boot_ns)
		return false;
	next = &clock->stretch[(number + 1) % TWIN_STRETCHES];
	/* whoever sees a part of the new stretch also sees the number that we started from */
	atomic_thread_fence(memory_order_release);
	__atomic_store_n(&next->boot_ns, from_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&next->machine_ns, time_in(&newest, from_ns) + skip_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&next->speed, speed, __ATOMIC_RELAXED);
	if (twin_now_ns() > from_ns - TWIN_CLOCK_LEAD_NS / 2)
		return false;
	atomic_store_explicit(&clock->number, number + 1, memory_order_release);
	return true;
}
