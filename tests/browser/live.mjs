// A run that shows itself on a local page: started here, and always ended.

import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';

/** Starts the run of a page; returns the page's entry with its address, and the process. */
export async function start({ command: [program, ...words], folder, ...page }, seconds) {
  const job = words.map((word) => word.replace('SECONDS', seconds));
  const child = spawn(program, job, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((done) => child.on('exit', (code) => done(code)));
  const url = await new Promise((found, failed) => {
    let text = '';
    child.stderr.on('data', (data) => {
      text += data;
      const [, address] = text.match(/serving (http:\S+)/) ?? [];
      if (address) found(address);
    });
    child.on('error', failed);
    ended.then((code) => failed(new Error(`${program} ended with ${code}: ${text}`)));
  });
  const policy = (await fetch(url)).headers.get('content-security-policy') ?? '';
  const isAllowed = (asked) => asked.startsWith(url);
  return { page: { ...page, url, policy, isAllowed, documents: [], isLive: true }, child, ended };
}

/** Does `work` while the run of a page goes on. */
export async function whileRunning(page, seconds, work) {
  const run = await start(page, seconds);
  try {
    return await work(run.page, run.ended);
  } finally {
    run.child.kill('SIGKILL');
    await run.ended;
  }
}

/**
 * Does `work` with a page that was changed on its way: of its document, which `change` gets without
 * its policy, because style and script have other hashes then.
 */
export async function whileChanged(page, change, work) {
  const server = createServer(async (request, reply) => {
    const answer = await fetch(new URL(request.url, page.url)).catch(() => undefined);
    if (!answer) return reply.destroy();
    const kind = answer.headers.get('content-type');
    reply.writeHead(answer.status, { 'content-type': kind, connection: 'close' });
    if (kind.startsWith('text/html')) return reply.end(change(await answer.text()));
    // The run may end, and the browser may go, at any time.
    return Readable.fromWeb(answer.body).on('error', () => reply.destroy()).pipe(reply);
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${server.address().port}/`;
  try {
    return await work({ ...page, url, isAllowed: (asked) => asked.startsWith(url) });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
