/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the machine around the GPUs: its memory nodes and its network cards. */
#include <string.h>

#include "health/doctor.h"

/* The kernel's -1, where the firmware does not say near to which CPUs a slot is. */
void takt_doctor_check_numa(const struct takt_doctor_facts *facts,
			    struct takt_doctor_report *report)
{
	if (!(facts->has & TAKT_DOCTOR_NUMA_NODES) || facts->numa_nodes < 2)
		return;
	TAKT_EACH_GPU (i, facts) {
		if (facts->gpu[i].facts.has & TAKT_FACT_NUMA)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"its memory node is known");
		else
			takt_doctor_say(
				report, TAKT_DOCTOR_INFO, 1ull << i, TAKT_DO_HOST,
				"the firmware's settings for NUMA (nodes per socket, ACPI SRAT)",
				"neither the driver nor the kernel says near to which of %u "
				"memory nodes it is",
				facts->numa_nodes);
	}
}

static bool is_active(const struct takt_doctor_port *port)
{
	return strcmp(port->state, "ACTIVE") == 0;
}

static bool has_active_port(const struct takt_doctor_facts *facts)
{
	for (uint32_t i = 0; facts->has & TAKT_DOCTOR_PORTS && i < facts->port_count; i++)
		if (is_active(&facts->port[i]))
			return true;
	return false;
}

/* Network cards reach GPU memory through nvidia-peermem, or through dma-buf with the open kernel
 * modules. https://docs.nvidia.com/cuda/gpudirect-rdma; NCCL user guide, GPU Direct RDMA */
void takt_doctor_check_peermem(const struct takt_doctor_facts *facts,
			       struct takt_doctor_report *report)
{
	if (!has_active_port(facts) || facts->gpu_count == 0)
		return;
	if (!(facts->has & TAKT_DOCTOR_MODULES))
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"the kernel does not list its modules");
	else if (facts->peermem)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"nvidia_peermem is loaded");
	else if (facts->has & TAKT_DOCTOR_KERNEL_MODULE && facts->open_module)
		takt_doctor_say(
			report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
			"nvidia_peermem is not loaded; the open kernel modules can do without it "
			"(dma-buf)");
	else
		takt_doctor_say(
			report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_NETWORK,
			"modprobe nvidia_peermem, and its name into /etc/modules-load.d",
			"RDMA ports are active, but nvidia_peermem is not loaded: what goes out "
			"of GPU memory is copied through the host's");
}

/* The quickest of the active ports of the same link layer. */
static uint32_t best_rate(const struct takt_doctor_facts *facts, bool ethernet)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < facts->port_count; i++)
		if (facts->port[i].ethernet == ethernet && is_active(&facts->port[i]) &&
		    facts->port[i].gbit > best)
			best = facts->port[i].gbit;
	return best;
}

static void judge_port(const struct takt_doctor_facts *facts, const struct takt_doctor_port *port,
		       struct takt_doctor_report *report)
{
	uint32_t best = best_rate(facts, port->ethernet);

	if (strcmp(port->state, "INIT") == 0)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_NETWORK,
				"is a subnet manager running in this network?",
				"%s port %u has a cable, but no subnet manager has set it up",
				port->device, port->number);
	else if (!is_active(port))
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%s port %u is %s (%s)", port->device, port->number, port->state,
				port->phys);
	else if (port->gbit < best)
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"%s port %u runs at %u Gbit/s, others at %u", port->device,
				port->number, port->gbit, best);
	else
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%s port %u is active at %u Gbit/s", port->device, port->number,
				port->gbit);
}

/* A port without a cable may be meant so; which are to be connected nobody told us. */
void takt_doctor_check_network_links(const struct takt_doctor_facts *facts,
				     struct takt_doctor_report *report)
{
	for (uint32_t i = 0; facts->has & TAKT_DOCTOR_PORTS && i < facts->port_count; i++)
		judge_port(facts, &facts->port[i], report);
}
