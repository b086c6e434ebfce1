// SPDX-License-Identifier: Apache-2.0
// What all pages are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { words_of } from "./api";
import { DASH } from "./format";
import type { Gpu } from "./types";

const TRY_MS = 400;

/** How grave a word is; shape and word tell it beside the colour. */
const TONES: Record<string, string> = {
  running: "busy", starting: "busy", assigned: "busy", leased: "busy",
  free: "calm", asleep: "calm", waiting: "calm", clean: "calm", healthy: "calm", info: "calm",
  done: "good",
  stopping: "mild", draining: "mild", outside: "mild", suspect: "mild", warning: "mild", cancelled: "mild",
  interrupted: "mild", refused: "grave", granted: "good", drained: "mild", reserved: "mild", maintenance: "mild", changed: "mild", held: "mild", frozen: "mild", "non-fatal": "mild",
  failed: "grave", lost: "grave", quarantined: "grave", critical: "grave", fatal: "grave",
};
const SIGNS: Record<string, string> = { busy: "●", calm: "○", good: "✓", mild: "▲", grave: "■" };

export function State({ of, title, text }: { of: string; title?: string; text?: string }) {
  const tone = TONES[of] ?? "calm";
  return (
    <span class={`state ${tone}`} title={title}>
      <span aria-hidden="true">{SIGNS[tone]}</span> {text ?? of}
    </span>
  );
}

/** A sentence at the top of a page, as grave as it is. */
export function Banner({ severity = "info", children }: { severity?: string; children: ComponentChildren }) {
  const grave = severity === "warning" || severity === "critical";
  return (
    <p class={`banner ${grave ? severity : "info"}`}>
      {grave && <State of={severity} />} {children}
    </p>
  );
}

/** Whose a GPU is; one that is nobody's may be suspended to save power, and is free all the same. */
export const state_of = (gpu: Gpu) => (gpu.asleep && gpu.state === "free" ? "asleep" : gpu.state);

export function Figure({ label, value, note }: { label: string; value: string; note?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>{value}</dd>
      <dd class="note">{note ?? "\u00a0"}</dd>
    </div>
  );
}

/** A bar with its words beside it; without a value an empty one. */
export function Meter(props: { label: string; value?: number; most?: number; text: string; mark?: number }) {
  const { label, value, most, text, mark } = props;
  const part = (x: number) => Math.max(0, Math.min(100, (100 * x) / most!));
  const known = value !== undefined && !!most;
  return (
    <div class="meter">
      <span class="label">{label}</span>
      <svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect class="rail" width="100" height="6" rx="1" />
        {known && <rect class="fill" width={part(value)} height="6" rx="1" />}
        {known && mark !== undefined && <rect class="mark" x={part(mark) - 0.5} width="1" height="6" />}
      </svg>
      <span class="text">{text}</span>
    </div>
  );
}

const SPARK_GAP_MS = 25_000; // history has a point each 10 s

/** A line without axes that ends now; gaps where nothing was measured. */
export function Spark(props: { points: [at_ms: number, value: number][]; span_ms: number; most: number; label: string }) {
  const { points, span_ms, most, label } = props;
  const room = 300;
  const from_ms = Date.now() - span_ms;
  let path = "";
  points.forEach(([at_ms, value], i) => {
    const joined = i > 0 && at_ms - points[i - 1][0] <= SPARK_GAP_MS;
    path += `${joined ? "L" : "M"}${((room * (at_ms - from_ms)) / span_ms).toFixed(1)} ${(27 - (25 * Math.min(value, most)) / most).toFixed(1)}`;
  });
  return (
    <svg class="spark" viewBox={`0 0 ${room} 28`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="base" d={`M0 27.5H${room}`} />
      <path class="line" d={path} />
    </svg>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

export function Problem({ what, children }: { what: string; children?: ComponentChildren }) {
  return (
    <div class="problem" role="alert">
      <p class="title">{what}</p>
      {children}
    </div>
  );
}

/** Keeps the place of what has not come yet, so that nothing jumps when it does. */
export function Waiting({ what, rows = 6 }: { what: string; rows?: number }) {
  return (
    <div class="waiting" role="status" aria-label={`waiting for ${what}`}>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} />
      ))}
    </div>
  );
}

export function Terms({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="terms">
      {rows
        .filter(([, value]) => value !== undefined && value !== DASH && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function useWidth<T extends Element>(): [{ current: T | null }, number] {
  const ref = useRef<T>(null);
  const [width, set_width] = useState(0);
  const watched = useRef<{ element: T | null; stop: () => void }>({ element: null, stop: () => undefined });
  // After each time it is drawn: what is to be watched may come late, where a placeholder stood.
  useEffect(() => {
    if (watched.current.element === ref.current) return;
    watched.current.stop();
    const watcher = new ResizeObserver(([entry]) => set_width(Math.floor(entry.contentRect.width)));
    if (ref.current) watcher.observe(ref.current);
    watched.current = { element: ref.current, stop: () => watcher.disconnect() };
  });
  useEffect(() => () => watched.current.stop(), []);
  return [ref, width];
}

export function useNow(every_ms = 1000): number {
  const [now, set_now] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set_now(Date.now()), every_ms);
    return () => clearInterval(timer);
  }, [every_ms]);
  return now;
}

/** Asks again whenever `keys` change and every `every_ms`; what came last stays while it does. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, keys: unknown[], every_ms = 0) {
  const [answer, set_answer] = useState<{ value?: T; problem?: string; error?: unknown }>({});
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const once = async () => {
      try {
        const value = await ask(stop.signal);
        if (!stop.signal.aborted) set_answer({ value });
      } catch (error) {
        if (!stop.signal.aborted) set_answer((old) => ({ ...old, problem: words_of(error), error }));
      }
      if (every_ms && !stop.signal.aborted) timer = window.setTimeout(once, every_ms);
    };
    void once();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [...keys, every_ms]);
  return answer;
}

/** What is said of something that is being written. */
export interface Word {
  text: string;
  more?: string[];
  bad?: boolean;
}

/** takt's word on `body` once that has not changed for a moment, and again when `key` does; why not, where it refuses. */
export function useTrial<T>(body: T | undefined, ask: (body: T) => Promise<Word>, key: unknown = 0): Word | undefined {
  const [word, set_word] = useState<Word>();
  useEffect(() => {
    if (!body) return set_word(undefined);
    let old = false;
    const timer = setTimeout(async () => {
      const said = await ask(body).catch((refusal): Word => ({ text: words_of(refusal), bad: true }));
      if (!old) set_word(said);
    }, TRY_MS);
    return () => {
      old = true;
      clearTimeout(timer);
    };
  }, [JSON.stringify(body), key]);
  return word;
}

/** A question in front of everything; Escape means no. */
export function Ask(props: { title: string; yes: string; children: ComponentChildren; done: (yes: boolean) => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => ref.current?.showModal(), []); // before it is painted: Escape counts as soon as it is seen
  return (
    <dialog ref={ref} aria-label={props.title} onClose={() => props.done(ref.current?.returnValue === "yes")}>
      <form method="dialog">
        <h2>{props.title}</h2>
        {props.children}
        <div class="buttons">
          <button value="no">Back</button>
          <button value="yes" class="main">
            {props.yes}
          </button>
        </div>
      </form>
    </dialog>
  );
}
