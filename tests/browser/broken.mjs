// Ways to break a page, for the self-test.

/** Removes the page's policy, so that what is put into it acts. */
export function lax(html) {
  return html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, '');
}

/** Puts an element at the end of the page. */
export function into(html, element) {
  return html.replace('</main>', () => `${element}</main>`);
}

/** Adds rules behind all others. */
export function styled(html, rules) {
  return lax(html).replace('</head>', () => `<style>${rules}</style></head>`);
}
