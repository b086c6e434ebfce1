// SPDX-License-Identifier: Apache-2.0
// GPUs that are kept for somebody: a calendar of them, what one may book oneself, and what waits for an administrator's word.
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, get, post, words_of } from "../api";
import { clock_time, duration, gpu_set, plural, short } from "../format";
import { GAP, Ground, GpuRow, LEFT, ROW, fitting } from "../gpu_rows";
import { may_write, pause, useLive } from "../live";
import { amend, usePlace } from "../route";
import type { Booking, Orders, Reservation } from "../types";
import { Ask, Empty, Problem, State, Waiting, useAsked, useNow, useTrial, useWidth } from "../ui";

const HEAD = 38;
const HOUR_MS = 3600_000;
const ASK_AGAIN_MS = 3000;

interface Wish {
  gpus: number[];
  from: string;
  until: string;
  reason: string;
  /** Administrators: for whom. */
  whom: "me" | "user" | "tenant" | "maintenance";
  name: string;
}

/** As an input of kind datetime-local has it. */
function local_text(at_ms: number): string {
  const at = new Date(at_ms);
  return new Date(at_ms - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const day_of = (at_ms: number) => new Date(at_ms).setHours(0, 0, 0, 0);

/** Days are not all of 24 hours. */
function days_later(day_ms: number, days: number): number {
  const at = new Date(day_ms);
  return new Date(at.getFullYear(), at.getMonth(), at.getDate() + days).getTime();
}

/** In words where it is whole: "12 hours", "14 days". */
function span(ms: number): string {
  if (ms % (24 * HOUR_MS) === 0) return plural(ms / 24 / HOUR_MS, "day");
  return ms % HOUR_MS === 0 ? plural(ms / HOUR_MS, "hour") : duration(ms);
}

const hours = (gpu_ms: number) => `${short(Math.floor(gpu_ms / HOUR_MS * 10) / 10)} GPU hours`;

export const holder = (at: Reservation) => (at.tenant ? `tenant ${at.tenant}` : at.user ?? "maintenance");

const is_in_force = (at: Reservation) => at.state === "granted" || at.state === "waiting";

function kind_of(at: Reservation): string {
  if (at.state === "waiting") return "next";
  if (!at.user && !at.tenant) return "bad";
  return at.mine ? "now" : "past";
}

/** One change of GPUs is written at a time; who comes second tries again. */
async function order(path: string, body: unknown): Promise<Orders> {
  for (let tries = 5; ; tries--) {
    try {
      return await post<Orders>(path, body);
    } catch (refusal) {
      if (!(refusal instanceof Refused) || refusal.error_name !== "BUSY" || tries === 0) throw refusal;
      await pause(300);
    }
  }
}

export function Reservations() {
  const { account } = useLive();
  const { query } = usePlace();
  const [changed, set_changed] = useState(0);
  const [wish, set_wish] = useState<Wish>(first_wish);
  const { value, problem } = useAsked((signal) => get<Orders>("/v1/gpus", signal), [changed], ASK_AGAIN_MS);
  if (!value) return problem ? <Problem what={problem} /> : <Waiting what="the reservations" rows={9} />;
  const may = may_write() && (account ? account.admin || !!value.booking?.may : true);
  const chosen = Number(query.get("id")) || undefined;
  const done = () => set_changed(changed + 1);
  return (
    <>
      <Calendar orders={value} wish={may ? wish : undefined} choose={set_wish} chosen={chosen} />
      {may ? (
        <Book orders={value} wish={wish} change={set_wish} done={done} />
      ) : (
        <p class="soft">
          {may_write()
            ? "Administrators reserve GPUs here; no rule of tenants_file lets you (reserve_gpu_hours)."
            : "Your token may look, not act: one made with --write reserves, where a rule lets you."}
        </p>
      )}
      <List orders={value} chosen={chosen} done={done} />
    </>
  );
}

function first_wish(): Wish {
  const from = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
  return { gpus: [], from: local_text(from), until: local_text(from + HOUR_MS), reason: "", whom: "me", name: "" };
}

/** Part of the calendar that is being marked: from one moment and row to another. */
interface Mark {
  at: number;
  to: number;
  row: number;
  to_row: number;
}

function Calendar(props: { orders: Orders; wish?: Wish; choose: (wish: Wish) => void; chosen?: number }) {
  const { orders, wish, choose, chosen } = props;
  const now = useNow(30_000);
  const [box, width] = useWidth<HTMLDivElement>();
  const [moved, set_moved] = useState(0);
  const [mark, set_mark] = useState<Mark>();
  const days = width < 700 ? 2 : 7;
  const first = days_later(day_of(now), moved * days);
  const last = days_later(first, days);
  const room = Math.max(width - LEFT, 50);
  const x = (at: number) => LEFT + ((at - first) / (last - first)) * room;
  const y = (row: number) => HEAD + row * (ROW + GAP);
  const height = y(orders.gpus) + 2;
  const place = (event: PointerEvent) => {
    const at = first + ((event.offsetX - LEFT) / room) * (last - first);
    const row = Math.min(Math.max(Math.floor((event.offsetY - HEAD) / (ROW + GAP)), 0), orders.gpus - 1);
    return { at: Math.min(Math.max(at, first), last), row };
  };
  const take = (what: Mark) => {
    const from = Math.floor(Math.min(what.at, what.to) / HOUR_MS) * HOUR_MS;
    const until = Math.max(Math.ceil(Math.max(what.at, what.to) / HOUR_MS) * HOUR_MS, from + HOUR_MS);
    const rows = [Math.min(what.row, what.to_row), Math.max(what.row, what.to_row)];
    const gpus = Array.from({ length: rows[1] - rows[0] + 1 }, (_, i) => rows[0] + i);
    choose({ ...wish!, gpus, from: local_text(Math.max(from, Math.floor(now / 60_000) * 60_000)), until: local_text(until) });
  };
  const seen = orders.reservations.filter((at) => at.until_ms > first && at.from_ms < last && at.state !== "refused");
  return (
    <>
      <div class="toolbar">
        <h1>Reservations</h1>
        <div class="tabs" role="group" aria-label="which days">
          <button onClick={() => set_moved(moved - 1)} aria-label="earlier days">
            ←
          </button>
          <button aria-pressed={moved === 0} onClick={() => set_moved(0)}>
            Today
          </button>
          <button onClick={() => set_moved(moved + 1)} aria-label="later days">
            →
          </button>
        </div>
        <span class="soft keys">
          <span class="sample now" /> yours <span class="sample past" /> others' <span class="sample next" /> waits for an answer{" "}
          <span class="sample bad" /> maintenance
        </span>
      </div>
      <div
        class={`timeline calendar ${wish ? "" : "fixed"}`}
        ref={box}
        role="group"
        aria-label="calendar of the GPUs"
        onPointerDown={(event) => {
          if (!wish || (event.target as Element).closest("a")) return;
          const { at, row } = place(event);
          event.currentTarget.setPointerCapture(event.pointerId);
          set_mark({ at, to: at, row, to_row: row });
        }}
        onPointerMove={(event) => {
          if (!mark) return;
          const { at, row } = place(event);
          set_mark({ ...mark, to: at, to_row: row });
        }}
        onPointerUp={() => {
          if (mark) take(mark);
          set_mark(undefined);
        }}
        onPointerCancel={() => set_mark(undefined)}
      >
        {width > 0 && (
          <svg width={width} height={height}>
            <Ground room={room} height={height} />
            {Array.from({ length: orders.gpus }, (_, row) => (
              <GpuRow key={row} gpu={row} y={y(row)} room={room} />
            ))}
            {Array.from({ length: days }, (_, i) => (
              <Day key={i} at={days_later(first, i)} until={days_later(first, i + 1)} x={x} height={height} />
            ))}
            <g clip-path="url(#inside)">
              {wish?.gpus.map((row) => (
                <rect key={row} class="wish" x={x(Date.parse(wish.from))} y={y(row) + 1} height={ROW - 2} rx="3"
                  width={Math.max(x(Date.parse(wish.until)) - x(Date.parse(wish.from)), 2) || 0} />
              ))}
              {seen.flatMap((at) =>
                at.gpus.map((row) => (
                  <Held key={`${at.id}.${row}`} at={at} x={Math.max(x(at.from_ms), LEFT)} until={x(at.until_ms)} y={y(row)} chosen={at.id === chosen} />
                )),
              )}
              {mark && (
                <rect class="wish" x={Math.min(x(mark.at), x(mark.to))} y={y(Math.min(mark.row, mark.to_row))} rx="3"
                  width={Math.abs(x(mark.to) - x(mark.at))} height={(Math.abs(mark.to_row - mark.row) + 1) * (ROW + GAP) - GAP} />
              )}
              <line class="now" x1={x(now)} x2={x(now)} y1={HEAD - 6} y2={height} />
            </g>
          </svg>
        )}
      </div>
    </>
  );
}

function Day({ at, until, x, height }: { at: number; until: number; x: (at: number) => number; height: number }) {
  const wide = x(until) - x(at);
  const marks = wide > 130 ? [6, 12, 18] : [];
  return (
    <g>
      <line class="tick day" x1={x(at)} x2={x(at)} y1={4} y2={height} />
      <text class="lanes" x={x(at) + 5} y={14}>
        {new Date(at).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: wide > 90 ? "short" : undefined })}
      </text>
      {marks.map((hour) => (
        <g key={hour}>
          <line class="tick" x1={x(at + hour * HOUR_MS)} x2={x(at + hour * HOUR_MS)} y1={HEAD - 6} y2={height} />
          <text class="time" x={x(at + hour * HOUR_MS)} y={HEAD - 9} text-anchor="middle">
            {String(hour).padStart(2, "0")}
          </text>
        </g>
      ))}
    </g>
  );
}

function Held(props: { at: Reservation; x: number; until: number; y: number; chosen: boolean }) {
  const { at, x, until, y, chosen } = props;
  const width = Math.max(until - x, 2);
  const label = holder(at);
  const shown = fitting(label, width);
  return (
    <a
      href={`#/reservations?id=${at.id}`}
      class={`bar ${kind_of(at)} ${chosen ? "chosen" : ""}`}
      aria-label={`reservation ${at.id}, ${label}, ${at.state}, from ${clock_time(at.from_ms)} to ${clock_time(at.until_ms)}`}
      onDragStart={(event) => event.preventDefault()}
      onClick={(event) => {
        event.preventDefault();
        amend({ id: chosen ? undefined : String(at.id) });
      }}
    >
      <rect x={x} y={y} width={width} height={ROW} rx="3" />
      {shown && (
        <text x={x + 6} y={y + 17}>
          {shown}
        </text>
      )}
    </a>
  );
}

/** What is asked for; undefined while something is missing. */
function body_of(wish: Wish, admin: boolean, user?: string): Record<string, unknown> | undefined {
  const from_ms = Date.parse(wish.from);
  const until_ms = Date.parse(wish.until);
  const named = wish.whom === "user" || wish.whom === "tenant";
  if (!wish.gpus.length || !(until_ms > from_ms) || (admin && named && !wish.name)) return undefined;
  const whom = !admin || wish.whom === "maintenance" ? {} : wish.whom === "me" ? { user } : { [wish.whom]: wish.name };
  return { gpus: [...wish.gpus].sort((a, b) => a - b), from_ms, until_ms, ...(wish.reason && { reason: wish.reason }), ...whom };
}

function Book(props: { orders: Orders; wish: Wish; change: (wish: Wish) => void; done: () => void }) {
  const { orders, wish, change, done } = props;
  const { account } = useLive();
  const admin = account?.admin ?? true;
  const user = account?.user;
  const body = body_of(wish, admin, user);
  const word = useTrial(
    body,
    async (body) => ({ text: words_of_preview(await order("/v1/gpus/reserve", { ...body, preview: true }), wish) }),
    orders.reservations.length,
  );
  const [problem, set_problem] = useState<string>();
  useEffect(() => set_problem(undefined), [JSON.stringify(body), orders.reservations.length]);
  const reserve = async (event: Event) => {
    event.preventDefault();
    try {
      const { reservations } = await order("/v1/gpus/reserve", body);
      amend({ id: String(Math.max(...reservations.map((at) => at.id))) });
      change({ ...wish, gpus: [], reason: "" });
      done();
    } catch (refusal) {
      set_problem(words_of(refusal));
    }
  };
  const field = (name: "from" | "until" | "reason" | "name") => ({
    id: `wish-${name}`,
    value: wish[name],
    onInput: (event: Event) => change({ ...wish, [name]: (event.currentTarget as HTMLInputElement).value }),
  });
  const toggle = (gpu: number) => change({ ...wish, gpus: wish.gpus.includes(gpu) ? wish.gpus.filter((one) => one !== gpu) : [...wish.gpus, gpu] });
  return (
    <form class="panel submit book" aria-label="reserve GPUs" onSubmit={reserve}>
      <h2>Reserve GPUs</h2>
      {orders.booking && <Rule booking={orders.booking} />}
      <fieldset class="gpus">
        <legend>GPUs</legend>
        {Array.from({ length: orders.gpus }, (_, gpu) => (
          <label key={gpu} class="check">
            <input type="checkbox" checked={wish.gpus.includes(gpu)} onChange={() => toggle(gpu)} /> GPU {gpu}
          </label>
        ))}
      </fieldset>
      <div class="row">
        <div>
          <label for="wish-from">From</label>
          <input {...field("from")} type="datetime-local" required />
        </div>
        <div>
          <label for="wish-until">Until</label>
          <input {...field("until")} type="datetime-local" required />
        </div>
        {admin && (
          <div>
            <label for="wish-whom">For</label>
            <select id="wish-whom" value={wish.whom} onChange={(event) => change({ ...wish, whom: event.currentTarget.value as Wish["whom"] })}>
              <option value="me">me</option>
              <option value="user">a user</option>
              <option value="tenant">a tenant</option>
              <option value="maintenance">maintenance</option>
            </select>
          </div>
        )}
        {admin && (wish.whom === "user" || wish.whom === "tenant") && (
          <div>
            <label for="wish-name">Name of the {wish.whom}</label>
            <input {...field("name")} required spellcheck={false} />
          </div>
        )}
        <div>
          <label for="wish-reason">What for</label>
          <input {...field("reason")} maxLength={150} />
        </div>
      </div>
      <p class={`trial ${word?.bad ? "bad" : ""}`} role="status">
        {word?.text ?? (wish.gpus.length ? "The end has to be after the start." : "Mark a time in the calendar, or choose GPUs here.")}
      </p>
      {problem && <Problem what={problem} />}
      <div class="buttons">
        <button class="main" disabled={!body}>
          Reserve
        </button>
      </div>
    </form>
  );
}

function words_of_preview({ booking }: Orders, wish: Wish): string {
  const gpu_ms = (Date.parse(wish.until) - Date.parse(wish.from)) * wish.gpus.length;
  const size = `${plural(wish.gpus.length, "GPU")} for ${span(Date.parse(wish.until) - Date.parse(wish.from))}: ${hours(gpu_ms)}.`;
  return `${size} ${booking?.approval ? "It would wait for an administrator's answer." : "It would be granted at once."}`;
}

function Rule({ booking }: { booking: Booking }) {
  return (
    <p class="soft">
      You may reserve {hours(booking.week_gpu_ms)} in any seven days ({booking.rule}); <strong>{hours(booking.left_gpu_ms)}</strong> are left in the
      next seven. {span(booking.longest_ms)} at a time, {span(booking.ahead_ms)} ahead.
      {booking.approval && " An administrator has to approve."}
    </p>
  );
}

type Act = { what: "release" | "approve" | "refuse"; at: Reservation };

function List({ orders, chosen, done }: { orders: Orders; chosen?: number; done: () => void }) {
  const now = useNow(10_000);
  const { account } = useLive();
  const admin = account?.admin ?? true;
  const [act, set_act] = useState<Act>();
  const [problem, set_problem] = useState<string>();
  const rows = orders.reservations.filter((at) => at.until_ms > now && at.state !== "released").sort((a, b) => a.from_ms - b.from_ms || a.id - b.id);
  const waiting = rows.filter((at) => at.state === "waiting").length;
  const ask = async (path: string, body: unknown) => {
    try {
      set_problem(undefined);
      await order(path, body);
    } catch (refusal) {
      set_problem(words_of(refusal));
    }
    done();
  };
  return (
    <section aria-label="list of reservations">
      <div class="toolbar">
        <h2>Now and to come</h2>
        {waiting > 0 && <State of="waiting" text={`${plural(waiting, "booking")} ${waiting === 1 ? "waits" : "wait"} for an answer`} />}
      </div>
      {problem && <Problem what={problem} />}
      {rows.length === 0 ? (
        <Empty title="No GPU is reserved" />
      ) : (
        <div class="scroll">
          <table class="reservations">
            <thead>
              <tr>
                {["", "GPUs", "For", "From", "Until", "State", "What for"].map((title) => (
                  <th key={title} scope="col">
                    {title || <span class="hidden">number</span>}
                  </th>
                ))}
                <th scope="col">
                  <span class="hidden">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((at) => (
                <tr key={at.id} class={at.id === chosen ? "chosen" : ""}>
                  <td>{at.id}</td>
                  <td>{gpu_set(at.gpus)}</td>
                  <td>{at.mine ? <strong>{holder(at)}</strong> : holder(at)}</td>
                  <td>{clock_time(at.from_ms)}</td>
                  <td>{clock_time(at.until_ms)}</td>
                  <td>
                    <State of={at.state} text={at.state === "waiting" ? "waits for an answer" : at.state} />
                    {at.decided_by && <span class="soft"> by {at.decided_by}</span>}
                  </td>
                  <td class="what">
                    {at.reason}
                    {at.answer && <span class="soft"> {at.answer}</span>}
                  </td>
                  <td class="acts">
                    {may_write() && admin && at.state === "waiting" && (
                      <>
                        <button onClick={() => ask("/v1/gpus/approve", { id: at.id })} aria-label={`approve reservation ${at.id}`}>
                          Approve
                        </button>
                        <button onClick={() => set_act({ what: "refuse", at })} aria-label={`refuse reservation ${at.id}`}>
                          Refuse…
                        </button>
                      </>
                    )}
                    {may_write() && (admin || (at.booked && at.mine)) && is_in_force(at) && (
                      <button class="grave" onClick={() => set_act({ what: "release", at })} aria-label={`cancel reservation ${at.id}`}>
                        Cancel…
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {act && (
        <Sure
          act={act}
          done={(why) => {
            set_act(undefined);
            if (why !== undefined) void ask(`/v1/gpus/${act.what}`, act.what === "refuse" ? { id: act.at.id, reason: why } : { id: act.at.id });
          }}
        />
      )}
    </section>
  );
}

function Sure({ act, done }: { act: Act; done: (why?: string) => void }) {
  const why = useRef<HTMLInputElement>(null);
  const { at } = act;
  const refuse = act.what === "refuse";
  return (
    <Ask
      title={`${refuse ? "Refuse" : "Cancel"} reservation ${at.id}?`}
      yes={refuse ? "Refuse it" : "Cancel it"}
      done={(yes) => done(yes ? why.current?.value || "no reason was given" : undefined)}
    >
      <p>
        GPU {gpu_set(at.gpus)} for {holder(at)}, {clock_time(at.from_ms)} to {clock_time(at.until_ms)}.
      </p>
      {refuse ? (
        <>
          <label for="why">Why; {holder(at)} reads it</label>
          <input id="why" ref={why} maxLength={150} />
        </>
      ) : (
        <p class="soft">{at.booked && at.from_ms < Date.now() ? "What was used of it goes on counting." : "Its GPUs are free at that time again."}</p>
      )}
    </Ask>
  );
}
