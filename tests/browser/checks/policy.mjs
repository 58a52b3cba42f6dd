// The page's Content-Security-Policy: it lets nothing load, and scripts run by their hash alone,
// however they come into the page.

import { createHash } from 'node:crypto';

import { on } from '../browser.mjs';
import { into, lax } from '../broken.mjs';

export const name = 'policy';

export async function run(browser, page) {
  const findings = [];
  await on(browser, page.url, { isAllowed: page.isAllowed }, async (open) => {
    const found = await open.evaluate(collected);
    if (found.policies.length === 0 && !page.policy) return findings.push('no policy');
    const policy = [...found.policies, page.policy ?? ''].join('; ');
    for (const part of ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]) {
      if (!policy.includes(part)) findings.push(`the policy lacks ${part}`);
    }
    const lenient = policy.match(/'unsafe-[a-z-]+'|\bhttps?:|\*/g) ?? [];
    findings.push(...lenient.map((word) => `the policy has ${word}`));
    for (const text of found.scripts) {
      const hash = createHash('sha256').update(text).digest('base64');
      if (!policy.includes(`'sha256-${hash}'`))
        findings.push(`a script of no hash: ${text.slice(0, 60)}`);
    }
    findings.push(...found.handlers.map((element) => `a handler in an attribute: ${element}`));
    if (found.hacked) findings.push('a name ran as a script');
    await open.evaluate(injectScript);
    if (await open.evaluate(() => window.injected)) findings.push('a script put into the page ran');
  });
  return findings;
}

/** Returns policies, scripts and handlers of the document. */
function collected() {
  const all = [...document.querySelectorAll('*')];
  const acts = (element) =>
    [...element.attributes].some((attribute) => /^on/i.test(attribute.name));
  return {
    policies: [...document.querySelectorAll('meta[http-equiv="Content-Security-Policy"]')].map(
      (meta) => meta.content,
    ),
    scripts: [...document.scripts].map((script) => script.src || script.textContent),
    handlers: all.filter(acts).map((element) => element.outerHTML.slice(0, 80)),
    hacked: window.hacked !== undefined,
  };
}

function injectScript() {
  const script = document.createElement('script');
  script.textContent = 'window.injected = true';
  document.body.append(script);
}

export const breaks = {
  'no policy': lax,
  'scripts allowed': (html) =>
    html.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'"),
  'a foreign script': (html) => into(html, '<script>window.hacked = 1</script>'),
  'a handler': (html) => into(html, '<p onclick="f()">p</p>'),
};
