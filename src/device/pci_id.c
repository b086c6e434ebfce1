/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and ordering of PCI bus ids. */
#include "device/pci_id.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* At least `min` and at most `max` hexadecimal digits, then `end`; NULL otherwise. */
static const char *hex_part(const char *text, size_t min, size_t max, char end, uint32_t *ret)
{
	uint32_t value = 0;
	size_t n = 0;

	for (; n < max && isxdigit((unsigned char)text[n]); n++) {
		int c = tolower((unsigned char)text[n]);

		value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (n < min || text[n] != end)
		return NULL;
	*ret = value;
	return text + n + (end != '\0');
}

bool takt_pci_id_parse(const char *text, struct takt_pci_id *ret)
{
	struct takt_pci_id id;

	text = hex_part(text, 4, 8, ':', &id.domain);
	text = text ? hex_part(text, 2, 2, ':', &id.bus) : NULL;
	text = text ? hex_part(text, 2, 2, '.', &id.device) : NULL;
	text = text ? hex_part(text, 1, 1, '\0', &id.function) : NULL;
	if (!text)
		return false;
	*ret = id;
	return true;
}

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

int takt_pci_id_compare(const char *a, const char *b)
{
	struct takt_pci_id x, y;
	bool x_known = takt_pci_id_parse(a, &x);
	bool y_known = takt_pci_id_parse(b, &y);
	int order;

	if (!x_known || !y_known)
		return x_known != y_known ? (x_known ? -1 : 1) : strcmp(a, b);
	order = compare_u32(x.domain, y.domain);
	order = order ? order : compare_u32(x.bus, y.bus);
	order = order ? order : compare_u32(x.device, y.device);
	return order ? order : compare_u32(x.function, y.function);
}
