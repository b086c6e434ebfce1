/* SPDX-License-Identifier: Apache-2.0 */
/* takt simulate --protocol timed: pods that come and go as in the trace. */
#include <string.h>

#include "cli/simulate.h"
#include "cli/simulate_pods.h"
#include "sim/timed_experiment.h"

static int show(struct takt_simulate *simulate, const struct takt_timed_experiment *experiment,
		const struct takt_simulate_pods *pods, struct takt_err *err)
{
	struct takt_sim_table table = takt_timed_table(experiment);
	struct takt_sim_meta meta = takt_simulate_meta(simulate, "timed");
	struct takt_str *out = &simulate->cli->out;
	int rc;

	takt_simulate_pods_meta(pods, &meta);
	rc = takt_simulate_results(simulate, &table, &meta, pods->baseline, err);
	if (rc < 0 || simulate->cli->json)
		return rc;
	for (size_t l = 0; l < table.load_count; l++) {
		const struct takt_timed_result *first =
			&experiment->results[l * experiment->seed_count];

		takt_str_addf(out, "%s%llu pods a run: the trace%s", l ? "\n" : "",
			      (unsigned long long)first->jobs,
			      simulate->load_count ? "" : " as it is");
		if (simulate->load_count)
			takt_str_addf(out, " %llu times over, for a load of %u %%",
				      (unsigned long long)first->copies, simulate->loads[l]);
		takt_str_addf(out, "; %zu seeds\n", experiment->seed_count);
		takt_simulate_print_table(simulate->cli, &table, l, pods->baseline);
	}
	return rc;
}

static int run_experiment(struct takt_simulate *simulate, struct takt_simulate_pods *pods,
			  const struct takt_timed_world *world, struct takt_err *err)
{
	struct takt_timed_experiment experiment;
	struct takt_timed_experiment_config config = {
		.world = world,
		.placements = &pods->placements,
		.params = pods->params,
		.param_count = simulate->param_count,
		.load_count = simulate->load_count,
		.first_seed = simulate->first_seed,
		.last_seed = simulate->last_seed,
		.threads = simulate->threads,
		.progress = takt_simulate_progress,
		.progress_ctx = simulate,
	};
	int rc;

	memcpy(config.loads, simulate->loads, sizeof(simulate->loads));
	rc = takt_timed_experiment(&config, &experiment, err);
	takt_simulate_progress_end(simulate);
	if (rc < 0)
		return rc;
	rc = show(simulate, &experiment, pods, err);
	takt_timed_experiment_fini(&experiment);
	return rc;
}

int takt_simulate_timed(struct takt_simulate *simulate, struct takt_err *err)
{
	struct takt_simulate_pods pods;
	struct takt_timed_world world;
	int rc = takt_simulate_pods_load(simulate, &pods, err);

	if (rc < 0)
		return rc;
	world = (struct takt_timed_world){.cluster = &pods.cluster,
					  .work = &pods.work,
					  .classes = &pods.classes,
					  .typical = &pods.typical};
	rc = takt_simulate_seeds(simulate, 1, 5, err);
	rc = rc < 0 ? rc : takt_simulate_loads(simulate, NULL, err);
	rc = rc < 0 ? rc : takt_timed_prepare(&world, err);
	rc = rc < 0 ? rc : run_experiment(simulate, &pods, &world, err);
	takt_simulate_pods_fini(&pods);
	return rc;
}
