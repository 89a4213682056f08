#include "watch/live_server.h"

namespace weir::watch {

// All text from the watch goes in by textContent, so a name cannot become markup.
std::string_view LivePageHtml() {
  return R"html(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weir watch</title>
<style>
body { font: 14px system-ui, sans-serif; margin: 1rem; color: #1b1b1b; background: #fafafa; }
h1 { font-size: 1.2rem; margin: 0 0 .3rem; }
#summary { margin-bottom: 1rem; }
#tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1rem; }
.tile { background: #fff; border: 1px solid #ccc; border-radius: 4px; padding: .5rem; }
.tile h2 { font-size: .95rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
.view { position: relative; background: #ddd; min-height: 4rem; }
.view img { display: block; width: 100%; }
.box { position: absolute; border: 2px solid #c03; box-sizing: border-box; }
.box span { position: absolute; left: -2px; top: 100%; background: #c03; color: #fff; font-size: 11px; padding: 0 3px;
  white-space: nowrap; }
.box.known { border-color: #06733c; }
.box.known span { background: #06733c; }
.late { color: #a00; font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin-top: .3rem; }
td { padding: 1px 4px; border-top: 1px solid #eee; }
td:last-child { text-align: right; font-variant-numeric: tabular-nums; }
.fault td { color: #a00; }
</style>
<h1>weir watch</h1>
<div id="summary" role="status">waiting for the first frame</div>
<div id="tiles"></div>
<noscript>This page needs its own script. The same figures stand at /state.json and /metrics.</noscript>
<script>
"use strict";
const number = (value, digits = 1) => value === undefined || value === null ? "-" : value.toFixed(digits);
const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};
const tiles = [];

function labelOf(object) {
  const parts = [];
  if (object.name) parts.push(object.name);
  else if (object.label) parts.push(object.label);
  else if (object.class !== undefined) parts.push("class " + object.class);
  if (object.similarity !== undefined) parts.push(number(object.similarity, 2));
  else if (object.score !== undefined) parts.push(number(object.score, 2));
  if (object.track !== undefined) parts.push("track " + object.track);
  return parts.join(", ");
}

function tileAt(index) {
  if (tiles[index]) return tiles[index];
  const tile = { root: make("section", "tile"), title: make("h2"), view: make("div", "view"), image: make("img"),
    boxes: make("div"), latency: make("div", "latency"), whole: make("div", "names"), table: make("table"), seen: null };
  tile.image.alt = "";
  tile.image.hidden = true;
  tile.image.onload = () => { tile.image.hidden = false; };
  tile.view.append(tile.image, tile.boxes);
  tile.root.append(tile.title, tile.view, tile.latency, tile.whole, tile.table);
  document.getElementById("tiles").append(tile.root);
  tiles[index] = tile;
  return tile;
}

function drawTile(index, data, deadline) {
  const tile = tileAt(index), { stream, last } = data;
  tile.title.textContent = stream.name;
  if (last && tile.seen !== last.sequence) {
    tile.seen = last.sequence;
    tile.image.src = "/frame/" + index + ".jpg?" + last.sequence;
    tile.image.alt = "frame " + last.sequence + " of " + stream.name;
    const boxes = [], whole = [];
    for (const object of last.objects) {
      if (!object.box) { whole.push(labelOf(object)); continue; }
      const [x0, y0, x1, y1] = object.box;
      const box = make("div", object.name ? "box known" : "box");
      Object.assign(box.style, { left: 100 * x0 + "%", top: 100 * y0 + "%", width: 100 * (x1 - x0) + "%", height: 100 * (y1 - y0) + "%" });
      box.append(make("span", "", labelOf(object)));
      boxes.push(box);
    }
    tile.boxes.replaceChildren(...boxes);
    tile.whole.textContent = whole.join("; ");
    tile.latency.textContent = "latency " + number(last.latency_ms) + " ms, captured by " + last.capture_source;
    tile.latency.classList.toggle("late", !last.in_time);
  }
  const rows = [];
  const row = (words, value, name) => {
    const line = make("tr", name);
    line.append(make("td", "", words), make("td", "", value));
    rows.push(line);
  };
  row("captured", stream.frames.captured);
  row("answered", stream.frames.answered);
  row("in time", stream.in_time_percent === undefined ? "-" : number(stream.in_time_percent) + " %");
  if (stream.latency_ms) row("latency p50, p99", number(stream.latency_ms.p50) + ", " + number(stream.latency_ms.p99) + " ms");
  for (const [cause, count] of Object.entries(stream.frames.dropped)) row("dropped: " + cause, count, "drop");
  for (const fault of stream.faults) row("fault: " + fault.kind, fault.count, "fault");
  tile.table.replaceChildren(...rows);
}

function draw(state) {
  const f = state.frames;
  let words = f.captured + " frames captured, " + f.answered + " answered, " + number(state.in_time_percent) + " % within "
    + number(state.deadline_ms, 0) + " ms";
  if (state.latency_ms) words += "; latency p50 " + number(state.latency_ms.p50) + " ms, p99 " + number(state.latency_ms.p99) + " ms";
  words += "; model " + state.model;
  if (state.finished) words += "; finished";
  document.getElementById("summary").textContent = words;
  state.tiles.forEach((tile, index) => drawTile(index, tile, state.deadline_ms));
  while (tiles.length > state.tiles.length) tiles.pop().root.remove();
}

async function follow() {
  try {
    const answer = await fetch("/state.json", { cache: "no-store" });
    draw(await answer.json());
  } catch (error) {
    document.getElementById("summary").textContent = "the watch has ended or cannot be reached";
  }
  setTimeout(follow, 500);
}
follow();
</script>
</html>
)html";
}

}  // namespace weir::watch
