// The page as a whole: what is asked of the server when, and where the answers go.

import {Api} from '/page/api.js';
import {Chart} from '/page/charts.js';
import {Detail} from '/page/detail.js';
import {askBreak, askCredential} from '/page/dialogs.js';
import {byId, h, setAttribute, setText} from '/page/dom.js';
import {Feed} from '/page/feed.js';
import {Follow} from '/page/follow.js';
import {count, duration, setServerTime} from '/page/format.js';
import {keyOf, LockList} from '/page/lock_list.js';
import {hashOf, readRoute} from '/page/route.js';
import {Rows} from '/page/rows.js';

const SUMMARY_EVERY = 2000, SERVERS_EVERY = 5000;
const GONE_AFTER = 8000;
const LIST_SOON = 150, LIST_EVERY = 3000;
const FEWEST = 30;  // points of the history that a chart has room for: a minute

const api = new Api(askCredential);
const list = new LockList(api);
const linkTo = (lane) => hashOf({...route, type: lane.type, resource: lane.resource_id});
const rows = new Rows({linkTo, onView: readMoreIfNeeded});
const feed = new Feed({linkTo});
const detail = new Detail(api, {
  onBreak: (lane) => askBreak(api, lane, () => { listSoon(); detail.refresh(); }),
  onClose: () => go({type: '', resource: ''}),
});
const follow = new Follow(api, {
  onEvents(entries) {
    feed.add(entries);
    if (entries.some(({event}) => detail.concerns(event))) detail.refresh();
    listSoon();
  },
  onReset() { feed.note('Some events were missed.'); listSoon(); },
  onState: (state, error) => { stream = state; connection(state, error); },
});

let route = readRoute();
let life = '';
let stream = 'connecting';

// --- the connection, and what it means for the reader

const CONNECTION = {
  connecting: 'Connecting…', live: 'Live', busy: 'Live, every 2 s', reconnecting: 'Reconnecting…', no_leader: 'Waiting for a leader…',
};
let lostAt = 0;

function connection(state, error) {
  if (state === 'reconnecting' && error?.code === 'no_leader') state = 'no_leader';
  const lost = state === 'reconnecting' || state === 'no_leader';
  lostAt = lost ? lostAt || Date.now() : 0;
  setAttribute(byId('connection'), 'data-state', state);
  setText(byId('connection-text'), CONNECTION[state]);
  document.body.classList.toggle('stale', lost);
  if (!lost) stay();
  else if (error?.code === 'not_leader') showLeader();
  else if (Date.now() - lostAt > GONE_AFTER && others.length) moveTo(others[0], 'This server does not answer. Another one: ');
}

// This server has become a standby, or is gone while others are there: the page moves on, unless told to stay.
let staying = false, moving = null;
let others = [];  // addresses of the other servers, as far as they are known

async function showLeader() {
  const {leader} = await api.get('/servers').catch(() => ({}));
  if (leader) moveTo(leader, 'Another server leads now: ');
}

function moveTo(url, why) {
  const notice = byId('notice');
  if (!notice.hidden || staying || !/^https?:\/\//.test(url)) return;
  const target = url.replace(/\/+$/, '') + '/' + location.hash;
  moving = setTimeout(() => location.assign(target), 5000);
  notice.replaceChildren(why, h('a', {href: target}, url), '. This page follows in a moment. ',
    h('button', {type: 'button', onclick: () => { staying = true; stay(); }}, 'Stay here'));
  notice.hidden = false;
}

function stay() {
  clearTimeout(moving);
  byId('notice').hidden = true;
}

// --- sums and charts

const SUMS = [
  ['held', 'Held', 'held', 'lanes with a holder'], ['waiting', 'Waiting', 'waiting', 'requesters in queues'],
  ['skips', 'Skipped', 'ok', 'told that the work is done, since the start'], ['kept', 'Done, kept', 'plain', 'completions that count'],
  ['references', 'References', 'plain', 'nodes that use a resource'], ['resources', 'Resources', 'plain', 'known to the server'],
];
const tiles = Object.fromEntries(SUMS.map(([name, title, tone, hint]) => {
  const value = h('dd', {class: 'number'}, '–');
  byId('sums').append(h('div', {class: `sum card ${tone}`, title: hint}, h('dt', {}, title), value));
  return [name, value];
}));

const charts = {
  flow: new Chart({title: 'Granted and skipped', unit: 'per second', series: [
    {name: 'granted', kind: 'area', tone: 'held'}, {name: 'skipped', kind: 'line', tone: 'ok'}]}),
  load: new Chart({title: 'Held and waiting', unit: 'now', series: [
    {name: 'held', kind: 'area', tone: 'held'}, {name: 'waiting', kind: 'line', tone: 'waiting'}]}),
  handover: new Chart({title: 'Hand-over', unit: 'ms, on average', series: [{name: 'to the next in the queue', kind: 'area', tone: 'plain'}]}),
  commit: new Chart({title: 'Commit', unit: 'ms, on average', series: [{name: 'until the store has it safe', kind: 'area', tone: 'plain'}]}),
};
// Where they stand side by side in a strip, the keyboard must be able to move it.
const strip = matchMedia('(max-width: 860px)');
const reachCharts = () => setAttribute(byId('charts'), 'tabindex', strip.matches ? 0 : null);
strip.addEventListener('change', reachCharts);
reachCharts();
byId('charts').append(...Object.values(charts).map((chart) => chart.element));

function showSummary(summary) {
  setServerTime(summary.now);
  if (life && life !== summary.life) feed.note('The server was started again.');
  life = summary.life;
  const skips = summary.operations.reduce((sum, one) => sum + one.skips, 0);
  for (const [name, value] of Object.entries({...summary, skips}))
    if (tiles[name]) setText(tiles[name], count(value));
  tiles.references.parentElement.hidden = summary.references === undefined;
  setText(byId('uptime'), `up ${duration(summary.uptime_ms)}`);
  showOperations(summary.operations);
  const {step_ms: step, ...past} = summary.history;
  const rate = (numbers) => numbers.map((number) => (1000 * number) / step);
  const points = Math.max(FEWEST, past.grants.length);
  charts.flow.show([rate(past.grants), rate(past.skips)], step, points);
  charts.load.show([past.held, past.waiting], step, points);
  charts.handover.show([past.handover_ms], step, points);
  charts.commit.show([past.commit_ms], step, points);
  charts.commit.element.hidden = past.commit_ms.length > 0 && past.commit_ms.every((value) => value === null);
  feed.add(summary.endings);
}

// The filter knows the configured operations; one of the users' own comes by a link.
const operations = new Set();
function showOperations(all) {
  const select = document.forms.filters.op;
  for (const {type} of [...all, {type: route.op}]) {
    if (!type || type === 'other' || operations.has(type)) continue;
    operations.add(type);
    select.append(h('option', {value: type}, type));
  }
  if (select.value !== route.op) select.value = route.op;
}

async function summaryLoop() {
  let started = false;
  for (;;) {
    try {
      const summary = await api.get('/summary');
      showSummary(summary);
      if (!started) {
        started = true;
        follow.run(summary.last_event_id);
      } else if (stream === 'reconnecting') {
        follow.hurry();
      }
    } catch (error) {
      if (error.status !== 403) {
        connection('reconnecting', error);
      } else {
        // A credential of a node: it may see its own locks, and no sums.
        for (const id of ['sums', 'charts']) byId(id).hidden = true;
        if (!started) follow.run(null);
        return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, SUMMARY_EVERY));
    while (document.hidden) await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

// --- servers

// Only a server with a store that others share has anything to tell.
async function serversLoop() {
  for (;;) {
    const version = await api.get('/version').catch(() => null);
    if (version) setText(byId('version'), version.version);
    while (version?.settings?.store?.startsWith('etcd')) {
      const servers = await api.get('/servers').catch(() => null);
      if (servers?.mode === 'replicated') showServers(servers);
      await new Promise((resolve) => setTimeout(resolve, SERVERS_EVERY));
    }
    if (version) return;
    await new Promise((resolve) => setTimeout(resolve, SERVERS_EVERY));
  }
}

function showServers({servers, term, etcd, url}) {
  others = servers.map((one) => one.url).filter((one) => one !== url);
  const members = (etcd?.members ?? []).map((one) => h('li', {class: one.healthy ? 'ok' : 'bad'}, h('span', {class: 'dot'}),
    h('span', {class: 'node'}, one.url), h('span', {class: 'faint'}, one.healthy ? (one.leader ? 'etcd, leads' : 'etcd') : 'etcd, does not answer')));
  byId('server-list').replaceChildren(...servers.map((one) => h('li', {class: one.role === 'leader' ? 'ok' : 'plain'}, h('span', {class: 'dot'}),
    h('span', {class: 'node'}, one.name), h('span', {class: 'faint'}, one.role === 'leader' ? `leads, term ${count(term)}`
      : one.lag_batches ? `standby, ${count(one.lag_batches)} behind` : one.role))), ...members);
  byId('servers').hidden = false;
}

// --- the list

let reading = false, due = 0, timer = null;

function listSoon(delay = LIST_SOON) {
  due = Math.min(due || Infinity, performance.now() + delay);
  clearTimeout(timer);
  timer = setTimeout(readList, Math.max(0, due - performance.now()));
}

async function readList() {
  if (reading) return;
  if (document.hidden) return listSoon(1000);
  reading = true;
  due = 0;
  const asked = hashOf({...route, type: '', resource: ''});
  try {
    const {from, to} = rows.window();
    await list.refresh(from, to);
    showList();
  } catch (error) {
    if (error.status >= 400 && error.status < 500) showProblem(error.message);
  }
  reading = false;
  if (asked !== hashOf({...route, type: '', resource: ''})) return listSoon(0);
  // A server with very many resources is asked less often: a tenth of its time at most.
  const pause = Math.max(400, 9 * list.took);
  if (due) listSoon(Math.max(pause, due - performance.now()));
  else listSoon(Math.max(pause, LIST_EVERY));
}

function showList() {
  rows.set(list.lanes);
  const shown = list.lanes.length, all = Math.max(shown, list.matched ?? shown);
  setText(byId('matched'), route.sort && all > shown ? `the first ${count(shown)} of ${count(all)}` : count(all));
  byId('more').hidden = !list.hasMore;
  byId('table').hidden = shown === 0;
  byId('empty').hidden = shown > 0;
  if (shown === 0) setText(byId('empty'), isFiltered() ? 'Nothing matches.' : 'Nothing is held and nobody waits.');
  readMoreIfNeeded();
}

function showProblem(message) {
  rows.set([]);
  byId('table').hidden = true;
  byId('empty').hidden = false;
  setText(byId('empty'), message);
}

const isFiltered = () => Boolean(route.q || route.node || route.op || route.state !== 'active');

let readingMore = false;
async function readMoreIfNeeded() {
  if (readingMore || !list.hasMore || rows.window().to < list.lanes.length - 60) return;
  readingMore = true;
  await list.readMore().then(() => rows.set(list.lanes)).catch(() => {});
  readingMore = false;
  byId('more').hidden = !list.hasMore;
}

// --- the address, filters and keys

function go(change) {
  const next = hashOf({...route, ...change});
  if (next === hashOf(route)) return;
  // Not by location.hash: the address '#' is the top of the page. Back closes a lock that was opened, and undoes no letters of a search.
  history['type' in change ? 'pushState' : 'replaceState'](null, '', next);
  applyRoute();
}

function applyRoute() {
  const before = route;
  route = readRoute();
  const {filters} = document.forms;
  for (const name of ['q', 'node', 'sort']) if (filters[name].value !== route[name]) filters[name].value = route[name];
  for (const each of filters.state) each.checked = each.value === (route.state || 'all');
  showOperations([]);
  rows.selected = route.resource ? keyOf({type: route.type, resource_id: route.resource}) : '';
  if (route.type && route.resource) detail.open({type: route.type, resource_id: route.resource});
  else detail.close();
  const other = ['state', 'q', 'node', 'op', 'sort'].some((name) => before[name] !== route[name]);
  if (other || before === route || !list.lanes.length) {
    list.ask(route);
    if (other) scrollToList();
    listSoon(0);
  }
  rows.draw();
}

// The rows of another query begin at the top.
function scrollToList() {
  const top = byId('locks').getBoundingClientRect().top + scrollY;
  if (scrollY > top) scrollTo({top});
}

let typing = null;
document.forms.filters.addEventListener('input', (event) => {
  const read = () => Object.fromEntries(new FormData(document.forms.filters));
  clearTimeout(typing);
  typing = setTimeout(() => go(read()), event.target.type === 'search' ? 200 : 0);
});
document.forms.filters.addEventListener('submit', (event) => event.preventDefault());
addEventListener('hashchange', applyRoute);
addEventListener('keydown', (event) => {
  if (event.target.matches('input, select, textarea') || document.querySelector('dialog[open]')) return;
  if (event.key === '/') {
    event.preventDefault();
    document.forms.filters.q.focus();
  } else if (event.key === 'Escape' && detail.isOpen) {
    go({type: '', resource: ''});
  }
});
// Its address would be taken for one of ours, without a filter.
document.querySelector('.skip-link').addEventListener('click', (event) => {
  event.preventDefault();
  byId('locks-heading').focus();
});
for (const view of ['locks', 'activity']) {
  byId(`view-${view}`).addEventListener('click', () => {
    document.body.dataset.view = view;
    for (const each of ['locks', 'activity']) byId(`view-${each}`).setAttribute('aria-pressed', String(each === view));
  });
}

document.body.dataset.view = 'locks';
list.ask(route);
applyRoute();
setInterval(() => {
  rows.tick();
  if (lostAt) setText(byId('connection-text'), `${CONNECTION[byId('connection').dataset.state]} ${duration(Date.now() - lostAt)}`);
}, 1000);
summaryLoop();
serversLoop();
