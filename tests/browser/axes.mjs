// Figures read back: the ticks of an axis with their labels give its scale.

/** Returns the figures of a page, each with its title and panels. */
export async function readFigures(page) {
  const drawn = await page.evaluate(collect);
  return drawn.map(({ title, ...parts }) => ({ title, panels: panels(parts) }));
}

/** Returns what is drawn, in the units of each drawing. */
function collect() {
  const number = (element, name) => Number(element.getAttribute(name));
  const all = (svg, selector) => [...svg.querySelectorAll(selector)];
  return [...document.querySelectorAll('figure svg')].map((svg) => ({
    title: svg.querySelector('title')?.textContent ?? '',
    texts: all(svg, 'text').map((text) => ({
      x: number(text, 'x'),
      y: number(text, 'y'),
      anchor: text.getAttribute('text-anchor'),
      text: text.textContent,
    })),
    axes: all(svg, 'line.axis').map((line) =>
      ['x1', 'y1', 'x2', 'y2'].map((name) => number(line, name)),
    ),
    points: [
      ...all(svg, 'polyline').flatMap((line) => [...line.points].map(({ x, y }) => [x, y])),
      ...all(svg, 'path.mark').map((mark) => {
        const { e, f } = mark.transform.baseVal.consolidate().matrix;
        return [e, f];
      }),
    ],
  }));
}

/** Returns the panels of a drawing, from top to bottom. */
function panels({ texts, axes, points }) {
  const upright = axes.filter(([x1, y1, x2, y2]) => x1 === x2 && y2 - y1 > 50);
  return upright.map(([left, top, , bottom]) => {
    const beside = texts.filter(
      ({ x, y, anchor }) => anchor === 'end' && x < left && y > top && y < bottom + 8,
    );
    const below = texts.filter(
      ({ y, anchor }) => anchor === 'middle' && Math.abs(y - bottom - 18) < 1,
    );
    // Texts stand 4 units below the tick that they name.
    const up = scale(beside.map(({ y, text }) => [value(text), y - 4]));
    const across = scale(below.map(({ x, text }) => [value(text), x]));
    const own = points.filter(([x, y]) => x >= left - 1 && y >= top - 1 && y <= bottom + 1);
    const distance = (x, y) => nearest(own, across(x), up(y));
    return { distance };
  });
}

/** Returns the distance of the nearest point. */
function nearest(points, x, y) {
  return Math.min(...points.map((point) => Math.hypot(point[0] - x, point[1] - y)));
}

/** Returns the function from values to places on which the ticks lie, linear or logarithmic. */
function scale(ticks) {
  if (ticks.length < 2) return () => NaN;
  const kinds = [(value) => value, Math.log10].map((kind) => fitted(ticks, kind));
  return kinds.reduce((best, other) => (other.error < best.error ? other : best)).place;
}

/** Lays a line through the outer ticks; the error is the largest distance of the others. */
function fitted(ticks, kind) {
  const [[first, from]] = ticks;
  const [last, to] = ticks.at(-1);
  const step = (to - from) / (kind(last) - kind(first));
  const place = (value) => from + (kind(value) - kind(first)) * step;
  const errors = ticks.map(([value, at]) => Math.abs(place(value) - at));
  return { place, error: errors.some(Number.isNaN) ? Infinity : Math.max(...errors) };
}

/** Returns the value of a label: `20k` is 20,000. */
function value(label) {
  const [, digits, unit] = label.match(/^(-?[\d.]+)([kMG]?)$/) ?? [];
  return Number(digits) * { k: 1e3, M: 1e6, G: 1e9, '': 1 }[unit ?? ''];
}
