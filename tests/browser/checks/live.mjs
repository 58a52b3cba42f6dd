// The page of a run that goes on: it follows the run, waits where it is asked to, shows one group,
// and says when the run has ended.

import { open } from '../browser.mjs';
import { whileRunning } from '../live.mjs';

export const name = 'live';

export const applies = ({ isLive }) => isLive;

export async function run(browser, page) {
  const findings = [...(await follows(browser, page)), ...(await spells(browser, page))];
  // The self-test has no run of its own to end.
  if (page.again) findings.push(...(await ends(browser, page.again)));
  return findings;
}

/** Watches the page of a run until after its end. */
async function ends(browser, again) {
  const findings = [];
  // Opening a tab has taken over 4 s on a busy machine.
  await whileRunning(again, 20, async (short, ended) => {
    const { page: tab, noise } = await open(browser, short.url, { isAllowed: short.isAllowed });
    const code = await ended;
    if (code !== 0) findings.push(`the run ended with ${code}`);
    if (!(await becomes(tab, (text) => text.startsWith('ended')))) {
      findings.push(`after the run the page says "${await state(tab)}"`);
    }
    findings.push(...noise.map((line) => `after the run: ${line}`));
    await tab.close();
  });
  return findings;
}

/** Watches a running page. */
async function follows(browser, { url, isAllowed }) {
  const findings = [];
  const { page: tab } = await open(browser, url, { isAllowed });
  const first = await state(tab);
  if (!(await becomes(tab, (text) => text.startsWith('running') && text !== first))) {
    findings.push(`no news of the run: "${await state(tab)}"`);
  }
  const rows = () => tab.evaluate(() => document.querySelectorAll('#jobs tbody tr').length);
  const [all] = [await rows()];
  await tab.select('#track', '1');
  if (!((await rows()) < all)) findings.push(`the second group has ${await rows()} of ${all} rows`);
  await tab.select('#track', '0');
  await tab.click('#pause');
  const paused = await state(tab);
  if (!paused.endsWith('view paused')) findings.push(`paused, the page says "${paused}"`);
  if (await becomes(tab, (text) => text !== paused, 15)) findings.push('a paused view goes on');
  await tab.click('#pause');
  if (!(await becomes(tab, (text) => text !== paused && !text.endsWith('paused')))) {
    findings.push('a view does not go on after a pause');
  }
  await tab.close();
  return findings;
}

/**
 * Reads the table of the heat map: it is that of the figures, and with another group it is of
 * that group.
 */
async function spells(browser, { url, isAllowed }) {
  const { page: tab } = await open(browser, url, { isAllowed });
  await tab.evaluate(() => {
    document.querySelector('#seconds').open = true;
  });
  await becomes(tab, (text) => text.startsWith('running'));
  await tab.click('#pause');
  const findings = [];
  const rows = () => tab.evaluate(() => {
    const all = [...document.querySelectorAll('#spread tbody tr')];
    return all.map((row) => [...row.cells].map((cell) => cell.textContent));
  });
  for (const track of ['0', '1']) {
    await tab.select('#track', track);
    const figures = await (await fetch(new URL('/figures.json', url))).json();
    const seconds = new Map(
      figures.tracks[track].columns.map(({ at_s: at, heat }) => [`${at} s`, heat]),
    );
    const shown = await rows();
    // The last second goes on.
    for (const [second, ops, , , , share] of shown.slice(1)) {
      const heat = seconds.get(second)?.map(([, number]) => number) ?? [];
      const all = heat.reduce((sum, number) => sum + number, 0);
      const most = `${((100 * Math.max(...heat)) / all).toFixed(1)} %`;
      if (ops !== String(all) || share !== most) {
        findings.push(`group ${track}: ${second}: ${ops} ops, ${share}, not ${all}, ${most}`);
      }
    }
    if (shown.length < 2) findings.push(`group ${track}: ${shown.length} seconds in the table`);
  }
  await tab.close();
  return findings;
}

function state(tab) {
  return tab.evaluate(() => document.querySelector('#state').textContent);
}

/** Returns whether the page's state becomes one, within some tenths of a second. */
async function becomes(tab, is, tenths = 50) {
  for (let at = 0; at < tenths; at += 1) {
    if (is(await state(tab))) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

export const breaks = {
  'no news': (html) => html.replace('EventSource("/events")', 'EventSource("/none")'),
  'a pause without effect': (html) => html.replace('if (!paused)', 'if (true)'),
  'figures of the first group alone': (html) =>
    html.replace('(figures.tracks[track] || figures.tracks[0])', 'figures.tracks[0]'),
  'a table without ops': (html) => html.replace('String(all), range', '"0", range'),
  'a table with other shares': (html) => html.replace('100 * ops / all', '90 * ops / all'),
};
