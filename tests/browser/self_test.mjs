// Trial of the checks themselves: each must find something on a page that was broken on purpose,
// and nothing on the page before.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { checks } from './checks/index.mjs';

/** Breaks pages in every known way; returns the number of breaks that were not found. */
export async function selfTest(browser, plan) {
  let missed = 0;
  for (const page of plan.pages) {
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

/** Checks that read the documents of a page. */
const OF_SUBJECTS = ['numbers', 'points'];
