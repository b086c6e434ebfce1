/* SPDX-License-Identifier: Apache-2.0 */
/* A network as text and back. Doubles are written as their bits: the same on every machine. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/checksum.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "model/lstm_impl.h"

enum {
	VERSION = 1,
	MAX_LINE = 64,
	HEX_DIGITS = 16,
};

static const char magic[] = "takt-lstm ";

/* In the order of the file. */
static const struct member {
	const char *name;
	size_t offset;
	int64_t min, max; /* of whole numbers */
	enum {
		MEMBER_U32,
		MEMBER_I64,
		MEMBER_DOUBLE,
		MEMBER_POSITIVE
	} kind;
} members[] = {
	{"hidden", offsetof(struct takt_lstm, hidden), 1, TAKT_LSTM_MAX_HIDDEN, MEMBER_U32},
	{"window", offsetof(struct takt_lstm, window), 1, TAKT_LSTM_MAX_WINDOW, MEMBER_U32},
	{"horizon", offsetof(struct takt_lstm, horizon), 1, TAKT_FORECAST_MAX_HORIZON, MEMBER_U32},
	{"season", offsetof(struct takt_lstm, season), 0, TAKT_FORECAST_MAX_SEASON, MEMBER_U32},
	{"step_s", offsetof(struct takt_lstm, step_s), 1, INT32_MAX, MEMBER_U32},
	{"until_s", offsetof(struct takt_lstm, until_s), INT64_MIN, INT64_MAX, MEMBER_I64},
	{"mean", offsetof(struct takt_lstm, mean), 0, 0, MEMBER_DOUBLE},
	{"spread", offsetof(struct takt_lstm, spread), 0, 0, MEMBER_POSITIVE},
	{"change", offsetof(struct takt_lstm, change), 0, 0, MEMBER_POSITIVE},
	{"worth", offsetof(struct takt_lstm, worth), 0, 0, MEMBER_DOUBLE},
};

static void add_double(struct takt_str *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	takt_str_addf(out, "%016" PRIx64 "\n", bits);
}

static void add_member(struct takt_str *out, const struct takt_lstm *net,
		       const struct member *member)
{
	const char *at = (const char *)net + member->offset;
	uint32_t whole;
	int64_t wide;
	double value;

	takt_str_addf(out, "%s ", member->name);
	if (member->kind == MEMBER_U32) {
		memcpy(&whole, at, sizeof(whole));
		takt_str_addf(out, "%" PRIu32 "\n", whole);
	} else if (member->kind == MEMBER_I64) {
		memcpy(&wide, at, sizeof(wide));
		takt_str_addf(out, "%" PRId64 "\n", wide);
	} else {
		memcpy(&value, at, sizeof(value));
		add_double(out, value);
	}
}

int takt_lstm_format(const struct takt_lstm *net, struct takt_str *out)
{
	takt_str_reset(out);
	takt_str_addf(out, "%s%d\n", magic, VERSION);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(members); i++)
		add_member(out, net, &members[i]);
	for (size_t i = 0; i < net->weight_count; i++)
		add_double(out, net->weight[i]);
	if (out->rc == 0)
		takt_str_addf(out, "crc %08" PRIx32 "\n", takt_crc32c(out->s, out->len));
	return out->rc;
}

struct reader {
	const char *text, *end;
	const char *at; /* of the next line */
	size_t line;
	struct takt_err *err;
};

static int refuse(struct reader *reader, const char *why)
{
	return takt_err_set(reader->err, -TAKT_E_CORRUPT, "a network's file, line %zu: %s",
			    reader->line, why);
}

/* The next line, without its newline. */
static int next_line(struct reader *reader, char ret[MAX_LINE])
{
	const char *stop;
	size_t len;

	reader->line++;
	stop = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
	len = stop ? (size_t)(stop - reader->at) : MAX_LINE;
	if (len >= MAX_LINE)
		return refuse(reader, stop ? "too long" : "the file ends too early");
	memcpy(ret, reader->at, len);
	ret[len] = '\0';
	reader->at = stop + 1;
	return strlen(ret) == len ? 0 : refuse(reader, "a NUL");
}

static int read_hex(const char *text, size_t digits, uint64_t *ret)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t value = 0;

	if (strlen(text) != digits)
		return -EINVAL;
	for (; *text; text++) {
		const char *digit = strchr(hex, *text);

		if (!digit)
			return -EINVAL;
		value = value << 4 | (uint64_t)(digit - hex);
	}
	*ret = value;
	return 0;
}

static int read_double(struct reader *reader, const char *text, double *ret)
{
	uint64_t bits;

	if (read_hex(text, HEX_DIGITS, &bits) < 0)
		return refuse(reader, "16 hexadecimal digits are expected");
	memcpy(ret, &bits, sizeof(bits));
	return fabs(*ret) <= TAKT_FORECAST_MAX_VALUE ? 0 : refuse(reader, "not within 1e15");
}

static int read_member(struct reader *reader, const struct member *member, struct takt_lstm *net)
{
	size_t len = strlen(member->name);
	char *at = (char *)net + member->offset, line[MAX_LINE];
	uint32_t narrow;
	long long whole;
	double value;
	int rc = next_line(reader, line);

	if (rc < 0)
		return rc;
	if (strncmp(line, member->name, len) != 0 || line[len] != ' ')
		return refuse(reader, "another member is expected");
	if (member->kind == MEMBER_DOUBLE || member->kind == MEMBER_POSITIVE) {
		rc = read_double(reader, line + len + 1, &value);
		if (rc == 0 && member->kind == MEMBER_POSITIVE && !(value > 0))
			return refuse(reader, "not above 0");
		if (rc == 0)
			memcpy(at, &value, sizeof(value));
		return rc;
	}
	if (takt_parse_i64(line + len + 1, member->min, member->max, &whole) < 0)
		return refuse(reader, "no such number is accepted");
	narrow = (uint32_t)whole;
	if (member->kind == MEMBER_U32)
		memcpy(at, &narrow, sizeof(narrow));
	else
		memcpy(at, &(int64_t){whole}, sizeof(int64_t));
	return 0;
}

/* The first line says whose it is; one of another version is told as that. */
static int read_head(struct reader *reader)
{
	char line[MAX_LINE];
	unsigned long long version;
	int rc = next_line(reader, line);

	if (rc < 0)
		return rc;
	if (strncmp(line, magic, sizeof(magic) - 1) != 0 ||
	    takt_parse_u64(line + sizeof(magic) - 1, 0, UINT32_MAX, &version) < 0)
		return refuse(reader, "not a network of takt");
	if (version != VERSION)
		return takt_err_set(reader->err, -TAKT_E_VERSION,
				    "a network's file of version %llu; this takt reads %d", version,
				    VERSION);
	return 0;
}

/* The last line, over all before it. */
static int check_sum(struct reader *reader)
{
	static const char key[] = "crc ";
	size_t covered = (size_t)(reader->at - reader->text);
	char line[MAX_LINE];
	uint64_t crc = 0;
	int rc = next_line(reader, line);

	if (rc < 0)
		return rc;
	if (strncmp(line, key, sizeof(key) - 1) != 0 ||
	    read_hex(line + sizeof(key) - 1, 8, &crc) < 0)
		return refuse(reader, "its checksum is expected");
	if (crc != takt_crc32c(reader->text, covered))
		return refuse(reader, "the checksum is another: the file is damaged");
	return reader->at == reader->end ? 0 : refuse(reader, "more than a network");
}

static int read_weights(struct reader *reader, struct takt_lstm *net)
{
	char line[MAX_LINE];
	int rc = 0;

	for (size_t i = 0; i < net->weight_count && rc == 0; i++) {
		rc = next_line(reader, line);
		if (rc == 0)
			rc = read_double(reader, line, &net->weight[i]);
	}
	return rc;
}

int takt_lstm_parse(const char *text, size_t len, struct takt_lstm **ret, struct takt_err *err)
{
	struct reader reader = {.text = text, .end = text + len, .at = text, .err = err};
	struct takt_lstm head = {0}, *net = NULL;
	int rc = read_head(&reader);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(members) && rc == 0; i++)
		rc = read_member(&reader, &members[i], &head);
	if (rc == 0)
		rc = takt_lstm_new(head.hidden, head.window, &net, err);
	if (rc < 0)
		return rc;
	head.weight = net->weight;
	head.weight_count = net->weight_count;
	*net = head;
	rc = read_weights(&reader, net);
	if (rc == 0)
		rc = check_sum(&reader);
	if (rc < 0)
		takt_lstm_free(net);
	else
		*ret = net;
	return rc;
}
