// SPDX-License-Identifier: Apache-2.0
// What the API answers (docs/api.md, src/codec/views.h): what is not known is not there.

export interface Process {
  pid: number;
  user?: string;
  command?: string;
  job_id?: number;
  memory_bytes?: number;
}

export interface Share {
  job_id: number;
  name?: string;
  user?: string;
  milli?: number;
  mem_mib?: number;
}

export interface Gpu {
  index: number;
  uuid?: string;
  name?: string;
  pci_bus_id?: string;
  state: string;
  note?: string;
  clock_state?: string;
  clock_note?: string;
  health?: string;
  health_note?: string;
  severity?: string;
  stale?: boolean;
  lost?: boolean;
  asleep?: boolean;
  sm_mhz?: number;
  mem_mhz?: number;
  sm_max_mhz?: number;
  lease_max_mhz?: number;
  power_mw?: number;
  power_limit_mw?: number;
  power_cap_mw?: number;
  temp_c?: number;
  numa_node?: number;
  gpu_util_pct?: number;
  mem_util_pct?: number;
  fan_pct?: number;
  nvlinks?: number;
  nvlinks_up?: number;
  pcie_gen?: number;
  pcie_width?: number;
  pcie_sent_bytes_per_s?: number;
  pcie_received_bytes_per_s?: number;
  nvlink_sent_bytes_per_s?: number;
  nvlink_received_bytes_per_s?: number;
  mem_used_bytes?: number;
  mem_total_bytes?: number;
  energy_mj?: number;
  throttle_text?: string;
  job_id?: number;
  kept_for_job?: number;
  job_name?: string;
  job_user?: string;
  procs?: Process[];
  shares?: Share[];
}

export interface Status {
  hostname?: string;
  driver_version?: string;
  takt_version?: string;
  simulated: boolean;
  manages: boolean;
  observe_why?: string;
  uptime_ms?: number;
  waiting: number;
  running: number;
  notes?: string[];
  note_severity?: string[];
  gpus: Gpu[];
}

export interface Report {
  wall_ms?: number;
  energy_mj?: number;
  energy_why_not?: string;
  mean_sm_mhz?: number;
  sm_spread_mhz?: number;
  throttled_ms?: number;
  throttle_text?: string;
  peak_memory_bytes?: number;
  mean_util_permille?: number;
  idle_ms?: number;
  gap_driver_us?: number;
  gap_scheduler_us?: number;
  gap_start_us?: number;
  governor?: string;
  governed_mj?: number;
  highest_mj?: number;
  highest_error_permille?: number;
  slowdown_permille?: number;
  slowdown_error_permille?: number;
  work_signal?: string;
}

export interface Governed {
  state?: string;
  note?: string;
  text?: string;
  max_slowdown_permille?: number;
  max_mhz?: number;
}

export interface Progress {
  steps?: number;
  tokens?: number;
  queries?: number;
  latency_us?: number;
  steps_milli_s?: number;
  tokens_milli_s?: number;
  queries_milli_s?: number;
  ranks?: number;
  slowest_rank?: number;
  skew_permille?: number;
}

export interface Job {
  id: number;
  name?: string;
  user?: string;
  state: string;
  gpus: number;
  priority: number;
  mine: boolean;
  uid?: number;
  command?: string;
  cwd?: string;
  attempt?: number;
  gpu_list: number[];
  submitted_ms?: number;
  started_ms?: number;
  ended_ms?: number;
  exit_code?: number;
  exit_signal?: number;
  message?: string;
  cause?: string;
  cause_text?: string;
  cause_at_ms?: number;
  array_id?: number;
  array_index?: number;
  array_limit?: number;
  retries?: number;
  failures?: number;
  restarts?: number;
  preemptions?: number;
  begin_ms?: number;
  retry_at_ms?: number;
  deadline_ms?: number;
  checkpoint_ms?: number;
  after?: string;
  tags?: string;
  tenant?: string;
  params?: string;
  gpu_milli?: number;
  gpu_indices?: number[];
  mig?: string;
  time_limit_ms?: number;
  max_slowdown_permille?: number;
  run_ms?: number;
  run_error_ms?: number;
  run_from?: string;
  starts_ms?: number;
  starts_low_ms?: number;
  starts_high_ms?: number;
  starts_overdue_ms?: number;
  starts_gpus?: number[];
  frozen?: boolean;
  held?: string;
  why?: string;
  why_text?: string;
  health_note?: string;
  health_severity?: string;
  stray_note?: string;
  clock_note?: string;
  memory_hint?: string;
  report?: Report;
  governed?: Governed;
  progress?: Progress;
}

/** What a job told of its steps at a moment. */
export interface Said {
  at_ms: number;
  steps?: number;
  tokens?: number;
  queries?: number;
  latency_us?: number;
}

export interface Decision {
  at_ms: number;
  until_ms: number;
  reason: string;
  text?: string;
  min_mhz?: number;
  max_mhz?: number;
  epochs: number;
  sm_mhz?: number;
  power_mw?: number;
  work_milli_s?: number;
}

export interface Course {
  id: number;
  governor?: string;
  signal?: string;
  said: Said[];
  decisions: Decision[];
}

export interface Queue {
  jobs: Job[];
  total: number;
  /** Of ended ones: there may be more below this number. */
  next?: number;
}

export interface ClockGpu {
  index: number;
  name?: string;
  clock_state: string;
  severity?: string;
  note?: string;
  sm_mhz?: number;
  list_min_mhz?: number;
  list_max_mhz?: number;
  lease_min_mhz?: number;
  lease_max_mhz?: number;
  mem_mhz?: number;
  lease_job?: number;
  power_limit_mw?: number;
  power_min_mw?: number;
  power_max_mw?: number;
  cap_power_mw?: number;
  cap_why?: string;
}

export interface Clocks {
  gpus: ClockGpu[];
  cpu?: { max_mhz?: number; changed?: boolean; note?: string };
}

export interface Finding {
  finding: string;
  level: string;
  action?: string;
  text?: string;
  since_ms?: number;
  cause?: number;
}

export interface HealthGpu {
  index: number;
  state: string;
  severity?: string;
  since_ms?: number;
  note?: string;
  findings: Finding[];
  actions: string[];
  changes: { at_ms: number; from: string; to: string; why?: string }[];
  xids: { xid: number; count: number; last_ms: number; text?: string }[];
}

/** What the kernel's log says of an NVSwitch. */
export interface Sxid {
  pci: string;
  sxid: number;
  count: number;
  last_ms?: number;
  fatal?: boolean;
  link?: number;
}

export interface Health {
  events_why?: string;
  kernel_log_why?: string;
  gpus: HealthGpu[];
  sxids?: Sxid[];
}

export interface Topology {
  name: string[];
  numa_node: (number | null)[];
  cpu_list: (string | null)[];
  link: string[][];
  best2?: number[];
  best4?: number[];
  free_best2?: number[];
  free_best4?: number[];
}

export interface History {
  unit: string;
  /** 0: every sample. */
  step_ms: number;
  from_ms: number;
  until_ms: number;
  points: [at_ms: number, min: number, mean: number, max: number][];
}

/** When something is predicted to start. */
export interface Start {
  starts_ms?: number;
  starts_low_ms?: number;
  starts_high_ms?: number;
  starts_overdue_ms?: number;
}

/** Jobs of an array of which the same is to be expected. */
export interface TrialRun extends Start {
  first: number;
  last: number;
  starts: boolean;
  gpu_list?: number[];
  text?: string;
}

export interface Trial extends Start {
  starts: boolean;
  gpu_list: number[];
  text?: string;
  ahead?: number;
  run_ms?: number;
  run_from?: string;
  array?: TrialRun[];
  more?: number;
}

/** GPUs that are kept for somebody. */
export interface Reservation {
  id: number;
  gpus: number[];
  uid?: number;
  user?: string;
  tenant?: string;
  from_ms: number;
  until_ms: number;
  reason?: string;
  by?: string;
  booked?: boolean;
  state: string;
  answer?: string;
  decided_by?: string;
  mine?: boolean;
}

/** What whoever asks may reserve himself. */
export interface Booking {
  may: boolean;
  rule?: string;
  approval: boolean;
  week_gpu_ms: number;
  left_gpu_ms: number;
  ahead_ms: number;
  longest_ms: number;
}

/** What administrators have said of GPUs, and what users have booked. */
export interface Orders {
  gpus: number;
  set_aside: { index: number; state: string; reason?: string; by?: string; since_ms?: number }[];
  reservations: Reservation[];
  booking?: Booking;
}

export interface Account {
  user: string;
  uid: number;
  admin: boolean;
  write: boolean;
}
