// Time lines on a canvas: rows of bars and marks, to be pointed at or walked through with the arrow keys.

const ROW = 18;
const LABEL = 104;
const AXIS = 20;
const MARK = 5;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Steps of a scale that are easy to read.
function step(span, room) {
  const least = span / Math.max(room / 80, 1);
  const tens = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * tens).find((n) => n >= least) ?? 10 * tens;
}

// Puts bars that overlap into rows of their own.
function stacked(bars) {
  const ends = [];
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    let row = ends.findIndex((end) => end <= bar.from);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = bar.to;
    bar.stack = row;
  }
  return Math.max(ends.length, 1);
}

// One listener for all: those that are drawn anew are not kept.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const node of document.querySelectorAll(".line")) node.line?.draw();
});

class TimeLine {
  // `rows`: [{label, bars: [{from, to, fill, text, open}], marks: [{at, fill, tall, text, open}]}]
  constructor({ from, to, rows, label, row = ROW }) {
    Object.assign(this, { from, to: Math.max(to, from + 1), at: -1, row });
    this.rows = rows.filter((row) => row.bars?.length || row.marks?.length);
    for (const row of this.rows) row.height = row.bars?.length ? stacked(row.bars) : 1;
    this.canvas = make("canvas", { tabIndex: 0, role: "img", ariaLabel: `${label}; arrow keys walk through it` });
    this.tip = make("div", { className: "tip", hidden: true, role: "status" });
    this.node = make("div", { className: "line" }, this.canvas, this.tip);
    this.items = this.rows
      .flatMap((row) => [...(row.bars ?? []), ...(row.marks ?? [])])
      .sort((a, b) => (a.from ?? a.at) - (b.from ?? b.at));
    this.canvas.addEventListener("mousemove", (event) => this.show(this.under(event)));
    this.canvas.addEventListener("mouseleave", () => this.show(null));
    this.canvas.addEventListener("click", (event) => this.under(event)?.open?.());
    this.canvas.addEventListener("keydown", (event) => this.walk(event));
    new ResizeObserver(() => requestAnimationFrame(() => this.node.clientWidth !== this.width && this.draw())).observe(this.node);
    this.node.line = this;
  }

  x(at) {
    return this.left + ((at - this.from) / (this.to - this.from)) * (this.width - this.left - 8);
  }

  draw() {
    const width = this.node.clientWidth;
    if (!width) return;
    const height = this.rows.reduce((sum, row) => sum + row.height * this.row, AXIS + 4);
    const dots = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * dots, height: height * dots });
    this.canvas.style.height = `${height}px`;
    Object.assign(this, { width, left: width < 480 ? 64 : LABEL });
    const pen = this.canvas.getContext("2d");
    pen.scale(dots, dots);
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    const [line, faint] = [colour("line"), colour("faint")];
    const every = step(this.to - this.from, width - this.left);
    for (let at = 0; at <= this.to - this.from; at += every) {
      const x = this.x(this.from + at);
      pen.fillStyle = line;
      pen.fillRect(x, 0, 1, height - AXIS);
      pen.fillStyle = faint;
      pen.textAlign = x > width - 40 ? "right" : "center";
      pen.fillText(every < 1000 ? `${at} ms` : `${at / 1000} s`, x, height - AXIS / 2);
    }
    const gap = this.row > 12 ? 3 : 1;
    this.hits = [];
    let top = 2;
    for (const row of this.rows) {
      pen.fillStyle = faint;
      pen.textAlign = "left";
      pen.fillText(row.label, 6, top + Math.max(this.row, 12) / 2, this.left - 10);
      for (const bar of row.bars ?? []) {
        const [x, y] = [this.x(bar.from), top + bar.stack * this.row + gap];
        const wide = Math.max(this.x(bar.to) - x - 1, 2);
        pen.fillStyle = colour(bar.fill);
        pen.globalAlpha = bar.pale ? 0.45 : 0.9;
        pen.fillRect(x, y, wide, this.row - 2 * gap);
        this.hits.push({ item: bar, x, y, wide, high: this.row - 2 * gap });
      }
      pen.globalAlpha = 1;
      for (const mark of row.marks ?? []) {
        const x = this.x(mark.at);
        const high = mark.tall ? this.row - 4 : this.row - 9;
        pen.fillStyle = colour(mark.fill);
        pen.fillRect(x - 1, top + (this.row - high) / 2, 2, high);
        this.hits.push({ item: mark, x: x - 1, y: top, wide: 2, high: this.row });
      }
      top += row.height * this.row;
    }
    if (this.at >= 0) this.outline(pen, this.items[this.at]);
  }

  outline(pen, item) {
    const hit = this.hits.find((hit) => hit.item === item);
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
    const lasted = item.from === undefined ? "" : `, ${seconds(item.to - item.from)}`;
    this.tip.textContent = `${seconds(at - this.from)}${lasted} · ${item.text}`;
    const hit = this.hits.find((hit) => hit.item === item);
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
