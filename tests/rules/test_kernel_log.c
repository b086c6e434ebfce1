/* SPDX-License-Identifier: Apache-2.0 */
/* Lines as real kernels wrote them are understood, in each form that a log is read in; what only
 * looks like them is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/kernel_log.h"

#define FELL "GPU has fallen off the bus."

static bool read_line(struct takt_log_reader *reader, const char *line, struct takt_log_event *ret)
{
	return takt_log_read(reader, line, strlen(line), ret);
}

static struct takt_log_event event_of(const char *line)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;

	if (!read_line(&reader, line, &event))
		fail_msg("not understood: %s", line);
	return event;
}

static void says_nothing(const char *line)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;

	if (read_line(&reader, line, &event))
		fail_msg("taken for an event: %s", line);
}

static void is_at(const struct takt_log_event *event, uint32_t domain, uint32_t bus)
{
	assert_int_equal(event->pci.domain, domain);
	assert_int_equal(event->pci.bus, bus);
}

static void xids_are_read(void **state)
{
	struct takt_log_event event =
		event_of("NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, " FELL);

	assert_int_equal(event.kind, TAKT_LOG_XID);
	assert_int_equal(event.code, 79);
	is_at(&event, 0, 5);
	assert_int_equal(event.has, 0);
	assert_string_equal(event.name, "");

	event = event_of(
		"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout "
		"after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 "
		"(GSP_RM_ALLOC) (0x2081 0x4).");
	assert_int_equal(event.code, 119);
	is_at(&event, 0, 0x9b);
	assert_int_equal(event.has, TAKT_LOG_PID);
	assert_int_equal(event.pid, 2024380);
	assert_string_equal(event.name, "nvidia-smi");

	event = event_of(
		"NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for "
		"remapping, reset gpu to activate.");
	assert_int_equal(event.code, 63);
	assert_int_equal(event.pci.device, 0x1c);
	assert_int_equal(event.pid, 1896);
	assert_string_equal(event.name, "");
}

static void old_drivers_and_instances_are_read(void **state)
{
	struct takt_log_event event = event_of("NVRM: Xid (0000:03:00): 31, Ch 0000007f, engmask");

	assert_int_equal(event.code, 31);
	is_at(&event, 0, 3);
	event = event_of(
		"NVRM: Xid (PCI:0000:31:00 GPU-I:05): 94, pid=7194, name=python, Contained: "
		"CE User Channel (0x9). RST: No, D-RST: No");
	assert_int_equal(event.code, 94);
	is_at(&event, 0, 0x31);
}

static struct takt_log_reader reader_of(const char *head, bool *ret_event)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;
	char line[256];

	snprintf(line, sizeof(line),
		 "%sNVRM: Xid (PCI:0000:07:00): 48, DBE (Double Bit Error) ECC Error", head);
	*ret_event = read_line(&reader, line, &event) && event.code == 48;
	return reader;
}

/* As dmesg, the journal and syslog's writers give them (docs/doctor.md). */
static void every_form_of_a_log_is_read(void **state)
{
	static const char *const heads[] = {
		"",
		"[ 1843.308145] ",
		"[Fri Aug 30 11:11:22 2024] ",
		"[Fri Aug 30 11:11:22 2024] [   T4102] ",
		"[ 1843.308145][ T4102] ",
		"[ 1843.308145] [    C12] ",
		"[Aug30 11:11] ",
		"[  +0.000012] ",
		"[ 1843.308145 <    0.000012>] ",
		"[<    0.000012>] ",
		"<4>[ 1843.308145] ",
		"<4>",
		"kern  :warn  : [ 1843.308145] ",
		"kern  :notice: [ 1843.308145] ",
		"kern  :warn  : 2026-03-03T08:15:04,204417+01:00 ",
		"2026-03-03T08:15:04,204417+01:00 ",
		"2026-03-03T08:15:04,204417+0100 [   T4102] ",
		"4,1234,5678901,-;",
		"4,1234,5678901,-,caller=T4102;",
		"Feb 14 05:03:41 node-17 kernel: ",
		"Feb 14 05:03:41 kernel: ",
		"Feb 14 05:03:41.123456 node-17 kernel: ",
		"2026-02-14T05:03:41+0000 node-17 kernel: ",
		"2026-02-14T05:03:41.123456+00:00 node-17 kernel: ",
		"2026-02-14T05:03:41Z node-17.example.org kernel: [ 7811.204417] ",
		"Sat 2026-02-14 05:03:41 UTC node-17 kernel: ",
		"Sat 2026-02-14 05:03:41 +0545 node-17 kernel: ",
		"[ 7811.204417] node-17 kernel: ",
		"1739509421.123456 node-17 kernel: ",
		"Mar  3 08:15:02 gpu-a kernel: [ 7811.204417] ",
		"Mar  3 08:15:02 gpu-a kernel: [ 7811.204417][ T4102] ",
		"kernel: [16450076.000001] ",
		"kernel: ",
		"<4>Mar  3 08:15:02 gpu-a kernel: ",
		"<4>1 2026-02-14T05:03:41.123456+00:00 node-17 kernel - - - ",
		"<4>1 2026-02-14T05:03:41.123456+00:00 node-17 kernel - - -  [ 7811.204417] ",
		"1 2026-02-14T05:03:41.123456+00:00 node-17 kernel - - [meta sequenceId=\"1\"] ",
		"Mar  3 08:15:02 gpu-a kern.warn kernel: [ 7811.204417] ",
		"Mar  3 08:15:02 [kernel] [ 7811.204417] ",
		"2026-02-14_05:03:41.12345 kern.warn: [ 7811.204417] ",
		"Tue Mar  3 08:15:02 2026 gpu-a kernel: ",
	};
	bool event;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (reader_of(heads[i], &event).understood != 1 || !event)
			fail_msg("not understood: '%s'", heads[i]);
}

/* Programs write to the log with a facility, and as whom they like. */
static void nobody_else_can_say_it(void **state)
{
	static const char *const heads[] = {
		"12,1234,5678901,-;",
		"30,1234,5678901,-;systemd[1]: ",
		"<12>",
		"<12>[ 12.3] ",
		"<13>1 2026-02-14T05:03:41.123456+00:00 node-17 kernel - - - ",
		"<4>1 2026-02-14T05:03:41.123456+00:00 node-17 job 12 - - ",
		"user  :notice: [ 1.0] ",
		"job[12]: ",
		"Feb 14 05:03:41 node-17 job[12]: ",
		"Feb 14 05:03:41 node-17 job[12]: [ 12.3] ",
		"Feb 14 05:03:41 node-17 job[12]: kernel: ",
		"Feb 14 05:03:41 node-17 job kernel: ",
		"Feb 14 05:03:41 node-17 job: kernel: ",
		"Feb 14 05:03:41 node-17 ",
		"Feb 14 05:03:41 node-17 kernel[12]: ",
		"Feb 14 05:03:41 node-17 user.notice kernel: ",
		"2026-02-14T05:03:41+0000 node-17 job[12]: ",
		"2026-03-03T08:15:04,204417+01:00 job[12]: ",
		"[  1.0] my] ",
		"[  1.0] job: kernel: ",
		"4,1,2,-;python3[7]: segfault; ",
		"[job] ",
	};
	bool event;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		(void)reader_of(heads[i], &event);
		if (event)
			fail_msg("taken for the kernel's: '%s'", heads[i]);
	}
	/* The name of a process is part of the line, and no line. */
	assert_int_equal(event_of("NVRM: Xid (PCI:0000:07:00): 13, pid=5, name=NVRM: Xid (PCI:0000:"
				  "01:00): 79, Graphics Exception")
				 .code,
			 13);
}

/* A source is known by lines that are the kernel's, whatever they are about. */
static void what_is_the_kernels_is_counted(void **state)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;

	read_line(&reader, "Mar  3 08:15:02 gpu-a sshd[12]: Accepted publickey for ada", &event);
	read_line(&reader, "{\"MESSAGE\": \"NVRM: Xid (PCI:0000:07:00): 79, x\"}", &event);
	read_line(&reader, "12,7,7,-;NVRM: Xid (PCI:0000:07:00): 79, x", &event);
	assert_int_equal(reader.lines, 3);
	assert_int_equal(reader.understood, 0);
	read_line(&reader, "Mar  3 08:15:02 gpu-a kernel: usb 1-1: new device", &event);
	assert_int_equal(reader.understood, 1);
}

static void what_is_no_event_is_none(void **state)
{
	static const char *const lines[] = {
		"",
		"NVRM: ",
		"NVRM: Xid (",
		"NVRM: Xid (PCI:0000:05:00): ",
		"NVRM: Xid (PCI:0000:05:00): 79x",
		"NVRM: Xid (PCI:0000:05:00): 99999999999, x",
		"NVRM: Xid (PCI:zzzz:05:00): 79, x",
		"NVRM: Xid (PCI:0000:105:00): 79, x",
		"NVRM: loading firmware",
		"NVRM: The NVIDIA probe routine failed for 1 device(s).",
		"NVRM: GPU at PCI:0000:05:00: GPU-9d5d2a51-0000-0000-0000-000000000000",
		"NVRM: fallen off the bus and is not responding to commands.",
		"nvidia-nvswitch0: open (major=509)",
		"nvidia-uvm: Loaded the UVM driver, major device number 507.",
		"nvidia 0000:05:00.0: enabling device (0140 -> 0142)",
		"EXT4-fs (md127p3): re-mounted r/w. Quota mode: none.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		says_nothing(lines[i]);
}

static void a_driver_that_is_loaded_is_read(void **state)
{
	struct takt_log_event event =
		event_of("4,812,6120345,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  "
			 "570.158.01  Release Build");

	assert_int_equal(event.kind, TAKT_LOG_LOADED);
	event = event_of("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19");
	assert_int_equal(event.kind, TAKT_LOG_LOADED);
}

static void a_gpu_off_the_bus_is_read_over_three_lines(void **state)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;

	assert_false(
		read_line(&reader, "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0", &event));
	assert_false(read_line(&reader, "NVRM: (PCI ID: 10de:26b5) installed in this system has",
			       &event));
	assert_true(read_line(
		&reader, "NVRM: fallen off the bus and is not responding to commands.", &event));
	assert_int_equal(event.kind, TAKT_LOG_OFF_THE_BUS);
	assert_int_equal(event.code, 79);
	is_at(&event, 0, 0xb3);
	assert_false(read_line(
		&reader, "NVRM: fallen off the bus and is not responding to commands.", &event));

	assert_true(read_line(&reader, "NVRM: GPU 0000:18:00.0: " FELL, &event));
	is_at(&event, 0, 0x18);
}

static void another_gpus_line_ends_what_was_begun(void **state)
{
	struct takt_log_reader reader = {0};
	struct takt_log_event event;

	assert_false(read_line(&reader, "NVRM: The NVIDIA GPU 0000:b3:00.0", &event));
	assert_false(read_line(&reader, "NVRM: The NVIDIA probe routine failed for 1 device(s).",
			       &event));
	assert_false(read_line(
		&reader, "NVRM: fallen off the bus and is not responding to commands.", &event));
}

static void nvlink5_is_read(void **state)
{
	struct takt_log_event event =
		event_of("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
			 "(0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)");

	is_at(&event, 0x18, 1);
	assert_int_equal(event.has, TAKT_LOG_FATAL | TAKT_LOG_LINK | TAKT_LOG_REGISTERS);
	assert_false(event.fatal);
	assert_int_equal(event.link, 13);
	assert_int_equal(event.info, 0x0409a0c2);
	assert_int_equal(event.status, 8);
	assert_string_equal(event.unit, "RLW_RXPIPE");

	event = event_of(
		"NVRM: Xid (PCI:0019:01:00): 149, pid=12, name=a b, NETIR Fatal XC0 i0 Link -1 "
		"(0x000fe406 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)");
	assert_int_equal(event.has, TAKT_LOG_PID | TAKT_LOG_FATAL | TAKT_LOG_REGISTERS);
	assert_true(event.fatal);
	assert_int_equal(event.link, -1);
	assert_int_equal(event.info, 0x000fe406);
	assert_string_equal(event.name, "a b");
}

static void causes_and_recovery_are_read(void **state)
{
	struct takt_log_event event =
		event_of("NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch "
			 "00000001 caused by previous Xid 149");

	assert_int_equal(event.has, TAKT_LOG_PID | TAKT_LOG_CAUSED_BY);
	assert_int_equal(event.caused_by, 149);
	event = event_of(
		"NVRM: Xid (PCI:0000:dc:00): 154, GPU recovery action changed from 0x0 (None) "
		"to 0x2 (Node Reboot Required)");
	assert_int_equal(event.has, TAKT_LOG_RECOVERY);
	assert_int_equal(event.recovery, 2);
}

static void switches_are_read(void **state)
{
	struct takt_log_event event = event_of(
		"nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 30 LTSSM Fault Up");

	assert_int_equal(event.kind, TAKT_LOG_SWITCH);
	assert_int_equal(event.code, 20034);
	is_at(&event, 0, 0x86);
	assert_true(event.fatal);
	assert_int_equal(event.link, 30);
	event = event_of(
		"nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 11004, Non-fatal, Link 1 Ingress");
	assert_false(event.fatal);
	assert_int_equal(event.has, TAKT_LOG_FATAL | TAKT_LOG_LINK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xids_are_read),
		cmocka_unit_test(old_drivers_and_instances_are_read),
		cmocka_unit_test(every_form_of_a_log_is_read),
		cmocka_unit_test(nobody_else_can_say_it),
		cmocka_unit_test(what_is_the_kernels_is_counted),
		cmocka_unit_test(what_is_no_event_is_none),
		cmocka_unit_test(a_driver_that_is_loaded_is_read),
		cmocka_unit_test(a_gpu_off_the_bus_is_read_over_three_lines),
		cmocka_unit_test(another_gpus_line_ends_what_was_begun),
		cmocka_unit_test(nvlink5_is_read),
		cmocka_unit_test(causes_and_recovery_are_read),
		cmocka_unit_test(switches_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
