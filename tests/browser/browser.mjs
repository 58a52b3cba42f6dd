// The browser and its pages, each watched for lines on its console and for requests.

import puppeteer from 'puppeteer-core';

/** Starts the browser; it fetches nothing by itself. */
export function launch(executablePath) {
  // As root, which containers are, Chromium's sandbox does not start.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return puppeteer.launch({ executablePath, headless: true, args: [...asRoot, ...QUIET] });
}

/**
 * Opens an address and returns the page with `noise`: each console line, error and request for
 * something that is not allowed.
 */
export async function open(browser, url, settings = {}) {
  const {
    width = 1280,
    height = 900,
    scale = 1,
    scheme = 'light',
    media,
    script = true,
  } = settings;
  const isAllowed = settings.isAllowed ?? (() => false);
  const page = await browser.newPage();
  const noise = [];
  page.on('console', (line) => noise.push(`console line: ${line.text()}`));
  page.on('pageerror', (error) => noise.push(`page error: ${error.message}`));
  page.on('dialog', (dialog) => {
    noise.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    const asked = request.url();
    if (asked === url || asked.startsWith('data:') || isAllowed(asked)) return request.continue();
    noise.push(`request: ${asked}`);
    return request.abort();
  });
  await page.setJavaScriptEnabled(script);
  await page.setViewport({ width, height, deviceScaleFactor: scale });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  if (media) await page.emulateMediaType(media);
  await page.goto(url, { waitUntil: settings.waitUntil ?? 'load' });
  return { page, noise };
}

/** Opens an address, hands the page to `work` and closes it. */
export async function on(browser, url, settings, work) {
  const { page, noise } = await open(browser, url, settings);
  try {
    return await work(page, noise);
  } finally {
    await page.close();
  }
}

/** Opens all `<details>`. */
export function unfold(page) {
  return page.evaluate(() => {
    for (const one of document.querySelectorAll('details')) one.open = true;
  });
}

const QUIET = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
