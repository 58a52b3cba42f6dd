// Nothing leaves the page and nothing complains: no request beyond the file, no console line.

import { on } from '../browser.mjs';
import { into, lax } from '../broken.mjs';

export const name = 'quiet';

export async function run(browser, { url, isAllowed, isLive }) {
  const findings = [];
  for (const scheme of ['light', 'dark']) {
    // The network of a page that follows a run is never idle.
    const waitUntil = isLive ? 'load' : 'networkidle0';
    await on(browser, url, { scheme, isAllowed, waitUntil }, async (page, noise) => {
      findings.push(...noise.map((line) => `${scheme}: ${line}`));
      const paper = await page.evaluate(background);
      if (scheme === 'light' ? paper < 0.8 : paper > 0.2) {
        findings.push(`${scheme}: the background has a brightness of ${paper.toFixed(2)}`);
      }
    });
  }
  return findings;
}

/** Returns the mean of the background's channels, 0 to 1. */
function background() {
  const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g);
  return (Number(red) + Number(green) + Number(blue)) / 3 / 255;
}

export const breaks = {
  'a picture from the network': (html) =>
    into(lax(html), '<img alt="" src="http://127.0.0.1:9/x">'),
  'a picture that the policy refuses': (html) =>
    into(html, '<img alt="" src="http://127.0.0.1:9/x">'),
  'a console line': (html) => into(lax(html), '<script>console.log(1)</script>'),
  'an error': (html) => into(lax(html), '<script>none()</script>'),
  'no dark scheme': (html) => lax(html).replaceAll('prefers-color-scheme:dark', 'not all'),
};
