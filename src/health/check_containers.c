/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of what containers need to be given GPUs.
 * https://docs.nvidia.com/datacenter/cloud-native/container-toolkit (install guide,
 * troubleshooting)
 */
#include <string.h>

#include "health/doctor.h"

/* Containers are there, and GPUs to give. */
static bool concerns(const struct takt_doctor_facts *facts)
{
	return facts->containers.docker && facts->gpu_count > 0 && !facts->in_container;
}

void takt_doctor_check_toolkit(const struct takt_doctor_facts *facts,
			       struct takt_doctor_report *report)
{
	const struct takt_doctor_containers *c = &facts->containers;

	if (!concerns(facts))
		return;
	if (c->toolkit)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%s is here, and so is NVIDIA's runtime hook", c->which);
	else if (c->cdi_path[0])
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"no runtime hook, hence no --gpus all; devices by CDI: "
				"--device nvidia.com/gpu=all");
	else
		takt_doctor_say(
			report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_CONTAINERS,
			"install nvidia-container-toolkit; then nvidia-ctk runtime configure, and "
			"restart the container engine",
			"%s is here, but nvidia-container-toolkit is not: --gpus all fails",
			c->which);
}

void takt_doctor_check_runtime(const struct takt_doctor_facts *facts,
			       struct takt_doctor_report *report)
{
	const struct takt_doctor_containers *c = &facts->containers;

	if (!concerns(facts))
		return;
	if (c->runtime_missing)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_CONTAINERS,
				"install nvidia-container-toolkit, or nvidia-ctk runtime configure",
				"docker's runtime \"nvidia\" is %s, which is not there",
				c->runtime_path);
	else if (c->no_cgroups)
		takt_doctor_say(
			report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
			"no-cgroups = true, as rootless containers need it; in others GPUs are "
			"then refused (\"Insufficient Permissions\")");
	else
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL, "%s",
				c->runtime_named ? "docker has the runtime \"nvidia\""
						 : "nothing is wrong with its files");
}

/*
 * With systemd's cgroup driver a daemon-reload makes systemd write the device rules of containers
 * anew, and it finds devices by /dev/char: without links there, running containers lose their GPUs.
 * NVIDIA/nvidia-container-toolkit issue 48
 */
void takt_doctor_check_cgroup(const struct takt_doctor_facts *facts,
			      struct takt_doctor_report *report)
{
	const struct takt_doctor_containers *c = &facts->containers;

	if (!concerns(facts) || !c->systemd || !c->toolkit)
		return;
	if (c->cgroupfs)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"docker manages cgroups itself (cgroupfs)");
	else if (!(facts->has & TAKT_DOCTOR_DEV_CHAR))
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"/dev/char cannot be looked at");
	else if (c->char_links)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"systemd finds the GPUs' devices in /dev/char");
	else
		takt_doctor_say(
			report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_CONTAINERS,
			"nvidia-ctk system create-dev-char-symlinks --create-all, at each start; "
			"or CDI devices",
			"/dev/char has no links to the GPUs: containers lose them at the next "
			"systemctl daemon-reload");
}

void takt_doctor_check_cdi(const struct takt_doctor_facts *facts, struct takt_doctor_report *report)
{
	const struct takt_doctor_containers *c = &facts->containers;

	if (c->cdi_path[0] == '\0' || facts->asked != TAKT_ASKED_YES)
		return;
	if (c->cdi_version[0] == '\0')
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"%s names no version of a driver", c->cdi_path);
	else if (strcmp(c->cdi_version, facts->info.driver_version) != 0)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_CONTAINERS,
				"nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
				"%s is of driver %s, and %s is loaded: CDI containers do not start",
				c->cdi_path, c->cdi_version, facts->info.driver_version);
	else
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%s is of this driver", c->cdi_path);
}
