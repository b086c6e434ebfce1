/* SPDX-License-Identifier: Apache-2.0 */
/* See host_look.h. */
#include "top/host_look.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

enum {
	TICK_FIELDS = 8, /* user nice system idle iowait irq softirq steal */
	FIELD_IDLE = 3,
	FIELD_IOWAIT = 4,
	TEXT_BYTES = 4096, /* what is looked for stands at the beginning */
};

bool takt_host_read_ticks(const char *text, struct takt_host_ticks *ret)
{
	struct takt_host_ticks ticks = {0};
	uint64_t field[TICK_FIELDS];

	if (sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &field[0], &field[1], &field[2], &field[3], &field[4], &field[5], &field[6],
		   &field[7]) != TICK_FIELDS)
		return false;
	for (int i = 0; i < TICK_FIELDS; i++) {
		ticks.all += field[i];
		if (i != FIELD_IDLE && i != FIELD_IOWAIT)
			ticks.busy += field[i];
	}
	*ret = ticks;
	return true;
}

static bool read_kib(const char *text, const char *name, uint64_t *ret_bytes)
{
	const char *line = strstr(text, name);
	uint64_t kib;

	if (!line || sscanf(line + strlen(name), "%" SCNu64, &kib) != 1 || kib > UINT64_MAX / 1024)
		return false;
	*ret_bytes = kib * 1024;
	return true;
}

bool takt_host_read_memory(const char *text, struct takt_top_host *ret)
{
	uint64_t total, available;

	if (!read_kib(text, "MemTotal:", &total) || !read_kib(text, "MemAvailable:", &available) ||
	    available > total)
		return false;
	ret->has |= TAKT_TOP_HOST_MEMORY;
	ret->mem_total_bytes = total;
	ret->mem_used_bytes = total - available;
	return true;
}

bool takt_host_read_load(const char *text, struct takt_top_host *ret)
{
	uint32_t whole[TAKT_TOP_LOADS], hundredths[TAKT_TOP_LOADS];

	if (sscanf(text, "%" SCNu32 ".%2" SCNu32 " %" SCNu32 ".%2" SCNu32 " %" SCNu32 ".%2" SCNu32,
		   &whole[0], &hundredths[0], &whole[1], &hundredths[1], &whole[2],
		   &hundredths[2]) != 2 * TAKT_TOP_LOADS)
		return false;
	ret->has |= TAKT_TOP_HOST_LOAD;
	for (int i = 0; i < TAKT_TOP_LOADS; i++)
		ret->load_centi[i] = whole[i] * 100 + hundredths[i];
	return true;
}

static const char *read_text(const char *path, char ret[TEXT_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, TEXT_BYTES - 1);

	if (fd >= 0)
		close(fd);
	ret[n > 0 ? n : 0] = '\0';
	return ret;
}

static void tell_cpu(const struct takt_host_ticks *before, const struct takt_host_ticks *now,
		     struct takt_top_host *ret)
{
	if (before->all == 0 || now->all <= before->all || now->busy < before->busy)
		return;
	ret->has |= TAKT_TOP_HOST_CPU;
	ret->cpu_permille =
		(uint32_t)((now->busy - before->busy) * 1000 / (now->all - before->all));
}

void takt_host_look(struct takt_host_ticks *before, struct takt_top_host *ret)
{
	struct takt_host_ticks now;
	char text[TEXT_BYTES];

	*ret = (struct takt_top_host){.has = 0};
	if (takt_host_read_ticks(read_text("/proc/stat", text), &now)) {
		tell_cpu(before, &now, ret);
		*before = now;
	}
	(void)takt_host_read_memory(read_text("/proc/meminfo", text), ret);
	(void)takt_host_read_load(read_text("/proc/loadavg", text), ret);
}
