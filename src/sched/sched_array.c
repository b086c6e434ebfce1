/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of jobs, of which at most so many run at a time. */
#include <errno.h>

#include "base/mem.h"
#include "sched/sched_update.h"

int takt_sched_join_array(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	struct takt_sched_array *array;

	if (!entry->job.array)
		return 0;
	array = takt_map_u64_ptr(&sched->arrays, entry->job.array);
	if (!array) {
		array = takt_zalloc(sizeof(*array));
		if (!array || takt_map_u64_put_ptr(&sched->arrays, entry->job.array, array) < 0) {
			takt_free(array);
			return -ENOMEM;
		}
	}
	array->members++;
	entry->array = array;
	return 0;
}

void takt_sched_leave_array(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	struct takt_sched_array *array = entry->array;

	if (!array || --array->members > 0)
		return;
	takt_map_u64_remove(&sched->arrays, entry->job.array);
	takt_free(array);
}
