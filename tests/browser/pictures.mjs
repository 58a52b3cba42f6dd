// Pictures of a page, for the developer to look at.

import { join } from 'node:path';

import { on } from './browser.mjs';

/** Writes pictures of a page: light, dark, narrow. */
export async function pictures(browser, { name, url, isLive }, folder) {
  if (!folder || isLive) return;
  for (const [kind, settings] of Object.entries(KINDS)) {
    await on(browser, url, settings, (page) =>
      page.screenshot({ path: join(folder, `${name}-${kind}.png`), fullPage: true }),
    );
  }
}

const KINDS = {
  light: { width: 1280 },
  dark: { width: 1280, scheme: 'dark' },
  narrow: { width: 360, height: 740 },
};
