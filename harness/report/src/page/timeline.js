// Time lines on a canvas: rows of bars and marks, to be pointed at or walked through with the arrow keys. Names of rows are
// text next to the canvas, or above each row where the page is narrow. Flags mark moments across all rows.

const ROW = 18;
const LABEL = 150;
const NARROW = 560;
const NAME = 15;
const AXIS = 20;
const FLAG = 16;
const MARK = 5;
const EDGE = 10;
const FONT = "11px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";

// The colours of the theme, as a canvas takes them; read once for each drawing.
const palette = new Map();
function colour(name) {
  if (!palette.has(name)) {
    const probe = make("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    palette.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return palette.get(name);
}

// Steps of a scale that are easy to read.
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000];
const stepOf = (time, room) => STEPS.find((one) => one >= time / Math.max(room / 80, 1)) ?? 3_600_000;

// A place on the scale.
function tick(at, step) {
  if (step < 1000) return `${at} ms`;
  if (step < 60_000) return `${at / 1000} s`;
  return `${at / 60_000} min`;
}

// Puts bars that overlap into rows of their own.
function stacked(bars) {
  const ends = [];
  for (const one of [...bars].sort((a, b) => a.from - b.from)) {
    let row = ends.findIndex((end) => end <= one.from);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = one.to;
    one.stack = row;
  }
  return Math.max(ends.length, 1);
}

// One listener for all: time lines come and go.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme.set(theme.now()));

class TimeLine {
  // `rows`: [{label, bars: [{from, to, fill, text, open}], marks: [{at, fill, tall, text, open}]}], `flags`: [{at, fill, name, text}]
  constructor({ from, to, rows, flags = [], label, row = ROW }) {
    Object.assign(this, { from, to: Math.max(to, from + 1), flags, at: -1, row });
    this.rows = rows.filter((one) => one.bars?.length || one.marks?.length);
    for (const one of this.rows) one.height = one.bars?.length ? stacked(one.bars) : 1;
    this.canvas = make("canvas", { tabIndex: 0, role: "img", ariaLabel: `${label}. The arrow keys walk through it.` });
    this.tip = make("div", { className: "tip", hidden: true, role: "status" });
    this.names = this.rows.map((one) => span("line-name", one.label));
    this.node = make("div", { className: "line" }, this.canvas, this.names, this.tip);
    this.items = this.rows
      .flatMap((one) => [...(one.bars ?? []), ...(one.marks ?? [])])
      .concat(flags)
      .sort((a, b) => (a.from ?? a.at) - (b.from ?? b.at));
    this.canvas.addEventListener("mousemove", (event) => this.show(this.under(event)));
    this.canvas.addEventListener("mouseleave", () => this.show(null));
    this.canvas.addEventListener("click", (event) => this.under(event)?.open?.());
    this.canvas.addEventListener("keydown", (event) => this.walk(event));
    new ResizeObserver(() => requestAnimationFrame(() => this.node.clientWidth !== this.width && this.draw())).observe(this.node);
    this.node.line = this;
  }

  x(at) {
    return this.left + ((at - this.from) / (this.to - this.from)) * (this.width - this.left - EDGE);
  }

  draw() {
    const width = this.node.clientWidth;
    if (!width) return;
    palette.clear();
    const narrow = width < NARROW;
    Object.assign(this, { width, left: narrow ? EDGE : LABEL, hits: [] });
    const pen = this.canvas.getContext("2d");
    pen.font = FONT;
    const bands = this.layFlags(pen);
    const nameRoom = narrow ? NAME : 0;
    const high = (one) => Math.max(one.height * this.row, narrow ? 0 : NAME) + nameRoom;
    const top = bands * FLAG + 3;
    const height = this.rows.reduce((sum, one) => sum + high(one), top + AXIS + 4);
    const dots = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * dots, height: height * dots });
    this.canvas.style.height = `${height}px`;
    pen.scale(dots, dots);
    Object.assign(pen, { font: FONT, textBaseline: "middle" });
    this.drawScale(pen, top, height);
    let y = top;
    for (const [n, one] of this.rows.entries()) {
      if (n) this.fill(pen, "line", 0, y, width, 1, 0.5);
      Object.assign(this.names[n].style, { top: `${y}px`, width: `${narrow ? width - 2 * EDGE : LABEL - EDGE}px` });
      this.names[n].title = one.label;
      this.drawRow(pen, one, y + nameRoom);
      y += high(one);
    }
    for (const flag of this.flags) this.drawFlag(pen, flag, height - AXIS);
    if (this.at >= 0) this.outline(pen, this.items[this.at]);
  }

  fill(pen, name, x, y, wide, high, alpha = 1) {
    pen.globalAlpha = alpha;
    pen.fillStyle = colour(name);
    pen.fillRect(x, y, wide, high);
    pen.globalAlpha = 1;
  }

  // Gives each flag's name a place where it overlaps no other: how many lines they take.
  layFlags(pen) {
    const ends = [];
    for (const flag of [...this.flags].sort((a, b) => a.at - b.at)) {
      const x = this.x(flag.at);
      flag.wide = pen.measureText(flag.name).width + 8;
      flag.left = Math.max(Math.min(x, this.width - flag.wide), 0);
      let band = ends.findIndex((end) => end <= flag.left);
      if (band < 0) band = ends.push(0) - 1;
      ends[band] = flag.left + flag.wide + 6;
      flag.band = band;
    }
    return ends.length;
  }

  drawScale(pen, top, height) {
    const step = stepOf(this.to - this.from, this.width - this.left);
    for (let at = 0; at <= this.to - this.from; at += step) {
      const x = this.x(this.from + at);
      const text = tick(at, step);
      const half = pen.measureText(text).width / 2;
      this.fill(pen, "line", x, top, 1, height - AXIS - top);
      pen.fillStyle = colour("faint");
      pen.textAlign = "center";
      // The last one may have no room at the edge.
      if (x + half < this.width) pen.fillText(text, Math.max(x, half + 2), height - AXIS / 2);
    }
  }

  drawRow(pen, one, top) {
    const gap = this.row > 12 ? 3 : 1;
    const middle = top + Math.max((NAME - this.row) / 2, 0) * (this.left === LABEL ? 1 : 0);
    for (const item of one.bars ?? []) {
      const [x, y] = [this.x(item.from), middle + item.stack * this.row + gap];
      const wide = Math.max(this.x(item.to) - x - 1, 2);
      this.fill(pen, item.fill, x, y, wide, this.row - 2 * gap, item.pale ? 0.45 : 0.9);
      this.hits.push({ item, x, y, wide, high: this.row - 2 * gap });
    }
    for (const item of one.marks ?? []) {
      const x = this.x(item.at);
      const high = item.tall ? this.row - 4 : this.row - 9;
      this.fill(pen, item.fill, x - 1, top + (this.row - high) / 2, 2, high);
      this.hits.push({ item, x: x - 1, y: top, wide: 2, high: this.row });
    }
  }

  drawFlag(pen, flag, bottom) {
    const [x, y] = [this.x(flag.at), flag.band * FLAG + 1];
    this.fill(pen, flag.fill, x - 0.75, y, 1.5, bottom - y);
    this.fill(pen, flag.fill, flag.left, y, flag.wide, FLAG - 2);
    Object.assign(pen, { fillStyle: colour("ground"), textAlign: "left" });
    pen.fillText(flag.name, flag.left + 4, y + FLAG / 2 - 0.5);
    this.hits.push({ item: flag, x: flag.left, y, wide: flag.wide, high: FLAG - 2 });
  }

  outline(pen, item) {
    const hit = this.hits.find((one) => one.item === item);
    if (!hit) return;
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    pen.strokeRect(hit.x - 2, hit.y - 1, hit.wide + 4, hit.high + 2);
  }

  under({ offsetX: x, offsetY: y }) {
    let best = null;
    for (const hit of this.hits ?? []) {
      if (y < hit.y || y > hit.y + hit.high) continue;
      const away = x < hit.x ? hit.x - x : Math.max(x - hit.x - hit.wide, 0);
      if (away <= MARK && (!best || away < best.away)) best = { ...hit, away };
    }
    return best?.item ?? null;
  }

  show(item) {
    this.tip.hidden = !item;
    if (!item) return;
    const at = item.from ?? item.at;
    const lasted = item.from === undefined ? "" : `, ${duration(item.to - item.from)}`;
    this.tip.textContent = `${duration(at - this.from)}${lasted} · ${item.text}`;
    const hit = this.hits.find((one) => one.item === item);
    const room = this.node.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(Math.min(hit.x, room), 0)}px`;
    this.tip.style.top = `${hit.y + hit.high + 6}px`;
  }

  walk(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (event.key === "Enter" && this.at >= 0) return this.items[this.at].open?.();
    if (event.key === "Escape") return this.show(null);
    if (!by || !this.items.length) return undefined;
    event.preventDefault();
    this.at = Math.min(Math.max(this.at + by, 0), this.items.length - 1);
    this.draw();
    return this.show(this.items[this.at]);
  }
}
