// The live bench: takes the server's events, keeps what the page shows, and shows it.

import { Spans } from "/spans.js";
import { draw, drawAxis, ring } from "/chart.js";
import { t, word, seconds, result, unsaid } from "/words.js";
import { post, element, quote, setText, number } from "/dom.js";

const SHOWN = 60;
const TONES = { lost: "bad", refused: "bad", failed: "bad", gave_up: "bad", dropped: "bad", release: "bad", killed: "bad", store_stopped: "bad", store_forgot: "bad", elected: "good", extended: "good" };

const live = { state: null, events: [], spans: new Spans(), arrived: 0, missed: 0, rows: new Map() };
export default live;

/** Takes in a frame: the state, and what has happened since the last one. */
export function take({ state, events, missed }, anew) {
  if (!state) return;
  if (anew) {
    live.events = [];
    live.spans = new Spans();
    miss(missed);
  }
  for (const event of events) live.spans.add(event);
  if (anew) live.spans.assume(state.candidates, state.now_ms);
  live.spans.believe(state.candidates, state.now_ms);
  live.events = [...live.events, ...events].slice(-SHOWN);
  live.state = state;
  live.arrived = performance.now();
  if (!anew) announce(events);
  render(events.length > 0 || anew);
}

/** How long it is said that something was missed, after the last time. */
const MISSED_MS = 8000;
let forget = null;

function miss(count) {
  live.missed = count;
  clearTimeout(forget);
  if (count > 0) forget = setTimeout(() => { live.missed = 0; render(false); }, MISSED_MS);
}

/** Shows everything; the table only when something has happened. */
export function render(happened = true) {
  if (!live.state) return;
  rows();
  record();
  nodes();
  resource();
  if (happened) table();
  const counted = ["elected", "extended", "skipped", "lost", "released"].map((action) => `${t(`act.${action}`)} ${live.state.counts[action] ?? 0}`);
  setText("counts", counted.join(" · "));
  setText("missed", live.missed > 0 ? t("missed", live.missed) : "");
}

const MARKS = { down: "○", connecting: "⋯", idle: "◦", waiting: "…", leading: "▲", believes: "△", stale: "✕" };

function rows() {
  const place = document.getElementById("rows");
  const { candidates } = live.state;
  const ids = candidates.map((candidate) => candidate.id);
  for (const [id, row] of live.rows) {
    if (!ids.includes(id)) { row.root.remove(); live.rows.delete(id); }
  }
  for (const candidate of candidates) {
    if (!live.rows.has(candidate.id)) {
      const row = makeRow(candidate.id);
      live.rows.set(candidate.id, row);
      place.append(row.root);
    }
    showRow(live.rows.get(candidate.id), candidate);
  }
}

const DEEDS = ["start", "stop", "freeze", "kill", "cut"];

function makeRow(id) {
  const state = element("span", { class: "state", id: `${id}-state` });
  const flags = element("span", { class: "flags", id: `${id}-flags` });
  const strip = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  strip.setAttribute("class", "strip");
  strip.setAttribute("role", "img");
  strip.id = `${id}-strip`;
  const buttons = {};
  const group = element("div", { class: "group", role: "group" });
  for (const deed of DEEDS) {
    const button = element("button", { type: "button", id: `${id}-${deed}` });
    button.addEventListener("click", () => post(`/api/candidates/${id}`, { action: button.dataset.action }));
    buttons[deed] = button;
    group.append(button);
  }
  const name = element("b", {}, id);
  const root = element("div", { class: "row", id: `row-${id}`, "data-candidate": id, role: "group" }, [
    element("div", { class: "who" }, [name, state, flags]), strip, group,
  ]);
  return { root, state, flags, strip, buttons, group };
}

function showRow(row, { id, phase, fence, remaining_ms: remaining, frozen, cut }) {
  const { root, state, flags, strip, buttons, group } = row;
  root.dataset.phase = phase;
  root.dataset.frozen = frozen;
  root.dataset.cut = cut;
  root.setAttribute("aria-label", t("candidate", id));
  group.setAttribute("aria-label", t("deeds", id));
  state.dataset.mark = MARKS[phase];
  const words = t(`phase.${phase}`);
  setText(state, words);
  setText(flags, [frozen && t("flag.frozen"), cut && t("flag.cut")].filter(Boolean).join(", "));
  strip.setAttribute("aria-label", fence ? t("strip", id, words, fence, seconds(remaining)) : t("strip.short", id, words));
  const running = phase !== "down";
  const show = (deed, action, enabled) => {
    const button = buttons[deed];
    button.dataset.action = action;
    const label = t(deed === "start" && running ? "do.again" : `do.${action}`);
    setText(button, label);
    button.setAttribute("aria-label", `${label}: ${t("candidate", id)}`);
    button.disabled = !enabled;
  };
  show("start", "start", !running || (phase === "idle" && !frozen));
  show("stop", "stop", running);
  show("freeze", frozen ? "thaw" : "freeze", running);
  show("kill", "kill", running);
  show("cut", cut ? "mend" : "cut", running);
}

/** Draws the strips as of now, between two frames too. */
export function paint() {
  if (!live.state || document.hidden) return;
  const now = live.state.now_ms + Math.min(performance.now() - live.arrived, 1500);
  // As wide as each strip; nothing, while the other mode is shown.
  const axis = document.getElementById("axis");
  const width = axis.clientWidth;
  if (width === 0) return;
  const span = width < 480 ? 15000 : 30000;
  const pixels = width / span;
  // Ahead of now there is room for what is already known: how long a minimum lease keeps the slot.
  const from = now - span * 0.92;
  for (const [id, { strip }] of live.rows) draw(strip, live.spans.between(id, from, now), from, pixels, width);
  drawAxis(axis, from, now, pixels, width, (ms) => `${ms / 1000} ${t("seconds")}`);
}

function record() {
  const { record, settings, store } = live.state;
  setText("store-kind", t(`store.${store.kind}`));
  document.getElementById("record").dataset.error = record.error ?? "";
  // One element for as long as the page is open: a new one would be read out with each frame.
  const unknown = record.error ? t("store.unknown", word("why", record.error)) : "";
  quote(document.getElementById("record-problem"), unknown, unsaid(record.error, record.message));
  const place = document.getElementById("holders");
  if (record.error) return place.replaceChildren();
  if (record.holders.length === 0) return place.replaceChildren(element("p", {}, t("store.nobody")));
  place.replaceChildren(...record.holders.map((holder) => {
    const { node_id: owner, slot, fence, remaining_ms: remaining, retained } = holder;
    const list = [
      [t("store.name"), document.getElementById("lock-name").textContent], [t("store.owner"), owner], [t("col.fence"), String(fence)],
      [t("col.remaining"), seconds(remaining)],
    ];
    if (settings.slots > 1 || record.holders.length > 1 || slot > 0) list.unshift(["", t("store.slot", slot)]);
    if (retained) list.push(["", t("store.kept")]);
    return element("div", { class: "slot", id: `record-${slot}`, "data-owner": owner, "data-fence": fence, "data-kept": retained }, [
      // Of one that is first seen in its last moment, nobody knows how long it was.
      ring(holder.of_ms ? remaining / holder.of_ms : 0, (remaining / 1000).toFixed(1)),
      element("dl", {}, list.flatMap(([term, what]) => [element("dt", {}, term), element("dd", {}, what)])),
    ]);
  }));
}

function nodes() {
  const { nodes } = live.state.store;
  const place = document.getElementById("nodes");
  const stopped = nodes.every((node) => node.stopped);
  const button = document.getElementById("store-stop");
  button.dataset.action = stopped ? "start" : "stop";
  setText(button, t(`store.${button.dataset.action}`));
  if (nodes.length === 1) return place.replaceChildren();
  if (place.children.length !== nodes.length) {
    place.replaceChildren(...nodes.map((_, node) => {
      const stop = element("button", { type: "button", id: `node-${node}-stop` });
      stop.addEventListener("click", () => post("/api/store", { action: stop.dataset.action, node }));
      const forget = element("button", { type: "button", id: `node-${node}-forget` });
      forget.addEventListener("click", () => post("/api/store", { action: "forget", node }));
      return element("div", { class: "node", id: `node-${node}` }, [element("b", {}), element("span", {}), stop, forget]);
    }));
  }
  nodes.forEach(({ stopped }, node) => {
    const [name, how, stop, forget] = place.children[node].children;
    place.children[node].dataset.stopped = stopped;
    setText(name, t("store.node", node + 1));
    setText(how, t(stopped ? "store.down" : "store.up"));
    stop.dataset.action = stopped ? "start" : "stop";
    setText(stop, t(`node.${stop.dataset.action}`));
    stop.setAttribute("aria-label", `${stop.textContent}: ${name.textContent}`);
    setText(forget, t("node.forget"));
    forget.setAttribute("aria-label", `${forget.textContent}: ${name.textContent}`);
  });
}

function resource() {
  const { slots, writes, accepted, refused } = live.state.resource;
  const terms = slots.flatMap(({ seen, by }, slot) => [
    element("dt", {}, slots.length > 1 ? `${t("resource.seen")}, ${t("store.slot", slot)}` : t("resource.seen")),
    element("dd", { id: `seen-${slot}`, class: "number", "data-seen": seen ?? "" }, seen ? `${seen} (${by})` : t("resource.none")),
  ]);
  terms.push(element("dt", {}, t("resource.counts")), element("dd", { id: "write-counts", "data-accepted": accepted, "data-refused": refused }, t("resource.count", accepted, refused)));
  document.getElementById("seen").replaceChildren(...terms);
  document.getElementById("writes").replaceChildren(...writes.slice(0, 8).map((write) => element("tr", {
    "data-accepted": write.accepted, "data-candidate": write.candidate, "data-tone": write.accepted ? "" : "bad",
  }, [
    element("td", { class: "number" }, number(write.at_ms)),
    element("td", {}, write.candidate),
    element("td", { class: "number" }, String(write.fence)),
    element("td", {}, write.accepted ? `✓ ${t("res.accepted")}` : `⊗ ${t("res.stale")}`),
  ])));
}

export function tone(event) {
  return event.action === "write" && event.result === "refused" ? "bad" : TONES[event.action] ?? "";
}

function outcome(event) {
  const cell = element("td");
  quote(cell, result(event), unsaid(event.result, event.message));
  return cell;
}

function table() {
  document.getElementById("events").replaceChildren(...[...live.events].reverse().map((event) => element("tr", {
    "data-seq": event.seq, "data-candidate": event.candidate ?? "store", "data-action": event.action, "data-result": event.result, "data-tone": tone(event),
  }, [
    element("td", { class: "number" }, number(event.at_ms)),
    element("td", {}, event.candidate ?? t("store")),
    element("td", {}, t(`act.${event.action}`)),
    element("td", { class: "number" }, event.fence === null ? "" : String(event.fence)),
    element("td", { class: "number" }, seconds(event.remaining_ms)),
    outcome(event),
  ])));
}

let told = 0;

/** Says the most important of what has just happened; never more than a sentence a second. */
function announce(events) {
  const say = {
    elected: (event) => t("say.elected", event.candidate, event.fence),
    lost: (event) => t("say.lost", event.candidate, result(event)),
    failed: (event) => t("say.failed", event.candidate),
    write: (event) => event.result === "refused" ? t("say.refused", event.candidate) : "",
  };
  const sentence = events.map((event) => say[event.action]?.(event)).filter(Boolean).pop();
  if (sentence && performance.now() - told > 1000) {
    told = performance.now();
    setText("announce", sentence);
  }
}
