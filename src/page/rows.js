// The table of locks. Only the rows in view are there, however many there are: each has the same height, and two empty rows
// stand for all that is above and below. To the Tab key they are one thing, however many there are: arrows and their like move in it.

import {byId, h, setAttribute, setText} from '/page/dom.js';
import {bytes, count, duration, serverNow, split} from '/page/format.js';
import {keyOf} from '/page/lock_list.js';

const AROUND = 8;  // rows beyond the edges, so that a turn of the wheel finds them there

export const STATES = {held: 'Held', waiting: 'Waiting', completed: 'Done', failed: 'Failed', idle: 'Idle'};

// A kept failure is not "done".
export const stateOf = (lane) => (lane.completion && lane.state === 'completed' && !lane.completion.success ? 'failed' : lane.state);
export const queueLength = (lane) => lane.queue_length ?? lane.queue.length;

export function progressText(holder) {
  if (holder?.total === undefined || holder.total === 0) return holder?.done ? `${count(holder.done)} so far` : '';
  const percent = Math.min(100, Math.floor((100 * holder.done) / holder.total));
  const large = holder.total >= 1 << 20;
  const [done, total] = large ? [bytes(holder.done), bytes(holder.total)] : [count(holder.done), count(holder.total)];
  return `${percent} % · ${done} of ${total}`;
}

export class Rows {
  #lanes = [];
  #shown = new Map();  // key -> row
  // One cell, whatever the number of columns: a colspan would keep a hidden column alive.
  #above = h('tr', {class: 'space', 'aria-hidden': 'true'}, h('td'));
  #below = h('tr', {class: 'space', 'aria-hidden': 'true'}, h('td'));
  #body = byId('rows');
  #height = 0;
  #stop = '';  // key of the row that Tab reaches
  selected = '';

  // linkTo(lane): the address that selects it. onView(): other rows are in view. onEnd(): reads all the others, if the reader
  // stays until they are there.
  constructor({linkTo, onView, onEnd}) {
    Object.assign(this, {linkTo, onView, onEnd});
    this.#body.append(this.#above, this.#below);
    let waiting = false;
    const later = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; this.draw(); this.onView(); });
    };
    addEventListener('scroll', later, {passive: true});
    addEventListener('resize', () => { this.#height = 0; later(); });
    this.#body.addEventListener('keydown', (event) => this.#onKey(event));
    this.#body.addEventListener('focusin', (event) => this.#stopAt(keyOf(this.#lanes[placeOf(event.target.closest('tr'))])));
  }

  set(lanes) {
    this.#lanes = lanes;
    this.draw();
  }

  // The rows that are in view, and some around them.
  window() {
    this.#height ||= parseFloat(getComputedStyle(byId('table')).getPropertyValue('--row')) || 52;
    const top = this.#above.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / this.#height) - AROUND);
    const shown = Math.ceil(innerHeight / this.#height) + 2 * AROUND;
    const from = Math.min(first, Math.max(0, this.#lanes.length - shown));
    const to = Math.min(this.#lanes.length, from + shown);
    return {from, to, inView: Math.max(from, Math.min(to - 1, Math.ceil(-top / this.#height)))};
  }

  draw() {
    const {from, to, inView} = this.window();
    const wanted = this.#lanes.slice(from, to);
    const keys = new Set(wanted.map(keyOf));
    const focused = document.activeElement.closest('tr.lane');
    for (const [key, row] of this.#shown) {
      if (keys.has(key)) continue;
      row.element.remove();
      this.#shown.delete(key);
    }
    let before = this.#above;
    wanted.forEach((lane, i) => {
      const key = keyOf(lane);
      let row = this.#shown.get(key);
      if (!row) this.#shown.set(key, row = new Row());
      row.update(lane, this.linkTo(lane), key === this.selected);
      setAttribute(row.element, 'aria-rowindex', from + i + 2);
      if (before.nextSibling !== row.element) before.after(row.element);
      before = row.element;
    });
    this.#above.firstChild.style.height = `${from * this.#height}px`;
    this.#below.firstChild.style.height = `${(this.#lanes.length - to) * this.#height}px`;
    setAttribute(byId('table'), 'aria-rowcount', this.#lanes.length + 1);
    if (focused && !focused.contains(document.activeElement)) this.#focusAgain(focused);
    this.#stopAt([this.#stop, this.selected].find((key) => keys.has(key)) ?? keyOf(this.#lanes[inView] ?? {}));
  }

  #stopAt(key) {
    this.#stop = key;
    for (const [each, row] of this.#shown) setAttribute(row.link, 'tabindex', each === key ? 0 : -1);
  }

  // The row at this place, or the one of this lane, has the focus and is in view.
  focus(place) {
    const key = keyOf(this.#lanes[place]);
    if (!this.#shown.has(key)) {
      const {top} = this.#above.getBoundingClientRect();
      scrollTo({top: scrollY + top + place * this.#height - innerHeight / 2, behavior: 'instant'});
      this.draw();
    }
    const row = this.#shown.get(key);
    row?.link.focus({preventScroll: true});
    row?.element.scrollIntoView({block: 'nearest'});
  }

  // Whoever comes back from a lock whose row has left the document meanwhile.
  focusLane(lane) {
    const place = this.#lanes.findIndex((one) => keyOf(one) === keyOf(lane));
    if (place >= 0) this.focus(place);
  }

  // A row that was moved loses the focus. When it is gone, the one in its place has it.
  #focusAgain(row) {
    const place = Math.min(placeOf(row), this.#lanes.length - 1);
    const heir = row.isConnected ? row : this.#shown.get(keyOf(this.#lanes[place] ?? {}))?.element;
    heir?.querySelector('a').focus({preventScroll: true});
  }

  // Once a second, and only what is in view.
  tick() {
    for (const row of this.#shown.values()) row.tick();
  }

  async #onKey(event) {
    const row = event.target.closest('tr.lane');
    if (!row || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const at = placeOf(row), last = this.#lanes.length - 1;
    const page = Math.max(1, Math.floor(innerHeight / this.#height) - 4);  // the headings hide some
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.focus(Math.max(0, Math.min(to, last)));
    if (event.key !== 'End') return;
    // There may be thousands that have not been read; who presses another key, or clicks, has thought better of it.
    const left = new AbortController();
    for (const name of ['keydown', 'pointerdown']) addEventListener(name, (other) => other !== event && left.abort(), {signal: left.signal});
    await this.onEnd(left.signal);
    if (left.signal.aborted) return;
    left.abort();
    this.focus(this.#lanes.length - 1);
  }
}

const placeOf = (row) => row.getAttribute('aria-rowindex') - 2;

class Row {
  constructor() {
    this.operation = h('span', {class: 'operation'});
    this.head = h('span', {class: 'id-head'});
    this.tail = h('span', {class: 'id-tail'});
    this.link = h('a', {class: 'id'}, this.head, this.tail);
    this.state = h('span', {class: 'state'});
    this.holder = h('span', {class: 'node'});
    this.info = h('span', {class: 'info'});
    this.since = h('span', {class: 'time'});
    this.bar = h('progress', {'aria-label': 'Progress'});
    this.queue = h('span', {class: 'number'});
    this.refs = h('span', {class: 'number'});
    this.element = h('tr', {class: 'lane'},
      h('td', {class: 'c-resource'}, h('div', {class: 'resource'}, this.link, this.operation)),
      h('td', {class: 'c-state'}, this.state),
      h('td', {class: 'c-holder'}, h('div', {class: 'two'}, this.holder, this.info)),
      h('td', {class: 'c-since'}, h('div', {class: 'two'}, this.since, this.bar)),
      h('td', {class: 'c-queue'}, this.queue),
      h('td', {class: 'c-refs'}, this.refs));
    // The whole row is a target for the mouse; the link is the one for keyboards and readers.
    this.element.addEventListener('click', (event) => {
      if (!event.target.closest('a') && !getSelection().toString()) this.link.click();
    });
  }

  update(lane, href, selected) {
    this.lane = lane;
    const [head, tail] = split(lane.resource_id);
    setText(this.head, head);
    setText(this.tail, tail);
    setText(this.operation, lane.type);
    setAttribute(this.link, 'href', href);
    setAttribute(this.link, 'title', tail ? lane.resource_id : null);
    setAttribute(this.link, 'aria-current', selected ? 'true' : null);
    this.element.classList.toggle('selected', selected);
    const state = stateOf(lane);
    setText(this.state, STATES[state]);
    setAttribute(this.state, 'data-state', state);
    const by = lane.holder ?? lane.completion;
    setText(this.holder, by?.node_id ?? '');
    setText(this.info, lane.holder ? lane.holder.info ?? '' : lane.completion?.error || lane.completion?.result || '');
    const waiting = queueLength(lane);
    setText(this.queue, waiting ? count(waiting) : '–');
    this.queue.classList.toggle('none', waiting === 0);
    setAttribute(this.queue, 'data-waiting', waiting ? `${count(waiting)} waiting` : null);
    setText(this.refs, lane.references.count ? count(lane.references.count) : '–');
    this.refs.classList.toggle('none', lane.references.count === 0);
    const total = lane.holder?.total;
    this.bar.hidden = !total;
    if (total) {
      this.bar.max = total;
      this.bar.value = Math.min(lane.holder.done ?? 0, total);
      setAttribute(this.bar, 'title', progressText(lane.holder));
    }
    this.tick();
  }

  tick() {
    const {holder, completion, queue} = this.lane;
    const from = holder?.since ?? queue[0]?.since ?? completion?.completed_at;
    const text = from ? duration(serverNow() - Date.parse(from)) : '';
    setText(this.since, text && !holder && completion ? `${text} ago` : text);
  }
}
