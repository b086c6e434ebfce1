/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers what the doctor judges by: from the driver, the kernel and files. Reads only; loads no
 * module and wakes no GPU: where one is suspended, or there is one and no module, the driver is not
 * asked.
 */
#ifndef TAKT_HEALTH_GATHER_H
#define TAKT_HEALTH_GATHER_H

#include "health/doctor_facts.h"

struct takt_gather {
	const char *root;		 /* before every path of a file; "" = this machine's */
	const char *nvml_path;		 /* as in takt_machine_config */
	const char *library_path;	 /* the caller's LD_LIBRARY_PATH; NULL = none */
	const char *home, *venv, *conda; /* where Python packages may be, too; NULL = nowhere */
	uint32_t samples, interval_ms;	 /* of each GPU; 0 = 5, 200 */
};

/* ret is heap or static, zeroed. What could not be learned lacks its bit. */
void takt_doctor_gather(const struct takt_gather *gather, struct takt_doctor_facts *ret);

/* Parts of it, with a file of their own. */
void takt_gather_bus(const char *root, struct takt_doctor_facts *facts);
void takt_gather_module(const char *root, struct takt_doctor_facts *facts);
void takt_gather_host(const char *root, struct takt_doctor_facts *facts);
void takt_gather_sensors(const char *root, struct takt_doctor_facts *facts);
void takt_gather_containers(const char *root, struct takt_doctor_facts *facts);
void takt_gather_packages(const struct takt_gather *gather, struct takt_doctor_facts *facts);

#endif
