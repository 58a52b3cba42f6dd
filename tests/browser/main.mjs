// Pages of Fathom in a real browser: `node main.mjs PLAN [--self-test]`, started by
// `cargo xtask browser`.
//
// PLAN is a JSON file: the browser, a folder for pictures, and pages, each with its kind and the
// documents whose numbers it shows. Each check returns findings, which name the element; a
// page without any is printed as one line. With `--self-test`, each check reads pages that were
// broken on purpose, and must find something.

import { readFile } from 'node:fs/promises';

import { launch } from './browser.mjs';
import { checks } from './checks/index.mjs';
import { whileRunning } from './live.mjs';
import { pictures } from './pictures.mjs';
import { selfTest } from './self_test.mjs';

async function main([planPath, option]) {
  const plan = JSON.parse(await readFile(planPath, 'utf8'));
  const browser = await launch(plan.chromium);
  try {
    return option === '--self-test' ? await selfTest(browser, plan) : await run(browser, plan);
  } finally {
    await browser.close();
  }
}

/** Runs all checks on all pages and returns the number of findings. */
async function run(browser, plan) {
  let all = 0;
  for (const page of plan.pages) {
    const judged = (ready) => judge(browser, ready, plan.pictures);
    all += await (page.command
      ? whileRunning(page, RUN_SECONDS, (ready) => judged({ ...ready, again: page }))
      : judged(page));
  }
  return all;
}

/** Runs the checks that apply to a page and returns the number of findings. */
async function judge(browser, page, folder) {
  const start = performance.now();
  const names = [];
  let all = 0;
  for (const check of checks.filter((check) => !check.applies || check.applies(page))) {
    const findings = await check.run(browser, page);
    for (const finding of findings) {
      console.log(`browser: ${page.name}: ${check.name}: ${finding}`);
    }
    all += findings.length;
    names.push(check.name);
  }
  await pictures(browser, page, folder);
  const seconds = ((performance.now() - start) / 1e3).toFixed(1);
  console.log(`browser: ${page.name}: ${names.join(', ')}: done in ${seconds} s`);
  return all;
}

/** Longest time of the checks of a page of a run that goes on; the run is ended after them. */
const RUN_SECONDS = 300;

const findings = await main(process.argv.slice(2));
if (findings > 0) {
  console.log(`browser: ${findings} found`);
  process.exitCode = 1;
}
