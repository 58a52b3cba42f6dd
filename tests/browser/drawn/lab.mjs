// Values that the page of a lab draws, of what `fathom lab --json` prints.

/** Returns the values of a lab's figures. */
export function drawn([{ rows }]) {
  const keys = Object.keys(rows[0]);
  const metrics = METRICS.filter(({ key }) => keys.some((one) => one.endsWith(key)));
  const variants = variantsOf(keys, metrics[0].key);
  return [
    ...metrics.flatMap((metric) => overAxis(rows, variants, metric)),
    ...againstRate(rows, variants, metrics),
    ...metrics.flatMap((metric) => comparisons(rows, variants, metric)),
  ];
}

/** Returns the variants, by the keys of their columns; a lab of one has no names in its keys. */
function variantsOf(keys, metric) {
  const own = keys.filter((key) => key.endsWith(metric));
  return own.map((key) => key.slice(0, -metric.length));
}

/** Returns the medians of a metric over the axis with the numbers, by line of cells. */
function overAxis(rows, variants, { key, name, unit }) {
  const [across, label] = axis(rows[0]);
  const title = `${name}, ${unit}, over ${label}`;
  return lines(rows, variants, ({ row, variant }) => ({ x: row[across], y: row[variant + key] })).map(
    ({ series, values }) => ({ title, panel: 0, series, values }),
  );
}

/** Returns each latency against the rate, by line of cells. */
function againstRate(rows, variants, metrics) {
  const rate = metrics.find(({ unit }) => unit === 'IOPS');
  const latencies = metrics.filter(({ unit }) => unit === 'µs');
  return latencies.flatMap(({ key, name, unit }) => {
    const title = `${name}, ${unit}, against ${rate.name}, IOPS`;
    const point = ({ row, variant }) => ({ x: row[variant + rate.key], y: row[variant + key] });
    return lines(rows, variants, point).map((line) => ({ title, panel: 0, ...line }));
  });
}

/** Returns the points of each variant and setting of the other axes. */
function lines(rows, variants, point) {
  const all = new Map();
  for (const row of rows.filter((row) => typeof row[axis(row)[0]] === 'number')) {
    for (const variant of variants) {
      const others = row.bs === undefined ? '' : `bs=${row.bs}, `;
      const name = `${others}${variant.slice(0, -1)}`;
      const values = all.get(name) ?? [];
      values.push(point({ row, variant }));
      all.set(name, values);
    }
  }
  // The only line of a lab without variants has no name.
  return [...all].map(([name, values]) => ({ series: name || undefined, values }));
}

/** Returns the key of the axis with numbers, and its label. */
function axis(row) {
  return 'asked_iops' in row
    ? ['asked_iops', 'load asked of all jobs, IOPS']
    : ['iodepth', 'iodepth'];
}

/** Returns the intervals of each variant against the first one. */
function comparisons(rows, [baseline, ...others], { key, name }) {
  const judged = others.filter((variant) => `${variant + key}_ratio` in rows[0]);
  return judged.map((variant) => ({
    title: `${name}: ${variant.slice(0, -1)} against ${baseline.slice(0, -1)}`,
    rows: rows.map((row) => {
      const ratio = (end) => percent(row[`${variant + key}_ratio${end}`]);
      return {
        name: `bs=${row.bs}, iodepth=${row.iodepth}`,
        value: ratio(''),
        low: ratio('_low'),
        high: ratio('_high'),
      };
    }),
  }));
}

/** Returns a ratio as a change in percent; none of a ratio that is missing. */
export function percent(ratio) {
  return typeof ratio === 'number' ? (ratio - 1) * 100 : undefined;
}

/** Metrics of the labs here, by the end of their keys. */
const METRICS = [
  { key: 'read_iops', name: 'read.iops', unit: 'IOPS' },
  { key: 'read_clat_p90_us', name: 'read.clat_p90', unit: 'µs' },
  { key: 'read_resp_mean_us', name: 'read.resp_mean', unit: 'µs' },
  { key: 'read_resp_p99_us', name: 'read.resp_p99', unit: 'µs' },
];
