// From events to what a chart shows: spans of time and marks, one row for each candidate. Live and step by step share it.

/** Marks that are told by a sign in the chart, and the sign. */
export const SIGNS = {
  elected: "▲", extended: "+", lost: "✕", skipped: "–", accepted: "•", refused: "⊗", failed: "!", killed: "†",
};

const KEPT = 400;
/** A lease that ended this much before its holder noticed was not noticed in time. */
const UNNOTICED_MS = 60;

export class Spans {
  constructor() {
    this.rows = new Map();
  }

  row(id) {
    if (!this.rows.has(id)) this.rows.set(id, { spans: [], marks: [], open: new Map() });
    return this.rows.get(id);
  }

  /** What is open on a row: of the two layers "work" and "way", and "ice". */
  begin(id, layer, kind, at, more = {}) {
    this.close(id, layer, at);
    const row = this.row(id);
    const span = { kind, from: at, to: null, ...more };
    this.keep(row.spans, span);
    row.open.set(layer, span);
    return span;
  }

  close(id, layer, at) {
    const row = this.row(id);
    const span = row.open.get(layer);
    if (!span) return;
    row.open.delete(layer);
    span.to = at;
    // It worked on after its lease had ended, and did not notice.
    if (span.kind === "leading" && span.ends !== undefined && at - span.ends > UNNOTICED_MS) {
      span.to = span.ends;
      this.keep(row.spans, { kind: "stale", from: span.ends, to: at });
    }
  }

  mark(id, kind, at) {
    this.keep(this.row(id).marks, { kind, at });
  }

  /** A page may stay open for days: only the latest are kept, and what is still open, however long. */
  keep(list, item) {
    list.push(item);
    if (list.length > KEPT) list.splice(list.findIndex((old) => old.to !== null), 1);
  }

  /** Takes in one event. */
  add(event) {
    const { candidate: id, action, at_ms: at, fence, remaining_ms: remaining, result } = event;
    if (id === null) return;
    const row = this.row(id);
    const open = row.open.get("work");
    switch (action) {
      case "stands": this.begin(id, "work", "waiting", at); break;
      case "elected":
        this.begin(id, "work", "leading", at, { fence, ends: at + (remaining ?? 0) });
        this.mark(id, "elected", at);
        break;
      case "extended":
        if (open?.kind === "leading") open.ends = at + (remaining ?? 0);
        this.mark(id, "extended", at);
        break;
      case "lost":
        this.begin(id, "work", "stale", at, { fence });
        this.mark(id, "lost", at);
        break;
      case "released":
        this.close(id, "work", at);
        if (remaining > 0) this.keep(row.spans, { kind: "kept", from: at, to: at + remaining });
        break;
      case "skipped": case "gave_up":
        this.close(id, "work", at);
        this.mark(id, action === "skipped" ? "skipped" : "failed", at);
        break;
      case "dropped": case "release": this.close(id, "work", at); break;
      case "failed": this.mark(id, "failed", at); break;
      case "write": this.mark(id, result, at); break;
      case "frozen": this.begin(id, "ice", "frozen", at); break;
      case "thawed": this.close(id, "ice", at); break;
      case "cut": this.begin(id, "way", "cut", at); break;
      case "mended": this.close(id, "way", at); break;
      case "killed": case "stops":
        for (const layer of ["work", "ice", "way"]) this.close(id, layer, at);
        if (action === "killed") this.mark(id, "killed", at);
        break;
    }
  }

  /** Who leads by its own reckoning alone is drawn as one whose lease has ended, from when that is known until it is not so. */
  believe(candidates, now) {
    for (const { id, phase, fence, remaining_ms } of candidates) {
      const open = this.row(id).open.get("work");
      // A state is older than the events that come with it, and may be about the tenure before.
      if (open?.fence !== fence) continue;
      if (phase === "believes" && open.kind === "leading") this.begin(id, "work", "stale", now, { fence, believes: true });
      if (phase === "leading" && open.believes) this.begin(id, "work", "leading", now, { fence, ends: now + remaining_ms });
    }
  }

  /** What a page that came late has not seen the beginning of. */
  assume(candidates, now) {
    for (const { id, phase, fence, remaining_ms, frozen, cut } of candidates) {
      const { open } = this.row(id);
      const since = now - 500;
      if (phase === "waiting" && !open.has("work")) this.begin(id, "work", "waiting", since);
      if (phase === "leading" && !open.has("work")) this.begin(id, "work", "leading", since, { fence, ends: now + remaining_ms });
      if ((phase === "stale" || phase === "believes") && !open.has("work")) this.begin(id, "work", "stale", since, { fence, believes: phase === "believes" });
      if (frozen && !open.has("ice")) this.begin(id, "ice", "frozen", since);
      if (cut && !open.has("way")) this.begin(id, "way", "cut", since);
    }
  }

  /** The spans of a row that touch a window of time, with those that are open drawn to `now`. */
  between(id, from, now) {
    const { spans, marks } = this.row(id);
    const shown = [];
    for (const span of spans) {
      let to = Math.min(span.to ?? now, span.kind === "kept" ? Infinity : now);
      if (to < from) continue;
      if (span.kind === "leading" && span.to === null && now - span.ends > UNNOTICED_MS) {
        shown.push({ ...span, to: span.ends });
        shown.push({ kind: "stale", from: span.ends, to: now });
        continue;
      }
      shown.push({ ...span, to });
    }
    return { spans: shown, marks: marks.filter((mark) => mark.at >= from) };
  }
}
