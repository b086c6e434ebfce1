// SPDX-License-Identifier: Apache-2.0
// Hands in a job; while it is being written takt says whether it would start, where and when.
import { useState } from "preact/hooks";
import { post, words_of } from "../api";
import { clock_time, duration, from_now, gpu_set, plural } from "../format";
import { FIRST, GROUPS, description, emptied, filled, type Field, type Form, type Group } from "../job_form";
import { may_write } from "../live";
import { go } from "../route";
import type { Job, Start, Trial } from "../types";
import { Empty, Problem, useTrial, type Word } from "../ui";

const CWD = "takt-cwd";

export function Submit() {
  const [form, set_form] = useState<Form>(() => ({ ...emptied(), cwd: localStorage.getItem(CWD) ?? "" }));
  const [problem, set_problem] = useState<string>();
  const written = description(form);
  const body = "body" in written ? written.body : undefined;
  const ready = !!body && form.command.trim() !== "" && form.cwd.trim() !== "";
  const word = useTrial(ready ? body : undefined, async (body) => word_of_trial(await post<Trial>("/v1/jobs/try", body)));
  if (!may_write()) return <Empty title="Your token may look, not act">One that may hands in jobs: made with its --write.</Empty>;
  const hand_in = async (event: Event) => {
    event.preventDefault();
    if (!ready) return;
    try {
      const job = await post<Job>("/v1/jobs", body);
      localStorage.setItem(CWD, form.cwd);
      go(`#/jobs/${job.id}`);
    } catch (refusal) {
      set_problem(words_of(refusal));
    }
  };
  const change = (name: string, value: string) => {
    set_form((old) => ({ ...old, [name]: value }));
    set_problem(undefined);
  };
  const said: Word =
    "problem" in written ? { text: written.problem, bad: true } : (word ?? { text: "Whether it would start, where and when, is said here." });
  return (
    <form class="submit" onSubmit={hand_in} noValidate>
      <h1>Submit a job</h1>
      <Fields fields={FIRST} form={form} change={change} />
      {GROUPS.map((group) => (
        <More key={group.title} group={group} form={form} change={change} />
      ))}
      <div class="verdict">
        <div class={`trial ${said.bad ? "bad" : ""}`} role="status">
          <p>{said.text}</p>
          {said.more?.map((line) => <p key={line}>{line}</p>)}
        </div>
        {problem && problem !== said.text && <Problem what={problem} />}
        <div class="buttons">
          <button class="main" disabled={!ready}>
            Submit
          </button>
        </div>
      </div>
    </form>
  );
}

type Change = (name: string, value: string) => void;

function More({ group, form, change }: { group: Group; form: Form; change: Change }) {
  const count = filled(group.fields, form);
  return (
    <details class="group">
      <summary>
        {group.title}
        {count > 0 && <strong> {count} set</strong>}
      </summary>
      <Fields fields={group.fields} form={form} change={change} />
    </details>
  );
}

function Fields({ fields, form, change }: { fields: Field[]; form: Form; change: Change }) {
  return (
    <div class="row">
      {fields.map((field) => (
        <div key={field.name} class={field.wide ? "wide" : field.kind === "check" ? "wide check" : ""}>
          <Entry field={field} value={form[field.name]} change={change} />
        </div>
      ))}
    </div>
  );
}

function Entry({ field, value, change }: { field: Field; value: string; change: Change }) {
  const id = `job-${field.name}`;
  const hint = field.hint && `${id}-hint`;
  const on = (event: Event) => change(field.name, (event.currentTarget as HTMLInputElement).value);
  if (field.kind === "check")
    return (
      <label class="check">
        <input type="checkbox" checked={value !== ""} onChange={(event) => change(field.name, event.currentTarget.checked ? "yes" : "")} /> {field.label}
      </label>
    );
  return (
    <>
      <label for={id}>{field.label}</label>
      {field.hint && (
        <span class="soft hint" id={`${id}-hint`}>
          {field.hint}
        </span>
      )}
      {field.kind === "area" ? (
        <textarea id={id} value={value} onInput={on} aria-describedby={hint} rows={field.name === "command" ? 3 : 2} spellcheck={false} placeholder={field.placeholder} />
      ) : field.kind === "choice" ? (
        <select id={id} value={value} onChange={on} aria-describedby={hint}>
          {field.options!.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      ) : field.kind === "when" ? (
        <input id={id} value={value} onInput={on} type="datetime-local" aria-describedby={hint} />
      ) : (
        <input id={id} value={value} onInput={on} aria-describedby={hint} spellcheck={false} autoComplete="off" placeholder={field.placeholder} />
      )}
    </>
  );
}

const RUN_FROM: Record<string, string> = { owner: "as you say", history: "as earlier jobs like it", limit: "at most, its time limit" };

function word_of_trial(trial: Trial): Word {
  const more: string[] = [];
  if (!trial.starts && trial.ahead) more.push(`${plural(trial.ahead, "waiting job")} ${trial.ahead === 1 ? "goes" : "go"} first.`);
  if (trial.run_ms) more.push(`Expected to run ${duration(trial.run_ms)}${trial.run_from && RUN_FROM[trial.run_from] ? `, ${RUN_FROM[trial.run_from]}` : ""}.`);
  for (const run of trial.array && (trial.array.length > 1 || trial.more) ? trial.array : []) {
    const which = run.first === run.last ? `Index ${run.first}` : `Indices ${run.first}-${run.last}`;
    more.push(`${which}: ${run.starts ? `now${run.gpu_list?.length ? ` on GPU ${gpu_set(run.gpu_list)}` : ""}` : `${run.text ?? "wait"}${when(run)}`}`);
  }
  if (trial.more) more.push(`${plural(trial.more, "job")} more after those.`);
  if (trial.starts) return { text: trial.gpu_list.length ? `Would start now on GPU ${gpu_set(trial.gpu_list)}.` : "Would start now.", more };
  return { text: `Would wait: ${trial.text ?? "why is not known"}.${when(trial) || " When it starts cannot be said."}`, more };
}

/** When it is predicted to start, and how sure that is. */
function when(start: Start): string {
  if (!start.starts_ms) return "";
  const range = start.starts_low_ms && start.starts_high_ms ? `; between ${clock_time(start.starts_low_ms)} and ${clock_time(start.starts_high_ms)} in 8 of 10 cases` : "";
  return ` Predicted start ${clock_time(start.starts_ms)}, ${from_now(start.starts_ms, Date.now())}${range}.`;
}
