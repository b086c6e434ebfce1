/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of what top_json.c writes, for machines that are watched from elsewhere. */
#include <cjson/cJSON.h>
#include <string.h>

#include "codec/json.h"
#include "top/top_json.h"

enum {
	MAX_PCT_SUM = 100 * TAKT_VIEW_MAX_GPUS,
	MAX_LOAD_CENTI = 100 * 1000 * 1000,
};

static int bad(struct takt_err *err, const char *where)
{
	return takt_err_set(err, -TAKT_E_CORRUPT, "%s: not as takt top writes it", where);
}

bool takt_top_read_number(const cJSON *object, const char *name, uint64_t max, uint64_t *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > (double)max ||
	    item->valuedouble != (double)(uint64_t)item->valuedouble)
		return false;
	*ret = (uint64_t)item->valuedouble;
	return true;
}

void takt_top_read_text(const cJSON *object, const char *name, char *ret, size_t size)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	takt_strcpy(ret, size, text ? text : "");
}

bool takt_top_read_boot_id(const cJSON *object, char ret[40])
{
	size_t len;

	takt_top_read_text(object, "boot_id", ret, 40);
	len = strlen(ret);
	if (len == strlen(TAKT_NO_BOOT_ID) && strspn(ret, "0123456789abcdef-") == len)
		return true;
	ret[0] = '\0';
	return false;
}

static bool read_gpus(const cJSON *proc, uint64_t *ret_mask)
{
	const cJSON *gpu;

	cJSON_ArrayForEach (gpu, cJSON_GetObjectItemCaseSensitive(proc, "gpus")) {
		if (!cJSON_IsNumber(gpu) || !(gpu->valuedouble >= 0) ||
		    gpu->valuedouble >= TAKT_VIEW_MAX_GPUS)
			return false;
		*ret_mask |= (uint64_t)1 << (uint32_t)gpu->valuedouble;
	}
	return true;
}

/* Whole or not at all; what is not there is not known. */
static void read_times(const cJSON *item, struct takt_top_proc *proc)
{
	uint64_t gpus, sm, memory, cpu;

	if (takt_top_read_number(item, "util_gpus", TAKT_VIEW_MAX_GPUS, &gpus) &&
	    takt_top_read_number(item, "sm_pct_sum", MAX_PCT_SUM, &sm) &&
	    takt_top_read_number(item, "mem_pct_sum", MAX_PCT_SUM, &memory)) {
		proc->util_gpus = (uint32_t)gpus;
		proc->sm_pct_sum = (uint32_t)sm;
		proc->mem_pct_sum = (uint32_t)memory;
	}
	proc->cpu_known = takt_top_read_number(item, "cpu_permille", UINT32_MAX, &cpu);
	if (proc->cpu_known)
		proc->cpu_permille = (uint32_t)cpu;
	if (proc->id.start_ticks)
		(void)takt_top_read_number(item, "run_ms", TAKT_JSON_MAX_INT, &proc->run_ms);
}

/* Without its boot its start says nothing, and it gets no signals. */
static bool read_proc(const cJSON *item, const char *boot_id, struct takt_top_proc *ret)
{
	struct takt_top_proc proc = {.uid = UINT32_MAX};
	uint64_t pid, uid;

	if (!takt_top_read_number(item, "pid", INT32_MAX, &pid) || !read_gpus(item, &proc.gpu_mask))
		return false;
	proc.id.pid = (int32_t)pid;
	takt_strcpy(proc.id.boot_id, sizeof(proc.id.boot_id), boot_id);
	if (boot_id[0])
		(void)takt_top_read_number(item, "start_ticks", TAKT_JSON_MAX_INT,
					   &proc.id.start_ticks);
	if (takt_top_read_number(item, "uid", UINT32_MAX - 1, &uid))
		proc.uid = (uint32_t)uid;
	(void)takt_top_read_number(item, "job_id", TAKT_JSON_MAX_INT, &proc.job_id);
	proc.memory_known =
		takt_top_read_number(item, "memory_bytes", TAKT_JSON_MAX_INT, &proc.memory_bytes);
	read_times(item, &proc);
	takt_top_read_text(item, "user", proc.user, sizeof(proc.user));
	takt_top_read_text(item, "command", proc.command, sizeof(proc.command));
	*ret = proc;
	return true;
}

static int read_procs(const cJSON *root, struct takt_top_snapshot *ret, struct takt_err *err)
{
	const cJSON *item;
	int32_t last = -1;
	char boot_id[40];
	int rc = 0;

	(void)takt_top_read_boot_id(root, boot_id);
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(root, "processes")) {
		struct takt_top_proc proc;

		if (!read_proc(item, boot_id, &proc) || proc.id.pid <= last)
			return bad(err, "processes");
		last = proc.id.pid;
		rc = takt_vec_push(&ret->procs, proc);
		if (rc < 0)
			return takt_err_set(err, rc, "processes");
	}
	return 0;
}

static bool read_load(const cJSON *host, uint32_t ret[TAKT_TOP_LOADS])
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(host, "load_centi"), *item;
	int n = 0;

	cJSON_ArrayForEach (item, list) {
		if (n == TAKT_TOP_LOADS || !cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
		    item->valuedouble > MAX_LOAD_CENTI)
			return false;
		ret[n++] = (uint32_t)item->valuedouble;
	}
	return n == TAKT_TOP_LOADS;
}

/* An older takt says nothing of it. */
static void read_host(const cJSON *root, struct takt_top_host *ret)
{
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(root, "host");
	uint64_t cpu;

	if (takt_top_read_number(host, "cpu_permille", 1000, &cpu)) {
		ret->has |= TAKT_TOP_HOST_CPU;
		ret->cpu_permille = (uint32_t)cpu;
	}
	if (takt_top_read_number(host, "memory_used_bytes", TAKT_JSON_MAX_INT,
				 &ret->mem_used_bytes) &&
	    takt_top_read_number(host, "memory_total_bytes", TAKT_JSON_MAX_INT,
				 &ret->mem_total_bytes))
		ret->has |= TAKT_TOP_HOST_MEMORY;
	if (read_load(host, ret->load_centi))
		ret->has |= TAKT_TOP_HOST_LOAD;
}

/* A part of the document, as text for its own reader; the caller frees it with cJSON_free. */
static char *part_of(const cJSON *root, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, name);

	return item ? cJSON_PrintUnformatted(item) : NULL;
}

static int read_status(const cJSON *root, struct takt_status_view *ret, struct takt_err *err)
{
	char *text = part_of(root, "status");
	int rc = text ? takt_status_view_from_json(text, strlen(text), ret, err)
		      : bad(err, "status");

	cJSON_free(text);
	return rc;
}

static int read_queue(const cJSON *root, struct takt_queue_view *ret, struct takt_err *err)
{
	char *text = part_of(root, "queue");
	int rc = text ? takt_queue_view_from_json(text, strlen(text), ret, err) : bad(err, "queue");

	cJSON_free(text);
	return rc;
}

static int read_all(const cJSON *root, struct takt_top_snapshot *ret, struct takt_err *err)
{
	char from[16];
	uint64_t at_ms;
	int rc;

	takt_top_read_text(root, "from", from, sizeof(from));
	ret->daemon = strcmp(from, "daemon") == 0;
	if (!ret->daemon && strcmp(from, "driver") != 0)
		return bad(err, "from");
	if (!takt_top_read_number(root, "at_ms", INT64_MAX / 1000000 - 1, &at_ms))
		return bad(err, "at_ms");
	ret->at.ns = (int64_t)at_ms * 1000000;
	read_host(root, &ret->host);
	rc = read_status(root, &ret->status, err);
	if (rc == 0 && ret->daemon)
		rc = read_queue(root, &ret->queue, err);
	if (rc == 0)
		rc = takt_top_read_past(root, ret, err);
	if (rc == 0)
		rc = takt_top_read_log(root, ret, err);
	return rc == 0 ? read_procs(root, ret, err) : rc;
}

int takt_top_from_json(const char *text, size_t len, struct takt_top_snapshot *ret,
		       struct takt_err *err)
{
	struct takt_top_snapshot snapshot;
	cJSON *root;
	int rc = takt_json_parse(text, len, TAKT_TOP_MAX_LOOK, &root, err);

	if (rc < 0)
		return rc;
	takt_top_snapshot_init(&snapshot);
	rc = read_all(root, &snapshot, err);
	cJSON_Delete(root);
	if (rc < 0)
		takt_top_snapshot_fini(&snapshot);
	else
		*ret = snapshot;
	return rc;
}
