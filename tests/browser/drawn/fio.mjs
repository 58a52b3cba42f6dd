// Values that the page of a report in fio's format draws; it has no course of the run.

import { percentiles } from './run.mjs';

/** Returns the values of the page's figures. */
export function drawn([{ jobs }]) {
  return percentiles(jobs, () => undefined);
}
