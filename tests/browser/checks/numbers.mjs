// Every number of the documents is in the page's text, with script off.

import { readFile } from 'node:fs/promises';

import { on } from '../browser.mjs';

export const name = 'numbers';

export const applies = ({ documents }) => documents.length > 0;

export async function run(browser, { url, documents }) {
  const text = await on(browser, url, { script: false }, (page) =>
    page.evaluate(() => document.body.textContent),
  );
  const shown = new Set(text.match(NUMBER));
  const findings = [];
  for (const path of documents) {
    const numbers = numbersOf(await readFile(path, 'utf8'));
    if (numbers.length === 0) findings.push(`${path}: no number`);
    const missing = numbers.filter(({ number }) => !shown.has(number));
    findings.push(
      ...missing.slice(0, SHOWN).map(({ number, place }) => `${place}: ${number} is missing`),
    );
    if (missing.length > SHOWN) findings.push(`and ${missing.length - SHOWN} more`);
  }
  return findings;
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

/** Strings, with the colon behind a key, or numbers. */
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
/** Missing numbers that are shown. */
const SHOWN = 5;

export const breaks = {
  'a document cut out': (html) =>
    html.replace(/<details>(?:(?!<details>)[\s\S])*<\/details>\s*<\/main>/, '</main>'),
};
