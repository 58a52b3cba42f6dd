// Figures read back: the ticks of an axis with their labels give its scale.

/** Returns the figures of a page, each with its title, and its panels or rows of intervals. */
export async function readFigures(page) {
  const drawn = await page.evaluate(collect);
  return drawn.map(({ title, ...parts }) => ({
    title,
    panels: panels(parts),
    rows: rows(parts),
  }));
}

/** Returns what is drawn, in the units of each drawing. */
function collect() {
  const number = (element, name) => Number(element.getAttribute(name));
  const all = (svg, selector) => [...svg.querySelectorAll(selector)];
  const ends = (line) => ['x1', 'y1', 'x2', 'y2'].map((name) => number(line, name));
  const series = (element) => element.closest('.series')?.dataset.name;
  return [...document.querySelectorAll('figure svg')].map((svg) => ({
    title: svg.querySelector('title')?.textContent ?? '',
    texts: all(svg, 'text').map((text) => ({
      x: number(text, 'x'),
      y: number(text, 'y'),
      anchor: text.getAttribute('text-anchor'),
      text: text.textContent,
    })),
    axes: all(svg, 'line.axis').map(ends),
    bars: all(svg, 'line.thin').map(ends),
    points: [
      ...all(svg, 'polyline').flatMap((line) =>
        [...line.points].map(({ x, y }) => [x, y, series(line)]),
      ),
      ...all(svg, 'path.mark').map((mark) => {
        const { e, f } = mark.transform.baseVal.consolidate().matrix;
        return [e, f, series(mark)];
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
    // The label of the vertical axis stands above it, and that of the horizontal one below.
    const label = texts.find(({ y, anchor }) => anchor === 'start' && y < top && y > top - 20);
    // Texts stand 4 units below the tick that they name.
    const up = scale(beside.map(({ y, text }) => [value(text), y - 4]));
    const across = scale(ticksBelow(texts, bottom));
    const own = points.filter(([x, y]) => x >= left - 1 && y >= top - 1 && y <= bottom + 1);
    const distance = (x, y, series) => {
      const of = series === undefined ? own : own.filter(([, , name]) => isName(name, series));
      return nearest(of, across(x), up(y));
    };
    return { up: label?.text ?? '', distance };
  });
}

/**
 * Returns the rows of a picture of intervals: the name of each, and the distance of its mark and
 * the ends of its bar from values.
 */
function rows({ texts, axes, bars, points }) {
  const [axis] = axes.filter(([x1, y1, x2, y2]) => y1 === y2 && x2 - x1 > 50);
  if (!axis) return [];
  const [left, bottom, right] = axis;
  const across = scale(ticksBelow(texts, bottom));
  // What lies beyond the axis is drawn at its end.
  const place = (x) => Math.min(Math.max(across(x), left), right);
  const names = texts.filter(({ x, y, anchor }) => anchor === 'end' && x < left && y < bottom);
  return names.map(({ y, text }) => {
    const middle = y - 4;
    const marks = points.filter((point) => Math.abs(point[1] - middle) < 1);
    const bar = bars.find(([, y1, , y2]) => y1 === y2 && Math.abs(y1 - middle) < 1);
    return {
      name: text,
      mark: (x) => nearest(marks, place(x), middle),
      bar: (low, high) =>
        bar ? Math.max(Math.abs(bar[0] - place(low)), Math.abs(bar[2] - place(high))) : Infinity,
    };
  });
}

/** Returns whether a name on a page is a name of a document: long ones are cut. */
export function isName(shown, name) {
  return shown?.endsWith('…') ? name.startsWith(shown.slice(0, -1)) : shown === name;
}

/** Returns the ticks below a horizontal axis, with their places. */
function ticksBelow(texts, bottom) {
  const below = texts.filter(
    ({ y, anchor }) => anchor === 'middle' && Math.abs(y - bottom - 18) < 1,
  );
  return below.map(({ x, text }) => [value(text), x]);
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
