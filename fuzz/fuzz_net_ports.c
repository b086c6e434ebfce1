/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network port's files in sysfs: the input holds them one after the other in the order of
 * `files`, with '|' between. Whatever they say, what is told of a port is something that a page of
 * metrics can show.
 */
#include "device/net_ports.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "fuzz_input.h"

#define RDMA "class/infiniband/mlx5_0/ports/1/"
#define LINK "class/net/eth0/"

static const char *const folders[] = {
	"class",
	"class/infiniband",
	"class/infiniband/mlx5_0",
	"class/infiniband/mlx5_0/ports",
	"class/infiniband/mlx5_0/ports/1",
	"class/infiniband/mlx5_0/ports/1/counters",
	"class/net",
	"class/net/eth0",
	"class/net/eth0/device",
	"class/net/eth0/statistics",
};
static const char *const files[] = {
	RDMA "link_layer",
	RDMA "state",
	RDMA "rate",
	RDMA "counters/port_xmit_data",
	RDMA "counters/port_rcv_data",
	RDMA "counters/symbol_error",
	LINK "type",
	LINK "operstate",
	LINK "carrier",
	LINK "speed",
	LINK "statistics/tx_bytes",
	LINK "statistics/rx_dropped",
};
static const char bus[] = LINK "device/subsystem";

static char root[] = "/tmp/takt-fuzz-net-XXXXXX";
static int fds[TAKT_ARRAY_LEN(files)];

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void take_tree(void)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(files); i++)
		(void)unlink(path_of(files[i]));
	(void)unlink(path_of(bus));
	for (size_t i = TAKT_ARRAY_LEN(folders); i-- > 0;)
		(void)rmdir(path_of(folders[i]));
	(void)rmdir(root);
}

static void put_tree(void)
{
	fuzz_expect(mkdtemp(root) != NULL);
	fuzz_expect(atexit(take_tree) == 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(folders); i++)
		fuzz_expect(mkdir(path_of(folders[i]), 0700) == 0);
	fuzz_expect(symlink("../../../../bus/pci", path_of(bus)) == 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(files); i++)
		fuzz_expect((fds[i] = open(path_of(files[i]), O_CREAT | O_RDWR, 0600)) >= 0);
}

static void fill(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(files); i++) {
		const uint8_t *bar = size ? memchr(data, '|', size) : NULL;
		size_t len = bar ? (size_t)(bar - data) : size;

		fuzz_expect(ftruncate(fds[i], 0) == 0);
		fuzz_expect(pwrite(fds[i], data, len, 0) == (ssize_t)len);
		data += bar ? len + 1 : len;
		size -= bar ? len + 1 : len;
	}
}

static void check(const struct takt_net_port *port)
{
	uint32_t known = 0;

	while (takt_net_error_name(port->kind, known))
		known++;
	fuzz_expect(port->kind < TAKT_NET_KINDS && memchr(port->device, '\0', TAKT_NET_NAME));
	fuzz_expect(known <= TAKT_NET_MAX_ERRORS && port->errors_has >> known == 0);
	fuzz_expect(!(port->has & TAKT_NET_RATE) == (port->rate_mbit_s == 0));
	fuzz_expect(port->kind == TAKT_NET_ETHERNET || port->sent_bytes % 4 == 0);
	fuzz_expect(!(port->has & TAKT_NET_STATE) == (port->state[0] == '\0'));
	fuzz_expect(memchr(port->state, '\0', TAKT_NET_WORD) != NULL);
	for (const char *c = port->state; *c; c++)
		fuzz_expect(islower((unsigned char)*c) || *c == '_');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct takt_net_ports ports;
	static int has_tree;

	if (!has_tree)
		put_tree();
	has_tree = 1;
	fill(data, size);
	takt_net_ports_read(root, &ports);
	fuzz_expect(ports.count <= 2 && ports.left_out == 0);
	for (uint32_t i = 0; i < ports.count; i++)
		check(&ports.port[i]);
	return 0;
}
