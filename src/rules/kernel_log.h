/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's log says of GPUs, line by line.
 *
 * Understood are lines as /dev/kmsg, dmesg, the journal and syslog's usual writers give them
 * (docs/doctor.md). Only the driver's own words count: what programs write to the log has a
 * facility or another name than the kernel's, and the name of a process that stands in a line is
 * never read as the beginning of one.
 */
#ifndef TAKT_RULES_KERNEL_LOG_H
#define TAKT_RULES_KERNEL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct takt_log_pci {
	uint32_t domain, bus, device;
};

enum takt_log_kind {
	TAKT_LOG_XID,
	TAKT_LOG_OFF_THE_BUS, /* the line without an XID; to be taken as 79 */
	TAKT_LOG_SWITCH,      /* SXid: of an NVSwitch, whose address it is */
	TAKT_LOG_LOADED,      /* the driver was loaded, of no GPU */
};

enum takt_log_has {
	TAKT_LOG_PID = 1u << 0,
	TAKT_LOG_CAUSED_BY = 1u << 1, /* the XID that this one follows from, as the driver says */
	TAKT_LOG_LINK = 1u << 2,
	TAKT_LOG_REGISTERS = 1u << 3, /* of NVLink 5 */
	TAKT_LOG_FATAL = 1u << 4,     /* the line says fatal or not */
	TAKT_LOG_RECOVERY = 1u << 5,  /* of XID 154: what to do from now on */
};

struct takt_log_event {
	enum takt_log_kind kind;
	struct takt_log_pci pci;
	uint32_t code; /* 79 for OFF_THE_BUS */
	uint32_t has;  /* enum takt_log_has */
	uint32_t pid;
	uint32_t caused_by;
	int32_t link; /* -1 = of none */
	bool fatal;
	uint32_t info, status; /* of NVLink 5: the first two registers */
	uint32_t recovery;     /* as NVML numbers them */
	char name[32];	       /* of the process; "" = not known */
	char unit[32];	       /* of NVLink 5; "" = none */
};

/* Of one source. Zero at first. */
struct takt_log_reader {
	uint64_t lines, understood; /* read; and as the kernel's, whatever it says in them */
	/* One event comes over several lines: this is what the last ones said. */
	bool has_pci;
	struct takt_log_pci pci;
};

/* True when the line, without its newline, says that something happened. */
bool takt_log_read(struct takt_log_reader *reader, const char *line, size_t len,
		   struct takt_log_event *ret);

/* "0000:07:00.0", "00000000:07:00", "PCI:0000:07:00": *ret_rest behind it; false if it is none. */
bool takt_log_pci_parse(const char *text, const char **ret_rest, struct takt_log_pci *ret);

#endif
