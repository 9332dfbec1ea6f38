// Step by step: the engine plays a plan under paused time, and a person goes through it tick by tick.

import { Spans } from "/spans.js";
import { draw, drawAxis } from "/chart.js";
import { t, complaint, language } from "/words.js";
import { element, setText } from "/dom.js";
import { tone } from "/live.js";

const BEAT_MS = 700;
const AFTERWARDS = 2;
const ticks = { plans: [], chosen: null, play: null, at: -1, timer: null };
const $ = (id) => document.getElementById(id);
const column = () => (language() === "ko" ? 1 : 0);

/** What the live chart calls what a row tells. */
const ACTIONS = {
  "waits": "stands", "wrote-first": "write", "wrote-last": "write", "first-write-refused": "write", "last-write-refused": "write",
  "release-refused": "release", "failed": "gave_up",
};

function eventOf(row) {
  return {
    candidate: row.candidate, action: ACTIONS[row.action] ?? row.action, at_ms: row.tick * 1000, slot: row.slot, fence: row.token,
    remaining_ms: row.remaining === undefined ? null : row.remaining * 1000, result: row.action.endsWith("refused") ? "refused" : "accepted",
  };
}

export async function makeTicks() {
  ticks.plans = (await (await fetch("/api/ticks")).json()).plans;
  $("plan").replaceChildren(...ticks.plans.map(({ name }) => element("option", { value: name })));
  $("plan").addEventListener("change", () => choose($("plan").value));
  $("ticks-play").addEventListener("click", () => (ticks.timer ? pause() : start()));
  $("ticks-step").addEventListener("click", () => { pause(); step(); });
  $("ticks-reset").addEventListener("click", () => { pause(); goTo(-1); });
  await choose(ticks.plans[0].name);
}

async function choose(name) {
  pause();
  ticks.chosen = ticks.plans.find((plan) => plan.name === name);
  const answer = await fetch("/api/ticks", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(ticks.chosen.plan) });
  const play = await answer.json();
  if (!answer.ok) return setText("ticks-problem", complaint(play));
  setText("ticks-problem", "");
  ticks.play = play;
  ticks.play.last = Math.max(...play.rows.map((row) => row.tick + (row.action === "released" ? row.remaining ?? 0 : 0)));
  $("ticks-rows").replaceChildren(...play.candidates.map((id) => {
    const strip = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    strip.setAttribute("class", "strip");
    strip.setAttribute("role", "img");
    strip.id = `ticks-${id}-strip`;
    return element("div", { class: "row tickrow", id: `ticks-row-${id}`, "data-candidate": id }, [element("b", {}, id), strip]);
  }));
  goTo(-1);
}

function start() {
  if (ticks.at >= ticks.play.last) goTo(-1);
  ticks.timer = setInterval(step, BEAT_MS);
  step();
  showButtons();
}

function pause() {
  clearInterval(ticks.timer);
  ticks.timer = null;
  showButtons();
}

function step() {
  goTo(Math.min(ticks.at + 1, ticks.play.last));
  if (ticks.at >= ticks.play.last) pause();
}

function goTo(tick) {
  ticks.at = tick;
  sayTicks();
}

const isOver = () => ticks.play && ticks.at >= ticks.play.last;

function showButtons() {
  setText("ticks-play", t(ticks.timer ? "ticks.pause" : "ticks.play"));
  $("ticks-play").dataset.playing = Boolean(ticks.timer);
  $("ticks-step").disabled = isOver();
}

/** Shows what has happened up to the present tick, in the language in use. */
export function sayTicks() {
  const { play, chosen, at } = ticks;
  for (const option of $("plan").options) option.textContent = t(`plan.${option.value}`);
  showButtons();
  if (!play) return;
  setText("plan-sentence", chosen.sentence[column()]);
  setText("ticks-text", t("ticks.text", chosen.name));
  const { lease, work, wait, min_lease, slots, auto_extend, on_lost } = play.plan;
  const onLost = t(on_lost === "continue" ? "ticks.continue" : "ticks.stop");
  setText("plan-numbers", t("ticks.numbers", lease, work, wait, min_lease, slots, t(auto_extend ? "yes" : "no"), onLost));
  setText("ticks-now", at < 0 ? t("ticks.before") : t(isOver() ? "ticks.over" : "ticks.now", at));
  $("ticks-now").dataset.tick = at;
  $("ticks-now").dataset.over = isOver();
  const rows = play.rows.filter((row) => row.tick <= at);
  // A column of one slot says nothing.
  const several = slots > 1;
  $("ticks-slot").hidden = !several;
  $("ticks-events").replaceChildren(...rows.map((row) => element("tr", {
    "data-tick": row.tick, "data-candidate": row.candidate, "data-action": row.action, "data-tone": tone(eventOf(row)), "data-now": row.tick === at,
  }, [
    element("td", { class: "number" }, String(row.tick)), element("td", {}, row.candidate), element("td", {}, row.words[column()]),
    ...(several ? [element("td", { class: "number" }, String(row.slot ?? ""))] : []),
    element("td", { class: "number" }, String(row.token ?? "")), element("td", { class: "number" }, String(row.remaining ?? "")), element("td", {}, row.result[column()]),
  ])));
  paintTicks();
}

/** Draws the lanes, as wide as the window lets them be. */
export function paintTicks() {
  const { play, at } = ticks;
  const axis = $("ticks-axis");
  // As wide as each strip; nothing, while the other mode is shown.
  const width = axis.clientWidth;
  if (!play || width === 0) return;
  const pixels = width / ((play.last + AFTERWARDS) * 1000);
  const spans = new Spans();
  for (const row of play.rows.filter((row) => row.tick <= at)) {
    spans.add(eventOf(row));
    // Work that stops when its lease is lost does not go on without.
    if (row.action === "lost" && play.plan.on_lost === "stop") spans.close(row.candidate, "work", row.tick * 1000);
  }
  for (const id of play.candidates) {
    const strip = $(`ticks-${id}-strip`);
    // The present tick is shown to its end; the line stands where it begins, as its number on the scale does.
    const shown = at < 0 ? { spans: [], marks: [] } : spans.between(id, 0, (at + 1) * 1000);
    draw(strip, shown, -300, pixels, width, at < 0 ? null : at * 1000);
    const words = play.rows.filter((row) => row.candidate === id && row.tick <= at).map((row) => `${row.tick}: ${row.words[column()]}`);
    strip.setAttribute("aria-label", `${t("candidate", id)}. ${words.join(", ")}`);
  }
  drawAxis(axis, -300, (play.last + AFTERWARDS) * 1000, pixels, width, (ms) => String(ms / 1000));
}
