// Debian's chromium, driven by playwright-core; and what every test of the page watches for.

import {chromium} from 'playwright-core';

export const CHROMIUM = '/usr/bin/chromium';

// Without the flags about networking it looks for hosts of its maker's at every start.
export const launch = () => chromium.launch({executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
  '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']});

// A page of its own, and what it has complained about. `expected`: what a test provokes. `before`: runs in the page
// before anything of its own does.
export async function openPage(browser, url, {hash = '', expected = null, before = null, ...options} = {}) {
  const context = await browser.newContext({viewport: {width: 1360, height: 860}, ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(90000);  // only a broken page takes that long
  page.complaints = [];
  const complain = (text) => { if (!expected?.test(text)) page.complaints.push(text); };
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complain(message.text()); });
  page.on('pageerror', (error) => complain(String(error)));
  page.on('dialog', (dialog) => { complain(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  if (before) await page.addInitScript(before);
  await page.goto(`${url}/${hash}`);
  return page;
}

// As when its tab is, or is not, the one in front.
export const setHidden = (page, hidden) => page.evaluate((value) => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => value});
  document.dispatchEvent(new Event('visibilitychange'));
}, hidden);

export const row = (page, resource) => page.locator('tr.lane', {hasText: resource});
export const connection = (page, state) => page.waitForSelector(`#connection[data-state="${state}"]`);
