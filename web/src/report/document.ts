// SPDX-License-Identifier: Apache-2.0
// What takt's programs write with --json; a page holds one of these. null: not known.

interface Made {
  takt: string;
  commit: string;
  command: string;
  simulated: boolean;
}

interface Source {
  source: string;
  sha256: string | null;
}

interface Experiment extends Made {
  format: "takt-simulation";
  cluster: Source & { nodes: number; gpus: number };
  trace: Source & { jobs: number };
  seeds: { first: number; last: number; count: number };
  options: Record<string, string>;
}

export interface Packing extends Experiment {
  protocol: "fgd";
  bound: string;
  results: Packed[];
}

export interface Packed {
  placement: string;
  load_pct: number;
  arrived_pct: number | null;
  allocation_pct: number | null;
  ci95: number | null;
  bound_pct: number | null;
  fragment_pct: number | null;
  fragment_ratio_pct: number | null;
  against?: { placement: string; difference_pct: number | null; ci95: number | null };
  classes: { class: string; arrived: number; placed: number; accepted_pct: number }[];
}

export interface Measure {
  name: string;
  unit: string;
  title: string;
  decimals: number;
}

/** Policies by loads: the figures stand under the names of the measures. */
export interface Comparison extends Experiment {
  protocol: "queue" | "timed";
  compared: "queue" | "placement";
  baseline: string;
  measures: Measure[];
  results: Result[];
}

export interface Result {
  [figure: string]: unknown;
  load_pct?: number;
  jct_percentiles_s?: number[];
  wait_percentiles_s?: number[];
  against?: Record<string, unknown>;
}

export interface Clocks extends Experiment {
  protocol: "clocks";
  scores: Score[];
}

export interface Score {
  dataset: string;
  gpu: string;
  actuator: string;
  governor: string;
  /** Of one setting for all work; null: a governor. */
  setting: number | null;
  trained: boolean;
  max_slowdown_pct: number;
  epochs: number;
  time_noise_pct: number;
  power_noise_pct: number;
  share_of_optimum_pct: number | null;
  share_of_optimum_half95: number | null;
  worst_workload_share_pct: number | null;
  worst_workload: string | null;
  energy_saved_pct: number | null;
  energy_saved_half95: number | null;
  optimum_saved_pct: number | null;
  slowdown_mean_pct: number | null;
  slowdown_p95_pct: number | null;
  slowdown_max_pct: number | null;
  runs: number;
  violating_jobs: number;
  violating_epochs_pct: number | null;
  overhead_pct: number | null;
  workloads: { workload: string; share_of_optimum_pct: number | null }[];
}

export interface Tune extends Made {
  format: "takt-tune";
  gpu?: string;
  gpus: number;
  repeats: number;
  seed: number;
  max_slowdown_pct: number;
  unit: string;
  advice?: string;
  events_not_watched?: string;
  stopped?: string;
  points: TunePoint[];
  recommended?: Setting;
}

export interface Setting {
  sm_mhz: number;
  power_limit_w?: number;
  slowdown_pct?: number;
  slowdown_error_pct?: number;
  saved_pct?: number;
  saved_error_pct?: number;
}

export interface TunePoint extends Setting {
  runs: number;
  measured_sm_mhz?: number;
  performance?: number;
  performance_error?: number;
  power_w?: number;
  power_error_w?: number;
  energy_j?: number;
  energy_error_j?: number;
  pareto: boolean;
}

export interface Usage extends Made {
  format: "takt-usage";
  by: "user" | "name" | "tenant" | "day";
  /** 0: no bound */
  since_ms: number;
  until_ms: number;
  made_ms: number;
  price?: number;
  groups: Group[];
  total: Group;
}

/** What is absent was not measured of any of its jobs. */
export interface Group {
  key: string;
  jobs: number;
  not_done: number;
  gpu_jobs: number;
  gpu_hours: number;
  util_jobs: number;
  energy_jobs: number;
  governed_jobs: number;
  saved_jobs: number;
  used_pct?: number;
  idle_gpu_hours?: number;
  energy_kwh?: number;
  saved_kwh?: number;
  saved_error_kwh?: number;
  cost?: number;
}

export interface Forecast extends Made {
  format: "takt-forecast";
  series: string;
  unit: string;
  steps: number;
  step_s: number;
  horizon_s: number;
  held_out: number;
  chosen_by: "load" | "error";
  threshold: number | null;
  watts: number | null;
  chosen: string;
  forecasters: Forecaster[];
  governed?: { by: string; energy_wh: number; missed_load_pct: number; mean_mhz: number }[];
  forecast: { at_s: number; value: number | null; within_p90: number | null };
  newest: { steps: number; was: (number | null)[]; said: (number | null)[] };
}

export interface Forecaster {
  name: string;
  why_not?: string;
  tested?: number;
  mae?: number | null;
  p90?: number | null;
  missed?: number;
  missed_load_pct?: number | null;
  needless?: number;
  wasted_wh?: number | null;
}

export type Document = Packing | Comparison | Clocks | Tune | Usage | Forecast;
