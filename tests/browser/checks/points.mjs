// Points read off the figures are the numbers of the JSON within a pixel.
//
// A figure is read as a reader does: by the ticks of its axes and their labels (`axes.mjs`). The
// program does not say where it put a value.

import { readFile } from 'node:fs/promises';

import { readFigures } from '../axes.mjs';
import { on } from '../browser.mjs';

export const name = 'points';

export const applies = ({ run }) => run !== undefined;

export async function run(browser, { url, run: path }) {
  const report = JSON.parse(await readFile(path, 'utf8'));
  const figures = await on(browser, url, { script: false }, readFigures);
  const findings = [];
  const { jobs, fathom } = report;
  const curve = figures.find(({ title }) => title === 'Latency by percentile');
  for (const latency of jobs.flatMap(latencies)) {
    findings.push(...held(curve, 0, 'Latency by percentile', percentiles(latency)));
  }
  for (const timeline of fathom.timelines.filter(({ windows }) => windows.length > 2)) {
    const title = `Group ${timeline.groupid}, ${timeline.direction}`;
    const figure = figures.find((one) => one.title === title);
    findings.push(...held(figure, 0, title, rates(timeline)));
    if (timeline.latency) findings.push(...held(figure, 1, title, largest(timeline)));
  }
  return findings;
}

/** Returns a latency of each direction with ops: from when work was due, where that is known. */
function latencies(job) {
  const directions = ['read', 'write'].filter((direction) => job[direction].total_ios > 0);
  return directions.map((direction) => job.fathom?.[direction]?.resp_ns ?? job[direction].clat_ns);
}

/** Returns p90, p99 and p99.9 over 1/(1 − p), as far as ten ops lie beyond. */
function percentiles({ N: ops, percentile }) {
  const shares = { '90.000000': 10, '99.000000': 100, '99.900000': 1000 };
  const told = Object.entries(shares).filter(([, across]) => ops / across >= 10);
  return told.map(([percent, x]) => ({ x, y: percentile[percent] / 1e3 }));
}

/** Returns IOPS at the start of each whole window. */
export function rates(timeline) {
  return whole(timeline).map(({ x, ios }) => ({ x, y: ios / (timeline.window_ns / 1e9) }));
}

/** Returns the largest latency of each window with ops, µs. */
function largest(timeline) {
  const used = whole(timeline).filter(({ ios }) => ios > 0);
  return used.map(({ x, max }) => ({ x, y: max / 1e3 }));
}

/** Returns the windows that were measured to their end, by the time of their start. */
function whole({ columns, windows, start_ns: start, end_ns: end, window_ns: width }) {
  const [at, ios, max] = ['start_ns', 'ios', 'max_ns'].map((column) => columns.indexOf(column));
  const rows = windows.map((row) => ({ x: (start + row[at]) / 1e9, ios: row[ios], max: row[max] }));
  return rows.filter(({ x }) => x * 1e9 + width <= end + 1);
}

/** Returns a finding for each value that no line of the panel goes through. */
function held(figure, panel, title, values) {
  const frame = figure?.panels[panel];
  if (!frame) return [`${title}: no panel ${panel}`];
  if (values.length === 0) return [`${title}: no value to look for`];
  const far = values.filter(({ x, y }) => !(frame.distance(x, y) <= 1));
  const shown = far.slice(0, 3).map(({ x, y }) => {
    const away = frame.distance(x, y).toFixed(1);
    return `${title}: panel ${panel}: ${y} at ${x} is ${away} px from the nearest point`;
  });
  return far.length > 3 ? [...shown, `and ${far.length - 3} more of ${values.length}`] : shown;
}

export const breaks = {
  'a line moved up': (html) => moved(html, 0, -3),
  'a line moved to the side': (html) => moved(html, 3, 0),
  'a wrong label': (html) =>
    html.replaceAll(/text-anchor="end">(\d+)/g, (_, label) => `text-anchor="end">1${label}`),
};

/** Moves all lines by some pixels. */
function moved(html, right, down) {
  return html.replaceAll(/points="([^"]*)"/g, (_, points) => {
    const places = points.split(' ').map((place) => place.split(',').map(Number));
    return `points="${places.map(([x, y]) => `${x + right},${y + down}`).join(' ')}"`;
  });
}
