// One lock in full: holder, progress, how it went last, who waits since when, which nodes use the resource.

import {byId, h, setText} from '/page/dom.js';
import {clock, count, duration, since} from '/page/format.js';
import {progressText, queueLength, STATES, stateOf} from '/page/rows.js';

export class Detail {
  #panel = byId('detail');
  #wanted = null;  // {type, resource_id}
  #drawn = '';
  #timer = null;
  #opener = null;

  constructor(api, {onBreak, onClose}) {
    Object.assign(this, {api, onBreak, onClose});
    setInterval(() => this.#tick(), 1000);
  }

  get isOpen() {
    return this.#wanted !== null;
  }

  open(lane) {
    if (this.#wanted?.type === lane.type && this.#wanted?.resource_id === lane.resource_id) return;
    this.#opener = document.activeElement;
    this.#wanted = lane;
    this.#drawn = '';
    this.#panel.hidden = false;
    document.body.classList.add('has-detail');
    this.#panel.replaceChildren(this.#head(lane));
    // Where it covers everything else, the focus must be in it.
    if (getComputedStyle(this.#panel).position === 'fixed') byId('detail-heading').focus();
    this.refresh();
  }

  close() {
    if (!this.#wanted) return;
    this.#wanted = null;
    this.#panel.hidden = true;
    document.body.classList.remove('has-detail');
    clearTimeout(this.#timer);
    if (this.#opener?.isConnected) this.#opener.focus({preventScroll: true});
  }

  concerns(event) {
    return this.#wanted?.type === event.type && this.#wanted?.resource_id === event.resource_id;
  }

  async refresh() {
    const wanted = this.#wanted;
    clearTimeout(this.#timer);
    if (!wanted) return;
    try {
      const lane = await this.api.get('/lock/status', wanted);
      if (wanted === this.#wanted) this.#draw(lane);
    } catch (error) {
      if (wanted === this.#wanted && error.status >= 400) this.#panel.replaceChildren(this.#head(wanted), h('p', {class: 'problem'}, error.message));
    }
    if (wanted === this.#wanted) this.#timer = setTimeout(() => this.refresh(), 2000);
  }

  #draw(lane) {
    const text = JSON.stringify(lane);
    if (text === this.#drawn) return;
    this.#drawn = text;
    const focused = this.#panel.contains(document.activeElement) ? document.activeElement.id : '';
    this.#panel.replaceChildren(this.#head(lane), ...this.#body(lane));
    if (focused) byId(focused)?.focus({preventScroll: true});
    this.#tick();
  }

  #head(lane) {
    const state = lane.state ? stateOf(lane) : null;
    return h('header', {class: 'detail-head'},
      h('div', {}, h('p', {class: 'kicker'}, h('span', {class: 'operation'}, lane.type),
        state && h('span', {class: 'state', 'data-state': state}, STATES[state])),
      h('h2', {id: 'detail-heading', tabindex: '-1', class: 'whole-id'}, lane.resource_id)),
      h('button', {type: 'button', id: 'detail-close', class: 'close', 'aria-label': 'Close', onclick: () => this.onClose()}, '×'));
  }

  #body(lane) {
    const waiting = queueLength(lane);
    return [
      lane.holder ? this.#holder(lane) : null,
      lane.completion ? completion(lane.completion) : null,
      !lane.holder && !lane.completion && !waiting ? h('p', {class: 'empty'}, 'Nobody holds it and nobody waits.') : null,
      this.#queue(lane, waiting),
      references(lane.references),
    ].filter(Boolean);
  }

  #holder(lane) {
    const {holder} = lane;
    const facts = [
      ['Node', h('span', {class: 'node'}, holder.node_id)],
      holder.request_id && ['Request', h('span', {class: 'mono'}, holder.request_id)],
      ['Held for', h('span', {class: 'number', 'data-since': holder.since, title: clock(holder.since)})],
      holder.lease_ms && ['Lease', duration(holder.lease_ms)],
      ['Token', h('span', {class: 'number'}, String(holder.token))],
      holder.info && ['Says', h('span', {class: 'prose'}, holder.info)],
    ].filter(Boolean);
    return h('section', {class: 'part'}, h('h3', {}, 'Holder'),
      holder.total ? h('div', {class: 'progress'},
        h('progress', {max: holder.total, value: Math.min(holder.done ?? 0, holder.total), 'aria-label': 'Progress'}),
        h('span', {class: 'number'}, progressText(holder))) : null,
      h('dl', {class: 'facts'}, facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
      h('button', {type: 'button', id: 'break', class: 'danger quiet', onclick: () => this.onBreak(lane)}, 'Break this hold…'));
  }

  #queue(lane, waiting) {
    if (!waiting) return lane.holder ? h('section', {class: 'part'}, h('h3', {}, 'Queue'), h('p', {class: 'empty'}, 'Nobody waits.')) : null;
    const rest = waiting - lane.queue.length;
    return h('section', {class: 'part'}, h('h3', {}, 'Queue', h('span', {class: 'badge'}, count(waiting))),
      h('ol', {class: 'queue'}, lane.queue.map((one) => h('li', {},
        h('span', {class: 'place'}, count(one.position)),
        h('span', {class: 'who'}, h('span', {class: 'node'}, one.node_id),
          one.request_id ? h('span', {class: 'mono faint'}, one.request_id) : null,
          one.info ? h('span', {class: 'info'}, one.info) : null),
        h('span', {class: 'number', 'data-since': one.since})))),
      rest > 0 ? h('p', {class: 'faint'}, `and ${count(rest)} more`) : null);
  }

  #tick() {
    if (!this.#wanted) return;
    for (const element of this.#panel.querySelectorAll('[data-since]')) setText(element, since(element.dataset.since));
  }
}

function completion(last) {
  const tone = last.success ? 'ok' : 'bad';
  return h('section', {class: 'part'}, h('h3', {}, 'How it went last'),
    h('div', {class: `outcome ${tone}`},
      h('p', {}, last.success ? 'Done by ' : last.permanent ? 'Failed for good on ' : 'Failed on ', h('span', {class: 'node'}, last.node_id), ', ',
        h('span', {'data-since': last.completed_at, class: 'number'}), ' ago'),
      last.error ? h('p', {class: 'prose'}, last.error) : null,
      last.result ? h('p', {class: 'prose mono'}, last.result) : null));
}

function references({count: many, nodes}) {
  if (!many) return null;
  return h('section', {class: 'part'}, h('h3', {}, 'Used by', h('span', {class: 'badge'}, count(many))),
    h('ul', {class: 'nodes'}, nodes.map((node) => h('li', {class: 'node'}, node)),
      many > nodes.length ? h('li', {class: 'faint'}, `and ${count(many - nodes.length)} more`) : null));
}
