/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading
 *
 *	/sys/class/infiniband/mlx5_0/ports/1/{link_layer,state,rate,counters/...}
 *	/sys/class/net/eth0/{type,device/subsystem,operstate,carrier,speed,statistics/...}
 *
 * Interfaces without a card (bridges, tunnels, containers' ends) are passed over: their traffic is
 * counted where it leaves the machine.
 */
#include "device/net_ports.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/sort.h"
#include "base/str.h"

enum {
	LINE = 64,
	MOST_PORTS_A_DEVICE = 255,
	MOST_MBIT_S = 100 * 1000 * 1000,
	UNIT_BYTES = 4, /* of InfiniBand's counters of data */
	STATE_ACTIVE = 4,
	TYPE_ETHERNET = 1, /* ARPHRD_ETHER */
};

static const char *const infiniband_errors[] = {
	"symbol_error",
	"link_error_recovery",
	"link_downed",
	"port_rcv_errors",
	"port_rcv_remote_physical_errors",
	"port_rcv_switch_relay_errors",
	"port_xmit_discards",
	"port_xmit_constraint_errors",
	"port_rcv_constraint_errors",
	"local_link_integrity_errors",
	"excessive_buffer_overrun_errors",
	"VL15_dropped",
};
static const char *const ethernet_errors[] = {
	"tx_errors",	 "rx_errors",	     "tx_dropped",     "rx_dropped",
	"rx_crc_errors", "rx_missed_errors", "rx_fifo_errors", "tx_carrier_errors",
};
_Static_assert(TAKT_ARRAY_LEN(infiniband_errors) <= TAKT_NET_MAX_ERRORS, "they fit");

/* One look at the tree. */
struct look {
	const char *root;
	struct takt_net_ports *ret;
};

const char *takt_net_kind_name(enum takt_net_kind kind)
{
	static const char *const names[TAKT_NET_KINDS] = {"infiniband", "roce", "ethernet"};

	return names[kind];
}

const char *takt_net_error_name(enum takt_net_kind kind, uint32_t error)
{
	if (kind == TAKT_NET_ETHERNET)
		return error < TAKT_ARRAY_LEN(ethernet_errors) ? ethernet_errors[error] : NULL;
	return error < TAKT_ARRAY_LEN(infiniband_errors) ? infiniband_errors[error] : NULL;
}

/* A line without its newline; one too long is none. */
static bool read_line(const char *folder, const char *name, char ret[LINE])
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, ret, LINE);
	close(fd);
	if (n <= 0 || n == LINE)
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

static bool read_u64(const char *folder, const char *name, uint64_t most, uint64_t *ret)
{
	unsigned long long value;
	char line[LINE];

	if (!read_line(folder, name, line) || takt_parse_u64(line, 0, most, &value) < 0)
		return false;
	*ret = value;
	return true;
}

static void read_bytes(const char *folder, const char *name, uint32_t unit, uint32_t has,
		       struct takt_net_port *port, uint64_t *ret)
{
	uint64_t units;

	if (!read_u64(folder, name, UINT64_MAX / unit, &units))
		return;
	*ret = units * unit;
	port->has |= has;
}

static void read_errors(const char *folder, struct takt_net_port *port)
{
	const char *name;

	for (uint32_t i = 0; (name = takt_net_error_name(port->kind, i)) != NULL; i++)
		if (read_u64(folder, name, UINT64_MAX, &port->errors[i]))
			port->errors_has |= 1u << i;
}

/* A word of the kernel's, in lower case; what has anything but letters in it is none. */
static void set_state(const char *word, struct takt_net_port *port)
{
	size_t n = strlen(word);

	if (n == 0 || n >= TAKT_NET_WORD)
		return;
	for (size_t i = 0; i < n; i++)
		if (!isalpha((unsigned char)word[i]) && word[i] != '_')
			return;
	for (size_t i = 0; i <= n; i++)
		port->state[i] = (char)tolower((unsigned char)word[i]);
	port->has |= TAKT_NET_STATE;
}

/* "4: ACTIVE" */
static void read_port_state(const char *folder, struct takt_net_port *port)
{
	unsigned long long number;
	char line[LINE], *colon;

	if (!read_line(folder, "state", line) || !(colon = strstr(line, ": ")))
		return;
	*colon = '\0';
	if (takt_parse_u64(line, 0, 9, &number) < 0)
		return;
	port->up = number == STATE_ACTIVE;
	port->has |= TAKT_NET_UP;
	set_state(colon + 2, port);
}

/* "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)" */
static void read_port_rate(const char *folder, struct takt_net_port *port)
{
	unsigned long long gbit, tenths = 0;
	char line[LINE], *unit, *point;

	if (!read_line(folder, "rate", line) || !(unit = strstr(line, " Gb/sec")))
		return;
	*unit = '\0';
	point = strchr(line, '.');
	if (point)
		*point = '\0';
	if (takt_parse_u64(line, 0, MOST_MBIT_S / 1000, &gbit) < 0 ||
	    (point && takt_parse_u64(point + 1, 0, 9, &tenths) < 0) || gbit + tenths == 0)
		return;
	port->rate_mbit_s = (uint32_t)(gbit * 1000 + tenths * 100);
	port->has |= TAKT_NET_RATE;
}

static struct takt_net_port *add_port(const struct look *look, const char *device, uint32_t number)
{
	struct takt_net_ports *ports = look->ret;
	struct takt_net_port *port;

	if (ports->count == TAKT_NET_MAX_PORTS) {
		ports->left_out++;
		return NULL;
	}
	port = &ports->port[ports->count];
	*port = (struct takt_net_port){.port = number};
	if (!takt_strcpy(port->device, sizeof(port->device), device))
		return NULL;
	ports->count++;
	return port;
}

static void read_rdma_port(const struct look *look, const char *device, uint32_t number,
			   const char *folder)
{
	char line[LINE], counters[PATH_MAX];
	struct takt_net_port *port;

	if (!read_line(folder, "link_layer", line) ||
	    snprintf(counters, sizeof(counters), "%s/counters", folder) >= (int)sizeof(counters))
		return;
	port = add_port(look, device, number);
	if (!port)
		return;
	port->kind = strcmp(line, "Ethernet") == 0 ? TAKT_NET_ROCE : TAKT_NET_INFINIBAND;
	read_port_state(folder, port);
	read_port_rate(folder, port);
	read_bytes(counters, "port_xmit_data", UNIT_BYTES, TAKT_NET_SENT, port, &port->sent_bytes);
	read_bytes(counters, "port_rcv_data", UNIT_BYTES, TAKT_NET_RECEIVED, port,
		   &port->received_bytes);
	read_errors(counters, port);
}

typedef void each_fn(const struct look *look, const char *folder, const char *name);

/* Calls for every name in root/folder that is not hidden. */
static void each_name(const struct look *look, const char *folder, each_fn *each)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			each(look, folder, entry->d_name);
	closedir(dir);
}

/* folder: root/class/infiniband/mlx5_0/ports */
static void look_at_port(const struct look *look, const char *folder, const char *name)
{
	char path[PATH_MAX], device[NAME_MAX + 1];
	const char *end = strrchr(folder, '/'), *begin = end;
	unsigned long long number;

	while (begin[-1] != '/')
		begin--;
	snprintf(device, sizeof(device), "%.*s", (int)(end - begin), begin);
	if (takt_parse_u64(name, 1, MOST_PORTS_A_DEVICE, &number) == 0 &&
	    snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
		read_rdma_port(look, device, (uint32_t)number, path);
}

static void look_at_rdma(const struct look *look, const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s/ports", folder, name) < (int)sizeof(path))
		each_name(look, path, look_at_port);
}

/* On the bus of cards, or of those that a virtual machine has. */
static bool is_card(const char *interface)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/device/subsystem", interface) >= (int)sizeof(path))
		return false;
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return slash && (strcmp(slash, "/pci") == 0 || strcmp(slash, "/virtio") == 0);
}

/* An interface that nobody has set up tells neither carrier nor speed. */
static void read_link(const char *folder, struct takt_net_port *port)
{
	uint64_t carrier, mbit_s;
	char line[LINE];

	if (read_line(folder, "operstate", line))
		set_state(line, port);
	if (read_u64(folder, "carrier", 1, &carrier)) {
		port->up = carrier;
		port->has |= TAKT_NET_UP;
	} else if (strcmp(port->state, "down") == 0) {
		port->has |= TAKT_NET_UP;
	}
	if (read_u64(folder, "speed", MOST_MBIT_S, &mbit_s) && mbit_s > 0) {
		port->rate_mbit_s = (uint32_t)mbit_s;
		port->has |= TAKT_NET_RATE;
	}
}

static void look_at_interface(const struct look *look, const char *folder, const char *name)
{
	char path[PATH_MAX], statistics[PATH_MAX];
	struct takt_net_port *port;
	uint64_t type;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
	    snprintf(statistics, sizeof(statistics), "%s/%s/statistics", folder, name) >=
		    (int)sizeof(statistics) ||
	    !read_u64(path, "type", TYPE_ETHERNET, &type) || type != TYPE_ETHERNET ||
	    !is_card(path))
		return;
	port = add_port(look, name, 0);
	if (!port)
		return;
	port->kind = TAKT_NET_ETHERNET;
	read_link(path, port);
	read_bytes(statistics, "tx_bytes", 1, TAKT_NET_SENT, port, &port->sent_bytes);
	read_bytes(statistics, "rx_bytes", 1, TAKT_NET_RECEIVED, port, &port->received_bytes);
	read_errors(statistics, port);
}

static int compare_ports(const void *a, const void *b, void *ctx)
{
	const struct takt_net_port *left = a, *right = b;
	int name = strcmp(left->device, right->device);

	(void)ctx;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return name ? name : (int)left->port - (int)right->port;
}

void takt_net_ports_read(const char *root, struct takt_net_ports *ret)
{
	struct look look = {root, ret};
	char folder[PATH_MAX];

	ret->count = ret->left_out = 0;
	if (snprintf(folder, sizeof(folder), "%s/class/infiniband", root) < (int)sizeof(folder))
		each_name(&look, folder, look_at_rdma);
	if (snprintf(folder, sizeof(folder), "%s/class/net", root) < (int)sizeof(folder))
		each_name(&look, folder, look_at_interface);
	(void)takt_sort(ret->port, ret->count, sizeof(ret->port[0]), compare_ports, NULL);
}
