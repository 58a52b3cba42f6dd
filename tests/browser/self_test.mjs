// Trial of the checks themselves: each must find something on a page that was broken on purpose,
// and nothing on the page before.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { checks } from './checks/index.mjs';

/** Breaks a page in every known way; returns the number of breaks that were not found. */
export async function selfTest(browser, plan) {
  const page = plan.pages.find(({ name }) => name === plan.selfTest);
  const original = fileURLToPath(page.url);
  const html = await readFile(original, 'utf8');
  const path = original.replace(/\.html$/, '-broken.html');
  const broken = { ...page, url: pathToFileURL(path).href };
  let missed = 0;
  for (const check of checks) {
    for (const [what, change] of Object.entries(check.breaks)) {
      const text = change(html);
      await writeFile(path, text);
      const findings = text === html ? [] : await check.run(browser, broken);
      const told = text === html ? 'the page was not changed' : (findings[0] ?? 'nothing found');
      if (findings.length === 0) missed += 1;
      console.log(`browser: self-test: ${check.name}: ${what}: ${told}`);
    }
  }
  await rm(path);
  return missed;
}
