/* SPDX-License-Identifier: Apache-2.0 */
/* Settings become a configuration, see the header. */
#include "codec/sched_settings.h"

#include "base/str.h"

static int no_such_order(const char *name, struct takt_err *err)
{
	struct takt_str names = TAKT_STR(200);

	for (size_t i = 0; takt_order_all[i]; i++)
		takt_str_addf(&names, "%s%s", i ? ", " : "", takt_order_all[i]->name);
	takt_err_set(err, -TAKT_E_USAGE, "order must be one of %s, not '%s'", takt_str_text(&names),
		     name);
	takt_str_fini(&names);
	return -TAKT_E_USAGE;
}

int takt_sched_setup_init(const struct takt_sched_settings *settings, struct takt_sched_setup *ret,
			  struct takt_err *err)
{
	const struct takt_order *order =
		settings->order[0] ? takt_order_find(settings->order) : &takt_order_priority;

	if (!order)
		return no_such_order(settings->order, err);
	if (settings->preempt && settings->backfill == TAKT_BACKFILL_GREEDY)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"preempt cannot go with backfill greedy: whoever is small would "
			"take what others were pushed out for; take easy, or preempt = "
			"no");
	*ret = (struct takt_sched_setup){
		.sched = {.order = order,
			  .order_config = &ret->order,
			  .tenants = &ret->tenants,
			  .backfill = settings->backfill,
			  .preempt = settings->preempt,
			  .min_runtime_ns = settings->min_runtime_ns},
		.order = {.by_priority = order != &takt_order_priority,
			  .guard_ns = settings->guard_ns},
		.tenants = {.half_life_ns = settings->half_life_ns},
	};
	return 0;
}
