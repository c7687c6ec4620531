// The page as a whole: what is asked of the server when, and where the answers go.

import {Api} from '/page/api.js';
import {Chart} from '/page/charts.js';
import {Connection} from '/page/connection.js';
import {Detail} from '/page/detail.js';
import {askBreak, askCredential} from '/page/dialogs.js';
import {byId, h, seen, setAttribute, setText} from '/page/dom.js';
import {Feed} from '/page/feed.js';
import {Follow} from '/page/follow.js';
import {count, duration, setServerTime} from '/page/format.js';
import {keyOf, LockList} from '/page/lock_list.js';
import {hashOf, readRoute} from '/page/route.js';
import {Rows} from '/page/rows.js';

const SUMMARY_EVERY = 2000, SERVERS_EVERY = 5000;
const LIST_SOON = 150, LIST_EVERY = 3000;
const FEWEST = 30;  // points of the history that a chart has room for: a minute

const api = new Api(askCredential, () => readVersion());
const connection = new Connection(api);
const list = new LockList(api);
const linkTo = (lane) => hashOf({...route, type: lane.type, resource: lane.resource_id});
const rows = new Rows({linkTo, onView: readMoreIfNeeded, onEnd: readAll});
const feed = new Feed({linkTo});
const detail = new Detail(api, {
  onBreak: (lane) => askBreak(api, lane, () => { listSoon(); detail.refresh(); }),
  onClose: () => go({type: '', resource: ''}),
  onLost: (lane) => rows.focusLane(lane),
});
const follow = new Follow(api, {
  onEvents(entries) {
    feed.add(entries);
    if (entries.some(({event}) => detail.concerns(event))) detail.refresh();
    listSoon();
  },
  onReset() { feed.note('Some events were missed.'); listSoon(); },
  onState(state, error) {
    stream = state;
    connection.show(state, error);
    if (state === 'live') feed.add([]);
  },
});

let route = readRoute();
let life = '';
let stream = 'connecting';

// --- sums and charts

const SUMS = [
  ['held', 'Held', 'held', 'lanes with a holder'], ['waiting', 'Waiting', 'waiting', 'requesters in queues'],
  ['skips', 'Skipped', 'ok', 'told that the work is done, since the start of the server'], ['kept', 'Remembered', 'plain', 'results still remembered; new requests skip'],
  ['references', 'References', 'plain', 'nodes that use a resource'], ['resources', 'Resources', 'plain', 'known to the server'],
];
const tiles = Object.fromEntries(SUMS.map(([name, title, tone, hint]) => {
  const value = h('dd', {class: 'number'}, '–');
  byId('sums').append(h('div', {class: `sum card ${tone}`, title: hint}, h('dt', {}, title), value));
  return [name, value];
}));

// Not the downloads that did not happen: a requester that asks again is told so again.
const pullsSkipped = h('dd', {class: 'of-these'});
tiles.skips.after(pullsSkipped);

const charts = {
  flow: new Chart({title: 'Granted, skipped', unit: '/s', series: [
    {name: 'granted', kind: 'area', tone: 'held'}, {name: 'skipped', kind: 'line', tone: 'ok'}]}),
  load: new Chart({title: 'Held, waiting', unit: 'now', series: [
    {name: 'held', kind: 'area', tone: 'held'}, {name: 'waiting', kind: 'line', tone: 'waiting'}]}),
  handover: new Chart({title: 'Hand-over', unit: 'ms', series: [{name: 'on average to the next', kind: 'area', tone: 'plain'}]}),
  commit: new Chart({title: 'Commit', unit: 'ms', series: [{name: 'on average until safe', kind: 'area', tone: 'plain'}]}),
};
// Where they stand side by side in a strip, the keyboard must be able to move it.
const strip = matchMedia('(max-width: 860px)');
const reachCharts = () => setAttribute(byId('charts'), 'tabindex', strip.matches ? 0 : null);
strip.addEventListener('change', reachCharts);
reachCharts();
byId('charts').append(...Object.values(charts).map((chart) => chart.element));

const NO_SUMS = ['forbidden', 'not_leader', 'foreign_origin'];  // why there are none, and none will come in a moment
function showSums(shown) {
  for (const id of ['now', 'past']) byId(id).hidden = !shown;
}

function showSummary(summary) {
  showSums(true);
  setServerTime(summary.now);
  if (life && life !== summary.life) feed.note('The server was started again.');
  life = summary.life;
  const skips = summary.operations.reduce((sum, one) => sum + one.skips, 0);
  for (const [name, value] of Object.entries({...summary, skips}))
    if (tiles[name]) setText(tiles[name], count(value));
  const pulls = summary.operations.find((one) => one.type === 'pull')?.skips ?? 0;
  setText(pullsSkipped, pulls === 0 ? '' : `${count(pulls)} ${pulls === 1 ? 'pull' : 'pulls'}`);
  tiles.references.parentElement.hidden = summary.references === undefined;
  setText(byId('uptime'), `up ${duration(summary.uptime_ms)}`);
  showOperations(summary.operations.filter(({type}) => type !== 'other'));  // that is a sum
  const {step_ms: step, ...past} = summary.history;
  const rate = (numbers) => numbers.map((number) => (1000 * number) / step);
  const points = Math.max(FEWEST, past.grants.length), minutes = Math.round((points * step) / 60000);
  setText(byId('charts-heading'), minutes === 1 ? 'Last minute' : `Last ${minutes} minutes`);
  charts.flow.show([rate(past.grants), rate(past.skips)], step, points);
  // Its last point is what the tiles say.
  charts.load.show([[...past.held, summary.held], [...past.waiting, summary.waiting]].map((row) => row.slice(-points)), step, points);
  charts.handover.show([past.handover_ms], step, points);
  charts.commit.show([past.commit_ms], step, points);
  charts.commit.element.hidden = past.commit_ms.length > 0 && past.commit_ms.every((value) => value === null);
  feed.add(summary.endings);
}

// The filter knows the configured operations; one of the users' own comes with its locks, or by a link.
const operations = new Set();
function showOperations(all) {
  const select = document.forms.filters.op;
  for (const {type} of [...all, {type: route.op}]) {
    if (!type || operations.has(type)) continue;
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
      } else {
        connection.show(stream);
      }
    } catch (error) {
      if (NO_SUMS.includes(error.code)) showSums(false);
      if (error.code === 'forbidden') {  // a credential of a node: it may see its own locks
        setText(byId('feed-empty'), 'Nothing has ended since this page was opened.');
        if (!started) follow.run(null);
        return;
      }
      connection.show('reconnecting', error);
    }
    await new Promise((resolve) => setTimeout(resolve, SUMMARY_EVERY));
    await seen();
  }
}

// --- servers

// What the server is, and what the reader may do: anything, where nobody has to say who asks.
async function readVersion() {
  const version = await api.get('/version').catch(() => null);
  if (version) setText(byId('version'), version.version);
  if (version) detail.mayBreak = (version.role ?? 'admin') === 'admin';
  return version;
}

// Only a server with a store that others share has anything to tell.
async function serversLoop() {
  for (;;) {
    const version = await readVersion();
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
  connection.others = servers.map((one) => one.url).filter((one) => one !== url);
  const members = (etcd?.members ?? []).map((one) => h('li', {class: one.healthy ? 'ok' : 'bad'}, h('span', {class: 'dot'}),
    h('span', {class: 'node'}, one.url), h('span', {class: 'faint'}, one.healthy ? (one.leader ? 'etcd, leads' : 'etcd') : 'etcd, does not answer')));
  byId('server-list').replaceChildren(...servers.map((one) => h('li', {class: one.role === 'leader' ? 'ok' : 'plain'}, h('span', {class: 'dot'}),
    h('span', {class: 'node'}, one.name), h('span', {class: 'faint'}, one.role === 'leader' ? `leads, term ${count(term)}`
      : one.lag_batches ? `standby, ${count(one.lag_batches)} behind` : one.role))), ...members);
  byId('servers').hidden = false;
}

// --- the list

let reading = false, due = 0, timer = null;
let wasAsked = false;  // by a reader who wants to hear how many there are

function listSoon(delay = LIST_SOON) {
  due = Math.min(due || Infinity, performance.now() + delay);
  clearTimeout(timer);
  timer = setTimeout(readList, Math.max(0, due - performance.now()));
}

const question = () => hashOf({...route, type: '', resource: ''});

async function readList() {
  if (reading) return;
  reading = true;
  await seen();
  due = 0;
  const asked = question();
  try {
    const {from, to} = rows.window();
    await list.refresh(from, to);
    showList();
    if (wasAsked && asked === question()) setText(byId('found'), byId('empty').hidden ? `${byId('matched').textContent} found` : byId('empty').textContent);
    wasAsked &&= asked !== question();
  } catch (error) {
    if (error.status >= 400 && error.status < 500 && error.code !== 'foreign_origin') showProblem(error.message);  // that is said at the top
  }
  reading = false;
  if (asked !== question()) return listSoon(0);
  // A server with very many resources is asked less often: a tenth of its time at most.
  const pause = Math.max(400, 9 * list.took);
  if (due) listSoon(Math.max(pause, due - performance.now()));
  else listSoon(Math.max(pause, LIST_EVERY));
}

function showList() {
  rows.set(list.lanes);
  showOperations(list.lanes);
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

let readingMore = null;  // whether there was an answer
function readMore(toEnd) {
  readingMore ??= list.readMore(toEnd).then(() => rows.set(list.lanes)).then(() => true, () => false).finally(() => {
    readingMore = null;
    byId('more').hidden = !list.hasMore;
  });
  return readingMore;
}

function readMoreIfNeeded() {
  if (list.hasMore && rows.window().to >= list.lanes.length - 60) readMore(false);
}

async function readAll(signal) {
  while (list.hasMore && !signal.aborted && await readMore(true)) { /* the next thousand */ }
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
    wasAsked = other;
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

// What stays at the top while the list is scrolled has a height of its own.
new ResizeObserver(([{target}]) => byId('locks').style.setProperty('--bar', `${target.offsetHeight}px`)).observe(document.querySelector('.locks-top'));

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
setInterval(() => rows.tick(), 1000);
summaryLoop();
serversLoop();
