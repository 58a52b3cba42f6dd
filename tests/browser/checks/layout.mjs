// No page is wider than its window: at 360 pixels, at 200 % zoom, on a large screen. Figures keep
// texts that can be read: they scroll in a box of their own.

import { on, unfold } from '../browser.mjs';
import { into, styled } from '../broken.mjs';

export const name = 'layout';

export async function run(browser, { url, isAllowed }) {
  const findings = [];
  for (const [kind, settings] of Object.entries(WINDOWS)) {
    await on(browser, url, { ...settings, isAllowed }, async (page) => {
      for (const state of ['folded', 'unfolded']) {
        if (state === 'unfolded') await unfold(page);
        const wide = await page.evaluate(overflow);
        findings.push(...wide.map((what) => `${kind}, ${state}: ${what}`));
      }
      const small = await page.evaluate(smallTexts, LEAST_TEXT);
      findings.push(...small.map((what) => `${kind}: ${what}`));
    });
  }
  return findings;
}

/** Returns the elements that stick out of the window, unless they scroll in a box of their own. */
function overflow() {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const scrolls = (element) => /auto|scroll|hidden/.test(getComputedStyle(element).overflowX);
  const inBox = (element) => {
    for (let one = element.parentElement; one && one !== document.body; one = one.parentElement) {
      if (scrolls(one)) return true;
    }
    return false;
  };
  const out = [...document.body.querySelectorAll('*')].filter(
    (element) => element.getBoundingClientRect().right > root.clientWidth + 1 && !inBox(element),
  );
  const excess = `${root.scrollWidth - root.clientWidth} px too wide`;
  const named = out.slice(0, 3).map((element) => element.outerHTML.slice(0, 80));
  return [`${excess}: ${named.join(' and ') || 'no single element'}`];
}

/** Returns the figures whose texts are smaller than `least`. */
function smallTexts(least) {
  const size = (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d;
  const all = [...document.querySelectorAll('figure svg')];
  const small = all.filter((svg) =>
    [...svg.querySelectorAll('text')].some((text) => size(text) < least),
  );
  return small.map((svg) => `small texts: ${svg.querySelector('title')?.textContent ?? svg.id}`);
}

/** Least height of a figure's texts, in CSS pixels. */
const LEAST_TEXT = 10;

const WINDOWS = {
  '360 px': { width: 360, height: 740 },
  // A window of 1280 pixels at 200 %.
  '200 %': { width: 640, height: 450, scale: 2 },
  '1280 px': { width: 1280 },
  '2560 px': { width: 2560, height: 1440 },
};

export const breaks = {
  'figures that shrink with the window': (html) => styled(html, 'figure svg{min-width:0}'),
  'a wide box': (html) => styled(into(html, '<p class="broken">p</p>'), '.broken{width:700px}'),
  'a wide box in a fold': (html) =>
    styled(
      into(html, '<details><summary>s</summary><p class="broken">p</p></details>'),
      '.broken{width:3000px}',
    ),
};
