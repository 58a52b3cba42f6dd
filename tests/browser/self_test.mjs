// Trial of the checks themselves: each must find something on a page that was broken on purpose,
// and nothing on the page before.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { checks } from './checks/index.mjs';
import * as live from './checks/live.mjs';
import { whileChanged, whileRunning } from './live.mjs';

/** Breaks pages in every known way; returns the number of breaks that were not found. */
export async function selfTest(browser, plan) {
  let missed = 0;
  for (const page of plan.pages) {
    if (page.command) {
      missed += await whileRunning(page, RUN_SECONDS, (ready) => tryLive(browser, ready));
      continue;
    }
    // What is no matter of the page's subject is tried on one page.
    const isFirst = page.name === plan.selfTest;
    const tried = checks.filter(({ name }) => isFirst || OF_SUBJECTS.includes(name));
    for (const check of tried) {
      if (!check.applies || check.applies(page)) missed += await tryOn(browser, page, check);
    }
  }
  return missed;
}

/** Tries a check on a page; returns the number of breaks that it did not find. */
async function tryOn(browser, page, check) {
  const original = fileURLToPath(page.url);
  const html = await readFile(original, 'utf8');
  const path = original.replace(/\.html$/, '-broken.html');
  const broken = { ...page, url: pathToFileURL(path).href };
  let missed = 0;
  for (const [what, change] of Object.entries(check.breaks)) {
    const text = change(html, page);
    // There is nothing of that kind on pages of this subject.
    if (text === undefined) continue;
    await writeFile(path, text);
    const findings = text === html ? [] : await check.run(browser, broken);
    const told = text === html ? 'the page was not changed' : (findings[0] ?? 'nothing found');
    if (findings.length === 0) missed += 1;
    console.log(`browser: self-test: ${page.name}: ${check.name}: ${what}: ${told}`);
  }
  await rm(path, { force: true });
  return missed;
}

/** Tries the check of a run's page on that page; returns the number of breaks not found. */
async function tryLive(browser, page) {
  const html = await (await fetch(page.url)).text();
  let missed = 0;
  // The first one breaks nothing: the checks find nothing on the way that a page takes here.
  for (const [what, change] of [['nothing', (text) => text], ...Object.entries(live.breaks)]) {
    const breaks = what !== 'nothing';
    const isChanged = change(html) !== html;
    const findings = await whileChanged(page, change, (broken) => live.run(browser, broken));
    const isRight = isChanged === breaks && findings.length > 0 === breaks;
    if (!isRight) missed += 1;
    const told = isChanged === breaks ? (findings[0] ?? 'nothing found') : 'the page was not changed';
    console.log(`browser: self-test: ${page.name}: ${live.name}: ${what}: ${told}`);
  }
  return missed;
}

/** Checks that read the documents of a page. */
const OF_SUBJECTS = ['numbers', 'points'];

/** Longest time of the trials on a run's page; the run is ended after them. */
const RUN_SECONDS = 300;
