/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's account as an earlier process of this boot wrote it, behind the words that say so: what
 * is taken is of the job's GPUs and is written and read again as the same; else the entry is
 * untouched.
 */
#include "base/sys.h"
#include "fuzz_input.h"
#include "telemetry/accounts.h"

static const char *const uuids[TAKT_DEVICE_MAX_GPUS] = {"GPU-a", "GPU-b", "GPU-c"};
static const uint64_t mask = 5; /* the first and the third */

static struct takt_account_entry *open_entry(struct takt_accounts *accounts, uint64_t id)
{
	fuzz_expect(takt_accounts_open(accounts, id, mask, NULL) == 0);
	return takt_accounts_find(accounts, id);
}

static void read_again(struct takt_accounts *accounts, const struct takt_account_entry *entry)
{
	struct takt_str once = TAKT_STR(65536), twice = TAKT_STR(65536);
	struct takt_account_entry *back = open_entry(accounts, 2);

	fuzz_expect(takt_account_to_text(accounts, entry, uuids, &once) == 0);
	fuzz_expect(takt_account_from_text(accounts, takt_str_text(&once), uuids, back) == 0);
	fuzz_expect(takt_account_to_text(accounts, back, uuids, &twice) == 0);
	fuzz_expect(strcmp(takt_str_text(&once), takt_str_text(&twice)) == 0);
	takt_str_fini(&once);
	takt_str_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *rest = fuzz_text(data, size), boot_id[40];
	struct takt_str text = TAKT_STR(1 << 22);
	struct takt_accounts accounts;
	struct takt_account_entry *entry, before;

	takt_boot_id(boot_id);
	takt_accounts_init(&accounts, TAKT_NS_PER_S);
	accounts.now.ns = 1000000;
	entry = open_entry(&accounts, 1);
	before = *entry;
	fuzz_expect(takt_str_addf(&text, "takt-account 1 %s %s", boot_id, rest) == 0);
	if (takt_account_from_text(&accounts, takt_str_text(&text), uuids, entry) == 0)
		read_again(&accounts, entry);
	else
		fuzz_expect(memcmp(&before, entry, sizeof(before)) == 0);
	takt_accounts_fini(&accounts);
	takt_str_fini(&text);
	free(rest);
	return 0;
}
