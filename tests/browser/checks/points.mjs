// Points read off the figures are the numbers of the JSON within a pixel.
//
// A figure is read as a reader does: by the ticks of its axes and their labels (`axes.mjs`). The
// program does not say where it put a value.

import { isName, readFigures } from '../axes.mjs';
import { on } from '../browser.mjs';
import { drawnValues } from '../drawn/index.mjs';

export const name = 'points';

export const applies = ({ subject }) => subject !== undefined;

export async function run(browser, page) {
  const figures = await on(browser, page.url, { script: false }, readFigures);
  const wanted = await drawnValues(page);
  if (wanted.length === 0) return ['no value to look for'];
  return wanted.flatMap((one) => {
    const is = typeof one.title === 'function' ? one.title : (title) => isName(title, one.title);
    const named = figures.filter(({ title }) => is(title));
    if (named.length === 0) return [`no figure ${one.title}`];
    const title = named[0].title;
    return one.rows ? heldRows(named, title, one.rows) : held(named, title, one);
  });
}

/** Returns a finding for each value that no line of the panel goes through. */
function held(figures, title, { panel, up, series, values }) {
  const all = figures.flatMap(({ panels }) => panels);
  const frame = up === undefined ? all[panel] : all.find((one) => isName(one.up, up));
  const name = [title, up ?? `panel ${panel}`, series].filter(Boolean).join(': ');
  if (!frame) return [`${name}: no such panel`];
  if (values.length === 0) return [`${name}: no value to look for`];
  const distance = ({ x, y }) => frame.distance(x, y, series);
  const far = values.filter((point) => !(distance(point) <= 1));
  const shown = far.map((point) => {
    const away = distance(point).toFixed(1);
    return `${name}: ${point.y} at ${point.x} is ${away} px from the nearest point`;
  });
  return few(shown, values.length);
}

/** Returns a finding for each estimate and interval that no row shows; they are in order. */
function heldRows(figures, title, wanted) {
  const rows = figures.flatMap((figure) => figure.rows);
  if (rows.length !== wanted.length) return [`${title}: ${rows.length} of ${wanted.length} rows`];
  const findings = wanted.flatMap(({ name, value, low, high }, at) => {
    const row = rows[at];
    const where = `${title}: row ${name}`;
    if (!isName(row.name, name)) return [`${where}: shown as ${row.name}`];
    const away = value === undefined ? 0 : row.mark(value);
    // Of an interval without a length there is no bar to be seen.
    const ends = low === undefined || low === high ? 0 : row.bar(low, high);
    return [
      ...(away <= 1 ? [] : [`${where}: the mark is ${away.toFixed(1)} px from ${value}`]),
      ...(ends <= 1 ? [] : [`${where}: the bar is ${ends.toFixed(1)} px off`]),
    ];
  });
  return few(findings, wanted.length);
}

function few(findings, all) {
  const left = findings.length - SHOWN;
  return left > 0 ? [...findings.slice(0, SHOWN), `and ${left} more of ${all}`] : findings;
}

/** Findings of a figure that are shown. */
const SHOWN = 3;

export const breaks = {
  'lines and marks moved up': (html) => moved(html, 0, -3),
  'lines and marks moved to the side': (html) => moved(html, 3, 0),
  'wrong labels': (html) =>
    html.replaceAll(/text-anchor="(end|middle)">(\d+)/g, (_, end, label) => {
      return `text-anchor="${end}">1${label}`;
    }),
  'bars moved to the side': (html, { subject }) =>
    WITH_BARS.includes(subject)
      ? html.replaceAll(/<line x1="([\d.]+)"([^>]*class="thin)/g, (_, x, rest) => {
          return `<line x1="${Number(x) + 3}"${rest}`;
        })
      : undefined,
};

/** Subjects whose pages have intervals. */
const WITH_BARS = ['lab', 'comparison', 'trend'];

/** Moves all lines and marks by some pixels. */
function moved(html, right, down) {
  const lines = html.replaceAll(/points="([^"]*)"/g, (_, points) => {
    const places = points.split(' ').map((place) => place.split(',').map(Number));
    return `points="${places.map(([x, y]) => `${x + right},${y + down}`).join(' ')}"`;
  });
  return lines.replaceAll(/translate\(([-\d.]+) ([-\d.]+)\)/g, (_, x, y) => {
    return `translate(${Number(x) + right} ${Number(y) + down})`;
  });
}
