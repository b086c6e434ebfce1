/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the driver's lines, see the header. */
#include <string.h>

#include "base/str.h"
#include "rules/kernel_log.h"

enum {
	LINE_MAX_LEN = 1024, /* what the kernel puts into one record */
};

/* Behind the word, or NULL. */
static const char *after(const char *text, const char *word)
{
	size_t len = strlen(word);

	return text && strncmp(text, word, len) == 0 ? text + len : NULL;
}

static const char *behind(const char *text, const char *word)
{
	const char *found = strstr(text, word);

	return found ? found + strlen(word) : NULL;
}

static int digit(char c, uint32_t base)
{
	int value = c >= '0' && c <= '9'   ? c - '0'
		    : c >= 'a' && c <= 'f' ? c - 'a' + 10
		    : c >= 'A' && c <= 'F' ? c - 'A' + 10
					   : 99;

	return value < (int)base ? value : -1;
}

/* Behind a number that fits; NULL if there is none. */
static const char *number(const char *text, uint32_t base, uint32_t *ret)
{
	const char *start = text;
	uint64_t value = 0;

	if (!text)
		return NULL;
	for (; digit(*text, base) >= 0; text++) {
		value = value * base + (uint64_t)digit(*text, base);
		if (value > UINT32_MAX)
			return NULL;
	}
	*ret = (uint32_t)value;
	return text > start ? text : NULL;
}

static const char *hex(const char *text, uint32_t *ret)
{
	return number(after(text, "0x"), 16, ret);
}

bool takt_log_pci_parse(const char *text, const char **ret_rest, struct takt_log_pci *ret)
{
	const char *rest = after(text, "PCI:"), *function;
	uint32_t ignored;

	rest = number(rest ? rest : text, 16, &ret->domain);
	rest = number(after(rest, ":"), 16, &ret->bus);
	rest = number(after(rest, ":"), 16, &ret->device);
	if (!rest || ret->bus > 0xff || ret->device > 0x1f)
		return false;
	function = number(after(rest, "."), 16, &ignored);
	*ret_rest = function ? function : rest;
	return true;
}

/* What may stand before the driver's words: nothing, the head of a kmsg record of the kernel itself
 * ("4,1234,5678,-;"), a time stamp of dmesg, or time, host and "kernel: " of the journal. */
static bool is_kernels(const char *line, const char *words)
{
	const char *rest, *colon = strstr(line, ": ");
	size_t len = (size_t)(words - line);
	uint32_t priority;

	if (len == 0)
		return true;
	rest = number(line, 10, &priority);
	if (rest && *rest == ',')
		return priority < 8 && memchr(line, ';', len) == words - 1;
	if (line[0] == '[')
		return len >= 3 && words[-1] == ' ' && memchr(line, ']', len) == words - 2;
	return len >= 9 && memcmp(words - 9, " kernel: ", 9) == 0 && colon == words - 2;
}

/* From the first of the driver's words on, if they are the kernel's. */
static const char *find_words(const char *line, const char *word)
{
	const char *words = strstr(line, word);

	return words && is_kernels(line, words) ? words : NULL;
}

/* Up to the next comma or blank, in brackets and quotes: unknown. */
static void copy_name(char *dst, size_t size, const char *text)
{
	size_t len = strcspn(text, ",");

	dst[0] = '\0';
	if (len == 0 || text[0] == '<')
		return;
	len = len < size ? len : size - 1;
	memcpy(dst, text, len);
	dst[len] = '\0';
}

/* " pid=1234, name=python3, ..."; returns the rest. */
static const char *read_process(const char *text, struct takt_log_event *ret)
{
	const char *pid = after(text, " pid="), *name;

	if (!pid)
		return text;
	if (number(pid, 10, &ret->pid))
		ret->has |= TAKT_LOG_PID;
	pid += strcspn(pid, ",");
	name = after(pid, ", name=");
	if (!name)
		return pid + (*pid == ',');
	copy_name(ret->name, sizeof(ret->name), name);
	name += strcspn(name, ",");
	return name + (*name == ',');
}

/* " RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 ...": only in this form. */
static void read_nvlink5(const char *text, struct takt_log_event *ret)
{
	size_t len = strspn(++text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_/0123456789");
	const char *rest = text + len, *word, *link = behind(rest, " Link ");
	uint32_t number_of = 0;
	bool minus;

	word = after(rest, " Nonfatal ");
	if (len == 0 || len >= sizeof(ret->unit) || (!word && !after(rest, " Fatal ")) || !link)
		return;
	memcpy(ret->unit, text, len);
	ret->unit[len] = '\0';
	ret->fatal = !word;
	ret->has |= TAKT_LOG_FATAL;
	minus = *link == '-';
	rest = number(link + minus, 10, &number_of);
	if (!rest || number_of > 1000)
		return;
	ret->link = minus ? -1 : (int32_t)number_of;
	ret->has |= minus ? 0 : (uint32_t)TAKT_LOG_LINK;
	rest = hex(after(rest, " ("), &ret->info);
	if (hex(after(rest, " "), &ret->status))
		ret->has |= TAKT_LOG_REGISTERS;
}

/* What further words of a line say. */
static void read_details(const char *text, struct takt_log_event *ret)
{
	const char *changed = behind(text, "recovery action changed from ");

	if (number(behind(text, "caused by previous Xid "), 10, &ret->caused_by))
		ret->has |= TAKT_LOG_CAUSED_BY;
	if (ret->code >= 144 && ret->code <= 150 && text[0] == ' ')
		read_nvlink5(text, ret);
	if (ret->code == 154 && changed && hex(behind(changed, " to "), &ret->recovery))
		ret->has |= TAKT_LOG_RECOVERY;
}

/* "NVRM: Xid (PCI:0000:05:00): 79, ..."; drivers of old leave PCI: out, and a MIG instance may
 * stand behind the address. */
static bool read_xid(const char *words, struct takt_log_event *ret)
{
	const char *rest = after(words, "NVRM: Xid (");

	if (!rest || !takt_log_pci_parse(rest, &rest, &ret->pci))
		return false;
	rest = number(behind(rest, "): "), 10, &ret->code);
	if (!rest || (*rest != ',' && *rest != '\0'))
		return false;
	ret->kind = TAKT_LOG_XID;
	if (*rest == ',')
		read_details(read_process(rest + 1, ret), ret);
	return true;
}

/* "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up" */
static bool read_switch(const char *words, struct takt_log_event *ret)
{
	const char *rest = behind(words, "SXid ("), *link;
	uint32_t number_of;

	if (!rest || !takt_log_pci_parse(rest, &rest, &ret->pci))
		return false;
	rest = number(after(rest, "): "), 10, &ret->code);
	if (!rest)
		return false;
	ret->kind = TAKT_LOG_SWITCH;
	ret->fatal = after(rest, ", Fatal");
	if (ret->fatal || after(rest, ", Non-fatal"))
		ret->has |= TAKT_LOG_FATAL;
	link = behind(rest, ", Link ");
	if (number(link, 10, &number_of) && number_of <= 1000) {
		ret->link = (int32_t)number_of;
		ret->has |= TAKT_LOG_LINK;
	}
	return true;
}

/* "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05 ..." */
static bool read_loaded(const char *words, struct takt_log_event *ret)
{
	if (!after(words, "NVRM: loading NVIDIA UNIX "))
		return false;
	ret->kind = TAKT_LOG_LOADED;
	return true;
}

/*
 * In one line: "NVRM: GPU 0000:05:00.0: GPU has fallen off the bus."; in three: "NVRM: The NVIDIA
 * GPU 0000:b3:00.0", "NVRM: (PCI ID: 10de:26b5) installed in this system has", "NVRM: fallen off
 * the bus and is not responding to commands."
 */
static bool read_off_the_bus(struct takt_log_reader *reader, const char *words,
			     struct takt_log_event *ret)
{
	const char *gpu = behind(words, "GPU "), *rest = words;
	struct takt_log_pci pci;

	if (gpu && takt_log_pci_parse(gpu, &rest, &pci))
		*reader = (struct takt_log_reader){true, pci};
	else if (!after(words, "NVRM: (PCI ID") && !after(words, "NVRM: fallen off the bus"))
		reader->has_pci = false;
	if (!reader->has_pci || !strstr(rest, "fallen off the bus"))
		return false;
	ret->kind = TAKT_LOG_OFF_THE_BUS;
	ret->code = 79;
	ret->pci = reader->pci;
	reader->has_pci = false;
	return true;
}

bool takt_log_read(struct takt_log_reader *reader, const char *line, size_t len,
		   struct takt_log_event *ret)
{
	char text[LINE_MAX_LEN];
	const char *words;

	*ret = (struct takt_log_event){.link = -1};
	len = len < sizeof(text) ? len : sizeof(text) - 1;
	memcpy(text, line, len);
	text[len] = '\0';
	words = find_words(text, "NVRM: ");
	if (words)
		return read_xid(words, ret) || read_loaded(words, ret) ||
		       read_off_the_bus(reader, words, ret);
	words = find_words(text, "nvidia-nvswitch");
	return words && read_switch(words, ret);
}
