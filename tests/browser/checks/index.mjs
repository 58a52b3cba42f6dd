// All checks, cheapest first. Each has a name, `run(browser, page)` with its findings, and pages
// broken on purpose for the self-test: `breaks`, from the text of a page to another one, or to none
// if its subject has nothing of the kind.

import * as access from './access.mjs';
import * as keyboard from './keyboard.mjs';
import * as layout from './layout.mjs';
import * as live from './live.mjs';
import * as numbers from './numbers.mjs';
import * as paper from './paper.mjs';
import * as points from './points.mjs';
import * as policy from './policy.mjs';
import * as quiet from './quiet.mjs';
import * as script from './script.mjs';

export const checks = [
  quiet,
  policy,
  numbers,
  points,
  script,
  live,
  layout,
  keyboard,
  access,
  paper,
];
