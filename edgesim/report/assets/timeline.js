// Pictures on a canvas of rows (devices, or groups of them) over a line (time, or rounds), in the colours of states.
//
// Where bars are wide they are drawn one by one; where several share a point of the screen, the point's column is
// divided among the states by the time that they take.

const LEFT = 62, RIGHT = 24, AXIS = 34, GAP = 6, STRIP = 64;

function lower(values, value, from, to) {
  while (from < to) { const middle = (from + to) >> 1; if (values[middle] < value) from = middle + 1; else to = middle; }
  return from;
}

function activityOf(code) { return DATA.activities[Math.floor(code / DATA.outcomes.length)]; }

// Bars in seconds from packed columns, with the first bar of each device.
function makeBars(packed, devices, stateOfCode) {
  const count = packed.gap.length, bars = { start: new Float64Array(count), end: new Float64Array(count),
    state: new Uint8Array(count), first: new Int32Array(devices + 1), round: packed.round, device: packed.device,
    code: packed.code, longest: new Float64Array(devices), rows: devices, received: packed.received };
  let tick = 0;
  for (let i = 0; i < count; i++) {
    bars.start[i] = (tick += packed.gap[i]) * packed.tick_s;
    bars.end[i] = (tick += packed.length[i]) * packed.tick_s;
    bars.state[i] = stateOfCode[packed.code[i]];
    const device = packed.device[i];
    bars.first[device + 1]++;
    bars.longest[device] = Math.max(bars.longest[device], bars.end[i] - bars.start[i]);
  }
  for (let device = 0; device < devices; device++) bars.first[device + 1] += bars.first[device];
  return bars;
}

// Spans in which the band is in use: every upload with its share, or, where uploads share a station's whole band,
// the time in which a station has any.
function makeBand(run, packed, bars) {
  const total = run.stations.band_hz.reduce((sum, one) => sum + one, 0), uploads = [];
  for (let i = 0; i < bars.start.length; i++) if (activityOf(packed.code[i]) === "upload") uploads.push(i);
  if (!run.reshared) {
    return { start: Float64Array.from(uploads, (i) => bars.start[i]), end: Float64Array.from(uploads, (i) => bars.end[i]),
      share: Float64Array.from(uploads, (i) => packed.band[i] * packed.band_step_hz / total) };
  }
  const station = new Map(Array.from(run.map.number, (device, i) => [device, run.map.station[i]])), open = new Map(), spans = [];
  for (const i of uploads.sort((a, b) => bars.start[a] - bars.start[b])) {
    const at = packed.station ? packed.station[i] : station.get(bars.device[i]) ?? 0, span = open.get(at);
    if (span && bars.start[i] <= span.end) span.end = Math.max(span.end, bars.end[i]);
    else { const next = { start: bars.start[i], end: bars.end[i], share: run.stations.band_hz[at] / total }; open.set(at, next); spans.push(next); }
  }
  return { start: spans.map((one) => one.start), end: spans.map((one) => one.end), share: spans.map((one) => one.share) };
}

// What came of each device's work in each round, as bars over the rows of the table of rounds.
function makeWho(run, bars) {
  const rounds = run.roundNumbers.length, place = new Map(run.roundNumbers.map((round, i) => [round, i]));
  const best = new Uint8Array(run.devices * rounds);
  for (let i = 0; i < bars.start.length; i++) {
    const at = place.get(bars.round[i]);
    if (at === undefined) continue;
    const cell = bars.device[i] * rounds + at;
    best[cell] = Math.max(best[cell], bars.state[i] + 1);
  }
  const cells = []; for (let i = 0; i < best.length; i++) if (best[i]) cells.push(i);
  const who = { rows: run.devices, start: Float64Array.from(cells, (i) => i % rounds), end: Float64Array.from(cells, (i) => i % rounds + 1),
    state: Uint8Array.from(cells, (i) => best[i] - 1), first: new Int32Array(run.devices + 1), longest: new Float64Array(run.devices).fill(1) };
  for (const cell of cells) who.first[Math.floor(cell / rounds) + 1]++;
  for (let device = 0; device < run.devices; device++) who.first[device + 1] += who.first[device];
  return who;
}

function barsOf(run, device, round) {
  const found = [];
  for (let i = run.made.first[device]; i < run.made.first[device + 1]; i++) if (run.made.round[i] === round) found.push(i);
  return found;
}

function barText(run, i) {
  const bars = run.made, outcome = DATA.outcomes[bars.code[i] % DATA.outcomes.length];
  const activity = activityOf(bars.code[i]);
  const band = activity === "upload" ? `, ${number(run.bars.band[i] * run.bars.band_step_hz / 1e6)} MHz` : "";
  const part = outcome === "in part" ? `, ${run.bars.received[i] / 10} % received` : "";
  const station = run.bars.station && activity !== "away" ? `, ${run.stations.name[run.bars.station[i]]}` : "";
  return `${activity} ${number(bars.start[i])} to ${number(bars.end[i])} s${outcome === "done" ? "" : ` (${outcome})`}${station}${band}${part}`;
}

function hideTip() { document.getElementById("tip").hidden = true; }

function spread(sums, offset, width, from, to, weight) {
  const a = Math.max(0, from), b = Math.min(width, to);
  if (b <= a) return;
  const i = Math.floor(a), j = Math.min(Math.floor(b), width - 1);
  if (i === j) { sums[offset + i] += (b - a) * weight; return; }
  sums[offset + i] += (i + 1 - a) * weight;
  for (let k = i + 1; k < j; k++) sums[offset + k] += weight;
  sums[offset + j] += (b - j) * weight;
}

class Picture {
  // ``facts``: ends of the line, ``source`` (bars or groups), ``band`` or null, ``label`` of the line, and the functions
  // ``at(x, row)``, which answers what a click chooses, ``chosen()``, [from, to, row] of the choice, and ``tip(x, row)``.
  constructor(canvas, hidden) {
    this.canvas = canvas; this.hidden = hidden; this.facts = null; this.drawn = 0;
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
    theme.listeners.push(() => this.draw());
    choice.listeners.push(() => this.draw());
  }

  show(facts) { this.facts = facts; this.reset(); }

  reset() { this.view = { from: 0, to: this.facts.end, top: 0, bottom: this.facts.source.rows }; this.draw(); }

  get width() { return Math.max(50, this.canvas.clientWidth - LEFT - RIGHT); }

  place(event) {
    const box = this.canvas.getBoundingClientRect(), view = this.view;
    const x = view.from + (event.clientX - box.left - LEFT) / this.width * (view.to - view.from);
    const row = Math.floor(view.top + (event.clientY - box.top) / this.height * (view.bottom - view.top));
    const inside = event.clientX - box.left >= LEFT && x <= view.to;
    return { x, row: inside && event.clientY - box.top < this.height && row < view.bottom ? row : null, inside };
  }

  move(from, top) {
    const view = this.view, wide = view.to - view.from, high = view.bottom - view.top;
    view.from = Math.min(Math.max(0, from), this.facts.end - wide); view.to = view.from + wide;
    view.top = Math.min(Math.max(0, top), this.facts.source.rows - high); view.bottom = view.top + high;
    this.draw();
  }

  // Shows a part of the line that is ``factor`` times as long, with the place x where it was.
  scale(factor, x) {
    const view = this.view, end = this.facts.end, at = x ?? (view.from + view.to) / 2;
    const wide = Math.min(end, Math.max(end * 1e-7, (view.to - view.from) * factor));
    const share = (at - view.from) / (view.to - view.from);
    view.to = (view.from = at - share * wide) + wide;
    this.move(view.from, view.top);
  }

  scaleRows(factor, row) {
    const view = this.view, rows = this.facts.source.rows, at = row ?? (view.top + view.bottom) / 2;
    const high = Math.min(rows, Math.max(Math.min(4, rows), (view.bottom - view.top) * factor));
    const share = (at - view.top) / (view.bottom - view.top);
    view.bottom = (view.top = at - share * high) + high;
    this.move(view.from, view.top);
  }

  zoomToChoice() {
    const [from, to, row] = this.facts.chosen();
    if (from !== null) { const margin = 0.5 * (to - from); this.view.from = Math.max(0, from - margin); this.view.to = Math.min(this.facts.end, to + margin); }
    const rows = this.facts.source.rows;
    if (row !== null && rows > 12) { this.view.top = Math.max(0, Math.min(rows - 12, row - 6)); this.view.bottom = this.view.top + 12; }
    this.draw();
  }

  grab(event) {
    if (event.button) return;
    const start = { x: event.clientX, y: event.clientY, ...this.view }, begun = this.place(event);
    let moved = false;
    this.canvas.setPointerCapture(event.pointerId);
    const move = (now) => {
      const dx = now.clientX - start.x, dy = now.clientY - start.y;
      moved ||= Math.hypot(dx, dy) > 4;
      if (moved) this.move(start.from - dx / this.width * (start.to - start.from), start.top - dy / this.height * (start.bottom - start.top));
    };
    const end = () => {
      this.canvas.removeEventListener("pointermove", move);
      if (!moved && begun.inside) choose(this.facts.at(begun.x, begun.row));
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end, { once: true });
    this.canvas.addEventListener("pointercancel", end, { once: true });
  }

  hover(event) {
    const tip = document.getElementById("tip"), { x, row, inside } = this.place(event), told = inside ? this.facts.tip(x, row) : "";
    tip.hidden = !told;
    if (!told) return;
    tip.textContent = told;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const { x, row } = this.place(event), factor = Math.exp((event.deltaY || event.deltaX) * 0.002);
    if (event.ctrlKey) this.scale(factor, x); else this.scaleRows(factor, row ?? undefined);
  }

  key(event) {
    const view = this.view, run = this.facts.run, far = 0.2;
    const acts = {
      "+": () => this.scale(0.6), "=": () => this.scale(0.6), "-": () => this.scale(1 / 0.6),
      "]": () => this.scaleRows(0.6), "[": () => this.scaleRows(1 / 0.6), "0": () => this.reset(),
      Enter: () => this.zoomToChoice(), Escape: () => choose({ round: null, device: null }),
      ArrowLeft: () => event.shiftKey ? this.move(view.from - far * (view.to - view.from), view.top) : step(run, "round", -1),
      ArrowRight: () => event.shiftKey ? this.move(view.from + far * (view.to - view.from), view.top) : step(run, "round", 1),
      ArrowUp: () => event.shiftKey ? this.move(view.from, view.top - far * (view.bottom - view.top)) : step(run, "device", -1),
      ArrowDown: () => event.shiftKey ? this.move(view.from, view.top + far * (view.bottom - view.top)) : step(run, "device", 1),
    };
    if (!acts[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    // What lies below the pointer is another place now.
    hideTip();
    acts[event.key]();
  }

  // Rows are higher where bars are as high as the share that was received.
  get height() { const { source } = this.facts; return Math.min(520, Math.max(120, (source.received ? 18 : 9) * source.rows)); }

  draw() {
    if (!this.facts || !this.canvas.clientWidth) return;
    const began = performance.now(), { canvas, facts } = this, dpr = devicePixelRatio || 1;
    const strip = facts.band ? STRIP + GAP : 0, whole = this.height + strip + AXIS;
    canvas.style.height = `${whole}px`;
    canvas.width = Math.round(canvas.clientWidth * dpr); canvas.height = Math.round(whole * dpr);
    const context = canvas.getContext("2d");
    context.fillStyle = ink("back"); context.fillRect(0, 0, canvas.width, canvas.height);
    this.colors = DATA.states.map((state) => theme.dark ? state.dark : state.light);
    if (!this.drawBars(context, dpr)) this.drawShares(context, dpr);
    if (facts.marks) this.drawMarks(context, dpr);
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    if (facts.band) this.drawBand(context, dpr);
    this.drawAxes(context, strip);
    this.drawChoice(context, strip);
    this.drawn = performance.now() - began;
    if (facts.onView) facts.onView(this.view);
  }

  // Single bars; false where they are too many or too narrow.
  drawBars(context, dpr) {
    const { source } = this.facts, { from, to, top, bottom } = this.view, wide = this.width * dpr, high = this.height * dpr / (bottom - top);
    if (source.groups) return false;
    const rows = [Math.floor(top), Math.min(source.rows, Math.ceil(bottom))], firsts = [];
    let visible = 0;
    for (let row = rows[0]; row < rows[1]; row++) {
      const first = lower(source.start, from - source.longest[row], source.first[row], source.first[row + 1]);
      visible += lower(source.start, to, first, source.first[row + 1]) - first;
      firsts.push(first);
    }
    if (visible * 3 > wide * (rows[1] - rows[0])) return false;
    const scale = wide / (to - from), left = LEFT * dpr, whole = this.colors[DATA.states.findIndex((state) => state.name === "upload")];
    context.save(); context.beginPath(); context.rect(left, 0, wide, this.height * dpr); context.clip();
    for (let state = 0; state < this.colors.length; state++) {
      if (this.hidden.has(state)) continue;
      context.fillStyle = this.colors[state];
      for (let row = rows[0]; row < rows[1]; row++) {
        const y = (row - top) * high, last = source.first[row + 1];
        for (let i = firsts[row - rows[0]]; i < last && source.start[i] < to; i++) {
          if (source.state[i] !== state || source.end[i] < from) continue;
          const x = (source.start[i] - from) * scale;
          const length = Math.max(1, (source.end[i] - source.start[i]) * scale), share = source.received ? source.received[i] / 1000 : 1;
          context.fillRect(left + x, y + 0.08 * high, length, Math.max(1, 0.84 * high));
          if (share === 1) continue;
          // As high as the share of an upload that was received.
          context.fillStyle = whole;
          context.fillRect(left + x, y + (0.92 - 0.84 * share) * high, length, 0.84 * share * high);
          context.fillStyle = this.colors[state];
        }
      }
    }
    context.restore();
    return true;
  }

  // A line across a row at each of ``marks``, instants of rows; none where rows are lower than 3 points.
  drawMarks(context, dpr) {
    const { from, to, top, bottom } = this.view, high = this.height * dpr / (bottom - top), { row, at } = this.facts.marks;
    this.marksShown = 0;
    if (high < 3 * dpr) return;
    for (let i = 0; i < at.length; i++) {
      if (at[i] < from || at[i] > to || row[i] < top || row[i] >= bottom) continue;
      const x = LEFT * dpr + (at[i] - from) / (to - from) * this.width * dpr;
      for (const [color, width] of [["back", 4], ["ink", 1.5]]) { context.fillStyle = ink(color); context.fillRect(x - width * dpr / 2, (row[i] - top) * high, width * dpr, high); }
      this.marksShown++;
    }
  }

  // Every point's column divided among the states: [states][rows x wide] of shares.
  shares(wide, rows) {
    const { source } = this.facts, { from, to } = this.view, scale = wide / (to - from), found = this.colors.map(() => null);
    if (source.groups) {
      const full = mostAtOnce(source.groups, this.hidden);
      for (const [name, values] of Object.entries(source.groups)) {
        const state = DATA.states.findIndex((one) => one.name === name);
        if (this.hidden.has(state)) continue;
        const sums = found[state] = new Float32Array((rows[1] - rows[0]) * wide);
        const begin = Math.max(0, Math.floor(from / source.span)), end = Math.min(source.spans, Math.ceil(to / source.span));
        for (let row = rows[0]; row < rows[1]; row++) for (let i = begin; i < end; i++) {
          const value = values[row * source.spans + i] / full;
          if (value) spread(sums, (row - rows[0]) * wide, wide, (i * source.span - from) * scale, ((i + 1) * source.span - from) * scale, value);
        }
      }
      return found;
    }
    for (let row = rows[0]; row < rows[1]; row++) {
      const last = source.first[row + 1];
      for (let i = lower(source.start, from - source.longest[row], source.first[row], last); i < last && source.start[i] < to; i++) {
        const state = source.state[i];
        if (this.hidden.has(state)) continue;
        const sums = found[state] ??= new Float32Array((rows[1] - rows[0]) * wide);
        spread(sums, (row - rows[0]) * wide, wide, (source.start[i] - from) * scale, (source.end[i] - from) * scale, 1);
      }
    }
    return found;
  }

  drawShares(context, dpr) {
    const { source } = this.facts, { top, bottom } = this.view, wide = Math.round(this.width * dpr), tall = Math.round(this.height * dpr);
    const rows = [Math.floor(top), Math.min(source.rows, Math.ceil(bottom))], shares = this.shares(wide, rows);
    const paint = this.colors.map((color) => { const n = parseInt(color.slice(1), 16); return 0xff000000 | (n & 255) << 16 | (n >> 8 & 255) << 8 | n >> 16; });
    const image = context.createImageData(wide, tall), pixels = new Uint32Array(image.data.buffer);
    const high = tall / (bottom - top), states = shares.map((one, i) => i).filter((i) => shares[i]);
    for (let row = rows[0]; row < rows[1]; row++) {
      const y0 = Math.max(0, Math.round((row - top) * high)), y1 = Math.min(tall, Math.round((row + 1 - top) * high));
      const room = y1 - y0 - (high > 4 * dpr ? 1 : 0), offset = (row - rows[0]) * wide;
      if (room < 1) continue;
      for (let x = 0; x < wide; x++) {
        let level = 0, y = 0;
        for (const state of states) {
          const share = shares[state][offset + x];
          if (!share) continue;
          level += share;
          const up = Math.min(room, Math.round(level * room));
          for (; y < up; y++) pixels[(y1 - 1 - y - (y1 - y0 - room)) * wide + x] = paint[state];
        }
      }
    }
    createdImage(context, image, Math.round(LEFT * dpr));
  }

  drawBand(context, dpr) {
    const { band } = this.facts, { from, to } = this.view, wide = Math.round(this.width * dpr), sums = new Float32Array(wide), scale = wide / (to - from);
    for (let i = 0; i < band.start.length; i++) {
      if (band.start[i] < to && band.end[i] > from) spread(sums, 0, wide, (band.start[i] - from) * scale, (band.end[i] - from) * scale, band.share[i]);
    }
    this.bandShown = sums;
    const base = this.height + GAP + STRIP;
    context.fillStyle = this.colors[DATA.states.findIndex((state) => state.name === "upload")];
    for (let x = 0; x < wide; x++) if (sums[x] > 0) { const high = Math.min(1, sums[x]) * (STRIP - 8); context.fillRect(LEFT + x / dpr, base - high, 1 / dpr, high); }
    context.strokeStyle = ink("line"); context.strokeRect(LEFT, base - STRIP + 8, this.width, STRIP - 8);
    context.fillStyle = ink("soft"); context.font = "11px system-ui, sans-serif"; context.textAlign = "right"; context.textBaseline = "middle";
    context.fillText("band 1", LEFT - 6, base - STRIP + 10); context.fillText("0", LEFT - 6, base - 3);
  }

  drawAxes(context, strip) {
    const { facts } = this, { from, to, top, bottom } = this.view, base = this.height + strip, wide = this.width;
    context.fillStyle = ink("soft"); context.strokeStyle = ink("line"); context.lineWidth = 1; context.font = "11px system-ui, sans-serif";
    context.textAlign = "center"; context.textBaseline = "top";
    const nice = niceStep((to - from) / Math.max(2, wide / 110), facts.whole);
    for (let at = Math.ceil(from / nice) * nice; at <= to + 1e-9 * nice; at += nice) {
      const x = LEFT + (at - from) / (to - from) * wide;
      context.beginPath(); context.moveTo(x, base); context.lineTo(x, base + 4); context.stroke();
      context.fillText(facts.name(at, nice), x, base + 6);
    }
    context.fillText(facts.label, LEFT + wide / 2, base + 20);
    context.textAlign = "right"; context.textBaseline = "middle";
    const rowStep = Math.max(1, niceStep((bottom - top) / Math.max(2, this.height / 26), true));
    for (let row = Math.ceil(top / rowStep) * rowStep; row < bottom; row += rowStep) {
      const y = (row + 0.5 - top) / (bottom - top) * this.height;
      if (y > 5 && y < this.height - 3) context.fillText(facts.rowName(row), LEFT - 6, y);
    }
    context.save(); context.translate(10, this.height / 2); context.rotate(-Math.PI / 2); context.textAlign = "center"; context.fillText(facts.rowLabel, 0, 0); context.restore();
    if (facts.edges) {
      const first = lower(facts.edges, from, 0, facts.edges.length), last = lower(facts.edges, to, first, facts.edges.length);
      if (last - first > wide / 12) return;
      context.globalAlpha = 0.7; context.setLineDash([2, 3]); context.strokeStyle = ink("soft");
      for (let i = first; i < last; i++) { const x = LEFT + (facts.edges[i] - from) / (to - from) * wide; context.beginPath(); context.moveTo(x, 0); context.lineTo(x, base); context.stroke(); }
      context.globalAlpha = 1; context.setLineDash([]);
    }
  }

  drawChoice(context, strip) {
    const { from, to, top, bottom } = this.view, [begin, end, row] = this.facts.chosen(), wide = this.width;
    context.save(); context.beginPath(); context.rect(LEFT, 0, wide, this.height + strip); context.clip();
    context.fillStyle = ink("chosen"); context.strokeStyle = ink("accent"); context.lineWidth = 1.5;
    if (begin !== null) {
      const x = LEFT + (begin - from) / (to - from) * wide, length = Math.max(2, (end - begin) / (to - from) * wide);
      context.fillRect(x, 0, length, this.height + strip); context.strokeRect(x, 1, length, this.height + strip - 2);
    }
    if (row !== null) {
      const y = (row - top) / (bottom - top) * this.height, high = Math.max(3, this.height / (bottom - top));
      context.fillRect(LEFT, y, wide, high); context.strokeRect(LEFT, y, wide, high);
    }
    context.restore();
  }
}

// The most hundredths of a device that a group has at once in the states that are shown: the full height of a row.
function mostAtOnce(groups, hidden) {
  const shown = Object.entries(groups).filter(([name]) => !hidden.has(DATA.states.findIndex((one) => one.name === name))).map(([, values]) => values);
  let most = 1;
  for (let i = 0; shown.length && i < shown[0].length; i++) most = Math.max(most, shown.reduce((sum, values) => sum + values[i], 0));
  return most;
}

function createdImage(context, image, left) {
  // Through a canvas of its own, since putImageData would wipe out what lies below the gaps.
  const canvas = document.createElement("canvas");
  canvas.width = image.width; canvas.height = image.height;
  canvas.getContext("2d").putImageData(image, 0, 0);
  context.drawImage(canvas, left, 0);
}

function niceStep(least, whole) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-12)));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least * (1 - 1e-9));
  return whole ? Math.max(1, Math.round(step)) : step;
}

function showTimeline(picture, run) {
  const { bars, groups } = run, rounds = run.rounds;
  document.getElementById("parts").hidden = !(bars && run.made.received);
  const marks = bars && run.handovers ? { row: run.handovers.device, at: run.handovers.t_s } : null;
  document.getElementById("handed").hidden = !marks;
  const source = bars ? run.made : { groups: groups.states, rows: groups.count, spans: groups.spans, span: groups.span_s };
  const band = bars ? run.band : { start: groups.band_hz.map((_, i) => i * groups.span_s), end: groups.band_hz.map((_, i) => (i + 1) * groups.span_s),
    share: groups.band_hz.map((hz) => hz / run.stations.band_hz.reduce((sum, one) => sum + one, 0)) };
  const size = bars ? 1 : groups.size;
  const roundAt = (t) => { const i = lower(rounds.end_s, t, 0, rounds.end_s.length); return i < rounds.end_s.length && rounds.start_s[i] <= t ? i : -1; };
  picture.show({
    run, source, band, marks, end: run.end_s, label: "simulated time (s)", edges: rounds.end_s, rowLabel: bars ? "device" : `groups of ${size} devices`,
    name: (t, step) => t.toLocaleString("en", { maximumFractionDigits: Math.max(0, Math.ceil(-Math.log10(step))) }), rowName: (row) => row * size,
    at: (t, row) => { const i = roundAt(t); return { round: i < 0 ? null : run.roundNumbers[i], ...(row === null ? {} : { device: row * size }) }; },
    chosen: () => { const i = run.roundNumbers.indexOf(choice.round);
      return [i < 0 ? null : rounds.start_s[i], i < 0 ? null : rounds.end_s[i], choice.device === null || choice.device >= run.devices ? null : Math.floor(choice.device / size)]; },
    tip: (t, row) => {
      const i = roundAt(t), head = `${number(t)} s${i < 0 ? "" : `, round ${run.roundNumbers[i]}`}`;
      if (row === null) return head;
      if (!bars) {
        const at = Math.min(groups.spans - 1, Math.floor(t / groups.span_s)), counts = Object.entries(groups.states).map(([name, values]) => [name, values[row * groups.spans + at] / 100]);
        return [`${head}, devices ${row * size} to ${Math.min(run.devices, (row + 1) * size) - 1}`, ...counts.filter(([, count]) => count).map(([name, count]) => `${name}: ${count} devices on average`)].join("\n");
      }
      const made = run.made, lines = [];
      for (let k = lower(made.start, t - made.longest[row], made.first[row], made.first[row + 1]); k < made.first[row + 1] && made.start[k] <= t; k++) if (made.end[k] >= t) lines.push(barText(run, k));
      const near = 4 * (picture.view.to - picture.view.from) / picture.width, [begin, behind] = handoversOf(run, row);
      for (let k = begin; k < behind; k++) if (Math.abs(run.handovers.t_s[k] - t) <= near) lines.push(handoverText(run, k));
      return [`${head}, device ${row}`, ...lines].join("\n");
    },
    onView: (view) => { document.getElementById("view").textContent = `${number(view.from)} to ${number(view.to)} s, ${bars ? "devices" : "groups"} ${Math.floor(view.top)} to ${Math.ceil(view.bottom) - 1}`; },
  });
}
