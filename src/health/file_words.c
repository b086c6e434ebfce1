/* SPDX-License-Identifier: Apache-2.0 */
#include "health/file_words.h"

#include <ctype.h>
#include <string.h>

enum {
	EXTENDED_AT = 0x100, /* of PCI Express' capabilities */
	CAP_ACS = 0x000d,
	ACS_CONTROL = 6,
	ACS_REDIRECTS = 0x4 | 0x8, /* requests, completions of peers */
};

static const char digits[] = "0123456789.";

static bool keep(const char *at, size_t n, char *ret, size_t size)
{
	if (n == 0 || n >= size)
		return false;
	memcpy(ret, at, n);
	ret[n] = '\0';
	return true;
}

/* "550.90.07" and what more there is of that kind. */
static bool keep_number(const char *at, char *ret, size_t size)
{
	return keep(at, strspn(at, digits), ret, size);
}

static bool is_version(const char *word)
{
	size_t major = strspn(word, "0123456789");

	return major > 0 && word[major] == '.' && isdigit((unsigned char)word[major + 1]);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Tue ..." */
bool takt_find_module_version(const char *line, char *ret, size_t size)
{
	for (const char *at = line; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (is_version(at) && keep(at, strcspn(at, " "), ret, size))
			return true;
	return false;
}

/* The line of this name among those of a package, which end at an empty one; NULL = none. */
static const char *field_of(const char *at, const char *name)
{
	size_t n = strlen(name);

	for (; *at && *at != '\n'; at += strcspn(at, "\n"), at += *at == '\n')
		if (strncmp(at, name, n) == 0)
			return at + n;
	return NULL;
}

bool takt_find_package_version(const char *status, const char *prefix, char *ret, size_t size)
{
	const char *at = status;

	while ((at = strstr(at, "Package: "))) {
		bool starts = at == status || at[-1] == '\n';
		const char *state, *version;

		at += strlen("Package: ");
		if (!starts || strncmp(at, prefix, strlen(prefix)) != 0)
			continue;
		state = field_of(at, "Status: install ok installed");
		version = field_of(at, "Version: ");
		if (state && version && keep_number(version, ret, size))
			return true;
	}
	return false;
}

bool takt_find_manager_version(const char *log, char *ret, size_t size)
{
	static const char words[] = "Fabric Manager version ";
	bool found = false;

	for (const char *at = log; (at = strstr(at, words));) {
		at += strlen(words);
		found = (is_version(at) && keep_number(at, ret, size)) || found;
	}
	return found;
}

/* The value of "path" behind "nvidia": what nvidia-ctk writes. */
bool takt_find_runtime(const char *text, char *ret, size_t size)
{
	const char *at = strstr(text, "\"nvidia\"");

	at = at ? strstr(at, "\"path\"") : NULL;
	at = at ? strchr(at + strlen("\"path\""), '"') : NULL;
	return at && keep(at + 1, strcspn(at + 1, "\""), ret, size);
}

/* A line "no-cgroups = true" that is no comment. */
bool takt_says_no_cgroups(const char *text)
{
	const char *at = text;

	while ((at = strstr(at, "no-cgroups"))) {
		const char *line = at, *value = at + strlen("no-cgroups");

		while (line > text && line[-1] != '\n')
			line--;
		value += strspn(value, " \t=");
		if (line[strspn(line, " \t")] != '#')
			return strncmp(value, "true", 4) == 0;
		at++;
	}
	return false;
}

/* "/usr/lib/.../libcuda.so.590.48.01" */
bool takt_find_cdi_version(const char *text, char *ret, size_t size)
{
	static const char words[] = "/libcuda.so.";

	for (const char *at = text; (at = strstr(at, words));) {
		at += strlen(words);
		if (is_version(at) && keep_number(at, ret, size))
			return true;
	}
	return false;
}

/* cuda: Optional[str] = '12.4', or = None */
bool takt_find_torch_cuda(const char *text, char *ret, size_t size)
{
	const char *at = strncmp(text, "cuda", 4) == 0 ? text : strstr(text, "\ncuda");
	const char *value = at ? strchr(at, '=') : NULL;

	if (!value)
		return false;
	value += 1 + strspn(value + 1, " ");
	if (strncmp(value, "None", 4) == 0) {
		ret[0] = '\0';
		return true;
	}
	return (*value == '\'' || *value == '"') && keep_number(value + 1, ret, size);
}

/* {"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}, ...} */
bool takt_find_toolkit_version(const char *text, char *ret, size_t size)
{
	static const char version[] = "\"version\"";
	const char *at = strstr(text, "\"cuda\"");

	at = at ? strstr(at, version) : NULL;
	at = at ? strpbrk(at + strlen(version), "0123456789}") : NULL;
	return at && keep_number(at, ret, size);
}

static uint32_t word_at(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

bool takt_bridge_redirects(const uint8_t *config, size_t len)
{
	uint32_t at = EXTENDED_AT;

	for (int hops = 0; hops < 64 && at >= EXTENDED_AT && at + 8 <= len; hops++) {
		uint32_t head = word_at(config + at);

		if ((head & 0xffff) == CAP_ACS)
			return config[at + ACS_CONTROL] & ACS_REDIRECTS;
		at = head >> 20 & 0xffc;
	}
	return false;
}
