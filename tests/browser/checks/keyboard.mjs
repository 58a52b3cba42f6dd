// Everything by keyboard: Tab reaches each control and each box that scrolls, the focus is seen,
// and controls act.

import { on, unfold } from '../browser.mjs';
import { into, styled } from '../broken.mjs';

export const name = 'keyboard';

export async function run(browser, { url, isAllowed, isLive }) {
  const findings = [];
  for (const width of [360, 1280]) {
    for (const folded of [true, false]) {
      await on(browser, url, { width, isAllowed }, async (page) => {
        if (!folded) await unfold(page);
        const found = await walk(page, isLive);
        if (!isLive && width === 1280 && !folded) found.push(...(await act(page)));
        findings.push(...found.map((what) => `${width} px, ${folded ? '' : 'un'}folded: ${what}`));
      });
    }
  }
  return findings;
}

/** Presses Tab until the focus leaves the page. */
async function walk(page, isLive) {
  const wanted = await page.evaluate(listControls);
  const reached = new Set();
  const findings = [];
  for (let press = 0; press < 2 * wanted.length + 10; press += 1) {
    await page.keyboard.press('Tab');
    let at = await page.evaluate(focused);
    if (at && !at.isInWindow && isLive) {
      // The page may have grown after the key: what is out of reach is so the second time, too.
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Tab');
      at = await page.evaluate(focused);
    }
    if (at === null || reached.has(at.index)) break;
    if (at.index >= 0) reached.add(at.index);
    if (!at.isSeen) findings.push(`the focus is not seen on ${at.name}`);
    if (!at.isInWindow) findings.push(`outside of the window with the focus: ${at.name}`);
  }
  const missed = wanted.filter((_, index) => !reached.has(index));
  findings.push(...missed.map(({ name }) => `Tab does not reach ${name}`));
  return findings;
}

/** Uses each control: it must change something. */
async function act(page) {
  const findings = [];
  const wanted = await page.evaluate(listControls);
  for (const [index, { name, keys }] of wanted.entries()) {
    if (keys.length === 0) continue;
    let changed = false;
    for (const key of keys) {
      await page.evaluate((index) => window.controls[index].focus(), index);
      const before = await page.evaluate(state);
      await page.keyboard.press(key);
      const changes = await settles(page, before);
      // Arrows to either side: a box may be at one end already.
      changed ||= changes;
      if (!changes && !key.startsWith('Arrow')) findings.push(`${key} does nothing on ${name}`);
    }
    if (!changed) findings.push(`no key acts on ${name}`);
  }
  return findings;
}

/** Returns whether the state becomes another one; scrolling takes some frames. */
async function settles(page, before) {
  for (let tries = 0; tries < 20; tries += 1) {
    if ((await page.evaluate(state)) !== before) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

/** Keeps the controls and scroll boxes of the page as `window.controls` and returns their names. */
function listControls() {
  const CONTROLS =
    'a[href], button, input, select, textarea, summary, [tabindex="0"], [role="button"]';
  const style = (element) => getComputedStyle(element);
  const overflows = (element) => {
    const { overflowX, overflowY } = style(element);
    const across = /auto|scroll/.test(overflowX) && element.scrollWidth > element.clientWidth;
    const down = /auto|scroll/.test(overflowY) && element.scrollHeight > element.clientHeight;
    return across || down;
  };
  const isOneOfRadios = (element) => {
    if (element.type !== 'radio') return true;
    const all = [
      ...document.querySelectorAll(`input[type=radio][name="${CSS.escape(element.name)}"]`),
    ];
    return element === (all.find((radio) => radio.checked) ?? all[0]);
  };
  const keys = (element) => {
    if (element.matches('summary, button')) return ['Enter', 'Space'];
    if (element.matches('input[type=checkbox]')) return ['Space'];
    if (element.matches('input, select, [data-reads]')) return ['ArrowRight', 'ArrowLeft'];
    if (overflows(element)) return ['ArrowRight', 'ArrowDown', 'ArrowLeft'];
    return [];
  };
  const is = (element) => element.matches(CONTROLS) || overflows(element);
  window.controls = [...document.body.querySelectorAll('*')].filter(
    (element) =>
      is(element) &&
      !element.matches(':disabled') &&
      isOneOfRadios(element) &&
      element.checkVisibility({ checkVisibilityCSS: true }),
  );
  return window.controls.map((element) => ({
    name: element.outerHTML.replaceAll(/\s+/g, ' ').slice(0, 80),
    keys: keys(element),
  }));
}

/** Returns the focused element; null where the page itself has the focus. */
function focused() {
  const element = document.activeElement;
  if (element === null || element === document.body) return null;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    index: window.controls.indexOf(element),
    name: element.outerHTML.replaceAll(/\s+/g, ' ').slice(0, 80),
    isSeen:
      (style.outlineStyle !== 'none' && style.outlineWidth !== '0px') || style.boxShadow !== 'none',
    isInWindow: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}

/** Returns what a control may change: elements, values, places. */
function state() {
  const inputs = [...document.querySelectorAll('input, select')];
  const values = inputs.map((input) => `${input.value} ${input.checked}`);
  const places = window.controls.map((element) => `${element.scrollLeft} ${element.scrollTop}`);
  return [document.body.innerHTML, ...values, ...places, scrollY].join('\n');
}

export const breaks = {
  'a control out of the order': (html) => into(html, '<button tabindex="-1">b</button>'),
  'a control that does nothing': (html) => into(html, '<button>b</button>'),
  'an invisible focus': (html) =>
    styled(html, '*:focus{outline:none!important;box-shadow:none!important}'),
};
