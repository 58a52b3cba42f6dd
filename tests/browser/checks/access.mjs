// axe-core finds nothing, light and dark, with all folds open.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { on, unfold } from '../browser.mjs';
import { into, styled } from '../broken.mjs';

export const name = 'axe';

export async function run(browser, { url, isAllowed }) {
  const source = await readFile(
    createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
    'utf8',
  );
  const findings = [];
  for (const scheme of ['light', 'dark']) {
    await on(browser, url, { scheme, isAllowed }, async (page) => {
      await unfold(page);
      await page.evaluate(source);
      const violations = await page.evaluate(violated);
      findings.push(...violations.map((violation) => `${scheme}: ${violation}`));
    });
  }
  return findings;
}

async function violated() {
  const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.slice(0, 3).map(({ target }) => `${id}: ${help}: ${target.join(' ')}`),
  );
}

export const breaks = {
  'a picture without words': (html) => into(html, `<img src="data:image/gif;base64,${DOT}">`),
  'faint text': (html) =>
    styled(into(html, '<p class="broken">some words</p>'), '.broken{color:#777;background:#888}'),
  'faint text in the dark': (html) =>
    styled(
      into(html, '<p class="broken">some words</p>'),
      '@media (prefers-color-scheme:dark){.broken{color:#222}}',
    ),
};

const DOT = 'R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
