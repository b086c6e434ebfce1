/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the driver's lines, see the header. */
#include <string.h>

#include "base/str.h"
#include "rules/kernel_log.h"

enum {
	LINE_MAX_LEN = 1024, /* what the kernel puts into one record */
};

static const char lower[] = "abcdefghijklmnopqrstuvwxyz";

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

static const char *blanks(const char *text)
{
	return text + strspn(text, " ");
}

/* Behind a word and the blanks that follow it. */
static const char *next(const char *text)
{
	return blanks(text + strcspn(text, " "));
}

/* "08:15:02" with a date and a zone or without, and the seconds since 1970. */
static bool is_clock(const char *word)
{
	size_t len = strcspn(word, " "), digits = strspn(word, "0123456789");
	uint32_t colons = 0;

	for (size_t i = 1; i + 1 < len; i++)
		colons += word[i] == ':' && digit(word[i - 1], 10) >= 0 &&
			  digit(word[i + 1], 10) >= 0;
	return colons >= 2 || (digits > 8 && word[digits] == '.' &&
			       digits + 1 + strspn(word + digits + 1, "0123456789") == len);
}

/* "[ 7812.204417] [   T4102] ", "[Fri Aug 30 11:11:22 2024] ", "[  +0.000012] "; of dmesg
 * --time-format iso "2026-03-03T08:15:04,204417+01:00 ". */
static const char *skip_stamps(const char *text)
{
	for (;;) {
		const char *rest = after(text, "[");
		size_t len = rest ? strcspn(rest, "[]") : 0;

		if (rest && rest[len] == ']' && strcspn(rest, "0123456789") < len)
			text = blanks(rest + len + 1);
		else if (is_clock(text) && memchr(text, ',', strcspn(text, " ")))
			text = next(text);
		else
			return text;
	}
}

/* "kernel: ", of metalog "[kernel] ", of BusyBox "kern.warn kernel: ", of socklog "kern.warn: ". */
static const char *skip_tag(const char *text)
{
	const char *level = after(text, "kern."), *rest;

	if (level)
		level += strspn(level, lower);
	if (level && (rest = after(level, ": ")))
		return blanks(rest);
	text = level && *level == ' ' ? blanks(level) : text;
	rest = after(text, "kernel:");
	rest = rest ? rest : after(text, "[kernel] ");
	return rest ? blanks(rest) : NULL;
}

/* Behind the time of a zone's clock comes its name, or the year. */
static bool is_zone(const char *word, bool has_date)
{
	size_t len = strcspn(word, " ");

	return (len == 4 && strspn(word, "0123456789") >= 4) ||
	       (has_date && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ+-0123456789") >= len);
}

/*
 * "Mar  3 08:15:02 node-17 kernel: ", as syslog and the journal write it: a time in any form, one
 * name of a host, the tag. NULL when it is not the kernel that speaks: between the host and its
 * tag a program could have put words.
 */
static const char *skip_speaker(const char *text, bool clock)
{
	const char *tag = skip_tag(text);
	bool has_date = false, host = false;

	for (int words = 0; !tag && words < 8; words++) {
		size_t len = strcspn(text, " ");

		if (len == 0 || text[len] == '\0' || host)
			return NULL;
		if (!clock && is_clock(text))
			clock = true;
		else if (!clock)
			has_date = memchr(text, '-', len);
		else if (!is_zone(text, has_date))
			host = true;
		if (host && (text[len - 1] == ':' || text[len - 1] == ']'))
			return NULL;
		text = next(text);
		tag = clock ? skip_tag(text) : NULL;
	}
	return tag;
}

/* RFC 5424, behind its priority: "1 2026-03-03T08:15:02Z node-17 kernel - - - "; structured data
 * may be in brackets, a byte order mark before the words. NULL when it is no such head. */
static const char *skip_protocol(const char *text)
{
	const char *rest = after(text, "1 "), *end;

	if (!rest || !is_clock(rest))
		return NULL;
	rest = after(next(next(rest)), "kernel ");
	if (!rest)
		return NULL;
	rest = next(next(rest));
	end = rest[0] == '[' ? strstr(rest, "] ") : rest;
	if (!end)
		return NULL;
	rest = next(end);
	end = after(rest, "\xef\xbb\xbf");
	return end ? end : rest;
}

/* Behind what a record of /dev/kmsg, a priority of syslog or dmesg --decode say of whose words
 * follow; NULL when they are not the kernel's. *ret_record: nothing else stands before the words.
 */
static const char *skip_facility(const char *line, bool *ret_record)
{
	uint32_t priority = 0;
	const char *rest = number(line, 10, &priority), *end;

	*ret_record = rest && *rest == ',';
	if (*ret_record) {
		end = strchr(rest, ';');
		return end && priority < 8 ? end + 1 : NULL;
	}
	rest = number(after(line, "<"), 10, &priority);
	if (rest && *rest == '>')
		return priority < 8 ? rest + 1 : NULL;
	rest = after(line, "kern  :");
	end = rest ? after(blanks(rest + strspn(rest, lower)), ": ") : NULL;
	return end ? end : line;
}

/* The kernel's words in a line, behind whatever a usual writer puts before them; NULL when somebody
 * else speaks, or nothing tells. */
static const char *kernels_words(const char *line)
{
	bool record;
	const char *start = skip_facility(line, &record), *rest, *words;

	if (!start || record)
		return start;
	words = skip_protocol(start);
	if (words)
		return skip_stamps(words);
	rest = skip_stamps(start);
	words = skip_speaker(rest, rest > start);
	words = words ? skip_stamps(words) : rest;
	return words > line || after(words, "NVRM: ") || after(words, "nvidia-nvswitch") ? words
											 : NULL;
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
		reader->pci = pci, reader->has_pci = true;
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
	words = kernels_words(text);
	reader->lines++;
	reader->understood += words != NULL;
	if (after(words, "NVRM: "))
		return read_xid(words, ret) || read_loaded(words, ret) ||
		       read_off_the_bus(reader, words, ret);
	return after(words, "nvidia-nvswitch") && read_switch(words, ret);
}
