"use strict";
(() => {
const $ = id => document.getElementById(id);
const DIRECTIONS = ["read", "write", "trim"];
const PERCENTILES = ["p50", "p90", "p99", "p99.9"];
const SECONDS = 180;
let figures = null, paused = false, track = 0;

const scaled = (value, base, units) => {
  let at = 0;
  while (value >= base && at < units.length - 1) { value /= base; at += 1; }
  return `${value >= 100 || at === 0 && value % 1 === 0 ? Math.round(value) : value.toPrecision(3)} ${units[at]}`;
};
const count = value => scaled(value, 1000, ["", "k", "M", "G"]).trim();
const bytes = value => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const time = ns => ns === null || ns === undefined ? "–" : scaled(ns, 1000, ["ns", "µs", "ms", "s"]);

const cell = (name, text) => {
  const node = document.createElement(name);
  node.textContent = text;
  return node;
};
const fill = (id, heads, rows) => {
  const table = $(id), head = document.createElement("tr");
  for (const text of heads) { const th = cell("th", text); th.scope = "col"; head.append(th); }
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows.map(row => {
    const line = document.createElement("tr");
    row.forEach((text, at) => {
      const one = cell(at === 0 ? "th" : "td", text);
      if (at === 0) one.scope = "row";
      line.append(one);
    });
    return line;
  }));
};

const inFlight = row => row.in_flight === null ? "–" : `${row.in_flight.toFixed(1)} / ${row.depth}`;
const latencies = (row, which) => row[which] ? row[which].percentiles_ns.map(time) : PERCENTILES.map(() => "–");

const drawState = () => {
  const f = figures;
  const parts = [f.phase, `${(f.elapsed_ms / 1000).toFixed(1)} s`, `${f.running} of ${f.planned} jobs run`];
  if (f.percent !== null) parts.push(`${f.percent.toFixed(0)} %`);
  if (f.eta_s !== null && f.phase === "running") parts.push(`about ${f.eta_s} s left`);
  if (paused) parts.push("view paused");
  $("state").textContent = parts.join(", ");
  document.title = `fathom: ${f.phase}`;
};

const drawTables = () => {
  const f = figures, shown = track === 0 ? f.total : f.groups[track - 1] || f.total;
  fill("latencies", ["direction", "IOPS", "bytes/s", ...PERCENTILES], shown.directions.flatMap(d => [
    [`${d.direction}, last second`, count(d.iops), bytes(d.bytes_per_s), ...latencies(d, "last")],
    [`${d.direction}, the run`, count(d.ios) + " ops", bytes(d.bytes), ...latencies(d, "run")],
  ]));
  const jobs = track === 0 ? f.jobs : f.jobs.filter(job => job.group === shown.group);
  const groups = track === 0 ? f.groups : [];
  const rows = [...groups, ...jobs].flatMap(row => {
    const first = [row.name, row.state, inFlight(row)];
    if (row.directions.length === 0) return [[...first, "–", "–", "–", "–", "–", "–", "–"]];
    return row.directions.map(d => [...first, d.direction, count(d.iops), bytes(d.bytes_per_s),
      ...latencies(d, "last")]);
  });
  if (f.more_jobs > 0) rows.push([`${f.more_jobs} more jobs`, "", "", "", "", "", "", "", "", ""]);
  fill("jobs", ["group or job", "state", "in flight", "direction", "IOPS", "bytes/s", ...PERCENTILES], rows);
  fill("disks", ["disk", "busy", "requests queued", "requests/s", "bytes/s"], f.disks.map(disk =>
    [disk.name, `${disk.util_percent.toFixed(0)} %`, disk.queue.toFixed(1), count(disk.iops),
      bytes(disk.bytes_per_s)]));
  const warnings = f.warnings.map(text => cell("li", text));
  if (f.more_warnings > 0) warnings.push(cell("li", `and ${f.more_warnings} more`));
  $("warnings").replaceChildren(...warnings);
};

const column = at => 50 + at * 670 / SECONDS;
const drawRate = columns => {
  const svg = $("rate"), first = columns.length ? columns[0].at_s : 0;
  const rates = columns.map(c => c.ios.map(ios => c.span_ns > 0 ? ios * 1e9 / c.span_ns : null));
  const top = Math.max(1, ...rates.flat().filter(rate => rate !== null));
  const nodes = [];
  const make = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    nodes.push(node);
  };
  make("text", { x: 2, y: 14 }, count(top));
  make("text", { x: 2, y: 152 }, "0");
  DIRECTIONS.forEach((name, at) => {
    if (!rates.some(rate => rate[at] > 0)) return;
    const points = [];
    rates.forEach((rate, index) => {
      if (rate[at] !== null) {
        points.push(`${column(columns[index].at_s - first).toFixed(1)},${(150 - 140 * rate[at] / top).toFixed(1)}`);
      }
    });
    if (points.length > 0) make("polyline", { class: `line-${name}`, points: points.join(" ") });
  });
  svg.replaceChildren(...nodes);
};

const lower = row => 2 ** Math.floor(row / 2) * (row % 2 ? 1.5 : 1);
const drawHeat = columns => {
  const canvas = $("heat"), paint = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  paint.clearRect(0, 0, canvas.width, canvas.height);
  const rows = columns.flatMap(c => c.heat.map(([row]) => row));
  if (rows.length === 0) { $("scale").textContent = "No latencies yet."; return; }
  const low = Math.min(...rows), high = Math.max(...rows), first = columns[0].at_s;
  const height = 230 / (high - low + 1), width = 670 / SECONDS;
  // The share of a second's ops, not their number: seconds with few ops stay visible.
  paint.fillStyle = style.getPropertyValue("--read");
  for (const c of columns) {
    const all = c.heat.reduce((sum, [, ops]) => sum + ops, 0);
    for (const [row, ops] of c.heat) {
      paint.globalAlpha = 0.15 + 0.85 * Math.sqrt(ops / all);
      paint.fillRect(column(c.at_s - first), 235 - (row - low + 1) * height, Math.ceil(width), height - 0.5);
    }
  }
  paint.globalAlpha = 1;
  paint.fillStyle = style.getPropertyValue("--ink");
  paint.font = "12px system-ui, sans-serif";
  paint.fillText(time(lower(high + 1)), 2, 14);
  paint.fillText(time(lower(low)), 2, 235);
  $("scale").textContent = `Each column is a second, each row half a power of two from ${time(lower(low))} to ` +
    `${time(lower(high + 1))}; the darker, the larger the share of that second's ops, of all directions.`;
};

// The numbers of the heat map: the rows that each second has, and the one with most of its ops.
const range = (from, to) => `${time(lower(from))} to ${time(lower(to + 1))}`;
const drawSpread = columns => {
  // An open table is built anew with each look; a closed one needs no work.
  if (!$("seconds").open) return;
  const rows = columns.filter(c => c.heat.length > 0).reverse().map(c => {
    const all = c.heat.reduce((sum, [, ops]) => sum + ops, 0);
    const [most, ops] = c.heat.reduce((a, b) => b[1] > a[1] ? b : a);
    const at = c.heat.map(([row]) => row), low = Math.min(...at), high = Math.max(...at);
    return [`${c.at_s} s`, String(all), range(low, low), range(high, high), range(most, most),
      `${(100 * ops / all).toFixed(1)} %`];
  });
  fill("spread", ["second", "ops", "lowest", "highest", "most ops", "share"], rows);
};

const draw = () => {
  if (figures === null) return;
  drawState();
  const names = figures.tracks.map(one => one.name), select = $("track");
  if (select.options.length !== names.length && names.length > 0) {
    select.replaceChildren(...names.map((name, at) => {
      const option = cell("option", name);
      option.value = at;
      return option;
    }));
    select.value = track;
  }
  drawTables();
  const columns = figures.tracks.length ? (figures.tracks[track] || figures.tracks[0]).columns : [];
  drawRate(columns);
  drawHeat(columns);
  drawSpread(columns);
};

$("track").addEventListener("change", event => { track = Number(event.target.value); draw(); });
$("pause").addEventListener("click", event => {
  paused = !paused;
  event.target.setAttribute("aria-pressed", paused);
  draw();
});
$("seconds").addEventListener("toggle", draw);
const events = new EventSource("/events");
events.onmessage = event => {
  const latest = JSON.parse(event.data);
  if (latest.phase === "ended") { events.close(); paused = false; }
  if (!paused) { figures = latest; draw(); }
};
events.onerror = () => {
  if (figures === null || figures.phase !== "ended") {
    $("state").textContent = "no connection: the run has ended, or this page lost it";
  }
};
})();
