// Values that the page of a run draws, of its JSON report.

/** Returns the values of a run's figures. */
export function drawn([{ jobs, fathom }]) {
  const timelines = fathom.timelines.filter(({ windows }) => windows.length > 2);
  return [
    ...percentiles(jobs, (job, direction) => job.fathom?.[direction]?.resp_ns),
    ...timelines.flatMap((timeline) => {
      const title = `Group ${timeline.groupid}, ${timeline.direction}`;
      const rate = { title, panel: 0, values: rates(timeline) };
      return timeline.latency ? [rate, { title, panel: 1, values: largest(timeline) }] : [rate];
    }),
  ];
}

/**
 * Returns p90, p99 and p99.9 of each job and direction with ops, as far as ten ops lie beyond:
 * of the latency from when work was due, if `due` returns one.
 */
export function percentiles(jobs, due) {
  const latencies = jobs.flatMap((job) => {
    const directions = ['read', 'write'].filter((direction) => job[direction].total_ios > 0);
    return directions.map((direction) => due(job, direction) ?? job[direction].clat_ns);
  });
  return latencies.map(({ N: ops, percentile }) => {
    const told = Object.entries(SHARES).filter(([, across]) => ops / across >= 10);
    const values = told.map(([percent, x]) => ({ x, y: percentile[percent] / 1e3 }));
    return { title: 'Latency by percentile', panel: 0, values };
  });
}

/** Returns IOPS at the start of each whole window. */
export function rates(timeline) {
  return whole(timeline).map(({ x, ios }) => ({ x, y: ios / (timeline.window_ns / 1e9) }));
}

/** Returns the largest latency of each window with ops, µs. */
function largest(timeline) {
  const used = whole(timeline).filter(({ ios }) => ios > 0);
  return used.map(({ x, max }) => ({ x, y: max / 1e3 }));
}

/** Returns the windows that were measured to their end, by the time of their start. */
function whole({ columns, windows, start_ns: start, end_ns: end, window_ns: width }) {
  const [at, ios, max] = ['start_ns', 'ios', 'max_ns'].map((column) => columns.indexOf(column));
  const rows = windows.map((row) => ({ x: (start + row[at]) / 1e9, ios: row[ios], max: row[max] }));
  return rows.filter(({ x }) => x * 1e9 + width <= end + 1);
}

/** Percentiles as the report names them, and 1/(1 − p). */
const SHARES = { '90.000000': 10, '99.000000': 100, '99.900000': 1000 };
