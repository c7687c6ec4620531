// The status page in a real browser, with a real server behind it.
//
// Nothing here sleeps for a fixed time: what must appear is waited for, with a limit that a busy machine does not reach.

import assert from 'node:assert/strict';
import {existsSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {after, before, describe, test} from 'node:test';

import {CHROMIUM, connection, launch, openPage, row, setHidden} from './browser.mjs';
import {credentialsFile, Etcd, secret, Server} from './server.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
assert.ok(existsSync(CHROMIUM), 'Debian\'s package chromium is missing: ./dev test installs it');

let browser, server;
before(async () => {
  browser = await launch();
  server = await new Server([], 'memory').start();
});
after(async () => {
  await browser?.close();
  await server?.remove();
});

// Every test: nothing was complained about, neither in the console nor by the Content-Security-Policy.
async function withPage(options, run) {
  const page = await openPage(browser, options.server?.url ?? server.url, options);
  try {
    await run(page);
    assert.deepEqual(page.complaints, []);
  } finally {
    await page.context().close();
  }
}

const text = async (locator) => (await locator.textContent()).trim();

async function leaderOf(servers) {
  for (;;) {
    for (const each of servers) {
      const {role} = await (await fetch(`${each.url}/servers`)).json();
      if (role === 'leader') return each;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

test('what is held and waited for appears, and changes as it changes', () => withPage({hash: '#q=live'}, async (page) => {
  await page.getByText('Nothing matches.').waitFor();
  const {token} = await server.lock('pull', 'live/layer', 'node-a', {lease_ms: 600000, info: 'web:1'});
  await row(page, 'live/layer').waitFor();
  assert.equal(await text(row(page, 'live/layer').locator('.state')), 'Held');
  assert.equal(await text(row(page, 'live/layer').locator('.c-holder')), 'node-aweb:1');
  await server.lock('pull', 'live/layer', 'node-b');
  await server.lock('pull', 'live/layer', 'node-c');
  await row(page, 'live/layer').locator('.c-queue', {hasText: '2'}).waitFor();
  await server.post('/renew', {type: 'pull', resource_id: 'live/layer', node_id: 'node-a', token, done: 30, total: 40});
  await page.waitForFunction(() => document.querySelector('tr.lane progress')?.value === 30);
  await server.unlock('pull', 'live/layer', 'node-a', {token});
  await row(page, 'live/layer').waitFor({state: 'detached'});
  const line = page.locator('#feed li', {hasText: 'live/layer'});
  await line.waitFor();
  assert.match(await text(line), /pull done by node-a/);
}));

test('skips of pulls are counted as such, also those of one requester that asks again', () => withPage({}, async (page) => {
  const {token} = await server.lock('pull', 'skipped/layer', 'node-a');
  await server.unlock('pull', 'skipped/layer', 'node-a', {token});
  const skipped = page.locator('.sum .of-these');
  const before = parseInt(await text(skipped), 10) || 0;
  for (const node of ['node-b', 'node-b', 'node-c']) assert.equal((await server.lock('pull', 'skipped/layer', node)).skip, true);
  await page.locator('.sum .of-these', {hasText: new RegExp(`^${before + 3} pulls$`)}).waitFor();
  assert.match(await text(page.locator('.sum', {has: page.locator('.of-these')})), /^Skipped/);
}));

test('it says how far back the charts reach, and what ^ finds', () => withPage({hash: '#q=nothing'}, async (page) => {
  await page.locator('#charts-heading', {hasText: /^Last (minute|\d minutes)$/}).waitFor();
  const long = await (await fetch(`${server.url}/summary`)).json();
  for (const [name, values] of Object.entries(long.history)) if (Array.isArray(values)) long.history[name] = Array(150).fill(1);
  await page.route('**/summary', (route) => route.fulfill({json: {...long, history: {...long.history, step_ms: 2000}}}));
  await page.locator('#charts-heading', {hasText: /^Last 5 minutes$/}).waitFor();
  await page.fill('[name=q]', '');
  for (const width of [1360, 1024, 390]) {
    await page.setViewportSize({width, height: 800});
    const [hint, cut] = await page.evaluate(() => {
      const pen = document.createElement('canvas').getContext('2d');
      const cut = [...document.querySelectorAll('.filters input[type="search"], .filters select')].map((one) => {
        const style = getComputedStyle(one), shown = one.placeholder ?? one.selectedOptions[0].text;
        pen.font = `${style.fontSize} ${style.fontFamily}`;
        const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight), wanted = pen.measureText(shown).width;
        return wanted > room ? `${shown}: ${wanted} in ${room}` : '';
      });
      return [document.querySelector('[name=q]').placeholder, cut.filter(Boolean)];
    });
    assert.match(hint, /\^start/);
    assert.deepEqual(cut, [], `${width} px`);
  }
}));

test('a failure says why, in the feed and to whoever takes over', () => withPage({}, async (page) => {
  await server.lock('job', 'fails', 'node-a');
  await server.unlock('job', 'fails', 'node-a', {success: false, error: 'disk full on /var'});
  const line = page.locator('#feed li', {hasText: 'fails'});
  await line.waitFor();
  assert.match(await text(line), /failed on node-a.*disk full on \/var/);
  assert.equal(await line.getAttribute('class'), 'bad');
}));

test('filters find by part of an id, by beginning, node, state and operation, and the address is a link to what is shown',
  () => withPage({}, async (page) => {
    await server.lock('job', 'find/alpha', 'node-1');
    await server.lock('build', 'find/beta', 'node-2');
    await server.lock('job', 'find/beta-2', 'node-2');
    await server.lock('job', 'find/beta-2', 'node-3');
    const shown = async (...names) => {
      await page.waitForFunction((wanted) => JSON.stringify([...document.querySelectorAll('tr.lane .id')].map((one) => one.textContent)
        .filter((one) => one.startsWith('find/'))) === JSON.stringify(wanted), names);
    };
    await page.keyboard.press('/');
    await page.keyboard.type('nd/');
    await shown('find/alpha', 'find/beta', 'find/beta-2');
    await page.fill('[name=q]', '^find/b');
    await shown('find/beta', 'find/beta-2');
    await page.fill('[name=node]', 'node-3');
    await shown('find/beta-2');
    await page.fill('[name=node]', '');
    await page.check('[name=state][value=queued]');
    await shown('find/beta-2');
    await page.check('[name=state][value=active]');
    await page.fill('[name=q]', 'find');
    await page.selectOption('[name=op]', 'build');
    await shown('find/beta');
    await page.selectOption('[name=op]', '');
    await page.check('[name=state][value=queued]');
    await page.selectOption('[name=sort]', 'queue');
    await page.locator('#matched', {hasText: /^1$/}).waitFor();
    const address = page.url();
    assert.match(address, /#state=queued&q=find&sort=queue$/);
    await withPage({hash: new URL(address).hash}, async (other) => {
      await row(other, 'find/beta-2').waitFor();
      assert.equal(await other.inputValue('[name=q]'), 'find');
      assert.equal(await other.locator('tr.lane').count(), 1);
    });
  }));

test('a link to all states stays one, and neither the skip link nor closing a lock changes what is shown', async () => {
  await server.lock('once', 'link/done', 'node-a');
  await server.unlock('once', 'link/done', 'node-a');
  await server.lock('job', 'link/held', 'node-a');
  await withPage({hash: '#state=all&q=link'}, async (page) => {
    await row(page, 'link/done').waitFor();
    assert.ok(await page.isChecked('[name=state][value=all]'));
    await page.fill('[name=q]', 'link/');
    await page.waitForURL(/#state=all&q=link%2F$/);
    await row(page, 'link/done').waitFor();
    await page.locator('.skip-link').focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.id === 'locks-heading');
    assert.match(page.url(), /#state=all&q=link%2F$/);
  });
  await withPage({hash: '#state=held&q=link'}, async (page) => {
    await row(page, 'link/held').waitFor();
    assert.equal(await page.locator('[name=state]:checked').count(), 0, 'no button says "held"');
    await page.fill('[name=q]', 'link/');
    await page.waitForURL(/#state=held&q=link%2F$/);
  });
  await server.fill(100, 'tall');
  await withPage({}, async (page) => {
    await row(page, 'tall/000000').waitFor();
    await page.evaluate(() => document.querySelector('#rows').scrollIntoView());
    const before = await page.evaluate(() => scrollY);
    assert.ok(before > 0);
    await page.locator('tr.lane .id').nth(12).click();
    await page.locator('#detail').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#detail').waitFor({state: 'hidden'});
    assert.equal(await page.evaluate(() => scrollY), before);
    await page.goBack();
    await page.locator('#detail').waitFor();
  });
});

test('a selected lock shows its queue in order and who uses it; the keyboard reaches it and leaves it', () => withPage({hash: '#q=chosen'}, async (page) => {
  await server.lock('delete', 'chosen', 'node-a', {request_id: 'r-1'});
  for (const node of ['node-b', 'node-c', 'node-d']) await server.lock('delete', 'chosen', node);
  await row(page, 'chosen').waitFor();
  await row(page, 'chosen').locator('a').focus();
  await page.keyboard.press('Enter');
  await page.locator('#detail .queue li').nth(2).waitFor();
  assert.deepEqual(await page.locator('#detail .queue .node').allTextContents(), ['node-b', 'node-c', 'node-d']);
  assert.match(await text(page.locator('#detail .facts')), /node-a.*r-1/);
  assert.match(page.url(), /type=delete&resource=chosen/);
  await page.keyboard.press('Escape');
  await page.locator('#detail').waitFor({state: 'hidden'});
}));

test('Tab passes ten thousand rows as one stop: keys move in them, and a lock that the keyboard opens has the focus until it is closed', async () => {
  const own = await new Server([], 'memory').start();
  try {
    await own.fill(10000);
    await withPage({server: own}, async (page) => {
      const focused = (what) => page.waitForFunction((wanted) => document.activeElement.textContent === wanted || document.activeElement.id === wanted, what);
      const name = (i) => `bulk/${String(i).padStart(6, '0')}`;
      await row(page, name(0)).waitFor();
      assert.equal(await page.locator('tr.lane a[tabindex="0"]').count(), 1);
      await page.locator('[name=sort]').focus();
      await page.keyboard.press('Tab');
      await focused(name(0));
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await focused('detail-heading');
      await page.keyboard.press('Tab');
      await focused('detail-close');
      await page.keyboard.press('Enter');
      await focused(name(1));
      await page.keyboard.press('Enter');
      await focused('detail-heading');
      await page.keyboard.press('Shift+Tab');
      await focused(name(1));
      await page.keyboard.press('Tab');
      await page.keyboard.press('Escape');
      await focused(name(1));
      await page.keyboard.press('PageDown');
      await page.waitForFunction(() => Number(document.activeElement.closest('tr')?.getAttribute('aria-rowindex')) > 8);
      await page.keyboard.press('PageUp');
      await focused(name(1));
      await page.keyboard.press('End');
      await focused(name(9999));
      assert.equal(await page.locator('tr.lane a[tabindex="0"]').count(), 1);
      const box = await page.evaluate(() => { const {top, bottom} = document.activeElement.getBoundingClientRect(); return [top, innerHeight - bottom]; });
      assert.ok(box.every((space) => space >= 0), `${box}`);
      await page.keyboard.press('Enter');
      await focused('detail-heading');
      await page.evaluate(() => scrollTo(0, 0));
      await row(page, name(0)).waitFor();
      await page.keyboard.press('Escape');
      await focused(name(9999));
      await page.keyboard.press('Home');
      await focused(name(0));
      await page.evaluate(() => scrollTo(0, 3000 * 54));
      await row(page, name(3005)).waitFor();
      await page.locator('[name=sort]').focus({preventScroll: true});
      await page.evaluate(() => scrollTo(0, 3000 * 54));
      await row(page, name(3005)).waitFor();
      await page.keyboard.press('Tab');
      await page.waitForFunction(() => /^bulk\/0029|^bulk\/0030/.test(document.activeElement.textContent));
    });
  } finally {
    await own.remove();
  }
});

test('a lock that changes all the time may be read: a selection stays, the button stays, and it is not asked about at each change',
  () => withPage({hash: '#type=job&resource=restless'}, async (page) => {
    const {token} = await server.lock('job', 'restless', 'node-a', {lease_ms: 600000});
    await page.locator('#break').waitFor();
    await page.evaluate(() => {
      getSelection().selectAllChildren(document.querySelector('#detail .facts .node'));
      document.querySelector('#break').kept = true;
    });
    let asked = 0;
    page.on('request', (request) => { if (request.url().includes('/lock/status')) ++asked; });
    const began = Date.now();
    for (let done = 1; done <= 40; ++done) {
      await server.post('/renew', {type: 'job', resource_id: 'restless', node_id: 'node-a', token, done});
      await server.lock('job', 'restless', `waits-${done}`);
      await server.post('/cancel', {type: 'job', resource_id: 'restless', node_id: `waits-${done}`});
    }
    await server.lock('job', 'restless', 'node-b');
    await page.locator('#detail .queue .node', {hasText: 'node-b'}).waitFor();
    await page.locator('#detail .progress', {hasText: '40 so far'}).waitFor();
    assert.equal(await page.locator('#detail progress').count(), 0, 'nobody knows of how much');
    assert.equal(await page.evaluate(() => getSelection().toString()), 'node-a');
    assert.ok(await page.evaluate(() => document.querySelector('#break').kept));
    const most = (Date.now() - began) / 300 + 1;
    assert.ok(asked <= most, `asked ${asked} times, ${most} are enough`);
  }));

// Most of their time they wait, and so together. Who shares a server looks for names of its own.
describe('side by side', {concurrency: 4}, () => {
test('a focused row keeps the focus when it moves, and the one that takes its place has it when it goes', async () => {
  for (const [name, waiting] of [['focus/a', 3], ['focus/b', 2], ['focus/c', 1]]) {
    await server.lock('job', name, 'node-a');
    for (let i = 0; i < waiting; ++i) await server.lock('job', name, `waits-${i}`);
  }
  const first = (page, name) => page.waitForFunction((wanted) => document.querySelector('tr.lane .id')?.textContent === wanted, name);
  const focused = (page, name) => page.waitForFunction((wanted) => document.activeElement.textContent === wanted, name);
  await withPage({hash: '#q=focus/&sort=queue'}, async (page) => {
    await row(page, 'focus/c').locator('a').focus();
    for (let i = 3; i < 8; ++i) await server.lock('job', 'focus/c', `waits-${i}`);
    await first(page, 'focus/c');
    await focused(page, 'focus/c');
  });
  await withPage({hash: '#q=focus/'}, async (page) => {
    await row(page, 'focus/b').locator('a').focus();
    for (const node_id of ['node-a', 'waits-0', 'waits-1']) await server.unlock('job', 'focus/b', node_id);
    await row(page, 'focus/b').waitFor({state: 'detached'});
    await focused(page, 'focus/c');
  });
});

test('an admin breaks a hold with a reason, after being asked', () => withPage({hash: '#type=job&resource=stuck'}, async (page) => {
  await server.lock('job', 'stuck', 'node-dead');
  await server.lock('job', 'stuck', 'node-next');
  await page.locator('#break').click();
  assert.match(await text(page.locator('#break-what')), /^job stuck Held by node-dead$/, 'the id has lines of its own');
  await page.locator('#break-cancel').click();
  assert.equal((await (await fetch(`${server.url}/lock/status?type=job&resource_id=stuck`)).json()).holder.node_id, 'node-dead');
  await page.locator('#break').click();
  await page.fill('#break-reason', 'node-dead was switched off');
  await page.locator('#break-confirm').click();
  await page.locator('#detail .facts', {hasText: 'node-next'}).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#feed li', {hasText: 'node-dead was switched off'}).waitFor();
}));

test('a hold that began after the reader had looked is not broken in the place of the one that was meant', () => withPage({hash: '#type=job&resource=swapped', expected: /403/}, async (page) => {
  await server.lock('job', 'swapped', 'node-first');
  await server.lock('job', 'swapped', 'node-second');
  await page.locator('#break').click();
  await page.fill('#break-reason', 'node-first was switched off');
  await server.unlock('job', 'swapped', 'node-first');
  await page.locator('#detail .facts', {hasText: 'node-second'}).waitFor({state: 'attached'});
  assert.match(await text(page.locator('#break-what')), /Held by node-first/);
  await page.locator('#break-confirm').click();
  await page.locator('#break-error', {hasText: 'now node-second'}).waitFor();
  assert.ok(await page.isDisabled('#break-confirm'));
  assert.equal((await (await fetch(`${server.url}/lock/status?type=job&resource_id=swapped`)).json()).holder.node_id, 'node-second');
  await page.locator('#break-cancel').click();
  await page.locator('#break').click();
  assert.match(await text(page.locator('#break-what')), /Held by node-second/);
  assert.ok(await page.isEnabled('#break-confirm'));
}));

test('what callers have named is text, whatever characters it has', () => withPage({}, async (page) => {
  const evil = '<script>alert(1)</script><img src=x onerror=alert(2)>';
  await server.lock('job', evil, '<b>node</b>', {info: '"><svg onload=alert(3)>'});
  await server.lock('job', evil, '<i>waits</i>');
  await row(page, '<script>').waitFor();
  await row(page, '<script>').locator('a').click();
  await page.locator('#detail .queue li').waitFor();
  assert.equal(await text(page.locator('#detail-heading')), evil);
  await server.unlock('job', evil, '<b>node</b>', {success: false, error: '<script>alert(4)</script>'});
  await server.unlock('job', evil, '<i>waits</i>');
  await page.keyboard.press('Escape');
  await page.locator('#feed li', {hasText: 'alert(4)'}).waitFor();
  assert.equal(await page.evaluate(() => document.querySelectorAll('main script, main img, main b, main i').length), 0);
}));

test('after kill -9 and a restart the page comes back by itself, and has missed nothing', async () => {
  const own = await new Server().start();
  try {
    // The browser itself says of each failed request that it has failed.
    await withPage({server: own, hash: '#state=all', expected: /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY/}, async (page) => {
      await own.lock('job', 'before', 'node-a');
      await row(page, 'before').waitFor();
      await connection(page, 'live');
      await own.kill();
      await connection(page, 'reconnecting');
      assert.ok(await row(page, 'before').isVisible(), 'what was known stays readable');
      await own.start();
      await own.lock('job', 'afterwards', 'node-b');
      await own.unlock('job', 'before', 'node-a');
      await connection(page, 'live');
      await row(page, 'afterwards').waitFor();
      await page.locator('#feed li', {hasText: 'The server was started again.'}).waitFor();
      await page.locator('#feed li', {hasText: 'before'}).waitFor();
    });
  } finally {
    await own.remove();
  }
});

test('one answer that fails is forgotten with the next one, and is no reason to count or to speak every second', () => withPage({expected: /ERR_FAILED/}, async (page) => {
  await connection(page, 'live');
  await page.evaluate(() => {
    globalThis.spoken = [];
    const look = () => spoken.push(document.querySelector('#connection-text').textContent);
    new MutationObserver(look).observe(document.querySelector('#connection-text'), {childList: true, characterData: true, subtree: true});
  });
  let failures = 2;
  await page.route('**/summary', (route) => (failures-- > 0 ? route.abort() : route.continue()));
  await connection(page, 'reconnecting');
  await page.locator('#lost-for', {hasText: /[1-9] s/}).waitFor();
  await connection(page, 'live');
  assert.equal(await page.evaluate(() => document.body.classList.contains('stale')), false);
  assert.equal(await text(page.locator('#lost-for')), '');
  assert.deepEqual(await page.evaluate(() => spoken), ['Reconnecting…', 'Live']);
}));

test('how many match is said when a filter has changed, not whenever a lock comes or goes', () => withPage({hash: '#q=said'}, async (page) => {
  await page.getByText('Nothing matches.').first().waitFor();
  assert.equal(await page.locator('#matched').getAttribute('role'), null);
  await server.lock('job', 'said/1', 'node-a');
  await page.locator('#matched', {hasText: /^1$/}).waitFor();
  assert.equal(await text(page.locator('#found')), '');
  await page.fill('[name=q]', 'said/');
  await page.locator('#found', {hasText: '1 found'}).waitFor({state: 'attached'});
  await server.lock('job', 'said/2', 'node-a');
  await page.locator('#matched', {hasText: /^2$/}).waitFor();
  assert.equal(await text(page.locator('#found')), '1 found');
}));

test('a name that is not the server\'s is refused in its words, and nothing is claimed', () => withPage({expected: /403/, before: () => {
  const real = fetch;
  const body = JSON.stringify({code: 'foreign_origin', error: 'start it with --host NAME'});
  globalThis.fetch = (target, ...rest) => (/^\/(summary|events|locks|version)/.test(target) ? Promise.resolve(new Response(body, {status: 403})) : real(target, ...rest));
}}, async (page) => {
  await connection(page, 'refused');
  await page.locator('#notice', {hasText: '--host NAME'}).waitFor();
  for (const id of ['#now', '#past', '#table', '#empty', '#feed-empty']) await page.locator(id).waitFor({state: 'hidden'});
}));

test('asks for a credential once when the server wants one, and keeps it in memory only', async () => {
  const [reader, admin] = [secret(), secret()];
  const own = await new Server(['--credentials', credentialsFile([{name: 'reader', role: 'read', secret: reader},
    {name: 'root', role: 'admin', secret: admin}])], 'memory').start();
  own.credential = admin;
  try {
    await own.lock('job', 'secret-work', 'node-a');
    await withPage({server: own, expected: /40[13] \((Unauthorized|Forbidden)\)/}, async (page) => {
      await page.locator('#credential').waitFor();
      assert.equal(await page.locator('tr.lane').count(), 0);
      for (let i = 0; i < 4; ++i) {
        await page.keyboard.press('Escape');
        await page.locator('#credential').waitFor();
      }
      await page.fill('#credential', 'ts_–dash');
      await page.keyboard.press('Enter');
      await page.locator('#credential-error', {hasText: 'ASCII'}).waitFor();
      await page.fill('#credential', secret());
      await page.keyboard.press('Enter');
      await page.locator('#credential-error', {hasText: 'does not know'}).waitFor();
      await page.fill('#credential', reader);
      await page.keyboard.press('Enter');
      await row(page, 'secret-work').waitFor();
      await connection(page, 'live');
      assert.equal(await page.inputValue('#credential'), '');
      assert.deepEqual(await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]), ['', 0, 0]);
      await row(page, 'secret-work').locator('a').click();
      await page.locator('#detail .hint', {hasText: 'you need the role admin'}).waitFor();
      assert.equal(await page.locator('#break').count(), 0, 'who may not break is not asked why');
      await page.keyboard.press('Escape');
      await own.unlock('job', 'secret-work', 'node-a');
      await page.locator('#feed li', {hasText: 'secret-work'}).waitFor();
      assert.equal(await page.locator('#credential-dialog').isVisible(), false);
    });
  } finally {
    await own.remove();
  }
});

test('an admin who logs in may break, and is told so when that has changed meanwhile', async () => {
  const admin = secret();
  const file = credentialsFile([{name: 'root', role: 'admin', secret: admin}]);
  const own = await new Server(['--credentials', file], 'memory').start();
  own.credential = admin;
  try {
    await own.lock('job', 'held', 'node-a');
    await withPage({server: own, hash: '#type=job&resource=held', expected: /40[13] \((Unauthorized|Forbidden)\)/}, async (page) => {
      await page.fill('#credential', admin);
      await page.keyboard.press('Enter');
      await page.locator('#break').click();
      await page.route('**/admin/break', (route) => route.fulfill({status: 403, body: '{"code":"forbidden","error":"no"}'}));
      await page.fill('#break-reason', 'may I?');
      await page.locator('#break-confirm').click();
      await page.locator('#break-error', {hasText: 'needs the role admin'}).waitFor();
    });
  } finally {
    await own.remove();
  }
});

test('with the credential of a node it shows that node\'s locks as they change, and no sums', async () => {
  const [node, admin] = [secret(), secret()];
  const own = await new Server(['--credentials', credentialsFile([
    {name: 'node-a', role: 'client', secret: node, resources: ['mine/']}, {name: 'root', role: 'admin', secret: admin}])], 'memory').start();
  own.credential = admin;
  try {
    await own.lock('job', 'mine/first', 'node-a');
    await own.lock('job', 'theirs/first', 'node-b');
    await withPage({server: own, expected: /40[13] \((Unauthorized|Forbidden)\)/}, async (page) => {
      await page.fill('#credential', node);
      await page.keyboard.press('Enter');
      await row(page, 'mine/first').waitFor();
      await connection(page, 'live');
      for (const id of ['#now', '#past']) await page.locator(id).waitFor({state: 'hidden'});
      await own.lock('job', 'theirs/second', 'node-b');
      await own.lock('job', 'mine/second', 'node-a');
      await row(page, 'mine/second').waitFor();
      assert.equal(await page.locator('tr.lane', {hasText: 'theirs/'}).count(), 0);
      await own.unlock('job', 'mine/second', 'node-a');
      await page.locator('#feed li', {hasText: 'mine/second'}).waitFor();
      assert.equal(await page.locator('#credential-dialog').isVisible(), false);
    });
  } finally {
    await own.remove();
  }
});

test('eight tabs are all alive: a browser has six connections to a server, and a tab that nobody sees lets go of its stream', async () => {
  const own = await new Server([], 'memory').start();
  const context = await browser.newContext();
  context.setDefaultTimeout(90000);
  try {
    const tabs = [];
    for (let i = 0; i < 8; ++i) {
      if (i > 0) await setHidden(tabs.at(-1), true);
      tabs.push(await context.newPage());
      await tabs.at(-1).goto(`${own.url}/`);
      await connection(tabs.at(-1), 'live');
    }
    await own.lock('job', 'while-hidden', 'node-a');
    await own.unlock('job', 'while-hidden', 'node-a');
    await own.lock('job', 'at-last', 'node-a');
    await row(tabs.at(-1), 'at-last').waitFor();
    await setHidden(tabs.at(-1), true);
    await setHidden(tabs[0], false);
    await row(tabs[0], 'at-last').waitFor();
    await tabs[0].locator('#feed li', {hasText: 'while-hidden'}).waitFor();
    await connection(tabs[0], 'live');
  } finally {
    await context.close();
    await own.remove();
  }
});

test('a page that is told to stay with a server that stands by says so, and where the locks are', async () => {
  const etcd = await new Etcd().start();
  const all = [];
  try {
    for (let i = 0; i < 2; ++i) all.push(await new Server([], etcd.store).start());
    const leader = await leaderOf(all);
    await withPage({server: all.find((one) => one !== leader), expected: /307|503/}, async (page) => {
      await page.getByRole('button', {name: 'Stay here'}).click();
      await page.locator('#notice', {hasText: 'Locks are shown by the leader'}).waitFor();
      assert.equal(await page.locator('#notice a').getAttribute('href'), `${leader.url}/`);
      await connection(page, 'standby');
      assert.equal(await text(page.locator('#connection')), 'Standby');
      for (const id of ['#now', '#past', '#feed-empty']) await page.locator(id).waitFor({state: 'hidden'});
    });
  } finally {
    for (const each of all) await each.remove();
    etcd.remove();
  }
});

test('a page on a server that stands by follows to the leader, and when the leader is killed to the next one', async () => {
  const etcd = await new Etcd().start();
  const all = [];
  try {
    for (let i = 0; i < 2; ++i) all.push(await new Server(['--leader-lease', '2s'], etcd.store).start());
    const leader = await leaderOf(all);
    const standby = all.find((one) => one !== leader);
    const expected = /307|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY|503/;
    await withPage({server: standby, hash: '#q=led', expected}, async (page) => {
      // It says so for five seconds before it goes; a machine that hardly moves may have gone by the time we look.
      await page.waitForURL(`${leader.url}/#q=led`);
      await connection(page, 'live');
      await page.locator('#server-list li', {hasText: 'leads, term'}).waitFor();
      assert.equal(await page.locator('#server-list li', {hasText: 'standby'}).count(), 1);
      await leader.lock('job', 'led/work', 'node-a');
      await row(page, 'led/work').waitFor();
      await leader.kill();
      await page.waitForURL(`${standby.url}/#q=led`);
      await connection(page, 'live');
      await row(page, 'led/work').waitFor();
    });
  } finally {
    for (const each of all) await each.remove();
    etcd.remove();
  }
});

test('a flood of events does not reach the reader: the page looks every two seconds, and goes on with the stream later', async () => {
  const own = await new Server([], 'memory').start();
  try {
    await withPage({server: own}, async (page) => {
      await connection(page, 'live');
      const requests = Array.from({length: 500}, (_, i) => ['lock', 'unlock'].map((call) => ({call, type: 'job', resource_id: `r${i}`, node_id: 'n'}))).flat();
      let flooding = true;
      const flood = (async () => { while (flooding) await own.post('/batch', {requests}); })();
      await connection(page, 'busy');
      flooding = false;
      await flood;
      await own.lock('job', 'after-the-flood', 'n');
      await row(page, 'after-the-flood').waitFor();
      await connection(page, 'live');
    });
  } finally {
    await own.remove();
  }
});

test('when the first rows go, the pages behind them move up: no row is there twice', async () => {
  const own = await new Server([], 'memory').start();
  try {
    await own.fill(600);
    await withPage({server: own}, async (page) => {
      const rowcount = (rows) => page.waitForFunction((wanted) => document.querySelector('#table').getAttribute('aria-rowcount') === wanted, String(rows + 1));
      await row(page, 'bulk/000000').waitFor();
      await page.waitForFunction(() => {
        scrollTo(0, document.documentElement.scrollHeight);
        return document.querySelector('#table').getAttribute('aria-rowcount') === '601';
      });
      await own.post('/batch', {requests: Array.from({length: 50}, (_, i) =>
        ({call: 'unlock', type: 'job', resource_id: `bulk/${String(i).padStart(6, '0')}`, node_id: `node-${i}`}))});
      await rowcount(550);
      await page.locator('#matched', {hasText: /^550$/}).waitFor();
      await page.evaluate(() => document.querySelector('#table').scrollIntoView());
      await page.evaluate(() => scrollBy(0, 195 * 54));
      await row(page, 'bulk/000250').waitFor();
      const names = await page.locator('tr.lane .id').allTextContents();
      assert.deepEqual(names, [...new Set(names)].sort());
    });
  } finally {
    await own.remove();
  }
});

test('a scrolled table keeps its headings, and neither they nor the filters hide the row that has the focus', async () => {
  await server.fill(100, 'tall');
  await withPage({hash: '#q=tall'}, async (page) => {
    await row(page, 'tall/000000').waitFor();
    await row(page, 'tall/000001').locator('a').focus();
    const focused = (name) => page.waitForFunction((wanted) => document.activeElement.textContent === wanted, name);
    for (let i = 2; i <= 30; ++i) {
      await page.keyboard.press('ArrowDown');
      await focused(`tall/${String(i).padStart(6, '0')}`);
    }
    for (let i = 29; i >= 12; --i) {
      await page.keyboard.press('ArrowUp');
      await focused(`tall/${String(i).padStart(6, '0')}`);
    }
    const [filters, headings, link] = await page.evaluate(() => [document.querySelector('.locks-top'), document.querySelector('th'), document.activeElement]
      .map((element) => element.getBoundingClientRect()).map(({top, bottom}) => ({top, bottom})));
    assert.ok(filters.top > -1 && filters.top < 1, 'it is scrolled');
    assert.ok(Math.abs(headings.top - filters.bottom) <= 1, `${headings.top} and ${filters.bottom}`);
    assert.ok(link.top >= headings.bottom - 1, `${link.top} and ${headings.bottom}`);
  });
});

test('nothing is cut off at any width, and no hidden column takes a place', async () => {
  await server.lock('job', 'width/a', 'node-a', {info: 'a text'});
  await server.lock('job', 'width/a', 'node-b');
  await withPage({hash: '#q=width'}, async (page) => {
    await row(page, 'width/a').waitFor();
    await page.locator('.chart .when', {hasText: / · max \d/}).first().waitFor();
    const [last, tile] = await page.evaluate(() => ['.chart:nth-child(2) .value', '.sum.held dd'].map((one) => document.querySelector(one).textContent));
    assert.equal(last, tile);
    for (const width of [320, 390, 860, 861, 1024, 1180, 1360]) {
      await page.setViewportSize({width, height: 800});
      const wrong = await page.evaluate(() => {
        const cut = [...document.querySelectorAll('.views button, .chart .title, .chart .when, .c-holder .node, .c-queue .number')]
          .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth && getComputedStyle(one).display !== 'inline').map((one) => one.outerHTML);
        const [table, last] = [document.querySelector('#table'), [...document.querySelectorAll('tr.lane td')].findLast((one) => one.checkVisibility())]
          .map((one) => one.getBoundingClientRect());
        if (innerWidth > 860 && Math.abs(table.right - last.right) > 1) cut.push(`${table.right - last.right} px beside the last column`);
        if (document.documentElement.scrollWidth > innerWidth) cut.push('the page');
        return cut;
      });
      assert.deepEqual(wrong, [], `${width} px`);
    }
  });
});

test('the times of all rows stand below each other, with a queue and without, with progress and without', async () => {
  await server.lock('job', 'edge/plain', 'node-a');
  await server.lock('job', 'edge/queue', 'node-a');
  for (let i = 0; i < 12; ++i) await server.lock('job', 'edge/queue', `waits-${i}`);
  const {token} = await server.lock('job', 'edge/progress', 'node-a', {lease_ms: 600000});
  await server.post('/renew', {type: 'job', resource_id: 'edge/progress', node_id: 'node-a', token, done: 1, total: 3});
  await withPage({hash: '#q=edge/'}, async (page) => {
    await page.locator('tr.lane progress:not([hidden])').waitFor();
    for (const width of [390, 768]) {
      await page.setViewportSize({width, height: 800});
      const edges = await page.evaluate(() => [...document.querySelectorAll('tr.lane .time')].map((one) => Math.round(one.getBoundingClientRect().right)));
      assert.equal(edges.length, 3);
      assert.equal(new Set(edges).size, 1, `${width} px: ${edges}`);
    }
  });
});

test('however long a type and a resource are, a lock can be closed', async () => {
  const type = 'x'.repeat(64), resource = 'long/' + 'y'.repeat(1000);
  await server.lock(type, resource, 'node-a');
  await withPage({hash: `#type=${type}&resource=${resource}`}, async (page) => {
    for (const width of [1360, 390]) {
      await page.setViewportSize({width, height: 860});
      await page.locator('#detail .facts').waitFor();
      const [panel, head, button] = await page.evaluate(() => ['#detail', '#detail .kicker', '#detail-close']
        .map((one) => document.querySelector(one).getBoundingClientRect().right));
      assert.ok(button <= Math.min(panel, width), `at ${width} px it ends at ${button}, the panel at ${panel}`);
      assert.ok(head < button, `at ${width} px the type ends at ${head}`);
    }
    await page.locator('#detail-close').click();
    await page.locator('#detail').waitFor({state: 'hidden'});
  });
});

test('a name that turns the text around turns nothing but itself, and what is not of today has its date', () => withPage({hash: '#type=once&resource=turns'}, async (page) => {
  await server.lock('once', 'turns', 'node-\u202ea');
  await server.unlock('once', 'turns', 'node-\u202ea');
  await page.locator('#detail .outcome').waitFor();
  const [name, after] = await page.evaluate(() => ['.node', '[data-since]'].map((one) => document.querySelector(`#detail .outcome ${one}`).getBoundingClientRect().left));
  assert.ok(after > name, `${after} and ${name}: the words behind it stand behind it`);
  const [today, before] = await page.evaluate(async () => {
    const {clock} = await import('/page/format.js');
    return [Date.now(), Date.now() - 86400000 * 3].map((ms) => clock(new Date(ms).toISOString()));
  });
  assert.match(today, /^\d\d:\d\d:\d\d$/);
  assert.match(before, /\w+.*, \d\d:\d\d:\d\d$/);
}));

test('ten thousand rows scroll, a few of them there at a time', async () => {
  const own = await new Server([], 'memory').start();
  try {
    await own.fill(10000);
    await withPage({server: own}, async (page) => {
      await page.locator('#matched', {hasText: '10,000'}).waitFor();
      const largest = await page.evaluate(async () => {
        for (let most = 0;;) {
          scrollTo(0, document.documentElement.scrollHeight);
          await new Promise((done) => setTimeout(done, 20));
          const rows = document.querySelectorAll('tr.lane');
          most = Math.max(most, rows.length);
          if (rows[rows.length - 1].textContent.startsWith('bulk/009999')) return most;
        }
      });
      assert.equal(await page.locator('#table').getAttribute('aria-rowcount'), '10001');
      assert.ok(largest < 80, `${largest} rows were in the document`);
      await page.evaluate(() => scrollTo(0, 0));
      await row(page, 'bulk/000000').waitFor();
      await page.evaluate(() => scrollTo(0, 5000 * 54));
      await row(page, 'bulk/00500').first().waitFor();
    });
  } finally {
    await own.remove();
  }
});

for (const colorScheme of ['light', 'dark'])
  for (const width of [1360, 390])
    test(`axe finds nothing serious (${colorScheme}, ${width} px)`, () => withPage({colorScheme, viewport: {width, height: 860}, hash: '#type=pull&resource=judged', expected: /ERR_FAILED/}, async (page) => {
      const {token} = await server.lock('pull', 'judged', 'node-a', {lease_ms: 600000, info: 'a text'});
      if (token) await server.post('/renew', {type: 'pull', resource_id: 'judged', node_id: 'node-a', token, done: 1, total: 4});
      await server.lock('pull', 'judged', 'node-b');
      await server.lock('job', 'judged-2', 'node-b');
      await server.unlock('job', 'judged-2', 'node-b', {success: false, error: 'no'});
      await page.locator('#detail .queue li').waitFor();
      await page.locator('.chart .value').first().waitFor();
      await page.evaluate(AXE);
      const judge = async () => {
        const {violations} = await page.evaluate(() => axe.run(document, {resultTypes: ['violations']}));
        const serious = violations.filter((one) => ['serious', 'critical'].includes(one.impact));
        assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`), []);
      };
      await judge();
      await page.locator('#break').click();
      await judge();
      await page.locator('#break-cancel').click();
      await page.route('**/summary', (route) => route.abort());
      await connection(page, 'reconnecting');
      await judge();
      await page.locator('#detail-close').click();
      await judge();
      await page.unroute('**/summary');
      await connection(page, 'live');
      await judge();
      if (width < 800) {
        await page.locator('#view-activity').click();
        await page.locator('#feed').waitFor();
        await judge();
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'nothing is wider than a phone');
      }
    }));
});

test('the page is small, comes with a strict policy, and is not sent again while it is the same', async () => {
  const curl = await fetch(`${server.url}/`, {headers: {Accept: '*/*'}});
  assert.match(await curl.text(), /This is turnstiled/, 'who is no browser gets the text');
  const html = await fetch(`${server.url}/`, {headers: {Accept: 'text/html,application/xhtml+xml'}});
  assert.match(html.headers.get('content-security-policy'), /default-src 'none'; script-src 'self'; style-src 'self'/);
  const body = await html.text();
  const names = new Set(['main.js', ...[...body.matchAll(/\/page\/([a-z_.]+)/g)].map((match) => match[1])]);
  let bytes = body.length;
  for (const name of names) {
    const file = await fetch(`${server.url}/page/${name}`);
    assert.equal(file.status, 200, name);
    bytes += (await file.text()).length;
    const again = await fetch(`${server.url}/page/${name}`, {headers: {'If-None-Match': file.headers.get('etag')}});
    assert.equal(again.status, 304, name);
  }
  assert.ok(bytes < 100000, `${bytes} bytes`);
  console.log(`the page: ${names.size + 1} files, ${bytes} bytes`);
});
