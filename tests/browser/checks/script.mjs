// The page's own script: values are read off by keys and by pointer, series are hidden, and an
// axis becomes logarithmic and linear again, with each point where its ticks say.

import { readFile } from 'node:fs/promises';

import { readFigures } from '../axes.mjs';
import { on } from '../browser.mjs';
import { lax } from '../broken.mjs';
import { rates } from '../drawn/run.mjs';

export const name = 'script';

export const applies = ({ subject }) => subject === 'run';

export async function run(browser, { url, sources: [path] }) {
  const { fathom } = JSON.parse(await readFile(path, 'utf8'));
  const timeline = fathom.timelines.find(({ windows }) => windows.length > 2);
  const title = `Group ${timeline.groupid}, ${timeline.direction}`;
  const values = rates(timeline);
  return on(browser, url, {}, async (page) => {
    const found = await page.evaluate(mark, title);
    if (!found) return [`no figure with controls: ${title}`];
    return [
      ...(await byKeys(page, values)),
      ...(await byPointer(page)),
      ...(await hides(page)),
      ...(await switches(page, title, values)),
    ];
  });
}

/** Keeps the figure's parts as `window.figure`. */
function mark(title) {
  const figures = [...document.querySelectorAll('figure')];
  const figure = figures.find((one) => one.querySelector('svg > title')?.textContent === title);
  window.figure = figure && {
    box: figure.querySelector('.wide'),
    svg: figure.querySelector('svg'),
    reading: figure.querySelector('.reading'),
    buttons: [...figure.querySelectorAll('.controls button')],
  };
  return Boolean(window.figure?.reading);
}

/** Reads the first values by the arrow keys. */
async function byKeys(page, values) {
  const findings = [];
  await page.evaluate(() => window.figure.box.focus());
  for (const [at, { x, y }] of values.slice(0, 5).entries()) {
    await page.keyboard.press(at === 0 ? 'Home' : 'ArrowRight');
    const text = await page.evaluate(() => window.figure.reading.textContent);
    const [, time, iops] = text.match(/: ([\d.]+) – .*?IOPS: ([\d.]+k?)/) ?? [];
    const read = Number(iops?.replace('k', '')) * (iops?.endsWith('k') ? 1e3 : 1);
    // A place is kept to a tenth of a pixel of some 200 and 600.
    const most = Math.max(...values.map((value) => value.y));
    const end = values.at(-1).x;
    if (!(Math.abs(read - y) <= most / 500 && Math.abs(Number(time) - x) <= end / 500 + 1e-3)) {
      findings.push(`keys read "${text}", not ${y} IOPS at ${x} s`);
    }
  }
  return findings;
}

/** Points at the middle of the figure's first panel. */
async function byPointer(page) {
  const before = await page.evaluate(() => window.figure.reading.textContent);
  const place = await page.evaluate(() => {
    window.figure.svg.scrollIntoView();
    const { left, top, width } = window.figure.svg.getBoundingClientRect();
    return { x: left + width / 2, y: top + 150 };
  });
  await page.mouse.move(place.x, place.y);
  const after = await page.evaluate(() => window.figure.reading.textContent);
  return after !== before && /IOPS: \d/.test(after) ? [] : [`the pointer reads "${after}"`];
}

/** Hides each series and shows it again. */
async function hides(page) {
  const findings = [];
  const names = await page.evaluate(() =>
    window.figure.buttons.map((button) => button.textContent),
  );
  const series = names.filter((text) => !text.startsWith('Logarithmic'));
  if (series.length === 0) return ['no series can be hidden'];
  for (const name of series) {
    const shown = [await isShown(page, name)];
    for (const _ of ['hide', 'show']) {
      await press(page, name);
      shown.push(await isShown(page, name));
    }
    if (shown.join() !== 'true,false,true') findings.push(`hiding ${name}: shown ${shown.join()}`);
  }
  return findings;
}

function isShown(page, name) {
  return page.evaluate((name) => {
    const all = [...window.figure.svg.querySelectorAll('.series')];
    const named = all.filter((one) => one.dataset.name === name);
    return named.every((one) => getComputedStyle(one).display !== 'none');
  }, name);
}

/** Makes the axis of the rate logarithmic: its points must follow its ticks; then back again. */
async function switches(page, title, values) {
  const name = 'Logarithmic: IOPS';
  const markup = () => page.evaluate(() => window.figure.svg.innerHTML);
  const read = async () => (await readFigures(page)).find((one) => one.title === title).panels[0];
  const before = await markup();
  if (!(await press(page, name))) return [`no button "${name}"`];
  const findings = [];
  const panel = await read();
  const placed = values.filter(({ y }) => y > 0);
  const far = placed.filter(({ x, y }) => !(panel.distance(x, y) <= 1));
  if (far.length > 0)
    findings.push(`logarithmic: ${far.length} of ${placed.length} points are off`);
  if ((await markup()) === before) findings.push('logarithmic: nothing has moved');
  await press(page, name);
  if ((await markup()) !== before) findings.push('linear again: not as before');
  return findings;
}

/** Presses a button of the figure; returns whether there is one. */
function press(page, name) {
  return page.evaluate((name) => {
    const button = window.figure.buttons.find((one) => one.textContent === name);
    button?.click();
    return Boolean(button);
  }, name);
}

export const breaks = {
  'no script': (html) => html.replace(/<script>[\s\S]*<\/script>/, ''),
  'values read wrongly': (html) =>
    changed(html, 'a.least + p * span', '1.1 * a.most * p'),
  'series that stay': (html) => changed(html, "'off', !isShown", "'off', false"),
  'points that stay': (html) => changed(html, 'part.put(part.values', 'void (part.values'),
};

function changed(html, from, to) {
  return lax(html).replace(from, () => to);
}
