/* SPDX-License-Identifier: Apache-2.0 */
/* Bus ids, CPU lists, and what a copy of the kernel's device tree says of two GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "device/cpu_list.h"
#include "device/link_kind.h"
#include "device/pci_id.h"
#include "device/sysfs_pci.h"

static void bus_ids_of_both_spellings_are_one(void **state)
{
	struct takt_pci_id id;

	assert_true(takt_pci_id_parse("00000001:aB:1f.7", &id));
	assert_int_equal(id.domain, 1);
	assert_int_equal(id.bus, 0xab);
	assert_int_equal(id.device, 0x1f);
	assert_int_equal(id.function, 7);
	assert_int_equal(takt_pci_id_compare("0000:07:00.0", "00000000:07:00.0"), 0);
	assert_true(takt_pci_id_compare("00000000:0A:00.0", "00000000:B1:00.0") < 0);
	assert_true(takt_pci_id_compare("00000001:03:00.0", "00000000:B1:00.0") > 0);
	assert_true(takt_pci_id_compare("garbage", "00000000:B1:00.0") > 0);
}

static void what_is_no_bus_id_is_refused(void **state)
{
	static const char *const texts[] = {
		"",	      "000:07:00.0",   "000000000:07:00.0", "0000:7:00.0",
		"0000:07:00", "0000:07:00.0 ", "0000:07:00.g",	    "0000:07:00.00"};
	struct takt_pci_id id = {.bus = 99};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(texts); i++)
		assert_false(takt_pci_id_parse(texts[i], &id));
	assert_int_equal(id.bus, 99);
}

static void cpu_lists_come_back_as_they_went(void **state)
{
	static const char *const lists[] = {"0", "0-3", "0-31,64-95", "1,3,5-127", "63-64", "127"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(lists); i++) {
		struct takt_str text = TAKT_STR(100);
		uint64_t mask[2] = {0};

		assert_true(takt_cpu_list_parse(lists[i], mask, 2));
		takt_cpu_list_format(mask, 2, &text);
		assert_string_equal(takt_str_text(&text), lists[i]);
		takt_str_fini(&text);
	}
}

static void what_is_no_cpu_list_is_refused(void **state)
{
	static const char *const texts[] = {
		"",    "a",	"3-1", "5,4",  "1,",  ",1",    "1-",
		"128", "0-128", "1 2", "1--2", "3,3", "0-3,2", "99999999999999999999"};
	uint64_t mask[2] = {7, 7};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(texts); i++)
		if (takt_cpu_list_parse(texts[i], mask, 2))
			fail_msg("'%s' was taken", texts[i]);
	assert_int_equal(mask[0], 7);
}

static char root[] = "/tmp/takt-sysfs-XXXXXX";

static void put(const char *directory, const char *name, const char *text)
{
	char file[512];
	FILE *out;

	snprintf(file, sizeof(file), "%s/%s", directory, name);
	out = fopen(file, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* A device at a place of the tree, with the kernel's link to it. */
static void plant(const char *tree, const char *id, const char *numa)
{
	char text[2048], directory[512];

	snprintf(directory, sizeof(directory), "%s/devices/%s/%s", root, tree, id);
	snprintf(text, sizeof(text),
		 "mkdir -p '%s' '%s/bus/pci/devices' && ln -s '%s' '%s/bus/pci/devices/%s'",
		 directory, root, directory, root, id);
	run(text);
	put(directory, "numa_node", numa);
	put(directory, "local_cpulist", "0-15,32-47\n");
	put(directory, "class", "0x030200\n");
}

static int plant_all(void **state)
{
	if (!mkdtemp(root))
		return -1;
	/* Two behind one switch, two behind further bridges, one at the same host bridge,
	 * one at another of the same node, one on the other socket. */
	plant("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:04.0", "0000:3d:00.0", "0\n");
	plant("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:05.0", "0000:3e:00.0", "0\n");
	plant("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:06.0/0000:3f:00.0/0000:40:01.0",
	      "0000:41:00.0", "0\n");
	plant("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:07.0/0000:44:00.0", "0000:45:00.0",
	      "0\n");
	plant("pci0000:3a/0000:3a:01.0", "0000:50:00.0", "0\n");
	plant("pci0000:5b/0000:5b:00.0", "0000:5c:00.0", "0\n");
	plant("pci0000:ae/0000:ae:00.0", "0000:af:00.0", "1\n");
	plant("pci0000:be/0000:be:00.0", "0000:bf:00.0", "-1\n");
	return 0;
}

static int uproot(void **state)
{
	char text[512];

	snprintf(text, sizeof(text), "rm -rf '%s'", root);
	return system(text);
}

static void places_in_the_tree_tell_the_link(void **state)
{
	static const struct {
		const char *a, *b;
		enum link_kind kind;
	} cases[] = {
		{"00000000:3D:00.0", "00000000:3E:00.0", LINK_PIX},
		{"00000000:3D:00.0", "00000000:41:00.0", LINK_PXB},
		{"00000000:3D:00.0", "00000000:45:00.0", LINK_PXB},
		{"0000:3d:00.0", "0000:50:00.0", LINK_PHB},
		{"0000:3d:00.0", "0000:5c:00.0", LINK_NODE},
		{"0000:3d:00.0", "0000:af:00.0", LINK_SYS},
		{"0000:3d:00.0", "0000:bf:00.0", LINK_UNKNOWN}, /* node unknown */
		{"0000:3d:00.0", "0000:ff:00.0", LINK_UNKNOWN}, /* not there */
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		assert_int_equal(takt_sysfs_link(root, cases[i].a, cases[i].b), cases[i].kind);
		assert_int_equal(takt_sysfs_link(root, cases[i].b, cases[i].a), cases[i].kind);
	}
}

static void node_and_cpus_come_from_the_kernel(void **state)
{
	uint64_t cpus[16] = {0};
	int32_t node = 77;

	assert_true(takt_sysfs_numa(root, "00000000:AF:00.0", &node));
	assert_int_equal(node, 1);
	assert_false(takt_sysfs_numa(root, "00000000:BF:00.0", &node));
	assert_false(takt_sysfs_numa(root, "00000000:FF:00.0", &node));
	assert_int_equal(node, 1);
	assert_true(takt_sysfs_cpus(root, "00000000:AF:00.0", cpus, 16));
	assert_true(cpus[0] == 0x0000ffff0000ffffull);
	assert_false(takt_sysfs_is_switch(root, "00000000:AF:00.0"));
}

/* Says what the kernel says of a device; NULL = it does not. */
static void say(const char *tree, const char *id, const char *vendor, const char *driver,
		const char *status)
{
	char text[2048], directory[512];

	snprintf(directory, sizeof(directory), "%s/devices/%s/%s", root, tree, id);
	snprintf(text, sizeof(text),
		 "mkdir -p '%s/power' && ln -sfn '../../drivers/%s' '%s/driver' && "
		 "mkdir -p '%s/bus/pci/drivers/%s' && rm -f '%s'/bus/pci/drivers/*/%s && "
		 "touch '%s/bus/pci/drivers/%s/%s' '%s/bus/pci/drivers/%s/bind'",
		 directory, driver, directory, root, driver, root, id, root, driver, id, root,
		 driver);
	run(text);
	put(directory, "vendor", vendor);
	put(directory, "power/runtime_status", status);
}

static void gpus_sleep_when_all_of_the_driver_do(void **state)
{
	static const char first[] = "pci0000:3a/0000:3a:01.0", second[] = "pci0000:5b/0000:5b:00.0",
			  third[] = "pci0000:ae/0000:ae:00.0";

	assert_false(takt_sysfs_all_asleep("/nonexistent"));
	assert_false(takt_sysfs_all_asleep(root));
	say(first, "0000:50:00.0", "0x10de\n", "nvidia", "suspended\n");
	assert_true(takt_sysfs_all_asleep(root));
	say(second, "0000:5c:00.0", "0x10de\n", "nvidia", "active\n");
	assert_false(takt_sysfs_all_asleep(root));
	say(second, "0000:5c:00.0", "0x10de\n", "nvidia", "suspending\n");
	assert_true(takt_sysfs_all_asleep(root));
	assert_int_equal(takt_sysfs_sleep(root, "0000:5c:00.0"), TAKT_SLEEP_FALLING);
	say(second, "0000:5c:00.0", "0x10de\n", "nvidia", "resuming\n");
	assert_false(takt_sysfs_all_asleep(root));
	/* A virtual machine's, and another vendor's. */
	say(second, "0000:5c:00.0", "0x10de\n", "vfio-pci", "active\n");
	say(third, "0000:af:00.0", "0x1002\n", "amdgpu", "active\n");
	assert_true(takt_sysfs_all_asleep(root));
	assert_int_equal(takt_sysfs_sleep(root, "00000000:50:00.0"), TAKT_SLEEP_ASLEEP);
	assert_int_equal(takt_sysfs_sleep(root, "0000:5c:00.0"), TAKT_SLEEP_AWAKE);
	assert_int_equal(takt_sysfs_sleep("/nonexistent", "0000:50:00.0"), TAKT_SLEEP_AWAKE);
	assert_int_equal(takt_sysfs_sleep(root, ""), TAKT_SLEEP_AWAKE);
	say(first, "0000:50:00.0", "0x10de\n", "nvidia", "unsupported\n");
	assert_false(takt_sysfs_all_asleep(root));
	assert_int_equal(takt_sysfs_sleep(root, "00000000:50:00.0"), TAKT_SLEEP_AWAKE);
}

static void a_gpu_is_there_with_its_driver_or_none(void **state)
{
	static const char bridge[] = "pci0000:3a/0000:3a:01.0";

	assert_false(takt_sysfs_has_gpu("/nonexistent"));
	say(bridge, "0000:50:00.0", "0x10de\n", "nvidia", "active\n");
	assert_true(takt_sysfs_has_gpu(root));
	say(bridge, "0000:50:00.0", "0x10de\n", "vfio-pci", "active\n");
	assert_false(takt_sysfs_has_gpu(root));
	say(bridge, "0000:50:00.0", "0x10de\n", "", "active\n");
	assert_true(takt_sysfs_has_gpu(root));
	say(bridge, "0000:50:00.0", "0x1002\n", "", "active\n");
	assert_false(takt_sysfs_has_gpu(root));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bus_ids_of_both_spellings_are_one),
		cmocka_unit_test(what_is_no_bus_id_is_refused),
		cmocka_unit_test(cpu_lists_come_back_as_they_went),
		cmocka_unit_test(what_is_no_cpu_list_is_refused),
		cmocka_unit_test(places_in_the_tree_tell_the_link),
		cmocka_unit_test(node_and_cpus_come_from_the_kernel),
		cmocka_unit_test(gpus_sleep_when_all_of_the_driver_do),
		cmocka_unit_test(a_gpu_is_there_with_its_driver_or_none),
	};

	return cmocka_run_group_tests(tests, plant_all, uproot);
}
