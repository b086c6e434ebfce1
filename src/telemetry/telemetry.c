/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object behind telemetry.h: newest readings, rings, accounts and the page, fed from the
 * machine's finished samples.
 */
#include "telemetry/telemetry.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/ring.h"
#include "telemetry/accounts.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/label_words.h"
#include "telemetry/page.h"

enum {
	DEFAULT_HZ = 10,
	MAX_HZ = 100,
	DEFAULT_RING_SECONDS = 120,
	MAX_RING_SECONDS = 3600,
	DEFAULT_PAGE_MS = 1000,
	POINT_HAS = TAKT_HAS_SM_CLOCK | TAKT_HAS_POWER | TAKT_HAS_TEMP | TAKT_HAS_GPU_UTIL |
		    TAKT_HAS_MEMORY,
};

static const uint64_t longest_hush_ns = TAKT_NS_PER_S / 5;
/* A page that nobody has asked for so long is not rendered ahead any more. */
static const uint64_t page_interest_ns = 90 * TAKT_NS_PER_S;

struct gpu {
	struct takt_gpu_reading latest; /* seq 0 = none yet */
	struct takt_ring ring;		/* owned; of struct takt_sample_point */
	struct takt_page_label label;
	struct takt_tally tally;
	struct takt_nccl *nccl;	 /* owned; NULL = never asked for */
	uint64_t energy_most_ns; /* takt_telemetry_want_energy; 0 = nobody did */
};

struct rendered {
	const struct takt_page *page; /* holds a reference; NULL = none rendered yet */
	struct takt_mono at;
	struct takt_mono asked; /* 0 = never */
};

struct takt_telemetry {
	struct takt_machine *machine; /* borrowed */
	const struct takt_machine_info *info;
	bool simulated;
	uint64_t period_ns, page_ns;
	struct takt_mono due; /* 0 = at once */
	bool dcgm_names;
	const char *hostname_label, *hostname; /* borrowed */
	bool hpc_job;
	struct takt_words users, names; /* as labels */
	uint32_t gpu_count;
	struct gpu *gpus;		 /* owned */
	struct takt_page_gpu *page_gpus; /* owned: scratch of render */
	struct takt_accounts accounts;
	struct takt_page_gauges gauges;
	struct takt_net_ports net;
	struct takt_trips trips;
	struct takt_str text; /* the page being rendered */
	struct rendered pages[TAKT_PAGE_FORMATS];
};

static uint32_t or_default(uint32_t value, uint32_t normal)
{
	return value != 0 ? value : normal;
}

static int check(const struct takt_telemetry_config *config, struct takt_err *err)
{
	if (config->rate_hz > MAX_HZ)
		return takt_err_set(err, -EINVAL, "sampling rate %" PRIu32 " Hz, at most %d",
				    config->rate_hz, MAX_HZ);
	if (config->ring_seconds > MAX_RING_SECONDS)
		return takt_err_set(err, -EINVAL, "history of %" PRIu32 " s, at most %d",
				    config->ring_seconds, MAX_RING_SECONDS);
	return 0;
}

static int init_gpus(struct takt_telemetry *telemetry, size_t points, struct takt_err *err)
{
	uint32_t count = telemetry->info->gpu_count;

	telemetry->gpus = takt_calloc(count + 1, sizeof(telemetry->gpus[0]));
	telemetry->page_gpus = takt_calloc(count + 1, sizeof(telemetry->page_gpus[0]));
	if (!telemetry->gpus || !telemetry->page_gpus)
		return takt_err_set(err, -ENOMEM, "telemetry of %" PRIu32 " GPUs", count);
	for (uint32_t g = 0; g < count; g++) {
		int rc = takt_ring_init(&telemetry->gpus[g].ring, points,
					sizeof(struct takt_sample_point));

		if (rc < 0)
			return takt_err_set(err, rc, "history of GPU %" PRIu32, g);
		telemetry->gpu_count++;
	}
	return 0;
}

static void look_at_gpu(struct takt_telemetry *telemetry, uint32_t g, struct takt_mono now)
{
	struct takt_page_gpu *gpu = &telemetry->page_gpus[g];

	gpu->index = g;
	gpu->facts = takt_machine_facts(telemetry->machine, g);
	gpu->label = &telemetry->gpus[g].label;
	gpu->tally = &telemetry->gpus[g].tally;
	gpu->nccl = telemetry->gpus[g].nccl;
	gpu->reading = NULL;
	(void)takt_telemetry_latest(telemetry, g, now, &gpu->reading);
}

/* The page as it is now; after a failure the last one stays. */
static int render(struct takt_telemetry *telemetry, enum takt_page_format format,
		  struct takt_mono now)
{
	struct takt_page_input input = {
		.info = telemetry->info,
		.simulated = telemetry->simulated,
		.format = format,
		.dcgm = telemetry->dcgm_names,
		.hostname_label = telemetry->hostname_label,
		.hostname = telemetry->hostname,
		.hpc_job = telemetry->hpc_job,
		.now = now,
		.gpus = telemetry->page_gpus,
		.gpu_count = telemetry->gpu_count,
		.net = &telemetry->net,
		.trips = &telemetry->trips,
		.gauges = &telemetry->gauges,
	};
	struct rendered *rendered = &telemetry->pages[format];
	const struct takt_page *page;

	for (uint32_t g = 0; g < telemetry->gpu_count; g++)
		look_at_gpu(telemetry, g, now);
	rendered->at = now;
	takt_page_render(&input, &telemetry->text);
	if (telemetry->text.rc < 0)
		return telemetry->text.rc;
	page = takt_page_new(takt_str_text(&telemetry->text), telemetry->text.len);
	if (!page)
		return -ENOMEM;
	takt_page_unref(rendered->page);
	rendered->page = page;
	return 0;
}

int takt_telemetry_new(const struct takt_telemetry_config *config, struct takt_machine *machine,
		       struct takt_telemetry **ret, struct takt_err *err)
{
	uint32_t hz = or_default(config->rate_hz, DEFAULT_HZ);
	uint32_t seconds = or_default(config->ring_seconds, DEFAULT_RING_SECONDS);
	struct takt_telemetry *telemetry;
	int rc = check(config, err);

	if (rc < 0)
		return rc;
	telemetry = takt_zalloc(sizeof(*telemetry));
	if (!telemetry)
		return takt_err_set(err, -ENOMEM, "telemetry");
	telemetry->machine = machine;
	telemetry->info = takt_machine_info(machine);
	telemetry->simulated = config->simulated || telemetry->info->simulated;
	telemetry->dcgm_names = config->dcgm_names;
	telemetry->hostname_label = config->hostname_label;
	telemetry->hostname = config->hostname;
	telemetry->hpc_job = config->hpc_job;
	telemetry->period_ns = TAKT_NS_PER_S / hz;
	telemetry->page_ns = or_default(config->page_ms, DEFAULT_PAGE_MS) * TAKT_NS_PER_MS;
	takt_accounts_init(&telemetry->accounts, telemetry->info->stale_ns);
	telemetry->gauges.list.max = TAKT_PAGE_MAX_GAUGES;
	telemetry->text = TAKT_STR(TAKT_PAGE_MAX_BYTES);
	rc = init_gpus(telemetry, (size_t)hz * seconds, err);
	for (int f = 0; f < TAKT_PAGE_FORMATS && rc == 0; f++)
		if ((rc = render(telemetry, f, (struct takt_mono){0})) < 0)
			takt_err_set(err, rc, "metrics page");
	if (rc < 0) {
		takt_telemetry_free(telemetry);
		return rc;
	}
	*ret = telemetry;
	return 0;
}

void takt_telemetry_free(struct takt_telemetry *telemetry)
{
	if (!telemetry)
		return;
	for (int f = 0; f < TAKT_PAGE_FORMATS; f++)
		takt_page_unref(telemetry->pages[f].page);
	takt_str_fini(&telemetry->text);
	takt_words_fini(&telemetry->users);
	takt_words_fini(&telemetry->names);
	takt_vec_fini(&telemetry->gauges.list);
	takt_accounts_fini(&telemetry->accounts);
	for (uint32_t g = 0; g < telemetry->gpu_count; g++) {
		takt_ring_fini(&telemetry->gpus[g].ring);
		takt_free(telemetry->gpus[g].nccl);
		takt_page_gpu_fini(&telemetry->page_gpus[g]);
	}
	takt_free(telemetry->page_gpus);
	takt_free(telemetry->gpus);
	takt_free(telemetry);
}

struct takt_mono takt_telemetry_tick(struct takt_telemetry *telemetry, struct takt_mono now)
{
	if (now.ns >= telemetry->due.ns) {
		takt_machine_tick(telemetry->machine, UINT32_MAX);
		telemetry->due = takt_mono_add(telemetry->due, telemetry->period_ns);
		/* After a pause there is nothing to catch up with. */
		if (telemetry->due.ns <= now.ns)
			telemetry->due = takt_mono_add(now, telemetry->period_ns);
	}
	return telemetry->due;
}

bool takt_telemetry_hush(struct takt_telemetry *telemetry, bool hush)
{
	bool is = hush && telemetry->period_ns <= longest_hush_ns;

	takt_machine_hush(telemetry->machine, is);
	return is;
}

static void push_point(struct gpu *gpu)
{
	const struct takt_gpu_reading *reading = &gpu->latest;
	struct takt_sample_point point = {
		.at = reading->at,
		.has = reading->has & POINT_HAS,
		.sm_mhz = reading->sm_mhz,
		.power_mw = reading->power_mw,
		.gpu_util_pct = reading->gpu_util_pct,
		.temp_c = reading->temp_c,
		.mem_used_bytes = reading->mem_used_bytes,
	};

	takt_ring_push(&gpu->ring, &point);
}

static void set_energy_pace(struct takt_telemetry *telemetry, uint32_t g)
{
	uint64_t every_ns = takt_accounts_energy_every_ns(&telemetry->accounts, g);
	uint64_t *most_ns = &telemetry->gpus[g].energy_most_ns;

	if (*most_ns != 0 && *most_ns < every_ns)
		every_ns = *most_ns;
	*most_ns = 0;
	takt_machine_energy_every(telemetry->machine, g, every_ns);
}

void takt_telemetry_want_energy(struct takt_telemetry *telemetry, uint32_t gpu, uint64_t every_ns)
{
	if (gpu < telemetry->gpu_count)
		telemetry->gpus[gpu].energy_most_ns = every_ns;
}

uint64_t takt_telemetry_collect(struct takt_telemetry *telemetry, struct takt_mono now)
{
	uint64_t fresh = 0;

	if (now.ns > telemetry->accounts.now.ns)
		telemetry->accounts.now = now;
	for (uint32_t g = 0; g < telemetry->gpu_count; g++) {
		struct gpu *gpu = &telemetry->gpus[g];
		struct takt_mono before = gpu->latest.at;

		/* One that nothing answered has nothing to tell. */
		if (takt_machine_reading(telemetry->machine, g, &gpu->latest) < 0 ||
		    gpu->latest.at.ns == before.ns)
			continue;
		fresh |= 1ull << g;
		push_point(gpu);
		takt_tally_feed(&gpu->tally, &gpu->latest);
		takt_accounts_feed(&telemetry->accounts, g, &gpu->latest);
		set_energy_pace(telemetry, g);
	}
	return fresh;
}

int takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu, struct takt_mono now,
			  const struct takt_gpu_reading **ret)
{
	struct takt_gpu_reading *latest;

	if (gpu >= telemetry->gpu_count)
		return -EINVAL;
	latest = &telemetry->gpus[gpu].latest;
	if (latest->seq == 0)
		return -EAGAIN;
	latest->stale = takt_reading_is_stale(telemetry->info, latest, now);
	latest->asleep &= !latest->stale;
	*ret = latest;
	return 0;
}

bool takt_telemetry_nvlink_rates(const struct takt_telemetry *telemetry, uint32_t gpu,
				 uint64_t *ret_sent_bytes_per_s, uint64_t *ret_received_bytes_per_s)
{
	const struct takt_tally *tally =
		gpu < telemetry->gpu_count ? &telemetry->gpus[gpu].tally : NULL;

	if (!tally || !tally->has_nvlink_rate)
		return false;
	*ret_sent_bytes_per_s = tally->nvlink_sent_bytes_per_s;
	*ret_received_bytes_per_s = tally->nvlink_received_bytes_per_s;
	return true;
}

size_t takt_telemetry_history(struct takt_telemetry *telemetry, uint32_t gpu,
			      struct takt_sample_point *ret, size_t max)
{
	const struct takt_ring *ring;
	size_t n;

	if (gpu >= telemetry->gpu_count)
		return 0;
	ring = &telemetry->gpus[gpu].ring;
	n = takt_ring_len(ring);
	n = n < max ? n : max;
	for (size_t i = 0; i < n; i++)
		memcpy(&ret[i], takt_ring_at(ring, ring->pushed - 1 - i), sizeof(ret[i]));
	return n;
}

static int open_account(struct takt_telemetry *telemetry, uint64_t job_id, uint64_t gpu_mask,
			struct takt_account_entry **ret, struct takt_err *err)
{
	uint32_t n = telemetry->gpu_count;
	int rc;

	if (n < 64 && gpu_mask >> n)
		return takt_err_set(err, -EINVAL, "GPUs %" PRIx64 " of %" PRIu32, gpu_mask, n);
	rc = takt_accounts_open(&telemetry->accounts, job_id, gpu_mask, err);
	if (rc == 0)
		*ret = takt_accounts_find(&telemetry->accounts, job_id);
	return rc;
}

static void begin_account(struct takt_telemetry *telemetry, struct takt_account_entry *entry)
{
	for (uint32_t g = 0; g < telemetry->gpu_count; g++) {
		const struct takt_gpu_reading *reading;

		if (!(entry->gpu_mask >> g & 1))
			continue;
		if (takt_telemetry_latest(telemetry, g, telemetry->accounts.now, &reading) == 0 &&
		    !reading->stale)
			takt_account_begin(entry, g, reading);
		if (!entry->gpus[g].energy_begun)
			takt_machine_sample(telemetry->machine, g);
	}
}

int takt_telemetry_account_open(struct takt_telemetry *telemetry, uint64_t job_id,
				uint64_t gpu_mask, struct takt_err *err)
{
	struct takt_account_entry *entry = NULL;
	int rc = open_account(telemetry, job_id, gpu_mask, &entry, err);

	if (rc == 0)
		begin_account(telemetry, entry);
	return rc;
}

static void list_uuids(const struct takt_telemetry *telemetry,
		       const char *ret[TAKT_DEVICE_MAX_GPUS])
{
	for (uint32_t g = 0; g < TAKT_DEVICE_MAX_GPUS; g++)
		ret[g] = g < telemetry->gpu_count ? takt_machine_facts(telemetry->machine, g)->uuid
						  : "";
}

uint64_t takt_telemetry_account_at(const struct takt_telemetry *telemetry, size_t at)
{
	return at < telemetry->accounts.list.len ? telemetry->accounts.list.at[at]->job_id : 0;
}

int takt_telemetry_account_write(struct takt_telemetry *telemetry, uint64_t job_id,
				 struct takt_str *ret)
{
	struct takt_account_entry *entry = takt_accounts_find(&telemetry->accounts, job_id);
	const char *uuids[TAKT_DEVICE_MAX_GPUS];

	if (!entry)
		return -TAKT_E_NOT_FOUND;
	list_uuids(telemetry, uuids);
	entry->written = true;
	return takt_account_to_text(&telemetry->accounts, entry, uuids, ret);
}

int takt_telemetry_account_resume(struct takt_telemetry *telemetry, uint64_t job_id,
				  uint64_t gpu_mask, const char *text, struct takt_err *err)
{
	struct takt_account_entry *entry = NULL;
	const char *uuids[TAKT_DEVICE_MAX_GPUS];
	int rc = open_account(telemetry, job_id, gpu_mask, &entry, err);

	if (rc < 0)
		return rc;
	list_uuids(telemetry, uuids);
	rc = takt_account_from_text(&telemetry->accounts, text, uuids, entry);
	if (rc < 0) {
		takt_accounts_close(&telemetry->accounts, entry);
		return takt_err_set(err, rc, "account of job %" PRIu64, job_id);
	}
	begin_account(telemetry, entry);
	return 0;
}

void takt_telemetry_account_shared(struct takt_telemetry *telemetry, uint64_t job_id)
{
	struct takt_account_entry *entry = takt_accounts_find(&telemetry->accounts, job_id);

	if (entry)
		entry->shared = true;
}

void takt_telemetry_account_share(struct takt_telemetry *telemetry, uint64_t job_id)
{
	struct takt_account_entry *entry = takt_accounts_find(&telemetry->accounts, job_id);

	if (entry)
		entry->share = true;
}

void takt_telemetry_account_own_memory(struct takt_telemetry *telemetry, uint64_t job_id,
				       uint64_t bytes)
{
	struct takt_account_entry *entry = takt_accounts_find(&telemetry->accounts, job_id);

	if (!entry)
		return;
	entry->own_seen = true;
	if (bytes > entry->own_peak_bytes)
		entry->own_peak_bytes = bytes;
}

int takt_telemetry_account_peek(struct takt_telemetry *telemetry, uint64_t job_id,
				struct takt_account *ret)
{
	const struct takt_account_entry *entry = takt_accounts_find(&telemetry->accounts, job_id);

	if (!entry)
		return -TAKT_E_NOT_FOUND;
	takt_account_sum(&telemetry->accounts, entry, ret);
	return 0;
}

int takt_telemetry_account_close(struct takt_telemetry *telemetry, uint64_t job_id,
				 struct takt_account *ret)
{
	struct takt_account_entry *entry = takt_accounts_find(&telemetry->accounts, job_id);

	if (!entry)
		return -TAKT_E_NOT_FOUND;
	takt_account_sum(&telemetry->accounts, entry, ret);
	takt_accounts_close(&telemetry->accounts, entry);
	return 0;
}

static void keep_jobs(struct takt_telemetry *telemetry, const struct takt_label_job *jobs,
		      struct takt_page_label *ret)
{
	struct takt_mono now = telemetry->accounts.now;

	for (uint32_t i = 0; i < TAKT_LABEL_MAX_JOBS && jobs[i].id; i++)
		ret->jobs[ret->job_count++] = (struct takt_page_job){
			.id = jobs[i].id,
			.engine = jobs[i].engine,
			.user = jobs[i].user ? takt_words_use(&telemetry->users, jobs[i].user, now)
					     : NULL,
			.name = jobs[i].name ? takt_words_use(&telemetry->names, jobs[i].name, now)
					     : NULL,
		};
}

void takt_telemetry_label(struct takt_telemetry *telemetry, uint32_t gpu,
			  const struct takt_gpu_label *label)
{
	struct takt_page_label *to;

	if (gpu >= telemetry->gpu_count)
		return;
	to = &telemetry->gpus[gpu].label;
	*to = (struct takt_page_label){
		.set = true,
		.hears_xids = label->hears_xids,
		.lease_min_mhz = label->lease_min_mhz,
		.lease_max_mhz = label->lease_max_mhz,
		.power_cap_mw = label->power_cap_mw,
	};
	keep_jobs(telemetry, label->jobs, to);
	takt_strcpy(to->state, sizeof(to->state), label->state ? label->state : "");
	takt_strcpy(to->actuate, sizeof(to->actuate), label->actuate ? label->actuate : "");
	takt_strcpy(to->health, sizeof(to->health), label->health ? label->health : "");
}

void takt_telemetry_xid(struct takt_telemetry *telemetry, uint32_t gpu, uint32_t xid,
			struct takt_wall at)
{
	if (gpu < telemetry->gpu_count)
		takt_tally_xid(&telemetry->gpus[gpu].tally, xid, at, telemetry->accounts.now);
}

struct takt_net_ports *takt_telemetry_net(struct takt_telemetry *telemetry)
{
	return &telemetry->net;
}

struct takt_nccl *takt_telemetry_nccl(struct takt_telemetry *telemetry, uint32_t gpu)
{
	struct gpu *one = &telemetry->gpus[gpu];

	if (!one->nccl)
		one->nccl = takt_zalloc(sizeof(*one->nccl));
	return one->nccl;
}

struct takt_trips *takt_telemetry_trips(struct takt_telemetry *telemetry)
{
	return &telemetry->trips;
}

void takt_telemetry_gauge(struct takt_telemetry *telemetry, const char *name, const char *help,
			  bool counter, double value)
{
	struct takt_page_gauge gauge = {
		.name = name, .help = help, .counter = counter, .value = value};

	TAKT_VEC_EACH (known, &telemetry->gauges.list) {
		if (strcmp(known->name, name) == 0) {
			*known = gauge;
			return;
		}
	}
	/* A gauge too many is missing from the page, which is all that can be done about it. */
	(void)takt_vec_push(&telemetry->gauges.list, gauge);
}

bool takt_telemetry_page_is_old(const struct takt_telemetry *telemetry,
				enum takt_page_format format, struct takt_mono now)
{
	const struct rendered *rendered = &telemetry->pages[format];
	/* One that is rendered ahead may be late by a turn of the caller's loop. */
	uint64_t limit_ns = telemetry->page_ns * (rendered->asked.ns != 0 ? 2 : 1);

	return rendered->at.ns == 0 || takt_mono_elapsed_ns(now, rendered->at) >= limit_ns;
}

const struct takt_page *takt_telemetry_page(struct takt_telemetry *telemetry,
					    enum takt_page_format format, struct takt_mono now)
{
	struct rendered *rendered = &telemetry->pages[format];

	if (takt_telemetry_page_is_old(telemetry, format, now))
		(void)render(telemetry, format, now);
	rendered->asked = now;
	takt_page_ref(rendered->page);
	return rendered->page;
}

static bool is_due(const struct takt_telemetry *telemetry, enum takt_page_format format,
		   struct takt_mono now)
{
	const struct rendered *rendered = &telemetry->pages[format];

	return rendered->asked.ns != 0 &&
	       takt_mono_elapsed_ns(now, rendered->asked) < page_interest_ns &&
	       takt_mono_elapsed_ns(now, rendered->at) >= telemetry->page_ns;
}

bool takt_telemetry_page_is_due(const struct takt_telemetry *telemetry, struct takt_mono now)
{
	for (int f = 0; f < TAKT_PAGE_FORMATS; f++)
		if (is_due(telemetry, f, now))
			return true;
	return false;
}

void takt_telemetry_page_refresh(struct takt_telemetry *telemetry, struct takt_mono now)
{
	for (int f = 0; f < TAKT_PAGE_FORMATS; f++)
		if (is_due(telemetry, f, now))
			(void)render(telemetry, f, now);
}
