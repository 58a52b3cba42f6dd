// Pictures of a page, for the developer to look at.

import { join } from 'node:path';

import { on } from './browser.mjs';

/** Writes pictures of a page: light, dark, narrow. */
export async function pictures(browser, { name, url, isAllowed, isLive }, folder) {
  if (!folder) return;
  for (const [kind, settings] of Object.entries(KINDS)) {
    await on(browser, url, { ...settings, isAllowed }, async (page) => {
      // Figures of a run that goes on come after the page.
      if (isLive) await new Promise((resolve) => setTimeout(resolve, 1500));
      await page.screenshot({ path: join(folder, `${name}-${kind}.png`), fullPage: true });
    });
  }
}

const KINDS = {
  light: { width: 1280 },
  dark: { width: 1280, scheme: 'dark' },
  narrow: { width: 360, height: 740 },
};
