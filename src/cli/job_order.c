/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which the jobs of a file are handed in: each after those that it names, otherwise as
 * they stand.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job_file.h"

enum {
	NOWHERE = -1
};

struct order {
	struct takt_job_file *file;
	cJSON **jobs; /* by their place in the file; borrowed */
	bool *placed;
	struct takt_err *err;
};

static const cJSON *names_of(const struct order *order, uint32_t index)
{
	return cJSON_GetObjectItemCaseSensitive(order->jobs[index], "after_names");
}

/* "prep:any" means prep. NOWHERE: nobody is called so. */
static int find(const struct order *order, const char *text)
{
	size_t len = strcspn(text, ":");

	for (uint32_t i = 0; i < order->file->count; i++) {
		const char *name = order->file->entries[i].name;

		if (strlen(name) == len && strncmp(name, text, len) == 0)
			return (int)i;
	}
	return NOWHERE;
}

/* The first job that this one names and that has no place yet; NOWHERE when there is none. */
static int awaits(const struct order *order, uint32_t index)
{
	const cJSON *name;

	cJSON_ArrayForEach (name, names_of(order, index)) {
		int other = find(order, name->valuestring);

		if (other != NOWHERE && !order->placed[other])
			return other;
	}
	return NOWHERE;
}

static int check_names(const struct order *order)
{
	for (uint32_t i = 0; i < order->file->count; i++) {
		const cJSON *name;

		cJSON_ArrayForEach (name, names_of(order, i)) {
			if (find(order, name->valuestring) == NOWHERE)
				return takt_err_set(order->err, -TAKT_E_USAGE,
						    "'%.64s' comes after '%.70s', but no job of "
						    "the file is called so",
						    order->file->entries[i].name,
						    name->valuestring);
		}
	}
	return 0;
}

/* None of those left can come first: whoever walks from one to what it awaits walks in a circle. */
static int refuse_circle(const struct order *order)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	uint32_t at = 0, start;

	while (order->placed[at])
		at++;
	for (uint32_t i = 0; i < order->file->count; i++)
		at = (uint32_t)awaits(order, at);
	start = at;
	do {
		takt_str_addf(&text, "'%s' comes after ", order->file->entries[at].name);
		at = (uint32_t)awaits(order, at);
	} while (at != start);
	takt_str_addf(&text, "'%s'", order->file->entries[at].name);
	return takt_err_set(order->err, -TAKT_E_USAGE, "jobs in a circle: %.400s",
			    takt_str_text(&text));
}

static int next_job(const struct order *order)
{
	for (uint32_t i = 0; i < order->file->count; i++)
		if (!order->placed[i] && awaits(order, i) == NOWHERE)
			return (int)i;
	return NOWHERE;
}

static int place_all(const struct order *order, cJSON *list)
{
	for (uint32_t place = 0; place < order->file->count; place++) {
		int next = next_job(order);
		cJSON *job;

		if (next == NOWHERE)
			return refuse_circle(order);
		job = cJSON_DetachItemViaPointer(list, order->jobs[next]);
		(void)cJSON_AddItemToArray(list, job); /* allocates nothing */
		order->placed[next] = true;
		order->file->entries[next].place = place;
	}
	return 0;
}

int takt_job_file_order(struct takt_job_file *file, cJSON *list, struct takt_err *err)
{
	TAKT_CLEANUP(freep) cJSON **jobs = takt_calloc(file->count, sizeof(cJSON *));
	TAKT_CLEANUP(freep) bool *placed = takt_calloc(file->count, sizeof(bool));
	struct order order = {.file = file, .jobs = jobs, .placed = placed, .err = err};
	uint32_t i = 0;
	cJSON *job;
	int rc;

	if (!jobs || !placed)
		return takt_err_set(err, -ENOMEM, "no memory for the jobs");
	cJSON_ArrayForEach (job, list)
		jobs[i++] = job;
	rc = check_names(&order);
	return rc < 0 ? rc : place_all(&order, list);
}
