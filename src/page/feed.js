// What just happened: the newest endings, one line each.

import {byId, h, setText} from '/page/dom.js';
import {clock, split} from '/page/format.js';

const MOST = 40;

const WORDS = {
  completed: ['ok', 'done by'], failed: ['bad', 'failed on'], expired: ['bad', 'expired on'], broken: ['bad', 'broken by an admin, held by'],
  cancelled: ['quiet', 'left by'], refused: ['quiet', 'refused to'],
};
const REASONS = {
  lease: 'its lease ran out', max_hold: 'it was held for too long', stall: 'no progress', unclaimed: 'it did not take its turn',
  bond: 'its connection broke', cancelled: 'it gave up',
};

export class Feed {
  #newest = 0;
  #list = byId('feed');

  constructor({linkTo}) {
    this.linkTo = linkTo;
  }

  // [{id, event}], in any order; what is there already is left out.
  add(entries) {
    const fresh = entries.filter(({id, event}) => id > this.#newest && event.event !== 'granted' && WORDS[event.event])
      .sort((a, b) => a.id - b.id).slice(-MOST);
    this.#newest = fresh.at(-1)?.id ?? this.#newest;
    for (const {event} of fresh) this.#list.prepend(this.#line(event));
    while (this.#list.children.length > MOST) this.#list.lastChild.remove();
    for (const time of this.#list.querySelectorAll('time')) setText(time, clock(time.dateTime));  // midnight may have passed
    byId('feed-empty').hidden = this.#list.children.length > 0;
  }

  note(text) {
    this.#list.prepend(h('li', {class: 'note'}, text));
    byId('feed-empty').hidden = true;
  }

  #line(event) {
    const [tone, words] = WORDS[event.event];
    const [head, tail] = split(event.resource_id);
    const why = REASONS[event.reason] ?? event.reason ?? event.error;
    return h('li', {class: tone},
      h('a', {href: this.linkTo(event), class: 'id', title: tail ? event.resource_id : null},
        h('span', {class: 'id-head'}, head), h('span', {class: 'id-tail'}, tail)),
      h('time', {datetime: event.completed_at}, clock(event.completed_at)),
      h('p', {class: 'what'}, h('span', {class: 'operation'}, event.type), ` ${words} `, h('span', {class: 'node'}, event.node_id),
        event.attempt > 1 && event.event !== 'cancelled' ? `, attempt ${event.attempt}` : null),
      why || event.result ? h('p', {class: 'why'}, why || event.result) : null);
  }
}
