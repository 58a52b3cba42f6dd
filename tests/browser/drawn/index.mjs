// What the figures of a page are drawn from, by its subject: each module returns the values that a
// reader of the documents looks for in the figures.

import { readFile } from 'node:fs/promises';

import * as comparison from './comparison.mjs';
import * as fio from './fio.mjs';
import * as lab from './lab.mjs';
import * as logs from './logs.mjs';
import * as run from './run.mjs';
import * as trend from './trend.mjs';

/**
 * Returns the values that the figures of a page show: each with the figure's title, and either
 * `values` of a panel (by its number, or by `up`, its label), or `rows` of intervals.
 */
export async function drawnValues({ subject, sources }) {
  const texts = await Promise.all(sources.map((path) => readFile(path, 'utf8')));
  const documents = subject === 'logs' ? texts : texts.map((text) => JSON.parse(text));
  return SUBJECTS[subject].drawn(documents);
}

const SUBJECTS = { comparison, fio, lab, logs, run, trend };
