// Values that the page of a trend draws, of what `fathom history trend --json` prints.

import { isName } from '../axes.mjs';
import { percent } from './lab.mjs';

/** Returns the values of a trend's figures, series by series. */
export function drawn([all]) {
  return all.flatMap((one) => {
    const { metric, runs, changes } = one;
    const title = (shown) => isOf(one, shown, `${metric} of each run: `);
    const values = runs.map(({ value }, at) => ({ x: at + 1, y: value }));
    const course = { title, panel: 0, series: 'run', values };
    if (changes.length === 0) return [course];
    const number = (run) => runs.findIndex((one) => one.run === run);
    const levels = changes.map(({ run, after }) => ({ x: number(run) + 0.5, y: after }));
    return [
      course,
      { title, panel: 0, series: 'level', values: levels },
      {
        title: (shown) => isOf(one, shown, 'Size of each change: '),
        rows: changes.map(({ run, ratio }) => ({
          name: `before run ${run}`,
          value: percent(ratio.estimate),
          low: percent(ratio.low),
          high: percent(ratio.high),
        })),
      },
    ];
  });
}

/** Returns whether a title is that of a series: `…plan 27 (jobs), machine 4, 40 runs`. */
function isOf({ series, runs }, title, begin) {
  const end = `, machine ${series.machine}, ${runs.length} run${runs.length === 1 ? '' : 's'}`;
  if (!title.startsWith(begin) || !title.endsWith(end)) return false;
  const head = title.slice(begin.length, -end.length);
  if (!series.lab) return head.startsWith(`plan ${series.plan} (`);
  const { name, axes, variant } = series.lab;
  const parts = ['lab', name, JSON.stringify(axes), variant].filter((part) => part !== '');
  return isName(head, parts.join(' '));
}
