// The pictures of README.md: the page with a small cluster at work behind it, in light, dark and on a phone. Called by
// ./dev screenshots, which says where they go.

import {mkdirSync} from 'node:fs';
import {join} from 'node:path';

import {connection, launch, openPage} from './browser.mjs';
import {Demo} from './demo.mjs';
import {Server} from './server.mjs';

const folder = process.argv[2] ?? 'docs/images';
const seconds = Number(process.argv[3] ?? 90);  // of work before the first picture: charts want a past

mkdirSync(folder, {recursive: true});
const server = await new Server().start();
const demo = new Demo(server.url);
const browser = await launch();
try {
  await demo.furnish();
  const work = demo.run();
  await new Promise((done) => setTimeout(done, seconds * 1000));
  const {locks} = await (await fetch(`${server.url}/locks?sort=queue&names=0&limit=1`)).json();
  const chosen = '#' + new URLSearchParams({type: locks[0].type, resource: locks[0].resource_id});
  const views = {
    'page-light': {hash: ''},
    'page-dark': {hash: chosen, colorScheme: 'dark'},
    'page-phone': {viewport: {width: 390, height: 844}, deviceScaleFactor: 2},
    'page-phone-lock': {viewport: {width: 390, height: 844}, deviceScaleFactor: 2, hash: chosen},
  };
  for (const [name, options] of Object.entries(views)) {
    const page = await openPage(browser, server.url, options);
    await connection(page, 'live');
    await page.locator(options.hash ? '#detail .queue li' : 'tr.lane').first().waitFor();
    await page.locator('#feed li').first().waitFor({state: 'attached'});
    await page.screenshot({path: join(folder, `${name}.png`)});
    if (page.complaints.length) throw new Error(page.complaints.join('\n'));
    await page.context().close();
    console.log(join(folder, `${name}.png`));
  }
  demo.stop();
  await work;
} finally {
  await browser.close();
  await server.remove();
}
