// Values that the page of I/O logs draws. There is no JSON of them: the logs themselves are read.

/** Returns the values of the logs' figure over time, log by log; each has one direction here. */
export function drawn(logs) {
  return logs.map(linesOf).map((lines) => ({
    title: 'clat over time',
    up: `clat, ${DIRECTIONS[lines[0].direction]}, µs`,
    series: 'smallest and largest',
    values: lines.map(({ ms, ns }) => ({ x: ms / 1e3, y: ns / 1e3 })),
  }));
}

/** Returns the lines of a latency log: `time, value, direction, size, offset`. */
export function linesOf(text) {
  const rows = text.trim().split('\n');
  return rows.map((row) => {
    const [ms, ns, direction] = row.split(',').map(Number);
    return { ms, ns, direction };
  });
}

const DIRECTIONS = ['read', 'write', 'trim'];
