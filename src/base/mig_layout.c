/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mig_layout.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum {
	MAX_ID = 255,
	MAX_START = 7,
	MAX_COMPUTE_ID = 15,
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool in_name(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '+' || c == '-';
}

/* A number of up to three digits at *at, which goes past it. */
static bool take_number(const char **at, uint32_t max, uint32_t *ret)
{
	uint32_t value = 0;
	int digits = 0;

	for (; is_digit(**at) && digits < 3; ++*at, digits++)
		value = value * 10 + (uint32_t)(**at - '0');
	*ret = value;
	return digits > 0 && !is_digit(**at) && value <= max;
}

/* "9" or "3g.40gb". */
static bool take_profile(const char **at, struct takt_mig_part *part)
{
	size_t len = 0, digits = 0;

	while (in_name((*at)[len]))
		digits += is_digit((*at)[len++]);
	if (len == 0 || len >= sizeof(part->name))
		return false;
	if (digits == len)
		return take_number(at, MAX_ID, &part->id);
	memcpy(part->name, *at, len);
	*at += len;
	return true;
}

static bool take_compute(const char **at, struct takt_mig_part *part)
{
	for (; **at == '/'; part->compute_count++) {
		if (part->compute_count < 0)
			part->compute_count = 0;
		++*at;
		if (part->compute_count == 0 && !is_digit(**at))
			return true;
		if (part->compute_count == TAKT_MIG_MAX_COMPUTE ||
		    !take_number(at, MAX_COMPUTE_ID, &part->compute[part->compute_count]))
			return false;
	}
	return true;
}

static bool take_part(const char **at, struct takt_mig_part *part)
{
	uint32_t start;

	*part = (struct takt_mig_part){.start = -1, .compute_count = -1};
	if (!take_profile(at, part))
		return false;
	if (**at == ':') {
		++*at;
		if (!take_number(at, MAX_START, &start))
			return false;
		part->start = (int32_t)start;
	}
	return take_compute(at, part);
}

/* Parts with commas between them, to the end. */
static bool take_parts(const char *at, struct takt_mig_layout *layout)
{
	for (layout->count = 0; layout->count < TAKT_MIG_MAX_PARTS; at++) {
		if (!take_part(&at, &layout->parts[layout->count++]))
			return false;
		if (*at != ',')
			return *at == '\0';
	}
	return false;
}

int takt_mig_layout_parse(const char *text, struct takt_mig_layout *ret, struct takt_err *err)
{
	struct takt_mig_layout layout = {0};

	if (strcmp(text, "none") != 0 &&
	    (strlen(text) >= TAKT_MIG_TEXT || !take_parts(text, &layout)))
		return takt_err_set(err, -EINVAL,
				    "MIG layout '%.40s': up to %d kinds with commas between them "
				    "('3g.40gb,3g.40gb'), or 'none'",
				    text, TAKT_MIG_MAX_PARTS);
	*ret = layout;
	return 0;
}

static void add_part(struct takt_str *text, const struct takt_mig_part *part)
{
	if (part->name[0])
		takt_str_add(text, part->name);
	else
		takt_str_addf(text, "%u", part->id);
	if (part->start >= 0)
		takt_str_addf(text, ":%d", part->start);
	if (part->compute_count == 0)
		takt_str_add(text, "/");
	for (int32_t i = 0; i < part->compute_count; i++)
		takt_str_addf(text, "/%u", part->compute[i]);
}

const char *takt_mig_layout_text(const struct takt_mig_layout *layout, char buf[TAKT_MIG_TEXT])
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1024);

	for (uint32_t i = 0; i < layout->count; i++) {
		takt_str_add(&text, i ? "," : "");
		add_part(&text, &layout->parts[i]);
	}
	if (text.rc < 0)
		return NULL;
	return takt_strcpy(buf, TAKT_MIG_TEXT, layout->count ? takt_str_text(&text) : "none")
		       ? buf
		       : NULL;
}
