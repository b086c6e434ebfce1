/* SPDX-License-Identifier: Apache-2.0 */
/* Files of NCCL's inspector, see the header. The plugin does not escape what stands in quotes: a
 * value ends at the first one. */
#include "telemetry/nccl_read.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "telemetry/wary_open.h"

enum {
	NUMBER = 32,
};

/* Of a line; not terminated. */
struct span {
	const char *at;
	size_t len;
};

struct line {
	struct span name, labels;
	double value;
};

static bool is(struct span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.at, text, span.len) == 0;
}

/* What comes before the first `end`; *rest begins behind it. */
static bool cut(struct span *rest, char end, struct span *ret)
{
	const char *found = rest->len ? memchr(rest->at, end, rest->len) : NULL;

	if (!found)
		return false;
	*ret = (struct span){rest->at, (size_t)(found - rest->at)};
	rest->len -= ret->len + 1;
	rest->at = found + 1;
	return true;
}

/* A label and what follows it; false at the end of them, or of what can be understood. */
static bool next_label(struct span *rest, struct span *ret_name, struct span *ret_value)
{
	struct span none;

	if (!cut(rest, '=', ret_name) || !cut(rest, '"', &none) || none.len ||
	    !cut(rest, '"', ret_value))
		return false;
	return rest->len == 0 || (cut(rest, ',', &none) && none.len == 0);
}

static bool read_value(struct span text, double *ret)
{
	char number[NUMBER], *end;

	while (text.len && text.at[0] == ' ') {
		text.at++;
		text.len--;
	}
	if (text.len == 0 || text.len >= sizeof(number))
		return false;
	memcpy(number, text.at, text.len);
	number[text.len] = '\0';
	*ret = strtod(number, &end);
	return *end == '\0' && isfinite(*ret) && *ret > 0;
}

/* The labels end at the last brace: names may have such a character. */
static bool split(struct span text, struct line *ret)
{
	const char *close = text.len ? memrchr(text.at, '}', text.len) : NULL;

	if (!close || !cut(&text, '{', &ret->name) || close < text.at)
		return false;
	ret->labels = (struct span){text.at, (size_t)(close - text.at)};
	text.len -= ret->labels.len + 1;
	text.at = close + 1;
	return read_value(text, &ret->value);
}

static bool keep_text(struct span value, char ret[TAKT_NCCL_NAME])
{
	size_t len = value.len < TAKT_NCCL_NAME ? value.len : TAKT_NCCL_NAME - 1;

	memcpy(ret, value.at, len);
	ret[len] = '\0';
	return strlen(ret) == len && len > 0;
}

static bool keep_count(struct span value, uint32_t *ret)
{
	char text[TAKT_NCCL_NAME];
	unsigned long long count;

	if (!keep_text(value, text) || takt_parse_u64(text, 1, UINT32_MAX, &count) < 0)
		return false;
	*ret = (uint32_t)count;
	return true;
}

/* Releases of the plugin call the same by different names. */
static bool take_label(struct span name, struct span value, struct takt_nccl_row *row)
{
	if (is(name, "collective") || is(name, "p2p_operation"))
		return keep_text(value, row->operation);
	if (is(name, "comm_name") || is(name, "comm_id"))
		return keep_text(value, row->comm);
	if (is(name, "nranks") || is(name, "n_ranks"))
		return keep_count(value, &row->ranks);
	if (is(name, "n_nodes"))
		return keep_count(value, &row->nodes);
	return true;
}

static bool read_labels(struct span labels, struct takt_nccl_row *ret)
{
	struct span name, value;

	*ret = (struct takt_nccl_row){.ranks = 0};
	while (labels.len)
		if (!next_label(&labels, &name, &value) || !take_label(name, value, ret))
			return false;
	return ret->operation[0] && ret->comm[0] && ret->ranks && ret->nodes;
}

static struct takt_nccl_row *find(struct takt_nccl *nccl, const struct takt_nccl_row *row)
{
	for (uint32_t i = 0; i < nccl->count; i++) {
		struct takt_nccl_row *known = &nccl->row[i];

		if (strcmp(known->operation, row->operation) == 0 &&
		    strcmp(known->comm, row->comm) == 0 && known->ranks == row->ranks &&
		    known->nodes == row->nodes)
			return known;
	}
	return NULL;
}

static void keep(const struct takt_nccl_row *row, struct takt_nccl *ret)
{
	struct takt_nccl_row *known = find(ret, row);

	if (!known && ret->count == TAKT_NCCL_MAX_ROWS)
		ret->left_out++;
	else if (!known)
		ret->row[ret->count++] = *row;
	else if (row->seconds > known->seconds)
		*known = *row;
}

static bool is_bandwidth(struct span name)
{
	return is(name, "nccl_bus_bandwidth_gbs") || is(name, "nccl_p2p_bus_bandwidth_gbs");
}

static bool is_time(struct span name)
{
	return is(name, "nccl_collective_exec_time_microseconds") ||
	       is(name, "nccl_p2p_exec_time_microseconds");
}

/* The time of an operation follows its bandwidth, with the same labels. */
void takt_nccl_parse(const char *text, size_t len, struct takt_nccl *ret)
{
	struct span rest = {text, len}, one;
	struct line line, bandwidth = {.value = 0};
	struct takt_nccl_row row;

	ret->count = ret->left_out = 0;
	while (cut(&rest, '\n', &one)) {
		if (!split(one, &line))
			continue;
		if (is_bandwidth(line.name))
			bandwidth = line;
		if (!is_time(line.name) || line.labels.len == 0 ||
		    line.labels.len != bandwidth.labels.len ||
		    memcmp(line.labels.at, bandwidth.labels.at, line.labels.len) != 0 ||
		    !read_labels(line.labels, &row))
			continue;
		row.bus_bytes_s = bandwidth.value * 1e9;
		row.seconds = line.value / 1e6;
		keep(&row, ret);
	}
}

static int read_text(int fd, struct takt_nccl *ret)
{
	char *text = takt_alloc(TAKT_NCCL_MAX_BYTES);
	ssize_t got = text ? pread(fd, text, TAKT_NCCL_MAX_BYTES, 0) : -1;

	if (got > 0)
		takt_nccl_parse(text, (size_t)got, ret);
	takt_free(text);
	return got > 0 && ret->count ? 0 : -EAGAIN;
}

int takt_nccl_read(int dirfd, const char *gpu_uuid, uid_t owner, struct takt_nccl *ret)
{
	char name[NAME_MAX + 1];
	struct takt_nccl read = {.at = {0}};
	struct stat st;
	int fd, rc;

	snprintf(name, sizeof(name), "nccl_inspector_metrics_%s.prom", gpu_uuid);
	fd = takt_wary_open(dirfd, name, owner, &st);
	if (fd < 0)
		return fd;
	rc = read_text(fd, &read);
	close(fd);
	read.written.ns = (int64_t)st.st_mtim.tv_sec * TAKT_NS_PER_S + st.st_mtim.tv_nsec;
	if (rc == 0)
		*ret = read;
	return rc;
}
