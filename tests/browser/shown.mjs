// Time from the navigation to a page until it is shown in whole: `node shown.mjs CHROMIUM URL LOADS`
// prints milliseconds, a line for each load by a browser that was started for it.
//
// A page is shown at the second frame after it was loaded: the first one after it has been laid
// out and painted. The first paint of all may be that of its beginning alone.

import { launch } from './browser.mjs';

const [chromium, url, loads] = process.argv.slice(2);
for (let load = 0; load < Number(loads); load += 1) {
  const browser = await launch(chromium);
  try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 900 });
    await page.goto(url, { waitUntil: 'load' });
    console.log(await page.evaluate(secondFrame));
  } finally {
    await browser.close();
  }
}

/** Returns the time since the navigation at the second frame from now. */
function secondFrame() {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  return frame()
    .then(frame)
    .then(() => performance.now());
}
