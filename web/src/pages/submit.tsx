// SPDX-License-Identifier: Apache-2.0
// Hands in a job; while it is being written takt says whether it would start, where and when.
import { useEffect, useState } from "preact/hooks";
import { post, words_of } from "../api";
import { clock_time, from_now, gpu_set } from "../format";
import { PATH, environment_of } from "../jobs";
import { may_write } from "../live";
import { go } from "../route";
import type { Job, Trial } from "../types";
import { Empty, Problem } from "../ui";

interface Form {
  command: string;
  cwd: string;
  name: string;
  gpus: string;
  env: string;
  hours: string;
  slowdown: string;
  tags: string;
  held: boolean;
}

const START: Form = { command: "", cwd: localStorage.getItem("takt-cwd") ?? "", name: "", gpus: "1", env: "", hours: "", slowdown: "", tags: "", held: false };

/** The job's description; what was left empty is left out. */
export function description(form: Form): Record<string, unknown> {
  return {
    argv: ["/bin/sh", "-c", form.command],
    cwd: form.cwd,
    gpus: Number(form.gpus),
    env: environment_of(form.env),
    ...(form.name && { name: form.name }),
    ...(Number(form.hours) > 0 && { time_limit_ms: Math.round(Number(form.hours) * 3600_000) }),
    ...(Number(form.slowdown) > 0 && { max_slowdown_permille: Math.round(Number(form.slowdown) * 10) }),
    ...(form.tags && { tags: form.tags }),
    ...(form.held && { held: true }),
  };
}

export function Submit() {
  const [form, set_form] = useState(START);
  const [problem, set_problem] = useState<string>();
  const [trial, set_trial] = useState<{ words: string; bad: boolean }>();
  const ready = form.command.trim() !== "" && form.cwd.startsWith("/");
  useEffect(() => {
    if (!ready) return set_trial(undefined);
    const timer = setTimeout(async () => {
      try {
        set_trial({ words: words_of_trial(await post<Trial>("/v1/jobs/try", description(form))), bad: false });
      } catch (refusal) {
        set_trial({ words: words_of(refusal), bad: true });
      }
    }, 400);
    return () => clearTimeout(timer);
  }, [form, ready]);
  if (!may_write()) return <Empty title="Your token may look, not act">One that may hands in jobs: made with its --write.</Empty>;
  const hand_in = async (event: Event) => {
    event.preventDefault();
    try {
      const job = await post<Job>("/v1/jobs", description(form));
      localStorage.setItem("takt-cwd", form.cwd);
      go(`#/jobs/${job.id}`);
    } catch (refusal) {
      set_problem(words_of(refusal));
    }
  };
  const field = (name: keyof Form) => ({
    id: `job-${name}`,
    value: form[name] as string,
    onInput: (event: Event) => set_form({ ...form, [name]: (event.currentTarget as HTMLInputElement).value }),
  });
  return (
    <form class="submit" onSubmit={hand_in}>
      <h1>Submit a job</h1>
      <label for="job-command">
        Command <span class="soft">as for a shell</span>
      </label>
      <textarea {...field("command")} rows={3} required spellcheck={false} placeholder="python train.py --lr 3e-4" />
      <label for="job-cwd">Directory</label>
      <input {...field("cwd")} required pattern="/.*" placeholder="/home/you/project" spellcheck={false} />
      <div class="row">
        <div>
          <label for="job-gpus">GPUs</label>
          <input {...field("gpus")} type="number" min="0" max="64" required />
        </div>
        <div>
          <label for="job-name">Name</label>
          <input {...field("name")} pattern="[A-Za-z0-9._\-]*" maxLength={64} placeholder="train" />
        </div>
        <div>
          <label for="job-hours">Time limit, hours</label>
          <input {...field("hours")} type="number" min="0" step="any" placeholder="none" />
        </div>
        <div>
          <label for="job-slowdown">Slower by, %</label>
          <input {...field("slowdown")} type="number" min="0" max="50" step="0.1" placeholder="not" />
        </div>
        <div>
          <label for="job-tags">Tags</label>
          <input {...field("tags")} placeholder="night,big" />
        </div>
      </div>
      <label for="job-env">
        Environment <span class="soft">NAME=value, one a line; {PATH} if you set none</span>
      </label>
      <textarea {...field("env")} rows={3} spellcheck={false} />
      <label class="check">
        <input type="checkbox" checked={form.held} onChange={(event) => set_form({ ...form, held: event.currentTarget.checked })} /> hold it
        until I release it
      </label>
      <p class={`trial ${trial?.bad ? "bad" : ""}`} role="status">
        {trial?.words ?? (form.command && form.cwd && !ready ? "The directory is an absolute path." : "What would become of it is said here.")}
      </p>
      {problem && <Problem what={problem} />}
      <div class="buttons">
        <button class="main" disabled={!ready}>
          Submit
        </button>
      </div>
    </form>
  );
}

function words_of_trial(trial: Trial): string {
  if (trial.starts) return trial.gpu_list.length ? `Would start now on GPU ${gpu_set(trial.gpu_list)}.` : "Would start now.";
  const when = trial.starts_ms ? ` Predicted start ${clock_time(trial.starts_ms)}, ${from_now(trial.starts_ms, Date.now())}.` : "";
  return `Would wait: ${trial.text ?? "why is not known"}.${when}`;
}
