//! The graph as SVG: the main chain from top to bottom, other obstacles next to it.
//!
//! General layout algorithms break cycles apart to get layers. Here the cycle is what matters, so it is drawn as one: a
//! column, and an arrow from its bottom back to its top.

use super::graph::{Graph, GraphNode};

const BOX_WIDTH: i32 = 330;
const LINE: i32 = 18;
const PADDING: i32 = 12;
/// Space between boxes for an arrow and its label.
const GAP: i32 = 52;
const MARGIN: i32 = 24;
/// Space to the left of the column for the arrow back to the top.
const LANE: i32 = 110;
/// Space between the columns.
const ASIDE: i32 = 250;
/// Maximum number of characters in a line of a box.
const WRAP: usize = 42;

struct Placed {
    x: i32,
    y: i32,
    height: i32,
    lines: Vec<String>,
}

impl Placed {
    fn middle(&self) -> i32 {
        self.x + BOX_WIDTH / 2
    }

    fn bottom(&self) -> i32 {
        self.y + self.height
    }

    fn centre(&self) -> i32 {
        self.y + self.height / 2
    }
}

impl Graph {
    /// The SVG, readable without colours and on light and dark pages.
    pub fn to_svg(&self) -> String {
        let placed = self.place();
        let aside = self.nodes.iter().any(|node| !node.main);
        let mut width = MARGIN + LANE + BOX_WIDTH + MARGIN;
        width += if aside { ASIDE + BOX_WIDTH } else { 170 };
        let foot = placed.iter().map(Placed::bottom).max().unwrap_or(0);
        let height = foot + MARGIN + 28;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" \
             role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n<defs>\n",
            escape(&self.title)
        );
        for (id, color) in [("plain", "#555"), ("cycle", "#c62828")] {
            svg.push_str(&format!(
                "<marker id=\"{id}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerUnits=\"userSpaceOnUse\" markerWidth=\"11\" markerHeight=\"11\" \
                 orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" fill=\"{color}\"/></marker>\n"
            ));
        }
        svg.push_str("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
        svg.push_str(&format!(
            "<text x=\"{MARGIN}\" y=\"30\" class=\"title\">{}</text>\n",
            escape(&self.title)
        ));
        for edge in &self.edges {
            self.arrow(&mut svg, &placed, edge.from, edge.to, (&edge.label, edge.cycle));
        }
        for (index, (node, place)) in self.nodes.iter().zip(&placed).enumerate() {
            draw(&mut svg, node, place, self.in_cycle(index));
        }
        let cycle = self.edges.iter().any(|edge| edge.cycle);
        let legend = if cycle {
            "An arrow means 'waits for'. Red and bold: the cycle, in which nothing can come first."
        } else {
            "An arrow means 'waits for'. Dashed: what never happens."
        };
        svg.push_str(&format!(
            "<text x=\"{MARGIN}\" y=\"{}\" class=\"label\">{legend}</text>\n",
            height - 14
        ));
        svg.push_str("</svg>\n");
        svg
    }

    fn place(&self) -> Vec<Placed> {
        let mut column = MARGIN + 30;
        let mut side_column = MARGIN + 30;
        let mut placed: Vec<Placed> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let lines = wrapped(node);
            let height = LINE * i32::try_from(lines.len()).unwrap_or(1) + 2 * PADDING - 4;
            let x = MARGIN + LANE + if node.main { 0 } else { BOX_WIDTH + ASIDE };
            let y = if node.main {
                column
            } else {
                // Next to the box that waits for it, if there is space.
                let waiting = self.edges.iter().find(|edge| edge.to == index && edge.from < index);
                waiting
                    .and_then(|edge| placed.get(edge.from))
                    .map_or(side_column, |from| from.y.max(side_column))
            };
            if node.main {
                column = y + height + GAP;
            } else {
                side_column = y + height + GAP;
            }
            placed.push(Placed { x, y, height, lines });
        }
        placed
    }

    fn arrow(
        &self,
        svg: &mut String,
        placed: &[Placed],
        from: usize,
        to: usize,
        (label, cycle): (&str, bool),
    ) {
        let (a, b) = (&placed[from], &placed[to]);
        let class = if cycle { "cycle" } else { "plain" };
        let label = escape(label);
        let (path, x, y, anchor) = if a.x == b.x && b.y >= a.bottom() && b.y - a.bottom() <= GAP {
            let (x, y) = (a.middle(), a.bottom());
            (format!("M{x} {y}V{}", b.y - 2), x + 10, (y + b.y) / 2 + 4, "start")
        } else if a.x == b.x {
            // Around the column: on the left for the main one, on the right for the other.
            let main = self.nodes[from].main;
            let side = if main { a.x } else { a.x + BOX_WIDTH };
            let lane = if main { side - 56 } else { side + 40 };
            let (start, end) = (a.centre(), b.centre());
            let middle = (start + end) / 2;
            let path = format!(
                "M{side} {start}C{lane} {start} {lane} {start} {lane} {middle}S{lane} {end} {} {end}",
                if main { side - 2 } else { side + 2 }
            );
            (path, lane - 6, middle, "middle")
        } else if a.x < b.x {
            let (start, end) = (a.x + BOX_WIDTH, b.x);
            let bend = (start + end) / 2;
            let path = format!(
                "M{start} {}C{bend} {} {bend} {} {} {}",
                a.centre(),
                a.centre(),
                b.centre(),
                end - 2,
                b.centre()
            );
            (path, bend, a.centre().min(b.centre()) - 8, "middle")
        } else {
            let (start, end) = (a.x, b.x + BOX_WIDTH);
            let bend = (start + end) / 2;
            let path = format!(
                "M{start} {}C{bend} {} {bend} {} {} {}",
                a.centre(),
                a.centre(),
                b.centre(),
                end + 2,
                b.centre()
            );
            (path, bend, (a.centre() + b.centre()) / 2 + 16, "middle")
        };
        svg.push_str(&format!("<path d=\"{path}\" class=\"{class}\" marker-end=\"url(#{class})\"/>\n"));
        let turned = a.x == b.x && anchor == "middle";
        let turn = if turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
        svg.push_str(&format!(
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"label\"{turn}>{label}</text>\n"
        ));
    }
}

const STYLE: &str = ".box{fill:#f6f8fa;stroke:#555;stroke-width:1.2}.red{stroke:#c62828;stroke-width:2.6}\
.workload{fill:#e3f2fd}.never{fill:#fff8e1;stroke-dasharray:5 3}.plain{fill:none;stroke:#555;stroke-width:1.4}\
.cycle{fill:none;stroke:#c62828;stroke-width:2.4}.label{fill:#444;font-size:12px}.place{fill:#666;font-size:11px}\
.title{font-weight:bold;font-size:15px;fill:#222}text{fill:#222}";

fn draw(svg: &mut String, node: &GraphNode, place: &Placed, cycle: bool) {
    let mut class = String::from("box");
    for (is, name) in [(node.workload, " workload"), (node.never, " never"), (cycle, " red")] {
        if is {
            class.push_str(name);
        }
    }
    svg.push_str(&format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{BOX_WIDTH}\" height=\"{}\" rx=\"7\" class=\"{class}\"/>\n",
        place.x, place.y, place.height
    ));
    for (number, line) in place.lines.iter().enumerate() {
        let of_place = !node.place.is_empty() && number + 1 == place.lines.len();
        let class = if of_place { " class=\"place\"" } else { "" };
        let y = place.y + PADDING + LINE * i32::try_from(number).unwrap_or(0) + 9;
        svg.push_str(&format!(
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"middle\"{class}>{}</text>\n",
            place.middle(),
            escape(line)
        ));
    }
}

fn wrapped(node: &GraphNode) -> Vec<String> {
    let mut lines = wrap(&node.title);
    if !node.place.is_empty() {
        // The end of a path is more informative than its beginning.
        let count = node.place.chars().count();
        let place = match node.place.char_indices().nth(count.saturating_sub(48)) {
            Some((at, _)) if count > 48 => format!("...{}", &node.place[at..]),
            _ => node.place.clone(),
        };
        lines.push(place);
    }
    lines
}

fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split_whitespace() {
        // A word that is longer than a line, such as a taint, is broken after a slash.
        for part in pieces(word) {
            let space = usize::from(length > 0 && !part.1);
            let long = part.0.chars().count();
            if length > 0 && length + space + long > WRAP {
                lines.push(String::new());
                length = 0;
            }
            if let Some(line) = lines.last_mut() {
                if space > 0 && length > 0 {
                    line.push(' ');
                    length += 1;
                }
                line.push_str(part.0);
                length += long;
            }
        }
    }
    lines
}

/// Divides a word into pieces that fit into a line, broken after a slash if possible; the flag says that there is no
/// space in front of the piece.
fn pieces(word: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while rest.chars().count() > WRAP - 8 {
        let most = rest.char_indices().nth(WRAP - 8).map_or(rest.len(), |(at, _)| at);
        let at = rest[..most].rfind('/').map_or(most, |slash| slash + 1);
        pieces.push((&rest[..at], !pieces.is_empty()));
        rest = &rest[at..];
    }
    pieces.push((rest, !pieces.is_empty()));
    pieces
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
