// Every number of the documents is in the page's text, with script off.
//
// Of fio's own report a page has what a record keeps, and of I/O logs what sums them up: these
// are named here, one by one.

import { readFile } from 'node:fs/promises';

import { on } from '../browser.mjs';
import { linesOf } from '../drawn/logs.mjs';

export const name = 'numbers';

export const applies = ({ documents, subject }) => documents.length > 0 || subject in PARTS;

export async function run(browser, { url, documents, subject, sources }) {
  const text = await on(browser, url, { script: false }, (page) =>
    page.evaluate(pageText),
  );
  const shown = new Set(text.match(NUMBER));
  const findings = [];
  for (const path of documents) {
    const numbers = numbersOf(await readFile(path, 'utf8'));
    findings.push(...missing(path, numbers, (number) => shown.has(number)));
  }
  if (subject in PARTS) {
    const values = [...shown].map(Number);
    for (const path of sources) {
      const { numbers, within } = PARTS[subject](await readFile(path, 'utf8'));
      const isShown = (number) => values.some((value) => Math.abs(value - number) <= within);
      findings.push(...missing(path, numbers, isShown));
    }
  }
  return findings;
}

/** Returns a finding for each number that is not shown. */
function missing(path, numbers, isShown) {
  if (numbers.length === 0) return [`${path}: no number`];
  const all = numbers.filter(({ number }) => !isShown(number));
  const findings = all.map(({ number, place }) => `${place}: ${number} is missing`);
  const left = findings.length - SHOWN;
  return left > 0 ? [...findings.slice(0, SHOWN), `and ${left} more`] : findings;
}

/** Returns the text of a page; cells of tables are apart. */
function pageText() {
  const parts = [...document.body.querySelectorAll('th, td')];
  for (const part of parts) part.append(' ');
  return document.body.textContent;
}

/** Returns the numbers of a JSON text as they are written there, each with the key before it. */
export function numbersOf(json) {
  const numbers = [];
  // Buckets of distributions, of which pages show curves.
  const told = json.replaceAll(/"bins"\s*:\s*\{[^}]*\}/g, '"bins": {}');
  let key = '';
  for (const [token, string, colon] of told.matchAll(TOKENS)) {
    if (string === undefined) numbers.push({ number: token, place: key });
    else if (colon) key = string;
  }
  return numbers;
}

/** Returns the numbers of fio's report that a record keeps, and how exactly the page has them. */
function keptOfFio(text) {
  const { jobs } = JSON.parse(text);
  const used = jobs.flatMap((job) =>
    ['read', 'write', 'trim'].map((direction) => ({ place: direction, of: job[direction] })),
  );
  const numbers = used
    .filter(({ of }) => of.total_ios > 0)
    .flatMap(({ place, of }) => {
      const rates = KEPT.map((key) => ({ number: of[key], place: `${place}.${key}` }));
      const { N: ops, min, max, mean, percentile } = of.clat_ns;
      const latencies = Object.entries({ ops, min, max, mean, ...percentile });
      const named = latencies.map(([key, number]) => ({ number, place: `${place}.clat_ns.${key}` }));
      return [...rates, ...named];
    });
  return { numbers, within: 0 };
}

/** Returns what sums up a latency log: its lines, and smallest, mean and largest value, µs. */
function sumsOfLog(text) {
  const values = linesOf(text).map(({ ns }) => ns / 1e3);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const sums = { lines: values.length, least: Math.min(...values), mean, most: Math.max(...values) };
  const numbers = Object.entries(sums).map(([place, number]) => ({ number, place }));
  // The page rounds to two decimals.
  return { numbers, within: 0.005_001 };
}

const PARTS = { fio: keptOfFio, logs: sumsOfLog };
/** Keys of a direction that a record keeps. */
const KEPT = ['io_bytes', 'io_kbytes', 'bw_bytes', 'bw', 'iops', 'runtime', 'total_ios'];
/** Strings, with the colon behind a key, or numbers. */
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
/** Missing numbers that are shown. */
const SHOWN = 5;

export const breaks = {
  // Of logs there is no document.
  'a document cut out': (html, { subject }) =>
    subject === 'logs'
      ? undefined
      : html.replace(/<details><summary>All numbers(?:(?!<\/details>)[\s\S])*<\/details>/g, ''),
  'tables and documents without their last digits': (html) =>
    html.replaceAll(/<(td|pre[^>]*)>([^<]*)/g, (_, tag, text) => {
      return `<${tag}>${text.replaceAll(/(\d)\d(?!\d)/g, '$1')}`;
    }),
};
