// One lock in full: holder, progress, its last outcome, who waits since when, which nodes use the resource.

import {arrange, byId, h, seen, setAttribute, setText} from '/page/dom.js';
import {clock, count, duration, since} from '/page/format.js';
import {progressText, queueLength, STATES, stateOf} from '/page/rows.js';

const SOON = 300, EVERY = 2000;  // ms from an answer to the next question: if something has happened meanwhile, and if not

export class Detail {
  #panel = byId('detail');
  #wanted = null;  // {type, resource_id}
  #asked = null;   // the one that is asked about, or was a moment ago
  #again = false;  // something has happened since
  #lane = null;    // the last answer
  #parts = new Map();  // name -> {text, element}
  #head = null;
  #state = h('span', {class: 'state', hidden: true});
  #break = h('button', {type: 'button', id: 'break', class: 'danger quiet', onclick: () => this.onBreak(this.#lane)}, 'Break this hold…');
  #mayNot = h('p', {class: 'hint'}, 'To break this hold you need the role admin.');
  #timer = null;
  #opener = null;
  mayBreak = null;  // not known yet

  // onLost(lane): the keyboard has closed it, and the link that opened it is not there any more.
  constructor(api, {onBreak, onClose, onLost}) {
    Object.assign(this, {api, onBreak, onClose, onLost});
    setInterval(() => this.#tick(), 1000);
  }

  get isOpen() {
    return this.#wanted !== null;
  }

  open(lane) {
    if (this.#wanted?.type === lane.type && this.#wanted?.resource_id === lane.resource_id) return;
    if (!this.#panel.contains(document.activeElement)) this.#opener = document.activeElement;
    this.#wanted = lane;
    this.#parts.clear();
    this.#panel.hidden = false;
    document.body.classList.add('has-detail');
    this.#head = this.#makeHead(lane);
    arrange(this.#panel, [this.#head]);
    // Where it covers everything else, the focus must be in it. Who opens it with the keyboard wants to go on in it.
    if (getComputedStyle(this.#panel).position === 'fixed' || this.#opener.matches('a:focus-visible')) byId('detail-heading').focus({preventScroll: true});
    this.refresh();
  }

  close() {
    if (!this.#wanted) return;
    const [lane, lost] = [this.#wanted, Boolean(this.#panel.querySelector(':focus-visible'))];
    this.#wanted = null;
    this.#panel.hidden = true;
    document.body.classList.remove('has-detail');
    clearTimeout(this.#timer);
    if (this.#opener.isConnected && this.#opener !== document.body) this.#opener.focus({preventScroll: true});
    else if (lost) this.onLost(lane);
  }

  concerns(event) {
    return this.#wanted?.type === event.type && this.#wanted?.resource_id === event.resource_id;
  }

  // At once, or soon after the answer that is on its way: a busy lock changes more often than anybody can read.
  async refresh() {
    const wanted = this.#wanted;
    if (!wanted) return;
    this.#again = this.#asked === wanted;
    if (this.#again) return;
    this.#asked = wanted;
    clearTimeout(this.#timer);
    await seen();
    try {
      const lane = await this.api.get('/lock/status', wanted);
      if (wanted === this.#wanted) this.#draw(lane);
    } catch (error) {
      if (wanted === this.#wanted && error.status >= 400) arrange(this.#panel, [this.#head, h('p', {class: 'problem'}, error.message)]);
    }
    await new Promise((resolve) => setTimeout(resolve, SOON));
    if (wanted !== this.#wanted) return;
    this.#asked = null;
    if (this.#again) this.refresh();
    else this.#timer = setTimeout(() => this.refresh(), EVERY - SOON);
  }

  #draw(lane) {
    this.#lane = lane;
    const state = stateOf(lane);
    setText(this.#state, STATES[state]);
    setAttribute(this.#state, 'data-state', state);
    this.#state.hidden = false;
    const inside = this.#panel.contains(document.activeElement);
    arrange(this.#panel, [this.#head, ...this.#body(lane)]);
    if (inside && !this.#panel.contains(document.activeElement)) byId('detail-heading').focus({preventScroll: true});
    this.#tick();
  }

  // The element that was made for the same data before: who selects a text in it, or is about to click, is not disturbed.
  #part(name, data, make) {
    const text = JSON.stringify(data);
    if (this.#parts.get(name)?.text !== text) this.#parts.set(name, {text, element: make(data)});
    return this.#parts.get(name).element;
  }

  #makeHead(lane) {
    this.#state.hidden = true;
    return h('header', {class: 'detail-head'},
      h('div', {}, h('p', {class: 'kicker'}, h('span', {class: 'operation'}, lane.type), this.#state),
        h('h2', {id: 'detail-heading', tabindex: '-1', class: 'whole-id'}, lane.resource_id)),
      h('button', {type: 'button', id: 'detail-close', class: 'close', 'aria-label': 'Close', onclick: () => this.onClose()}, '×'));
  }

  #body(lane) {
    const {holder, completion, references} = lane;
    const waiting = queueLength(lane);
    return [
      holder && this.#holder(holder),
      completion && this.#part('outcome', completion, outcome),
      !holder && !completion && !waiting && this.#part('idle', null, () => h('p', {class: 'empty'}, 'Nobody holds it and nobody waits.')),
      (holder || waiting > 0) && this.#part('queue', {waiting, queue: lane.queue}, queue),
      references.count > 0 && this.#part('references', references, usedBy),
    ].filter(Boolean);
  }

  #holder({done, total, ...holder}) {
    const section = this.#part('holder', null, () => h('section', {class: 'part'}, h('h3', {}, 'Holder')));
    arrange(section, [
      section.firstChild,
      progressText({done, total}) && this.#part('progress', {done, total}, progress),
      this.#part('facts', holder, facts),
      this.mayBreak && this.#break,
      this.mayBreak === false && this.#mayNot,
    ].filter(Boolean));
    return section;
  }

  #tick() {
    if (!this.#wanted) return;
    for (const element of this.#panel.querySelectorAll('[data-since]')) setText(element, since(element.dataset.since));
  }
}

function progress({done, total}) {
  return h('div', {class: 'progress'},
    total ? h('progress', {max: total, value: Math.min(done ?? 0, total), 'aria-label': 'Progress'}) : null,
    h('span', {class: 'number'}, progressText({done, total})));
}

function facts(holder) {
  const known = [
    ['Node', h('span', {class: 'node'}, holder.node_id)],
    holder.request_id && ['Request', h('span', {class: 'mono'}, holder.request_id)],
    ['Held for', h('span', {class: 'number', 'data-since': holder.since, title: clock(holder.since)})],
    holder.lease_ms && ['Lease', duration(holder.lease_ms)],
    ['Token', h('span', {class: 'number'}, String(holder.token))],
    holder.info && ['Info', h('span', {class: 'prose'}, holder.info)],
  ].filter(Boolean);
  return h('dl', {class: 'facts'}, known.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

function outcome(last) {
  return h('section', {class: 'part'}, h('h3', {}, 'Last outcome'),
    h('div', {class: `outcome ${last.success ? 'ok' : 'bad'}`},
      h('p', {}, last.success ? 'Done by ' : last.permanent ? 'Failed for good on ' : 'Failed on ', h('span', {class: 'node'}, last.node_id), ', ',
        h('span', {'data-since': last.completed_at, class: 'number'}), ' ago'),
      last.error ? h('p', {class: 'prose'}, last.error) : null,
      last.result ? h('p', {class: 'prose mono'}, last.result) : null));
}

function queue({waiting, queue: first}) {
  if (!waiting) return h('section', {class: 'part'}, h('h3', {}, 'Queue'), h('p', {class: 'empty'}, 'Nobody waits.'));
  const rest = waiting - first.length;
  return h('section', {class: 'part'}, h('h3', {}, 'Queue', h('span', {class: 'badge'}, count(waiting))),
    h('ol', {class: 'queue'}, first.map((one) => h('li', {},
      h('span', {class: 'place'}, count(one.position)),
      h('span', {class: 'who'}, h('span', {class: 'node'}, one.node_id),
        one.request_id ? h('span', {class: 'mono faint'}, one.request_id) : null,
        one.info ? h('span', {class: 'info'}, one.info) : null),
      h('span', {class: 'number', 'data-since': one.since})))),
    rest > 0 ? h('p', {class: 'faint'}, `and ${count(rest)} more`) : null);
}

function usedBy({count: many, nodes}) {
  return h('section', {class: 'part'}, h('h3', {}, 'Used by', h('span', {class: 'badge'}, count(many))),
    h('ul', {class: 'nodes'}, nodes.map((node) => h('li', {class: 'node'}, node)),
      many > nodes.length ? h('li', {class: 'faint'}, `and ${count(many - nodes.length)} more`) : null));
}
