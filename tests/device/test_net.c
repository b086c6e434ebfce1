/* SPDX-License-Identifier: Apache-2.0 */
/* Network ports from trees made here as the kernel makes them, sound and damaged, and the thread
 * that looks at them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/net_watch.h"

static char root[64];
static struct takt_net_ports ports;

static void path_of(const char *name, char ret[256])
{
	snprintf(ret, 256, "%s/%s", root, name);
}

static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
}

static void put_bytes(const char *name, const char *text, size_t len)
{
	char path[256];
	FILE *file;

	path_of(name, path);
	make_folders(path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	fclose(file);
}

static void put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

static void put_link(const char *name, const char *target)
{
	char path[256];

	path_of(name, path);
	make_folders(path);
	assert_int_equal(symlink(target, path), 0);
}

static void take(const char *name)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -r %s/%s", root, name);
	assert_int_equal(system(command), 0);
}

#define PORT "class/infiniband/mlx5_0/ports/1/"

static void put_infiniband(void)
{
	put(PORT "link_layer", "InfiniBand\n");
	put(PORT "state", "4: ACTIVE\n");
	put(PORT "rate", "400 Gb/sec (4X NDR)\n");
	put(PORT "counters/port_xmit_data", "1000\n");
	put(PORT "counters/port_rcv_data", "2000\n");
	put(PORT "counters/symbol_error", "3\n");
	put(PORT "counters/VL15_dropped", "0\n");
}

static void put_ethernet(const char *name, const char *bus)
{
	char path[128], target[64];

	snprintf(path, sizeof(path), "class/net/%s/device/subsystem", name);
	snprintf(target, sizeof(target), "../../../../bus/%s", bus);
	put_link(path, target);
	snprintf(path, sizeof(path), "class/net/%s/type", name);
	put(path, "1\n");
	snprintf(path, sizeof(path), "class/net/%s/operstate", name);
	put(path, "up\n");
	snprintf(path, sizeof(path), "class/net/%s/carrier", name);
	put(path, "1\n");
	snprintf(path, sizeof(path), "class/net/%s/speed", name);
	put(path, "25000\n");
	snprintf(path, sizeof(path), "class/net/%s/statistics/tx_bytes", name);
	put(path, "18446744073709551615\n");
	snprintf(path, sizeof(path), "class/net/%s/statistics/rx_bytes", name);
	put(path, "7\n");
	snprintf(path, sizeof(path), "class/net/%s/statistics/rx_dropped", name);
	put(path, "5\n");
}

static int begin(void **state)
{
	strcpy(root, "/tmp/takt-net-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static const struct takt_net_port *look(uint32_t count)
{
	takt_net_ports_read(root, &ports);
	assert_int_equal(ports.count, count);
	return ports.port;
}

static void an_infiniband_port_counts_in_four_bytes(void **state)
{
	const struct takt_net_port *port;

	put_infiniband();
	port = look(1);
	assert_int_equal(port->kind, TAKT_NET_INFINIBAND);
	assert_string_equal(port->device, "mlx5_0");
	assert_int_equal(port->port, 1);
	assert_int_equal(port->has, TAKT_NET_SENT | TAKT_NET_RECEIVED | TAKT_NET_UP |
					    TAKT_NET_STATE | TAKT_NET_RATE);
	assert_int_equal(port->sent_bytes, 4000);
	assert_int_equal(port->received_bytes, 8000);
	assert_true(port->up);
	assert_string_equal(port->state, "active");
	assert_int_equal(port->rate_mbit_s, 400000);
	assert_int_equal(port->errors_has, 1u << 0 | 1u << 11);
	assert_string_equal(takt_net_error_name(port->kind, 0), "symbol_error");
	assert_string_equal(takt_net_error_name(port->kind, 11), "VL15_dropped");
	assert_int_equal(port->errors[0], 3);
}

static void an_rdma_port_over_ethernet_is_roce(void **state)
{
	put_infiniband();
	put(PORT "link_layer", "Ethernet\n");
	put(PORT "state", "1: DOWN\n");
	put(PORT "rate", "2.5 Gb/sec (1X SDR)\n");
	assert_int_equal(look(1)->kind, TAKT_NET_ROCE);
	assert_false(ports.port->up);
	assert_string_equal(ports.port->state, "down");
	assert_int_equal(ports.port->rate_mbit_s, 2500);
}

static void interfaces_of_cards_are_read_and_others_are_not(void **state)
{
	put_ethernet("eth1", "pci");
	put_ethernet("eth0", "virtio");
	put_ethernet("usb0", "usb");
	put_ethernet("ib0", "pci");
	put("class/net/ib0/type", "32\n"); /* it is among the InfiniBand ports already */
	put("class/net/docker0/type", "1\n");
	put("class/net/bonding_masters", "\n");
	look(2);
	assert_string_equal(ports.port[0].device, "eth0");
	assert_string_equal(ports.port[1].device, "eth1");
	assert_int_equal(ports.port[1].kind, TAKT_NET_ETHERNET);
	assert_int_equal(ports.port[1].port, 0);
	assert_true(ports.port[1].sent_bytes == UINT64_MAX);
	assert_int_equal(ports.port[1].received_bytes, 7);
	assert_int_equal(ports.port[1].rate_mbit_s, 25000);
	assert_true(ports.port[1].up);
	assert_int_equal(ports.port[1].errors_has, 1u << 3);
	assert_string_equal(takt_net_error_name(TAKT_NET_ETHERNET, 3), "rx_dropped");
	assert_int_equal(ports.port[1].errors[3], 5);
}

static void an_interface_without_a_link_tells_no_speed(void **state)
{
	put_ethernet("eth0", "pci");
	put("class/net/eth0/speed", "-1\n");
	put("class/net/eth0/operstate", "down\n");
	take("class/net/eth0/carrier");
	look(1);
	assert_int_equal(ports.port->has,
			 TAKT_NET_SENT | TAKT_NET_RECEIVED | TAKT_NET_UP | TAKT_NET_STATE);
	assert_false(ports.port->up);
	put("class/net/eth0/operstate", "unknown\n");
	look(1);
	assert_false(ports.port->has & TAKT_NET_UP);
}

/* Nothing is made of what is no number, too long a line or beyond what four bytes each can be. */
static void damaged_values_are_absent(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"-1\n",
		"0x10\n",
		"12 34\n",
		"N/A (no PMA)\n",
		"18446744073709551616\n",
		"4611686018427387904\n", /* times 4 it is 2^64 */
		"99999999999999999999999999999999999999999999999999999999999999999999\n",
	};

	put_infiniband();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(PORT "counters/port_xmit_data", bad[i]);
		assert_false(look(1)->has & TAKT_NET_SENT);
		assert_true(ports.port->has & TAKT_NET_RECEIVED);
	}
	put_bytes(PORT "counters/port_xmit_data", "1\0002\n", 4);
	put(PORT "counters/port_rcv_data", "4611686018427387903\n");
	put(PORT "counters/symbol_error", "many\n");
	assert_true(look(1)->received_bytes == UINT64_MAX - 3);
	assert_int_equal(ports.port->errors_has, 1u << 11);
}

static void damaged_words_are_absent(void **state)
{
	static const char *const states[] = {"", "ACTIVE\n", "4:\n", "four: ACTIVE\n", ": \n"};
	static const char *const rates[] = {"",		  "fast\n",	  " Gb/sec\n",
					    "0 Gb/sec\n", "4.x Gb/sec\n", "99999999999 Gb/sec\n"};

	put_infiniband();
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		put(PORT "state", states[i]);
		assert_false(look(1)->has & (TAKT_NET_UP | TAKT_NET_STATE));
	}
	put(PORT "state", "4: \"\\\xff\n");
	assert_int_equal(look(1)->has & (TAKT_NET_UP | TAKT_NET_STATE), TAKT_NET_UP);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		put(PORT "rate", rates[i]);
		assert_false(look(1)->has & TAKT_NET_RATE);
	}
}

static void what_vanishes_is_gone_and_what_comes_is_there(void **state)
{
	look(0);
	put_ethernet("eth0", "pci");
	put_infiniband();
	look(2);
	take("class/infiniband/mlx5_0/ports/1/counters");
	assert_int_equal(look(2)->has, TAKT_NET_UP | TAKT_NET_STATE | TAKT_NET_RATE);
	assert_int_equal(ports.port->errors_has, 0);
	take("class/infiniband");
	assert_int_equal(look(1)->kind, TAKT_NET_ETHERNET);
}

static void ports_beyond_the_limit_are_counted(void **state)
{
	char name[100];

	for (int i = 1; i <= TAKT_NET_MAX_PORTS + 2; i++) {
		snprintf(name, sizeof(name), "class/infiniband/mlx5_0/ports/%d/link_layer", i);
		put(name, "InfiniBand\n");
	}
	put("class/infiniband/mlx5_0/ports/256/link_layer", "InfiniBand\n");
	put("class/infiniband/mlx5_0/ports/x/link_layer", "InfiniBand\n");
	look(TAKT_NET_MAX_PORTS);
	assert_int_equal(ports.left_out, 2);
	put_ethernet("eth0", "pci");
	look(TAKT_NET_MAX_PORTS);
	assert_int_equal(ports.left_out, 3);
}

static void a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

static void the_thread_looks_by_itself(void **state)
{
	struct takt_net_watch *watch;
	struct takt_err err;

	put_infiniband();
	assert_int_equal(takt_net_watch_open(root, &watch, &err), 0);
	for (int i = 0; i < 6000 && (takt_net_watch_latest(watch, &ports), !ports.count); i++)
		a_moment();
	takt_net_watch_close(watch);
	assert_int_equal(ports.count, 1);
	assert_int_equal(ports.port->sent_bytes, 4000);
	assert_true(ports.port->at.ns > 0);
}

static void a_watch_without_memory_is_none(void **state)
{
	struct takt_net_watch *watch = NULL;
	struct takt_err err;

	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_net_watch_open(root, &watch, &err), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_null(watch);
	takt_net_watch_close(watch);
}

/* A pipe that nobody writes to is a card that does not answer. */
static void a_file_that_blocks_holds_up_nobody(void **state)
{
	struct takt_net_watch *watch;
	struct takt_err err;
	char path[256];
	int fd = -1;

	put_infiniband();
	take(PORT "counters/port_xmit_data");
	path_of(PORT "counters/port_xmit_data", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(takt_net_watch_open(root, &watch, &err), 0);
	/* It can be opened without waiting only while somebody is reading. */
	for (int i = 0; i < 6000 && fd < 0; i++) {
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		a_moment();
	}
	assert_true(fd >= 0);
	takt_net_watch_latest(watch, &ports);
	assert_int_equal(ports.count, 0);
	assert_int_equal(write(fd, "5\n", 2), 2);
	for (int i = 0; i < 6000 && (takt_net_watch_latest(watch, &ports), !ports.count); i++)
		a_moment();
	assert_int_equal(ports.port->sent_bytes, 20);
	close(fd);
	takt_net_watch_close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
		CASE(an_infiniband_port_counts_in_four_bytes),
		CASE(an_rdma_port_over_ethernet_is_roce),
		CASE(interfaces_of_cards_are_read_and_others_are_not),
		CASE(an_interface_without_a_link_tells_no_speed),
		CASE(damaged_values_are_absent),
		CASE(damaged_words_are_absent),
		CASE(what_vanishes_is_gone_and_what_comes_is_there),
		CASE(ports_beyond_the_limit_are_counted),
		CASE(the_thread_looks_by_itself),
		CASE(a_watch_without_memory_is_none),
		CASE(a_file_that_blocks_holds_up_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
