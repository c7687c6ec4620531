// How quick the page is with very many resources: from the address to the first row, and what a second look costs.
// node measure.mjs [RESOURCES]

import {launch, openPage} from './browser.mjs';
import {Server} from './server.mjs';

const resources = Number(process.argv[2] ?? 100000);
const server = await new Server([], 'memory').start();
const browser = await launch();
try {
  await server.fill(resources);
  const timed = async (path) => {
    const began = performance.now();
    const answer = await fetch(server.url + path);
    const size = (await answer.arrayBuffer()).byteLength;
    return `${(performance.now() - began).toFixed(0)} ms, ${size} bytes`;
  };
  for (const path of ['/summary', '/locks?state=active&limit=200&names=1&count=1', '/locks?state=active&limit=200&names=1',
    '/locks?sort=queue&limit=1000&names=1&count=1', '/locks?contains=99&limit=200&names=1&count=1'])
    console.log(`${path}: ${await timed(path)}`);
  const tries = [];
  for (let i = 0; i < 5; ++i) {
    const page = await openPage(browser, server.url, {before: () => {
      new MutationObserver(() => {
        if (document.querySelector('tr.lane')) globalThis.firstRow ??= performance.now();
      }).observe(document, {childList: true, subtree: true});
    }});
    tries.push(await (await page.waitForFunction(() => globalThis.firstRow)).jsonValue());
    if (i === 0) await page.locator('#matched', {hasText: resources.toLocaleString('en')}).waitFor();
    await page.context().close();
  }
  console.log(`from the address to the first row, ${resources} resources: ${tries.map((ms) => ms.toFixed(0)).join(', ')} ms`);
} finally {
  await browser.close();
  await server.remove();
}
