// Reading values off figures, hiding series, and switching axes between linear and logarithmic.
// Without this script a page is whole: it adds no number. It holds no data either: the panels of a
// figure tell the ranges of their axes, from which the places of lines and marks give the values.
'use strict';
(() => {
const SVG = 'http://www.w3.org/2000/svg';

// Axes: kind, least and greatest value, unit, and the places of both ends.
const axis = (text, from, to) => {
  const [kind, least, most, unit] = text.split(' ');
  return {kind, least: +least, most: +most, unit, from, to};
};
const placeOf = (a, v) => {
  const p = a.kind === 'log'
    ? (v > 0 ? Math.log(v / a.least) / Math.log(a.most / a.least) : 0)
    : (v - a.least) / (a.most - a.least);
  return a.from + Math.max(p, 0) * (a.to - a.from);
};
const valueAt = (a, place) => {
  const p = (place - a.from) / (a.to - a.from);
  if (a.kind === 'log') return a.least * (a.most / a.least) ** p;
  const span = a.most - a.least, v = a.least + p * span;
  // What is left of 0 where a place is kept to a tenth of a pixel.
  return Math.abs(v) < 1e-5 * span ? 0 : v;
};

const short = v => String(Number(v.toPrecision(4)));
const label = (v, unit) => {
  if (unit === 'bytes') {
    const power = Math.min(Math.max(Math.floor(Math.log2(Math.abs(v) || 1) / 10), 0), 5);
    return `${short(v / 1024 ** power)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][power]}`;
  }
  for (const [size, sign] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
    if (Math.abs(v) >= size) return short(v / (sign === 'k' ? 1e3 : size)) + sign;
  }
  return short(v);
};

const element = (name, attributes, text) => {
  const one = document.createElementNS(SVG, name);
  for (const key in attributes) one.setAttribute(key, attributes[key]);
  if (text !== undefined) one.textContent = text;
  return one;
};

// Elements of a series: their values on both axes, and how to put them to other places.
const partsOf = (group, x, y) => {
  const parts = [];
  const add = (places, put, isMark) => parts.push({
    values: places.map(([a, b]) => [valueAt(x, a), valueAt(y, b)]), put, isMark,
  });
  for (const line of group.querySelectorAll('polyline')) {
    const places = line.getAttribute('points').split(' ').map(one => one.split(',').map(Number));
    add(places, all => line.setAttribute('points', all.join(' ')), false);
  }
  for (const mark of group.querySelectorAll('path')) {
    const place = mark.getAttribute('transform').match(/[-\d.]+/g).map(Number);
    add([place], ([[a, b]]) => mark.setAttribute('transform', `translate(${a} ${b})`), true);
  }
  for (const bar of group.querySelectorAll('line')) {
    const [x1, y1, x2, y2] = ['x1', 'y1', 'x2', 'y2'].map(key => +bar.getAttribute(key));
    const half = (x2 - x1) / 2;
    parts.push({
      values: [[valueAt(x, x1 + half), valueAt(y, y1)], [valueAt(x, x1 + half), valueAt(y, y2)]],
      put: ([[a, b], [, c]]) => {
        for (const [key, to] of [['x1', a - half], ['x2', a + half], ['y1', b], ['y2', c]]) {
          bar.setAttribute(key, to);
        }
      },
      isBar: true,
    });
  }
  return parts;
};

// Points of a series that can be read off, ascending. A step has each value twice.
const pointsOf = (group, parts) => {
  const isStep = group.dataset.shape === 'step';
  const points = [];
  for (const part of parts) {
    if (!part.isBar) {
      points.push(...part.values.filter((_, at) => part.isMark || !isStep || at % 2 === 0));
    }
  }
  return points.sort((a, b) => a[0] - b[0]);
};

const panelOf = g => {
  const [left, top, right, bottom, inset] = g.dataset.frame.split(' ').map(Number);
  const panel = {
    g, left, top, right, bottom,
    axes: {x: axis(g.dataset.x, left + inset, right - inset), y: axis(g.dataset.y, bottom, top)},
    original: {}, isHeat: 'heat' in g.dataset,
  };
  panel.drawn = {...panel.axes};
  panel.series = [...g.querySelectorAll('.series')].map(one => {
    const parts = partsOf(one, panel.axes.x, panel.axes.y);
    return {g: one, name: one.dataset.name, isStep: one.dataset.shape === 'step', parts,
      points: pointsOf(one, parts)};
  });
  return panel;
};

// Switching of axes.
const valuesOf = (panel, key) => panel.series.flatMap(one =>
  one.parts.flatMap(part => part.values.map(both => both[key === 'x' ? 0 : 1])));
const stepOf = span => {
  const unit = 10 ** Math.floor(Math.log10(span / 5));
  return [1, 2, 5, 10].map(one => one * unit).find(one => one >= span / 5 * 0.999);
};
const ticksOf = a => {
  const ticks = [];
  if (a.kind === 'log') {
    const steps = a.most / a.least > 1e3 ? [1] : [1, 2, 5];
    for (let unit = 10 ** Math.floor(Math.log10(a.least)); unit <= a.most; unit *= 10) {
      ticks.push(...steps.map(one => one * unit));
    }
    return ticks.filter(one => one >= a.least * 0.999 && one <= a.most * 1.001);
  }
  const step = stepOf(a.most - a.least);
  for (let at = Math.ceil(a.least / step - 1e-9); at * step <= a.most + step / 1e6; at += 1) {
    ticks.push(at * step);
  }
  return ticks;
};
const otherAxis = (panel, key) => {
  const own = panel.axes[key];
  const toLog = own.kind !== 'log';
  const values = valuesOf(panel, key).filter(v => Number.isFinite(v) && (!toLog || v > 0));
  if (values.length === 0) return null;
  let least = values.reduce((a, b) => Math.min(a, b));
  let most = values.reduce((a, b) => Math.max(a, b));
  if (toLog) {
    if (key === 'y') {
      least = 10 ** Math.floor(Math.log10(least) + 1e-9);
      most = 10 ** Math.ceil(Math.log10(most) - 1e-9);
    }
    if (most <= least) most = least * 10;
  } else {
    if (key === 'y') least = Math.min(least, 0);
    if (most <= least) most = least + 1;
    if (key === 'y') most = Math.ceil(most / stepOf(most - least)) * stepOf(most - least);
  }
  return {...own, kind: toLog ? 'log' : 'lin', least, most};
};
const drawTicks = (panel, key, group) => {
  const a = panel.drawn[key];
  const {left, right, top, bottom} = panel;
  let free = -Infinity;
  const nodes = [];
  for (const tick of ticksOf(a)) {
    const at = placeOf(a, tick);
    const text = label(tick, a.unit);
    if (key === 'y') {
      nodes.push(element('line', {x1: left, x2: right, y1: at, y2: at, class: 'grid'}));
      if (Math.abs(at - free) < 15) continue;
      nodes.push(element('text', {x: left - 6, y: at + 4, 'text-anchor': 'end'}, text));
      free = at;
    } else {
      nodes.push(element('line', {x1: at, x2: at, y1: bottom, y2: bottom + 4, class: 'axis'}));
      const half = text.length * 4;
      if (at - half < free) continue;
      nodes.push(element('text', {x: at, y: bottom + 18, 'text-anchor': 'middle'}, text));
      free = at + half + 6;
    }
  }
  const end = key === 'y' ? {x1: left, x2: left, y1: top, y2: bottom}
    : {x1: left, x2: right, y1: bottom, y2: bottom};
  group.replaceChildren(...nodes, element('line', {...end, class: 'axis'}));
};
const switchAxis = (panel, key, isLog) => {
  const group = panel.g.querySelector(`.ticks-${key}`);
  panel.original[key] ??= [...group.childNodes];
  const isOriginal = (panel.axes[key].kind === 'log') === isLog;
  const drawn = isOriginal ? panel.axes[key] : otherAxis(panel, key);
  if (!drawn) return;
  panel.drawn[key] = drawn;
  if (isOriginal) group.replaceChildren(...panel.original[key]);
  else drawTicks(panel, key, group);
  const round = place => Math.round(place * 100) / 100;
  for (const one of panel.series) {
    for (const part of one.parts) {
      part.put(part.values.map(([a, b]) =>
        [round(placeOf(panel.drawn.x, a)), round(placeOf(panel.drawn.y, b))]));
    }
  }
};

// Reading of heat maps: the colour of a pixel, looked up in the bar of colours.
const pixelsOf = image => new Promise((done, failed) => {
  const picture = new Image();
  picture.onload = () => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
    const context = canvas.getContext('2d');
    context.drawImage(picture, 0, 0);
    done(context.getImageData(0, 0, canvas.width, canvas.height));
  };
  picture.onerror = failed;
  picture.src = image.getAttribute('href');
});
const heatOf = async panel => {
  const [cells, bar] = await Promise.all(['cells', 'bar'].map(name =>
    pixelsOf(panel.g.querySelector(`.${name} image`))));
  const colour = (pixels, at) => [0, 1, 2].map(i => pixels.data[4 * at + i]).join();
  const scale = axis(panel.g.dataset.values, bar.height - 1, 0);
  const values = new Map();
  for (let row = 0; row < bar.height; row += 1) values.set(colour(bar, row), valueAt(scale, row));
  return (x, y) => {
    const column = Math.floor((x - panel.left) / (panel.right - panel.left) * cells.width);
    const row = Math.floor((y - panel.top) / (panel.bottom - panel.top) * cells.height);
    const at = Math.min(row, cells.height - 1) * cells.width + Math.min(column, cells.width - 1);
    return cells.data[4 * at + 3] ? values.get(colour(cells, at)) : undefined;
  };
};

const enhance = figure => {
  const svg = figure.querySelector('svg');
  const box = figure.querySelector('.wide');
  if (!svg || !box || !svg.querySelector('.panel')) return;
  const groups = [...svg.querySelectorAll('.panel')];
  let known = null;
  const panels = () => known ??= groups.map(panelOf);

  const controls = document.createElement('div');
  controls.className = 'controls';
  const reading = document.createElement('p');
  reading.className = 'reading';
  reading.setAttribute('role', 'status');
  const invitation = 'Point at the figure, or focus it and press the arrow keys, to read values.';
  reading.textContent = invitation;
  box.after(controls, reading);
  const addButton = (text, isPressed, press) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    button.setAttribute('aria-pressed', isPressed);
    button.addEventListener('click', () => {
      const now = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', now);
      press(now);
      clear();
    });
    controls.append(button);
  };
  const named = [...svg.querySelectorAll('.series')].map(one => one.dataset.name);
  const names = [...new Set(named)].filter(name => name);
  for (const name of names.length > 1 ? names : []) {
    addButton(name, true, isShown => {
      for (const one of svg.querySelectorAll('.series, .key')) {
        if (one.dataset.name === name) one.classList.toggle('off', !isShown);
      }
    });
  }
  const axes = new Map();
  for (const [at, g] of groups.entries()) {
    for (const [key, title] of [['x', g.dataset.across], ['y', g.dataset.up]]) {
      const kind = g.dataset[key].split(' ')[0];
      // Pixels cannot be moved.
      if (!title || kind === 'names' || g.querySelector('image')) continue;
      const all = axes.get(key + title) ?? {key, title, kind, members: []};
      all.members.push(at);
      axes.set(key + title, all);
    }
  }
  for (const {key, title, kind, members} of axes.values()) {
    addButton(`Logarithmic: ${title}`, kind === 'log', isLog => {
      for (const at of members) switchAxis(panels()[at], key, isLog);
    });
  }

  // The cursor: a line at the place that is read.
  let cursor = null;
  let current = null;
  const clear = () => {
    cursor?.remove();
    cursor = current = null;
    reading.textContent = invitation;
  };
  const visible = panel => panel.series.filter(one => !one.g.classList.contains('off'));
  const together = panel => panels().filter(one =>
    !one.isHeat && one.g.dataset.across === panel.g.dataset.across);
  // Places are rounded, so that one value differs a little between panels.
  const placesOf = panel => {
    const all = together(panel).flatMap(one =>
      visible(one).flatMap(series => series.points.map(point => point[0])));
    let last = -Infinity;
    return all.sort((a, b) => a - b).filter(x => {
      const at = placeOf(panel.drawn.x, x);
      const isNew = at - last > 0.25;
      if (isNew) last = at;
      return isNew;
    });
  };
  const read = (panel, series, x) => {
    const {points} = series;
    const at = placeOf(panel.drawn.x, x);
    const near = series.isStep
      ? points.filter(one => placeOf(panel.drawn.x, one[0]) <= at + 0.25).slice(-1)
      : points.filter(one => Math.abs(placeOf(panel.drawn.x, one[0]) - at) < 0.6);
    return near.map(one => one[1]).sort((a, b) => a - b);
  };
  const mark = marks => {
    cursor?.remove();
    cursor = element('g', {class: 'cursor'});
    cursor.append(...marks);
    svg.append(cursor);
  };
  const upright = (panel, place) =>
    element('line', {x1: place, x2: place, y1: panel.top, y2: panel.bottom});
  const show = (panel, x) => {
    const texts = [];
    const marks = [];
    for (const one of together(panel)) {
      const place = placeOf(one.drawn.x, x);
      marks.push(upright(one, place));
      for (const series of visible(one)) {
        const values = read(one, series, x);
        if (values.length === 0) continue;
        for (const v of values) {
          marks.push(element('circle', {cx: place, cy: placeOf(one.drawn.y, v), r: 3}));
        }
        const ends = [...new Set([values[0], values.at(-1)].map(v => label(v, one.drawn.y.unit)))];
        texts.push(`${series.name || one.g.dataset.up}: ${ends.join(' to ')}`);
      }
    }
    mark(marks);
    current = {panel, x};
    reading.textContent = `${panel.g.dataset.across}: ${label(x, panel.drawn.x.unit)} – ` +
      (texts.join('; ') || 'no value');
    reveal(placeOf(panel.drawn.x, x));
  };
  const textAt = (g, key, a, place) => {
    const list = g.dataset[`${key}Names`];
    return list ? list.split('␟')[Math.floor(valueAt(a, place))] ?? ''
      : label(valueAt(a, place), a.unit);
  };
  const showHeat = async (panel, x, y) => {
    current = {panel, x, y};
    try {
      panel.heat ??= heatOf(panel);
      const found = (await panel.heat)(x, y);
      if (current?.panel !== panel || current.x !== x || current.y !== y) return;
      mark([upright(panel, x),
        element('line', {x1: panel.left, x2: panel.right, y1: y, y2: y})]);
      const {g} = panel;
      reading.textContent = `${g.dataset.across}: ${textAt(g, 'x', panel.axes.x, x)}; ` +
        `${g.dataset.up}: ${textAt(g, 'y', panel.axes.y, y)} – ` +
        (found === undefined ? 'nothing' : `${g.dataset.quantity}: about ${label(found)}`);
      reveal(x);
    } catch {
      clear();
    }
  };
  // A figure that is wider than the window scrolls along with its cursor.
  const reveal = place => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const at = place * scale - box.scrollLeft;
    if (at < 20 || at > box.clientWidth - 20) box.scrollLeft = place * scale - box.clientWidth / 2;
  };
  svg.addEventListener('pointermove', event => {
    const at = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(svg.getScreenCTM().inverse());
    const panel = panels().find(one => at.x >= one.left - 5 && at.x <= one.right + 5 &&
      at.y >= one.top - 5 && at.y <= one.bottom + 5);
    if (!panel) return;
    if (panel.isHeat) {
      const inside = (v, from, to) => Math.min(Math.max(v, from), to - 0.01);
      showHeat(panel, inside(at.x, panel.left, panel.right),
        inside(at.y, panel.top, panel.bottom));
      return;
    }
    const places = placesOf(panel);
    if (places.length === 0) return;
    const distance = x => Math.abs(placeOf(panel.drawn.x, x) - at.x);
    show(panel, places.reduce((best, x) => distance(x) < distance(best) ? x : best));
  });
  svg.addEventListener('pointerleave', clear);
  box.addEventListener('keydown', event => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key] ?? 0;
    const rise = {ArrowUp: -1, ArrowDown: 1}[event.key] ?? 0;
    const isEnd = event.key === 'Home' || event.key === 'End';
    if (event.target !== box || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Escape') clear();
    const panel = current?.panel ?? panels()[0];
    if (panel.isHeat ? !(step || rise || isEnd) : !(step || isEnd)) return;
    event.preventDefault();
    if (panel.isHeat) {
      const {left, right, top, bottom} = panel;
      let {x, y} = current ?? {x: (left + right) / 2, y: (top + bottom) / 2};
      x = isEnd ? (event.key === 'Home' ? left : right) : x + step * (right - left) / 120;
      y += rise * (bottom - top) / 60;
      showHeat(panel, Math.min(Math.max(x, left), right - 0.01),
        Math.min(Math.max(y, top), bottom - 0.01));
      return;
    }
    const places = placesOf(panel);
    if (places.length === 0) return;
    let at = current ? places.indexOf(current.x) + step : 0;
    if (isEnd) at = event.key === 'Home' ? 0 : places.length - 1;
    show(panel, places[Math.min(Math.max(at, 0), places.length - 1)]);
  });
};

for (const figure of document.querySelectorAll('figure')) enhance(figure);
})();
