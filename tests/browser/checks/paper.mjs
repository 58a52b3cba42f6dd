// On paper: no figure lies on two pages, and nothing is cut at the side.
//
// The PDF itself says where things are: empty elements at both ends of each figure are targets of
// links, and Chromium writes the page of each target into the PDF.

import { on } from '../browser.mjs';
import { into, styled } from '../broken.mjs';

export const name = 'paper';

export const applies = ({ isLive }) => !isLive;

export async function run(browser, { url }) {
  const findings = [];
  // A4 without its margins: the width at which Chromium lays out the PDF.
  await on(browser, url, { width: 718, media: 'print' }, async (page) => {
    findings.push(...(await page.evaluate(cutBoxes)));
    const names = await page.evaluate(markEnds);
    const margin = Object.fromEntries(
      ['top', 'bottom', 'left', 'right'].map((side) => [side, '10mm']),
    );
    const pdf = Buffer.from(await page.pdf({ format: 'A4', margin })).toString('latin1');
    const pages = targetPages(pdf);
    for (const [figure, title] of names.entries()) {
      const [top, end] = [pages.get(`figure${figure}top`), pages.get(`figure${figure}end`)];
      if (top === undefined || end === undefined) findings.push(`not in the PDF: ${title}`);
      else if (top !== end) findings.push(`cut by the end of a page: ${title}`);
    }
  });
  return findings;
}

/** Returns the boxes whose content is wider than they are: paper does not scroll. */
function cutBoxes() {
  const all = [...document.body.querySelectorAll('*')].filter((element) => !element.closest('svg'));
  const clips = (element) => getComputedStyle(element).overflowX !== 'visible';
  const cut = all.filter(
    (element) => clips(element) && element.scrollWidth > element.clientWidth + 1,
  );
  const outside = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const names = cut.map((element) => {
    const excess = element.scrollWidth - element.clientWidth;
    return `${excess} px cut off at the right: ${element.outerHTML.slice(0, 100)}`;
  });
  if (outside <= 0) return names;
  const edge = document.documentElement.clientWidth + 1;
  const first = all.find((element) => element.getBoundingClientRect().right > edge);
  const name = first?.textContent.trim().replaceAll(/\s+/g, ' ').slice(0, 60);
  return [...names, `the page is ${outside} px wider than the paper: ${first?.tagName} ${name}`];
}

/** Puts targets at both ends of each figure and returns the figures' names. */
function markEnds() {
  const figures = [...document.querySelectorAll('figure')];
  for (const [number, figure] of figures.entries()) {
    for (const [end, how] of [
      ['top', 'prepend'],
      ['end', 'append'],
    ]) {
      const target = document.createElement('span');
      target.id = `figure${number}${end}`;
      figure[how](target);
      // Targets without a link are not in the PDF.
      const link = document.createElement('a');
      link.href = `#${target.id}`;
      document.body.append(link);
    }
  }
  return figures.map((figure) => figure.textContent.trim().split('\n')[0].slice(0, 60));
}

/** Returns the page object of each target: `/name [2 0 R /XYZ 36 541 0]`. */
export function targetPages(pdf) {
  const targets = pdf.matchAll(/\/(figure\d+(?:top|end)) \[(\d+) 0 R \/XYZ/g);
  return new Map([...targets].map(([, name, page]) => [name, page]));
}

export const breaks = {
  'a figure as long as two pages': (html) => styled(html, 'figcaption{padding-top:1100px}'),
  'a wide table': (html) =>
    styled(
      into(html, '<div class="broken"><p>p</p></div>'),
      '.broken{overflow-x:auto}.broken p{width:900px}',
    ),
};
