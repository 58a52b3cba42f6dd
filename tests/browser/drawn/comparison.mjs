// Values that the page of a comparison draws, of what `fathom compare --json` prints.

import { percent } from './lab.mjs';

/** Returns the values of a comparison's figures. */
export function drawn([{ metrics }]) {
  const judged = metrics.filter(({ ratio }) => ratio !== null);
  return [
    ...metrics.flatMap((metric) =>
      ['before', 'after'].map((side) => ({
        title: 'Values of each run, in the order of each side',
        up: `${name(metric)}, ${shownUnit(metric)}`,
        series: side,
        values: metric[side].values.map((value, at) => ({ x: at + 1, y: inUnit(metric, value) })),
      })),
    ),
    {
      title: 'Change from the first side to the second',
      rows: judged.map((metric) => ({
        name: name(metric),
        value: percent(metric.ratio),
        low: percent(metric.low),
        high: percent(metric.high),
      })),
    },
  ];
}

function name({ group, metric }) {
  return group ? `${group}: ${metric}` : metric;
}

function shownUnit({ unit }) {
  return { ns: 'µs', 'B/s': 'MiB/s' }[unit] ?? unit;
}

function inUnit({ unit }, value) {
  return value / ({ ns: 1e3, 'B/s': 2 ** 20 }[unit] ?? 1);
}
